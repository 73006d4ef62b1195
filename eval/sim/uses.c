/* Sums of the counts that each allocation has of the last launch. */
#include "eval/sim/uses.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const double sector = 32;

static void add(BufferUse *b, const Alloc *a, double scale)
{
    b->size += (double)a->bytes;
    b->asked += (double)a->asked * scale;
    b->touched += (double)(a->read_sectors + a->written_sectors) * sector * scale;
    b->scratch = a->scratch;
}

void uses_note(LaunchUses *u, const DevMem *mem, double scale)
{
    BufferUse *variables = NULL;
    u->of = memory_array((size_t)mem->n_allocs + 1, sizeof *u->of);
    u->n = 0;
    for (int i = 0; i < mem->n_allocs; i++) {
        const Alloc *a = &mem->allocs[i];
        BufferUse *b = a->variable && variables ? variables : &u->of[u->n++];
        if (a->variable) variables = b;
        memcpy(b->label, a->variable ? "variables" : a->label, a->variable ? 10 : sizeof b->label);
        add(b, a, scale);
    }
}

void uses_release(LaunchUses *list, int n)
{
    for (int i = 0; list && i < n; i++) free(list[i].of);
    free(list);
}
