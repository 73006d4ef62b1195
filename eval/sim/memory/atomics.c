/* Atomics and reductions. The lanes run one after another in lane order. Atomics are ordered among
 * themselves, so only a plain write by another warp or block makes a race. */
#include "eval/sim/machine/half.h"
#include "eval/sim/machine/values.h"
#include "eval/sim/memory/block_waits.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/memory_ops.h"
#include "eval/sim/memory/order.h"
#include "eval/sim/memory/path.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/traffic.h"
#include "eval/sim/memory/undefined.h"

enum { LANE_COST = 8 }; /* of an element, in thread-instructions */

static uint64_t read_row(const Warp *w, const MemOp *mo, int k, int lane)
{
    return mo->element == 8 ? row64(w, mo->data[k])[lane] : row32(w, mo->data[k])[lane];
}

static uint64_t sign_extended(uint64_t v, int bytes)
{
    int shift = 64 - bytes * 8;
    return (uint64_t)((int64_t)(v << shift) >> shift);
}

static uint64_t integer_op(const MemOp *mo, uint64_t old, uint64_t b, uint64_t c)
{
    int is_signed = mo->type == T_S32 || mo->type == T_S64;
    int64_t so = (int64_t)sign_extended(old, mo->element),
            sb = (int64_t)sign_extended(b, mo->element);
    switch (mo->atom) {
    case ATOM_ADD: return old + b;
    case ATOM_MIN: return (is_signed ? sb < so : b < old) ? b : old;
    case ATOM_MAX: return (is_signed ? sb > so : b > old) ? b : old;
    case ATOM_AND: return old & b;
    case ATOM_OR: return old | b;
    case ATOM_XOR: return old ^ b;
    case ATOM_EXCH: return b;
    case ATOM_CAS: return old == b ? c : old;
    case ATOM_INC: return old >= b ? 0 : old + 1;
    default: return old == 0 || old > b ? b : old - 1;
    }
}

static uint32_t half_atom(const MemOp *mo, uint32_t a, uint32_t b)
{
    int is_bf16 = mo->type == T_BF16;
    float x = is_bf16 ? bf16_widen(a & 0xffff) : f16_widen(a & 0xffff),
          y = is_bf16 ? bf16_widen(b & 0xffff) : f16_widen(b & 0xffff);
    float r = mo->atom == ATOM_ADD   ? x + y
              : mo->atom == ATOM_MIN ? (x < y || y != y ? x : y)
              : x > y || y != y      ? x
                                     : y;
    return is_bf16 ? bf16_narrow(r) : f16_narrow(r);
}

static uint64_t combine(const MemOp *mo, uint64_t old, uint64_t b, uint64_t c)
{
    if (mo->type < T_F16 || mo->atom == ATOM_EXCH || mo->atom == ATOM_CAS)
        return integer_op(mo, old, b, c);
    if (mo->type == T_F32) return float_bits(as_float((uint32_t)old) + as_float((uint32_t)b));
    if (mo->type == T_F64) return double_bits(as_double(old) + as_double(b));
    uint32_t lo = half_atom(mo, (uint32_t)old, (uint32_t)b);
    return mo->packed ? lo | half_atom(mo, (uint32_t)old >> 16, (uint32_t)b >> 16) << 16 : lo;
}

/* A comparison with what the warp has found in the word, as of sums that are made of comparisons, waits for
 * no other one. Another comparison takes a turn, or looks. */
static void follow_comparison(Warp *w, const Access *a, int changes)
{
    const int lane = __builtin_ctz(a->mask);
    const uint64_t with = read_row(w, a->mo, 1, lane);
    if (!changes || w->known_at != a->base || w->known != with) path_hear_compared(w, a);
    if (changes) path_tell_compared(w, a);
    w->known_at = a->base;
    w->known = 0;
    memcpy(&w->known, a->host + a->p->delta[lane], a->mo->element);
}

