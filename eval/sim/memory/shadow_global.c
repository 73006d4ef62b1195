/* Global memory's shadow: 64-bit tags of a word's last writer and reader, as
 * block tag << 32 | phase << 10 | warp << 4 | bytes. Block tags grow and are never used twice, so
 * tags below the launch's floor are history; the floor itself as a reader's tag means "several
 * blocks". A block takes a new tag at each fence: what it wrote under the old one is then released,
 * and a block that has since executed an atomic, a volatile access or a fence may read it. That is
 * what the usual last-block and look-back patterns do; a plain access with no such order is a race.
 */
#pragma GCC optimize("O3")
#include "eval/sim/memory/access.h"

#include <stdio.h>

static inline uint64_t my_tag(const Warp *w)
{
    const Cta *c = &w->x->cta;
    return (uint64_t)c->tag << 32 | (uint64_t)(c->phase & 0x3fffff) << TAG_PHASE_SHIFT |
           (uint64_t)w->index << TAG_WARP_SHIFT;
}

static inline uint32_t word_bytes(uint64_t word, uint64_t lo, uint64_t hi)
{
    uint32_t m = 15;
    if (lo > word * 4) m &= 15u << (lo - word * 4);
    if (hi < word * 4 + 4) m &= 15u >> (word * 4 + 4 - hi);
    return m;
}

/* Does an access by this warp conflict with a tag? 0 no, 1 within the block, 2 another block. */
static int conflict(const Warp *w, uint64_t tag, uint32_t bytes)
{
    const DevMem *mem = w->x->mem;
    const Cta *c = &w->x->cta;
    uint32_t block_tag = (uint32_t)(tag >> 32);
    if (block_tag < mem->tag_floor || !(tag & bytes)) return 0;
    if (block_tag == mem->tag_floor) /* several blocks */
        return c->acquired ? 0 : 2;
    uint32_t i = block_tag - mem->tag_floor;
    if (mem->tag_block[i] != (uint32_t)c->linear)
        return mem->tag_released[i] && c->acquired ? 0 : 2;
    uint64_t mine = my_tag(w);
    if ((tag ^ mine) >> TAG_PHASE_SHIFT & 0x3fffff ||
        (tag >> TAG_WARP_SHIFT & 63) == (uint64_t)w->index)
        return 0;
    return block_tag == c->tag || !c->acquired;
}

static void race_fault(Warp *w, const Access *a, int lane, int is_write, uint64_t tag,
                       int other_wrote, int kind)
{
    const DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->hit];
    unsigned long long offset = access_address(a, lane) - al->base;
    uint32_t block_tag = (uint32_t)(tag >> 32);
    char who[48] = "threads of other blocks";
    if (block_tag != mem->tag_floor && kind == 2)
        snprintf(who, sizeof who, "block %u", mem->tag_block[block_tag - mem->tag_floor]);
    else if (kind == 1)
        snprintf(who, sizeof who, "another warp of the block");
    exec_fault(w, a->in, lane, OUTCOME_RACE,
               "%s %s at offset %llu, which %s %s in the same launch with no order between",
               is_write ? "writes" : "reads", al->label, offset, who,
               other_wrote ? "also writes" : "reads");
}

static int lane_of_word(const Access *a, uint64_t word)
{
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t lo = access_address(a, lane) - ARENA_BASE;
        if (lo < word * 4 + 4 && lo + (uint64_t)a->size > word * 4) return lane;
    }
    return a->first;
}

static int check_written(Warp *w, const Access *a, uint64_t lo, uint64_t hi)
{
    const DevMem *mem = w->x->mem;
    if (devmem_is_written(mem, lo, hi)) return 0;
    const Alloc *al = &mem->allocs[a->mo->hit];
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = access_address(a, lane);
        if (devmem_is_written(mem, at - ARENA_BASE, at - ARENA_BASE + (uint64_t)a->size)) continue;
        exec_fault(w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
                   "reads %d bytes at offset %llu of %s before anything was written there", a->size,
                   (unsigned long long)(at - al->base), al->label);
        return -1;
    }
    return 0;
}

