/* The pattern of an access is kept with its instruction and rebuilt only when the lanes'
 * differences, the mask or the alignment change. */
#pragma GCC optimize("O3")
#include "eval/sim/memory/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/memory/shadow.h"

/* In thread-instructions: of a new pattern and its checks; of a page of memory that was not used lately; of
 * one that the launch has not used. */
enum { RANGE_COST = 24, FAR_COST = 250, FRESH_COST = 3500 };

enum { PATTERNS = 256 /* that are kept, in 110 kB */ };

/* ---- addresses ---- */

uint64_t access_lane_address(const Warp *w, const MemOp *mo, int lane)
{
    if (mo->address_kind == ADDRESS_FIXED) return (uint64_t)mo->offset;
    if (mo->address_kind == ADDRESS_64) return row64(w, mo->address)[lane] + (uint64_t)mo->offset;
    return (uint32_t)(row32(w, mo->address)[lane] + (uint32_t)mo->offset);
}

/* Fills in the differences from the first active lane's address, 0 for inactive lanes. Returns 0
 * when a difference does not fit. */
static int lane_deltas(const Warp *w, const MemOp *mo, uint32_t m, int first, int32_t *delta)
{
    if (mo->address_kind == ADDRESS_FIXED) {
        memset(delta, 0, sizeof(int32_t) * LANES);
        return 1;
    }
    if (mo->address_kind == ADDRESS_32) {
        const uint32_t *a = row32(w, mo->address);
        uint32_t b = a[first], wild = 0;
        for (int i = 0; i < LANES; i++) {
            uint32_t d = m >> i & 1 ? a[i] - b : 0;
            delta[i] = (int32_t)d;
            wild |= d + (1u << 30);
        }
        return wild >> 31 == 0;
    }
    const uint64_t *a = row64(w, mo->address);
    uint64_t b = a[first], wild = 0;
    if (m == FULL_MASK) {
        for (int i = 0; i < LANES; i++) {
            uint64_t d = a[i] - b;
            delta[i] = (int32_t)d;
            wild |= d + (1u << 30);
        }
    } else {
        for (int i = 0; i < LANES; i++) {
            uint64_t d = m >> i & 1 ? a[i] - b : 0;
            delta[i] = (int32_t)d;
            wild |= d + (1u << 30);
        }
    }
    return wild >> 31 == 0;
}

/* ---- patterns ---- */

static int sort_active(const int32_t *delta, uint32_t m, int32_t *sorted)
{
    int n = 0;
    for (; m; m &= m - 1) {
        int32_t v = delta[__builtin_ctz(m)];
        int k = n++;
        for (; k > 0 && sorted[k - 1] > v; k--) sorted[k] = sorted[k - 1];
        sorted[k] = v;
    }
    return n;
}

/* There are 32 banks of 4-byte words. A wavefront delivers one word of each bank, and one word to
 * each lane. *ideal: as many wavefronts as the distinct words need at least. */
static int count_wavefronts(const int32_t *sorted, int n, int size, uint32_t phase, int *ideal)
{
    uint8_t taken[32] = {0};
    int64_t last = INT64_MIN;
    int wavefronts = 0, words = 0;
    for (int i = 0; i < n; i++) {
        int64_t lo = ((int64_t)sorted[i] + phase) >> 2,
                hi = ((int64_t)sorted[i] + phase + size - 1) >> 2;
        for (int64_t word = lo > last ? lo : last + 1; word <= hi; word++) {
            int bank = (int)(word & 31);
            wavefronts = ++taken[bank] > wavefronts ? taken[bank] : wavefronts;
            last = word;
            words++;
        }
    }
    *ideal += (words + 31) / 32;
    return wavefronts;
}

/* Do all active lanes have the address of the lane whose number differs in bit 1, or 2? */
static int has_pairs(const int32_t *delta, uint32_t m, int bit)
{
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest), other = lane ^ bit;
        if (m >> other & 1 && delta[lane] != delta[other]) return 0;
    }
    return 1;
}

/* The data path returns one register a cycle: 8 bytes a lane take a half of the warp at a time, and
 * 16 bytes a quarter. Where lanes have their addresses in pairs, twice as many lanes go at once. */
