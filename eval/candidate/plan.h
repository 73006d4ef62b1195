/* The launch plan in a candidate's comments, parsed into buffers and steps. Expressions stay text
 * over the task's names; eval/candidate/resolve.h evaluates them for a workload.
 *
 *   //@ buffer TYPE name[expr]
 *   //@ map name = tensor(x, box=[...], size=[...], stride=[...], swizzle=128)   (a tensor map of x for TMA)
 *   //@ launch [cooperative] kernel<<<grid, block[, shared]>>>(arg, ...)
 *   //@ for var in from..to      (repeats the launch on the next //@ line; `to` is excluded)
 *   //@ when expr                (the lines behind it, up to the next when, otherwise or end, run where
 *   //@ otherwise                 expr is not 0; of whens that follow one another, the first such one
 *   //@ end                       runs, and otherwise where there is none)
 *   //@ op name = aten.relu(arg, ...)   (an operator by its eager route: tasks/graph/op_line.h)
 *   //@ library name(arg, ...)   (a call in library_arguments.h; only in plans of baselines)
 *
 * grid and block are an integer expression or dim3(x[, y[, z]]). An argument is a tensor or buffer
 * (`x`, or `x + expr` to start at an element), a map, an integer expression over the axes and the for
 * variable, or a float literal. The lists of a map hold integer expressions over the axes, the last of each
 * for the dimension whose elements are adjacent. Each directive stands alone on one line. */
#ifndef EVAL_CANDIDATE_PLAN_H
#define EVAL_CANDIDATE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/words.h"
#include "eval/device/fault.h"
#include "eval/device/tensor_map.h"
#include "tasks/graph/op_line.h"

enum {
    PLAN_MAX_BUFFERS = 256,
    PLAN_MAX_MAPS = 64,
    PLAN_MAX_STEPS = 4096,    /* launch, op and library lines */
    PLAN_MAX_LAUNCHES = 4096, /* with every for unrolled */
    PLAN_MAX_BRANCHES = 64,
    PLAN_MAX_ARGS = 64,
    PLAN_MAX_NAME = 64,
    PLAN_MAX_KERNEL_NAME = 200,
    PLAN_MAX_LINE = 4096
};

typedef struct {
    const char *p; /* into the source */
    size_t len;
} PlanText;

static inline int plan_text_is(PlanText t, const char *word)
{
    return word_is(t.p, t.len, word);
}

typedef struct {
    char type[24]; /* as written, blanks folded: "unsigned long long" */
    size_t type_size;
    TensorMapType map_type;
    char name[PLAN_MAX_NAME];
    PlanText count;
    int line;
} PlanBuffer;

/* A tensor map. Its lists are in the plan's order, the outermost dimension first. */
typedef struct {
    char name[PLAN_MAX_NAME];
    PlanText of; /* `x` or `x + expr` */
    int rank;
    PlanText box[TENSOR_MAP_RANK];
    PlanText size[TENSOR_MAP_RANK],
        stride[TENSOR_MAP_RANK]; /* elements; len 0: x's own; row by row */
    int swizzle;
    int line;
} PlanMap;

/* A branch: the lines behind a when or an otherwise. */
typedef struct {
    PlanText condition; /* len 0: otherwise */
    char *taken; /* an expression: its condition holds, and no earlier one of the same chain */
    int line;
    int first; /* index of the first branch of the chain */
} PlanBranch;

typedef struct {
    int branch;          /* index into Plan.branches; -1: the step is in none */
    int kernel;          /* index into Plan.kernels; -1: no launch of the source's kernels */
    OpLine *op;          /* an op line; NULL: none */
    const char *library; /* the call's name, "cublas.sgemm"; NULL: none */
    const char *kinds;   /* of the call's arguments: LibrarySignature.kinds */
    int cooperative;     /* the launch: its blocks may wait for each other */
    int n_grid, n_block; /* 1..3 */
    PlanText grid[3], block[3];
    PlanText shared; /* len 0: none */
    PlanText args[PLAN_MAX_ARGS];
    int n_args;
    int line;
    int loops; /* a for precedes it; then var, from, to and loop_line are set */
    char var[PLAN_MAX_NAME];
    PlanText from, to;
    int loop_line;
} PlanStep;

typedef struct {
    PlanBuffer *buffers;
    int n_buffers;
    PlanMap *maps;
    int n_maps;
    PlanStep *steps;
    int n_steps, n_ops; /* n_ops: steps that are op lines */
    PlanBranch *branches;
    int n_branches;
    /* The names of the launched kernels, each once, in order of first use. */
    char (*kernels)[PLAN_MAX_KERNEL_NAME];
    int *kernel_line;
    int n_kernels;
} Plan;

/* source must outlive the plan. trusted: library lines are allowed. Returns 0, or 1 with PLAN_ERROR and the
 * line of the mistake; the sentence begins with "line N: ". Release in both cases. */
int plan_parse(const char *source, size_t len, int trusted, Plan *out, Fault *f);
/* Sets the error "line N: ...". Returns -1. */
int plan_mistake(Error *err, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A mistake in the plan becomes its fault. Returns 1. */
int plan_fault(Fault *f, int line, const Error *why);
void plan_release(Plan *p);

/* The n_kernels names of the launched kernels; the caller frees the array. */
const char **plan_kernel_names(const Plan *p);

/* Split an argument into a name and the offset after '+': "x + rows*cols" gives x and "rows*cols".
 * Returns 1 when it has that form (offset->len is 0 for a name alone), else 0. */
int plan_text_pointer(PlanText text, PlanText *name, PlanText *offset);

/* The map of this name, or NULL. */
const PlanMap *plan_map(const Plan *p, PlanText name);
/* plan_text_pointer for an argument of a launch, where a map stands for what it maps. */
int plan_argument(const Plan *p, PlanText text, PlanText *name, PlanText *offset);

/* Returns 1 with the value of a float literal such as "1e-5f", "-0.5" or "INFINITY", else 0. */
int plan_text_float(PlanText text, double *value);

#endif