static void note_reader(DevMem *mem, const Cta *c, uint64_t word, uint64_t mine, uint32_t bytes)
{
    uint64_t r = mem->reader[word];
    uint32_t tag = (uint32_t)(r >> 32);
    if (tag < mem->tag_floor)
        mem->reader[word] = mine | bytes;
    else if (tag == mem->tag_floor)
        mem->reader[word] = r | bytes;
    else if (mem->tag_block[tag - mem->tag_floor] != (uint32_t)c->linear)
        mem->reader[word] = (uint64_t)mem->tag_floor << 32 | (r & 15) | bytes;
    else if ((r ^ mine) >> TAG_PHASE_SHIFT)
        mem->reader[word] = mine | bytes;
    else if ((r ^ mine) >> TAG_WARP_SHIFT)
        mem->reader[word] = (mine & ~(uint64_t)TAG_WARP_MASK) | TAG_MANY | (r & 15) | bytes;
    else
        mem->reader[word] = r | bytes;
}

static int load_range_carefully(Warp *w, Access *a, uint64_t lo, uint64_t hi, uint64_t mine)
{
    DevMem *mem = w->x->mem;
    for (uint64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
        uint32_t bytes = word_bytes(word, lo, hi);
        int kind = conflict(w, mem->writer[word], bytes);
        if (kind) {
            race_fault(w, a, lane_of_word(a, word), 0, mem->writer[word], 1, kind);
            return -1;
        }
        note_reader(mem, &w->x->cta, word, mine, bytes);
    }
    return 0;
}

int global_check_load(Warp *w, Access *a)
{
    DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->hit];
    uint64_t mine = my_tag(w), floor = (uint64_t)mem->tag_floor << 32;
    uint64_t base = a->base - ARENA_BASE;
    int look = !al->read_only && a->mo->order == ORDER_WEAK;
    if (al->all_written && !look) return 0;
    for (int i = 0; i < a->p->n_ranges; i++) {
        uint64_t lo = base + (uint64_t)(int64_t)a->p->ranges[i].lo,
                 hi = base + (uint64_t)(int64_t)a->p->ranges[i].hi;
        if (!al->all_written && check_written(w, a, lo, hi)) return -1;
        if (!look) continue;
        uint64_t careful = (lo | hi) & 3, one = mine | 15;
        const uint64_t *t = mem->writer + (lo >> 2);
        uint64_t *r = mem->reader + (lo >> 2);
        int n = (int)((hi - lo) >> 2);
        for (int k = 0; k < n; k++)
            careful |= (uint64_t)(t[k] >= floor && (t[k] | 15) != one) |
                       (uint64_t)(r[k] >= floor && r[k] != one);
        if (careful) {
            if (load_range_carefully(w, a, lo, hi, mine)) return -1;
            continue;
        }
        for (int k = 0; k < n; k++) r[k] = one;
    }
    return 0;
}

int global_check_read_only(Warp *w, const Access *a)
{
    const DevMem *mem = w->x->mem;
    uint64_t base = a->base - ARENA_BASE, floor = (uint64_t)mem->tag_floor << 32;
    for (int i = 0; i < a->p->n_ranges; i++) {
        uint64_t lo = base + (uint64_t)(int64_t)a->p->ranges[i].lo,
                 hi = base + (uint64_t)(int64_t)a->p->ranges[i].hi;
        for (uint64_t word = lo >> 2; word <= (hi - 1) >> 2; word++)
            if (mem->writer[word] >= floor && mem->writer[word] & word_bytes(word, lo, hi)) {
                int lane = lane_of_word(a, word);
                const Alloc *al = &mem->allocs[a->mo->hit];
                exec_fault(w, a->in, lane, OUTCOME_RACE,
                           "reads %s at offset %llu through the read-only cache (__ldg, or const "
                           "__restrict__) after a write in the same launch",
                           al->label, (unsigned long long)(access_address(a, lane) - al->base));
                return -1;
            }
    }
    return 0;
}

