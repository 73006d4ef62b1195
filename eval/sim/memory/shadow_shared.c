/* Shared memory's shadow: two 32-bit tags a word, of the last writer and the last reader:
 * epoch << 10 | warp << 4 | bytes. An epoch is one phase of one block between two barriers; a word
 * whose writer's tag is older than the block's first epoch has not been written. Warps run one
 * after another between barriers, so a conflict is seen at the later access, whatever the order on
 * a device would be. */
#pragma GCC optimize("O3")
#include "eval/sim/memory/access.h"

#include <stdio.h>

static inline uint32_t my_tag(const Warp *w)
{
    return w->x->cta.epoch << TAG_PHASE_SHIFT | (uint32_t)w->index << TAG_WARP_SHIFT;
}

/* Same epoch, another warp. */
static inline uint32_t foreign(uint32_t tag, uint32_t mine)
{
    return ((tag ^ mine) & ~15u) - 16 < 1024 - 16;
}

static int have_bytes(const Cta *c, uint32_t word)
{
    uint32_t t = c->shared_writer[word];
    return t < c->floor ? 0 : (int)((t & 15) | c->shared_bytes[word]);
}

/* The bytes of a word that lie in [lo, hi). */
static inline uint32_t byte_mask(int64_t word, int64_t lo, int64_t hi)
{
    uint32_t m = 15;
    if (lo > word * 4) m &= 15u << (lo - word * 4);
    if (hi < word * 4 + 4) m &= 15u >> (word * 4 + 4 - hi);
    return m;
}

static int first_lane_on(const Access *a, int64_t word)
{
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        int64_t at = (int64_t)access_address(a, lane);
        if (at < word * 4 + 4 && at + a->size > word * 4) return lane;
    }
    return a->first;
}

static int load_fault(Warp *w, const Access *a, int64_t word, uint32_t need)
{
    Exec *x = w->x;
    const Cta *c = &x->cta;
    int lane = first_lane_on(a, word);
    if ((have_bytes(c, (uint32_t)word) & (int)need) != (int)need)
        return x->has_pending ? 0 : unwritten_read(w, a, lane, access_address(a, lane), 1);
    exec_fault(w, a->in, lane, OUTCOME_RACE,
               "reads shared memory at offset %lld, which a thread of warp %u writes with no "
               "barrier between",
               (long long)access_address(a, lane), c->shared_writer[word] >> TAG_WARP_SHIFT & 31);
    return -1;
}

static void note_reader(Cta *c, uint32_t word, uint32_t mine, uint32_t bytes)
{
    uint32_t r = c->shared_reader[word];
    if (foreign(r, mine))
        c->shared_reader[word] = (mine & ~(uint32_t)TAG_WARP_MASK) | TAG_MANY | (r & 15) | bytes;
    else if (((r ^ mine) & ~15u) == 0)
        c->shared_reader[word] = r | bytes;
    else
        c->shared_reader[word] = mine | bytes;
}

/* Word by word, with the bytes that are touched. */
static int load_range_carefully(Warp *w, Access *a, int64_t lo, int64_t hi, uint32_t mine)
{
    Cta *c = &w->x->cta;
    for (int64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
        uint32_t need = byte_mask(word, lo, hi), t = c->shared_writer[word];
        if ((have_bytes(c, (uint32_t)word) & (int)need) != (int)need ||
            (foreign(t, mine) && t & need))
            if (load_fault(w, a, word, need)) return -1;
        note_reader(c, (uint32_t)word, mine, need);
    }
    return 0;
}

int shared_check_written(Warp *w, Access *a)
{
    for (int i = 0; i < a->p->n_ranges; i++) {
        int64_t lo = (int64_t)a->base + a->p->ranges[i].lo,
                hi = (int64_t)a->base + a->p->ranges[i].hi;
        for (int64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
            uint32_t need = byte_mask(word, lo, hi);
            if ((have_bytes(&w->x->cta, (uint32_t)word) & (int)need) != (int)need &&
                load_fault(w, a, word, need))
                return -1;
        }
    }
    return 0;
}

int shared_check_load(Warp *w, Access *a)
{
    Cta *c = &w->x->cta;
    uint32_t mine = my_tag(w), floor = c->floor;
    for (int i = 0; i < a->p->n_ranges; i++) {
        int64_t lo = (int64_t)a->base + a->p->ranges[i].lo,
                hi = (int64_t)a->base + a->p->ranges[i].hi;
        uint32_t bad = (uint32_t)((lo | hi) & 3);
        int n = (int)((hi - lo) >> 2);
        const uint32_t *t = c->shared_writer + (lo >> 2);
        uint32_t *r = c->shared_reader + (lo >> 2);
        for (int k = 0; k < n; k++)
            bad |= (uint32_t)(t[k] < floor) | (uint32_t)((t[k] & 15) != 15) | foreign(t[k], mine);
        if (bad) {
            if (load_range_carefully(w, a, lo, hi, mine)) return -1;
            continue;
        }
        uint32_t many = (mine & ~(uint32_t)TAG_WARP_MASK) | TAG_MANY | 15, one = mine | 15;
        for (int k = 0; k < n; k++) r[k] = foreign(r[k], mine) ? many : one;
    }
    return 0;
}

