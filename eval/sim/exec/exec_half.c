/* f16 and bf16 arithmetic, scalar and packed, and conversions of 8-bit floats. A sum or product of two
 * halves is rounded correctly by way of fp32. A fused multiply-add goes through fp64 and an fp32 rounded
 * to odd. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#include <math.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/setp.h"
#include "eval/sim/machine/half.h"

float half_to_float(uint32_t h)
{
    return f16_widen(h & 0xffff);
}

uint32_t half_from_double(double v)
{
    return f16_narrow(to_odd(v));
}

float bf16_to_float(uint32_t h)
{
    return bf16_widen(h & 0xffff);
}

uint32_t bf16_from_double(double v)
{
    return bf16_narrow(to_odd(v));
}

static inline float tiny(float f, float limit)
{
    return fabsf(f) < limit ? as_float(float_bits(f) & 0x80000000u) : f;
}

static inline float in_f16(uint32_t h, int flags)
{
    float f = f16_widen(h & 0xffff);
    return flags & HALF_FTZ ? tiny(f, 0x1p-14f) : f;
}

static inline float in_bf16(uint32_t h, int flags)
{
    (void)flags;
    return bf16_widen(h & 0xffff);
}

static inline float adjust(float f, int flags)
{
    if (flags & HALF_SAT) f = f > 0 ? (f < 1 ? f : 1) : 0;
    if (flags & HALF_RELU) f = f <= 0 ? 0 : f; /* -0 becomes 0; NaN stays */
    return f;
}

static inline uint32_t out_f16(float f, int flags)
{
    uint32_t h = f16_narrow(adjust(f, flags));
    return flags & HALF_FTZ && !(h & 0x7c00) ? h & 0x8000 : h;
}

static inline uint32_t out_bf16(float f, int flags)
{
    return bf16_narrow(adjust(f, flags));
}

static inline float smaller(float a, float b, int flags)
{
    if (a != a || b != b) return flags & HALF_NAN || (a != a && b != b) ? NAN : a != a ? b : a;
    return a < b ? a : b < a ? b : as_float(float_bits(a) | float_bits(b));
}

static inline float larger(float a, float b, int flags)
{
    if (a != a || b != b) return flags & HALF_NAN || (a != a && b != b) ? NAN : a != a ? b : a;
    return a > b ? a : b > a ? b : as_float(float_bits(a) & float_bits(b));
}

#define XORSIGN(a, b, r) \
    (in->k0 & HALF_XORSIGN ? copysignf(r, copysignf(1, a) * copysignf(1, b)) : (r))

