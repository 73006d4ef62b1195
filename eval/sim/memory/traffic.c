/* The counted L1 has the share of one resident block. It is empty at the start of each block: its
 * entries carry the block's tag. */
#pragma GCC optimize("O3")
#include "eval/sim/memory/traffic.h"

#include "eval/sim/machine/values.h"

/* Is the sector in L1? It is from now on. */
static int in_l1(DevMem *mem, uint64_t tag, uint64_t sector)
{
    uint64_t line = sector >> 2, bit = 1ull << (sector & 3), key = tag << 32 | line << 4;
    uint32_t mixed = (uint32_t)line * 0x9e3779b1u;
    uint64_t *set = mem->l1 + ((mixed >> 16) & (mem->l1_sets - 1)) * L1_WAYS, found;
    int way = 0;
    while (way < L1_WAYS - 1 && (set[way] & ~15ull) != key) way++;
    found = (set[way] & ~15ull) == key ? set[way] : key;
    for (; way > 0; way--) set[way] = set[way - 1];
    set[0] = found | bit;
    return (found & bit) != 0;
}

/* The block reads the sector of the buffer for the first time. */
static void count_part(const DevMem *mem, Alloc *al, uint64_t sector)
{
    struct AllocPart *part = &al->part[(sector - ((al->base - ARENA_BASE) >> 5)) >> al->part_shift];
    part->blocks += part->launch_id != mem->launch_id;
    part->launch_id = mem->launch_id;
    part->read++;
}

/* How many loads lie between two of a sector, where the block makes no more of them than another one before
 * it: ages do not come again. What the block before has read, too, such as weights, is no load here: many
 * blocks read it. Returns `touched` with the age of now. */
static uint32_t count_age(DevMem *mem, SimCounts *n, uint32_t touched, int is_near)
{
    const uint32_t mask = (TOUCH_AGES - 1) << TOUCH_AGE;
    if (is_near) return (touched & ~mask) | (uint32_t)(mem->age << TOUCH_AGE & mask);
    mem->loads++;
    if (!mem->age_length || mem->age >= TOUCH_AGES) return touched & ~mask;
    if (touched & TOUCH_READ) {
        n->aged_sectors++;
        n->aged_loads += (mem->age - ((touched & mask) >> TOUCH_AGE)) * mem->age_length;
    }
    if (mem->loads == mem->next_age) mem->age++, mem->next_age += mem->age_length;
    return (touched & ~mask) | (uint32_t)(mem->age << TOUCH_AGE & mask);
}

/* Returns 1 when the sector is not in L1, or when the load does not look there. What the block reads past L1
 * once more waits for the request before it. */
static int count_load_sector(Exec *x, Alloc *al, uint64_t sector, int past_l1)
{
    DevMem *mem = x->mem;
    SimCounts *n = &x->counts;
    n->global_load_sectors++;
    if (!past_l1 && in_l1(mem, x->cta.tag, sector)) {
        n->l1_hit_sectors++;
        return 0;
    }
    uint32_t t = mem->touched[sector], is_near = 0;
    if (t >> TOUCH_ID != mem->launch_id) {
        is_near = t >> TOUCH_ID == mem->launch_id - 1 && t & TOUCH_READ;
        n->near_sectors += is_near;
        t = mem->launch_id << TOUCH_ID;
    }
    n->again_sectors += past_l1 == PAST_L1 && t & TOUCH_READ;
    n->strong_sectors += past_l1 == PAST_L1_STRONG && t & TOUCH_READ;
    n->stored_sectors += past_l1 == PAST_L1_STRONG && t & TOUCH_WRITTEN;
    if (t & (TOUCH_READ | TOUCH_WRITTEN))
        n->l2_load_sectors++;
    else
        n->dram_read_sectors++, count_part(mem, al, sector);
    mem->touched[sector] = count_age(mem, n, t, (int)is_near) | TOUCH_READ;
    return 1;
}

