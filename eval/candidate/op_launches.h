/* The launches of one op line, and what the walk over a plan's op lines shares (plan_ops.c). */
#ifndef EVAL_CANDIDATE_OP_LAUNCHES_H
#define EVAL_CANDIDATE_OP_LAUNCHES_H

#include "eval/candidate/plan_ops.h"

typedef struct {
    const Plan *plan;
    const Task *task;
    const Workload *w;
    int routes;
    PlanOps *o;
    int step, line;
    unsigned tf32; /* the libraries that may round factors of the call at hand */
    Error *err;
} Walk; /* at one step of the plan */

/* The memory of one call: of its tensors (x), results (y) and scratch (t). */
typedef struct {
    PlanOpArg x[OP_MAX_TENSORS], y[OP_MAX_RESULTS], t[OP_MAX_SCRATCH];
    size_t x_size[OP_MAX_TENSORS], y_size[OP_MAX_RESULTS]; /* bytes of an element */
} Places;

/* Set the error "line N: ...". walk_fail_here adds the workload, for a mistake that depends on the
 * sizes. Both return -1. */
#define walk_fail(k, ...) plan_mistake((k)->err, (k)->line, __VA_ARGS__)
int walk_fail_here(Walk *k, const Error *why);

int walk_storage(PlanOps *o, PlanHeld held, int index, size_t bytes, const char *label);
void walk_use(Walk *k, int storage); /* this step uses it */

static inline PlanOpArg walk_place(int storage)
{
    return (PlanOpArg){storage, 0};
}

/* The launches of a call: the library's where eager PyTorch takes it and it may be called here, else
 * the plain kernels. Kernels add the offsets of views themselves. Return 0 or -1. */
int launches_of_call(Walk *k, const OpCall *call, Places *m);
/* Copies tensor x into y, which has its shape. */
int launches_of_copy(Walk *k, const Op *op, OpTensor x, int from, OpTensor y, int to);

#endif
