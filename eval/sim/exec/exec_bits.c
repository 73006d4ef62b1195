/* Moves, selections, integer comparisons, bit fields, special registers, address spaces, carries.
 */
#pragma GCC optimize("O3")
#include "eval/sim/exec/handlers.h"
#include "eval/sim/machine/rows.h"
#include "eval/sim/memory/memory_ops.h"

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

/* ---- moves ---- */

PUBLIC32(h_mov32, ROWS_32_1, ra[i])
PUBLIC64(h_mov64, ROWS_64_1, ra[i])
PUBLIC32(h_pack32, ROWS_32_2, (ra[i] & 0xffff) | rb[i] << 16)
PUBLIC64(h_pack64, ROWS_32_2, ra[i] | (uint64_t)rb[i] << 32)

static void put_pred(Warp *w, uint32_t p, uint32_t m, uint32_t value)
{
    if (p) w->p[p] = (w->p[p] & ~m) | (value & m);
}

const Inst *h_mov_pred(Warp *w, const Inst *in)
{
    put_pred(w, in->d, exec_mask(w, in), w->p[in->a] ^ in->f);
    return in + 1;
}

/* Logic of predicates: k0 and, or, xor, not; the operands flipped by e and f. */
const Inst *h_pred_logic(Warp *w, const Inst *in)
{
    uint32_t a = w->p[in->a] ^ in->e, b = w->p[in->b] ^ in->f;
    put_pred(w, in->d, exec_mask(w, in),
             in->k0 == 0   ? a & b
             : in->k0 == 1 ? a | b
             : in->k0 == 2 ? a ^ b
                           : ~a);
    return in + 1;
}

const Inst *h_pack64_16(Warp *w, const Inst *in)
{
    const uint32_t *a = row32(w, in->a), *b = row32(w, in->b), *c = row32(w, in->c),
                   *e = row32(w, in->e);
    ROW_BODY(uint64_t, row64, blend64,
             (a[i] & 0xffff) | (uint64_t)(b[i] & 0xffff) << 16 | (uint64_t)(c[i] & 0xffff) << 32 |
                 (uint64_t)e[i] << 48)
}

static void part(Warp *w, uint32_t row, const uint64_t *v, int shift, uint64_t keep, uint32_t m)
{
    if (row == ROW_NONE) return;
    uint32_t *d = row32(w, row);
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? (uint32_t)(v[i] >> shift & keep) : d[i];
}

/* The source is copied first: a destination may be the same register. */
const Inst *h_unpack32(Warp *w, const Inst *in)
{
    uint64_t v[LANES];
    const uint32_t *a = row32(w, in->a);
    uint32_t m = exec_mask(w, in);
    for (int i = 0; i < LANES; i++) v[i] = a[i];
    part(w, in->d, v, 0, 0xffff, m);
    part(w, in->e, v, 16, 0xffff, m);
    return in + 1;
}

const Inst *h_unpack64(Warp *w, const Inst *in)
{
    uint64_t v[LANES];
    uint32_t m = exec_mask(w, in);
    memcpy(v, row64(w, in->a), sizeof v);
    part(w, in->d, v, 0, 0xffffffff, m);
    part(w, in->e, v, 32, 0xffffffff, m);
    return in + 1;
}

const Inst *h_unpack64_16(Warp *w, const Inst *in)
{
    uint64_t v[LANES];
    uint32_t m = exec_mask(w, in);
    memcpy(v, row64(w, in->a), sizeof v);
    part(w, in->d, v, 0, 0xffff, m);
    part(w, in->e, v, 16, 0xffff, m);
    part(w, in->b, v, 32, 0xffff, m);
    part(w, in->c, v, 48, 0xffff, m);
    return in + 1;
}

/* ---- special registers, by their order in ptx_body.c ---- */

