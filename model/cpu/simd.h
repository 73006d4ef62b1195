/* Vectors of floats in the compiler's extension: 16 lanes with AVX-512, 8 with AVX, else 4. Files
 * that include this header contract a*b+c to a fused operation where the machine has one, and keep
 * the order of sums as written. Results are therefore bit-identical on machines of one kind. */
#ifndef MODEL_CPU_SIMD_H
#define MODEL_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#pragma GCC optimize("O3", "fp-contract=fast", "no-math-errno", "no-trapping-math")

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef float VecLoose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t Veci __attribute__((vector_size(4 * LANES)));

#define SIMD static inline __attribute__((always_inline))

SIMD Vec v_load(const float *p)
{
    return *(const VecLoose *)p;
}
SIMD void v_store(float *p, Vec x)
{
    *(VecLoose *)p = x;
}
SIMD Vec v_splat(float x)
{
    return x - (Vec){0};
}

/* The first n lanes. The other lanes read as zero and are not written. */
SIMD Vec v_load_part(const float *p, int n)
{
    Vec x = {0};
    memcpy(&x, p, (size_t)n * sizeof *p);
    return x;
}

SIMD void v_store_part(float *p, Vec x, int n)
{
    memcpy(p, &x, (size_t)n * sizeof *p);
}

SIMD Vec v_get(const float *p, int left)
{
    return left >= LANES ? v_load(p) : v_load_part(p, left);
}

SIMD void v_put(float *p, Vec x, int left)
{
    if (left >= LANES)
        v_store(p, x);
    else
        v_store_part(p, x, left);
}

SIMD Vec v_select(Veci mask, Vec a, Vec b)
{
    return (Vec)(((Veci)a & mask) | ((Veci)b & ~mask));
}
SIMD Vec v_max(Vec a, Vec b)
{
    return v_select(a > b, a, b);
}

SIMD float v_sum(Vec x)
{
    float s[LANES];
    memcpy(s, &x, sizeof s);
    for (int w = LANES / 2; w; w /= 2)
        for (int i = 0; i < w; i++) s[i] += s[i + w];
    return s[0];
}

SIMD float v_top(Vec x)
{
    float m = x[0];
    for (int i = 1; i < LANES; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* e^x within 2 ulp on [-87.3, 88.3]; outside, the value at the end of the range. A NaN stays a
 * NaN. */
SIMD Vec v_exp(Vec x)
{
    x = v_select(x > 88.3f, v_splat(88.3f), x);
    x = v_select(x < -87.3f, v_splat(-87.3f), x);
    const Vec magic = v_splat(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    Vec t = x * 1.44269504f + magic, n = t - magic;
    Vec r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    Vec p = v_splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    Veci e = ((Veci)t - (Veci)magic + 127) << 23;
    return p * (Vec)e;
}

#endif
