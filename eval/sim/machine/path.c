/* Mbarriers whose offsets meet in the table share an entry, which makes a path longer and never shorter. */
#include "eval/sim/machine/path.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MBARRIERS = 64, MBARRIER_BYTES = 8 };

struct MbarrierPaths {
    struct {
        WarpPath arriving, ended; /* of the phase under way, and of the last one */
    } of[MBARRIERS];
};

static int slot_of(uint32_t at)
{
    return (int)(at / MBARRIER_BYTES % MBARRIERS);
}

void path_arrive(Exec *x, uint32_t at, const Warp *w)
{
    if (!x->paths) x->paths = memory_alloc(sizeof *x->paths);
    const WarpPath path = path_of(w);
    path_raise(&x->paths->of[slot_of(at)].arriving, &path);
}

void path_end_phase(Exec *x, uint32_t at)
{
    if (!x->paths) return;
    path_raise(&x->paths->of[slot_of(at)].ended, &x->paths->of[slot_of(at)].arriving);
    x->paths->of[slot_of(at)].arriving = (WarpPath){0};
}

void path_await_phase(Warp *w, uint32_t at)
{
    if (w->x->paths) path_await(w, &w->x->paths->of[slot_of(at)].ended);
}

void path_start_block(Exec *x)
{
    if (x->paths) memset(x->paths, 0, sizeof *x->paths);
}

void path_release(Exec *x)
{
    free(x->paths);
    x->paths = NULL;
}
