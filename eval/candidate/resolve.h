/* Resolve a plan for one workload: evaluate the sizes of its buffers and every expression of its
 * launches, and check every argument against the compiled kernel, before anything runs. */
#ifndef EVAL_CANDIDATE_RESOLVE_H
#define EVAL_CANDIDATE_RESOLVE_H

#include "eval/candidate/plan.h"
#include "eval/candidate/plan_ops.h"
#include "eval/device/device.h"
#include "tasks/task.h"

/* One kernel of the plan, compiled. */
typedef struct {
    const char *lowered;
    KernelInfo info;
    /* By parameter: 'f' float, 'i' integer or pointer, 'b' bytes (a struct); 0 unknown. */
    char kind[KERNEL_MAX_PARAMS];
} PlanKernel;

/* Fill k->kind from the kernel's declaration in the PTX. All 0 when it cannot be read. */
void plan_kernel_kinds(PlanKernel *k, const char *ptx);

typedef struct {
    const Plan *plan;
    const Task *task;
    const DeviceInfo *device;
    DeviceModule *module;
    const PlanKernel *kernels; /* plan->n_kernels of them */
    /* The op lines for the workload, the modules of their kernels, by PlanOps.texts, and that of their
     * library calls; NULL: the plan has none, or they are not loaded. */
    const PlanOps *ops;
    DeviceModule *const *op_modules, *calls_module;
} PlanContext;

typedef struct {
    DevicePtr inputs[TASK_MAX_TENSORS], outputs[TASK_MAX_TENSORS];
    const DevicePtr *buffers; /* as many as plan_buffers gives */
} PlanMemory;

/* They return 0, or 1 with PLAN_ERROR, as plan_parse does. plan_check_names: names do not collide,
 * and every output is passed to a launch or given by an op line. */
int plan_check_names(const PlanContext *p, Fault *f);
/* The sizes of the plan's buffers and then of the slots of p->ops. The caller frees *bytes. */
int plan_buffers(const PlanContext *p, const Workload *w, size_t **bytes, int *n, Fault *f);
/* How many launches a step makes at the sizes of w, 0 in a branch that is not taken; 0 also where its range
 * or its condition has a mistake. */
int64_t plan_trips(const PlanContext *p, const Workload *w, const PlanStep *step);
/* The grid and the block of the first launch of a step with a kernel. */
typedef struct {
    uint32_t grid[3], block[3];
} PlanShape;
int plan_shape(const PlanContext *p, const Workload *w, const PlanStep *step, PlanShape *out);
/* *n launches for the buffers in memory; the caller frees *out. memory NULL: check everything with
 * null pointers. */
int plan_resolve(const PlanContext *p, const Workload *w, const PlanMemory *memory,
                 DeviceLaunch **out, int *n, Fault *f);

#endif
