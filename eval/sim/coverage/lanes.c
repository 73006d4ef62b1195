/* Arithmetic on the values of a block, with the change from block to block beside it. */
#pragma GCC optimize("O3")
#include "eval/sim/coverage/lanes.h"

#include <string.h>

void lanes_pin(Lanes *v, Box *box)
{
    for (int k = 0; k < BOX_DIMS; k++) {
        if (v->d[k]) box_pin(box, k);
        v->d[k] = 0;
    }
}

/* ---- views of values as integers ---- */

static uint64_t mask_of(int bits)
{
    return bits >= 64 ? ~0ull : (1ull << bits) - 1;
}

static int64_t view(uint64_t v, int bits, int is_signed)
{
    if (bits >= 64) return (int64_t)v;
    if (bits == 32) return is_signed ? (int64_t)(int32_t)(uint32_t)v : (int64_t)(uint32_t)v;
    if (!is_signed) return (int64_t)(v & mask_of(bits));
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* The views of n lanes, each of its own even where all have one value. */
static void view_row(const Lanes *v, const SliceInst *in, int n, int64_t *row)
{
    if (v->uniform) {
        const int64_t x = view(v->v[0], in->bits, in->is_signed);
        for (int i = 0; i < n; i++) row[i] = x;
    } else if (in->bits == 32 && in->is_signed) {
        for (int i = 0; i < n; i++) row[i] = (int32_t)(uint32_t)v->v[i];
    } else {
        for (int i = 0; i < n; i++) row[i] = view(v->v[i], in->bits, in->is_signed);
    }
}

static int lanes_of(const Lanes *v, const LaneMask *m)
{
    return v->uniform ? 1 : m->n;
}

/* The least and the largest value of the lanes that take part. Returns 0 where none does. */
static int range_of(const Lanes *v, int bits, int is_signed, const LaneMask *m, int64_t range[2])
{
    int64_t least = INT64_MAX, largest = INT64_MIN;
    for (int i = 0, n = lanes_of(v, m); i < n; i++) {
        const int on = v->uniform || m->on[i];
        const int64_t x = view(v->v[i], bits, is_signed), low = on ? x : INT64_MAX,
                      high = on ? x : INT64_MIN;
        least = low < least ? low : least;
        largest = high > largest ? high : largest;
    }
    range[0] = least, range[1] = largest;
    return least <= largest;
}

/* The values are these integers in every block of the box, without a carry out of their bits. */
static void keep_view(Lanes *v, int bits, int is_signed, const LaneMask *m, Box *box)
{
    int64_t range[2], low = is_signed ? -(int64_t)(mask_of(bits) / 2) - 1 : 0,
                      high = (int64_t)(is_signed ? mask_of(bits) / 2 : mask_of(bits));
    if (!box_is_moving(box, v->d) || !range_of(v, bits, is_signed, m, range)) return;
    if (bits >= 64) low = is_signed ? -BOX_MOST : 0, high = BOX_MOST;
    if (range[0] < low || range[1] > high)
        lanes_pin(v, box);
    else
        box_keep(box, v->d, range, low, high);
}

static void set_change(Lanes *out, const int64_t d[BOX_DIMS], int bits)
{
    for (int k = 0; k < BOX_DIMS; k++) out->d[k] = view((uint64_t)d[k], bits, 1);
}

/* ---- copies with what differs between lanes ---- */

static void expand(Lanes *v, int n)
{
    if (!v->uniform) return;
    for (int i = 1; i < n; i++) v->v[i] = v->v[0];
    v->uniform = 0;
}

void lanes_put(Lanes *to, const Lanes *v, const LaneMask *m, Box *box)
{
    int whole = m->all || !to->set;
    if (whole && (m->all || v->uniform)) {
        memcpy(to->v, v->v, (size_t)lanes_of(v, m) * sizeof *to->v);
        to->uniform = v->uniform;
        to->known = v->known;
        memcpy(to->d, v->d, sizeof to->d);
        to->set = 1;
        return;
    }
    if (!to->set) {
        memcpy(to->d, v->d, sizeof to->d);
        to->known = 1;
        to->uniform = 1;
        to->v[0] = 0;
    }
    to->set = 1;
    to->known &= v->known;
    if (!to->known) return;
    expand(to, m->n);
    for (int k = 0; k < BOX_DIMS; k++)
        if (to->d[k] != v->d[k]) {
            box_pin(box, k);
            to->d[k] = 0;
        }
    const uint64_t *from = v->v;
    if (v->uniform)
        for (int i = 0; i < m->n; i++) to->v[i] = m->on[i] ? from[0] : to->v[i];
    else
        for (int i = 0; i < m->n; i++) to->v[i] = m->on[i] ? from[i] : to->v[i];
}

/* ---- operations ---- */

/* Quotient and remainder of integers by a constant above 0, rounded to below. The change is split into
 * whole multiples, which the quotient takes, and a rest, with which no remainder may leave its range. */
static void divide(Lanes *v, int64_t by, int remainder, const LaneMask *m, Box *box, int bits,
                   int is_signed)
{
    const int64_t by_mask = by & (by - 1) ? -1 : by - 1;
    const int shift = by_mask < 0 ? 0 : __builtin_ctzll((uint64_t)by);
    int64_t range[2] = {INT64_MAX, INT64_MIN}, rest[BOX_DIMS], whole[BOX_DIMS];
    int n = lanes_of(v, m);
    if (box->periods) box_note_periods(box->periods, v->d, by);
    for (int i = 0; i < n; i++) {
        int64_t x = view(v->v[i], bits, is_signed), q, r;
        if (by_mask >= 0) {
            q = x >> shift, r = x & by_mask;
        } else {
            q = x / by, r = x % by;
            if (r < 0) q--, r += by;
        }
        const int on = v->uniform || m->on[i];
        const int64_t low = on ? r : INT64_MAX, high = on ? r : INT64_MIN;
        range[0] = low < range[0] ? low : range[0];
        range[1] = high > range[1] ? high : range[1];
        v->v[i] = (uint64_t)(remainder ? r : q) & mask_of(bits);
    }
    const int found = range[0] <= range[1];
    for (int k = 0; k < BOX_DIMS; k++) {
        whole[k] = v->d[k] / by, rest[k] = v->d[k] % by;
        if (rest[k] > by / 2) whole[k]++, rest[k] -= by;
        if (rest[k] < -by / 2) whole[k]--, rest[k] += by;
    }
    if (found && box_is_moving(box, rest)) box_keep(box, rest, range, 0, by - 1);
    memcpy(v->d, remainder ? rest : whole, sizeof v->d);
}

void lanes_divide(Lanes *v, uint64_t by, int remainder, const LaneMask *m, Box *box)
{
    divide(v, (int64_t)by, remainder, m, box, 32, 0);
}

/* The bits that change in any direction. */
static uint64_t changing(const Lanes *v)
{
    uint64_t any = 0;
    for (int k = 0; k < BOX_DIMS; k++) any |= (uint64_t)v->d[k];
    return any;
}

static int is_still(const Lanes *v)
{
    return !changing(v);
}

static int is_constant(const Lanes *v, const LaneMask *m)
{
    for (int i = 1; i < lanes_of(v, m); i++)
        if (v->v[i] != v->v[0]) return 0;
    return is_still(v);
}

static void copy(Lanes *to, const Lanes *from, const LaneMask *m)
{
    memcpy(to->v, from->v, (size_t)lanes_of(from, m) * sizeof *to->v);
    to->uniform = from->uniform;
    memcpy(to->d, from->d, sizeof to->d);
}

/* Values of one lane, or of all; out may be a. A loop for each case, so that each is one of vectors. */
#define EACH_FROM(x_is, y_is, expr)                      \
    do {                                                 \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++) \
        {                                                \
            const uint64_t x = x_is, y = y_is;           \
            to[i] = (uint64_t)(expr)&w;                  \
        }                                                \
    } while (0)
