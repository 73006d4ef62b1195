/* The op lines of a plan for one workload: the shapes of their results, where these lie in memory,
 * and the launches that eager PyTorch makes for them.
 *
 * A result is a name like a buffer's. Each name is given once. A result that has the name of an
 * output of the task is written there, and must have its shape and dtype. A view launches nothing:
 * its name means memory of its base. An operator in place changes its first argument, which is not
 * an input of the task. A buffer of the plan is a tensor of one dimension to an op line.
 *
 * Results that do not live at the same time share memory: a slot holds one of them after another.
 * Each launch names the slots whose contents begin with it (DeviceLaunch.fresh). */
#ifndef EVAL_CANDIDATE_PLAN_OPS_H
#define EVAL_CANDIDATE_PLAN_OPS_H

#include "base/buffer.h"
#include "eval/candidate/plan.h"
#include "eval/device/device.h"
#include "tasks/task.h"

typedef enum { HELD_INPUT, HELD_OUTPUT, HELD_BUFFER, HELD_SLOT } PlanHeld;

/* Memory that one or more names mean. */
typedef struct {
    PlanHeld held;
    int index; /* of the input, output, buffer or slot; -1: no slot yet */
    size_t bytes;
    int first, last; /* steps that use it; -1: none */
    int begins;      /* HELD_SLOT: the launch (index) that its contents begin with; -1: none */
    char label[PLAN_MAX_NAME + 8]; /* "tensor h", in messages */
} PlanStorage;

/* A name that op lines know. */
typedef struct {
    PlanText name;
    OpTensor tensor; /* offset and strides are in its storage */
    int storage;
    int line; /* of the op line that gives it; 0: a tensor or buffer of task or plan */
} PlanTensor;

/* storage >= 0: the address `value` bytes behind its start; -1: the value's bits. */
typedef struct {
    int storage;
    uint64_t value;
} PlanOpArg;

enum { PLAN_KERNEL_NAME = 96 };

typedef struct {
    int step;                      /* of the plan */
    char kernel[PLAN_KERNEL_NAME]; /* its lowered name, or the library call's */
    int library;                   /* a library call */
    int text;                      /* of PlanOps.texts, which has the kernel; -1: a library call */
    uint32_t grid[3], block[3], shared;
    int first_arg, n_args; /* of PlanOps.args; 8 bytes each */
} PlanOpLaunch;

/* The text of the kernels of one operator at one shape. Equal texts have equal names. */
typedef struct {
    char *text;     /* in a namespace of its own, without its #include lines */
    char name[32];  /* of the namespace */
    char *includes; /* the #include lines */
    int n_kernels;
    char (*kernels)[PLAN_KERNEL_NAME]; /* each once */
} PlanKernelText;

typedef struct {
    PlanStorage *storages;
    int n_storages;
    PlanTensor *tensors; /* inputs, outputs and buffers, then results in the order of op lines */
    int n_tensors;
    PlanOpLaunch *launches;
    int n_launches;
    PlanOpArg *args;
    int n_args;
    size_t *slots; /* bytes */
    int n_slots;
    PlanKernelText *texts;
    int n_texts;
    double flops; /* the least that the operators compute, each line once */
} PlanOps;

/* Fills *out. routes: vendor libraries may be called. Returns 0, or 1 with PLAN_ERROR, as plan_parse does.
 * Release in both cases. */
int plan_ops_build(const Plan *plan, const Task *t, const Workload *w, int routes, PlanOps *out,
                   Fault *f);
void plan_ops_release(PlanOps *o);

/* A library adds in an order of its own each time: a transposed convolution of cuDNN, whose engines with
 * atomics eager PyTorch takes too. */
int plan_ops_vary(const PlanOps *o);

/* The tensor of a name, or NULL. */
const PlanTensor *plan_ops_find(const PlanOps *o, PlanText name);

/* The texts of n PlanOps, equal ones once, in *out, which the caller frees; they are of the PlanOps.
 * Returns their number. */
int plan_ops_texts(const PlanOps *const *ops, int n, const PlanKernelText ***out);

/* Appends the source of n texts, and the names of their kernels for the compiler ("space::kernel") to
 * *names, which has *n_names. Returns 0, or -1 when the buffer is full. */
int plan_ops_source(const PlanKernelText *const *texts, int n, Buffer *out, char ***names,
                    int *n_names);

/* Which branch of a plan (`//@ when`) is taken at the sizes of a workload? The condition is an expression
 * over the axes of the task. 1: the branch of a step is taken, or the step is in none; 0: it is not taken;
 * -1: the condition has a mistake, and the sentence begins with "line N: ". */
int plan_takes(const Plan *p, const Task *t, const Workload *w, const PlanStep *s, Error *err);

#endif
