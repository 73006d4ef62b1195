/* The shadow of shared memory. A tag is epoch << 10 | warp << 4 | bytes in 32 bits. An epoch is one
 * phase of one block between two barriers. A word whose writer's tag is below the block's first
 * epoch is unwritten. Warps run one after another between barriers, so a conflict is found at the
 * later access, whatever the order on a device would be. */
#pragma GCC optimize("O3")
#include "eval/sim/memory/landed.h"
#include "eval/sim/memory/shadow.h"

#include <stdio.h>

#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/doubts.h"
#include "eval/sim/memory/order.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/unwritten.h"

int always_changes(const Access *a, const Warp *w, int lane, const unsigned char *now)
{
    (void)a, (void)w, (void)lane, (void)now;
    return 1;
}

enum {
    CHUNK = 16,     /* bytes of what wgmma reads at once */
    CHUNK_COST = 20 /* of one that is not checked with others, in thread-instructions */
};

static inline uint32_t my_tag(const Warp *w)
{
    return w->x->cta.epoch << TAG_PHASE_SHIFT | (uint32_t)w->index << TAG_WARP_SHIFT;
}

/* Is a tag of the same epoch and of another warp? */
static inline uint32_t foreign(uint32_t tag, uint32_t mine)
{
    return ((tag ^ mine) & ~15u) - 16 < 1024 - 16;
}

/* The bytes of a word that this block has written. */
static uint32_t written_bytes(const Cta *c, uint64_t word)
{
    uint32_t t = c->shared_writer[word];
    return t < c->floor ? 0 : (t & TAG_BYTES) | c->shared_bytes[word];
}

/* Sets the bytes of a word that this block has not written to 0, once per block. A read of them
 * then does not find what an earlier block, launch or candidate left there. */
static void clear_unwritten(Cta *c, uint64_t word)
{
    if (c->shared_cleared[word] == c->floor) return;
    uint32_t written = written_bytes(c, word);
    for (uint64_t k = 0; k < 4; k++)
        if (!(written >> k & 1)) c->shared[word * 4 + k] = 0;
    c->shared_cleared[word] = c->floor;
}

/* Has this block written all bytes of [lo, hi)? */
static int all_written(const Cta *c, uint64_t lo, uint64_t hi)
{
    for (uint64_t word = lo >> 2; word <= (hi - 1) >> 2; word++)
        if (shadow_bytes(word, lo, hi) & ~written_bytes(c, word)) return 0;
    return 1;
}

int shared_has_value(const Cta *c, uint64_t lo, uint64_t hi)
{
    return all_written(c, lo, hi);
}

/* A bit for each byte of a lane's access that has no value. */
static uint32_t unwritten_bytes(const Cta *c, const Access *a, int lane)
{
    uint32_t found = 0;
    uint64_t at = access_address(a, lane);
    for (int b = 0; b < a->size && b < 32; b++, at++)
        found |= (~written_bytes(c, at >> 2) >> (at & 3) & 1) << b;
    return found;
}

/* Of all lanes where the decoder follows what they load, else of the first. */
static int read_unwritten(Warp *w, const Access *a, uint64_t word)
{
    const Cta *c = &w->x->cta;
    uint32_t lanes = shadow_lanes(a, 0, word), first = lanes & -lanes;
    EACH_LANE(doubt_is_followed(w, a->in) ? lanes : first, i)
    {
        uint64_t at = access_address(a, (int)i);
        if (unwritten_read(w, a, (int)i, at, 1, unwritten_bytes(c, a, (int)i))) return -1;
    }
    return 0;
}

/* A load of the bytes `need` of a word that are not all written, or that race with a write. */
static int load_fault(Warp *w, const Access *a, uint64_t word, uint32_t need)
{
    Exec *x = w->x;
    Cta *c = &x->cta;
    if (need & ~written_bytes(c, word)) {
        clear_unwritten(c, word);
        return x->has_pending ? 0 : read_unwritten(w, a, word);
    }
    int lane = shadow_lane(a, 0, word);
    exec_fault(w, a->in, lane, OUTCOME_RACE,
               "reads shared memory at offset %lld, which a thread of warp %u writes with no "
               "barrier between",
               (long long)access_address(a, lane), c->shared_writer[word] >> TAG_WARP_SHIFT & 31);
    return doubt_load(w, a->in, shadow_lanes(a, 0, word));
}

