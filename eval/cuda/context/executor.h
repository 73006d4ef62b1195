/* Modules and launches in one CUDA context: the same code in the harness's context and in the
 * runner processes. What goes wrong is told by the driver's number and the launches it may belong
 * to; eval/cuda/fault.h turns that into words. */
#ifndef EVAL_CUDA_CONTEXT_EXECUTOR_H
#define EVAL_CUDA_CONTEXT_EXECUTOR_H

#include "base/random.h"
#include "eval/cuda/context/protocol.h"
#include "gpu/driver.h"

enum {
    EXECUTOR_GRAPHS = 64 /* of each copy of a module, on each set of buffers */
};

typedef struct {
    char *name; /* NULL: the slot is free */
    uint32_t module;
    CuFunction function;
    KernelInfo info;
    uint32_t dynamic_shared; /* allowed by an attribute so far, beyond what needs none */
} ExecutorKernel;

typedef struct {
    unsigned char *records; /* NULL: the slot is free */
    size_t bytes;
    CuGraphExec graph;
    uint64_t used;
} ExecutorGraph;

typedef struct Executor Executor;
struct Executor {
    const CudaDriver *cu;
    CuContext context;
    int ordinal;
    CuDevice device;
    CuStream stream; /* all launches, in order */
    int max_threads;
    CuModule *modules; /* NULL: the slot is free */
    uint32_t n_modules, n_kernels;
    ExecutorKernel *kernels;
    int (*library)(const char *name, const uint64_t *args, int n, void *stream,
                   Error *err); /* NULL: none here */
    /* the stopwatch's */
    CuEvent before, start, end;
    CuPtr scratch;
    size_t scratch_bytes;
    int persisting;             /* the device has persisting L2 lines */
    CuFunction flush, wait;     /* harness_flush, harness_wait; NULL until the stopwatch is armed */
    unsigned sms, flush_shared; /* its grid and the dynamic shared memory of a block */
    Random idle;                /* launches of nothing before a timing */
    ExecutorGraph graphs[EXECUTOR_GRAPHS];
    uint64_t graph_uses;
    void (*on_unload)(
        Executor *e); /* before a module goes, and before the context goes; NULL: nothing to do */
    void (*on_close)(Executor *e);
};

/* Makes the context of the device and sets its limits. */
int executor_open(Executor *e, const CudaDriver *cu, int ordinal, Error *err);
void executor_close(Executor *e); /* with its context; also after a failed open */

/* CU_OK and *module, or the driver's refusal of the image. */
CuResult executor_load(Executor *e, const void *cubin, uint32_t *module);
void executor_unload(Executor *e, uint32_t module);
/* -1: no such kernel, or what is wrong with it. */
int executor_kernel(Executor *e, uint32_t module, const char *name, uint32_t *kernel,
                    KernelInfo *out, Error *err);

typedef struct {
    const unsigned char *records; /* n launches, of launch_encode */
    size_t bytes;
    int n;
} LaunchList;

/* Launch all in order and wait. 0; 1 with *end filled: stopped, wherever the fault is. */
int executor_run(Executor *e, const LaunchList *l, LaunchEnd *end);

/* For the stopwatch: enqueue without waiting; wait for all that was enqueued, at most WAIT_S. */
int executor_enqueue(Executor *e, const LaunchList *l, LaunchEnd *end);
CuResult executor_wait(Executor *e);
int executor_end(LaunchEnd *end, EndStep step, CuResult r, int first, int last,
                 const char *text); /* returns 1 */
/* After a failure: is the context lost? Fills end->dead. */
void executor_autopsy(Executor *e, LaunchEnd *end);

#endif