static void perform(Warp *w, const Access *a)
{
    const MemOp *mo = a->mo;
    int changes = 0;
    exec_charge(w->x, LANE_COST * mo->count * __builtin_popcount(a->mask));
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        for (int k = 0; k < mo->count; k++) {
            unsigned char *p = a->host + a->p->delta[lane] + k * mo->element;
            uint64_t old = 0, b = read_row(w, mo, mo->count + k, lane),
                     c = mo->atom == ATOM_CAS ? read_row(w, mo, 2, lane) : 0;
            memcpy(&old, p, mo->element);
            uint64_t v = combine(mo, old, b, c);
            memcpy(p, &v, mo->element);
            changes |= v != old;
            if (mo->data[k] == ROW_NONE) continue;
            if (mo->element == 8)
                row64(w, mo->data[k])[lane] = old;
            else
                row32(w, mo->data[k])[lane] = (uint32_t)old;
        }
    }
    if (changes && !mo->waits) w->splits[w->current].looks = 0; /* it does not spin */
    /* A lock is taken by a comparison or an exchange, and given back otherwise. What returns nothing tells
     * nothing. */
    if (mo->data[0] != ROW_NONE &&
        (!changes || mo->waits || mo->atom == ATOM_CAS || mo->atom == ATOM_EXCH))
        path_hear(w, a);
    if (mo->atom == ATOM_CAS)
        follow_comparison(w, a, changes);
    else if (changes)
        path_tell(w, a);
}

/* Lanes with one bank wait for one another, and half as long again where lanes share several addresses.
 * Floats and halves are added by a loop of compare and swap, which lanes that meet repeat, and so are 64
 * bits. Costs of an H200, as multiples of an integer addition's (2026-11-29 and 2026-12-01,
 * tests/bench/rates). */
static uint32_t shared_serial(const Access *a)
{
    enum { BANKS = 32, BANK_BYTES = 4, FLOATS = 5, FLOATS_THAT_MEET = 11 };
    uint8_t lanes[BANKS] = {0};
    uint64_t last[BANKS];
    uint32_t most = 0, banks = 0, meet = 0;
    if (a->mo->merged) return 1;
    for (uint32_t m = a->mask; m; m &= m - 1) {
        uint64_t at = a->base + (uint64_t)(int64_t)a->p->delta[__builtin_ctz(m)];
        const uint64_t k = at / BANK_BYTES % BANKS;
        banks += !lanes[k];
        meet += lanes[k] && last[k] == at;
        last[k] = at;
        if (++lanes[k] > most) most = lanes[k];
    }
    if (a->mo->atom == ATOM_ADD &&
        (a->mo->type == T_F32 || a->mo->type == T_F16 || a->mo->type == T_BF16))
        return most > 1 ? FLOATS_THAT_MEET * most : FLOATS;
    /* Sums of doubles take at least what the same loop takes that a kernel writes out. */
    if (a->mo->atom == ATOM_ADD && a->mo->type == T_F64) return 51 * most / 10;
    return a->mo->element == 8 ? 18 * most / 5 : banks > 1 && meet ? 3 * most / 2 : most;
}

static int atomic_shared(Warp *w, Access *a)
{
    SimCounts *n = &w->x->counts;
    if (access_shared_bounds(w, a, 1)) return -1;
    if (a->mo->order >= ORDER_RELEASE) shared_release(w);
    order_meet(w);
    if (shared_check_atomic(w, a) || undefined_check_atomic(w, a)) return -1;
    if (w->x->proxy) proxy_note_write(w, a);
    n->shared_atomic_requests++;
    uint32_t serial = shared_serial(a);
    n->shared_atomic_serial += serial;
    if (a->mo->traffic) a->mo->traffic->requests++, a->mo->traffic->serial += serial;
    perform(w, a);
    return 0;
}

static int atomic_once(Warp *w, const Inst *in, uint32_t m)
{
    Access a;
    int space = access_resolve(w, in, m, &a), r = 0;
    if (a.mo->data[0] != ROW_NONE) exec_look(w, in, a.base);
    switch (space) {
    case SPACE_GLOBAL:
        r = access_global_bounds(w, &a, 1);
        if (r) return r;
        if (a.mo->order >= ORDER_RELEASE) global_fence(w, a.mo->scope, FENCE_RELEASES);
        waits_atomic(w, &a);
        order_observe(w, &a);
        if (global_check_atomic(w, &a)) return -1;
        order_publish(w, &a);
        traffic_count(w, &a, MEM_ATOM);
        break;
    case SPACE_SHARED:
        return w->x->cluster ? cluster_access(w, &a, atomic_shared) : atomic_shared(w, &a);
    case -1: return 1;
    default:
        return exec_fail(w, in, a.first, OUTCOME_OUT_OF_BOUNDS,
                         "does an atomic operation on memory that is neither global nor shared");
    }
    perform(w, &a);
    return 0;
}

const Inst *h_atom(Warp *w, const Inst *in)
{
    return access_run(w, in, atomic_once);
}