static void note_reader(Cta *c, uint64_t word, uint32_t mine, uint32_t bytes)
{
    uint32_t r = c->shared_reader[word];
    if (foreign(r, mine))
        c->shared_reader[word] =
            (mine & ~(uint32_t)TAG_WARP_MASK) | TAG_SEVERAL_WARPS | (r & TAG_BYTES) | bytes;
    else
        c->shared_reader[word] = (uint32_t)shadow_add_bytes(r, mine, bytes);
}

/* The slow path of a load: word by word, with the bytes that are touched. */
static int load_words(Warp *w, const Access *a, ShadowRange r, uint32_t mine)
{
    Cta *c = &w->x->cta;
    for (uint64_t word = r.lo >> 2; word <= (r.hi - 1) >> 2; word++) {
        uint32_t need = shadow_bytes(word, r.lo, r.hi), t = c->shared_writer[word];
        if ((need & ~written_bytes(c, word) || (foreign(t, mine) && t & need)) &&
            load_fault(w, a, word, need))
            return -1;
        note_reader(c, word, mine, need);
    }
    return 0;
}

int shared_check_written(Warp *w, Access *a)
{
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange r = shadow_range(a, i, 0);
        for (uint64_t word = r.lo >> 2; word <= (r.hi - 1) >> 2; word++) {
            uint32_t need = shadow_bytes(word, r.lo, r.hi);
            if (need & ~written_bytes(&w->x->cta, word) && load_fault(w, a, word, need)) return -1;
        }
    }
    return 0;
}

/* A read in a cluster, or one that is followed. Returns 0, -1 with a fault, or 1 for one in another block,
 * which is checked. */
static __attribute__((cold, noinline)) int note_read(Warp *w, Access *a, ClusterUse use)
{
    int remote = w->x->cluster ? cluster_note(w, a, use, NULL) : 0;
    if (remote) return remote < 0 || shared_check_written(w, a) ? -1 : 1;
    if (w->x->doubts) doubt_note_read(w, a);
    return 0;
}

/* Whole words that are written, and by no other warp in this phase, pass without the slow path. */
static inline uint32_t load_is_bad(uint32_t t, uint32_t mine, uint32_t floor)
{
    return (uint32_t)(t < floor) | (uint32_t)((t & TAG_BYTES) != TAG_BYTES) | foreign(t, mine);
}

/* What a bulk copy brings is read by a warp that has not waited for it. */
static int check_landed(Warp *w, const Access *a)
{
    uint32_t barrier;
    for (int i = 0; i < a->p->n_ranges; i++) {
        const ShadowRange r = shadow_range(a, i, 0);
        if (!landed_missing(w, r.lo, r.hi - r.lo, &barrier)) continue;
        const uint32_t lanes = shadow_lanes(a, 0, r.lo >> 2);
        exec_fault(
            w, a->in, lanes ? __builtin_ctz(lanes) : 0, OUTCOME_RACE,
            "reads shared memory at offset %llu, which a bulk copy brings: the warp has not waited "
            "for its mbarrier, at offset %u",
            (unsigned long long)r.lo, barrier);
        return doubt_load(w, a->in, lanes);
    }
    return 0;
}

int shared_check_load(Warp *w, Access *a)
{
    if (w->x->landed && check_landed(w, a)) return -1;
    Cta *c = &w->x->cta;
    uint32_t mine = my_tag(w), floor = c->floor, one = mine | TAG_BYTES;
    uint32_t several = (mine & ~(uint32_t)TAG_WARP_MASK) | TAG_SEVERAL_WARPS | TAG_BYTES;
    if ((uintptr_t)w->x->cluster | (uintptr_t)w->x->doubts) {
        int r = note_read(w, a, CLUSTER_READS);
        if (r) return r < 0 ? -1 : 0;
    }
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange range = shadow_range(a, i, 0);
        uint32_t bad = (uint32_t)((range.lo | range.hi) & 3);
        int n = (int)((range.hi - range.lo) >> 2);
        const uint32_t *t = c->shared_writer + (range.lo >> 2);
        uint32_t *r = c->shared_reader + (range.lo >> 2);
        if (n == 1 && !(bad | load_is_bad(*t, mine, floor))) { /* a broadcast, without a loop */
            *r = foreign(*r, mine) ? several : one;
            continue;
        }
        for (int k = 0; k < n; k++) bad |= load_is_bad(t[k], mine, floor);
        if (bad) {
            if (load_words(w, a, range, mine)) return -1;
            continue;
        }
        for (int k = 0; k < n; k++) r[k] = foreign(r[k], mine) ? several : one;
    }
    return 0;
}

/* A chunk of a wgmma that is not all written, or races with a write. Returns 0, -1 with a fault, or 1: it is
 * doubtful. */
