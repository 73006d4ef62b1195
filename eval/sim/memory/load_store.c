/* Loads and stores, on one path for all spaces: the addresses are described (access.h), checked
 * against bounds and shadows, and counted; only then bytes move. */
#include "eval/sim/memory/access.h"
#include "eval/sim/memory/unwritten.h"

/* Loads and stores of local memory. They return 0, or -1 with a fault. Local memory: indexed arrays
 * and the frames of called functions. As on a device it is interleaved: word i of the 32 lanes is one
 * row, so lanes at the same offset touch 128 consecutive bytes. Each lane has its own memory, so there
 * are no races; four bits per word say which bytes are written. */

enum { LANE_COST = 6 }; /* in thread-instructions */

static unsigned char *cell(const Warp *w, uint64_t offset, int lane)
{
    return w->local + (offset >> 2) * ROW32 + (uint64_t)lane * 4 + (offset & 3);
}

static int local_bounds(Warp *w, const Access *a, int is_write)
{
    const Frame *f = w->frame;
    uint64_t top = (uint64_t)f->local_base + f->fn->local_bytes;
    if (access_is_within(a, top) && a->p->aligned && !(a->base & (uint64_t)(a->size - 1))) return 0;
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = access_address(a, lane);
        if (access_is_beyond(at, a->size, top)) {
            return exec_fail(w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
                             "%s %d bytes at offset %lld of its local memory, which has %lld bytes",
                             is_write ? "writes" : "reads", a->size, (long long)at, (long long)top);
        }
        if (at & (uint64_t)(a->size - 1)) {
            return exec_fail(w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
                             "%s %d bytes at offset %lld of its local memory, which is misaligned",
                             is_write ? "writes" : "reads", a->size, (long long)at);
        }
    }
    return 0;
}

/* Counts sectors: a sector holds one word of each of 8 lanes. Adds them to *scattered where lanes do not
 * share them. */
static uint64_t local_sectors(const Access *a, uint64_t *scattered)
{
    uint64_t n = 0, words = (uint64_t)(a->size + 3) / 4;
    for (int group = 0; group < 4; group++) {
        uint32_t m = a->mask >> (group * 8) & 0xff;
        int32_t seen[8];
        int n_seen = 0;
        for (; m; m &= m - 1) {
            int32_t d = a->p->delta[group * 8 + __builtin_ctz(m)] >> 2;
            int k = 0;
            while (k < n_seen && seen[k] != d) k++;
            if (k == n_seen) seen[n_seen++] = d;
        }
        n += (uint64_t)n_seen * words;
    }
    if (2 * n > (uint64_t)__builtin_popcount(a->mask) * words && n > 4 * words) *scattered += n;
    return n;
}

/* A bit for each byte of a lane's access that has no value. */
static uint32_t unwritten_bytes(const Warp *w, const Access *a, int lane)
{
    uint32_t found = 0;
    uint64_t at = access_address(a, lane);
    for (int b = 0; b < a->size && b < 32; b++, at++) {
        unsigned init = w->local_init[(at >> 2) * LANES + (uint64_t)lane];
        found |= (~init >> (at & 3) & 1) << b;
    }
    return found;
}

static int local_load(Warp *w, Access *a)
{
    const MemOp *mo = a->mo;
    if (local_bounds(w, a, 0)) return -1;
    exec_charge(w->x, LANE_COST * __builtin_popcount(a->mask));
    w->x->counts.local_load_sectors += local_sectors(a, &w->x->counts.scattered_local_loads);
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = access_address(a, lane);
        for (int k = 0; k < mo->count; k++, at += mo->element) {
            uint64_t v = 0;
            for (uint64_t b = 0; b < mo->element; b += b + 4 <= mo->element ? 4 : mo->element) {
                size_t n = mo->element < 4 ? mo->element : 4;
                uint32_t need = (15u >> (4 - n)) << (at & 3);
                if ((w->local_init[((at + b) >> 2) * LANES + (uint64_t)lane] & need) != need) {
                    uint32_t bytes = unwritten_bytes(w, a, lane);
                    if (unwritten_read(w, a, lane, at + b, 0, bytes)) return -1;
                }
                memcpy((unsigned char *)&v + b, cell(w, at + b, lane), n);
            }
            if (mo->data[k] == ROW_NONE) continue;
            int bits = mo->element * 8, width = mo->width[k & 3];
            if (mo->is_signed && bits < 64 && v >> (bits - 1) & 1) v |= ~0ull << bits;
            if (width == 64)
                row64(w, mo->data[k])[lane] = v;
            else
                row32(w, mo->data[k])[lane] = (uint32_t)(v & (~0ull >> (64 - width)));
        }
    }
    return 0;
}

