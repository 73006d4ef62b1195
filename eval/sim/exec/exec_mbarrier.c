/* mbarrier: a counter of arrivals in shared memory. Its phase ends when as many have arrived as it
 * expects. The 64 bits are opaque to a program: expected arrivals, arrivals still pending, the
 * parity of the phase, and a mark that tells an mbarrier from other data. */
#include <stdio.h>
#include <stdlib.h>

#include "eval/sim/exec/barrier.h"
#include "eval/sim/exec/handlers.h"
#include "eval/sim/memory/async_copy.h"
#include "eval/sim/memory/bulk_copy.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/landed.h"
#include "eval/sim/memory/path.h"
#include "eval/sim/memory/shadow.h"

enum { COUNT_BITS = 20, LANE_COST = 32 };
#define COUNT_MASK ((1ull << COUNT_BITS) - 1)
#define PARITY (1ull << 40)
#define MARK (0x2b5a9ull << 41)
#define MARK_MASK (~0ull << 41)

static uint64_t state_of(uint64_t expected, uint64_t pending, uint64_t parity)
{
    return MARK | parity | pending << COUNT_BITS | expected;
}

/* An mbarrier in shared memory: its bytes and its offset. */
typedef struct {
    unsigned char *p;
    uint32_t at;
} Mbarrier;

/* Finds one lane's mbarrier. p is NULL after a fault. */
static Mbarrier barrier_at(Warp *w, const Inst *in, int lane)
{
    const Mbarrier none = {0};
    Access a;
    uint64_t v;
    if (access_resolve(w, in, 1u << lane, &a) != SPACE_SHARED) {
        exec_fault(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                   "uses a barrier that is not in shared memory");
        return none;
    }
    if (w->x->cluster && cluster_rank(w->x->cluster, a.base) >= 0) a.base &= CLUSTER_OFFSET;
    if (access_shared_bounds(w, &a, 1) || (in->k0 != MBARRIER_INIT && shared_check_written(w, &a)))
        return none;
    if (in->k0 == MBARRIER_INIT && shared_check_store(w, &a, NULL)) return none;
    Mbarrier b = {a.host + a.p->delta[lane], (uint32_t)access_address(&a, lane)};
    memcpy(&v, b.p, 8);
    if (in->k0 == MBARRIER_INIT || (v & MARK_MASK) == MARK) return b;
    exec_fault(w, in, lane, OUTCOME_LAUNCH_ERROR,
               "uses an mbarrier at offset %u of shared memory that was not initialised", b.at);
    return none;
}

/* The warp has arrived, or has issued bytes. Ends the phase when all have arrived and the bytes that it
 * expects are under way, which then land. Returns 0, or -1 with a fault. */
static int end_phase(Warp *w, const Inst *in, Mbarrier b)
{
    uint64_t v;
    memcpy(&v, b.p, 8);
    uint64_t expected = v & COUNT_MASK, pending = v >> COUNT_BITS & COUNT_MASK;
    path_arrive(w->x, b.at, w);
    landed_arrive(w, b.at);
    if (pending || bulk_missing(w->x, b.at)) return 0;
    path_end_phase(w->x, b.at);
    v = state_of(expected, expected, (v & PARITY) ^ PARITY);
    memcpy(b.p, &v, 8);
    /* Whoever ends the phase, the copies that land are the current block's own. */
    Cluster *k = w->x->cluster;
    int actor = k ? k->actor : 0;
    if (k) k->actor = k->current;
    int r = async_land_tied(w, in, b.at) || bulk_land(w, in, b.at);
    if (k) k->actor = actor;
    if (r) return -1;
    landed_end_phase(w->x, b.at);
    barrier_passed(w->x);
    return w->x->faulted ? -1 : 0;
}

/* Counts n arrivals. Returns 0, or -1 with a fault. */
static int arrive(Warp *w, const Inst *in, int lane, Mbarrier b, uint64_t n)
{
    uint64_t v;
    memcpy(&v, b.p, 8);
    uint64_t expected = v & COUNT_MASK, pending = v >> COUNT_BITS & COUNT_MASK;
    if (!n || n > pending)
        return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                         "arrives %llu times at an mbarrier that waits for %llu more",
                         (unsigned long long)n, (unsigned long long)pending);
    if (in->k0 == MBARRIER_DROP) expected -= n;
    v = state_of(expected, pending - n, v & PARITY);
    memcpy(b.p, &v, 8);
    return end_phase(w, in, b);
}

