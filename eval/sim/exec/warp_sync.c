/* A split that waits is parked at its operation with SPLIT_WARP_SYNC. bar.warp.sync may be reached
 * at different instructions; all other operations run when their members wait at the same one. */
#include "eval/sim/exec/warp_sync.h"

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/splits.h"

/* Returns 1 when all live members are here. Otherwise the split waits. */
static int all_here(Warp *w, const Inst *in, WarpSync *s)
{
    s->next = NULL;
    if (w->converged || !(s->members & w->live & ~s->lanes)) return 1;
    split_park(w, in, SPLIT_WARP_SYNC);
    w->splits[w->current].members = s->members;
    return 0;
}

int warp_sync(Warp *w, const Inst *in, WarpSync *s)
{
    s->lanes = exec_mask(w, in);
    s->next = in + 1;
    if (!s->lanes) return 0;
    s->members = row32(w, in->f)[__builtin_ctz(s->lanes)];
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

static int same_place(const Split *a, const Split *b)
{
    return a->state == SPLIT_WARP_SYNC && a->pc == b->pc && a->frame->rows32 == b->frame->rows32 &&
           a->frame->preds == b->frame->preds;
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
        if (same_place(&sp, &leader)) {
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
    uint32_t at_barriers = 0;
    for (int s = 0; s < w->n_splits; s++)
        if (w->splits[s].state == SPLIT_WARP_SYNC && w->splits[s].pc->fn == h_bar_warp)
            at_barriers |= w->splits[s].mask;
    for (int s = 0; s < w->n_splits; s++) {
        Split *sp = &w->splits[s];
        if (sp->state != SPLIT_WARP_SYNC) continue;
        if (sp->pc->fn == h_bar_warp && !(sp->members & w->live & ~at_barriers)) {
            for (int i = 0; i < w->n_splits; i++)
                if (w->splits[i].state == SPLIT_WARP_SYNC && w->splits[i].pc->fn == h_bar_warp &&
                    w->splits[i].mask & sp->members) {
                    w->splits[i].state = SPLIT_READY;
                    w->splits[i].pc++;
                }
            return 1;
        }
        uint32_t lanes = 0;
        for (int i = 0; i < w->n_splits; i++)
            if (same_place(&w->splits[i], sp)) lanes |= w->splits[i].mask;
        if (!(sp->members & w->live & ~lanes)) return run_converged(w, s, lanes);
    }
    return 0;
}