static int check_chunk(Warp *w, const Inst *in, uint32_t at, uint32_t *event)
{
    Cta *c = &w->x->cta;
    uint32_t mine = my_tag(w), unwritten = 0, writer = 0;
    exec_charge(w->x, CHUNK_COST);
    for (uint64_t word = at / 4; word < at / 4 + CHUNK / 4; word++) {
        uint32_t t = c->shared_writer[word];
        if (TAG_BYTES & ~written_bytes(c, word)) {
            clear_unwritten(c, word);
            unwritten = 1;
        }
        if (foreign(t, mine) && t & TAG_BYTES) writer = 1 + (t >> TAG_WARP_SHIFT & 31);
        note_reader(c, word, mine, TAG_BYTES);
    }
    doubt_note_product(w, at, CHUNK);
    if (!unwritten && !writer) return 0;
    if (writer)
        exec_fault(
            w, in, __builtin_ctz(w->active), OUTCOME_RACE,
            "multiplies shared memory at offset %u, which a thread of warp %u writes with no "
            "barrier between",
            at, writer - 1);
    else
        exec_fault(
            w, in, __builtin_ctz(w->active), OUTCOME_OUT_OF_BOUNDS,
            "multiplies %d bytes at offset %u of shared memory that no thread of the block has "
            "written",
            CHUNK, at);
    return event && (*event = doubt_product(w, in)) ? 1 : -1;
}

/* The tags of a chunk, and for each all ones where `foreign` is true. */
typedef uint32_t Tags __attribute__((vector_size(CHUNK)));

static inline Tags foreign_tags(Tags t, uint32_t mine)
{
    return (Tags)((((t ^ mine) & ~15u) - 16) < 1024 - 16);
}

int shared_check_chunks(Warp *w, const Inst *in, const uint32_t *at, int n, uint8_t *doubtful,
                        uint32_t *event)
{
    Cta *c = &w->x->cta;
    uint32_t mine = my_tag(w), one = mine | TAG_BYTES;
    uint32_t several = (mine & ~(uint32_t)TAG_WARP_MASK) | TAG_SEVERAL_WARPS | TAG_BYTES;
    for (int i = 0; i < n && w->x->cluster; i++)
        if (!doubtful[i] && cluster_note_product(w, in, at[i], CHUNK)) return -1;
    for (int i = 0; i < n; i++) {
        Tags t, r;
        uint64_t bad[2];
        if (doubtful[i]) continue;
        memcpy(&t, c->shared_writer + at[i] / 4, sizeof t);
        memcpy(&r, c->shared_reader + at[i] / 4, sizeof r);
        t = (Tags)(t < c->floor) | (Tags)((t & TAG_BYTES) != TAG_BYTES) | foreign_tags(t, mine);
        memcpy(bad, &t, sizeof bad);
        if (bad[0] | bad[1] || w->x->doubts) {
            int is = check_chunk(w, in, at[i], event);
            if (is < 0) return -1;
            doubtful[i] = (uint8_t)is;
            continue;
        }
        r = foreign_tags(r, mine) & (several ^ one);
        r ^= one;
        memcpy(c->shared_reader + at[i] / 4, &r, sizeof r);
    }
    return 0;
}

/* Checks one lane's store to words that another warp touched in this phase. It is a race only when
 * bytes change. Bytes that the block has not written have no value yet: any store changes them. */
static int store_lane(Warp *w, const Access *a, int lane, AccessChanged *changed)
{
    Cta *c = &w->x->cta;
    uint64_t lo = access_address(a, lane), hi = lo + (uint64_t)a->size;
    uint32_t mine = my_tag(w);
    for (uint64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
        uint32_t bytes = shadow_bytes(word, lo, hi), t = c->shared_writer[word],
                 r = c->shared_reader[word];
        int write_write = foreign(t, mine) && t & bytes, read_write = foreign(r, mine) && r & bytes;
        if (!write_write && !read_write) continue;
        if (all_written(c, lo, hi) && !changed(a, w, lane, c->shared + lo)) continue;
        uint32_t warp = (write_write ? t : r) >> TAG_WARP_SHIFT & 63;
        char who[32] = "threads of several warps";
        if (warp < 32) snprintf(who, sizeof who, "a thread of warp %u", warp);
        exec_fault(w, a->in, lane, OUTCOME_RACE,
                   "writes shared memory at offset %lld, which %s %s with no barrier between",
                   (long long)lo, who,
                   write_write ? "also writes, another value,"
                   : warp < 32 ? "reads"
                               : "read");
        if (write_write || doubt_read_before(w, word)) return -1;
    }
    return 0;
}