static void add_wavefronts(Pattern *p, int32_t *sorted, int n)
{
    int size = p->size, lanes = size > 4 ? 4 * LANES / size : LANES, ideal = 0, sum = 0;
    if (!lanes) lanes = 1; /* a bulk copy: one lane, and more than a register each */
    if (lanes < LANES && (has_pairs(p->delta, p->mask, 1) || has_pairs(p->delta, p->mask, 2)))
        lanes *= 2;
    for (int i = 0; i < LANES; i += lanes) {
        uint32_t some = lanes < LANES ? ((1u << lanes) - 1) << i : FULL_MASK;
        if (lanes < LANES) n = sort_active(p->delta, p->mask & some, sorted);
        sum += count_wavefronts(sorted, n, size, p->phase, &ideal);
    }
    p->wavefronts = (uint16_t)sum;
    p->ideal = (uint16_t)ideal;
}

static void build_pattern(Pattern *p, const int32_t *delta, uint32_t m, int size, uint32_t phase)
{
    int32_t sorted[LANES];
    int n = sort_active(delta, m, sorted);
    memcpy(p->delta, delta, sizeof p->delta);
    p->mask = m;
    p->size = size;
    p->phase = phase;
    p->min = sorted[0];
    p->max = sorted[n - 1];
    p->uniform = p->min == p->max;
    p->consecutive = m == FULL_MASK;
    p->n_ranges = 0;
    p->distinct = p->max_same = 0;
    int32_t low_bits = 0;
    int run = 0;
    for (int i = 0; i < n; i++) {
        low_bits |= sorted[i];
        p->consecutive &= delta[i] == i * size;
        run = i && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        p->distinct += run == 1;
        p->max_same = run > p->max_same ? (uint16_t)run : p->max_same;
        if (p->n_ranges && sorted[i] <= p->ranges[p->n_ranges - 1].hi) {
            p->ranges[p->n_ranges - 1].hi = sorted[i] + size;
        } else {
            p->ranges[p->n_ranges].lo = sorted[i];
            p->ranges[p->n_ranges++].hi = sorted[i] + size;
        }
    }
    for (int h = 0; h < 2; h++) {
        int same = m == FULL_MASK, next = same;
        for (int i = 16 * h + 1; i < 16 * h + 16; i++) {
            same &= delta[i] == delta[i - 1];
            next &= delta[i] == delta[i - 1] + 4;
        }
        p->half[h] = (uint8_t)(same ? HALF_SAME : next ? HALF_ROW : HALF_ANY);
    }
    p->aligned = (low_bits & (size - 1)) == 0;
    add_wavefronts(p, sorted, n);
}

/* Warps that alternate, and addresses that are exchanged by a row's number, come back to a few patterns:
 * these are kept by their lanes. */
static void find_pattern(Exec *x, const int32_t *delta, const Access *a, Pattern *to)
{
    const uint32_t phase = (uint32_t)a->base & 3;
    uint32_t mixed = a->mask * 0x85ebca6bu + (uint32_t)a->size * 8 + phase;
    if (!x->patterns) x->patterns = memory_array(PATTERNS, sizeof *x->patterns);
    for (uint32_t i = 0; i < LANES; i++) mixed += (uint32_t)delta[i] * (2 * i + 1) * 0x9e3779b1u;
    Pattern *p = &x->patterns[mixed * 2654435761u / (UINT32_MAX / PATTERNS + 1)];
    if (p->mask != a->mask || p->size != a->size || p->phase != phase ||
        memcmp(p->delta, delta, sizeof p->delta))
        build_pattern(p, delta, a->mask, a->size, phase);
    *to = *p;
}

void access_release(Exec *x)
{
    free(x->patterns);
    x->patterns = NULL;
}

/* Are the differences those of the pattern, which were built of the same mask? */
static int has_deltas(const Warp *w, const MemOp *mo, uint32_t m, int first, const int32_t *delta)
{
    if (mo->address_kind == ADDRESS_32) {
        const uint32_t *a = row32(w, mo->address);
        uint32_t b = a[first], differs = 0;
        if (m == FULL_MASK)
            for (int i = 0; i < LANES; i++) differs |= (a[i] - b) ^ (uint32_t)delta[i];
        else
            for (int i = 0; i < LANES; i++)
                differs |= (m >> i & 1 ? a[i] - b : 0) ^ (uint32_t)delta[i];
        return !differs;
    }
    const uint64_t *a = row64(w, mo->address);
    uint64_t b = a[first], differs = 0;
    if (m == FULL_MASK)
        for (int i = 0; i < LANES; i++) differs |= (a[i] - b) ^ (uint64_t)(int64_t)delta[i];
    else
        for (int i = 0; i < LANES; i++)
            differs |= (m >> i & 1 ? a[i] - b : 0) ^ (uint64_t)(int64_t)delta[i];
    return !differs;
}

