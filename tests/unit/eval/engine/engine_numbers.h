/* Random operands, and comparison with double precision, for tests of single kernels. */
#ifndef TESTS_ENGINE_NUMBERS_H
#define TESTS_ENGINE_NUMBERS_H

#include <math.h>

#include "tests/unit/eval/engine/engine_support.h"

static uint64_t seed = 7; /* of the operands */

enum { MAX = 1 << 17 };
static float host[6][MAX], got[MAX];
static double want[MAX];

/* n random numbers in [-size, size), in host[k] and in a buffer of bf16. */
static inline void *numbers(int k, size_t n, float size)
{
    assert_true(n <= MAX);
    for (size_t i = 0; i < n; i++) host[k][i] = engine_random(&seed) * size;
    return engine_bf16("numbers", host[k], n);
}

static inline void *floats(int k, size_t n, float size)
{
    assert_true(n <= MAX);
    for (size_t i = 0; i < n; i++) host[k][i] = engine_random(&seed) * size;
    return engine_new("floats", host[k], n * 4);
}

/* Check that each number is within `bound` of the expected one, relative to it, or to the largest
 * if it is 0. */
static inline void close_to(const char *what, size_t n, double bound)
{
    double top = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, fabs(want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= bound * fabs(want[i]) + bound * 1e-3 * top))
            fail_msg("%s: number %zu of %zu is %.9g, %.9g expected", what, i, n, (double)got[i],
                     want[i]);
}

/* One rounding to bf16, plus a margin for fp32 before it. */
static const double HALF_STEP = 1.0 / 256 * 1.01;

/* Check that at least 99 of 100 numbers are the expected ones rounded once. fp32 may round a tie
 * the other way. */
static inline void rounded_from(const char *what, size_t n)
{
    size_t same = 0;
    close_to(what, n, HALF_STEP);
    for (size_t i = 0; i < n; i++) same += got[i] == bf16_round(want[i]);
    if (same * 100 < n * 99)
        fail_msg("%s: %zu of %zu numbers are rounded as they should be", what, same, n);
}

#endif