static int local_store(Warp *w, Access *a)
{
    const MemOp *mo = a->mo;
    if (local_bounds(w, a, 1)) return -1;
    exec_charge(w->x, LANE_COST * __builtin_popcount(a->mask));
    w->x->counts.local_store_sectors += local_sectors(a, &w->x->counts.scattered_local_stores);
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = access_address(a, lane);
        for (int k = 0; k < mo->count; k++, at += mo->element) {
            uint64_t v =
                mo->width[k & 3] == 64 ? row64(w, mo->data[k])[lane] : row32(w, mo->data[k])[lane];
            size_t n = mo->element < 4 ? mo->element : 4;
            for (uint64_t b = 0; b < mo->element; b += n) {
                memcpy(cell(w, at + b, lane), (unsigned char *)&v + b, n);
                w->local_init[((at + b) >> 2) * LANES + (uint64_t)lane] |=
                    (unsigned char)((15u >> (4 - n)) << (at & 3));
            }
        }
    }
    return 0;
}

#pragma GCC optimize("O3")
#include "eval/sim/memory/block_waits.h"
#include "eval/sim/memory/memory_ops.h"

#include "eval/sim/machine/rows.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/doubts.h"
#include "eval/sim/memory/order.h"
#include "eval/sim/memory/path.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/traffic.h"

/* ---- moving the data ---- */

/* Reads an element and extends it to the width of its register in bits. */
static uint64_t fetch(const unsigned char *p, int bytes, int is_signed, int width)
{
    uint64_t v = 0;
    memcpy(&v, p, (size_t)bytes);
    if (is_signed && bytes < 8 && v >> (bytes * 8 - 1) & 1) v |= ~0ull << (bytes * 8);
    return width >= 64 ? v : v & (~0ull >> (64 - width));
}

/* The common case: a 32-bit element into a 32-bit register. */
static void load_row32(uint32_t *d, const Access *a, int at)
{
    const unsigned char *p = a->host + at;
    const Pattern *pt = a->p;
    if (a->mask == FULL_MASK) {
        for (int h = 0; h < LANES; h += 16) {
            const unsigned char *q = p + pt->delta[h];
            uint32_t v;
            if (pt->half[h / 16] == HALF_SAME) {
                memcpy(&v, q, 4);
                for (int i = 0; i < 16; i++) d[h + i] = v;
            } else if (pt->half[h / 16] == HALF_ROW) {
                memcpy(d + h, q, 64);
            } else {
                for (int i = h; i < h + 16; i++) memcpy(&d[i], p + pt->delta[i], 4);
            }
        }
        return;
    }
    EACH_LANE(a->mask, i)
    memcpy(&d[i], p + pt->delta[i], 4);
}

static void load_rows(Warp *w, const Access *a)
{
    const MemOp *mo = a->mo;
    for (int k = 0; k < mo->count; k++) {
        if (mo->data[k] == ROW_NONE) continue;
        int at = k * mo->element, width = mo->width[k & 3];
        if (mo->element == 4 && width == 32) {
            load_row32(row32(w, mo->data[k]), a, at);
        } else if (width == 64) {
            uint64_t *d = row64(w, mo->data[k]);
            EACH_LANE(a->mask, i)
            d[i] = fetch(a->host + a->p->delta[i] + at, mo->element, mo->is_signed, 64);
        } else {
            uint32_t *d = row32(w, mo->data[k]);
            EACH_LANE(a->mask, i)
            d[i] =
                (uint32_t)fetch(a->host + a->p->delta[i] + at, mo->element, mo->is_signed, width);
        }
    }
}