/* Defines the scalar and packed handlers of e, an expression over the floats a, b, c. */
#define HALF_OP(name, rows, TYPE, useb, usec, e)                                                 \
    static inline uint32_t name##_one_##TYPE(uint32_t x, uint32_t y, uint32_t z, const Inst *in) \
    {                                                                                            \
        float a = in_##TYPE(x, in->k0), b = in_##TYPE(y, in->k0), c = in_##TYPE(z, in->k0);      \
        (void)b, (void)c;                                                                        \
        return out_##TYPE((e), in->k0);                                                          \
    }                                                                                            \
    HANDLER32(name##_##TYPE, rows, name##_one_##TYPE(ra[i], useb, usec, in))                     \
    HANDLER32(name##_##TYPE##x2, rows,                                                           \
              name##_one_##TYPE(ra[i], useb, usec, in) |                                         \
                  name##_one_##TYPE(ra[i] >> 16, (useb) >> 16, (usec) >> 16, in) << 16)

#define HALF_OPS(TYPE)                                                             \
    HALF_OP(add, ROWS_32_2, TYPE, rb[i], 0u, a + b)                                \
    HALF_OP(sub, ROWS_32_2, TYPE, rb[i], 0u, a - b)                                \
    HALF_OP(mul, ROWS_32_2, TYPE, rb[i], 0u, a *b)                                 \
    HALF_OP(fma, ROWS_32_3, TYPE, rb[i], rc[i], to_odd((double)a *b + c))          \
    HALF_OP(min, ROWS_32_2, TYPE, rb[i], 0u, XORSIGN(a, b, smaller(a, b, in->k0))) \
    HALF_OP(max, ROWS_32_2, TYPE, rb[i], 0u, XORSIGN(a, b, larger(a, b, in->k0)))

HALF_OPS(f16)
HALF_OPS(bf16)

HANDLER32(neg_h, ROWS_32_1, ra[i] ^ 0x8000)
HANDLER32(neg_hx2, ROWS_32_1, ra[i] ^ 0x80008000u)
HANDLER32(abs_h, ROWS_32_1, ra[i] & 0x7fff)
HANDLER32(abs_hx2, ROWS_32_1, ra[i] & 0x7fff7fffu)

Handler *half_handler(const char *name, int is_bf16, int packed)
{
    static const struct {
        const char *name;
        Handler *f16[2], *bf16[2];
    } table[] = {
#define ENTRY(name, op)               \
    {                                 \
        name, {op##_f16, op##_f16x2}, \
        {                             \
            op##_bf16, op##_bf16x2    \
        }                             \
    }
        ENTRY("add", add),
        ENTRY("sub", sub),
        ENTRY("mul", mul),
        ENTRY("fma", fma),
        ENTRY("min", min),
        ENTRY("max", max),
        {"neg", {neg_h, neg_hx2}, {neg_h, neg_hx2}},
        {"abs", {abs_h, abs_hx2}, {abs_h, abs_hx2}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].name, name))
            return is_bf16 ? table[i].bf16[packed] : table[i].f16[packed];
    return NULL;
}

/* ---- comparisons ---- */

static int half_compare(const Inst *in, uint32_t a, uint32_t b)
{
    int flags = in->k2 ? HALF_FTZ : 0;
    if (in->k3 & HALF_BF16)
        return float_compare(in->k0, (double)in_bf16(a, 0), (double)in_bf16(b, 0));
    return float_compare(in->k0, (double)in_f16(a, flags), (double)in_f16(b, flags));
}

static uint32_t compare_halves(const Inst *in, const uint32_t *a, const uint32_t *b, int shift)
{
    uint32_t r = 0;
    for (int i = 0; i < LANES; i++)
        r |= (uint32_t)half_compare(in, a[i] >> shift, b[i] >> shift) << i;
    return r;
}

const Inst *h_setp_f16(Warp *w, const Inst *in)
{
    const uint32_t *ra = row32(w, in->a), *rb = row32(w, in->b);
    uint32_t r = compare_halves(in, ra, rb, 0);
    return setp_result(w, in, r, in->k3 & HALF_PACKED ? compare_halves(in, ra, rb, 16) : ~r);
}

const Inst *h_set_f16(Warp *w, const Inst *in)
{
    const uint32_t *ra = row32(w, in->a), *rb = row32(w, in->b);
    uint32_t *d = row32(w, in->d);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint32_t r = half_compare(in, ra[i], rb[i]) ? in->f : 0;
        if (in->k3 & HALF_PACKED) r |= half_compare(in, ra[i] >> 16, rb[i] >> 16) ? in->f << 16 : 0;
        d[i] = r;
    }
    return in + 1;
}

/* ---- pairs of 8-bit floats ---- */

/* E4M3 has no infinity and one NaN of each sign, E5M2 is a half without its low byte. A value beyond
 * the largest finite one becomes that one. */
enum { FP8_COST = 400 }; /* in thread-instructions */

typedef struct {
    int fraction, lowest; /* bits; the exponent of the smallest normal number */
    double top;
    uint8_t top_bits, nan_bits;
} Format;

static const Format formats[] = {{3, -6, 448, 0x7e, 0x7f}, {2, -14, 57344, 0x7b, 0x7f}};

static uint32_t fp8_narrow(double v, const Format *f, int relu)
{
    int e;
    if (v != v) return f->nan_bits;
    if (relu && v <= 0) v = 0;
    uint32_t sign = signbit(v) ? 0x80 : 0;
    v = fabs(v);
    if (v >= f->top) return sign | f->top_bits;
    if (v == 0) return sign;
    frexp(v, &e);
    if (--e < f->lowest) e = f->lowest;
    double steps = rint(ldexp(v, f->fraction - e)); /* ties to even */
    return sign |
           (((uint32_t)(e - f->lowest) << f->fraction) + (uint32_t)steps); /* carries into it */
}

uint32_t fp8_widen(uint32_t v, int type)
{
    uint32_t sign = (v & 0x80) << 8, rest = v & 0x7f;
    if (type == T_E5M2) return (rest & 0x7f) > 0x7c ? 0x7fff : v << 8;
    if (rest == 0x7f) return 0x7fff;
    double m = rest < 8 ? ldexp(rest, -9) : ldexp(8 + (rest & 7), (int)(rest >> 3) - 10);
    return sign | f16_narrow((float)m);
}

const Inst *h_fp8_narrow(Warp *w, const Inst *in)
{
    const Format *f = &formats[in->k0 - T_E4M3];
    const uint32_t *a = row32(w, in->a), *b = row32(w, in->b);
    uint32_t *d = row32(w, in->d);
    exec_charge(w->x, FP8_COST);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int i = __builtin_ctz(m), floats = in->k1 == T_F32;
        double hi = floats ? (double)as_float(a[i]) : (double)f16_widen(a[i] >> 16),
               lo = floats ? (double)as_float(b[i]) : (double)f16_widen(a[i] & 0xffff);
        d[i] = fp8_narrow(hi, f, in->k3 & CVT_RELU) << 8 | fp8_narrow(lo, f, in->k3 & CVT_RELU);
    }
    return in + 1;
}

const Inst *h_fp8_widen(Warp *w, const Inst *in)
{
    const uint32_t *a = row32(w, in->a);
    uint32_t *d = row32(w, in->d);
    exec_charge(w->x, FP8_COST);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint32_t lo = fp8_widen(a[i] & 255, in->k0), hi = fp8_widen(a[i] >> 8 & 255, in->k0);
        if (in->k3 & CVT_RELU) { /* NaN stays */
            lo = lo == 0x7fff ? lo : lo & 0x8000 ? 0 : lo;
            hi = hi == 0x7fff ? hi : hi & 0x8000 ? 0 : hi;
        }
        d[i] = lo | hi << 16;
    }
    return in + 1;
}
