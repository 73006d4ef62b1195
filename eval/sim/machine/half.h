/* Conversions of f16 and bf16. They have no branches, so that loops over rows become vector code.
 */
#ifndef EVAL_SIM_MACHINE_HALF_H
#define EVAL_SIM_MACHINE_HALF_H

#include "eval/sim/machine/rows.h"

static inline float f16_widen(uint32_t h)
{
    uint32_t magnitude = h & 0x7fff, normal = (magnitude << 13) + (112u << 23); /* 127 - 15 */
    uint32_t subnormal = float_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t v = magnitude < 0x400 ? subnormal : normal;
    v = magnitude >= 0x7c00 ? magnitude << 13 | 0x7f800000u : v;
    return as_float(v | (h & 0x8000) << 16);
}

static inline uint32_t f16_narrow(float f)
{
    uint32_t v = float_bits(f), sign = v >> 16 & 0x8000;
    v &= 0x7fffffffu;
    uint32_t subnormal = float_bits(as_float(v) + 0.5f) - 0x3f000000u;
    uint32_t normal = (v + 0xc8000fffu + (v >> 13 & 1)) >> 13;
    uint32_t r = v < 0x38800000u ? subnormal : v >= 0x477ff000u ? 0x7c00u : normal;
    return v > 0x7f800000u ? 0x7fffu : r | sign;
}

static inline float bf16_widen(uint32_t h)
{
    return as_float(h << 16);
}

static inline uint32_t bf16_narrow(float f)
{
    uint32_t v = float_bits(f);
    return (v & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (v + 0x7fffu + (v >> 16 & 1)) >> 16;
}

/* Rounds a double to a float, to odd: the last bit is set when bits were lost. Rounding the float
 * to a half then gives the same as rounding the double once. */
static inline float to_odd(double d)
{
    uint64_t v = double_bits(d), magnitude = v & 0x7fffffffffffffffull;
    uint32_t sign = (uint32_t)(v >> 32) & 0x80000000u;
    uint32_t f = (uint32_t)((magnitude >> 29) - ((uint64_t)(1023 - 127) << 23)) |
                 (uint32_t)((magnitude & 0x1fffffff) != 0);
    float plain = (float)d;
    int in_range = magnitude >= 0x3850000000000000ull &&
                   magnitude < 0x47d0000000000000ull; /* 2^-122 .. 2^126 */
    return in_range ? as_float(f | sign) : plain;
}

#endif