static int store_lane_check(Warp *w, Access *a, int lane, AccessChanged *changed)
{
    DevMem *mem = w->x->mem;
    uint64_t lo = access_address(a, lane) - ARENA_BASE, hi = lo + (uint64_t)a->size;
    for (uint64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
        uint32_t bytes = word_bytes(word, lo, hi);
        int writer = conflict(w, mem->writer[word], bytes),
            reader = conflict(w, mem->reader[word], bytes);
        if ((writer || reader) && changed(a, w, lane, mem->data + lo)) {
            race_fault(w, a, lane, 1, writer ? mem->writer[word] : mem->reader[word], writer != 0,
                       writer ? writer : reader);
            return -1;
        }
    }
    return 0;
}

static void mark_writer(DevMem *mem, uint64_t lo, uint64_t hi, uint64_t mine)
{
    if ((lo | hi) & 3) {
        for (uint64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
            uint64_t t = mem->writer[word];
            uint32_t bytes = word_bytes(word, lo, hi);
            mem->writer[word] = mine | bytes | (((t ^ mine) >> TAG_WARP_SHIFT) == 0 ? t & 15 : 0);
        }
        return;
    }
    int n = (int)((hi - lo) >> 2);
    uint64_t *t = mem->writer + (lo >> 2);
    for (int k = 0; k < n; k++) t[k] = mine | 15;
}

int global_check_store(Warp *w, Access *a, AccessChanged *changed)
{
    DevMem *mem = w->x->mem;
    Cta *c = &w->x->cta;
    const Alloc *al = &mem->allocs[a->mo->hit];
    uint64_t mine = my_tag(w), floor = (uint64_t)mem->tag_floor << 32, one = mine | 15;
    uint64_t base = a->base - ARENA_BASE;
    int ordered = a->mo->order != ORDER_WEAK;
    uint64_t suspicious = 0;
    for (int i = 0; i < a->p->n_ranges && !ordered; i++) {
        uint64_t lo = base + (uint64_t)(int64_t)a->p->ranges[i].lo,
                 hi = base + (uint64_t)(int64_t)a->p->ranges[i].hi;
        int n = (int)(((hi - 1) >> 2) - (lo >> 2)) + 1;
        const uint64_t *t = mem->writer + (lo >> 2), *r = mem->reader + (lo >> 2);
        for (int k = 0; k < n; k++)
            suspicious |= (uint64_t)(t[k] >= floor && (t[k] | 15) != one) |
                          (uint64_t)(r[k] >= floor && (r[k] | 15) != one);
    }
    if (suspicious)
        for (uint32_t m = a->mask; m; m &= m - 1)
            if (store_lane_check(w, a, __builtin_ctz(m), changed)) return -1;
    for (int i = 0; i < a->p->n_ranges; i++) {
        uint64_t lo = base + (uint64_t)(int64_t)a->p->ranges[i].lo,
                 hi = base + (uint64_t)(int64_t)a->p->ranges[i].hi;
        if (!ordered) mark_writer(mem, lo, hi, mine);
        if (!al->all_written) devmem_mark_written(mem, lo, hi);
    }
    c->stored = 1;
    return 0;
}

int global_check_atomic(Warp *w, Access *a)
{
    DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->hit];
    uint64_t base = a->base - ARENA_BASE;
    w->x->cta.acquired = 1;
    for (int i = 0; i < a->p->n_ranges; i++) {
        uint64_t lo = base + (uint64_t)(int64_t)a->p->ranges[i].lo,
                 hi = base + (uint64_t)(int64_t)a->p->ranges[i].hi;
        if (!al->all_written && check_written(w, a, lo, hi)) return -1;
        for (uint64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
            uint64_t t = mem->writer[word];
            uint32_t i_tag = (uint32_t)(t >> 32);
            if (i_tag < mem->tag_floor) continue;
            int same = mem->tag_block[i_tag - mem->tag_floor] == (uint32_t)w->x->cta.linear;
            int kind = same                                        ? conflict(w, t, 15)
                       : mem->tag_released[i_tag - mem->tag_floor] ? 0
                                                                   : 2;
            if (kind) {
                race_fault(w, a, lane_of_word(a, word), 1, t, 1, kind);
                return -1;
            }
        }
    }
    return 0;
}

