/* Bit fields, byte permutations, funnel shifts, dot products of bytes, and sums with a carry. */
#pragma GCC optimize("O3")
#include "eval/sim/exec/handlers.h"
#include "eval/sim/machine/rows.h"

static uint32_t reverse32(uint32_t v)
{
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
}

/* bfind: the highest bit that differs from the sign, or its distance from the top (shift). */
static uint32_t find_bit(uint64_t v, int bits, int is_signed, int shift)
{
    if (is_signed && v >> (bits - 1) & 1) v = ~v & (bits == 64 ? ~0ull : 0xffffffffu);
    if (!v) return FULL_MASK;
    int at = 63 - __builtin_clzll(v);
    return (uint32_t)(shift ? bits - 1 - at : at);
}

/* bfe */
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

/* bfi */
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
#define ROWS_BFE64 ROWS_64_32 const uint32_t *rc = row32(w, in->c);
PUBLIC64(h_bfe64, ROWS_BFE64, extract(ra[i], rb[i], rc[i], 64, in->k0))
PUBLIC32(h_bfi32, ROWS_32_3 const uint32_t *re = row32(w, in->e);
         , insert(ra[i], rb[i], rc[i], re[i], 32))
#define ROWS_BFI64 ROWS_64_2 const uint32_t *rc = row32(w, in->c), *re = row32(w, in->e);
PUBLIC64(h_bfi64, ROWS_BFI64, insert(ra[i], rb[i], rc[i], re[i], 64))

/* bmsk */
static uint32_t mask_of(uint32_t pos, uint32_t len, int wrap)
{
    pos = wrap ? pos & 31 : pos;
    len = wrap ? len & 31 : len;
    if (pos >= 32 || !len) return 0;
    return (len >= 32 ? FULL_MASK : (1u << len) - 1) << pos;
}

/* szext */
static uint32_t extend(uint32_t a, uint32_t len, int wrap, int is_signed)
{
    len = wrap ? len & 31 : len;
    if (len >= 32) return a;
    uint32_t keep = (1u << len) - 1;
    return is_signed && len && a >> (len - 1) & 1 ? a | ~keep : a & keep;
}

PUBLIC32(h_bmsk, ROWS_32_2, mask_of(ra[i], rb[i], in->k0))
PUBLIC32(h_szext, ROWS_32_2, extend(ra[i], rb[i], in->k0, in->k1))

/* vabsdiff4 */
static uint32_t absolute_differences(uint32_t a, uint32_t b, uint32_t c, const Inst *in)
{
    uint32_t sum = c, packed = 0;
    for (int i = 0; i < 32; i += 8) {
        int x = in->k1 & 1 ? (int8_t)(a >> i) : (int)(a >> i & 255),
            y = in->k1 & 2 ? (int8_t)(b >> i) : (int)(b >> i & 255), v = x < y ? y - x : x - y;
        if (in->k2 && v > in->k2) v = in->k2;
        sum += (uint32_t)v;
        packed |= (uint32_t)(v & 255) << i;
    }
    return in->k0 ? sum : packed;
}

PUBLIC32(h_absdiff4, ROWS_32_3, absolute_differences(ra[i], rb[i], rc[i], in))

static int64_t video_value(uint32_t v, int is_signed)
{
    return is_signed ? (int32_t)v : (int64_t)v;
}