int access_begin(Warp *w, const Inst *in, uint32_t mask, Access *a)
{
    MemOp *mo = in->mem;
    int32_t delta[LANES];
    a->in = in;
    a->mo = mo;
    a->mask = mask;
    a->size = a->align = mo->element * mo->count;
    a->first = __builtin_ctz(mask);
    Pattern *p = &mo->pattern;
    a->p = p;
    a->base = access_lane_address(w, mo, a->first);
    uint32_t differs =
        (p->mask ^ mask) | (p->phase ^ ((uint32_t)a->base & 3)) | (uint32_t)(p->size ^ a->size);
    if (!differs &&
        (mo->address_kind == ADDRESS_FIXED || has_deltas(w, mo, mask, a->first, p->delta)))
        return 1;
    if (!lane_deltas(w, mo, mask, a->first, delta)) return 0;
    find_pattern(w->x, delta, a, p);
    exec_charge(w->x, RANGE_COST * p->n_ranges);
    return 1;
}

/* ---- spaces ---- */

PtxSpace access_space(uint64_t address)
{
    switch (address & WINDOW_MASK) {
    case SHARED_WINDOW: return SPACE_SHARED;
    case LOCAL_WINDOW: return SPACE_LOCAL;
    case CONST_WINDOW: return SPACE_CONST;
    case PARAM_WINDOW: return SPACE_PARAM;
    default: return SPACE_GLOBAL;
    }
}

/* Returns the space of a generic access, whose base becomes relative to the window; -1: the lanes
 * are in different spaces. */
static int generic_space(Access *a)
{
    uint64_t lo = a->base + (uint64_t)(int64_t)a->p->min,
             hi = a->base + (uint64_t)(int64_t)a->p->max;
    PtxSpace space = access_space(lo);
    if (space != access_space(hi)) return -1;
    if (space != SPACE_GLOBAL) a->base &= 0xffffffffu;
    return (int)space;
}

int access_resolve(Warp *w, const Inst *in, uint32_t m, Access *a)
{
    if (!access_begin(w, in, m, a)) return -1;
    return a->mo->space == SPACE_GENERIC ? generic_space(a) : a->mo->space;
}

/* ---- bounds ---- */

static const char *verb(int is_write)
{
    return is_write ? "writes" : "reads";
}

static int misaligned(Warp *w, const Access *a, int is_write)
{
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = access_address(a, lane);
        if (at & (uint64_t)(a->align - 1)) {
            return exec_fail(w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
                             "%s %d bytes at address 0x%llx, which is not a multiple of %d",
                             verb(is_write), a->size, (unsigned long long)at, a->align);
        }
    }
    return 0;
}

/* A lane's access that is in no buffer. Returns -1. */
static int wild_fault(Warp *w, const Access *a, int is_write)
{
    const Inst *in = a->in;
    int lane = a->first, size = a->size;
    uint64_t at = a->base;
    const DevMem *mem = w->x->mem;
    int i = devmem_near(mem, at);
    if (at < 65536)
        return exec_fail(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                         "%s %d bytes at address 0x%llx: a null pointer", verb(is_write), size,
                         (unsigned long long)at);
    if (i < 0 || at < ARENA_BASE || at >= ARENA_BASE + mem->bytes)
        return exec_fail(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                         "%s %d bytes at address 0x%llx, where there is no buffer", verb(is_write),
                         size, (unsigned long long)at);
    const Alloc *al = &mem->allocs[i];
    int64_t offset = (int64_t)(at - al->base);
    return exec_fail(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                     "%s %d bytes at offset %lld of %s, which has %llu bytes", verb(is_write), size,
                     (long long)offset, al->label, (unsigned long long)al->bytes);
}

static inline int inside(const Alloc *al, const Access *a)
{
    uint64_t lo = a->base + (uint64_t)(int64_t)a->p->min - al->base;
    uint64_t hi = a->base + (uint64_t)(int64_t)a->p->max + (uint64_t)a->size - al->base;
    return lo < al->bytes && hi <= al->bytes && lo < hi;
}

/* The host waits for memory that it has not used lately, and for the system where it is new. */
static void charge_far(Exec *x, const Access *a)
{
    DevMem *m = x->mem;
    int far = 0, fresh = 0;
    for (int i = 0; i < a->p->n_ranges; i++) {
        uint32_t page = (uint32_t)(shadow_range(a, i, ARENA_BASE).lo / DEVMEM_PAGE);
        uint32_t *near = &m->near[page * 2654435761u / (UINT32_MAX / DEVMEM_NEAR + 1)];
        if (*near == page + 1) continue;
        *near = page + 1;
        far++;
        fresh += !(m->seen[page / 8] >> page % 8 & 1);
        m->seen[page / 8] |= (unsigned char)(1 << page % 8);
    }
    if (far) exec_charge(x, far * FAR_COST + fresh * FRESH_COST);
}

