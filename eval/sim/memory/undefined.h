/* Undefined values at run time: the handlers that the decoder places where a register that may have
 * no value is read or set (decode/definedness.c). */
#ifndef EVAL_SIM_MEMORY_UNDEFINED_H
#define EVAL_SIM_MEMORY_UNDEFINED_H

#include "eval/sim/memory/access.h"

Handler h_undefine; /* at a function's start */
Handler h_track;    /* track; a, b: predicates of selp, and, or, flipped by e, f; k1: of wmma */
void undefined_return(Warp *w); /* a function's results, from its frame to the caller's */
/* Does the decoder follow what a load reads from global memory? If not, the module may be loaded again
 * so that it does (doubts.h). */
int undefined_is_loaded(Warp *w, const Inst *load);
/* An atomic on shared memory that holds an undefined value is a fault, and so is a copy of it to
 * global memory. Return 0 or -1. */
int undefined_check_atomic(Warp *w, const Access *a);
int undefined_check_copy(Warp *w, const Access *a);
/* The same for an element that a wmma.load reads; one of a wmma.store has a value from now on. */
int undefined_element(Warp *w, const Inst *in, uint64_t address, int lane);
void undefined_overwrite(Exec *x, uint64_t at, uint32_t bytes); /* shared memory has a value now */
void undefined_clear(Exec *x); /* forgets the undefined values in memory */

#endif