/* Runs the operation for one lane. Returns 0, or -1 with a fault. */
static int run_lane(Warp *w, const Inst *in, int lane)
{
    Mbarrier b = barrier_at(w, in, lane);
    uint64_t v, parity;
    if (!b.p) return -1;
    memcpy(&v, b.p, 8);
    uint32_t count = in->k0 == MBARRIER_WAIT || in->a == ROW_NONE ? 1 : row32(w, in->a)[lane];
    switch (in->k0) {
    case MBARRIER_INIT:
        if (!count || count > COUNT_MASK)
            return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                             "initialises an mbarrier for %u arrivals; 1 to %llu are allowed",
                             count, COUNT_MASK);
        v = state_of(count, count, 0);
        memcpy(b.p, &v, 8);
        bulk_forget(w->x, b.at);
        return 0;
    case MBARRIER_INVAL:
        memset(b.p, 0, 8);
        bulk_forget(w->x, b.at);
        return 0;
    case MBARRIER_EXPECT: return bulk_expect(w, in, lane, b.at, count);
    case MBARRIER_COMPLETE:
        return bulk_complete(w, in, lane, b.at, count) ? -1 : end_phase(w, in, b);
    case MBARRIER_ARRIVE_EXPECT:
        if (in->d != ROW_NONE) row64(w, in->d)[lane] = v;
        return bulk_expect(w, in, lane, b.at, count) ? -1 : arrive(w, in, lane, b, 1);
    case MBARRIER_COPIES: /* without .noinc it also raises the count by one, which cancels out */
        async_tie(w, lane, b.at);
        path_arrive(w->x, b.at, w);
        return in->k1 ? arrive(w, in, lane, b, 1) : 0;
    case MBARRIER_ARRIVE:
    case MBARRIER_DROP:
        if (in->d != ROW_NONE) row64(w, in->d)[lane] = v;
        return arrive(w, in, lane, b, count);
    default:
        parity = in->k0 == MBARRIER_WAIT ? row64(w, in->a)[lane] & PARITY : count & 1 ? PARITY : 0;
        if (w->x->cluster && (v & PARITY) != parity) cluster_await(w->x, b.at);
        if ((v & PARITY) != parity) {
            path_await_phase(w, b.at);
            landed_await(w, b.at);
        }
        w->awaits = (v & PARITY) != parity ? NULL : in;
        w->awaited = b.at;
        put_pred(w, in->e, 1u << lane, (v & PARITY) != parity ? FULL_MASK : 0);
        return 0;
    }
}

int mbarrier_is_stuck(Warp *w, const Inst *in)
{
    const Function *f = w->frame->fn;
    const Exec *x = w->x;
    uint64_t v;
    if (!w->awaits || w->awaited + sizeof v > x->cta.shared_size) return 0;
    memcpy(&v, x->cta.shared + w->awaited, sizeof v);
    uint64_t expected = v & COUNT_MASK, pending = v >> COUNT_BITS & COUNT_MASK;
    int64_t missing = bulk_missing(x, w->awaited);
    if ((v & MARK_MASK) != MARK || (!pending && !missing)) return 0;
    char bytes[96] = "";
    if (missing)
        snprintf(bytes, sizeof bytes, "%sthe copies bring %lld bytes %s than expect_tx names",
                 pending ? ", and " : "", llabs(missing), missing > 0 ? "fewer" : "more");
    char arrivals[64] = "";
    if (pending)
        snprintf(arrivals, sizeof arrivals, "%llu of %llu arrivals are missing",
                 (unsigned long long)pending, (unsigned long long)expected);
    if (w->awaits >= f->insts && w->awaits < f->insts + f->n_insts) in = w->awaits;
    exec_fault(w, in, __builtin_ctz(w->active), OUTCOME_TIMEOUT,
               "waits for ever at the mbarrier at offset %u of shared memory: %s%s", w->awaited,
               arrivals, bytes);
    return 1;
}

/* ---- mbarriers of other blocks of the cluster ---- */

/* Returns the block whose mbarrier the lane names, or -1 for the running one. */
static int other_block(const Warp *w, const MemOp *barrier, int lane)
{
    const Cluster *k = w->x->cluster;
    if (!k) return -1;
    int rank = cluster_rank(k, access_lane_address(w, barrier, lane) & UINT32_MAX);
    return rank == k->actor ? -1 : rank;
}

static int run_lane_at(Warp *w, const Inst *in, int lane, int rank)
{
    int arrives = in->k0 >= MBARRIER_ARRIVE && in->k0 <= MBARRIER_ARRIVE_EXPECT;
    if (!arrives || (in->k0 != MBARRIER_EXPECT && in->k0 != MBARRIER_COMPLETE && in->d != ROW_NONE))
        return exec_fail(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                         "uses an mbarrier of block %d of its cluster for more than an arrival",
                         rank);
    if (cluster_enter(w, in, lane, rank)) return -1;
    int r = run_lane(w, in, lane);
    cluster_signal(w->x, (uint32_t)access_lane_address(w, in->mem, lane) & CLUSTER_OFFSET);
    cluster_leave(w->x);
    return r;
}

