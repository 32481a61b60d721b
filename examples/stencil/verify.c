/* The initial values, and two ways to check the values after some steps.
 *
 * The initial values are the sum of two products of sines. Each product only shrinks in a step, by
 * a factor that is known exactly for the difference equation that the program solves (not only for
 * the heat equation that it approximates). So grids of any size can be checked, up to rounding. One
 * product is even and the other one odd in each dimension, and differs between dimensions: mixed
 * up neighbours or dimensions change the result. */
#include "stencil.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WAVES = 2 };
static const int wave_number[WAVES][DIMS_MAX] = {{1, 1, 1}, {2, 4, 6}};
static const double weight[WAVES] = {1, 0.5};

/* One period of a sine, which is exactly 0 at the edges of the grid. */
static double *sines(int points) {
    int half = points + 1;
    double *sine = malloc(2 * (size_t)half * sizeof *sine);
    if (sine == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < half; i++) {
        sine[i] = i == 0 ? 0 : sin(M_PI * i / half);
        sine[half + i] = -sine[i];
    }
    return sine;
}

/* What is left of each wave after these steps. */
static void amplitudes(const Grid *g, int steps, double left[WAVES]) {
    for (int w = 0; w < WAVES; w++) {
        double factor = 1;
        for (int d = 0; d < g->dims; d++) {
            double s = sin(M_PI * wave_number[w][d] / (2.0 * (g->points + 1)));
            factor -= 4 * diffusion(g->dims) * s * s;
        }
        left[w] = weight[w] * pow(factor, steps);
    }
}

static double value_at(const Grid *g, const double *sine, const double left[WAVES],
                       const int position[]) {
    double sum = 0;
    for (int w = 0; w < WAVES; w++) {
        double product = left[w];
        for (int d = 0; d < g->dims; d++)
            product *= sine[(long)wave_number[w][d] * position[d] % (2L * (g->points + 1))];
        sum += product;
    }
    return sum;
}

/* Sets the state before the first step. The second array is filled with not-a-numbers, except at
 * the edges of the grid: a halo that never arrives spoils the result. */
void fill(Grid *g) {
    double left[WAVES], *sine = sines(g->points);
    amplitudes(g, 0, left);
    memset(g->flags, 0, NEIGHBOURS_MAX);
    for (long cell = 0; cell < g->cells; cell++) {
        int position[DIMS_MAX], is_edge = 0;
        grid_position(g, cell, position);
        for (int d = 0; d < g->dims; d++)
            is_edge |= position[d] == 0 || position[d] == g->points + 1;
        g->u[0][cell] = value_at(g, sine, left, position);
        g->u[1][cell] = is_edge ? 0 : NAN;
    }
    free(sine);
}

/* The larger one of an error and a difference; not-a-number counts as infinite. */
static double worse(double error, double difference) {
    return isnan(difference) ? INFINITY : fmax(error, fabs(difference));
}

/* The largest difference to the known solution, as a share of its amplitude. */
double error_of_solution(const Grid *g, int steps) {
    double left[WAVES], *sine = sines(g->points), error = 0;
    amplitudes(g, steps, left);
    for (long cell = 0; cell < g->cells; cell++) {
        int position[DIMS_MAX];
        grid_position(g, cell, position);
        if (!grid_is_inner(g, position)) continue;
        double expected = value_at(g, sine, left, position);
        error = worse(error, (g->u[steps % 2][cell] - expected) / left[0]);
    }
    free(sine);
    return error;
}

/* The largest difference to a grid that one rank has computed alone. */
double error_of_serial(const Grid *g, const Grid *serial, int steps) {
    double error = 0;
    for (long cell = 0; cell < g->cells; cell++) {
        int position[DIMS_MAX];
        grid_position(g, cell, position);
        if (!grid_is_inner(g, position)) continue;
        long there = 0;
        for (int d = 0; d < g->dims; d++) there += position[d] * serial->stride[d];
        error = worse(error, g->u[steps % 2][cell] - serial->u[steps % 2][there]);
    }
    return error;
}