#define EACH(expr)                                               \
    do {                                                         \
        const uint64_t *p = a->v, *q = b ? b->v : NULL, p0 = *p; \
        const uint64_t q0 = q ? *q : 0;                          \
        uint64_t *to = out->v;                                   \
        if (a->uniform && (!b || b->uniform))                    \
            EACH_FROM(p0, q0, expr);                             \
        else if (a->uniform)                                     \
            EACH_FROM(p0, q[i], expr);                           \
        else if (!b || b->uniform)                               \
            EACH_FROM(p[i], q0, expr);                           \
        else                                                     \
            EACH_FROM(p[i], q[i], expr);                         \
    } while (0)

static int quotient(const SliceInst *in, Lanes *a, Lanes *b, const LaneMask *m, Box *box,
                    Lanes *out)
{
    int bits = in->bits, n = a->uniform && b->uniform ? 1 : m->n, is_rem = in->op == OP_REM;
    uint64_t w = mask_of(bits);
    int64_t range[2];
    int64_t by = view(b->v[0], bits, in->is_signed);
    if (is_constant(b, m) && by > 0 && by < BOX_MOST && !is_still(a)) {
        keep_view(a, bits, in->is_signed, m, box);
        int some = range_of(a, bits, in->is_signed, m, range);
        if (some && range[0] >= 0) {
            box_keep(box, a->d, range, 0, BOX_MOST);
            copy(out, a, m);
            divide(out, by, is_rem, m, box, bits, in->is_signed);
            return 0;
        }
    }
    lanes_pin(a, box);
    lanes_pin(b, box);
    memset(out->d, 0, sizeof out->d);
    for (int i = 0; i < n; i++) {
        uint64_t x = a->v[a->uniform ? 0 : i], y = b->v[b->uniform ? 0 : i], r;
        int64_t p = view(x, bits, 1), q = view(y, bits, 1);
        if (!(y & w) || (in->is_signed && q == -1))
            r = is_rem ? 0 : 0 - x;
        else if (in->is_signed)
            r = (uint64_t)(is_rem ? p % q : p / q);
        else
            r = is_rem ? (x & w) % (y & w) : (x & w) / (y & w);
        out->v[i] = r & w;
    }
    return 0;
}

