/* Sixteen floats at a time in the compiler's vector extension: AVX-512 where there is one, pairs of
 * AVX2 or quadruples of SSE registers elsewhere. Files that include this contract a*b+c to one
 * fused operation and keep every order of summation as written, so results repeat bit for bit. */
#ifndef MODEL_SIMD_H
#define MODEL_SIMD_H

#include <stdint.h>
#include <string.h>

#pragma GCC optimize("O3", "fp-contract=fast", "no-math-errno", "no-trapping-math")
#pragma GCC diagnostic ignored "-Wpsabi"

typedef float V16 __attribute__((vector_size(64)));
typedef float V16Loose __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t V16i __attribute__((vector_size(64)));

#define SIMD static inline __attribute__((always_inline))

SIMD V16 v_load(const float *p) { return *(const V16Loose *)p; }
SIMD void v_store(float *p, V16 x) { *(V16Loose *)p = x; }
SIMD V16 v_splat(float x) { return x - (V16){0}; }

/* The first n of sixteen; the others read as zero and are not written. */
SIMD V16 v_load_part(const float *p, int n)
{
    V16 x = {0};
    memcpy(&x, p, (size_t)n * sizeof *p);
    return x;
}

SIMD void v_store_part(float *p, V16 x, int n) { memcpy(p, &x, (size_t)n * sizeof *p); }

SIMD V16 v_get(const float *p, int left) { return left >= 16 ? v_load(p) : v_load_part(p, left); }

SIMD void v_put(float *p, V16 x, int left)
{
    if (left >= 16) v_store(p, x);
    else v_store_part(p, x, left);
}

SIMD V16 v_select(V16i mask, V16 a, V16 b) { return (V16)(((V16i)a & mask) | ((V16i)b & ~mask)); }
SIMD V16 v_max(V16 a, V16 b) { return v_select(a > b, a, b); }

SIMD float v_sum(V16 x)
{
    float s[8];
    for (int i = 0; i < 8; i++) s[i] = x[i] + x[i + 8];
    for (int i = 0; i < 4; i++) s[i] += s[i + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

SIMD float v_top(V16 x)
{
    float m = x[0];
    for (int i = 1; i < 16; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* e^x within 2 ulp on [-87.3, 88.3]; outside, the value at the end of the range. NaN stays NaN. */
SIMD V16 v_exp(V16 x)
{
    x = v_select(x > 88.3f, v_splat(88.3f), x);
    x = v_select(x < -87.3f, v_splat(-87.3f), x);
    const V16 magic = v_splat(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    V16 t = x * 1.44269504f + magic, n = t - magic;
    V16 r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    V16 p = v_splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    V16i e = ((V16i)t - (V16i)magic + 127) << 23;
    return p * (V16)e;
}

#endif
