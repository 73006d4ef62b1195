/* A warp has places for 66 joins. A place is free again when the last lanes have left its join.
 * When no place is free, a branch opens no join, and its lanes meet at the join outside. */
#include "eval/sim/exec/splits.h"

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/warp_sync.h"

void split_select(Warp *w, int split)
{
    const Split *s = &w->splits[split];
    w->current = split;
    w->active = s->mask;
    w->join = s->join;
    w->join_pc = s->join ? s->join->pc : NULL;
    w->slice = SLICE;
    frame_enter(w, s->frame);
}

void split_park(Warp *w, const Inst *pc, SplitState state)
{
    Split *s = &w->splits[w->current];
    s->mask = w->active;
    s->pc = pc;
    s->state = state;
    if (state == SPLIT_BARRIER) s->n_last = 0;
    s->frame = w->frame;
    s->join = w->join;
}

void split_remove_current(Warp *w)
{
    w->splits[w->current] = w->splits[--w->n_splits];
}

void split_add(Warp *w, uint32_t mask, const Inst *pc, Frame *frame, Join *join)
{
    w->splits[w->n_splits++] =
        (Split){.mask = mask, .pc = pc, .frame = frame, .join = join, .state = SPLIT_READY};
}

static Join *new_join(Warp *w)
{
    for (int i = 0; i < 2 * LANES + 2; i++)
        if (!(w->joins_used[i >> 6] >> (i & 63) & 1)) {
            w->joins_used[i >> 6] |= 1ull << (i & 63);
            return &w->joins[i];
        }
    return NULL;
}

static void free_join(Warp *w, const Join *j)
{
    int i = (int)(j - w->joins);
    w->joins_used[i >> 6] &= ~(1ull << (i & 63));
}

int join_arrive(Warp *w, const Inst *in)
{
    while (w->join && in == w->join->pc && w->frame == w->join->frame) {
        Join *j = w->join;
        j->arrived |= w->active;
        if ((j->arrived & w->live) != (j->expected & w->live)) {
            split_remove_current(w);
            return 0;
        }
        w->active = j->arrived & w->live;
        w->join = j->parent;
        free_join(w, j);
    }
    w->join_pc = w->join ? w->join->pc : NULL;
    return 1;
}

void join_settle(Warp *w, Join *j)
{
    while (j) {
        Join *parent = j->parent;
        if ((j->arrived & w->live) != (j->expected & w->live)) return;
        if (j->arrived & w->live) {
            split_add(w, j->arrived & w->live, j->pc, j->frame, parent);
            free_join(w, j);
            return;
        }
        free_join(w, j);
        j = parent;
    }
}

void join_open(Warp *w, const Inst *pc)
{
    Frame *frame = w->frame;
    if (!pc && frame->parent) {
        pc = frame->ret;
        frame = frame->parent;
    }
    /* Nothing to do when this is the current join. */
    if (!pc || (w->join && w->join->pc == pc && w->join->frame == frame)) return;
    Join *j = new_join(w);
    if (!j) return;
    *j = (Join){
        .parent = w->join, .pc = pc, .frame = frame, .expected = w->active, .opened = w->insts};
    w->join = j;
    w->join_pc = pc;
}

void join_send(Warp *w, uint32_t mask, const Inst *pc)
{
    if (w->join && w->join->pc == pc && w->join->frame == w->frame)
        w->join->arrived |= mask;
    else
        split_add(w, mask, pc, w->frame, w->join);
}

void join_release_waiting(Warp *w, uint64_t age)
{
    uint32_t below = w->splits[w->current].mask;
    for (Join **at = &w->splits[w->current].join, *j = *at; j; j = *at) {
        uint32_t waiting = j->arrived & w->live;
        if (w->insts - j->opened < age) { /* not what it waits for: they parted a moment ago */
            below = j->expected & w->live;
            at = &j->parent;
            continue;
        }
        j->expected &= ~j->arrived;
        j->arrived = 0;
        if (waiting) split_add(w, waiting, j->pc, j->frame, j->parent);
        if ((j->expected & w->live) == below) { /* only the lanes below it are left */
            *at = j->parent;
            free_join(w, j);
        } else {
            below = j->expected & w->live;
            at = &j->parent;
        }
    }
}

int join_release_exits(Warp *w)
{
    for (int i = 0; i < w->n_splits; i++)
        for (Join *j = w->splits[i].join; j; j = j->parent) {
            uint32_t waiting = j->arrived & w->live;
            if (!waiting || j->pc[1].fn != h_exit) continue;
            j->expected &= ~j->arrived;
            j->arrived = 0;
            split_add(w, waiting, j->pc, j->frame, j->parent);
            return 1;
        }
    return 0;
}

/* ---- the scheduler of a warp ---- */

/* The split that was added last runs first. A split that uses up its slice goes behind the others,
 * so that a lane that spins on a flag lets the lane run that sets it.
 *
 * Where requests to global memory are counted, a slice is divided into turns, between which the
 * other warps of the block run. So warps that read the same data find it in L1 as they do on a GPU,
 * where they run side by side. */

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