static int64_t video_result(int64_t a, int64_t b, int op)
{
    switch (op) {
    case VIDEO_ADD: return a + b;
    case VIDEO_SUB: return a - b;
    case VIDEO_ABSDIFF: return a < b ? b - a : a - b;
    case VIDEO_MIN: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

static uint32_t video(uint32_t a, uint32_t b, uint32_t c, const Inst *in)
{
    int is_signed = in->k1 >> 2;
    int64_t low = is_signed ? INT32_MIN : 0, high = is_signed ? INT32_MAX : UINT32_MAX;
    int64_t v = video_result(video_value(a, in->k1 & 1), video_value(b, in->k1 & 2), in->k0);
    if (in->k2) v = v < low ? low : v > high ? high : v;
    if (!in->k3) return (uint32_t)v;
    return (uint32_t)video_result(video_value((uint32_t)v, is_signed), video_value(c, is_signed),
                                  in->k3 - 1);
}

PUBLIC32(h_video, ROWS_32_3, video(ra[i], rb[i], in->k3 ? rc[i] : 0, in))

/* prmt: c selects four of the eight bytes of b:a. */
static uint32_t permute(uint32_t a, uint32_t b, uint32_t c, int mode)
{
    uint64_t v = (uint64_t)b << 32 | a;
    uint32_t sel = c & 0xffff, k = c & 3, r = 0;
    static const uint16_t ecl[] = {0x3210, 0x3211, 0x3222, 0x3333},
                          ecr[] = {0x0000, 0x1110, 0x2210, 0x3210};
    switch (mode) {
    case PRMT_F4E: sel = (k + 3) << 12 | (k + 2) << 8 | (k + 1) << 4 | k; break;
    case PRMT_B4E: sel = ((k + 5) & 7) << 12 | ((k + 6) & 7) << 8 | ((k + 7) & 7) << 4 | k; break;
    case PRMT_RC8: sel = k * 0x1111; break;
    case PRMT_ECL: sel = ecl[k]; break;
    case PRMT_ECR: sel = ecr[k]; break;
    case PRMT_RC16: sel = k & 1 ? 0x3232 : 0x1010; break;
    }
    for (int i = 0; i < 4; i++) {
        uint32_t nibble = sel >> (4 * i) & 15, byte = (uint32_t)(v >> ((nibble & 7) * 8)) & 255;
        if (nibble & 8 && mode == PRMT_INDEX) byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * i);
    }
    return r;
}

/* lop3: bit k of lut is the result for inputs a, b, c = bits 2, 1, 0 of k. */
static uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t lut)
{
    uint32_t r = 0;
    for (uint32_t k = 0; k < 8; k++)
        if (lut >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}

/* shf: a shift of hi:lo. */
static uint32_t funnel(uint32_t lo, uint32_t hi, uint32_t n, int right, int wrap)
{
    n = wrap ? n & 31 : n > 32 ? 32 : n;
    uint64_t v = (uint64_t)hi << 32 | lo;
    return right ? (uint32_t)(v >> n) : (uint32_t)(v << n >> 32);
}

/* fns: the n-th set bit from a base, upwards for n > 0, downwards for n < 0. */
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

static uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, int flags)
{
    for (int k = 0; k < 4; k++)
        c += (uint32_t)(byte_of(a, k, flags & DOT_A_SIGNED) * byte_of(b, k, flags & DOT_B_SIGNED));
    return c;
}

static uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, int flags, int hi)
{
    for (int k = 0; k < 2; k++) {
        int32_t av =
            flags & DOT_A_SIGNED ? (int16_t)(a >> (16 * k)) : (int32_t)(a >> (16 * k) & 0xffff);
        c += (uint32_t)av * (uint32_t)byte_of(b, k + 2 * hi, flags & DOT_B_SIGNED);
    }
    return c;
}

PUBLIC32(h_prmt, ROWS_32_3, permute(ra[i], rb[i], rc[i], in->k0))
PUBLIC32(h_lop3, ROWS_32_3, logic3(ra[i], rb[i], rc[i], in->k0))
PUBLIC32(h_shf, ROWS_32_3, funnel(ra[i], rb[i], rc[i], in->k0, in->k1))
PUBLIC32(h_fns, ROWS_32_3, nth_set(ra[i], rb[i], (int32_t)rc[i]))
PUBLIC32(h_dp4a, ROWS_32_3, dot4(ra[i], rb[i], rc[i], in->k0))
PUBLIC32(h_dp2a, ROWS_32_3, dot2(ra[i], rb[i], rc[i], in->k0, in->k1))

/* ---- carries ---- */

#define CARRY_BODY(T, WIDE, ROW, product)                                    \
    uint32_t m = exec_mask(w, in), out = w->carry;                           \
    for (uint32_t rest = m; rest; rest &= rest - 1) {                        \
        int i = __builtin_ctz(rest);                                         \
        T a = (product), b = rb_[i];                                         \
        WIDE c = in->k0 & CARRY_IN ? w->carry >> i & 1 : 0, v;               \
        if (in->k0 & CARRY_SUBTRACT)                                         \
            v = (WIDE)a - b - c;                                             \
        else                                                                 \
            v = (WIDE)a + b + c;                                             \
        ROW(w, in->d)[i] = (T)v;                                             \
        out = (v >> (sizeof(T) * 8) & 1) ? out | 1u << i : out & ~(1u << i); \
    }                                                                        \
    if (in->k0 & CARRY_OUT) w->carry = out;                                  \
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
               in->k0 & CARRY_HIGH ? (uint32_t)((uint64_t)ra[i] * rb[i] >> 32) : ra[i] * rb[i])
}
