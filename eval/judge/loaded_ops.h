/* The op lines of a loaded plan. Their kernels depend on the workload: for each workload the plan's
 * PlanOps is built once, and the kernels of several workloads are compiled together into a module.
 * All of it lasts as long as the Loaded. Functions without a plan's op lines do nothing.
 *
 * They return 0, 1 or -1 as in eval/device/fault.h. */
#ifndef EVAL_JUDGE_LOADED_OPS_H
#define EVAL_JUDGE_LOADED_OPS_H

#include "eval/judge/loaded.h"

/* Set l->context to workload w's, where its op lines are built. The module is there when the
 * workload is compiled; else it is NULL. */
int loaded_ops_at(Loaded *l, const Workload *w, Fault *f);

/* Compile and load the kernels for n workloads that were not compiled before. */
int loaded_ops_compile(Loaded *l, const Workload *const *w, int n, Fault *f);

/* Load the modules again, where a device measures times: the address of code changes them. */
int loaded_ops_again(Loaded *l, Fault *f);
void loaded_ops_release(Loaded *l);

/* Make the device's fault of a launch sequence what the verdict reports: with `where` behind it,
 * and for an op line with the line and the operator. */
void loaded_ops_fault(Fault *f, const DeviceLaunch *launches, int n, const char *where);

#endif