static inline uint64_t lane_value(const Warp *w, const MemOp *mo, int k, int lane)
{
    return mo->width[k & 3] == 64 ? row64(w, mo->data[k])[lane] : row32(w, mo->data[k])[lane];
}

static void store_rows(const Warp *w, const Access *a)
{
    const MemOp *mo = a->mo;
    for (int k = 0; k < mo->count; k++) {
        int at = k * mo->element;
        if (mo->element == 4 && mo->width[k & 3] == 32) {
            const uint32_t *s = row32(w, mo->data[k]);
            if (a->p->consecutive && a->size == 4)
                memcpy(a->host, s, ROW32);
            else
                EACH_LANE(a->mask, i)
            memcpy(a->host + a->p->delta[i] + at, &s[i], 4);
        } else {
            EACH_LANE(a->mask, i)
            {
                uint64_t v = lane_value(w, mo, k, (int)i);
                memcpy(a->host + a->p->delta[i] + at, &v, mo->element);
            }
        }
    }
}

static int store_changes(const Access *a, const Warp *w, int lane, const unsigned char *now)
{
    const MemOp *mo = a->mo;
    for (int k = 0; k < mo->count; k++) {
        uint64_t v = lane_value(w, mo, k, lane);
        if (memcmp(now + k * mo->element, &v, mo->element)) return 1;
    }
    return 0;
}

/* After a store: lanes that share an address must have written the same value. */
static int store_agrees(Warp *w, const Access *a)
{
    if (a->p->distinct == __builtin_popcount(a->mask)) return 0;
    EACH_LANE(a->mask, i)
    {
        if (store_changes(a, w, (int)i, a->host + a->p->delta[i])) {
            return exec_fail(
                w, a->in, (int)i, OUTCOME_RACE,
                "writes to an address that another thread of its warp writes at the same "
                "time with another value");
        }
    }
    return 0;
}

/* ---- spaces ---- */

static int load_const(Warp *w, Access *a, const unsigned char *bank, uint32_t bytes,
                      const char *what)
{
    SimCounts *n = &w->x->counts;
    EACH_LANE(a->mask, i)
    {
        uint64_t at = access_address(a, (int)i);
        if (at & (uint64_t)(a->size - 1))
            return exec_fail(w, a->in, (int)i, OUTCOME_OUT_OF_BOUNDS,
                             "reads %d bytes at offset %lld of %s, which is misaligned", a->size,
                             (long long)at, what);
        if (access_is_beyond(at, a->size, bytes)) {
            return exec_fail(w, a->in, (int)i, OUTCOME_OUT_OF_BOUNDS,
                             "reads %d bytes at offset %lld of %s, which has %u bytes", a->size,
                             (long long)at, what, bytes);
        }
    }
    n->const_requests++;
    n->const_distinct += a->p->distinct;
    a->host = (unsigned char *)(uintptr_t)bank + a->base;
    load_rows(w, a);
    return 0;
}

static int access_once(Warp *w, const Inst *in, uint32_t m);

/* Lanes that read a little behind shared memory, as a load does that was moved up before the branch
 * that guards it, get 0, which is doubtful. A GPU rounds a block's shared memory up, and refuses a
 * load behind that. Returns 1 when there is such a lane. */
