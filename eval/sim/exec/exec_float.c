/* fp32 and fp64 arithmetic. The usual form (round to nearest, subnormals kept) is a plain loop.
 * Other rounding modes and flushing run the same loop under another MXCSR. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#include <math.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/rounding.h"
#include "eval/sim/exec/setp.h"
#include "eval/sim/machine/rows.h"

static inline uint64_t canonical64(double f)
{
    return f != f ? 0x7fffffffffffffffull : double_bits(f);
}

static inline float saturate(float f)
{
    return f > 0 ? (f < 1 ? f : 1) : 0;
}

static inline double saturate64(double f)
{
    return f > 0 ? (f < 1 ? f : 1) : 0;
}

#define FA as_float(ra[i])
#define FB as_float(rb[i])
#define FC as_float(rc[i])
#define DA as_double(ra[i])
#define DB as_double(rb[i])
#define DC as_double(rc[i])

#define MODED(name, T, BITS, DROW, BLEND, SAT, rows, e) \
    static const Inst *name(Warp *w, const Inst *in)    \
    {                                                   \
        rows uint32_t m = exec_mask(w, in);             \
        T *t = (T *)(void *)w->scratch;                 \
        unsigned old = enter_mode(in->k0);              \
        LOOP_LANES                                      \
        {                                               \
            t[i] = BITS(e);                             \
        }                                               \
        leave_mode(old);                                \
        if (in->k0 & FP_SAT) {                          \
            LOOP_LANES                                  \
            {                                           \
                t[i] = SAT(t[i]);                       \
            }                                           \
        }                                               \
        BLEND(DROW(w, in->d), t, m);                    \
        return in + 1;                                  \
    }

static inline uint32_t saturate_bits(uint32_t v)
{
    return float_bits(saturate(as_float(v)));
}

static inline uint64_t saturate_bits64(uint64_t v)
{
    return double_bits(saturate64(as_double(v)));
}

#define FLOAT_OP(name, rows, e)                 \
    HANDLER32(name##_f32, rows, canonical32(e)) \
    MODED(name##_f32_mode, uint32_t, canonical32, row32, blend32, saturate_bits, rows, e)
#define DOUBLE_OP(name, rows, e)                \
    HANDLER64(name##_f64, rows, canonical64(e)) \
    MODED(name##_f64_mode, uint64_t, canonical64, row64, blend64, saturate_bits64, rows, e)

FLOAT_OP(add, ROWS_32_2, FA + FB)
FLOAT_OP(sub, ROWS_32_2, FA - FB)
FLOAT_OP(mul, ROWS_32_2, FA *FB)
FLOAT_OP(div, ROWS_32_2, FA / FB)
FLOAT_OP(fma, ROWS_32_3, __builtin_fmaf(FA, FB, FC))
FLOAT_OP(rcp, ROWS_32_1, 1.0f / FA)
FLOAT_OP(sqrt, ROWS_32_1, __builtin_sqrtf(FA))
FLOAT_OP(rsqrt, ROWS_32_1, (float)(1.0 / __builtin_sqrt((double)FA)))
DOUBLE_OP(add, ROWS_64_2, DA + DB)
DOUBLE_OP(sub, ROWS_64_2, DA - DB)
DOUBLE_OP(mul, ROWS_64_2, DA *DB)
DOUBLE_OP(div, ROWS_64_2, DA / DB)
DOUBLE_OP(fma, ROWS_64_3, __builtin_fma(DA, DB, DC))
DOUBLE_OP(rcp, ROWS_64_1, 1.0 / DA)
DOUBLE_OP(sqrt, ROWS_64_1, __builtin_sqrt(DA))
DOUBLE_OP(rsqrt, ROWS_64_1, 1.0 / __builtin_sqrt(DA))

/* Minima and maxima: a number wins over NaN, and -0 is below +0. */
static inline float least(float a, float b)
{
    uint32_t both = float_bits(a) | float_bits(b);
    return a != a ? b : b != b ? a : a < b ? a : b < a ? b : as_float(both);
}

static inline float greatest(float a, float b)
{
    uint32_t both = float_bits(a) & float_bits(b);
    return a != a ? b : b != b ? a : a > b ? a : b > a ? b : as_float(both);
}

static inline double least64(double a, double b)
{
    uint64_t both = double_bits(a) | double_bits(b);
    return a != a ? b : b != b ? a : a < b ? a : b < a ? b : as_double(both);
}

static inline double greatest64(double a, double b)
{
    uint64_t both = double_bits(a) & double_bits(b);
    return a != a ? b : b != b ? a : a > b ? a : b > a ? b : as_double(both);
}

#define MA flushed(ra[i], in->k0 &FP_FTZ)
#define MB flushed(rb[i], in->k0 &FP_FTZ)
HANDLER32(min_f32, ROWS_32_2, canonical32(least(MA, MB)))
HANDLER32(max_f32, ROWS_32_2, canonical32(greatest(MA, MB)))
HANDLER32(min_nan_f32, ROWS_32_2, canonical32(MA != MA || MB != MB ? NAN : least(MA, MB)))
HANDLER32(max_nan_f32, ROWS_32_2, canonical32(MA != MA || MB != MB ? NAN : greatest(MA, MB)))
HANDLER64(min_f64, ROWS_64_2, canonical64(least64(DA, DB)))
HANDLER64(max_f64, ROWS_64_2, canonical64(greatest64(DA, DB)))
HANDLER32(abs_f32, ROWS_32_1, float_bits(MA) & 0x7fffffffu)
HANDLER32(neg_f32, ROWS_32_1, float_bits(MA) ^ 0x80000000u)
HANDLER64(abs_f64, ROWS_64_1, ra[i] & 0x7fffffffffffffffull)
HANDLER64(neg_f64, ROWS_64_1, ra[i] ^ 0x8000000000000000ull)
HANDLER32(copysign_f32, ROWS_32_2, (ra[i] & 0x80000000u) | (rb[i] & 0x7fffffffu))
HANDLER64(copysign_f64, ROWS_64_2,
          (ra[i] & 0x8000000000000000ull) | (rb[i] & 0x7fffffffffffffffull))

