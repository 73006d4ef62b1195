/* Operations between the lanes of a warp: shuffles, votes, matches, reductions, elections. */
#pragma GCC optimize("O3")
#include <string.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/warp_sync.h"
#include "eval/sim/memory/doubts.h"

/* SLOTS: of issue, for each group of lanes where masks differ within a warp, and for each further value of a
 * match (an H200, 2026-12-01: 32 operations of warps of 1, 2, 4, 8 and 16 groups). */
enum { MATCH_COST = 500, SHUFFLE_SLOTS = 1, VOTE_SLOTS = 12, MATCH_SLOTS = 16, VALUE_SLOTS = 8 };
#define NOBODYS_VALUE 0x7e967699u /* 1e38 as a float; it is followed */

/* Groups of a warp that run an operation one after the other. */
static void take_turns(Warp *w, uint32_t slots)
{
    w->x->counts.expansion_slots += slots;
    w->chain += slots;
}

/* For each lane the one whose value it takes, and all ones where that is one of its segment. */
typedef struct {
    uint32_t from[LANES], ok[LANES];
} Partners;

#define FIND_PARTNERS(lane, is_ok)                                                \
    for (int i = 0; i < LANES; i++) {                                             \
        int clamp = (int)(c[i] & 31), segment = (int)(c[i] >> 8 & 31);            \
        int by = (int)(b[i] & 31), max_lane = (i & segment) | (clamp & ~segment); \
        int j = (lane), ok = -((is_ok) & !(j & ~31));                             \
        (void)by, (void)max_lane;                                                 \
        out->from[i] = (uint32_t)((j & ok) | (i & ~ok));                          \
        out->ok[i] = (uint32_t) - (is_ok);                                        \
    }

static void find_partners(const uint32_t *b, const uint32_t *c, int kind, Partners *out)
{
    switch (kind) {
    case SHFL_UP: FIND_PARTNERS(i - by, j >= max_lane); break;
    case SHFL_DOWN: FIND_PARTNERS(i + by, j <= max_lane); break;
    case SHFL_BFLY: FIND_PARTNERS(i ^ by, j <= max_lane); break;
    default: FIND_PARTNERS((i & segment) | (by & ~segment), j <= max_lane);
    }
}

/* Have all lanes this number? */
static int are_all(const uint32_t *row, uint32_t v)
{
    uint32_t differ = 0;
    for (int i = 0; i < LANES; i++) differ |= row[i] ^ v;
    return !differ;
}

/* The usual shuffles: all lanes of a full warp, one segment, one distance. Returns 0 where it is another. */
static int shuffle_full(Warp *w, const Inst *in, uint32_t lanes)
{
    const uint32_t *a = row32(w, in->a), *b = row32(w, in->b);
    uint32_t out[LANES], valid = FULL_MASK, by = b[0] & 31;
    if (lanes != FULL_MASK || !are_all(row32(w, in->f), FULL_MASK) || !are_all(b, b[0]) ||
        in->k0 == SHFL_UP || !are_all(row32(w, in->c), 31))
        return 0;
    if (in->k0 == SHFL_BFLY) {
        for (uint32_t i = 0; i < LANES; i++) out[i] = a[i ^ by];
    } else if (in->k0 == SHFL_DOWN) {
        for (uint32_t i = 0; i < LANES; i++) out[i] = a[i + by < LANES ? i + by : i];
        valid >>= by;
    } else {
        for (uint32_t i = 0; i < LANES; i++) out[i] = a[by];
    }
    if (in->d != ROW_NONE) memcpy(row32(w, in->d), out, sizeof out);
    put_pred(w, in->e, FULL_MASK, valid);
    return 1;
}

const Inst *h_shfl(Warp *w, const Inst *in)
{
    WarpSync s;
    if (!warp_sync(w, in, &s)) return s.next;
    if (shuffle_full(w, in, s.lanes)) return in + 1;
    Partners p;
    uint32_t m = s.lanes;
    const uint32_t *a = row32(w, in->a), *members = row32(w, in->f);
    uint32_t out[LANES], valid = 0, doubtful = 0;
    find_partners(row32(w, in->b), row32(w, in->c), in->k0, &p);
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t j = p.from[i], taken = (m & members[i]) >> j & 1, alone = j == i;
        out[i] = taken | alone ? a[j] : NOBODYS_VALUE;
        doubtful |= ((taken | alone) ^ 1) << i;
        valid |= (p.ok[i] & 1) << i;
    }
    doubtful &= m;
    if (doubtful && in->d != ROW_NONE) {
        int lane = __builtin_ctz(doubtful);
        exec_fault(w, in, lane, OUTCOME_UNINITIALISED,
                   "takes the value of lane %u, which does not take part in the shuffle",
                   p.from[lane]);
        if (doubt_shuffle(w, in, doubtful)) return NULL;
    }
    if (in->d != ROW_NONE) blend32(row32(w, in->d), out, m);
    put_pred(w, in->e, m, valid);
    uint32_t groups = 0;
    while (s.lanes) groups += warp_group(w, in->f, &s.lanes) != 0;
    if (groups > 1) take_turns(w, (groups - 1) * SHUFFLE_SLOTS);
    return in + 1;
}