const Inst *h_mbarrier(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    exec_charge(w->x, LANE_COST * __builtin_popcount(m));
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest), rank = other_block(w, in->mem, lane);
        if (rank < 0 ? run_lane(w, in, lane) : run_lane_at(w, in, lane, rank)) return NULL;
    }
    if (in->k0 < MBARRIER_WAIT) return in + 1;
    if (~w->p[in->e] & m)
        w->slice = -1; /* let other splits run */
    else
        w->x->counts.mbarrier_waits++;
    return in + 1;
}

/* ---- copies ---- */

/* The copy and its mbarrier must be in one block. */
static int check_target(Warp *w, const Inst *in, int lane, int rank)
{
    const Cluster *k = w->x->cluster;
    int to = cluster_rank(k, access_lane_address(w, &in->bulk->to, lane) & UINT32_MAX);
    if (to == (rank < 0 ? k->actor : rank)) return 0;
    if (to < 0)
        return exec_fail(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                         "copies to an address outside the shared memory of the cluster");
    return exec_fail(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                     "copies into the shared memory of block %d of the cluster and counts at an "
                     "mbarrier of another",
                     to);
}

/* Bytes that a lane's instruction has read. */
typedef struct {
    const unsigned char *p;
    uint32_t bytes;
} Cargo;

/* Writes bytes into the block of the mbarrier, which counts them. For another block they land at once:
 * what reads them there before the mbarrier's phase has ended is a race. */
static int deliver(Warp *w, const Inst *in, const Inst *side, int lane, Cargo c)
{
    Exec *x = w->x;
    int rank = other_block(w, side->mem, lane);
    if (rank >= 0 && cluster_enter(w, in, lane, rank)) return -1;
    if (rank >= 0) cluster_count_store(x, c.bytes);
    Mbarrier b = barrier_at(w, side, lane);
    int r =
        !b.p || bulk_put(w, in, lane, c.p, c.bytes) || bulk_complete(w, in, lane, b.at, c.bytes);
    if (!r && rank >= 0) cluster_signal(x, b.at);
    r = r || end_phase(w, in, b);
    if (rank >= 0) cluster_leave(x);
    return r ? -1 : 0;
}

static int load_lane(Warp *w, const Inst *in, const Inst *side, int lane)
{
    int rank = other_block(w, side->mem, lane);
    uint32_t bytes;
    if (w->x->cluster && check_target(w, in, lane, rank)) return -1;
    if (rank < 0) {
        Mbarrier b = barrier_at(w, side, lane);
        return !b.p || bulk_load(w, in, lane, b.at) || end_phase(w, in, b) ? -1 : 0;
    }
    unsigned char *data = bulk_take(w, in, lane, rank, &bytes);
    int r = data ? deliver(w, in, side, lane, (Cargo){data, bytes}) : -1;
    free(data);
    return r;
}

const Inst *h_bulk_load(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    Inst side = *in;
    side.k0 = MBARRIER_ARRIVE;
    side.mem = &in->bulk->barrier;
    for (uint32_t rest = m; rest; rest &= rest - 1)
        if (load_lane(w, in, &side, __builtin_ctz(rest))) return NULL;
    return in + 1;
}

const Inst *h_store_async(Warp *w, const Inst *in)
{
    const MemOp *mo = &in->bulk->to;
    Inst side = *in;
    side.k0 = MBARRIER_ARRIVE;
    side.mem = &in->bulk->barrier;
    exec_charge(w->x, LANE_COST * __builtin_popcount(exec_mask(w, in)));
    for (uint32_t rest = exec_mask(w, in); rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        unsigned char data[16];
        for (int k = 0; k < mo->count; k++) {
            uint64_t v =
                mo->width[k] == 64 ? row64(w, mo->data[k])[lane] : row32(w, mo->data[k])[lane];
            memcpy(data + k * mo->element, &v, mo->element);
        }
        if (w->x->cluster && check_target(w, in, lane, other_block(w, side.mem, lane))) return NULL;
        if (deliver(w, in, &side, lane, (Cargo){data, (uint32_t)(mo->element * mo->count)}))
            return NULL;
    }
    return in + 1;
}

const Inst *h_bulk_store(Warp *w, const Inst *in)
{
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1)
        if (bulk_store(w, in, __builtin_ctz(m))) return NULL;
    return in + 1;
}

const Inst *h_bulk_group(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (in->k0) return m && bulk_wait(w, in, m, in->imm) ? NULL : in + 1;
    bulk_commit(w, m);
    return in + 1;
}
