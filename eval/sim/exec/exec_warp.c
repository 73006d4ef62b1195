/* Operations between the lanes of a warp: shuffles, votes, matches, reductions, warp barriers. Each
 * names its lanes; those that are elsewhere are waited for, those that have exited are not. */
#include "eval/sim/memory/memory_ops.h"

int warp_all_here(Warp *w, const Inst *in, uint32_t m, uint32_t wants)
{
    if (w->forced || !(wants & w->live & ~m)) return 1;
    warp_park(w, in, SPLIT_WARP_SYNC);
    w->splits[w->current].wants = wants;
    return 0;
}

static int same_place(const Split *a, const Split *b)
{
    return a->state == SPLIT_WARP_SYNC && a->pc == b->pc && a->frame->rows32 == b->frame->rows32 &&
           a->frame->preds == b->frame->preds;
}

/* Splits s and those at its place run the operation together, then go on as they were. */
static int run_together(Warp *w, int s, uint32_t lanes)
{
    const Inst *pc = w->splits[s].pc;
    Split leader = w->splits[s];
    warp_pick(w, s);
    w->active = lanes;
    w->forced = 1;
    const Inst *next = pc->fn(w, pc);
    w->forced = 0;
    if (!next) return 0;
    int kept = 0;
    for (int i = 0; i < w->n_splits; i++) {
        Split sp = w->splits[i];
        if (same_place(&sp, &leader)) {
            sp.pc = next;
            sp.state = SPLIT_READY;
            int k = 0; /* one that joins at the same place is the same split from here on */
            while (k < kept && !(w->splits[k].state == SPLIT_READY && w->splits[k].pc == next &&
                                 w->splits[k].join == sp.join && w->splits[k].frame == sp.frame))
                k++;
            if (k < kept) {
                w->splits[k].mask |= sp.mask;
                continue;
            }
        }
        w->splits[kept++] = sp;
    }
    w->n_splits = kept;
    return 1;
}

int warp_resolve(Warp *w)
{
    uint32_t at_barriers = 0;
    for (int s = 0; s < w->n_splits; s++)
        if (w->splits[s].state == SPLIT_WARP_SYNC && w->splits[s].pc->fn == h_bar_warp)
            at_barriers |= w->splits[s].mask;
    for (int s = 0; s < w->n_splits; s++) {
        Split *sp = &w->splits[s];
        if (sp->state != SPLIT_WARP_SYNC) continue;
        if (sp->pc->fn == h_bar_warp && !(sp->wants & w->live & ~at_barriers)) {
            for (int i = 0; i < w->n_splits; i++)
                if (w->splits[i].state == SPLIT_WARP_SYNC && w->splits[i].pc->fn == h_bar_warp &&
                    w->splits[i].mask & sp->wants) {
                    w->splits[i].state = SPLIT_READY;
                    w->splits[i].pc++;
                }
            return 1;
        }
        uint32_t lanes = 0;
        for (int i = 0; i < w->n_splits; i++)
            if (same_place(&w->splits[i], sp)) lanes |= w->splits[i].mask;
        if (!(sp->wants & w->live & ~lanes)) return run_together(w, s, lanes);
    }
    return 0;
}

static uint32_t first_value(const Warp *w, uint32_t row, uint32_t m)
{
    return row32(w, row)[__builtin_ctz(m)];
}

/* d|e = shfl a, b, c; f = row of the member mask. k0: up, down, bfly, idx. e: predicate or 0 */
const Inst *h_shfl(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    if (!warp_all_here(w, in, m, first_value(w, in->f, m))) return NULL;
    m = exec_mask(w, in);
    const uint32_t *a = row32(w, in->a), *b = row32(w, in->b), *c = row32(w, in->c);
    /* Nobody can take it for a result: 1e38 and -1e38 as a float. */
    uint32_t out[LANES], valid = 0, undefined = w->x->reversed ? 0xfe967699u : 0x7e967699u;
    for (int i = 0; i < LANES; i++) {
        int clamp = (int)(c[i] & 31), segment = (int)(c[i] >> 8 & 31), bv = (int)(b[i] & 31);
        int max_lane = (i & segment) | (clamp & ~segment), min_lane = i & segment;
        int j = i, ok = 0;
        switch (in->k0) {
        case 0: j = i - bv, ok = j >= max_lane; break;
        case 1: j = i + bv, ok = j <= max_lane; break;
        case 2: j = i ^ bv, ok = j <= max_lane; break;
        default: j = min_lane | (bv & ~segment), ok = j <= max_lane; break;
        }
        if (!ok || j < 0 || j > 31) j = i;
        out[i] = m >> j & 1 ? a[j] : undefined; /* of a lane that takes no part */
        valid |= (uint32_t)ok << i;
    }
    if (in->d != ROW_NONE) blend32(row32(w, in->d), out, m);
    if (in->e) w->p[in->e] = (w->p[in->e] & ~m) | (valid & m);
    return in + 1;
}