/* The low half of a product, whose factors have from_bits. */
static void product(const SliceInst *in, Lanes *a, Lanes *b, const LaneMask *m, Box *box,
                    Lanes *out)
{
    int bits = in->from_bits, is_signed = in->is_signed, n = a->uniform && b->uniform ? 1 : m->n;
    uint64_t w = mask_of(in->bits);
    int64_t d[BOX_DIMS] = {0};
    if (in->bits > bits) {
        keep_view(a, bits, is_signed, m, box);
        keep_view(b, bits, is_signed, m, box);
    }
    const Lanes *by = is_constant(b, m)   ? b
                      : is_constant(a, m) ? a
                                          : NULL,
                *moves = by == b ? a : b;
    if (by)
        for (int k = 0; k < BOX_DIMS; k++)
            d[k] = (int64_t)((uint64_t)moves->d[k] * (uint64_t)view(by->v[0], bits, is_signed));
    if (!by) {
        lanes_pin(a, box);
        lanes_pin(b, box);
    }
    EACH((uint64_t)view(x, bits, is_signed) * (uint64_t)view(y, bits, is_signed));
    set_change(out, d, in->bits);
}

/* Makes values of `from` bits those of `to` bits. */
static void widen(Lanes *v, int from, int to, int is_signed, const LaneMask *m, Box *box)
{
    int64_t d[BOX_DIMS];
    uint64_t w = mask_of(to);
    if (to > from) keep_view(v, from, is_signed, m, box);
    memcpy(d, v->d, sizeof d);
    for (int i = 0, n = lanes_of(v, m); i < n; i++)
        v->v[i] = (uint64_t)view(v->v[i], from, is_signed) & w;
    set_change(v, d, to);
}

static int shift_left(const SliceInst *in, Lanes *a, Lanes *b, const LaneMask *m, Box *box,
                      Lanes *out)
{
    int bits = in->bits, n = a->uniform && b->uniform ? 1 : m->n;
    uint64_t w = mask_of(bits), by = b->v[0] & 0xffffffff;
    int64_t d[BOX_DIMS] = {0};
    if (is_constant(b, m) && by < (uint64_t)bits) {
        for (int k = 0; k < BOX_DIMS; k++) d[k] = (int64_t)((uint64_t)a->d[k] << by);
    } else {
        lanes_pin(a, box);
        lanes_pin(b, box);
    }
    EACH((y & 0xffffffff) < (uint64_t)bits ? x << (y & 63) : 0);
    set_change(out, d, bits);
    return 0;
}

