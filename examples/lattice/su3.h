/* Complex numbers, vectors of three colours and matrices of SU(3), and what the solver does with
 * them. The arithmetic is written out, because C's complex product checks for infinities. */
#ifndef SU3_H
#define SU3_H

#include <math.h>

typedef struct {
    double re, im;
} Complex;

typedef struct {
    Complex c[3];
} Vector;

typedef struct {
    Complex e[3][3];
} Matrix;

enum { VECTOR_DOUBLES = sizeof(Vector) / sizeof(double) };

/* sum += a * b */
static inline void complex_add_product(Complex *sum, Complex a, Complex b) {
    sum->re += a.re * b.re - a.im * b.im;
    sum->im += a.re * b.im + a.im * b.re;
}

static inline Complex complex_conjugate(Complex a) {
    return (Complex){a.re, -a.im};
}

/* sum += m * v */
static inline void vector_add_product(Vector *sum, const Matrix *m, const Vector *v) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) complex_add_product(&sum->c[i], m->e[i][j], v->c[j]);
}

/* The scalar product of a and b: a is conjugated. */
static inline Complex vector_dot(const Vector *a, const Vector *b) {
    Complex sum = {0, 0};
    for (int i = 0; i < 3; i++) complex_add_product(&sum, complex_conjugate(a->c[i]), b->c[i]);
    return sum;
}

static inline double vector_norm2(const Vector *a) {
    return vector_dot(a, a).re;
}

static inline Matrix matrix_unit(void) {
    Matrix one = {0};
    for (int i = 0; i < 3; i++) one.e[i][i].re = 1;
    return one;
}

static inline Matrix matrix_scaled(const Matrix *m, double factor) {
    Matrix result;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            result.e[i][j] = (Complex){factor * m->e[i][j].re, factor * m->e[i][j].im};
    return result;
}

/* The Hermitian conjugate, which is the inverse of a matrix of SU(3). */
static inline Matrix matrix_adjoint(const Matrix *m) {
    Matrix result;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) result.e[i][j] = complex_conjugate(m->e[j][i]);
    return result;
}

static inline Matrix matrix_product(const Matrix *a, const Matrix *b) {
    Matrix result = {0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                complex_add_product(&result.e[i][j], a->e[i][k], b->e[k][j]);
    return result;
}

/* The matrix of SU(3) whose first rows have the directions of `a` and, made orthogonal to it, of
 * `b`. If both are Gaussian, it is distributed evenly over the group (by Haar's measure). */
static inline Matrix matrix_project(Vector a, Vector b) {
    Matrix u;
    double length = sqrt(vector_norm2(&a));
    for (int i = 0; i < 3; i++) a.c[i] = (Complex){a.c[i].re / length, a.c[i].im / length};
    Complex along = vector_dot(&a, &b), minus = {-along.re, -along.im};
    for (int i = 0; i < 3; i++) complex_add_product(&b.c[i], minus, a.c[i]);
    length = sqrt(vector_norm2(&b));
    for (int i = 0; i < 3; i++) b.c[i] = (Complex){b.c[i].re / length, b.c[i].im / length};
    for (int i = 0; i < 3; i++) {
        /* The third row is the conjugate of their cross product, so that the determinant is 1. */
        int j = (i + 1) % 3, k = (i + 2) % 3;
        Complex cross = {0, 0}, negated = {-a.c[k].re, -a.c[k].im};
        complex_add_product(&cross, a.c[j], b.c[k]);
        complex_add_product(&cross, negated, b.c[j]);
        u.e[0][i] = a.c[i];
        u.e[1][i] = b.c[i];
        u.e[2][i] = complex_conjugate(cross);
    }
    return u;
}

#endif
