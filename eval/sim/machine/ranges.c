/* Joining is put off until a set has doubled, so that it takes a share of what adding does. */
#include "eval/sim/machine/ranges.h"

#include <stdlib.h>

#include "base/memory.h"

enum {
    LEAST = 1024,
    MOST = 1 << 23,
    FEW = 256, /* ranges that are sorted by comparing */
    DIGIT = 11 /* bits */
};

void ranges_release(Ranges *r)
{
    free(r->of);
    *r = (Ranges){0};
}

void ranges_clear(Ranges *r)
{
    r->n = r->joined = 0;
    r->overflowed = 0;
}

static int by_place(const void *a, const void *b)
{
    const Range *x = a, *y = b;
    return x->lo != y->lo ? (x->lo > y->lo) - (x->lo < y->lo) : (x->hi > y->hi) - (x->hi < y->hi);
}

/* Moves the ranges to `to`, in the order of one digit of their places behind `least`. */
static void move_by_digit(const Range *of, int64_t n, uint64_t least, int shift, Range *to)
{
    enum { VALUES = 1 << DIGIT };
    int64_t at[VALUES] = {0}, before = 0;
    for (int64_t i = 0; i < n; i++) at[(of[i].lo - least) >> shift & (VALUES - 1)]++;
    for (int k = 0; k < VALUES; k++) {
        int64_t count = at[k];
        at[k] = before;
        before += count;
    }
    for (int64_t i = 0; i < n; i++) to[at[(of[i].lo - least) >> shift & (VALUES - 1)]++] = of[i];
}

/* By their places: of those that begin at one, in any order. */
static void sort(Ranges *r)
{
    uint64_t least = UINT64_MAX, most = 0;
    if (r->n < FEW) {
        qsort(r->of, (size_t)r->n, sizeof *r->of, by_place);
        return;
    }
    for (int64_t i = 0; i < r->n; i++) {
        if (r->of[i].lo < least) least = r->of[i].lo;
        if (r->of[i].lo > most) most = r->of[i].lo;
    }
    Range *to = memory_grow(NULL, (size_t)r->cap, sizeof *to);
    for (int shift = 0; shift < 64 && (most - least) >> shift; shift += DIGIT) {
        move_by_digit(r->of, r->n, least, shift, to);
        Range *from = r->of;
        r->of = to;
        to = from;
    }
    free(to);
}

void ranges_join(Ranges *r)
{
    int64_t n = 0;
    if (r->joined == r->n) return;
    sort(r);
    for (int64_t i = 1; i < r->n; i++) {
        if (r->of[i].lo > r->of[n].hi)
            r->of[++n] = r->of[i];
        else if (r->of[i].hi > r->of[n].hi)
            r->of[n].hi = r->of[i].hi;
    }
    r->n = r->joined = r->n ? n + 1 : 0;
}

void ranges_grow(Ranges *r)
{
    ranges_join(r);
    if (r->n <= r->cap / 2 && r->cap) return;
    if (r->n >= MOST) {
        r->overflowed = 1;
        return;
    }
    r->cap = r->cap ? 2 * r->cap : LEAST;
    r->of = memory_grow(r->of, (size_t)r->cap, sizeof *r->of);
}

void ranges_add_all(Ranges *r, const Ranges *other)
{
    for (int64_t i = 0; i < other->n; i++) ranges_add(r, other->of[i].lo, other->of[i].hi);
    r->overflowed |= other->overflowed;
}

int64_t ranges_find(const Ranges *r, uint64_t at)
{
    int64_t low = 0, high = r->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (r->of[middle].hi <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int ranges_meet(const Ranges *r, uint64_t lo, uint64_t hi)
{
    int64_t i = ranges_find(r, lo);
    return i < r->n && r->of[i].lo < hi;
}

void ranges_remove(Ranges *r, Ranges *other)
{
    Ranges left = {.overflowed = r->overflowed};
    ranges_join(r);
    ranges_join(other);
    for (int64_t i = 0, k = 0; i < r->n; i++) {
        uint64_t at = r->of[i].lo, end = r->of[i].hi;
        while (k < other->n && other->of[k].hi <= at) k++;
        for (int64_t j = k; j < other->n && other->of[j].lo < end; j++) {
            if (other->of[j].lo > at) ranges_add(&left, at, other->of[j].lo);
            if (other->of[j].hi > at) at = other->of[j].hi;
        }
        if (at < end) ranges_add(&left, at, end);
    }
    ranges_join(&left);
    ranges_release(r);
    *r = left;
}

int ranges_have(Ranges *r, Ranges *other)
{
    ranges_join(r);
    ranges_join(other);
    for (int64_t k = 0; k < other->n; k++) {
        int64_t i = ranges_find(r, other->of[k].lo);
        if (i == r->n || r->of[i].lo > other->of[k].lo || r->of[i].hi < other->of[k].hi) return 0;
    }
    return 1;
}

uint64_t ranges_bytes(Ranges *r)
{
    uint64_t sum = 0;
    ranges_join(r);
    for (int64_t i = 0; i < r->n; i++) sum += r->of[i].hi - r->of[i].lo;
    return sum;
}

/* ---- traces of accesses ---- */

enum { FIRST_ENTRIES = 4096, MOST_ENTRIES = 1 << 22 };

void trace_release(AccessTrace *t)
{
    ranges_release(&t->reads);
    ranges_release(&t->writes);
    free(t->of);
    *t = (AccessTrace){.by = t->by, .given = t->given};
}

void trace_add(AccessTrace *t, TraceEntry e)
{
    TraceEntry *last = t->n ? &t->of[t->n - 1] : NULL;
    if (last && last->unit == e.unit && last->kind == e.kind && last->lo + last->bytes == e.lo &&
        last->bytes < UINT32_MAX / 2) {
        last->bytes += e.bytes;
        return;
    }
    if (t->n == MOST_ENTRIES) {
        t->overflowed = 1;
        return;
    }
    memory_room(t->of, t->n, t->cap, FIRST_ENTRIES);
    t->of[t->n++] = e;
}