/* All values have one sign, and keep it in every block of the box. Returns 0 where they have both. */
static int keep_sign(const Lanes *a, int bits, const LaneMask *m, Box *box)
{
    const int64_t largest = bits >= 64 ? BOX_MOST : (int64_t)(mask_of(bits) / 2);
    int64_t range[2];
    if (!range_of(a, bits, 1, m, range) || (range[0] < 0) != (range[1] < 0)) return 0;
    box_keep(box, a->d, range, range[0] < 0 ? -largest - 1 : 0, range[0] < 0 ? -1 : largest);
    return 1;
}

static int shift_right(const SliceInst *in, Lanes *a, Lanes *b, const LaneMask *m, Box *box,
                       Lanes *out)
{
    int bits = in->bits, n = a->uniform && b->uniform ? 1 : m->n;
    uint64_t w = mask_of(bits), by = b->v[0] & 0xffffffff;
    if (!is_still(a) && is_constant(b, m) && by < (uint64_t)bits - 1) {
        keep_view(a, bits, in->is_signed, m, box);
        copy(out, a, m);
        divide(out, 1ll << by, 0, m, box, bits, in->is_signed);
        return 0;
    }
    const int is_of_sign = is_constant(b, m) && by == (uint64_t)bits - 1;
    if (!is_of_sign || !keep_sign(a, bits, m, box)) lanes_pin(a, box);
    lanes_pin(b, box);
    memset(out->d, 0, sizeof out->d);
    for (int i = 0; i < n; i++) {
        uint64_t x = a->v[a->uniform ? 0 : i], y = b->v[b->uniform ? 0 : i] & 0xffffffff;
        if (y >= (uint64_t)bits) y = (uint64_t)bits - 1, x = in->is_signed ? x : 0;
        out->v[i] = (uint64_t)(in->is_signed ? view(x, bits, 1) >> y : (int64_t)((x & w) >> y)) & w;
    }
    return 0;
}

/* The trailing zeros that all values and their changes have. */
static int zeros_of(const Lanes *v, const LaneMask *m)
{
    uint64_t any = changing(v);
    for (int i = 0, n = lanes_of(v, m); i < n; i++) any |= v->uniform || m->on[i] ? v->v[i] : 0;
    return any ? __builtin_ctzll(any) : 64;
}

static uint64_t largest_of(const Lanes *v, const LaneMask *m)
{
    uint64_t any = 0;
    for (int i = 0, n = lanes_of(v, m); i < n; i++) any |= v->uniform || m->on[i] ? v->v[i] : 0;
    return any;
}

static int is_disjoint(const Lanes *low, const Lanes *high, const LaneMask *m)
{
    int z = zeros_of(high, m);
    return is_still(low) && (z >= 64 || !(largest_of(low, m) >> z));
}

/* An or of which the sign alone matters, or the high half: it is 0 in each lane, in any block of the box.
 * Returns 0 where that is not so in this block. */
static int keep_zero(Lanes *a, Lanes *b, int bits, const LaneMask *m, Box *box)
{
    const int64_t high = bits == 64 ? UINT32_MAX : INT32_MAX;
    int64_t x[2], y[2];
    if (!range_of(a, bits, 1, m, x) || !range_of(b, bits, 1, m, y) || x[0] < 0 || y[0] < 0 ||
        x[1] > high || y[1] > high)
        return 0;
    box_keep(box, a->d, x, 0, high);
    box_keep(box, b->d, y, 0, high);
    return 1;
}

/* All bits up to the highest that is set. */
static uint64_t span_of(uint64_t ones)
{
    return ones ? ~0ull >> __builtin_clzll(ones) : 0;
}

/* Has a value no bit above those of a mask, in any block of the box? */
static int has_no_more(const Lanes *v, uint64_t ones, int bits, const LaneMask *m, Box *box)
{
    int64_t range[2];
    if (!ones || ones >> 62 || !(ones & (ones + 1)) || !range_of(v, bits, 1, m, range) ||
        range[0] < 0 || (uint64_t)range[1] > span_of(ones))
        return 0;
    box_keep(box, v->d, range, 0, (int64_t)span_of(ones));
    return 1;
}

