/* What the fences of a block's warps cover: for each warp the position up to which its accesses come
 * before the fence. Positions are numbers that grow as the block runs; 0 comes before all of them. A
 * barrier makes the fences before it those of all warps. */
#ifndef EVAL_SIM_MEMORY_FENCES_H
#define EVAL_SIM_MEMORY_FENCES_H

#include "eval/sim/machine/exec.h"

typedef struct {
    uint64_t merged[MAX_WARPS];        /* of the fences before the last barrier */
    uint32_t since;                    /* warps that have executed a fence since then */
    uint64_t of[MAX_WARPS][MAX_WARPS]; /* of these */
} Fences;

/* What a warp's accesses come after by fences. */
static inline const uint64_t *fences_of(const Fences *f, int warp)
{
    return f->since >> warp & 1 ? f->of[warp] : f->merged;
}

/* A warp's fence: it covers its own accesses, and the others' that the warp knows of. */
static inline void fences_add(Fences *f, int warp, uint64_t own, const uint64_t *others)
{
    const uint64_t *before = fences_of(f, warp);
    for (int i = 0; i < MAX_WARPS; i++) {
        uint64_t at = i == warp ? own : others[i];
        f->of[warp][i] = at > before[i] ? at : before[i];
    }
    f->since |= 1u << warp;
}

static inline void fences_barrier(Fences *f)
{
    for (uint32_t rest = f->since; rest; rest &= rest - 1) {
        const uint64_t *of = f->of[__builtin_ctz(rest)];
        for (int i = 0; i < MAX_WARPS; i++)
            if (of[i] > f->merged[i]) f->merged[i] = of[i];
    }
    f->since = 0;
}

#endif