void global_fence(Warp *w)
{
    Cta *c = &w->x->cta;
    DevMem *mem = w->x->mem;
    c->acquired = 1;
    w->x->counts.fences++;
    if (c->stored) {
        mem->tag_released[c->tag - mem->tag_floor] = 1;
        c->tag = devmem_take_tag(mem, (uint32_t)c->linear);
        c->stored = 0;
    }
}

/* ---- counters: sectors of the request, first touches, the small L1 ---- */

static void count_load_sector(Exec *x, uint64_t sector)
{
    DevMem *mem = x->mem;
    SimCounts *n = &x->counts;
    uint64_t key = (uint64_t)x->cta.tag << 32 | sector, *slot = &mem->l1[sector % L1_SECTORS];
    n->global_load_sectors++;
    if (*slot == key) {
        n->l1_hit_sectors++;
        return;
    }
    *slot = key;
    uint32_t t = mem->touched[sector];
    if (t >> 2 != mem->launch_id) t = mem->launch_id << 2;
    if (t & 3)
        n->l2_load_sectors++;
    else
        n->dram_read_sectors++;
    mem->touched[sector] = t | 1;
}

static void count_store_sector(Exec *x, uint64_t sector)
{
    DevMem *mem = x->mem;
    uint32_t t = mem->touched[sector];
    if (t >> 2 != mem->launch_id) t = mem->launch_id << 2;
    x->counts.dram_write_sectors += !(t & 2);
    mem->touched[sector] = t | 2;
}

/* Atomics on one sector go one after another, wherever they come from, and read before they write.
 */
static void count_atomic_sector(Exec *x, uint64_t sector, uint32_t lanes)
{
    DevMem *mem = x->mem;
    uint64_t launch = (uint64_t)mem->launch_id << 32, *slot = &mem->atomics[sector];
    if (*slot >> 32 != mem->launch_id) *slot = launch;
    *slot += lanes;
    if (*slot - launch > x->counts.global_atomic_hottest)
        x->counts.global_atomic_hottest = *slot - launch;
    x->counts.dram_read_sectors += mem->touched[sector] >> 2 != mem->launch_id;
    count_store_sector(x, sector);
}

void global_count(Warp *w, const Access *a, int kind)
{
    Exec *x = w->x;
    SimCounts *n = &x->counts;
    uint64_t base = a->base - ARENA_BASE, next = 0, sectors = 0, line = UINT64_MAX, lines = 0;
    uint64_t bytes = (uint64_t)__builtin_popcount(a->mask) * (uint64_t)a->size;
    for (int i = 0; i < a->p->n_ranges; i++) {
        uint64_t s = (base + (uint64_t)(int64_t)a->p->ranges[i].lo) >> 5;
        uint64_t last = (base + (uint64_t)(int64_t)a->p->ranges[i].hi - 1) >> 5;
        for (s = s < next ? next : s; s <= last; s++, sectors++) {
            lines += s >> 2 != line;
            line = s >> 2;
            if (kind == MEM_LOAD)
                count_load_sector(x, s);
            else if (kind == MEM_STORE)
                count_store_sector(x, s);
            else
                count_atomic_sector(x, s, a->p->most);
        }
        next = last + 1 > next ? last + 1 : next;
    }
    uint64_t turns = a->p->wavefronts > (lines + 3) / 4 ? a->p->wavefronts : (lines + 3) / 4;
    if (kind == MEM_LOAD) {
        n->global_load_requests++;
        n->global_load_wavefronts += turns;
        n->global_load_bytes += bytes;
    } else if (kind == MEM_STORE) {
        n->global_store_requests++;
        n->global_store_wavefronts += turns;
        n->global_store_sectors += sectors;
        n->global_store_bytes += bytes;
    } else {
        n->global_atomic_requests++;
        n->global_atomic_sectors += sectors;
        n->global_atomic_serial += a->p->most;
    }
}