static void count_store_sector(Exec *x, uint64_t sector)
{
    DevMem *mem = x->mem;
    uint32_t t = mem->touched[sector];
    if (t >> TOUCH_ID != mem->launch_id) t = mem->launch_id << TOUCH_ID;
    x->counts.dram_write_sectors += !(t & TOUCH_WRITTEN);
    mem->touched[sector] = t | TOUCH_WRITTEN;
}

/* Notes the bytes [lo, hi) of the arena as written by the launch. */
static void cover(Exec *x, uint64_t lo, uint64_t hi)
{
    DevMem *mem = x->mem;
    SimCounts *n = &x->counts;
    uint64_t launch = (uint64_t)mem->launch_id << 32;
    for (uint64_t s = lo >> 5; s <= (hi - 1) >> 5; s++) {
        uint64_t *slot = &mem->covered[s], first = s << 5;
        uint32_t bits = UINT32_MAX, before = *slot >> 32 == mem->launch_id ? (uint32_t)*slot : 0;
        if (lo > first) bits &= UINT32_MAX << (lo - first);
        if (hi < first + 32) bits &= UINT32_MAX >> (first + 32 - hi);
        if (!before && mem->touched[s] >> TOUCH_ID == mem->launch_id &&
            mem->touched[s] & TOUCH_READ)
            bits = UINT32_MAX; /* L2 has read the sector */
        uint32_t after = before | bits;
        n->part_sectors += (uint64_t)(after != UINT32_MAX) - (before && before != UINT32_MAX);
        n->covered_bytes += (uint64_t)__builtin_popcount(after & ~before);
        *slot = launch | after;
    }
}

/* Atomics on one line, and on its neighbour in 256 bytes, run one after another, from whichever block. */
static void count_atomic_line(Exec *x, uint64_t line, uint32_t turns)
{
    DevMem *mem = x->mem;
    uint64_t launch = (uint64_t)mem->launch_id << 32, *slot = &mem->atomics[line];
    if (*slot >> 32 != mem->launch_id) {
        x->counts.atomic_lines++;
        x->counts.atomic_first_lines += *slot >> 32 < mem->first_id;
        x->counts.atomic_near_lines += *slot >> 32 == mem->launch_id - 1;
        *slot = launch;
    }
    *slot += turns;
    x->counts.atomic_turns += turns;
    if (*slot - launch > x->counts.global_atomic_hottest) {
        x->counts.global_atomic_hottest = *slot - launch;
        x->counts.hottest_line = line;
    }
}

/* The turns of a request on a line: one for each sector and for each further lane on the same address; of
 * floats, and of what returns a value, two and a half for such a lane. A request of several lanes that is not
 * merged has two at least (an H200, 2026-11-29 and 2026-11-30, atomic_* of tests/bench/rates). */
static uint32_t turns_of(const Access *a, uint32_t sectors)
{
    const MemOp *mo = a->mo;
    int simple =
        mo->unread && !mo->packed && mo->type < T_F16 && mo->element == 4 && mo->atom != ATOM_CAS;
    int alone = mo->merged || !(a->mask & (a->mask - 1));
    uint32_t further = alone ? 0 : a->p->max_same - 1u,
             turns = sectors + (simple ? further : 5 * further / 2);
    return turns < 2 && !alone ? 2 : turns;
}

/* Is the atomic a loop of a load and of comparisons? So is the sum of one half. */
static int is_loop(const MemOp *mo)
{
    return mo->element == 2 && !mo->packed && mo->atom != ATOM_CAS;
}

/* What such a loop takes beside the comparison: a load of what was stored, waits, and what is between. */
static void count_loop(Warp *w, uint64_t sectors)
{
    enum { WAITS = 2, SLOTS = 20, CYCLES = 120 };
    SimCounts *n = &w->x->counts;
    n->global_load_requests++, n->global_load_wavefronts++;
    n->global_load_sectors += sectors, n->l2_load_sectors += sectors;
    n->strong_sectors += sectors, n->stored_sectors += sectors;
    n->expansion_slots += SLOTS;
    w->chain += CYCLES;
    w->global_waits += WAITS, w->open_waits += WAITS;
    w->l2_requests += WAITS;
}