static int load_beyond(Warp *w, Access *a)
{
    const MemOp *mo = a->mo;
    uint32_t beyond = 0, bytes = w->x->cta.shared_size,
             end = (bytes + DOUBT_UNIT - 1) / DOUBT_UNIT * DOUBT_UNIT;
    EACH_LANE(a->mask, i)
    {
        uint64_t at = access_address(a, (int)i);
        if (!access_is_beyond(at, a->size, bytes)) continue;
        if (access_is_beyond(at, a->size, end)) return 1;
        beyond |= 1u << i;
    }
    access_shared_bounds(w, a, 0);
    if (!beyond || doubt_load(w, a->in, beyond)) return -1;
    for (int k = 0; k < mo->count; k++) {
        EACH_LANE(mo->data[k] == ROW_NONE ? 0 : beyond, i)
        {
            if (mo->width[k & 3] == 64)
                row64(w, mo->data[k])[i] = 0;
            else
                row32(w, mo->data[k])[i] = 0;
        }
    }
    uint32_t rest = a->mask & ~beyond;
    return rest ? access_once(w, a->in, rest) : 0;
}

/* A load that is not weak hears what others have told, by whatever. */
static void hear_load(Warp *w, const Access *a)
{
    path_hear(w, a);
    path_hear_compared(w, a);
    w->known_at = a->base;
    w->known = 0;
    memcpy(&w->known, a->host, (size_t)(a->size < 8 ? a->size : 8));
}

static inline __attribute__((always_inline)) int load_shared(Warp *w, Access *a)
{
    SimCounts *n = &w->x->counts;
    if (a->mo->order == ORDER_WEAK && !access_is_within(a, w->x->cta.shared_size)) {
        int r = load_beyond(w, a);
        if (r <= 0) return r;
    }
    if (access_shared_bounds(w, a, 0) ||
        (a->mo->order == ORDER_WEAK ? shared_check_load(w, a) : shared_check_written(w, a)))
        return -1;
    if (a->mo->order != ORDER_WEAK) {
        order_meet(w);
        exec_look(w, a->in, a->base);
        hear_load(w, a);
    }
    n->shared_load_requests++;
    n->shared_load_wavefronts += a->p->wavefronts;
    traffic_count_shared(n, a->mo->traffic, a->p);
    load_rows(w, a);
    return 0;
}

static int load_global(Warp *w, Access *a)
{
    int r = access_global_bounds(w, a, 0);
    if (r) return r;
    if (a->mo->order != ORDER_WEAK) {
        exec_acquire(w->x);
        waits_look(w, a);
        order_observe(w, a);
        exec_look(w, a->in, a->base);
        hear_load(w, a);
    }
    if (global_check_load(w, a) || (a->mo->read_only && global_check_read_only(w, a))) return -1;
    traffic_count(w, a, MEM_LOAD);
    load_rows(w, a);
    return 0;
}

static inline __attribute__((always_inline)) int store_shared(Warp *w, Access *a)
{
    SimCounts *n = &w->x->counts;
    if (access_shared_bounds(w, a, 1)) return -1;
    if (a->mo->order >= ORDER_RELEASE) shared_release(w);
    if (shared_check_store(w, a, a->mo->order == ORDER_WEAK ? store_changes : NULL)) return -1;
    if (w->x->proxy) proxy_note_write(w, a);
    n->shared_store_requests++;
    n->shared_store_wavefronts += a->p->wavefronts;
    traffic_count_shared(n, a->mo->traffic, a->p);
    if (a->mo->order != ORDER_WEAK) path_tell(w, a);
    store_rows(w, a);
    return store_agrees(w, a);
}

static int load_at(Warp *w, Access *a)
{
    return load_shared(w, a);
}

static int store_at(Warp *w, Access *a)
{
    return store_shared(w, a);
}

/* Apart from the common path, whose calls are inlined. */
static __attribute__((cold, noinline)) int shared_in_cluster(Warp *w, Access *a)
{
    return cluster_access(w, a, a->mo->kind == MEM_LOAD ? load_at : store_at);
}

