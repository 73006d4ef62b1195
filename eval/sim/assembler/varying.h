/* Which registers may differ between the lanes of a warp, as far as the text of a function tells. */
#ifndef EVAL_SIM_ASSEMBLER_VARYING_H
#define EVAL_SIM_ASSEMBLER_VARYING_H

#include "eval/sim/ptx/ptx.h"

typedef struct {
    const PtxFunction *p;
    uint8_t *varies[REG_CLASSES]; /* by register */
} Varying;

/* The caller releases *out. */
void varying_find(const PtxFunction *p, Varying *out);
void varying_release(Varying *v);
/* 1: the operand, or the address that it is, may differ between lanes. */
int varying_operand(const Varying *v, const PtxOperand *o);

#endif
