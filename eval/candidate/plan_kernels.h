/* The text of the kernels that op lines launch (PlanOps.texts). */
#ifndef EVAL_CANDIDATE_PLAN_KERNELS_H
#define EVAL_CANDIDATE_PLAN_KERNELS_H

#include "eval/candidate/plan_ops.h"

/* Adds the kernels of one operator to o->texts, under names that follow from their text, so that
 * equal kernels are one. Returns their index there. */
int plan_kernels_add(PlanOps *o, const OpPlain *plain);
/* The name in o->texts of a kernel that the plain text calls `own`. */
void plan_kernels_name(const OpPlain *plain, const char *own, char out[PLAN_KERNEL_NAME]);

/* Appends a kernel that copies x to y, element by element in C order, whatever their strides. */
int plan_kernels_copy(const OpTensor *x, const OpTensor *y, OpPlain *out, Error *err);

#endif
