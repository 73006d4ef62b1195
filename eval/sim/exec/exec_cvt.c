/* Conversions. The common ones are vector loops. All others convert lane by lane in one routine. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#include <math.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/rounding.h"
#include "eval/sim/machine/half.h"

enum { CVT_COST = 250 }; /* of a conversion lane by lane, in thread-instructions */

static int type_bits(int t)
{
    static const uint8_t bits[] = {8, 8, 16, 16, 32, 32, 64, 64, 16, 16, 32, 64, 32};
    return bits[t];
}

static int is_float(int t)
{
    return t >= T_F16;
}

static int is_signed_int(int t)
{
    return t < T_F16 && (t & 1);
}

/* ---- one lane ---- */

static uint64_t low_bits(uint64_t v, int bits)
{
    return bits >= 64 ? v : v & ((1ull << bits) - 1);
}

static uint64_t extend(uint64_t v, int bits)
{
    return bits < 64 && v >> (bits - 1) & 1 ? v | ~0ull << bits : v;
}

static uint64_t int_to_int(uint64_t v, int to, int from, int saturate)
{
    v = low_bits(v, type_bits(from));
    if (is_signed_int(from)) v = extend(v, type_bits(from));
    if (saturate) {
        int bits = type_bits(to);
        int negative = is_signed_int(from) && (int64_t)v < 0;
        uint64_t top = is_signed_int(to) ? (1ull << (bits - 1)) - 1
                       : bits == 64      ? ~0ull
                                         : (1ull << bits) - 1;
        if (negative && !is_signed_int(to))
            v = 0;
        else if (negative)
            v = (int64_t)v < -(int64_t)top - 1 ? ~top : v;
        else if (v > top)
            v = top;
    }
    v = low_bits(v, type_bits(to));
    return is_signed_int(to) ? extend(v, type_bits(to)) : v;
}

static double widen(uint64_t v, int from)
{
    switch (from) {
    case T_F16: return f16_widen((uint32_t)v & 0xffff);
    case T_BF16: return bf16_widen((uint32_t)v & 0xffff);
    case T_F64: return as_double(v);
    default: return as_float((uint32_t)v);
    }
}

static double round_to_int(double d, int how)
{
    switch (how) {
    case INT_NEAREST: return __builtin_rint(d);
    case INT_DOWN: return __builtin_floor(d);
    case INT_UP: return __builtin_ceil(d);
    case INT_ZERO: return __builtin_trunc(d);
    default: return d;
    }
}

/* NaN becomes 0, or the top bit alone when either side has 64 bits, as on an H200. */
static uint64_t float_to_int(double d, int to, int from)
{
    int bits = type_bits(to);
    if (d != d) return bits == 64 || (from == T_F64 && bits == 32) ? 1ull << (bits - 1) : 0;
    if (is_signed_int(to)) {
        double top = ldexp(1, bits - 1);
        int64_t max = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
        return (uint64_t)(d >= top ? max : d < -top ? -max - 1 : (int64_t)d);
    }
    double top = ldexp(1, bits);
    return d >= top ? low_bits(~0ull, bits) : d <= 0 ? 0 : (uint64_t)d;
}

static double clamp_flags(double d, int mode)
{
    if (mode & FP_SAT) d = d > 0 ? (d < 1 ? d : 1) : 0;
    if (mode & CVT_RELU) d = d < 0 ? 0 : d;
    return d;
}

/* Rounds a double to f16 or bf16 in a rounding mode: to the nearest, and one step back where that
 * went the wrong way. */
static uint32_t narrow_directed(double d, int to, int mode)
{
    uint32_t h = to == T_F16 ? f16_narrow(to_odd(d)) : bf16_narrow(to_odd(d));
    double back = widen(h, to);
    int direction = mode & FP_ROUNDING;
    if (direction == FP_RN || back == d || d != d) return h;
    int away_too_far = direction == FP_RZ   ? fabs(back) > fabs(d)
                       : direction == FP_RM ? back > d
                                            : back < d;
    if (away_too_far)
        h += (back > d) == (back > 0 || (back == 0 && !(h & 0x8000))) ? (uint32_t)-1 : 1u;
    return h & 0xffff;
}

static uint32_t narrow_half(double d, int to, int mode)
{
    d = clamp_flags(d, mode);
    if (mode & CVT_SATFINITE && d == d) {
        double top = to == T_F16 ? 65504.0 : 0x1.fep127;
        d = d > top ? top : d < -top ? -top : d;
    }
    return narrow_directed(d, to, mode);
}

