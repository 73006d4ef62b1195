/* The numbers of halves, by arithmetic: a compiler need not have a type for them. */
#ifndef TESTS_HALF_VALUE_H
#define TESTS_HALF_VALUE_H

#include <math.h>
#include <stdint.h>

static inline double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31) v = fraction ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -v : v;
}

/* The nearest half, of two the even one; beyond the greatest, an infinity. */
static inline uint16_t half_of(double v)
{
    int exponent, sign = signbit(v) ? 0x8000 : 0;
    if (isnan(v)) return 0x7e00;
    if (isinf(v) || v == 0) return (uint16_t)(sign | (v == 0 ? 0 : 0x7c00));
    frexp(v, &exponent);
    int last =
        exponent > -13 ? exponent - 11 : -24; /* the weight of the last bit, as a power of 2 */
    int bits = ((last + 24) << 10) + (int)fmin(nearbyint(ldexp(fabs(v), -last)), 2048);
    return (uint16_t)(sign | (last > 5 || bits > 0x7c00 ? 0x7c00 : bits));
}

#endif
