#include "eval/sim/uses.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const double sector = 32;

void uses_note(LaunchUses *u, const DevMem *mem, double scale)
{
    u->of = memory_array((size_t)mem->n_allocs + 1, sizeof *u->of);
    u->n = 0;
    for (int i = 0; i < mem->n_allocs; i++) {
        const Alloc *a = &mem->allocs[i];
        if (a->variable) continue;
        BufferUse *b = &u->of[u->n++];
        memcpy(b->label, a->label, sizeof b->label);
        b->size = (double)a->bytes;
        b->asked = (double)a->asked * scale;
        b->touched = (double)(a->read_sectors + a->written_sectors) * sector * scale;
    }
}

void uses_release(LaunchUses *list, int n)
{
    for (int i = 0; list && i < n; i++) free(list[i].of);
    free(list);
}

double uses_asked(const DevMem *mem)
{
    double all = 0;
    for (int i = 0; i < mem->n_allocs; i++) all += (double)mem->allocs[i].asked;
    return all;
}
