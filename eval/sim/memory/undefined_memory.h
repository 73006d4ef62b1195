/* The bytes of memory that hold an undefined or a doubtful value: a byte each of shared memory, a bit a
 * lane for each byte of local memory, a bit of global memory. Nothing is kept before the first one. */
#ifndef EVAL_SIM_MEMORY_UNDEFINED_MEMORY_H
#define EVAL_SIM_MEMORY_UNDEFINED_MEMORY_H

#include "eval/sim/memory/access.h"

enum { IN_MEMORY_UNDEFINED = 1, IN_MEMORY_DOUBTFUL = 2 };

typedef struct {
    PtxSpace space;
    uint64_t at; /* offset in its space, or a global address */
    int bytes;
} Place;

/* Where item i of an access by a lane lies. */
Place undefined_place(const Warp *w, const MemOp *mo, int lane, int item);
/* Returns a bit for each byte of the place whose value is undefined. *kinds gets IN_MEMORY_*; of local
 * memory only the fact is kept, and a doubtful one is IN_MEMORY_UNDEFINED there. */
uint32_t undefined_bytes(const Warp *w, const Place *p, int lane, int *kinds);
/* Gives the bytes of the mask the kind, and the others a value. Global memory knows no doubtful ones, and
 * a store has given the others a value there. */
void undefined_mark(Warp *w, const Place *p, int lane, uint32_t mask, int kind);

/* Does memory hold anything that is undefined? */
static inline int undefined_any(const Exec *x)
{
    return x->undefined_shared || x->undefined_local || x->mem->n_undefined || x->cluster;
}

#endif