/* and, or, xor. Bits that cannot meet are added; a mask of low bits, or of high ones, divides. */
static int logic(const SliceInst *in, Lanes *a, Lanes *b, const LaneMask *m, Box *box, Lanes *out)
{
    int bits = in->bits, n = a->uniform && b->uniform ? 1 : m->n;
    uint64_t w = mask_of(bits), ones = b->v[0] & w;
    int64_t d[BOX_DIMS] = {0};
    if (in->op == OP_AND && !is_still(b) && is_constant(a, m)) return logic(in, b, a, m, box, out);
    if (in->op == OP_AND && !is_still(a) && is_constant(b, m) && bits > 1) {
        uint64_t low = ~ones & (has_no_more(a, ones, in->bits, m, box) ? span_of(ones) : w);
        int is_low = ones && !(ones & (ones + 1)), is_high = low && !(low & (low + 1));
        if ((is_low || is_high) && ones != w && (is_low ? ones : low) < 1ull << 40) {
            uint64_t by = (is_low ? ones : low) + 1;
            copy(out, a, m);
            divide(out, (int64_t)by, 1, m, box, bits, 1);
            if (is_low) return 0;
            for (int i = 0, k = lanes_of(out, m); i < k; i++)
                out->v[i] = (a->v[a->uniform ? 0 : i] - out->v[i]) & w;
            for (int k = 0; k < BOX_DIMS; k++) d[k] = a->d[k] - out->d[k];
            set_change(out, d, bits);
            return 0;
        }
    }
    int moves = !is_still(a) || !is_still(b);
    if (in->op != OP_AND && moves && (is_disjoint(a, b, m) || is_disjoint(b, a, m))) {
        for (int k = 0; k < BOX_DIMS; k++) d[k] = a->d[k] + b->d[k];
    } else if (in->op != OP_OR || !in->k || !keep_zero(a, b, bits, m, box)) {
        lanes_pin(a, box);
        lanes_pin(b, box);
    }
    if (in->op == OP_AND)
        EACH(x & y);
    else if (in->op == OP_OR)
        EACH(x | y);
    else
        EACH(x ^ y);
    set_change(out, d, bits);
    return 0;
}

/* Which of below, equal and above a comparison holds for. Without branches: lanes differ. */
typedef struct {
    int below, equal, above, is_unsigned64;
} Order;

static Order order_of(int k, const SliceInst *in)
{
    return (Order){.below = k == IS_LT || k == IS_LE || k == IS_NE,
                   .equal = k == IS_EQ || k == IS_LE || k == IS_GE,
                   .above = k == IS_GT || k == IS_GE || k == IS_NE,
                   .is_unsigned64 = in->bits >= 64 && !in->is_signed};
}

static inline int holds(Order o, int64_t x, int64_t y)
{
    int is_below = o.is_unsigned64 ? (uint64_t)x < (uint64_t)y : x < y, is_equal = x == y;
    return (is_below & o.below) | (is_equal & o.equal) | (((is_below | is_equal) ^ 1) & o.above);
}

/* Differences of lanes on one side of a comparison: none where the least is above the largest. */
typedef struct {
    int64_t range[2];
} Side;

static inline void side_add(Side *s, int is_on, int64_t by)
{
    int64_t low = is_on ? by : INT64_MAX, high = is_on ? by : INT64_MIN;
    s->range[0] = low < s->range[0] ? low : s->range[0];
    s->range[1] = high > s->range[1] ? high : s->range[1];
}

/* Views of the lanes of two values, as many as differ. */
typedef struct {
    int n;
    int64_t a[LANES_MAX], b[LANES_MAX];
} Views;

static void view_both(const SliceInst *in, const Lanes *a, const Lanes *b, int n, Views *to)
{
    to->n = n;
    view_row(a, in, n, to->a);
    view_row(b, in, n, to->b);
}