static void mark_writer(Cta *c, ShadowRange range, uint32_t mine)
{
    uint32_t *t = c->shared_writer + (range.lo >> 2);
    int n = (int)((range.hi - range.lo) >> 2);
    if (!((range.lo | range.hi) & 3)) {
        for (int k = 0; k < n; k++) t[k] = mine | TAG_BYTES;
        return;
    }
    for (uint64_t word = range.lo >> 2; word <= (range.hi - 1) >> 2; word++) {
        uint32_t bytes = shadow_bytes(word, range.lo, range.hi), old = c->shared_writer[word];
        if (bytes != TAG_BYTES)
            c->shared_bytes[word] = (unsigned char)(written_bytes(c, word) | bytes);
        c->shared_writer[word] = (uint32_t)shadow_add_bytes(old, mine, bytes);
    }
}

int shared_check_overwrite(Warp *w, Access *a, AccessChanged *changed)
{
    const Cta *c = &w->x->cta;
    uint32_t mine = my_tag(w), suspicious = 0;
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange range = shadow_range(a, i, 0);
        int n = (int)(((range.hi - 1) >> 2) - (range.lo >> 2)) + 1;
        const uint32_t *t = c->shared_writer + (range.lo >> 2),
                       *r = c->shared_reader + (range.lo >> 2);
        for (int k = 0; k < n; k++) suspicious |= foreign(t[k], mine) | foreign(r[k], mine);
    }
    if (suspicious) {
        EACH_LANE(a->mask, i)
        {
            if (store_lane(w, a, (int)i, changed)) return -1;
        }
    }
    return 0;
}

static inline int check_store(Warp *w, Access *a, AccessChanged *changed)
{
    Cta *c = &w->x->cta;
    /* A volatile store, or one of another block, marks the words as written by no warp of this phase. */
    uint32_t mine = changed ? my_tag(w) : c->floor;
    if (changed && shared_check_overwrite(w, a, changed)) return -1;
    for (int i = 0; i < a->p->n_ranges; i++) mark_writer(c, shadow_range(a, i, 0), mine);
    return 0;
}

static __attribute__((cold, noinline)) int check_store_in_cluster(Warp *w, Access *a,
                                                                  AccessChanged *changed)
{
    int remote = changed ? cluster_note(w, a, CLUSTER_WRITES, changed) : 0;
    return remote < 0 ? -1 : check_store(w, a, remote ? NULL : changed);
}

int shared_check_store(Warp *w, Access *a, AccessChanged *changed)
{
    return w->x->cluster ? check_store_in_cluster(w, a, changed) : check_store(w, a, changed);
}

/* Atomics are ordered among themselves. They must not meet a plain write of this phase, and they
 * count as reads of it. */
int shared_check_atomic(Warp *w, Access *a)
{
    int r = note_read(w, a, CLUSTER_ATOMIC);
    if (r) return r < 0 ? -1 : 0;
    for (int i = 0; i < a->p->n_ranges; i++)
        if (load_words(w, a, shadow_range(a, i, 0), my_tag(w))) return -1;
    return 0;
}

void shared_clear(Cta *c, uint32_t at, uint32_t bytes)
{
    memset(c->shared + at, 0, bytes);
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++)
        c->shared_writer[word] = c->floor | TAG_BYTES;
}

void shared_forget(Cta *c, uint64_t word)
{
    c->shared_writer[word] = 0;
    c->shared_bytes[word] = 0;
}

/* As at a barrier, also where no acquire follows: a warp that goes on without one is not found. */
void shared_release(Warp *w)
{
    Exec *x = w->x;
    order_fence(w, SCOPE_BLOCK, FENCE_RELEASES, order_position(&x->cta));
    if (x->cluster) {
        cluster_fence(x);
        if (x->cluster->actor != x->cluster->current) return;
    }
    if (x->proxy) proxy_barrier(x);
    if (++x->cta.epoch >= SHARED_EPOCH_MAX) shared_renew_epochs(x);
}

/* Written words get the lowest epoch; readers are dropped. */
void shared_renew_epochs(Exec *x)
{
    Cta *c = &x->cta;
    for (uint32_t i = 0; i < (x->shared_cap + 3) / 4; i++) {
        uint32_t t = c->shared_writer[i];
        c->shared_writer[i] = t && t >= c->floor ? 1u << 10 | (t & 15) : 0;
        c->shared_reader[i] = 0;
        c->shared_cleared[i] = c->shared_cleared[i] == c->floor ? 1u << 10 : 0;
    }
    c->floor = 1u << 10;
    c->epoch = 2;
}
