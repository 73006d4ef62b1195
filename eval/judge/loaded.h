/* A candidate's or baseline's compiled code, loaded as a module of a device, with the attributes of
 * its kernels, and beside it the kernels of the plan's op lines, which depend on the workload
 * (loaded_ops.h); and Finding, a fault of that code as the verdict reports it.
 *
 * Functions with a Finding return 0 when all is well, 1 for a fault of the code (in *f), and -1 for
 * a failure of the evaluator (in *err). */
#ifndef EVAL_JUDGE_LOADED_H
#define EVAL_JUDGE_LOADED_H

#include "eval/candidate/candidate.h"
#include "eval/candidate/op_parts.h"
#include "eval/candidate/resolve.h"
#include "eval/compile/compile_client.h"
#include "eval/device/device.h"

typedef struct {
    Outcome outcome;
    char cheat[64]; /* the cheat's name with OUTCOME_CHEAT, else "" */
    int line;       /* of the source, 0 none */
    char message[2048];
} Finding;

void finding_set(Finding *f, Outcome outcome, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The device's sentence, with ` (where)` behind it unless where is NULL. */
void finding_fault(Finding *f, const DeviceFault *fault, const char *where);

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
    Task *task;
    const Plan *plan;
    int trusted;     /* the harness's own code: it runs in the trusted context of a GPU */
    DeviceHome home; /* HOME_LIBRARY: a candidate with op lines, whose routes call libraries */
    CompileResult code;
    PlanKernel *kernels;
    PlanContext context;
    Compiler *compiler; /* of the op lines; NULL: the plan has none */
    WorkloadOps *workload_ops;
    int n_workload_ops;
    OpModule *op_modules; /* the first one also takes the library calls */
    int n_op_modules;
    CompiledText *op_texts;
    int n_op_texts;
    OpPartSize op_total; /* of op_texts */
    size_t op_own;       /* bytes of op_texts that are the candidate's own, once there are many */
    int registers;       /* per thread, the maximum over the kernels */
    long runs;           /* launch sequences since the module was loaded */
} Loaded;

/* Load *code, whose contents move to *l in every case. plan must outlive *l. Release with
 * loaded_close in every case. */
int loaded_open(Loaded *l, const DeviceOps *ops, Device *d, Task *t, const Plan *plan, int trusted,
                CompileResult *code, Finding *f, Error *err);

/* Returns 1 when a kernel takes more local memory than the device gives: the driver would keep so much for
 * its threads that others lack it. For code that another device has accepted, this is no fault. */
int loaded_refuse_local(const Loaded *l, Finding *f);

/* Compile the kernels that c's plan launches, load them, and refuse them by loaded_refuse_local. c must
 * outlive *l. Release with loaded_close in every case; *l must be all zeros before. */
int loaded_compile(Loaded *l, const DeviceOps *ops, Device *d, Compiler *compiler, Task *t,
                   const Candidate *c, int trusted, Finding *f, Error *err);

/* Unload the module and load it again: device variables have their first values. */
int loaded_again(Loaded *l, Finding *f, Error *err);

/* After a fault: when it is a value that need not matter (DeviceOps.follow), load the module again, to
 * follow such values, and return what it returned. Otherwise 0; -1: the evaluator failed. */
int loaded_follow(Loaded *l, Error *err);
void loaded_unfollow(Loaded *l);
void loaded_close(Loaded *l);

#endif
