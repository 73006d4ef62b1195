/* Undefined values at run time: the handlers that the decoder places where a register that may have
 * no value is read or set (decode/definedness.c). */
#ifndef EVAL_SIM_MEMORY_UNDEFINED_H
#define EVAL_SIM_MEMORY_UNDEFINED_H

#include "eval/sim/machine/exec.h"

Handler h_undefine;            /* at a function's start */
Handler h_track;               /* track; a, b: predicates of selp, and, or, flipped by e, f */
void undefined_clear(Exec *x); /* forgets the undefined values in memory */

#endif
