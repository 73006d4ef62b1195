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

/* Is it a store to global memory, or a load from there, or may it be? Atomics load, since they need what was
 * written before, but for an exchange. */
int slice_is_store(const PtxInst *in);
int slice_is_load(const PtxInst *in);
int slice_address(const PtxInst *in, int is_load); /* the operand with the address */
/* The bytes of an element that a load or a store moves. */
uint32_t slice_element(const PtxInst *in);
/* Fills in *out. An instruction that is not known gives unknown values. */
void slice_decode(const PtxFunction *f, const PtxInst *in, SliceSlots *slots, SliceInst *out);
/* A load or a store as an OP_STORE of its bytes. */
void slice_decode_access(const PtxInst *in, int is_load, SliceSlots *slots, SliceInst *out);
/* The guard of an instruction; SOURCE_NONE: it has none. */
SliceSource slice_guard(const PtxInst *in, SliceSlots *slots);
int slice_has_mod(const PtxInst *in, const char *mod);

#endif
