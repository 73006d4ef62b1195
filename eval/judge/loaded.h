/* A candidate's or baseline's compiled code, loaded as a module of a device, with the attributes of
 * its kernels, and beside it the kernels of the plan's op lines, which depend on the workload
 * (loaded_ops.h). Functions with a Fault return 0, 1 or -1 as in eval/device/fault.h. */
#ifndef EVAL_JUDGE_LOADED_H
#define EVAL_JUDGE_LOADED_H

#include "eval/candidate/candidate.h"
#include "eval/candidate/op_parts.h"
#include "eval/candidate/resolve.h"
#include "eval/compile/compile_client.h"
#include "eval/device/device.h"

/* Where code is compiled, loaded and run. */
typedef struct {
    const DeviceOps *ops;
    Device *device;
    Compiler *compiler; /* it keeps the kernels of op lines for the next candidate */
} Machine;

/* A part (op_parts.h) of the kernels of the op lines: text of the harness, in a module of its own. */
typedef struct {
    CompileResult code;
    DeviceModule *module;
} OpModule;

/* A text of kernels that is compiled. */
typedef struct {
    char name[sizeof((PlanKernelText *)0)->name];
    int module; /* index into Loaded.op_modules */
} CompiledText;

/* The op lines for one workload. */
typedef struct {
    int64_t axis[TASK_MAX_AXES];
    Role role; /* the greatest of the workloads with these axes */
    PlanOps ops;
    int *part;             /* by ops.texts: index into Loaded.op_modules; NULL: not compiled yet */
    DeviceModule **loaded; /* the same, as they are loaded now */
} WorkloadOps;

typedef struct {
    const DeviceOps *ops;
    Device *device;
    Compiler *compiler;
    Task *task;
    int trusted; /* the harness's own code: it runs in the trusted context of a GPU */
    int beside;  /* it runs in the process of libraries, where candidates with op lines run */
    const Plan *plan;
    DeviceHome home; /* HOME_LIBRARY: a candidate with op lines, whose routes call libraries */
    CompileResult code;
    PlanKernel *kernels;
    PlanContext context;
    WorkloadOps *workload_ops;
    int n_workload_ops;
    OpModule *op_modules; /* the first one also takes the library calls */
    int n_op_modules;
    CompiledText *op_texts;
    int n_op_texts;
    OpPartSize op_total; /* of op_texts */
    size_t op_own;       /* bytes of op_texts that are the candidate's own, once there are many */
    int registers;       /* per thread, the maximum over the kernels */
    double compile_cpu_s;
    char library[32]; /* "CUTLASS 4.2.0", whose headers the source includes; else "" */
    long runs;        /* launch sequences since the module was loaded */
} Loaded;

/* Nothing is loaded yet. Release with loaded_close in every case. */
void loaded_init(Loaded *l, const Machine *m, Task *t, int trusted);

/* Load *code, whose contents move to *l in every case. The plan must outlive *l. */
int loaded_open(Loaded *l, const Plan *plan, CompileResult *code, Fault *f);

/* Compile the kernels that c's plan launches, load them, and refuse those with more local memory
 * than the device gives: the driver would keep so much for their threads that others lack it. c
 * must outlive *l. */
int loaded_compile(Loaded *l, const Candidate *c, Fault *f);

/* Unload the module and load it again: device variables have their first values. */
int loaded_again(Loaded *l, Fault *f);

/* After a fault: when it is a value that need not matter (DevicePrediction.follow), load the module again, to
 * follow such values, and return what it returned. Otherwise 0; -1: the evaluator failed. */
int loaded_follow(Loaded *l, Error *err);
void loaded_unfollow(Loaded *l);
void loaded_close(Loaded *l);

#endif