int access_global_bounds(Warp *w, Access *a, int is_write)
{
    DevMem *mem = w->x->mem;
    MemOp *mo = a->mo;
    if (mo->last_alloc >= (uint32_t)mem->n_allocs || !inside(&mem->allocs[mo->last_alloc], a)) {
        int i = devmem_find(mem, a->base);
        if (i < 0 || !inside(&mem->allocs[i], a)) {
            if (a->mask & (a->mask - 1)) return 1;
            return wild_fault(w, a, is_write);
        }
        mo->last_alloc = (uint32_t)i;
    }
    if ((!a->p->aligned || a->base & (uint64_t)(a->align - 1)) && misaligned(w, a, is_write))
        return -1;
    const Alloc *al = &mem->allocs[mo->last_alloc];
    if (is_write && al->read_only) {
        return exec_fail(w, a->in, a->first, OUTCOME_OUT_OF_BOUNDS,
                         "writes to %s, which a kernel may only read (offset %llu)", al->label,
                         (unsigned long long)(a->base - al->base));
    }
    a->host = devmem_host(mem, a->base);
    charge_far(w->x, a);
    return 0;
}

/* The name in the source of a variable of a function, which the compiler puts behind the function's, with its
 * length. *n: characters. */
static const char *source_name(const char *name, int *n)
{
    for (const char *p = strchr(name, 'E'); p; p = strchr(p + 1, 'E')) {
        char *rest;
        unsigned long length = strtoul(p + 1, &rest, 10);
        if (rest == p + 1 || length > strlen(rest) || (rest[length] && rest[length] != '_'))
            continue;
        *n = (int)length;
        return rest;
    }
    *n = (int)strlen(name);
    return name;
}

/* v: the variable that the access has left; NULL: it is not known. */
static int beside_fault(Warp *w, const Access *a, int lane, const PtxVar *v)
{
    long long at = (long long)access_address(a, lane);
    int n;
    if (!v)
        return exec_fail(w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
                         "writes %d bytes at offset %lld of the block's shared memory, where no "
                         "variable lies",
                         a->size, at);
    const char *name = source_name(v->name, &n);
    return exec_fail(
        w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
        "writes %d bytes at offset %lld of %.*s in shared memory, which has %llu bytes", a->size,
        at - (long long)v->offset, n, name, (unsigned long long)v->size);
}

/* A store to bytes of static shared memory that belong to no variable. Returns 0, or -1 with a fault. Loads
 * find that nothing was written there. */
static int check_gaps(Warp *w, const Access *a, const SharedGaps *gaps)
{
    uint64_t lo = a->base + (uint64_t)(int64_t)a->p->min,
             hi = a->base + (uint64_t)(int64_t)a->p->max + (uint64_t)a->size;
    for (int k = 0; k < gaps->n; k++) {
        const struct SharedGap *gap = &gaps->list[k];
        if (lo >= gap->hi || hi <= gap->lo) continue;
        EACH_LANE(a->mask, lane)
        {
            uint64_t at = access_address(a, (int)lane);
            if (at >= gap->hi || at + (uint64_t)a->size <= gap->lo) continue;
            return beside_fault(w, a, (int)lane, gap->before);
        }
    }
    return 0;
}

int access_shared_bounds(Warp *w, Access *a, int is_write)
{
    Cta *c = &w->x->cta;
    if (!access_is_within(a, c->shared_size)) {
        for (uint32_t m = a->mask; m; m &= m - 1) {
            int lane = __builtin_ctz(m);
            uint64_t at = access_address(a, lane);
            if (access_is_beyond(at, a->size, c->shared_size)) {
                return exec_fail(
                    w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
                    "%s %d bytes at offset %lld of the block's shared memory, which has %u "
                    "bytes (%u static, %u dynamic)",
                    verb(is_write), a->size, (long long)at, c->shared_size, c->static_shared,
                    c->shared_size - c->static_shared);
            }
        }
    }
    if ((!a->p->aligned || a->base & (uint64_t)(a->size - 1)) && misaligned(w, a, is_write))
        return -1;
    if (is_write && a->mo->beyond) return beside_fault(w, a, a->first, a->mo->beyond);
    if (is_write && (w->x->entry->gaps.n | w->x->code->gaps.n) &&
        (check_gaps(w, a, &w->x->code->gaps) || check_gaps(w, a, &w->x->entry->gaps)))
        return -1;
    a->host = c->shared + a->base;
    return 0;
}