/* The order of a and b is the same in every block of the box. It is kept by the sign of a - b alone. */
static void keep_order(const SliceInst *in, Lanes *a, Lanes *b, const Views *v, const LaneMask *m,
                       Box *box)
{
    const Side none = {{INT64_MAX, INT64_MIN}};
    Side below = none, above = none;
    int64_t d[BOX_DIMS];
    int is_far = 0, n_equal = 0;
    keep_view(a, in->bits, in->is_signed, m, box);
    keep_view(b, in->bits, in->is_signed, m, box);
    for (int k = 0; k < BOX_DIMS; k++) d[k] = a->d[k] - b->d[k];
    if (!box_is_moving(box, d)) return;
    int64_t largest = in->bits < 64 ? INT64_MAX : BOX_MOST;
    int is_exact = in->k == IS_EQ || in->k == IS_NE,
        is_strict = in->k == IS_LT || in->k == IS_GE || is_exact;
    for (int i = 0; i < v->n; i++) {
        int64_t x = v->a[i], y = v->b[i], by = (int64_t)((uint64_t)x - (uint64_t)y);
        int on = v->n == 1 || m->on[i], is_equal = is_exact & !by;
        /* Of a strict order, equal counts as not below. */
        int is_below = on & !is_equal & ((by < 0) | (!by & !is_strict));
        is_far |= on & ((x > largest) | (x < -largest) | (y > largest) | (y < -largest));
        n_equal |= on & is_equal;
        side_add(&below, is_below, by);
        side_add(&above, on & !is_equal & !is_below, by);
    }
    if (is_far) {
        lanes_pin(a, box);
        lanes_pin(b, box);
        return;
    }
    int with_zero = in->k == IS_LE || in->k == IS_GT;
    const int64_t equal[2] = {0, 0};
    if (below.range[0] <= below.range[1])
        box_keep(box, d, below.range, -BOX_MOST, with_zero ? 0 : -1);
    if (above.range[0] <= above.range[1])
        box_keep(box, d, above.range, with_zero || is_exact ? 1 : 0, BOX_MOST);
    if (n_equal) box_keep(box, d, equal, 0, 0);
}

static uint64_t combined(int how, uint64_t r, uint64_t c)
{
    return how == COMBINE_WITH_AND ? r & c : how == COMBINE_WITH_OR ? r | c : r ^ c;
}

static int compare(const SliceInst *in, Lanes *a, Lanes *b, const Lanes *with, const LaneMask *m,
                   Box *box, Lanes *out)
{
    const Order order = order_of(in->k, in);
    if (with && !with->known) return -1;
    int n = a->uniform && b->uniform && (!with || with->uniform) ? 1 : m->n;
    Views v;
    view_both(in, a, b, n, &v);
    if (a->uniform && b->uniform) v.n = 1;
    keep_order(in, a, b, &v, m, box);
    for (int i = 0; i < n; i++) out->v[i] = (uint64_t)holds(order, v.a[i], v.b[i]);
    for (int i = 0; with && i < n; i++)
        out->v[i] = combined(in->combine, out->v[i], with->v[with->uniform ? 0 : i] & 1);
    memset(out->d, 0, sizeof out->d);
    return 0;
}

/* Chooses by lane. Where both are chosen, they change alike. */
static void choose(const uint8_t *first, Lanes *a, Lanes *b, const LaneMask *m, Box *box,
                   Lanes *out)
{
    int some[2] = {0, 0};
    for (int i = 0; i < m->n; i++)
        if (m->on[i]) some[!first[i]] = 1;
    if (some[0] && some[1])
        for (int k = 0; k < BOX_DIMS; k++)
            if (a->d[k] != b->d[k]) {
                box_pin(box, k);
                a->d[k] = b->d[k] = 0;
            }
    for (int i = 0; i < m->n; i++)
        out->v[i] = first[i] ? a->v[a->uniform ? 0 : i] : b->v[b->uniform ? 0 : i];
    memcpy(out->d, some[0] ? a->d : b->d, sizeof out->d);
    out->uniform = 0;
}

static int least_or_largest(const SliceInst *in, Lanes *a, Lanes *b, const LaneMask *m, Box *box,
                            Lanes *out)
{
    uint8_t first[LANES_MAX];
    SliceInst by = *in;
    by.k = IS_LT;
    const Order less = order_of(IS_LT, in);
    Views v;
    view_both(in, a, b, m->n, &v);
    if (a->uniform && b->uniform) v.n = 1;
    keep_order(&by, a, b, &v, m, box);
    for (int i = 0; i < m->n; i++)
        first[i] = (uint8_t)(holds(less, v.a[i], v.b[i]) ^ (in->op != OP_MIN));
    int uniform = a->uniform && b->uniform;
    choose(first, a, b, m, box, out);
    out->uniform = uniform;
    return 0;
}

