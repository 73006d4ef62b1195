/* A candidate on the device with the memory of one workload: allocate, fill, launch, look. */
#ifndef EVAL_JUDGE_RUN_H
#define EVAL_JUDGE_RUN_H

#include "eval/candidate/resolve.h"
#include "eval/compile/compile_client.h"
#include "eval/device/device.h"
#include "eval/judge/cases.h"

/* The candidate's fault, as the verdict will say it. */
typedef struct {
    Outcome outcome;
    char cheat[64];
    int line;
    char message[2048];
} Finding;

/* Everywhere below: 0 all well, 1 the candidate's fault (in *f), -1 the evaluator's (in *err). */
void finding_set(Finding *f, Outcome outcome, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void finding_fault(Finding *f, const DeviceFault *fault, const char *where);

/* A compiled candidate, loaded. */
typedef struct {
    const DeviceOps *ops;
    Device *device;
    Task *task;
    const Plan *plan;
    int trusted; /* the harness's own: runs in its context, on a device with two */
    CompileResult code;
    PlanKernel kernels[PLAN_MAX_STEPS];
    PlanContext context;
    int registers; /* most of any kernel */
    long runs;     /* launch sequences since the module was loaded */
} Loaded;

int loaded_open(Loaded *l, const DeviceOps *ops, Device *d, Task *t, const Plan *plan, int trusted,
                CompileResult *code, Finding *f,
                Error *err); /* takes over *code's contents in every case */
int loaded_again(Loaded *l, Finding *f,
                 Error *err); /* unload and load: device variables as at first */
void loaded_close(Loaded *l);

/* The memory of one workload and one case. */
typedef struct {
    Loaded *loaded;
    const Case *test;
    int64_t turned;  /* how far the test's contents are turned along the task's axis "turns" */
    char where[200]; /* "check rows=7 cols=33, input scale 8" */
    PlanMemory memory;
    int n_inputs, n_outputs, n_buffers; /* allocated so far */
    int borrowed;                       /* inputs and outputs are another rig's */
    size_t buffer_bytes[PLAN_MAX_BUFFERS];
    int lent[PLAN_MAX_BUFFERS]; /* the buffer is the owner's */
    DeviceLaunch *launches;
    int n_launches;
} Rig;

/* owner: a rig of the same task and workload, closed after this one, whose inputs and outputs this
 * one uses too, and its plan's buffers of the same sizes: where memory lies makes a difference,
 * which two plans that are equal shall share. Or NULL. */
int rig_open(Rig *r, Loaded *l, const Case *c, const Rig *owner, Finding *f, Error *err);
void rig_close(Rig *r);
/* Other contents, same workload, same addresses; a borrower only learns of what the owner was
 * filled with. turned: see rig_can_turn, else 0. */
int rig_refill(Rig *r, const Case *c, int64_t turned, Error *err);
/* How many turns of the contents give contents of their own without another run of the reference: 0
 * when the task has no such symmetry or the device keeps no contents. */
int64_t rig_can_turn(const Rig *r);
int rig_reset(Rig *r, Error *err);             /* outputs and buffers undefined again */
int rig_reset_own_buffers(Rig *r, Error *err); /* its plan's buffers alone, without the owner's */
int rig_resolve(Rig *r, Finding *f);           /* the launches anew: after loaded_again */
int rig_run(Rig *r, Finding *f,
            Error *err); /* reset, launch all; guards and inputs checked after */
int rig_inspect(Rig *r, Finding *f,
                Error *err); /* guards and inputs, after launches made elsewhere */
int rig_compare(Rig *r, Finding *f, Error *err); /* every output with the reference */
/* rig_compare and rig_inspect in one wait. 1: something is wrong, or cannot be told so: ask those.
 */
int rig_well(const Rig *r, Error *err);
int rig_digest(Rig *r, Digest *out, Error *err); /* of all outputs' bytes */

#endif
