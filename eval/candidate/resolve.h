/* A plan made concrete for one workload: sizes of its buffers, and launches with every expression
 * evaluated and every argument checked against the compiled kernel, before anything runs. */
#ifndef EVAL_CANDIDATE_RESOLVE_H
#define EVAL_CANDIDATE_RESOLVE_H

#include "eval/candidate/plan.h"
#include "eval/device/device.h"
#include "tasks/task.h"

/* One kernel of the plan, compiled. */
typedef struct {
    const char *lowered;
    KernelInfo info;
    char kind[KERNEL_MAX_PARAMS]; /* 'f' float, 'i' integer or pointer, 'b' bytes (a struct); 0
                                     unknown */
} PlanKernel;

/* Fill kind from the kernel's declaration in the PTX. */
void plan_kernel_kinds(PlanKernel *k, const char *ptx);

typedef struct {
    const Plan *plan;
    const Task *task;
    const DeviceInfo *device;
    DeviceModule *module;
    const PlanKernel *kernels; /* plan->n_kernels of them */
} PlanContext;

typedef struct {
    DevicePtr inputs[TASK_MAX_TENSORS], outputs[TASK_MAX_TENSORS], buffers[PLAN_MAX_BUFFERS];
} PlanMemory;

/* 0, or -1 with "line N: ..." and *line. */
int plan_check_names(const PlanContext *p, int *line, Error *err);
int plan_buffer_bytes(const PlanContext *p, const Workload *w, size_t bytes[PLAN_MAX_BUFFERS],
                      int *line, Error *err);
/* *out is the caller's to free. With memory NULL everything is checked against null pointers. */
int plan_resolve(const PlanContext *p, const Workload *w, const PlanMemory *memory,
                 DeviceLaunch **out, int *n, int *line, Error *err);

#endif
