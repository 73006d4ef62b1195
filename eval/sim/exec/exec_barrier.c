/* Barriers of the block: bar.sync, bar.arrive, bar.red. Threads that have exited count as arrived,
 * as on devices since sm_70.
 *
 * The barrier of a cluster: each thread arrives, and waits later until all threads of the cluster that have
 * not exited have arrived. It takes about 200 cycles on an H100, as a load from another block does
 * (memory/cluster.c), which are added to the chain of each warp that waits. */
#include "eval/sim/exec/barrier.h"

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/splits.h"
#include "eval/sim/exec/warp_sync.h"
#include "eval/sim/memory/block_waits.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/landed.h"
#include "eval/sim/memory/order.h"
#include "eval/sim/memory/path.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"

void barrier_passed(Exec *x)
{
    x->counts.barriers++;
    exec_raise_pending(x);
    x->cta.passed = order_position(&x->cta);
    if (x->order) order_barrier(x);
    if (x->waits) waits_barrier(x);
    if (x->proxy) proxy_barrier(x);
    x->cta.phase++;
    if (++x->cta.epoch >= SHARED_EPOCH_MAX) shared_renew_epochs(x);
}

static void complete(Exec *x, int index)
{
    Cta *c = &x->cta;
    Barrier *b = &c->barriers[index];
    const WarpPath path = b->path;
    b->path = (WarpPath){0};
    b->result = b->count;
    b->parties = b->arrived;
    b->count = b->arrived = b->expected = 0;
    barrier_passed(x);
    landed_join(x);
    for (int i = 0; i < c->n_warps; i++) {
        Warp *w = &x->warps[i];
        for (int s = 0; s < w->n_splits; s++)
            if (w->splits[s].state == SPLIT_BARRIER && w->splits[s].barrier == index) {
                w->splits[s].state = SPLIT_READY;
                path_await(w, &path);
            }
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
    const WarpPath path = path_of(w);
    path_raise(&b->path, &path);
    x->counts.warp_barriers++;
    x->counts.barrier_votes += in->k0 >= BAR_POPC;
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

/* ---- the barrier of a cluster ---- */

enum { BARRIER_CYCLES = 200 };

/* Lets the block's waiting splits run, which have seen what all others did before. */
static void release_block(Exec *x, ClusterBlock *b)
{
    Cluster *k = x->cluster;
    barrier_passed(x);
    landed_join(x);
    global_release(x);
    for (int i = 0; i < x->cta.n_warps; i++) {
        Warp *w = &x->warps[i];
        for (int s = 0; s < w->n_splits; s++) {
            Split *sp = &w->splits[s];
            if (sp->state != SPLIT_BARRIER || sp->barrier != CLUSTER_BARRIER) continue;
            sp->state = SPLIT_READY;
            path_await(w, &k->passed);
            b->passed[i] &= ~sp->mask;
            b->has_met = 1;
            cluster_take(k, k->joined);
            exec_acquire(x);
        }
    }
}

static void complete_cluster(Exec *x)
{
    Cluster *k = x->cluster;
    int actor = k->actor;
    k->arrived = 0;
    k->passed = k->arriving;
    k->arriving = (WarpPath){0};
    for (int r = 0; r < k->n; r++) {
        ClusterBlock *b = &k->blocks[r];
        k->actor = r;
        k->met[r] = b->clock;
        if (b->is_relaxed)
            b->clock++;
        else
            cluster_give(k, k->joined);
        b->is_relaxed = 1;
        for (int i = 0; i < MAX_WARPS; i++) {
            b->passed[i] |= b->arrived[i];
            b->arrived[i] = 0;
        }
    }
    x->keeps_pending = 0;
    for (int r = 0; r < k->n; r++) {
        cluster_select(x, r);
        if (!k->blocks[r].has_exited) release_block(x, &k->blocks[r]);
    }
    x->keeps_pending = 1;
    cluster_select(x, actor);
}

const Inst *h_cluster_arrive(Warp *w, const Inst *in)
{
    Exec *x = w->x;
    Cluster *k = x->cluster;
    uint32_t m = exec_mask(w, in);
    if (!k || !m) return in + 1;
    ClusterBlock *b = &k->blocks[k->actor];
    uint32_t again = m & (b->arrived[w->index] | b->passed[w->index]);
    if (again)
        return exec_fault(w, in, __builtin_ctz(again), OUTCOME_RACE,
                          "arrives a second time at the barrier of the cluster and has not waited");
    if (!in->k0) b->is_relaxed = 0;
    if (!in->k0) cluster_await_stores(w);
    b->arrived[w->index] |= m;
    const WarpPath path = path_of(w);
    path_raise(&k->arriving, &path);
    k->arrived += (uint32_t)__builtin_popcount(m);
    if (k->arrived >= k->live) complete_cluster(x);
    return x->faulted ? NULL : in + 1;
}

const Inst *h_cluster_wait(Warp *w, const Inst *in)
{
    Exec *x = w->x;
    Cluster *k = x->cluster;
    if (!k) return h_bar(w, in);
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    ClusterBlock *b = &k->blocks[k->actor];
    uint32_t arrived = b->arrived[w->index], never = m & ~(arrived | b->passed[w->index]);
    if (never)
        return exec_fault(w, in, __builtin_ctz(never), OUTCOME_RACE,
                          "waits at the barrier of the cluster and has not arrived");
    if (m != w->active || (m & arrived && m & ~arrived))
        return exec_fault(w, in, __builtin_ctz(m), OUTCOME_RACE,
                          "waits at a barrier that other threads of its warp skip");
    x->counts.warp_barriers++;
    x->counts.remote_arrivals++;
    w->chain += BARRIER_CYCLES;
    if (m & arrived) {
        split_park(w, in + 1, SPLIT_BARRIER);
        w->splits[w->current].barrier = CLUSTER_BARRIER;
        return NULL;
    }
    b->passed[w->index] &= ~m;
    b->has_met = 1;
    path_await(w, &k->passed);
    cluster_take(k, k->joined);
    exec_acquire(x);
    return in + 1;
}

int cluster_exit(Warp *w, const Inst *in)
{
    Exec *x = w->x;
    Cluster *k = x->cluster;
    ClusterBlock *b = &k->blocks[k->actor];
    uint32_t lanes = (uint32_t)__builtin_popcount(w->active);
    if (x->cta.live_threads == lanes && cluster_check_exit(w, in)) return -1;
    k->live -= lanes;
    k->arrived -= (uint32_t)__builtin_popcount(b->arrived[w->index] & w->active);
    b->arrived[w->index] &= ~w->active;
    b->passed[w->index] &= ~w->active;
    if (k->arrived && k->arrived >= k->live) complete_cluster(x);
    return x->faulted ? -1 : 0;
}

/* ---- when nothing can run ---- */

/* What a split may wait for, in the order in which it is reported. */
enum { OTHER_LANES, OTHER_THREADS, OTHER_BLOCKS, WAITS };

/* Reports a split of the current block that waits so. Returns 1 when there is one. */
static int report_wait(Exec *x, int kind)
{
    for (int i = 0; i < x->cta.n_warps; i++) {
        Warp *w = &x->warps[i];
        for (int s = 0; s < w->n_splits; s++) {
            const Split *sp = &w->splits[s];
            int blocks = x->cluster && sp->barrier == CLUSTER_BARRIER,
                is = sp->state == SPLIT_WARP_SYNC ? OTHER_LANES
                     : blocks                     ? OTHER_BLOCKS
                                                  : OTHER_THREADS;
            split_select(w, s);
            int lane = __builtin_ctz(sp->mask);
            if (sp->state == SPLIT_READY || is != kind) continue;
            const Barrier *b = &x->cta.barriers[sp->barrier];
            if (kind == OTHER_LANES)
                warp_sync_report(w, s);
            else if (kind == OTHER_THREADS)
                exec_fault(w, sp->pc - 1, lane, OUTCOME_RACE,
                           "waits for ever at a barrier: %u of %u threads of the block reach it",
                           b->arrived, b->expected ? b->expected : x->cta.live_threads);
            else
                exec_fault(w, sp->pc - 1, lane, OUTCOME_RACE,
                           "waits for ever at a barrier: %u of %u threads of the cluster reach it",
                           x->cluster->arrived, x->cluster->live);
            return 1;
        }
    }
    return 0;
}

void barrier_deadlock(Exec *x)
{
    int n = x->cluster ? x->cluster->n : 1;
    for (int kind = 0; kind < WAITS; kind++)
        for (int r = 0; r < n; r++) {
            if (x->cluster) cluster_select(x, r);
            if (report_wait(x, kind)) return;
        }
}