/* Defines a conversion in a rounding mode. */
#define IN_MODE(name, FROM, TO, expr)    \
    static TO name(FROM v, int mode)     \
    {                                    \
        unsigned old = enter_mode(mode); \
        volatile FROM in = v;            \
        volatile TO out = (expr);        \
        leave_mode(old);                 \
        return out;                      \
    }
IN_MODE(double_to_float, double, float, (float)in)
IN_MODE(signed_to_float, uint64_t, float, (float)(int64_t)in)
IN_MODE(unsigned_to_float, uint64_t, float, (float)in)
IN_MODE(signed_to_double, uint64_t, double, (double)(int64_t)in)
IN_MODE(unsigned_to_double, uint64_t, double, (double)in)

static uint64_t to_float_type(double d, int to, int mode)
{
    switch (to) {
    case T_F16:
    case T_BF16: return narrow_half(d, to, mode);
    case T_F64: return double_bits(clamp_flags(d, mode));
    case T_TF32: {
        uint32_t v = float_bits((float)clamp_flags(d, mode));
        if ((v & 0x7f800000u) == 0x7f800000u) return v;
        return (v + (mode & CVT_RNA ? 0x1000u : 0xfffu + (v >> 13 & 1))) & ~0x1fffu;
    }
    default: {
        float f = (float)clamp_flags(double_to_float(d, mode), mode);
        return canonical32(f);
    }
    }
}

static uint64_t convert(uint64_t v, const Inst *in)
{
    int to = in->k0, from = in->k1, mode = in->k3;
    if (!is_float(from) && !is_float(to)) return int_to_int(v, to, from, mode & FP_SAT);
    if (!is_float(from)) {
        v = int_to_int(v, is_signed_int(from) ? T_S64 : T_U64, from, 0);
        if (to == T_F64)
            return double_bits(is_signed_int(from) ? signed_to_double(v, mode)
                                                   : unsigned_to_double(v, mode));
        if (to == T_F32)
            return float_bits(is_signed_int(from) ? signed_to_float(v, mode)
                                                  : unsigned_to_float(v, mode));
        return to_float_type(is_signed_int(from) ? (double)(int64_t)v : (double)v, to, mode);
    }
    if (mode & FP_FTZ && from == T_F32 && !(v & 0x7f800000u)) v &= 0x80000000u;
    double d = round_to_int(widen(v, from), in->k2);
    return is_float(to) ? to_float_type(d, to, mode) : float_to_int(d, to, in->k1);
}

static const Inst *h_cvt(Warp *w, const Inst *in)
{
    exec_charge(w->x, CVT_COST);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t v = convert(in->f == 64 ? row64(w, in->a)[lane] : row32(w, in->a)[lane], in);
        if (in->e == 64)
            row64(w, in->d)[lane] = v;
        else
            row32(w, in->d)[lane] = (uint32_t)low_bits(v, (int)in->e);
    }
    return in + 1;
}

/* ---- rows ---- */

static inline uint32_t trunc_s32(float f)
{
    float g = f != f ? 0 : f;
    int32_t v = g >= 0x1p31f ? INT32_MAX : g < -0x1p31f ? INT32_MIN : (int32_t)g;
    return (uint32_t)v;
}

HANDLER64(u32_u64, ROWS_32_1, ra[i])
HANDLER64(s32_s64, ROWS_32_1, (int64_t)(int32_t)ra[i])
HANDLER32(b64_b32, ROWS_64_1, (uint32_t)ra[i])
HANDLER32(u16_u32, ROWS_32_1, ra[i] & 0xffff)
HANDLER32(s16_s32, ROWS_32_1, (int32_t)(int16_t)ra[i])
HANDLER32(u8_u32, ROWS_32_1, ra[i] & 0xff)
HANDLER32(s32_f32, ROWS_32_1, float_bits((float)(int32_t)ra[i]))
HANDLER32(u32_f32, ROWS_32_1, float_bits((float)ra[i]))
HANDLER32(f32_s32z, ROWS_32_1, trunc_s32(as_float(ra[i])))
HANDLER32(f32_s32n, ROWS_32_1, trunc_s32(__builtin_rintf(as_float(ra[i]))))
HANDLER32(f16_f32, ROWS_32_1, canonical32(f16_widen(ra[i] & 0xffff)))
HANDLER32(bf16_f32, ROWS_32_1, canonical32(bf16_widen(ra[i] & 0xffff)))
HANDLER32(f32_f16, ROWS_32_1, f16_narrow(as_float(ra[i])))
HANDLER32(f32_bf16, ROWS_32_1, bf16_narrow(as_float(ra[i])))
HANDLER64(f32_f64, ROWS_32_1, double_bits((double)as_float(ra[i])))
HANDLER32(f64_f32, ROWS_64_1, canonical32((float)as_double(ra[i])))
HANDLER32(sat_f32, ROWS_32_1,
          float_bits(as_float(ra[i]) > 0 ? (as_float(ra[i]) < 1 ? as_float(ra[i]) : 1) : 0))
