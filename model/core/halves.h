/* Conversion between 16-bit floats (bf16, fp16) and fp32. */
#ifndef MODEL_CORE_HALVES_H
#define MODEL_CORE_HALVES_H

#include <stdint.h>
#include <string.h>

static inline float bf16_to_float(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Round to nearest, ties to even. A NaN stays a NaN. */
static inline uint16_t float_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Round to nearest, ties to even. Values beyond the range become infinity; a NaN stays a NaN. */
static inline uint16_t float_to_f16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) return (uint16_t)(sign | 0x7E00);
    if (bits >= 0x477FF000) return (uint16_t)(sign | 0x7C00);
    if (bits < 0x38800000) { /* subnormal, in units of 2^-24: adding 0.5 rounds to them */
        float magnitude, unit = 0.5f;
        memcpy(&magnitude, &bits, sizeof magnitude);
        magnitude += unit;
        memcpy(&bits, &magnitude, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3F000000));
    }
    return (uint16_t)(sign | (bits - 0x38000000 + 0xFFF + (bits >> 13 & 1)) >> 13);
}

static inline float f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023,
             bits;
    float f;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 */
        f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    bits = sign | (exponent == 31 ? 255u << 23 : (exponent + 112) << 23) | fraction << 13;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#endif
