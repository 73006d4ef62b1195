/* From which parameters the address of a store may come. */
#ifndef EVAL_SIM_COVERAGE_SLICE_BASES_H
#define EVAL_SIM_COVERAGE_SLICE_BASES_H

#include "eval/sim/ptx/ptx.h"

/* A bit for each of the first parameters of a kernel; the last two: memory of the block or the thread, and an
 * address that comes from elsewhere. */
#define BASE_OWN (1ull << 62)
#define BASE_OTHER (1ull << 63)
enum { BASE_PARAMS = 62 };

typedef struct {
    uint64_t *of[REG_CLASSES]; /* by register */
} Bases;

void bases_find(const PtxFunction *f, Bases *out);
void bases_release(Bases *b);
/* The bits of an address, or of a value. */
uint64_t bases_of(const Bases *b, const PtxOperand *o);

#endif