static int select_by(const Lanes *p, Lanes *a, Lanes *b, const LaneMask *m, Box *box, Lanes *out)
{
    uint8_t first[LANES_MAX];
    for (int i = 0; i < m->n; i++) first[i] = p->v[p->uniform ? 0 : i] & 1;
    int uniform = a->uniform && b->uniform && p->uniform;
    if (!a->known || !b->known) {
        int some[2] = {0, 0};
        for (int i = 0; i < m->n; i++)
            if (m->on[i]) some[!first[i]] = 1;
        if ((some[0] && !a->known) || (some[1] && !b->known)) return -1;
    }
    choose(first, a, b, m, box, out);
    out->uniform = uniform;
    return 0;
}

static int linear(const SliceInst *in, const Lanes *a, const Lanes *b, const LaneMask *m,
                  Lanes *out)
{
    int n = a->uniform && (!b || b->uniform) ? 1 : m->n;
    uint64_t w = mask_of(in->bits);
    int64_t d[BOX_DIMS];
    for (int k = 0; k < BOX_DIMS; k++) {
        uint64_t p = (uint64_t)a->d[k], q = b ? (uint64_t)b->d[k] : 0;
        d[k] = (int64_t)(in->op == OP_ADD ? p + q : in->op == OP_SUB ? p - q : 0 - p);
    }
    if (in->op == OP_ADD)
        EACH(x + y);
    else if (in->op == OP_SUB)
        EACH(x - y);
    else if (in->op == OP_NOT)
        EACH(~x + (y & 0));
    else
        EACH(0 - x + (y & 0));
    set_change(out, d, in->bits);
    if (in->bits == 1) memset(out->d, 0, sizeof out->d);
    return 0;
}

static uint64_t high_half(const SliceInst *in, uint64_t x, uint64_t y)
{
    __int128 p = (__int128)view(x, in->bits, in->is_signed) * view(y, in->bits, in->is_signed);
    if (in->bits >= 64 && !in->is_signed) p = (__int128)((unsigned __int128)x * y);
    return (uint64_t)(p >> in->bits);
}

static int high_product(const SliceInst *in, Lanes *a, Lanes *b, const LaneMask *m, Box *box,
                        Lanes *out)
{
    int n = a->uniform && b->uniform ? 1 : m->n;
    uint64_t w = mask_of(in->bits);
    lanes_pin(a, box);
    lanes_pin(b, box);
    EACH(high_half(in, x, y));
    memset(out->d, 0, sizeof out->d);
    return 0;
}

static int absolute(const SliceInst *in, Lanes *a, const LaneMask *m, Box *box, Lanes *out)
{
    uint64_t w = mask_of(in->bits);
    lanes_pin(a, box);
    for (int i = 0, n = lanes_of(a, m); i < n; i++)
        out->v[i] = (view(a->v[i], in->bits, 1) < 0 ? 0 - a->v[i] : a->v[i]) & w;
    memset(out->d, 0, sizeof out->d);
    return 0;
}

/* A field of constant place and length. */
static int extract(const SliceInst *in, Lanes *a, const Lanes *at, const Lanes *length,
                   const LaneMask *m, Box *box, Lanes *out)
{
    uint64_t from = at->v[0] & 255, n = length->v[0] & 255;
    if (!is_constant(at, m) || !is_constant(length, m) || in->is_signed ||
        from + n > (uint64_t)in->bits || n > 40 || !n)
        return -1;
    copy(out, a, m);
    if (from) {
        keep_view(out, in->bits, 0, m, box);
        divide(out, 1ll << from, 0, m, box, in->bits, 0);
    }
    if (from + n < (uint64_t)in->bits) divide(out, 1ll << n, 1, m, box, in->bits, 1);
    return 0;
}