static uint64_t special_value(const Warp *w, int which, int lane)
{
    const Exec *x = w->x;
    uint32_t threads = x->block[0] * x->block[1] * x->block[2];
    if (which < 3) return w->tid[which][lane];
    if (which < 6) return x->block[which - 3];
    if (which < 9) return x->cta.id[which - 6];
    if (which < 12) return x->grid[which - 9];
    switch (which) {
    case 12: return (uint64_t)lane;
    case 13: return (uint64_t)w->index;
    case 14: return (threads + 31) / 32;
    case 15: return x->cta.linear % x->sm_count;
    case 16: return x->sm_count;
    case 17: return x->mem->launch_id;
    case 18:
    case 20: return x->clock;
    case 19: return x->clock >> 32;
    case 21:
    case 22: return x->clock;
    case 23: return x->clock >> 32;
    case 24: return 1u << lane;
    case 25: return (2ull << lane) - 1;
    case 26: return (1u << lane) - 1;
    case 27: return FULL_MASK << lane;
    case 28: return FULL_MASK & ~((2ull << lane) - 1);
    case 29: return x->launch->shared_bytes;
    case 30: return x->cta.shared_size;
    default: return 32;
    }
}

const Inst *h_special(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        if (in->k1)
            row64(w, in->d)[lane] = special_value(w, in->k0, lane);
        else
            row32(w, in->d)[lane] = (uint32_t)special_value(w, in->k0, lane) & in->f;
    }
    return in + 1;
}

/* ---- selections ---- */

const Inst *h_selp32(Warp *w, const Inst *in)
{
    ROWS_32_2
    uint32_t p = w->p[in->c] ^ in->f;
    if (w->n_unwritten && unwritten_select(w, in, exec_mask(w, in), p)) return NULL;
    ROW_BODY(uint32_t, row32, blend32, p >> i & 1 ? ra[i] : rb[i])
}

const Inst *h_selp64(Warp *w, const Inst *in)
{
    ROWS_64_2
    uint32_t p = w->p[in->c] ^ in->f;
    if (w->n_unwritten && unwritten_select(w, in, exec_mask(w, in), p)) return NULL;
    ROW_BODY(uint64_t, row64, blend64, p >> i & 1 ? ra[i] : rb[i])
}

/* slct: a where c >= 0; k0: c is a float (-0 and NaN: -0 >= 0 holds, NaN does not) */
#define SLCT_TEST(c) (in->k0 ? as_float(c) >= 0 : (int32_t)(c) >= 0)
PUBLIC32(h_slct32, ROWS_32_3, SLCT_TEST(rc[i]) ? ra[i] : rb[i])
PUBLIC64(h_slct64, ROWS_64_2 const uint32_t *rc = row32(w, in->c);
         , SLCT_TEST(rc[i]) ? ra[i] : rb[i])

/* set: k0 float result */
const Inst *h_pred_to32(Warp *w, const Inst *in)
{
    uint32_t p = w->p[in->a], yes = in->k0 ? 0x3f800000u : FULL_MASK;
    ROW_BODY(uint32_t, row32, blend32, p >> i & 1 ? yes : 0)
}

/* ---- comparisons: p|q = (a op b) bool c; k0 op, k1 bool, c predicate flipped by f ---- */

static const Inst *set_preds(Warp *w, const Inst *in, uint32_t m, uint32_t r)
{
    uint32_t q = ~r, c = w->p[in->c] ^ in->f;
    switch (in->k1) {
    case 1: r &= c, q &= c; break;
    case 2: r |= c, q |= c; break;
    case 3: r ^= c, q ^= c; break;
    }
    put_pred(w, in->d, m, r);
    put_pred(w, in->e, m, q);
    return in + 1;
}

#define SETP_CASE(op, e)             \
    case op:                         \
        LOOP_LANES                   \
        {                            \
            r |= (uint32_t)(e) << i; \
        }                            \
        break;