static int store_global(Warp *w, Access *a)
{
    int r = access_global_bounds(w, a, 1);
    if (r) return r;
    if (a->mo->order >= ORDER_RELEASE) global_fence(w, a->mo->scope, FENCE_RELEASES);
    if (a->mo->order != ORDER_WEAK) {
        waits_store(w, a);
        path_tell(w, a);
    } else if (w->x->cooperative || w->x->cluster) {
        path_tell_plainly(w, a);
    }
    if (global_check_store(w, a, store_changes)) return -1;
    traffic_count(w, a, MEM_STORE);
    store_rows(w, a);
    if (a->mo->order != ORDER_WEAK) order_publish(w, a);
    return store_agrees(w, a);
}

static int access_once(Warp *w, const Inst *in, uint32_t m)
{
    Access a;
    Exec *x = w->x;
    int space = access_resolve(w, in, m, &a), load = a.mo->kind == MEM_LOAD;
    switch (space) {
    case SPACE_GLOBAL: return load ? load_global(w, &a) : store_global(w, &a);
    case SPACE_SHARED:
        if (x->cluster) return shared_in_cluster(w, &a);
        return load ? load_shared(w, &a) : store_shared(w, &a);
    case SPACE_LOCAL: return load ? local_load(w, &a) : local_store(w, &a);
    case SPACE_CONST:
    case SPACE_PARAM:
        if (!load) {
            return exec_fail(w, in, a.first, OUTCOME_OUT_OF_BOUNDS, "writes to constant memory");
        }
        if (space == SPACE_CONST && a.mo->address_kind != ADDRESS_FIXED)
            traffic_count_constants(w, &a);
        return space == SPACE_CONST
                   ? load_const(w, &a, x->code->const_bank, x->code->const_bytes, "constant memory")
                   : load_const(w, &a, x->launch->params, KERNEL_MAX_PARAM_BYTES, "the parameters");
    default: return 1;
    }
}

const Inst *h_mem(Warp *w, const Inst *in)
{
    return access_run(w, in, access_once);
}

/* Lines without their contents: a write, after which nothing is written there. */
static int discard_once(Warp *w, const Inst *in, uint32_t m)
{
    Access a;
    int space = access_resolve(w, in, m, &a);
    if (space == -1) return 1;
    if (space != SPACE_GLOBAL)
        return exec_fail(w, in, a.first, OUTCOME_OUT_OF_BOUNDS,
                         "discards memory that is not global");
    int r = access_global_bounds(w, &a, 1);
    if (r) return r;
    if (global_check_store(w, &a, always_changes)) return -1;
    EACH_LANE(m, i)
    {
        devmem_discard(w->x->mem, &w->x->mem->allocs[a.mo->last_alloc], access_address(&a, (int)i),
                       (size_t)a.size);
    }
    return 0;
}

const Inst *h_discard(Warp *w, const Inst *in)
{
    return access_run(w, in, discard_once);
}

const Inst *h_ldparam(Warp *w, const Inst *in)
{
    uint64_t v = fetch(w->x->launch->params + in->imm, in->k0, in->k1, in->k2);
    if (in->k2 == 64) {
        ROW_BODY(uint64_t, row64, blend64, v)
    }
    ROW_BODY(uint32_t, row32, blend32, v)
}

const Inst *h_param_get(Warp *w, const Inst *in)
{
    const uint32_t *a = row32(w, in->a);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint32_t v = a[i] >> in->k0;
        uint64_t r = fetch((unsigned char *)&v, in->k1 / 8, in->k2, (int)in->e);
        if (in->e == 64)
            row64(w, in->d)[i] = r;
        else
            row32(w, in->d)[i] = (uint32_t)r;
    }
    return in + 1;
}

const Inst *h_param_put(Warp *w, const Inst *in)
{
    uint32_t *d = row32(w, in->d), keep = (in->k1 == 32 ? FULL_MASK : (1u << in->k1) - 1) << in->k0;
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint32_t v = in->e == 64 ? (uint32_t)row64(w, in->a)[i] : row32(w, in->a)[i];
        d[i] = (d[i] & ~keep) | (v << in->k0 & keep);
    }
    return in + 1;
}