/* The low bits of s[0] in place of those of s[1], at a constant place and of a constant length. */
static int insert(const SliceInst *in, Lanes *s, const LaneMask *m, Box *box, Lanes *out)
{
    Lanes *a = &s[0], *b = &s[1];
    int at = (int)(s[2].v[0] & 255), length = (int)(s[3].v[0] & 255), bits = in->bits,
        n = a->uniform && b->uniform ? 1 : m->n;
    if (!is_constant(&s[2], m) || !is_constant(&s[3], m) || at + length > bits || !length)
        return -1;
    uint64_t w = mask_of(bits), field = mask_of(length) << at;
    int64_t d[BOX_DIMS];
    keep_view(a, length, 0, m, box);
    if (largest_of(b, m) & ~mask_of(at) || !at)
        lanes_pin(b, box);
    else
        keep_view(b, at, 0, m, box);
    for (int k = 0; k < BOX_DIMS; k++) d[k] = (int64_t)((uint64_t)a->d[k] << at) + b->d[k];
    EACH((y & ~field) | (x << at & field));
    set_change(out, d, bits);
    return 0;
}

static int pack(const SliceInst *in, Lanes *a, Lanes *b, const LaneMask *m, Box *box, Lanes *out)
{
    int n = a->uniform && b->uniform ? 1 : m->n, by = in->from_bits;
    uint64_t w = mask_of(in->bits);
    int64_t d[BOX_DIMS];
    keep_view(a, by, 0, m, box);
    for (int k = 0; k < BOX_DIMS; k++) d[k] = a->d[k] + (int64_t)((uint64_t)b->d[k] << by);
    EACH((x & mask_of(by)) | y << by);
    set_change(out, d, in->bits);
    return 0;
}

static int multiply(const SliceInst *in, Lanes *s, const LaneMask *m, Box *box, Lanes *out)
{
    out->uniform = s[0].uniform && s[1].uniform;
    product(in, &s[0], &s[1], m, box, out);
    if (in->op != OP_MAD && in->op != OP_MAD_WIDE) return 0;
    SliceInst add = *in;
    add.op = OP_ADD;
    Lanes p = *out;
    out->uniform = p.uniform && s[2].uniform;
    if (!out->uniform) expand(&p, m->n);
    return linear(&add, &p, &s[2], m, out);
}

int lanes_compute(const SliceInst *in, const Lanes *from, const LaneMask *m, Box *box, Lanes *out)
{
    Lanes s[SLICE_SOURCES];
    int uniform = 1;
    for (int i = 0; i < in->n_sources; i++) {
        s[i] = from[i];
        if (!s[i].known && in->op != OP_SELECT) return -1;
        uniform &= s[i].uniform;
    }
    out->known = 1;
    out->uniform = uniform;
    switch (in->op) {
    case OP_MOVE: copy(out, &s[0], m); return 0;
    case OP_CONVERT:
        copy(out, &s[0], m);
        widen(out, in->from_bits, in->bits, in->is_signed, m, box);
        return 0;
    case OP_ADD:
    case OP_SUB: return linear(in, &s[0], &s[1], m, out);
    case OP_NOT:
    case OP_NEG: return linear(in, &s[0], NULL, m, out);
    case OP_ABS: return absolute(in, &s[0], m, box, out);
    case OP_MUL:
    case OP_MUL_WIDE:
    case OP_MAD:
    case OP_MAD_WIDE: return multiply(in, s, m, box, out);
    case OP_MUL_HIGH: return high_product(in, &s[0], &s[1], m, box, out);
    case OP_SHL: return shift_left(in, &s[0], &s[1], m, box, out);
    case OP_SHR: return shift_right(in, &s[0], &s[1], m, box, out);
    case OP_AND:
    case OP_OR:
    case OP_XOR: return logic(in, &s[0], &s[1], m, box, out);
    case OP_MIN:
    case OP_MAX: return least_or_largest(in, &s[0], &s[1], m, box, out);
    case OP_DIV:
    case OP_REM: return quotient(in, &s[0], &s[1], m, box, out);
    case OP_COMPARE: return compare(in, &s[0], &s[1], in->combine ? &s[2] : NULL, m, box, out);
    case OP_SELECT:
        if (!s[2].known) return -1;
        return select_by(&s[2], &s[0], &s[1], m, box, out);
    case OP_PACK: return pack(in, &s[0], &s[1], m, box, out);
    case OP_EXTRACT: return extract(in, &s[0], &s[1], &s[2], m, box, out);
    case OP_INSERT: return insert(in, s, m, box, out);
    default: return -1;
    }
}