#define SETP(name, rows, T)                          \
    static const Inst *name(Warp *w, const Inst *in) \
    {                                                \
        rows uint32_t m = exec_mask(w, in), r = 0;   \
        switch (in->k0) {                            \
            SETP_CASE(CMP_EQ, (T)ra[i] == (T)rb[i])  \
            SETP_CASE(CMP_NE, (T)ra[i] != (T)rb[i])  \
            SETP_CASE(CMP_LT, (T)ra[i] < (T)rb[i])   \
            SETP_CASE(CMP_LE, (T)ra[i] <= (T)rb[i])  \
            SETP_CASE(CMP_GT, (T)ra[i] > (T)rb[i])   \
            SETP_CASE(CMP_GE, (T)ra[i] >= (T)rb[i])  \
        }                                            \
        return set_preds(w, in, m, r);               \
    }

SETP(setp_u16, ROWS_32_2, uint16_t)
SETP(setp_s16, ROWS_32_2, int16_t)
SETP(setp_u32, ROWS_32_2, uint32_t)
SETP(setp_s32, ROWS_32_2, int32_t)
SETP(setp_u64, ROWS_64_2, uint64_t)
SETP(setp_s64, ROWS_64_2, int64_t)

Handler *setp_handler(int bits, int is_signed)
{
    static Handler *const of[] = {setp_u16, setp_s16, setp_u32, setp_s32, setp_u64, setp_s64};
    return of[(bits == 16 ? 0 : bits == 32 ? 2 : 4) + is_signed];
}

/* ---- bit fields ---- */

static uint32_t reverse32(uint32_t v)
{
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
}

/* The highest bit that differs from the sign; k0 signed, k1 shiftamt */
static uint32_t find_bit(uint64_t v, int bits, int is_signed, int shift)
{
    if (is_signed && v >> (bits - 1) & 1) v = ~v & (bits == 64 ? ~0ull : 0xffffffffu);
    if (!v) return FULL_MASK;
    int at = 63 - __builtin_clzll(v);
    return (uint32_t)(shift ? bits - 1 - at : at);
}

static uint64_t extract(uint64_t a, uint32_t pos, uint32_t len, int bits, int is_signed)
{
    pos &= 255;
    len &= 255;
    if (!len) return 0;
    uint32_t last = pos + len - 1 < (uint32_t)bits ? pos + len - 1 : (uint32_t)bits - 1;
    uint64_t v = pos >= (uint32_t)bits ? 0 : a >> pos, keep = len >= 64 ? ~0ull : (1ull << len) - 1;
    v &= keep;
    uint32_t have = pos >= (uint32_t)bits        ? 0
                    : (uint32_t)bits - pos < len ? (uint32_t)bits - pos
                                                 : len;
    if (is_signed && a >> last & 1) v |= have >= 64 ? 0 : ~0ull << have;
    return v;
}

static uint64_t insert(uint64_t a, uint64_t base, uint32_t pos, uint32_t len, int bits)
{
    pos &= 255;
    len &= 255;
    if (!len || pos >= (uint32_t)bits) return base;
    uint64_t keep = (len >= 64 ? ~0ull : (1ull << len) - 1) << pos;
    return (base & ~keep) | (a << pos & keep);
}

PUBLIC32(h_popc32, ROWS_32_1, __builtin_popcount(ra[i]))
PUBLIC32(h_popc64, ROWS_64_1, __builtin_popcountll(ra[i]))
PUBLIC32(h_clz32, ROWS_32_1, ra[i] ? __builtin_clz(ra[i]) : 32)
PUBLIC32(h_clz64, ROWS_64_1, ra[i] ? __builtin_clzll(ra[i]) : 64)
PUBLIC32(h_brev32, ROWS_32_1, reverse32(ra[i]))
PUBLIC64(h_brev64, ROWS_64_1,
         (uint64_t)reverse32((uint32_t)ra[i]) << 32 | reverse32((uint32_t)(ra[i] >> 32)))