/* The work of a request is what it takes of L2, in hundredths of what a sector of an atomic takes whose
 * result is read. One that nothing reads takes half, and a comparison more (an H200, 2026-11-29). */
static void count_atomic(Warp *w, const MemOp *mo, uint64_t lines, uint64_t sectors)
{
    enum { LINE = 57, SECTOR = 34, REDUCTION = 10, RETURNS = 18, COMPARES = 30 };
    SimCounts *n = &w->x->counts;
    const int compares = mo->atom == ATOM_CAS || is_loop(mo);
    uint64_t by = compares ? COMPARES : RETURNS;
    if (mo->unread && !mo->packed && !compares) by = REDUCTION;
    n->global_atomic_requests++;
    n->global_atomic_sectors += sectors;
    n->global_atomic_work += (LINE * lines + SECTOR * sectors) * by / REDUCTION;
    if (is_loop(mo)) count_loop(w, sectors);
}

/* Atomics read before they write. */
static void count_atomic_sector(Exec *x, uint64_t sector)
{
    DevMem *mem = x->mem;
    x->counts.dram_read_sectors += mem->touched[sector] >> TOUCH_ID != mem->launch_id;
    count_store_sector(x, sector);
    cover(x, sector << 5, (sector + 1) << 5);
}

static void cover_stored(Exec *x, const Access *a, uint64_t base)
{
    for (int i = 0; i < a->p->n_ranges; i++)
        cover(x, base + (uint64_t)(int64_t)a->p->ranges[i].lo,
              base + (uint64_t)(int64_t)a->p->ranges[i].hi);
}

/* The counts of sectors that a block touches for the first time. */
typedef struct {
    uint64_t read, written, near;
} Distinct;

static Distinct distinct_sectors(const SimCounts *n)
{
    return (Distinct){n->dram_read_sectors, n->dram_write_sectors, n->near_sectors};
}

static void add_distinct(Alloc *al, const Distinct *before, const SimCounts *n)
{
    al->read_sectors += n->dram_read_sectors - before->read;
    al->near_sectors += n->near_sectors - before->near;
    al->written_sectors += n->dram_write_sectors - before->written;
}

/* Does L1 merge a store with the one before, since that was the warp's last access and to the same sectors?
 * line: 1 + the one that it is to; 0: several. */
static int merges_with_last(Warp *w, uint64_t line, uint32_t sectors)
{
    int merges = line && w->stored >> 4 == line && !(sectors & ~w->stored & 15);
    if (!merges) w->stored = line ? line << 4 | sectors : 0;
    return merges;
}