static const struct {
    const char *name;
    Handler *f32, *f32_mode, *f64, *f64_mode;
} table[] = {
#define BOTH(name, op)                                         \
    {                                                          \
        name, op##_f32, op##_f32_mode, op##_f64, op##_f64_mode \
    }
#define SAME(name, op)                               \
    {                                                \
        name, op##_f32, op##_f32, op##_f64, op##_f64 \
    }
    BOTH("add", add),
    BOTH("sub", sub),
    BOTH("mul", mul),
    BOTH("div", div),
    BOTH("fma", fma),
    BOTH("rcp", rcp),
    BOTH("sqrt", sqrt),
    BOTH("rsqrt", rsqrt),
    SAME("min", min),
    SAME("max", max),
    SAME("abs", abs),
    SAME("neg", neg),
    SAME("copysign", copysign),
    {"min.NaN", min_nan_f32, min_nan_f32, 0, 0},
    {"max.NaN", max_nan_f32, max_nan_f32, 0, 0},
};

Handler *float_handler(const char *name, int bits, int mode)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].name, name))
            return bits == 32 ? (mode ? table[i].f32_mode : table[i].f32)
                              : (mode ? table[i].f64_mode : table[i].f64);
    return NULL;
}

/* ---- comparisons ---- */

int float_compare(int op, double a, double b)
{
    int unordered = a != a || b != b;
    switch (op) {
    case CMP_EQ: return a == b;
    case CMP_NE: return a < b || a > b;
    case CMP_LT: return a < b;
    case CMP_LE: return a <= b;
    case CMP_GT: return a > b;
    case CMP_GE: return a >= b;
    case CMP_EQU: return unordered || a == b;
    case CMP_NEU: return unordered || a != b;
    case CMP_LTU: return !(a >= b);
    case CMP_LEU: return !(a > b);
    case CMP_GTU: return !(a <= b);
    case CMP_GEU: return !(a < b);
    case CMP_NUM: return !unordered;
    default: return unordered;
    }
}

#define CMP_CASE(op, x)              \
    case op:                         \
        LOOP_LANES                   \
        {                            \
            r |= (uint32_t)(x) << i; \
        }                            \
        break;

const Inst *h_setp_f32(Warp *w, const Inst *in)
{
    uint32_t r = 0;
    float a[LANES], b[LANES];
    const uint32_t *ra = row32(w, in->a), *rb = row32(w, in->b);
    LOOP_LANES
    {
        a[i] = flushed(ra[i], in->k2);
    }
    LOOP_LANES
    {
        b[i] = flushed(rb[i], in->k2);
    }
    switch (in->k0) {
        CMP_CASE(CMP_EQ, a[i] == b[i])
        CMP_CASE(CMP_LT, a[i] < b[i])
        CMP_CASE(CMP_LE, a[i] <= b[i])
        CMP_CASE(CMP_GT, a[i] > b[i])
        CMP_CASE(CMP_GE, a[i] >= b[i])
        CMP_CASE(CMP_NEU, a[i] != b[i])
        CMP_CASE(CMP_LTU, !(a[i] >= b[i]))
        CMP_CASE(CMP_LEU, !(a[i] > b[i]))
        CMP_CASE(CMP_GTU, !(a[i] <= b[i]))
        CMP_CASE(CMP_GEU, !(a[i] < b[i]))
    default:
        for (int i = 0; i < LANES; i++) r |= (uint32_t)float_compare(in->k0, a[i], b[i]) << i;
    }
    return setp_result(w, in, r, ~r);
}

const Inst *h_setp_f64(Warp *w, const Inst *in)
{
    uint32_t r = 0;
    const uint64_t *ra = row64(w, in->a), *rb = row64(w, in->b);
    for (int i = 0; i < LANES; i++)
        r |= (uint32_t)float_compare(in->k0, as_double(ra[i]), as_double(rb[i])) << i;
    return setp_result(w, in, r, ~r);
}

static int class_test(int what, int class)
{
    switch (what) {
    case TESTP_FINITE: return class != FP_NAN && class != FP_INFINITE;
    case TESTP_INFINITE: return class == FP_INFINITE;
    case TESTP_NUMBER: return class != FP_NAN;
    case TESTP_NOTANUMBER: return class == FP_NAN;
    case TESTP_NORMAL: return class == FP_NORMAL;
    default: return class == FP_SUBNORMAL;
    }
}

const Inst *h_testp32(Warp *w, const Inst *in)
{
    uint32_t r = 0;
    for (int i = 0; i < LANES; i++)
        r |= (uint32_t)class_test(in->k0, fpclassify(as_float(row32(w, in->a)[i]))) << i;
    return setp_result(w, in, r, ~r);
}

const Inst *h_testp64(Warp *w, const Inst *in)
{
    uint32_t r = 0;
    for (int i = 0; i < LANES; i++)
        r |= (uint32_t)class_test(in->k0, fpclassify(as_double(row64(w, in->a)[i]))) << i;
    return setp_result(w, in, r, ~r);
}
