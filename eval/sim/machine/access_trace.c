/* Accesses of a unit that touch are one entry. */
#include "eval/sim/machine/access_trace.h"

#include <stdlib.h>

#include "base/memory.h"

enum { LEAST = 4096, MOST = 1 << 22 };

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
    if (t->n == MOST) {
        t->overflowed = 1;
        return;
    }
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : LEAST;
        t->of = memory_grow(t->of, (size_t)t->cap, sizeof *t->of);
    }
    t->of[t->n++] = e;
}