void traffic_count(Warp *w, const Access *a, int kind)
{
    Exec *x = w->x;
    if (!x->counted) return;
    uint32_t serial = a->mo->merged ? 1 : a->p->max_same, of_line = 0, mask = 0;
    SimCounts *n = &x->counts;
    uint64_t base = a->base - ARENA_BASE, next = 0, sectors = 0, line = UINT64_MAX, lines = 0;
    uint64_t bytes = (uint64_t)__builtin_popcount(a->mask) * (uint64_t)a->size;
    const Distinct before = distinct_sectors(n);
    if (kind != MEM_STORE) w->stored = 0;
    uint64_t pair = UINT64_MAX, past_l1 = n->dram_read_sectors + n->l2_load_sectors;
    Alloc *al = &x->mem->allocs[a->mo->last_alloc];
    for (int i = 0; i < a->p->n_ranges; i++) {
        uint64_t s = (base + (uint64_t)(int64_t)a->p->ranges[i].lo) >> 5;
        uint64_t last = (base + (uint64_t)(int64_t)a->p->ranges[i].hi - 1) >> 5;
        for (s = s < next ? next : s; s <= last; s++, sectors++) {
            if (s >> 2 != line) {
                if (kind == MEM_ATOM && lines)
                    count_atomic_line(x, line >> 1, turns_of(a, of_line));
                line = s >> 2, lines++, of_line = 0;
            }
            of_line++, mask |= 1u << (s & 3);
            if (kind == MEM_LOAD) {
                if (!count_load_sector(x, al, s, a->mo->past_l1)) continue;
                n->lone_sectors += s >> 1 == pair ? UINT64_MAX : 1;
                pair = s >> 1;
            } else if (kind == MEM_STORE)
                count_store_sector(x, s);
            else
                count_atomic_sector(x, s);
        }
        next = last + 1 > next ? last + 1 : next;
    }
    if (kind == MEM_ATOM && lines) count_atomic_line(x, line >> 1, turns_of(a, of_line));
    if (kind == MEM_STORE) cover_stored(x, a, base);
    int merges = kind == MEM_STORE && merges_with_last(w, lines == 1 ? line + 1 : 0, mask);
    add_distinct(al, &before, n);
    al->asked += kind == MEM_ATOM ? 0 : (uint64_t)a->p->distinct * (uint64_t)a->size;
    /* A wavefront covers at most four lines of 128 bytes. */
    InstTraffic *t = a->mo->traffic;
    if (t) {
        t->requests++;
        t->bytes += bytes;
        t->sectors += sectors;
        t->dram += n->dram_read_sectors - before.read + n->dram_write_sectors - before.written;
        t->l2 += kind == MEM_LOAD ? n->dram_read_sectors + n->l2_load_sectors - past_l1 : sectors;
        t->serial += kind == MEM_ATOM ? serial : 0;
    }
    uint64_t wavefronts = a->p->wavefronts > (lines + 3) / 4 ? a->p->wavefronts : (lines + 3) / 4;
    if (kind == MEM_LOAD) {
        x->mem->assumed |=
            x->mem->assume && !x->cooperative && (al->atomics || (al->changed && al->all_written));
        n->global_load_requests++;
        if (n->dram_read_sectors > before.read)
            w->dram_requests++, w->dram_buffer = a->mo->last_alloc;
        else if (n->dram_read_sectors + n->l2_load_sectors > past_l1)
            w->l2_requests++;
        n->global_load_wavefronts += wavefronts;
        n->global_load_bytes += bytes;
    } else if (kind == MEM_STORE) {
        n->global_store_requests++;
        n->global_store_wavefronts += wavefronts;
        if (!merges) n->global_store_sectors += sectors, n->global_store_lines += lines;
        n->global_store_bytes += bytes;
    } else {
        al->atomics++;
        w->l2_requests++;
        count_atomic(w, a->mo, lines, sectors);
        n->global_atomic_serial += serial;
    }
}

/* Is the line in the cache of 2 KiB? It is from now on. */
static int is_near(ConstCache *c, uint32_t line)
{
    uint16_t *set = c->near[line % CONST_SETS];
    int way = 0, found;
    while (way < CONST_WAYS - 1 && set[way] != line + 1) way++;
    found = set[way] == line + 1;
    for (; way > 0; way--) set[way] = set[way - 1];
    set[0] = (uint16_t)(line + 1);
    return found;
}

/* A miss of the cache of 2 KiB takes 90 to 100 cycles (2026-11-30), of which the instruction's latency has
 * 30. One that reads on behind a line that it has read more than once does not wait (an H200, 2026-11-29,
 * constant_uniform of tests/bench/rates). */
void traffic_count_constants(Warp *w, const Access *a)
{
    enum { MISS = 65 };
    ConstCache *c = &w->x->constants;
    int misses = 0, comes = 0;
    if (!w->x->counted) return;
    for (uint32_t m = a->mask; m; m &= m - 1) {
        uint64_t line = (a->base + (uint64_t)(int64_t)a->p->delta[__builtin_ctz(m)]) / CONST_LINE;
        if (line >= CONST_LINES) continue;
        const int near = is_near(c, (uint32_t)line), next = c->is_read_on && line == c->last + 1u;
        c->is_read_on = near;
        c->last = (uint32_t)line;
        misses |= !near && !next;
        comes |= !near && !next && !c->has_come[line];
        c->has_come[line] = 1;
    }
    if (misses) w->chain += MISS;
    if (comes) w->global_waits++, w->open_waits++, w->l2_requests++;
}

void traffic_start_block(Exec *x)
{
    if (x->cta.linear < x->sm_count) memset(&x->constants, 0, sizeof x->constants);
}
