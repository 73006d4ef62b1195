/* Divides the kernels of op lines into parts, each of which one compilation takes well within its limits:
 * a part is a module of its own. What fits one part is one. Else a part also ends where the digest of its
 * last text says so, so that plans with most kernels in common have most parts in common: these are
 * compiled once, and then found by their text. */
#ifndef EVAL_CANDIDATE_OP_PARTS_H
#define EVAL_CANDIDATE_OP_PARTS_H

#include <stddef.h>

#include "eval/candidate/plan_ops.h"

typedef struct {
    int kernels;  /* of a part at most, but for a text that has more */
    size_t bytes; /* of text, likewise */
} OpPartSize;

/* For tests, QUERN_TEST=parts=N is the number of kernels of a part. */
OpPartSize op_part_size(void);

/* The kernels and bytes of n texts. */
OpPartSize op_part_total(const PlanKernelText *const *texts, int n);

/* The end of the part that begins with texts[from], in (from, n]. */
int op_part_end(const PlanKernelText *const *texts, int n, int from, OpPartSize size);

#endif
