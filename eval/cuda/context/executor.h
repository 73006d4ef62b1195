/* Modules and launches in one CUDA context: the same code in the harness's context and in the
 * runner processes. A failure is the driver's error number and the launches that it may belong to;
 * eval/cuda/launch_fault.h turns it into a sentence. */
#ifndef EVAL_CUDA_CONTEXT_EXECUTOR_H
#define EVAL_CUDA_CONTEXT_EXECUTOR_H

#include "eval/cuda/context/protocol.h"
#include "gpu/driver.h"

typedef struct {
    char *name; /* NULL: the slot is free */
    uint32_t module;
    CuFunction function;
    KernelInfo info;
    uint32_t dynamic_shared; /* bytes that the function's attribute allows; 0: not set */
} ExecutorKernel;

typedef struct {
    const CudaDriver *cu;
    CuContext context;
    int ordinal;
    CuDevice device;
    CuStream stream; /* all launches, in order */
    int max_threads;
    CuModule *modules; /* NULL: the slot is free */
    uint32_t n_modules, n_kernels;
    ExecutorKernel *kernels;
    /* Enqueues a library call; NULL: this process has none. */
    int (*library)(const char *name, const uint64_t *args, int n, void *stream, Error *err);
} Executor;

/* Create a context on the device and set its limits. */
int executor_open(Executor *e, const CudaDriver *cu, int ordinal, Error *err);
/* Unload the modules and destroy the context. Also to be called after a failed open. */
void executor_close(Executor *e);

/* Returns CU_OK with *module, or the driver's refusal of the image. */
CuResult executor_load(Executor *e, const void *cubin, uint32_t *module);
void executor_unload(Executor *e, uint32_t module);
/* Returns -1 when the module has no such kernel, or when its parameters exceed the limits. */
int executor_kernel(Executor *e, uint32_t module, const char *name, uint32_t *kernel,
                    KernelInfo *out, Error *err);

typedef struct {
    const unsigned char *records; /* n launches, from launch_encode */
    size_t bytes;
    int n;
} LaunchList;

/* Launch all in order and wait. Returns 0, or 1 with *end when a launch failed. */
int executor_run(Executor *e, const LaunchList *l, LaunchEnd *end);

/* Enqueue all launches without waiting. */
int executor_enqueue(Executor *e, const LaunchList *l, LaunchEnd *end);
/* Wait for all that was enqueued, at most 60 seconds. */
CuResult executor_wait(Executor *e);
/* Fill *end. Returns 1. */
int executor_end(LaunchEnd *end, EndStep step, CuResult r, int first, int last, const char *text);
/* After a failure: set end->context_lost when the context cannot be used again. */
void executor_check_context(Executor *e, LaunchEnd *end);

#endif
