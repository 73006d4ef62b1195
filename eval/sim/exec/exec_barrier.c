/* Barriers of the block: bar.sync, bar.arrive, bar.red. Threads that have exited count as arrived,
 * as on devices since sm_70. */
#include "eval/sim/exec/barrier.h"

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/splits.h"
#include "eval/sim/memory/shadow.h"

void barrier_passed(Exec *x)
{
    x->counts.barriers++;
    exec_raise_pending(x);
    x->cta.phase++;
    if (++x->cta.epoch >= SHARED_EPOCH_MAX) shared_renew_epochs(x);
}

static void complete(Exec *x, int index)
{
    Cta *c = &x->cta;
    Barrier *b = &c->barriers[index];
    b->result = b->count;
    b->parties = b->arrived;
    b->count = b->arrived = b->expected = 0;
    barrier_passed(x);
    for (int i = 0; i < c->n_warps; i++) {
        Warp *w = &x->warps[i];
        for (int s = 0; s < w->n_splits; s++)
            if (w->splits[s].state == SPLIT_BARRIER && w->splits[s].barrier == index)
                w->splits[s].state = SPLIT_READY;
    }
}

void barrier_check_all(Exec *x)
{
    for (int i = 0; i < MAX_BARRIERS; i++) {
        const Barrier *b = &x->cta.barriers[i];
        if (b->arrived && !b->expected && b->arrived >= x->cta.live_threads) complete(x, i);
    }
}

/* Returns a split of the warp that waits for the barrier at another instruction, or -1. All lanes
 * of a warp must meet at one barrier instruction. */
static int other_place(const Warp *w, const Inst *in, int index)
{
    for (int s = 0; s < w->n_splits; s++)
        if (s != w->current && w->splits[s].state == SPLIT_BARRIER &&
            w->splits[s].barrier == index && w->splits[s].pc != in + 1)
            return s;
    return -1;
}

/* Counts the lanes in. Returns 0, or -1 with a fault. */
static int arrive_at(Warp *w, const Inst *in, uint32_t m, int index)
{
    Exec *x = w->x;
    Barrier *b = &x->cta.barriers[index];
    int lane = __builtin_ctz(m);
    uint32_t expected = in->b == ROW_NONE ? 0 : row32(w, in->b)[lane];
    if (m != w->active)
        return exec_fail(w, in, lane, OUTCOME_RACE,
                         "waits at a barrier that other threads of its warp skip");
    if (b->arrived && b->expected != expected)
        return exec_fail(w, in, lane, OUTCOME_RACE,
                         "waits at barrier %d for %u threads, others wait there for %u", index,
                         expected, b->expected);
    int other = in->k1 ? other_place(w, in, index) : -1;
    if (other >= 0) {
        const PtxInst *there = exec_source(w, w->splits[other].pc - 1);
        return exec_fail(w, in, lane, OUTCOME_RACE,
                         "waits at a barrier while other threads of its warp wait at the one of "
                         "line %d: a barrier must be reached by all",
                         there ? there->line : 0);
    }
    if (in->k0 >= BAR_POPC) {
        uint32_t votes = (w->p[in->c] ^ in->e) & m, n = (uint32_t)__builtin_popcount(votes);
        b->count += n;
    }
    b->expected = expected;
    b->arrived += (uint32_t)__builtin_popcount(m);
    x->counts.warp_barriers++;
    return 0;
}

const Inst *h_bar(Warp *w, const Inst *in)
{
    Exec *x = w->x;
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    uint32_t index = row32(w, in->a)[__builtin_ctz(m)];
    if (index >= NAMED_BARRIERS && !in->k2)
        return exec_fault(w, in, __builtin_ctz(m), OUTCOME_LAUNCH_ERROR,
                          "uses barrier %u; there are 16", index);
    if (arrive_at(w, in, m, (int)index)) return NULL;
    Barrier *b = &x->cta.barriers[index];
    uint32_t needed = b->expected ? b->expected : x->cta.live_threads;
    if (in->k0 != BAR_ARRIVE) {
        split_park(w, in + 1, SPLIT_BARRIER);
        w->splits[w->current].barrier = (int)index;
    }
    if (b->arrived >= needed) complete(x, (int)index);
    return in->k0 == BAR_ARRIVE ? in + 1 : NULL;
}

const Inst *h_bar_result(Warp *w, const Inst *in)
{
    uint32_t m = w->active;
    const Barrier *b = &w->x->cta.barriers[row32(w, in->a)[__builtin_ctz(m)] & 15];
    if (in->k0 == BAR_POPC) {
        fill32(row32(w, in->d), b->result, m);
        return in + 1;
    }
    int value = in->k0 == BAR_AND ? b->result == b->parties : b->result != 0;
    put_pred(w, in->d, m, value ? FULL_MASK : 0);
    return in + 1;
}

void barrier_deadlock(Exec *x)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < x->cta.n_warps; i++) {
            Warp *w = &x->warps[i];
            for (int s = 0; s < w->n_splits; s++) {
                const Split *sp = &w->splits[s];
                split_select(w, s);
                int lane = __builtin_ctz(sp->mask);
                if (pass == 0 && sp->state == SPLIT_WARP_SYNC) {
                    exec_fault(w, sp->pc, lane, OUTCOME_RACE,
                               "waits for the lanes 0x%08x of its warp, of which 0x%08x never "
                               "reach this operation",
                               sp->members, sp->members & w->live & ~sp->mask);
                    return;
                }
                if (pass == 1 && sp->state == SPLIT_BARRIER) {
                    const Barrier *b = &x->cta.barriers[sp->barrier];
                    uint32_t all = b->expected ? b->expected : x->cta.live_threads;
                    exec_fault(
                        w, sp->pc - 1, lane, OUTCOME_RACE,
                        "waits for ever at a barrier: %u of %u threads of the block reach it",
                        b->arrived, all);
                    return;
                }
            }
        }
}
