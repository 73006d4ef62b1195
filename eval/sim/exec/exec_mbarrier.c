/* mbarrier: a counter of arrivals in shared memory. Its phase ends when as many have arrived as it
 * expects. The 64 bits are opaque to a program: expected arrivals, arrivals still pending, the
 * parity of the phase, and a mark that tells an mbarrier from other data. */
#include "eval/sim/exec/barrier.h"
#include "eval/sim/exec/handlers.h"
#include "eval/sim/memory/async_copy.h"
#include "eval/sim/memory/bulk_copy.h"
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

/* Returns one lane's barrier in shared memory and its offset *at, or NULL with a fault. */
static unsigned char *barrier_at(Warp *w, const Inst *in, int lane, uint32_t *at)
{
    Access a;
    uint64_t v;
    if (access_resolve(w, in, 1u << lane, &a) != SPACE_SHARED) {
        exec_fault(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                   "uses a barrier that is not in shared memory");
        return NULL;
    }
    if (access_shared_bounds(w, &a, 1) || (in->k0 != MBARRIER_INIT && shared_check_written(w, &a)))
        return NULL;
    if (in->k0 == MBARRIER_INIT && shared_check_store(w, &a, NULL)) return NULL;
    unsigned char *p = a.host + a.p->delta[lane];
    *at = (uint32_t)access_address(&a, lane);
    memcpy(&v, p, 8);
    if (in->k0 == MBARRIER_INIT || (v & MARK_MASK) == MARK) return p;
    exec_fault(w, in, lane, OUTCOME_LAUNCH_ERROR,
               "uses an mbarrier at offset %u of shared memory that was not initialised", *at);
    return NULL;
}

/* Ends the phase when all have arrived and the bytes that it expects are under way, which then land.
 * Returns 0, or -1 with a fault. */
static int end_phase(Warp *w, const Inst *in, unsigned char *p, uint32_t at)
{
    uint64_t v;
    memcpy(&v, p, 8);
    uint64_t expected = v & COUNT_MASK, pending = v >> COUNT_BITS & COUNT_MASK;
    if (pending || !bulk_is_complete(w->x, at)) return 0;
    v = state_of(expected, expected, (v & PARITY) ^ PARITY);
    memcpy(p, &v, 8);
    if (async_land_tied(w, in, at) || bulk_land(w, in, at)) return -1;
    barrier_passed(w->x);
    return w->x->faulted ? -1 : 0;
}

/* Counts n arrivals. Returns 0, or -1 with a fault. */
static int arrive(Warp *w, const Inst *in, int lane, unsigned char *p, uint32_t at, uint64_t n)
{
    uint64_t v;
    memcpy(&v, p, 8);
    uint64_t expected = v & COUNT_MASK, pending = v >> COUNT_BITS & COUNT_MASK;
    if (!n || n > pending)
        return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                         "arrives %llu times at an mbarrier that waits for %llu more",
                         (unsigned long long)n, (unsigned long long)pending);
    if (in->k0 == MBARRIER_DROP) expected -= n;
    v = state_of(expected, pending - n, v & PARITY);
    memcpy(p, &v, 8);
    return end_phase(w, in, p, at);
}

/* Runs the operation for one lane. Returns 0, or -1 with a fault. */
static int run_lane(Warp *w, const Inst *in, int lane)
{
    uint32_t at;
    unsigned char *p = barrier_at(w, in, lane, &at);
    uint64_t v, parity;
    if (!p) return -1;
    memcpy(&v, p, 8);
    uint32_t count = in->k0 == MBARRIER_WAIT || in->a == ROW_NONE ? 1 : row32(w, in->a)[lane];
    switch (in->k0) {
    case MBARRIER_INIT:
        if (!count || count > COUNT_MASK)
            return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                             "initialises an mbarrier for %u arrivals; 1 to %llu are allowed",
                             count, COUNT_MASK);
        v = state_of(count, count, 0);
        memcpy(p, &v, 8);
        bulk_forget(w->x, at);
        return 0;
    case MBARRIER_INVAL:
        memset(p, 0, 8);
        bulk_forget(w->x, at);
        return 0;
    case MBARRIER_EXPECT: return bulk_expect(w, in, lane, at, count);
    case MBARRIER_COMPLETE:
        return bulk_complete(w, in, lane, at, count) ? -1 : end_phase(w, in, p, at);
    case MBARRIER_ARRIVE_EXPECT:
        if (in->d != ROW_NONE) row64(w, in->d)[lane] = v;
        return bulk_expect(w, in, lane, at, count) ? -1 : arrive(w, in, lane, p, at, 1);
    case MBARRIER_COPIES: /* without .noinc it also raises the count by one, which cancels out */
        async_tie(w, lane, at);
        return in->k1 ? arrive(w, in, lane, p, at, 1) : 0;
    case MBARRIER_ARRIVE:
    case MBARRIER_DROP:
        if (in->d != ROW_NONE) row64(w, in->d)[lane] = v;
        return arrive(w, in, lane, p, at, count);
    default:
        parity = in->k0 == MBARRIER_WAIT ? row64(w, in->a)[lane] & PARITY : count & 1 ? PARITY : 0;
        put_pred(w, in->e, 1u << lane, (v & PARITY) != parity ? FULL_MASK : 0);
        return 0;
    }
}

const Inst *h_mbarrier(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    exec_charge(w->x, LANE_COST * __builtin_popcount(m));
    for (uint32_t rest = m; rest; rest &= rest - 1)
        if (run_lane(w, in, __builtin_ctz(rest))) return NULL;
    if (in->k0 >= MBARRIER_WAIT && ~w->p[in->e] & m) w->slice = -1; /* let other splits run */
    return in + 1;
}

const Inst *h_bulk_load(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    Inst side = *in;
    side.k0 = MBARRIER_ARRIVE;
    side.mem = &in->bulk->barrier;
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint32_t at;
        unsigned char *p = barrier_at(w, &side, lane, &at);
        if (!p || bulk_load(w, in, lane, at) || end_phase(w, in, p, at)) return NULL;
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
