/* The reference of a graph, computed by a device. A graph at its timed sizes can take a host minutes.
 * The kernels are the operators' plain ones in double precision, in the trusted context. They run
 * before a candidate does, and their memory is poisoned when it is freed. */
#ifndef EVAL_JUDGE_DEVICE_REFERENCE_H
#define EVAL_JUDGE_DEVICE_REFERENCE_H

#include "eval/judge/contents/cases.h"
#include "eval/judge/loaded.h"

/* Whether the host would take long for a workload of the task. */
int device_reference_needed(const Task *t, const Workload *w);

/* The op lines that compute it, and the task that they are of. */
typedef struct {
    Task task; /* its tensors are its own */
    char *plan;
} ReferencePlan;

/* Returns 1 when a device cannot compute this graph, or -1. Release in every case. */
int device_reference_plan(const Task *t, const Workload *w, ReferencePlan *out, Error *err);
void device_reference_release(ReferencePlan *p);

/* A CasesReference of a Machine: 0 when it was wanted and is computed. */
int device_reference_case(void *of, Case *c);

/* Computes the expected outputs of a case whose inputs are drawn: its golden contents where the device
 * keeps them, else doubles in c->expected, which has room. Returns 0 when they are computed; 1 when a
 * device cannot compute this graph (the reason in *err); -1 when the device failed. */
int device_reference(const Machine *d, Case *c, Error *err);

#endif