PUBLIC32(h_bfind32, ROWS_32_1, find_bit(ra[i], 32, in->k0, in->k1))
PUBLIC32(h_bfind64, ROWS_64_1, find_bit(ra[i], 64, in->k0, in->k1))
PUBLIC32(h_bfe32, ROWS_32_3, extract(ra[i], rb[i], rc[i], 32, in->k0))
#define ROWS_BFE64 ROWS_64_32_ const uint32_t *rc = row32(w, in->c);
#define ROWS_64_32_                       \
    const uint64_t *ra = row64(w, in->a); \
    const uint32_t *rb = row32(w, in->b);
PUBLIC64(h_bfe64, ROWS_BFE64, extract(ra[i], rb[i], rc[i], 64, in->k0))
PUBLIC32(h_bfi32, ROWS_32_3 const uint32_t *re = row32(w, in->e);
         , insert(ra[i], rb[i], rc[i], re[i], 32))
#define ROWS_BFI64 ROWS_64_2 const uint32_t *rc = row32(w, in->c), *re = row32(w, in->e);
PUBLIC64(h_bfi64, ROWS_BFI64, insert(ra[i], rb[i], rc[i], re[i], 64))

static uint32_t permute(uint32_t a, uint32_t b, uint32_t c, int mode)
{
    uint64_t v = (uint64_t)b << 32 | a;
    uint32_t sel = c & 0xffff, k = c & 3, r = 0;
    static const uint16_t ecl[] = {0x3210, 0x3211, 0x3222, 0x3333},
                          ecr[] = {0x0000, 0x1110, 0x2210, 0x3210};
    switch (mode) {
    case 1: sel = (k + 3) << 12 | (k + 2) << 8 | (k + 1) << 4 | k; break; /* f4e */
    case 2:
        sel = ((k + 5) & 7) << 12 | ((k + 6) & 7) << 8 | ((k + 7) & 7) << 4 | k;
        break;                       /* b4e */
    case 3: sel = k * 0x1111; break; /* rc8 */
    case 4: sel = ecl[k]; break;
    case 5: sel = ecr[k]; break;
    case 6: sel = k & 1 ? 0x3232 : 0x1010; break; /* rc16 */
    }
    for (int i = 0; i < 4; i++) {
        uint32_t nibble = sel >> (4 * i) & 15, byte = (uint32_t)(v >> ((nibble & 7) * 8)) & 255;
        if (nibble & 8 && mode == 0) byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * i);
    }
    return r;
}

static uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t lut)
{
    uint32_t r = 0;
    for (uint32_t k = 0; k < 8; k++)
        if (lut >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}

/* k0: 0 left, 1 right; k1: wrap */
static uint32_t funnel(uint32_t lo, uint32_t hi, uint32_t n, int right, int wrap)
{
    n = wrap ? n & 31 : n > 32 ? 32 : n;
    uint64_t v = (uint64_t)hi << 32 | lo;
    return right ? (uint32_t)(v >> n) : (uint32_t)(v << n >> 32);
}

/* The n-th set bit from a base, upwards for n > 0, downwards for n < 0. */
static uint32_t nth_set(uint32_t mask, uint32_t base, int32_t n)
{
    if (base > 31) return FULL_MASK;
    if (n == 0) return mask >> base & 1 ? base : FULL_MASK;
    int step = n > 0 ? 1 : -1, left = n > 0 ? n : -n;
    for (int pos = (int)base; pos >= 0 && pos < 32; pos += step)
        if (mask >> pos & 1 && --left == 0) return (uint32_t)pos;
    return FULL_MASK;
}

static int32_t byte_of(uint32_t v, int k, int is_signed)
{
    return is_signed ? (int8_t)(v >> (8 * k)) : (int32_t)(v >> (8 * k) & 255);
}

/* k0: bit 0 a signed, bit 1 b signed */
static uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, int k0)
{
    for (int k = 0; k < 4; k++) c += (uint32_t)(byte_of(a, k, k0 & 1) * byte_of(b, k, k0 & 2));
    return c;
}

static uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, int k0, int hi)
{
    for (int k = 0; k < 2; k++) {
        int32_t av = k0 & 1 ? (int16_t)(a >> (16 * k)) : (int32_t)(a >> (16 * k) & 0xffff);
        c += (uint32_t)av * (uint32_t)byte_of(b, k + 2 * hi, k0 & 2);
    }
    return c;
}

PUBLIC32(h_prmt, ROWS_32_3, permute(ra[i], rb[i], rc[i], in->k0))
PUBLIC32(h_lop3, ROWS_32_3, logic3(ra[i], rb[i], rc[i], in->k0))
PUBLIC32(h_shf, ROWS_32_3, funnel(ra[i], rb[i], rc[i], in->k0, in->k1))
PUBLIC32(h_fns, ROWS_32_3, nth_set(ra[i], rb[i], (int32_t)rc[i]))
PUBLIC32(h_dp4a, ROWS_32_3, dot4(ra[i], rb[i], rc[i], in->k0))
PUBLIC32(h_dp2a, ROWS_32_3, dot2(ra[i], rb[i], rc[i], in->k0, in->k1))

/* ---- address spaces ---- */

static uint64_t window_of(int space)
{
    return space == SPACE_SHARED  ? SHARED_WINDOW
           : space == SPACE_LOCAL ? LOCAL_WINDOW
           : space == SPACE_CONST ? CONST_WINDOW
           : space == SPACE_PARAM ? PARAM_WINDOW
                                  : 0;
}

/* k0 space, k1: to the space's own addresses */
const Inst *h_cvta(Warp *w, const Inst *in)
{
    uint64_t window = window_of(in->k0), add = in->k1 ? 0 - window : window;
    ROWS_64_1
    ROW_BODY(uint64_t, row64, blend64, ra[i] + add)
}

const Inst *h_isspacep(Warp *w, const Inst *in)
{
    const uint64_t *a = row64(w, in->a);
    uint32_t r = 0;
    for (int i = 0; i < LANES; i++) r |= (uint32_t)(access_space(a[i]) == in->k0) << i;
    put_pred(w, in->d, exec_mask(w, in), r);
    return in + 1;
}

/* ---- carries: k0 bit 0 takes one, bit 1 leaves one, bit 2 subtracts, bit 3 high half of a product
 * ---- */

#define CARRY_BODY(T, WIDE, ROW, product)                                    \
    uint32_t m = exec_mask(w, in), out = w->carry;                           \
    for (uint32_t rest = m; rest; rest &= rest - 1) {                        \
        int i = __builtin_ctz(rest);                                         \
        T a = (product), b = rb_[i];                                         \
        WIDE c = in->k0 & 1 ? w->carry >> i & 1 : 0, v;                      \
        if (in->k0 & 4)                                                      \
            v = (WIDE)a - b - c;                                             \
        else                                                                 \
            v = (WIDE)a + b + c;                                             \
        ROW(w, in->d)[i] = (T)v;                                             \
        out = (v >> (sizeof(T) * 8) & 1) ? out | 1u << i : out & ~(1u << i); \
    }                                                                        \
    if (in->k0 & 2) w->carry = out;                                          \
    return in + 1;

const Inst *h_add_carry32(Warp *w, const Inst *in)
{
    const uint32_t *ra = row32(w, in->a), *rb_ = row32(w, in->b);
    CARRY_BODY(uint32_t, uint64_t, row32, ra[i])
}

const Inst *h_add_carry64(Warp *w, const Inst *in)
{
    const uint64_t *ra = row64(w, in->a), *rb_ = row64(w, in->b);
    CARRY_BODY(uint64_t, unsigned __int128, row64, ra[i])
}

const Inst *h_mad_carry32(Warp *w, const Inst *in)
{
    const uint32_t *ra = row32(w, in->a), *rb = row32(w, in->b), *rb_ = row32(w, in->c);
    CARRY_BODY(uint32_t, uint64_t, row32,
               in->k0 & 8 ? (uint32_t)((uint64_t)ra[i] * rb[i] >> 32) : ra[i] * rb[i])
}
