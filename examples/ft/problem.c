/* The mathematics of the benchmark, from its published definition: the random numbers that fill the
 * grid, and the factors by which the heat equation damps each wave in time. */
#include "ft.h"

#include <math.h>
#include <stdint.h>

#define SEED 314159265u
#define MULTIPLIER 1220703125u /* 5^13 */
#define MODULUS_MASK ((UINT64_C(1) << 46) - 1)

/* Overflow is harmless: 2^46 divides 2^64. */
static uint64_t times(uint64_t a, uint64_t b) { return a * b & MODULUS_MASK; }

static uint64_t power(uint64_t base, uint64_t exponent) {
    uint64_t result = 1;
    for (; exponent > 0; exponent /= 2, base = times(base, base))
        if (exponent % 2 == 1) result = times(result, base);
    return result;
}

/* Fills `count` elements, from number `first` of the grid on: any rank starts in the sequence where
 * its share does. An element takes two numbers. */
void fill_with_random(Complex *to, size_t first, size_t count) {
    uint64_t x = times(SEED, power(MULTIPLIER, 2 * first));
    const double scale = 0x1p-46;
    for (size_t i = 0; i < count; i++) {
        x = times(x, MULTIPLIER);
        double real = scale * (double)x;
        x = times(x, MULTIPLIER);
        to[i] = CMPLX(real, scale * (double)x);
    }
}

/* exp(-4 alpha pi^2 k^2 t) for each wave number k of one dimension: 0 .. n/2-1, -n/2 .. -1. The
 * factor of a point of the grid is the product of those of its three wave numbers. */
void decay_factors(double *factors, int n, int t) {
    const double alpha = 1e-6, pi = 3.14159265358979323846;
    for (int i = 0; i < n; i++) {
        double k = i < n / 2 ? i : i - n;
        factors[i] = exp(-4 * alpha * pi * pi * k * k * t);
    }
}

/* The part of the checksum that the planes of this rank contribute: [end_z - first_z][ny][nx]. The
 * inverse transform of FFTW lacks the division by the number of points, which follows here. */
Complex checksum(const Complex *slab, const Class *class, int first_z, int end_z) {
    size_t nx = class->nx, ny = class->ny;
    Complex sum = 0;
    for (int j = 0; j < 1024; j++) {
        int z = 5 * j % class->nz;
        if (first_z <= z && z < end_z)
            sum += slab[((size_t)(z - first_z) * ny + 3 * j % ny) * nx + j % nx];
    }
    return sum / ((double)nx * ny * class->nz);
}
