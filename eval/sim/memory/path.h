/* The path of a warp: what it executes and waits for, one after another, from the start of its block. A warp
 * that waits at a barrier for another one goes on no earlier than that, so that its path is at least as long.
 * Warps that take turns between barriers have the sum of their turns. */
#ifndef EVAL_SIM_MEMORY_PATH_H
#define EVAL_SIM_MEMORY_PATH_H

#include "eval/sim/machine/exec.h"
#include "eval/sim/memory/access.h"
#include "eval/sim/memory/busy.h"

static inline WarpPath path_of(const Warp *w)
{
    WarpPath path = w->ahead;
    const uint64_t *pipes = w->x->cta.pipes[w->index % SCHEDULERS];
    path.part[PATH_INSTS] += w->insts;
    path.part[PATH_CHAIN] += w->chain;
    path.part[PATH_GLOBAL] += w->global_waits;
    path.part[PATH_DRAM] += w->dram_waits;
    path.part[PATH_L2] += w->l2_waits;
    path.part[PATH_LOCAL] += w->local_waits;
    for (int p = 0; p < PIPE_COUNT; p++) path.part[PATH_PIPES + p] += pipes[p];
    if (w->x->cooperative) busy_add_memory(w->x, &path.part[PATH_MEMORY]);
    return path;
}

static inline void path_raise(WarpPath *to, const WarpPath *by)
{
    for (int i = 0; i < PATH_PARTS; i++)
        if (by->part[i] > to->part[i]) to->part[i] = by->part[i];
}

/* The warp has waited until the end of another path. */
static inline void path_await(Warp *w, const WarpPath *end)
{
    const WarpPath now = path_of(w);
    for (int i = 0; i < PATH_PARTS; i++)
        if (end->part[i] > now.part[i]) w->ahead.part[i] += end->part[i] - now.part[i];
}

/* ---- mbarriers, by their offsets in shared memory (path.c) ---- */

/* The warp arrives, or has issued what arrives. */
void path_arrive(Exec *x, uint32_t at, const Warp *w);
/* The phase ends; its path is what waits for it. */
void path_end_phase(Exec *x, uint32_t at);
void path_await_phase(Warp *w, uint32_t at);
/* ---- what warps of the block tell one another through memory, by lines (path.c) ---- */

/* An atomic or a store that is not weak, and a load that is none or an atomic that may take a lock. */
void path_tell(Warp *w, const Access *a);
void path_hear(Warp *w, const Access *a);
/* A weak store to a few words of global memory, by which blocks that run together may tell one another
 * something. */
void path_tell_plainly(Warp *w, const Access *a);
/* What path_tell and path_hear are, of a word that a comparison has changed, apart: sums that are made of
 * comparisons do not wait. */
void path_tell_compared(Warp *w, const Access *a);
void path_hear_compared(Warp *w, const Access *a);

void path_start_block(Exec *x);
void path_release(Exec *x);

#endif
