/* The approximate functions, computed by polynomials in double precision and rounded once. Results
 * are the same on every machine, and closer than the bounds in the PTX manual: ex2 2 ulp, lg2
 * 2^-22, sin and cos 2^-20.5 absolute in [-pi, pi]. That of tanh has the eleven bits of the manual. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#include <math.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/machine/rows.h"

static inline float flush(float f, int mode)
{
    return flushed(float_bits(f), mode & FP_FTZ);
}

/* 2^x = 2^n 2^f for |x| <= 1000: 2^n by exponent bits, 2^f by the series of e^(f ln 2), |f| <= 1/2.
 */
static inline double exp2_double(double x)
{
    double n = __builtin_rint(x), f = (x - n) * 0.69314718055994530942;
    double p =
        1 +
        f * (1 +
             f * (1.0 / 2 +
                  f * (1.0 / 6 +
                       f * (1.0 / 24 +
                            f * (1.0 / 120 +
                                 f * (1.0 / 720 + f * (1.0 / 5040 + f * (1.0 / 40320 +
                                                                         f * (1.0 / 362880)))))))));
    int64_t e = (int64_t)(int32_t)n + 1023;
    return p * as_double((uint64_t)e << 52);
}

static inline float ex2(float a, int mode)
{
    double x = flush(a, mode);
    x = x > 300 ? 300 : x < -300 ? -300 : x;
    float r = flush((float)exp2_double(x != x ? 0 : x), mode);
    return a != a ? NAN : r;
}

/* log2(2^e m) = e + 2/ln 2 atanh(t), with m in [sqrt 1/2, sqrt 2) and t = (m-1)/(m+1). */
static inline float lg2(float a, int mode)
{
    float v = flush(a, mode);
    uint64_t bits = double_bits((double)v);
    int64_t e = (int64_t)(bits >> 52 & 0x7ff) - 1023;
    double m = as_double((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
    int high = m > 1.41421356237309504880;
    m = high ? m * 0.5 : m;
    e += high;
    double t = (m - 1) / (m + 1), s = t * t;
    double p =
        t *
        (1 + s * (1.0 / 3 +
                  s * (1.0 / 5 + s * (1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11 + s * (1.0 / 13)))))));
    float r = (float)((double)(int32_t)e + p * 2.88539008177792681472);
    r = v == INFINITY ? INFINITY : r;
    r = v == 0 ? -INFINITY : r;
    return v != v || v < 0 ? NAN : r;
}

/* a / 2pi as hardware has it: a product in float32, rounded towards zero. Its error is what the functions err
 * by beyond [-pi, pi]. */
static inline double turns_of(double a)
{
    double exact = a * (double)0.15915494f;
    float near = (float)exact;
    int32_t beyond = __builtin_fabs((double)near) > __builtin_fabs(exact);
    return (double)as_float(float_bits(near) - (uint32_t)beyond);
}

/* sin(a + quarter pi/2) */
static inline float sine(float a, int quarter, int mode)
{
    double x = flush(a, mode);
    double bounded = x > 1e9 || x < -1e9 || x != x ? 0 : x; /* beyond any stated accuracy */
    double turns = turns_of(bounded), k = __builtin_rint(4 * turns);
    double r = (turns - 0.25 * k) * 6.28318530717958647693, s = r * r;
    int32_t q = (int32_t)k + quarter;
    double sn =
        r *
        (1 + s * (-1.0 / 6 + s * (1.0 / 120 +
                                  s * (-1.0 / 5040 + s * (1.0 / 362880 + s * (-1.0 / 39916800))))));
    double cs =
        1 + s * (-1.0 / 2 + s * (1.0 / 24 + s * (-1.0 / 720 +
                                                 s * (1.0 / 40320 + s * (-1.0 / 3628800 +
                                                                         s * (1.0 / 479001600))))));
    double v = q & 1 ? cs : sn;
    float out = flush((float)(q & 2 ? -v : v), mode);
    out = a == 0 && quarter == 0 ? flush(a, mode) : out; /* the sign of zero */
    return a != a || a == INFINITY || a == -INFINITY ? NAN : out;
}

static inline float hyperbolic(float a)
{
    double x = a < 0 ? -(double)a : (double)a;
    x = x > 20 || x != x ? 20 : x;
    double e = exp2_double(x * 2.88539008177792681472), t = 1 - 2 / (e + 1);
    double small = x - x * x * x / 3;
    float r = (float)(x < 1e-4 ? small : t);
    r = a < 0 ? -r : a == 0 ? a : r;
    return a != a ? NAN : r;
}

/* The device's result has eleven bits: a kernel that needs more is wrong there, too. */
static inline float hyperbolic_coarse(float a)
{
    uint32_t bits = float_bits(hyperbolic(a));
    return as_float((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000u);
}

HANDLER32(ex2_f32, ROWS_32_1, canonical32(ex2(as_float(ra[i]), in->k0)))
HANDLER32(lg2_f32, ROWS_32_1, canonical32(lg2(as_float(ra[i]), in->k0)))
HANDLER32(sin_f32, ROWS_32_1, canonical32(sine(as_float(ra[i]), 0, in->k0)))
HANDLER32(cos_f32, ROWS_32_1, canonical32(sine(as_float(ra[i]), 1, in->k0)))
HANDLER32(tanh_f32, ROWS_32_1, canonical32(hyperbolic_coarse(as_float(ra[i]))))

/* The f16 and bf16 forms, scalar or packed. */
#define BOTH_HALVES(name, from, to, fn)          \
    HANDLER32(name, ROWS_32_1,                   \
              (to)(fn((from)(ra[i] & 0xffff))) | \
                  (in->k1 ? (to)(fn((from)(ra[i] >> 16))) << 16 : 0))
static inline float ex2_plain(float a)
{
    return ex2(a, 0);
}
BOTH_HALVES(ex2_f16, half_to_float, half_from_double, ex2_plain)
BOTH_HALVES(ex2_bf16, bf16_to_float, bf16_from_double, ex2_plain)
BOTH_HALVES(tanh_f16, half_to_float, half_from_double, hyperbolic)
BOTH_HALVES(tanh_bf16, bf16_to_float, bf16_from_double, hyperbolic)

Handler *math_handler(const char *name)
{
    static const struct {
        const char *name;
        Handler *fn;
    } table[] = {
        {"ex2.f32", ex2_f32},   {"lg2.f32", lg2_f32},   {"sin.f32", sin_f32},
        {"cos.f32", cos_f32},   {"tanh.f32", tanh_f32}, {"ex2.f16", ex2_f16},
        {"ex2.bf16", ex2_bf16}, {"tanh.f16", tanh_f16}, {"tanh.bf16", tanh_bf16},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].name, name)) return table[i].fn;
    return NULL;
}