static void set_pred(Warp *w, uint32_t p, uint32_t m, int value)
{
    w->p[p] = value ? w->p[p] | m : w->p[p] & ~m;
}

/* a = predicate (flipped by e), f = row of the member mask. k0: all, any, uni, ballot */
const Inst *h_vote(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    uint32_t wants = first_value(w, in->f, m);
    if (!warp_all_here(w, in, m, wants)) return NULL;
    m = exec_mask(w, in);
    uint32_t part = m & wants, votes = (w->p[in->a] ^ in->e) & part;
    if (in->k0 == 3) {
        uint32_t *d = row32(w, in->d);
        for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? votes : d[i];
    } else {
        set_pred(w, in->d, m,
                 in->k0 == 0   ? votes == part
                 : in->k0 == 1 ? votes != 0
                               : votes == part || votes == 0);
    }
    return in + 1;
}

/* d|e = match a, f. k0: 0 any, 1 all; k1: 1 64-bit */
const Inst *h_match(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    uint32_t wants = first_value(w, in->f, m);
    if (!warp_all_here(w, in, m, wants)) return NULL;
    m = exec_mask(w, in);
    uint64_t v[LANES];
    uint32_t part = m & wants, out[LANES] = {0}, all = 1;
    for (int i = 0; i < LANES; i++) v[i] = in->k1 ? row64(w, in->a)[i] : row32(w, in->a)[i];
    for (int i = 0; i < LANES; i++) {
        for (int j = 0; j < LANES; j++) out[i] |= (uint32_t)((part >> j & 1) && v[i] == v[j]) << j;
        all &= !(part >> i & 1) || out[i] == part;
    }
    if (in->k0)
        for (int i = 0; i < LANES; i++) out[i] = all ? part : 0;
    if (in->d != ROW_NONE) blend32(row32(w, in->d), out, m);
    if (in->e) set_pred(w, in->e, m, (int)all);
    return in + 1;
}

static uint32_t reduce(int op, uint32_t a, uint32_t b)
{
    switch (op) {
    case 0: return a + b;
    case 1: return (int32_t)a < (int32_t)b ? a : b;
    case 2: return (int32_t)a > (int32_t)b ? a : b;
    case 3: return a < b ? a : b;
    case 4: return a > b ? a : b;
    case 5: return a & b;
    case 6: return a | b;
    default: return a ^ b;
    }
}

const Inst *h_redux(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    uint32_t wants = first_value(w, in->f, m);
    if (!warp_all_here(w, in, m, wants)) return NULL;
    m = exec_mask(w, in);
    const uint32_t *a = row32(w, in->a);
    uint32_t part = m & wants, acc = 0;
    int first = 1;
    for (int i = 0; i < LANES; i++)
        if (part >> i & 1) {
            acc = first ? a[i] : reduce(in->k0, acc, a[i]);
            first = 0;
        }
    uint32_t *d = row32(w, in->d);
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? acc : d[i];
    return in + 1;
}

const Inst *h_bar_warp(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m || warp_all_here(w, in, m, first_value(w, in->f, m))) return in + 1;
    return NULL;
}

const Inst *h_activemask(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    uint32_t *d = row32(w, in->d);
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? w->active : d[i];
    return in + 1;
}

/* d|e = elect f: the lowest lane */
const Inst *h_elect(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    uint32_t wants = first_value(w, in->f, m);
    if (!warp_all_here(w, in, m, wants)) return NULL;
    m = exec_mask(w, in);
    uint32_t part = m & wants ? m & wants : m, leader = (uint32_t)__builtin_ctz(part);
    if (in->d != ROW_NONE) {
        uint32_t *d = row32(w, in->d);
        for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? leader : d[i];
    }
    if (in->e) w->p[in->e] = (w->p[in->e] & ~m) | (m & 1u << leader);
    return in + 1;
}