static void vote(Warp *w, const Inst *in, uint32_t part)
{
    uint32_t votes = (w->p[in->a] ^ in->e) & part;
    int agree = votes == part || votes == 0;
    switch (in->k0) {
    case VOTE_ALL: put_pred(w, in->d, part, votes == part ? FULL_MASK : 0); break;
    case VOTE_ANY: put_pred(w, in->d, part, votes ? FULL_MASK : 0); break;
    case VOTE_UNI: put_pred(w, in->d, part, agree ? FULL_MASK : 0); break;
    default: fill32(row32(w, in->d), votes, part);
    }
}

const Inst *h_vote(Warp *w, const Inst *in)
{
    WarpSync s;
    if (!warp_sync(w, in, &s)) return s.next;
    uint32_t groups = 0;
    for (; s.lanes; groups++) vote(w, in, warp_group(w, in->f, &s.lanes));
    if (groups > 1) take_turns(w, groups * VOTE_SLOTS);
    return in + 1;
}

/* Returns how many values the lanes have. */
static uint32_t match(Warp *w, const Inst *in, uint32_t part)
{
    uint64_t v[LANES];
    uint32_t out[LANES] = {0}, all = 1, values = 0;
    exec_charge(w->x, MATCH_COST);
    for (int i = 0; i < LANES; i++) v[i] = in->k1 ? row64(w, in->a)[i] : row32(w, in->a)[i];
    for (uint32_t rest = part, same; rest;
         rest &= ~same, values++) { /* those of the first lane's value */
        const uint64_t first = v[__builtin_ctz(rest)];
        same = 0;
        for (int i = 0; i < LANES; i++) same |= (uint32_t)(v[i] == first) << i;
        same &= part;
        all &= same == part;
        fill32(out, same, same);
    }
    if (in->k0)
        for (int i = 0; i < LANES; i++) out[i] = all ? part : 0;
    if (in->d != ROW_NONE) blend32(row32(w, in->d), out, part);
    put_pred(w, in->e, part, all ? FULL_MASK : 0);
    return values;
}

const Inst *h_match(Warp *w, const Inst *in)
{
    WarpSync s;
    if (!warp_sync(w, in, &s)) return s.next;
    uint32_t groups = 0, further = 0;
    for (; s.lanes; groups++) further += match(w, in, warp_group(w, in->f, &s.lanes)) - 1;
    if (groups > 1) take_turns(w, groups * MATCH_SLOTS);
    if (further && !in->k0) take_turns(w, further * VALUE_SLOTS);
    return in + 1;
}

static uint32_t reduce(int op, uint32_t a, uint32_t b)
{
    switch (op) {
    case REDUX_ADD: return a + b;
    case REDUX_MIN_S32: return (int32_t)a < (int32_t)b ? a : b;
    case REDUX_MAX_S32: return (int32_t)a > (int32_t)b ? a : b;
    case REDUX_MIN_U32: return a < b ? a : b;
    case REDUX_MAX_U32: return a > b ? a : b;
    case REDUX_AND: return a & b;
    case REDUX_OR: return a | b;
    default: return a ^ b;
    }
}

const Inst *h_redux(Warp *w, const Inst *in)
{
    WarpSync s;
    if (!warp_sync(w, in, &s)) return s.next;
    uint32_t groups = 0;
    for (; s.lanes; groups++) {
        uint32_t part = warp_group(w, in->f, &s.lanes), rest = part & (part - 1);
        const uint32_t *a = row32(w, in->a);
        uint32_t acc = a[__builtin_ctz(part)];
        for (; rest; rest &= rest - 1) acc = reduce(in->k0, acc, a[__builtin_ctz(rest)]);
        fill32(row32(w, in->d), acc, part);
    }
    if (groups > 1) take_turns(w, groups * MATCH_SLOTS);
    return in + 1;
}

const Inst *h_activemask(Warp *w, const Inst *in)
{
    fill32(row32(w, in->d), w->active, exec_mask(w, in));
    return in + 1;
}

/* The leader is the lowest member. */
const Inst *h_elect(Warp *w, const Inst *in)
{
    WarpSync s;
    if (!warp_sync(w, in, &s)) return s.next;
    while (s.lanes) {
        uint32_t part = warp_group(w, in->f, &s.lanes), leader = (uint32_t)__builtin_ctz(part);
        if (in->d != ROW_NONE) fill32(row32(w, in->d), leader, part);
        put_pred(w, in->e, part, 1u << leader);
    }
    return in + 1;
}