HANDLER32(rint_f32, ROWS_32_1, canonical32(__builtin_rintf(as_float(ra[i]))))
HANDLER32(floor_f32, ROWS_32_1, canonical32(__builtin_floorf(as_float(ra[i]))))
HANDLER32(ceil_f32, ROWS_32_1, canonical32(__builtin_ceilf(as_float(ra[i]))))
HANDLER32(trunc_f32, ROWS_32_1, canonical32(__builtin_truncf(as_float(ra[i]))))

static const struct {
    uint8_t to, from, round_int, mode, to_bits, from_bits;
    Handler *fn;
} fast[] = {
    {T_U64, T_U32, 0, 0, 64, 32, u32_u64},
    {T_S64, T_U32, 0, 0, 64, 32, u32_u64},
    {T_S64, T_S32, 0, 0, 64, 32, s32_s64},
    {T_U64, T_S32, 0, 0, 64, 32, s32_s64},
    {T_U32, T_U64, 0, 0, 32, 64, b64_b32},
    {T_U32, T_S64, 0, 0, 32, 64, b64_b32},
    {T_S32, T_S64, 0, 0, 32, 64, b64_b32},
    {T_S32, T_U64, 0, 0, 32, 64, b64_b32},
    {T_U32, T_U16, 0, 0, 32, 16, u16_u32},
    {T_S32, T_S16, 0, 0, 32, 16, s16_s32},
    {T_S32, T_U16, 0, 0, 32, 16, u16_u32},
    {T_U32, T_S16, 0, 0, 32, 16, s16_s32},
    {T_U16, T_U32, 0, 0, 16, 32, u16_u32},
    {T_S16, T_S32, 0, 0, 16, 32, u16_u32},
    {T_U32, T_U8, 0, 0, 32, 16, u8_u32},
    {T_U32, T_U8, 0, 0, 32, 32, u8_u32},
    {T_F32, T_S32, 0, 0, 32, 32, s32_f32},
    {T_F32, T_U32, 0, 0, 32, 32, u32_f32},
    {T_S32, T_F32, INT_ZERO, 0, 32, 32, f32_s32z},
    {T_S32, T_F32, INT_NEAREST, 0, 32, 32, f32_s32n},
    {T_F32, T_F16, 0, 0, 32, 16, f16_f32},
    {T_F32, T_BF16, 0, 0, 32, 16, bf16_f32},
    {T_F16, T_F32, 0, 0, 16, 32, f32_f16},
    {T_BF16, T_F32, 0, 0, 16, 32, f32_bf16},
    {T_F64, T_F32, 0, 0, 64, 32, f32_f64},
    {T_F32, T_F64, 0, 0, 32, 64, f64_f32},
    {T_F32, T_F32, 0, FP_SAT, 32, 32, sat_f32},
    {T_F32, T_F32, INT_NEAREST, 0, 32, 32, rint_f32},
    {T_F32, T_F32, INT_DOWN, 0, 32, 32, floor_f32},
    {T_F32, T_F32, INT_UP, 0, 32, 32, ceil_f32},
    {T_F32, T_F32, INT_ZERO, 0, 32, 32, trunc_f32},
};

Handler *cvt_handler(int to, int from, int round_int, int mode, int to_bits, int from_bits)
{
    for (size_t i = 0; i < sizeof fast / sizeof fast[0]; i++)
        if (fast[i].to == to && fast[i].from == from && fast[i].round_int == round_int &&
            fast[i].mode == mode && fast[i].to_bits == to_bits && fast[i].from_bits == from_bits)
            return fast[i].fn;
    return h_cvt;
}

static const Inst *pack_plain(Warp *w, const Inst *in)
{
    ROWS_32_2
    if (in->k0 == T_F16) {
        ROW_BODY(uint32_t, row32, blend32,
                 f16_narrow(as_float(ra[i])) << 16 | f16_narrow(as_float(rb[i])))
    }
    ROW_BODY(uint32_t, row32, blend32,
             bf16_narrow(as_float(ra[i])) << 16 | bf16_narrow(as_float(rb[i])))
}

const Inst *h_cvt_pack(Warp *w, const Inst *in)
{
    if (!in->k3) return pack_plain(w, in);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint32_t hi = narrow_half(as_float(row32(w, in->a)[lane]), in->k0, in->k3);
        uint32_t lo = narrow_half(as_float(row32(w, in->b)[lane]), in->k0, in->k3);
        row32(w, in->d)[lane] = hi << 16 | lo;
    }
    return in + 1;
}
