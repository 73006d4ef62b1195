/* A split that waits is parked at its operation with SPLIT_WARP_SYNC. bar.warp.sync may be reached
 * at different instructions; all other operations run when their members wait at the same one. */
#include "eval/sim/exec/warp_sync.h"

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/splits.h"

/* The lanes wait at the operation. The other active ones go on as the running split. */
static void park(Warp *w, const Inst *in, uint32_t lanes, uint32_t members)
{
    int at = w->current;
    if (lanes == w->active) {
        split_park(w, in, SPLIT_WARP_SYNC);
    } else {
        w->active &= ~lanes;
        at = w->n_splits;
        split_add(w, lanes, in, w->frame, w->join);
        w->splits[at].state = SPLIT_WARP_SYNC;
    }
    w->splits[at].members = members;
}

/* Returns 1 when all live members are here. Otherwise the lanes wait. */
static int all_here(Warp *w, const Inst *in, WarpSync *s)
{
    if (w->converged || !(s->members & w->live & ~s->lanes)) return 1;
    if (s->lanes == w->active) s->next = NULL;
    park(w, in, s->lanes, s->members);
    return 0;
}

/* The active lanes name different members. Leaves the whole groups in s->lanes; each other one waits as
 * a split of its own. Returns 1 when a group is left. */
static int whole_groups(Warp *w, const Inst *in, WarpSync *s)
{
    for (uint32_t rest = s->lanes; rest;) {
        uint32_t members = row32(w, in->f)[__builtin_ctz(rest)],
                 group = warp_group(w, in->f, &rest);
        if (!(members & w->live & ~group)) continue;
        s->lanes &= ~group;
        if (group == w->active) s->next = NULL;
        park(w, in, group, members);
    }
    return s->lanes != 0;
}

/* The lanes whose mask does not name them. */
static uint32_t unnamed(const Warp *w, const Inst *in, uint32_t lanes)
{
    const uint32_t *mask = row32(w, in->f);
    uint32_t named = 0;
    for (int i = 0; i < LANES; i++) named |= mask[i] & 1u << i;
    return lanes & ~named;
}

int warp_sync(Warp *w, const Inst *in, WarpSync *s)
{
    s->lanes = exec_mask(w, in);
    s->next = in + 1;
    if (!s->lanes) return 0;
    s->members = row32(w, in->f)[__builtin_ctz(s->lanes)];
    uint32_t without = unnamed(w, in, s->lanes);
    if (without) {
        int lane = __builtin_ctz(without);
        exec_fault(
            w, in, lane, OUTCOME_RACE,
            "passes the mask 0x%08x to an operation of its warp and is lane %d, which that mask "
            "does not name: each lane names itself and all lanes that it works with",
            row32(w, in->f)[lane], lane);
        s->next = NULL;
        return 0;
    }
    if (warp_with_members(w, in->f, s->lanes, s->members) != s->lanes)
        return whole_groups(w, in, s);
    return all_here(w, in, s);
}

int warp_sync_full(Warp *w, const Inst *in, const char *what, WarpSync *s)
{
    s->lanes = exec_mask(w, in);
    s->members = FULL_MASK;
    s->next = in + 1;
    if (!s->lanes || !all_here(w, in, s)) return 0;
    if (w->active == FULL_MASK) return 1;
    exec_fault(w, in, __builtin_ctz(s->lanes), OUTCOME_LAUNCH_ERROR,
               "%s in a warp of fewer than 32 threads", what);
    return 0;
}

const Inst *h_bar_warp(Warp *w, const Inst *in)
{
    WarpSync s;
    return warp_sync(w, in, &s) ? in + 1 : s.next;
}

/* Do two splits wait for the same lanes at one operation, or at any two bar.warp.sync? */
static int same_place(const Warp *w, const Split *a, const Split *b)
{
    return a->state == SPLIT_WARP_SYNC && b->state == SPLIT_WARP_SYNC &&
           !((a->members ^ b->members) & w->live) &&
           ((a->pc->fn == h_bar_warp && b->pc->fn == h_bar_warp) ||
            (a->pc == b->pc && a->frame->rows32 == b->frame->rows32 &&
             a->frame->preds == b->frame->preds));
}

/* Runs the operation of split s for all splits at its place, which then go on separately. Returns 0
 * when the operation stopped them. */
static int run_converged(Warp *w, int s, uint32_t lanes)
{
    const Inst *pc = w->splits[s].pc;
    Split leader = w->splits[s];
    split_select(w, s);
    w->active = lanes;
    w->converged = 1;
    const Inst *next = pc->fn(w, pc);
    w->converged = 0;
    if (!next) return 0;
    int kept = 0;
    for (int i = 0; i < w->n_splits; i++) {
        Split sp = w->splits[i];
        if (same_place(w, &sp, &leader)) {
            sp.pc = next;
            sp.state = SPLIT_READY;
            int k = 0; /* splits with the same join and frame are one from here on */
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

int warp_sync_resolve(Warp *w)
{
    for (int s = 0; s < w->n_splits; s++) {
        Split sp = w->splits[s];
        uint32_t lanes = 0;
        if (sp.state != SPLIT_WARP_SYNC) continue;
        for (int i = 0; i < w->n_splits; i++)
            if (same_place(w, &w->splits[i], &sp)) lanes |= w->splits[i].mask;
        if (sp.members & w->live & ~lanes) continue;
        if (sp.pc->fn != h_bar_warp) return run_converged(w, s, lanes);
        for (int i = 0; i < w->n_splits; i++)
            if (w->splits[i].mask & lanes) {
                w->splits[i].state = SPLIT_READY;
                w->splits[i].pc++;
            }
        return 1;
    }
    return 0;
}

void warp_sync_report(Warp *w, int split)
{
    Split sp = w->splits[split];
    int lane = __builtin_ctz(sp.mask);
    for (int i = 0; i < w->n_splits; i++) {
        const Split *other = &w->splits[i];
        uint32_t named = other->mask & sp.members;
        if (i == split || other->pc != sp.pc || !named || other->state != SPLIT_WARP_SYNC) continue;
        exec_fault(
            w, sp.pc, lane, OUTCOME_RACE,
            "passes the mask 0x%08x to an operation of its warp, and lane %d, which that mask "
            "names, passes 0x%08x: all lanes of a group pass the same mask",
            sp.members, __builtin_ctz(named), other->members);
        return;
    }
    exec_fault(w, sp.pc, lane, OUTCOME_RACE,
               "waits for the lanes 0x%08x of its warp, of which 0x%08x never reach this operation",
               sp.members, sp.members & w->live & ~sp.mask);
}
