/* What the assembler leaves of PTX: which instructions of a function cost a GPU nothing or less, so
 * that counts of PTX stand for machine code. All of it follows from the text of the function. */
#ifndef EVAL_SIM_ASSEMBLER_ASSEMBLER_H
#define EVAL_SIM_ASSEMBLER_ASSEMBLER_H

#include "eval/sim/ptx/ptx.h"

/* COST_NARROW: beside the cost: of 64 bits the lower half alone is made. */
enum { COST_WHOLE = 64, COST_NARROW = 128 };

/* folded.c: returns the cost of each instruction of the function, COST_WHOLE, or 0 where the
 * assembler computes it itself. The caller frees the array. */
uint8_t *folded_find(const PtxFunction *p);

/* rolled.c: of each instruction 1 where it is in a loop that is not to be unrolled. The caller frees the
 * array. */
uint8_t *rolled_find(const PtxFunction *p);
/* The instruction that a branch goes to; -1: it is not known. */
int branch_target(const PtxFunction *p, const PtxInst *in);

/* unrolled.c: lowers the costs of instructions in loops that the assembler unrolls, and sets those to 0 whose
 * values a block of code has already. */
void unrolled_find(const PtxFunction *p, uint8_t *cost);

/* fused.c: sets the cost of instructions to 0 that the assembler makes parts of others. */
void fused_find(const PtxFunction *p, uint8_t *cost);

/* narrowed.c: adds COST_NARROW, behind all others. */
void narrowed_find(const PtxFunction *p, uint8_t *cost);

/* MERGED: one lane executes the atomic for all lanes with its address. UNREAD: nothing reads its result.
 * WAITS: a warp may wait by it. DECIDES: a branch of a loop depends on what it finds, as in one that
 * waits or that draws from a queue; ENDS: so does the end of that loop. */
enum {
    ATOMIC_MERGED = 1,
    ATOMIC_UNREAD = 2,
    ATOMIC_WAITS = 4,
    ATOMIC_DECIDES = 8,
    ATOMIC_ENDS = 16
};

/* merged.c: returns ATOMIC_* of each atomic of the function. The caller frees the array. */
uint8_t *merged_find(const PtxFunction *p);

/* spins.c: adds ATOMIC_WAITS to ATOMIC_ENDS to those of merged_find. The module has the function. */
void spins_find(const PtxModule *m, const PtxFunction *p, uint8_t *merged);

#endif
