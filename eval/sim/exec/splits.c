/* A warp has places for 66 joins. A place is free again when the last lanes have left its join.
 * When no place is free, a branch opens no join, and its lanes meet at the join outside. */
#include "eval/sim/exec/splits.h"

#include "eval/sim/exec/handlers.h"

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
