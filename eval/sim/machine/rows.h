/* How arithmetic handlers are made: an expression over ra[i], rb[i], rc[i] for one lane becomes a
 * loop over the row, which the compiler turns into vector instructions. All 32 lanes are computed,
 * and the results of the active lanes are kept. */
#ifndef EVAL_SIM_MACHINE_ROWS_H
#define EVAL_SIM_MACHINE_ROWS_H

#include "eval/sim/machine/warp.h"

#define LOOP_LANES _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)

#define ROW_BODY(DT, DROW, BLEND, expr)    \
    uint32_t m = exec_mask(w, in);         \
    DT *d = DROW(w, in->d);                \
    if (m == FULL_MASK) {                  \
        LOOP_LANES                         \
        {                                  \
            d[i] = (DT)(expr);             \
        }                                  \
    } else {                               \
        DT *t_ = (DT *)(void *)w->scratch; \
        LOOP_LANES                         \
        {                                  \
            t_[i] = (DT)(expr);            \
        }                                  \
        BLEND(d, t_, m);                   \
    }                                      \
    return in + 1;

#define ROWS_32_1 const uint32_t *ra = row32(w, in->a);
#define ROWS_32_2 ROWS_32_1 const uint32_t *rb = row32(w, in->b);
#define ROWS_32_3 ROWS_32_2 const uint32_t *rc = row32(w, in->c);
#define ROWS_64_1 const uint64_t *ra = row64(w, in->a);
#define ROWS_64_2 ROWS_64_1 const uint64_t *rb = row64(w, in->b);
#define ROWS_64_3 ROWS_64_2 const uint64_t *rc = row64(w, in->c);

#define ROWS_64_32 ROWS_64_1 const uint32_t *rb = row32(w, in->b);

/* Handlers that other files name, and those of a table in one file. */
#define PUBLIC32(name, rows, expr)                    \
    const Inst *name(Warp *w, const Inst *in)         \
    {                                                 \
        rows ROW_BODY(uint32_t, row32, blend32, expr) \
    }
#define PUBLIC64(name, rows, expr)                    \
    const Inst *name(Warp *w, const Inst *in)         \
    {                                                 \
        rows ROW_BODY(uint64_t, row64, blend64, expr) \
    }
#define HANDLER32(name, rows, expr) static PUBLIC32(name, rows, expr)
#define HANDLER64(name, rows, expr) static PUBLIC64(name, rows, expr)

static inline float as_float(uint32_t v)
{
    float f;
    memcpy(&f, &v, 4);
    return f;
}

static inline uint32_t float_bits(float f)
{
    uint32_t v;
    memcpy(&v, &f, 4);
    return v;
}

static inline double as_double(uint64_t v)
{
    double f;
    memcpy(&f, &v, 8);
    return f;
}

static inline uint64_t double_bits(double f)
{
    uint64_t v;
    memcpy(&v, &f, 8);
    return v;
}

/* A device has one NaN. */
static inline uint32_t canonical32(float f)
{
    return f != f ? 0x7fffffffu : float_bits(f);
}

/* A subnormal number becomes a zero of its sign. */
static inline float flushed(uint32_t v, int flush)
{
    return as_float(flush && !(v & 0x7f800000u) ? v & 0x80000000u : v);
}

#endif