/* A word that another warp touched in this phase: only bytes that change make it a race. */
static int store_lane_fault(Warp *w, Access *a, int lane, AccessChanged *changed)
{
    Cta *c = &w->x->cta;
    int64_t lo = (int64_t)access_address(a, lane), hi = lo + a->size;
    uint32_t mine = my_tag(w);
    for (int64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
        uint32_t bytes = byte_mask(word, lo, hi), t = c->shared_writer[word],
                 r = c->shared_reader[word];
        int write_write = foreign(t, mine) && t & bytes, read_write = foreign(r, mine) && r & bytes;
        if ((!write_write && !read_write) || !changed(a, w, lane, c->shared + lo)) continue;
        uint32_t warp = (write_write ? t : r) >> TAG_WARP_SHIFT & 63;
        char who[32] = "threads of several warps";
        if (warp < 32) snprintf(who, sizeof who, "a thread of warp %u", warp);
        exec_fault(w, a->in, lane, OUTCOME_RACE,
                   "writes shared memory at offset %lld, which %s %s with no barrier between",
                   (long long)lo, who,
                   write_write ? "also writes, another value,"
                   : warp < 32 ? "reads"
                               : "read");
        return -1;
    }
    return 0;
}

static void mark_partial(Cta *c, uint32_t word, uint32_t mine, uint32_t bytes)
{
    uint32_t t = c->shared_writer[word];
    c->shared_bytes[word] =
        (unsigned char)(t < c->floor ? bytes : (uint32_t)c->shared_bytes[word] | (t & 15) | bytes);
    c->shared_writer[word] = mine | bytes | (((t ^ mine) & ~15u) == 0 ? t & 15 : 0);
}

static void mark_range(Cta *c, int64_t lo, int64_t hi, uint32_t mine)
{
    if ((lo | hi) & 3) {
        for (int64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
            uint32_t bytes = byte_mask(word, lo, hi);
            if (bytes == 15)
                c->shared_writer[word] = mine | 15;
            else
                mark_partial(c, (uint32_t)word, mine, bytes);
        }
        return;
    }
    int n = (int)((hi - lo) >> 2);
    uint32_t *t = c->shared_writer + (lo >> 2);
    for (int k = 0; k < n; k++) t[k] = mine | 15;
}

int shared_check_store(Warp *w, Access *a, AccessChanged *changed)
{
    Cta *c = &w->x->cta;
    uint32_t mine = changed ? my_tag(w) : c->floor,
             suspicious = 0; /* volatile: written, but by nobody in particular */
    for (int i = 0; i < a->p->n_ranges && changed; i++) {
        int64_t lo = (int64_t)a->base + a->p->ranges[i].lo,
                hi = (int64_t)a->base + a->p->ranges[i].hi;
        int n = (int)(((hi - 1) >> 2) - (lo >> 2)) + 1;
        const uint32_t *t = c->shared_writer + (lo >> 2), *r = c->shared_reader + (lo >> 2);
        for (int k = 0; k < n; k++) suspicious |= foreign(t[k], mine) | foreign(r[k], mine);
    }
    if (suspicious)
        for (uint32_t m = a->mask; m; m &= m - 1)
            if (store_lane_fault(w, a, __builtin_ctz(m), changed)) return -1;
    for (int i = 0; i < a->p->n_ranges; i++)
        mark_range(c, (int64_t)a->base + a->p->ranges[i].lo, (int64_t)a->base + a->p->ranges[i].hi,
                   mine);
    return 0;
}

/* Atomics order themselves; they must not meet a plain write of this phase, and count as reads of
 * it. */
int shared_check_atomic(Warp *w, Access *a)
{
    uint32_t mine = my_tag(w);
    for (int i = 0; i < a->p->n_ranges; i++)
        if (load_range_carefully(w, a, (int64_t)a->base + a->p->ranges[i].lo,
                                 (int64_t)a->base + a->p->ranges[i].hi, mine))
            return -1;
    return 0;
}

/* Epochs have 22 bits: when they run out, what is written stays written and the rest is forgotten.
 */
void shared_renew_epochs(Exec *x)
{
    Cta *c = &x->cta;
    for (uint32_t i = 0; i < (x->shared_cap + 3) / 4; i++) {
        uint32_t t = c->shared_writer[i];
        c->shared_writer[i] = t && t >= c->floor ? 1u << 10 | (t & 15) : 0;
        c->shared_reader[i] = 0;
    }
    c->floor = 1u << 10;
    c->epoch = 2;
}
