/* One PTX instruction of a slice. */
#ifndef EVAL_SIM_COVERAGE_SLICE_DECODE_H
#define EVAL_SIM_COVERAGE_SLICE_DECODE_H

#include "eval/sim/coverage/slice.h"

/* Numbers of registers, by class; -1: none yet. */
typedef struct {
    int *of[REG_CLASSES];
    int n;
} SliceSlots;

int slots_of(SliceSlots *s, const PtxOperand *o); /* the register's slot, which it gets here */

/* Is it an access of the kind, or may it be? */
int slice_is(const PtxInst *in, SliceKind kind);
int slice_address(const PtxInst *in, SliceKind kind); /* the operand with the address */
/* The bytes of an element that a load or a store moves. */
uint32_t slice_element(const PtxInst *in);
/* Fills in *out. An instruction that is not known gives unknown values. */
void slice_decode(const PtxFunction *f, const PtxInst *in, SliceSlots *slots, SliceInst *out);
/* An access as an OP_STORE of its bytes. */
void slice_decode_access(const PtxInst *in, SliceKind kind, SliceSlots *slots, SliceInst *out);
/* The guard of an instruction; SOURCE_NONE: it has none. */
SliceSource slice_guard(const PtxInst *in, SliceSlots *slots);

#endif
