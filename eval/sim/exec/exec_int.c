/* Integer arithmetic, logic and shifts. 16-bit values are kept zero-extended. */
#pragma GCC optimize("O3")
#include "eval/sim/exec/handlers.h"
#include "eval/sim/machine/rows.h"

#define U16(x) ((uint16_t)(x))
#define S16(x) ((int16_t)(x))
#define S32(x) ((int32_t)(x))
#define S64(x) ((int64_t)(x))

/* Defines one operation for the six integer types. e: an expression over a, b of the C type. */
#define AB(T, e)                      \
    ({                                \
        T a = (T)ra[i], b = (T)rb[i]; \
        e;                            \
    })
#define INT2(name, e)                                      \
    HANDLER32(name##_u16, ROWS_32_2, U16(AB(uint16_t, e))) \
    HANDLER32(name##_s16, ROWS_32_2, U16(AB(int16_t, e)))  \
    HANDLER32(name##_u32, ROWS_32_2, AB(uint32_t, e))      \
    HANDLER32(name##_s32, ROWS_32_2, AB(int32_t, e))       \
    HANDLER64(name##_u64, ROWS_64_2, AB(uint64_t, e))      \
    HANDLER64(name##_s64, ROWS_64_2, AB(int64_t, e))

#define INT_LIST(name)                                                         \
    {                                                                          \
        name##_u16, name##_s16, name##_u32, name##_s32, name##_u64, name##_s64 \
    }

/* The same for operations that wrap, which do not depend on the sign. */
#define WRAP2(name, e)                                    \
    HANDLER32(name##_16, ROWS_32_2, U16(AB(uint32_t, e))) \
    HANDLER32(name##_32, ROWS_32_2, AB(uint32_t, e))      \
    HANDLER64(name##_64, ROWS_64_2, AB(uint64_t, e))

#define WRAP_LIST(name)                                                  \
    {                                                                    \
        name##_16, name##_16, name##_32, name##_32, name##_64, name##_64 \
    }

WRAP2(add, a + b)
WRAP2(sub, a - b)
WRAP2(mul_lo, a *b)
HANDLER32(mad_lo_16, ROWS_32_3, U16(ra[i] * rb[i] + rc[i]))
HANDLER32(mad_lo_32, ROWS_32_3, ra[i] * rb[i] + rc[i])
HANDLER64(mad_lo_64, ROWS_64_3, ra[i] * rb[i] + rc[i])
WRAP2(and_, a &b)
WRAP2(or_, a | b)
WRAP2(xor_, a ^ b)
INT2(min, a < b ? a : b)
INT2(max, a > b ? a : b)

/* Two halves of 16 bits each. k0 of min and max: what is negative becomes 0. */
#define HALVES(e_low, e_high) (U16(e_low) | (uint32_t)U16(e_high) << 16)
#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define FLOOR(v) MORE(v, in->k0 ? 0 : INT16_MIN)
HANDLER32(add_x2, ROWS_32_2, HALVES(ra[i] + rb[i], (ra[i] >> 16) + (rb[i] >> 16)))
HANDLER32(min_u16x2, ROWS_32_2,
          HALVES(LESS(U16(ra[i]), U16(rb[i])), LESS(ra[i] >> 16, rb[i] >> 16)))
HANDLER32(max_u16x2, ROWS_32_2,
          HALVES(MORE(U16(ra[i]), U16(rb[i])), MORE(ra[i] >> 16, rb[i] >> 16)))
HANDLER32(min_s16x2, ROWS_32_2,
          HALVES(FLOOR(LESS(S16(ra[i]), S16(rb[i]))),
                 FLOOR(LESS(S16(ra[i] >> 16), S16(rb[i] >> 16)))))
HANDLER32(max_s16x2, ROWS_32_2,
          HALVES(FLOOR(MORE(S16(ra[i]), S16(rb[i]))),
                 FLOOR(MORE(S16(ra[i] >> 16), S16(rb[i] >> 16)))))
HANDLER32(min_relu, ROWS_32_2, MORE(LESS(S32(ra[i]), S32(rb[i])), 0))
HANDLER32(max_relu, ROWS_32_2, MORE(MORE(S32(ra[i]), S32(rb[i])), 0))

HANDLER32(not_16, ROWS_32_1, U16(~ra[i]))
HANDLER32(not_32, ROWS_32_1, ~ra[i])
HANDLER64(not_64, ROWS_64_1, ~ra[i])
HANDLER32(neg_16, ROWS_32_1, U16(0 - ra[i]))
HANDLER32(neg_32, ROWS_32_1, 0 - ra[i])
HANDLER64(neg_64, ROWS_64_1, 0 - ra[i])
HANDLER32(abs_16, ROWS_32_1, U16(S16(ra[i]) < 0 ? 0 - ra[i] : ra[i]))
HANDLER32(abs_32, ROWS_32_1, S32(ra[i]) < 0 ? 0 - ra[i] : ra[i])
HANDLER64(abs_64, ROWS_64_1, S64(ra[i]) < 0 ? 0 - ra[i] : ra[i])
HANDLER32(cnot_16, ROWS_32_1, ra[i] == 0)
HANDLER32(cnot_32, ROWS_32_1, ra[i] == 0)
HANDLER64(cnot_64, ROWS_64_1, ra[i] == 0)

HANDLER32(mul_hi_u16, ROWS_32_2, U16(ra[i] * rb[i] >> 16))
HANDLER32(mul_hi_s16, ROWS_32_2, U16(S16(ra[i]) * S16(rb[i]) >> 16))
HANDLER32(mul_hi_u32, ROWS_32_2, (uint64_t)ra[i] * rb[i] >> 32)
HANDLER32(mul_hi_s32, ROWS_32_2, (uint64_t)((int64_t)S32(ra[i]) * S32(rb[i])) >> 32)
HANDLER64(mul_hi_u64, ROWS_64_2, (unsigned __int128)ra[i] * rb[i] >> 64)
HANDLER64(mul_hi_s64, ROWS_64_2, (unsigned __int128)((__int128)S64(ra[i]) * S64(rb[i])) >> 64)
HANDLER32(mad_hi_u16, ROWS_32_3, U16((ra[i] * rb[i] >> 16) + rc[i]))
HANDLER32(mad_hi_s16, ROWS_32_3, U16((uint32_t)(S16(ra[i]) * S16(rb[i]) >> 16) + rc[i]))
HANDLER32(mad_hi_u32, ROWS_32_3, (uint32_t)((uint64_t)ra[i] * rb[i] >> 32) + rc[i])
HANDLER32(mad_hi_s32, ROWS_32_3,
          (uint32_t)((uint64_t)((int64_t)S32(ra[i]) * S32(rb[i])) >> 32) + rc[i])
HANDLER64(mad_hi_u64, ROWS_64_3, (uint64_t)((unsigned __int128)ra[i] * rb[i] >> 64) + rc[i])
HANDLER64(mad_hi_s64, ROWS_64_3,
          (uint64_t)((unsigned __int128)((__int128)S64(ra[i]) * S64(rb[i])) >> 64) + rc[i])
HANDLER32(mul_wide_u16, ROWS_32_2, ra[i] * rb[i])
HANDLER32(mul_wide_s16, ROWS_32_2, S16(ra[i]) * S16(rb[i]))
HANDLER64(mul_wide_u32, ROWS_32_2, (uint64_t)ra[i] * rb[i])
HANDLER64(mul_wide_s32, ROWS_32_2, (int64_t)S32(ra[i]) * S32(rb[i]))
HANDLER32(mad_wide_u16, ROWS_32_3, ra[i] * rb[i] + rc[i])
HANDLER32(mad_wide_s16, ROWS_32_3, (uint32_t)(S16(ra[i]) * S16(rb[i])) + rc[i])
HANDLER64(mad_wide_u32, ROWS_32_2 const uint64_t *rc = row64(w, in->c);
          , (uint64_t)ra[i] * rb[i] + rc[i])
HANDLER64(mad_wide_s32, ROWS_32_2 const uint64_t *rc = row64(w, in->c);
          , (uint64_t)((int64_t)S32(ra[i]) * S32(rb[i])) + rc[i])
HANDLER32(mul24_u32, ROWS_32_2, (ra[i] & 0xffffff) * (rb[i] & 0xffffff))
HANDLER32(mul24_s32, ROWS_32_2, (uint32_t)(S32(ra[i] << 8) >> 8) * (uint32_t)(S32(rb[i] << 8) >> 8))

/* Division by zero gives all ones on a device, as quotient and as remainder. INT_MIN / -1 wraps. */
#define DIV_U(T, a, b) ((b) ? (a) / (b) : (T) ~(T)0)
#define REM_U(T, a, b) ((b) ? (a) % (b) : (T) ~(T)0)
#define DIV_S(UT, a, b) ((b) == 0 ? (UT) ~(UT)0 : (b) == -1 ? (UT)0 - (UT)(a) : (UT)((a) / (b)))
#define REM_S(UT, a, b) ((b) == 0 ? (UT) ~(UT)0 : (b) == -1 ? (UT)0 : (UT)((a) % (b)))
HANDLER32(div_u16, ROWS_32_2, U16(DIV_U(uint32_t, ra[i], rb[i])))
HANDLER32(div_s16, ROWS_32_2, U16(DIV_S(uint32_t, S16(ra[i]), S16(rb[i]))))
HANDLER32(div_u32, ROWS_32_2, DIV_U(uint32_t, ra[i], rb[i]))
HANDLER32(div_s32, ROWS_32_2, DIV_S(uint32_t, S32(ra[i]), S32(rb[i])))
HANDLER64(div_u64, ROWS_64_2, DIV_U(uint64_t, ra[i], rb[i]))
HANDLER64(div_s64, ROWS_64_2, DIV_S(uint64_t, S64(ra[i]), S64(rb[i])))
HANDLER32(rem_u16, ROWS_32_2, U16(REM_U(uint32_t, ra[i], rb[i])))
HANDLER32(rem_s16, ROWS_32_2, U16(REM_S(uint32_t, S16(ra[i]), S16(rb[i]))))
HANDLER32(rem_u32, ROWS_32_2, REM_U(uint32_t, ra[i], rb[i]))
HANDLER32(rem_s32, ROWS_32_2, REM_S(uint32_t, S32(ra[i]), S32(rb[i])))
HANDLER64(rem_u64, ROWS_64_2, REM_U(uint64_t, ra[i], rb[i]))
HANDLER64(rem_s64, ROWS_64_2, REM_S(uint64_t, S64(ra[i]), S64(rb[i])))

/* Shift counts are 32-bit and clamped. */
HANDLER32(shl_16, ROWS_32_2, U16(rb[i] > 15 ? 0 : ra[i] << (rb[i] & 15)))
HANDLER32(shl_32, ROWS_32_2, rb[i] > 31 ? 0 : ra[i] << (rb[i] & 31))
HANDLER64(shl_64, ROWS_64_32, rb[i] > 63 ? 0 : ra[i] << (rb[i] & 63))
HANDLER32(shr_u16, ROWS_32_2, rb[i] > 15 ? 0 : ra[i] >> (rb[i] & 15))
HANDLER32(shr_s16, ROWS_32_2, U16(S16(ra[i]) >> (rb[i] > 15 ? 15 : rb[i])))
HANDLER32(shr_u32, ROWS_32_2, rb[i] > 31 ? 0 : ra[i] >> (rb[i] & 31))
HANDLER32(shr_s32, ROWS_32_2, S32(ra[i]) >> (rb[i] > 31 ? 31 : rb[i]))
HANDLER64(shr_u64, ROWS_64_32, rb[i] > 63 ? 0 : ra[i] >> (rb[i] & 63))
HANDLER64(shr_s64, ROWS_64_32, S64(ra[i]) >> (rb[i] > 63 ? 63 : rb[i]))

HANDLER32(sad_u32, ROWS_32_3, (ra[i] > rb[i] ? ra[i] - rb[i] : rb[i] - ra[i]) + rc[i])
HANDLER32(sad_s32, ROWS_32_3, (S32(ra[i]) > S32(rb[i]) ? ra[i] - rb[i] : rb[i] - ra[i]) + rc[i])

static const struct {
    const char *name;
    Handler *of[6]; /* u16 s16 u32 s32 u64 s64 */
} table[] = {
    {"add", WRAP_LIST(add)},
    {"sub", WRAP_LIST(sub)},
    {"mul.lo", WRAP_LIST(mul_lo)},
    {"mad.lo", WRAP_LIST(mad_lo)},
    {"mul.hi", INT_LIST(mul_hi)},
    {"mad.hi", INT_LIST(mad_hi)},
    {"mul.wide", {mul_wide_u16, mul_wide_s16, mul_wide_u32, mul_wide_s32}},
    {"mad.wide", {mad_wide_u16, mad_wide_s16, mad_wide_u32, mad_wide_s32}},
    {"mul24.lo", {0, 0, mul24_u32, mul24_s32}},
    {"div", INT_LIST(div)},
    {"rem", INT_LIST(rem)},
    {"min", INT_LIST(min)},
    {"max", INT_LIST(max)},
    {"add.x2", {0, 0, add_x2, add_x2}},
    {"min.x2", {0, 0, min_u16x2, min_s16x2}},
    {"max.x2", {0, 0, max_u16x2, max_s16x2}},
    {"min.relu", {0, 0, 0, min_relu}},
    {"max.relu", {0, 0, 0, max_relu}},
    {"and", WRAP_LIST(and_)},
    {"or", WRAP_LIST(or_)},
    {"xor", WRAP_LIST(xor_)},
    {"not", WRAP_LIST(not )},
    {"cnot", WRAP_LIST(cnot)},
    {"neg", WRAP_LIST(neg)},
    {"abs", WRAP_LIST(abs)},
    {"shl", WRAP_LIST(shl)},
    {"shr", INT_LIST(shr)},
    {"sad", {0, 0, sad_u32, sad_s32}},
};

Handler *int_handler(const char *name, int bits, int is_signed)
{
    int column = (bits == 16 ? 0 : bits == 32 ? 2 : 4) + is_signed;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].name, name)) return table[i].of[column];
    return NULL;
}
