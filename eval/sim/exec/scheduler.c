/* The split that was added last runs first. A split that uses up its slice goes behind the others,
 * so that a lane that spins on a flag lets the lane run that sets it.
 *
 * Where requests to global memory are counted, a slice is divided into turns, between which the
 * other warps of the block run. So warps that read the same data find it in L1 as they do on a GPU,
 * where they run side by side. */
#include "eval/sim/exec/scheduler.h"

#include "eval/sim/exec/splits.h"
#include "eval/sim/exec/warp_sync.h"

void warp_start(Warp *w)
{
    w->live = w->lanes;
    w->n_splits = 0;
    w->joins_used[0] = w->joins_used[1] = 0;
    w->insts = w->global_waits = w->local_waits = w->chain = w->stored = 0;
    w->dram_waits = w->l2_waits = 0;
    w->ahead = (WarpPath){0};
    w->known_at = 0;
    w->open_waits = w->dram_requests = w->l2_requests = 0;
    w->carry = 0;
    w->awaits = NULL;
    w->turns = w->spins = 0;
    w->entry_frame.lanes = (uint32_t)__builtin_popcount(w->lanes);
    w->entry_frame.preds[0] = FULL_MASK;
    split_add(w, w->lanes, w->entry_frame.fn->insts, &w->entry_frame, NULL);
}

enum { TURN = 64 /* instructions */ };

static int next_ready(const Warp *w)
{
    for (int i = w->n_splits - 1; i >= 0; i--)
        if (w->splits[i].state == SPLIT_READY) return i;
    return -1;
}

/* Puts the current split behind all others, with the lanes that have waited for it at joins for about
 * a slice. Lanes that it left a moment ago meet it soon, unless it spins. */
static void requeue(Warp *w)
{
    join_release_waiting(w, w->splits[w->current].looks >= LOOKS_AT_JOIN ? 0 : SLICE / 2);
    Split s = w->splits[w->current];
    memmove(&w->splits[1], &w->splits[0], sizeof(Split) * (size_t)w->current);
    w->splits[0] = s;
}

int warp_run(Warp *w)
{
    int did = 0, slices = 0;
    w->idle = 1;
    while (!w->x->faulted && w->n_splits) {
        int s = next_ready(w);
        if (s < 0) {
            if (!join_release_exits(w) && !warp_sync_resolve(w)) break;
            did = 1;
            continue;
        }
        did = 1;
        split_select(w, s);
        if (w->x->counted) w->slice = TURN;
        const Inst *in = w->splits[s].pc;
        while (in) in = in->fn(w, in);
        if (!w->yielded || !w->spins) w->idle = 0;
        if (w->yielded) {
            w->yielded = 0;
            if (w->x->counted && ++w->turns < SLICE / TURN && !w->spins) break;
            w->turns = w->spins = 0;
            requeue(w);
            warp_sync_resolve(w); /* the split may spin until lanes at a warp operation go on */
            if (++slices >= w->n_splits) break;
        }
    }
    return did;
}
