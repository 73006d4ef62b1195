/* From the PTX tree to the code that the machine runs. Registers become rows, operands become row
 * codes, and basic blocks get their joins and costs. */
#ifndef EVAL_SIM_DECODE_DECODE_H
#define EVAL_SIM_DECODE_DECODE_H

#include "eval/sim/machine/instruction.h"

/* Takes over *ptx, also on failure. The addresses of .global variables must be set. A function with
 * an unknown instruction is marked unsupported and is no failure. follow: doubtful values are
 * followed (memory/doubts.h). */
int code_build(PtxModule *ptx, int follow, Code *out, Error *err);
void code_release(Code *c);
Function *code_find_entry(Code *c, const char *name); /* a kernel, or NULL */

#endif
