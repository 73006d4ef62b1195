/* A set of bytes, as ranges. Ranges that are added wait until ranges_join sorts and merges them; what looks
 * at a set joins it first. A set that takes too many ranges says so and holds no more. */
#ifndef EVAL_SIM_MACHINE_RANGES_H
#define EVAL_SIM_MACHINE_RANGES_H

#include <stdint.h>

typedef struct {
    uint64_t lo, hi; /* [lo, hi) */
} Range;

typedef struct {
    Range *of;
    int64_t n, cap, joined; /* joined: as many are sorted and apart */
    int overflowed;
} Ranges;

void ranges_release(Ranges *r);
void ranges_clear(Ranges *r);
void ranges_grow(Ranges *r); /* makes room for one more */
void ranges_join(Ranges *r);

static inline void ranges_add(Ranges *r, uint64_t lo, uint64_t hi)
{
    Range *last = r->n ? &r->of[r->n - 1] : 0;
    if (last && lo >= last->lo && lo <= last->hi && r->n > r->joined) {
        if (hi > last->hi) last->hi = hi;
        return;
    }
    if (r->n == r->cap) ranges_grow(r);
    if (r->overflowed) return;
    r->of[r->n++] = (Range){lo, hi};
}

void ranges_add_all(Ranges *r, const Ranges *other);
void ranges_remove(Ranges *r, Ranges *other);
/* Returns 1 where each byte of `other` is in r. */
int ranges_have(Ranges *r, Ranges *other);
/* The index of the first range of the joined set that ends behind `at`; n: none does. */
int64_t ranges_find(const Ranges *r, uint64_t at);
/* Has the joined set a byte of [lo, hi)? */
int ranges_meet(const Ranges *r, uint64_t lo, uint64_t hi);
uint64_t ranges_bytes(Ranges *r);

/* ---- traces of accesses ---- */

/* What the threads of a launch read and write in memory that is not read-only; with `given`, in all memory.
 * By threads or warps, the accesses are kept one by one, so that those of a few can be told apart; by blocks,
 * as two sets. */
typedef enum { TRACE_BLOCKS, TRACE_WARPS, TRACE_THREADS } TraceBy;
typedef enum { TRACE_READ = 1, TRACE_WRITE = 2, TRACE_ATOMIC = 3 } TraceKind;

enum { TRACE_UNITS = 1024 /* of a block */ };

typedef struct {
    uint64_t unit; /* TRACE_UNITS times the block, and the warp or thread */
    uint64_t lo;
    uint32_t bytes, kind;
} TraceEntry;

typedef struct {
    TraceBy by;
    int given;            /* read-only memory, too */
    Ranges reads, writes; /* by blocks; an atomic reads */
    TraceEntry *of;       /* by others */
    int64_t n, cap;
    int overflowed;
} AccessTrace;

void trace_release(AccessTrace *t);
/* Of a unit, by warps or threads. */
void trace_add(AccessTrace *t, TraceEntry e);

#endif
