/* Only what the slice of the kernel's stores and atomics can tell counts. */
#include "eval/sim/steady.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/coverage/coverage.h"
#include "eval/sim/coverage/slice_decode.h"

/* A bulk copy may add to global memory. */
static int has_bulk_copies(const PtxFunction *f)
{
    for (int i = 0; i < f->n_insts; i++)
        if (!strcmp(f->insts[i].op, "cp") && ptx_has_mod(&f->insts[i], "bulk")) return 1;
    return 0;
}

void steady_find(DevMem *m, const DeviceLaunch *l, const PtxModule *module, const PtxFunction *f)
{
    if (has_bulk_copies(f)) return;
    uint8_t *wanted = memory_alloc((size_t)m->n_allocs + 1);
    CoverageOf of = {m, module, f, l, wanted, 1, SLICE_CHANGES, 0};
    for (int a = 0; a < m->n_allocs; a++) {
        Alloc *x = &m->allocs[a];
        if (x->read_only || x->variable || !coverage_has_pointer(&of, a)) continue;
        wanted[a] = 1;
        x->steady = !coverage_has_access(&of);
        wanted[a] = 0;
    }
    free(wanted);
}

void steady_forget(DevMem *m)
{
    for (int a = 0; a < m->n_allocs; a++) m->allocs[a].steady = 0;
}
