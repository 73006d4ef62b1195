/* The launch plan that a candidate carries in comments, parsed: what is to be allocated and
 * launched, as text over the task's names. eval/candidate/resolve.h turns it into launches for a
 * workload.
 *
 *   //@ buffer TYPE name[expr]
 *   //@ launch kernel<<<grid, block[, shared]>>>(arg, ...)
 *   //@ for var in from..to            (repeats the launch on the next //@ line; half-open)
 *   //@ library name(arg, ...)         (a call of eval/cuda/library/library.h; plans of the
 * harness's own baselines only)
 *
 * grid and block are an integer expression or dim3(x[, y[, z]]). An argument is a tensor or buffer
 * (`x`, or `x + expr` to start at an element), an integer expression over axes and the for
 * variable, or a float literal. A directive stands on one line, alone. */
#ifndef EVAL_CANDIDATE_PLAN_H
#define EVAL_CANDIDATE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    PLAN_MAX_BUFFERS = 16,
    PLAN_MAX_STEPS = 64,      /* launch and library lines */
    PLAN_MAX_LAUNCHES = 4096, /* after for is unrolled */
    PLAN_MAX_ARGS = 64,
    PLAN_MAX_NAME = 64,
    PLAN_MAX_KERNEL_NAME = 200,
    PLAN_MAX_LINE = 4096
};

typedef struct {
    const char *p; /* into the source that was parsed */
    size_t len;
} PlanText;

typedef struct {
    char type[24]; /* as written, blanks folded: "unsigned long long" */
    size_t type_size;
    char name[PLAN_MAX_NAME];
    PlanText count;
    int line;
} PlanBuffer;

typedef struct {
    int kernel;          /* index into Plan.kernels; -1: a library call */
    const char *library; /* its name, "cublas.sgemm"; NULL: a launch */
    const char *kinds;   /* of its arguments, as library_find tells */
    int n_grid, n_block; /* 1..3 */
    PlanText grid[3], block[3];
    PlanText shared; /* len 0: none */
    PlanText args[PLAN_MAX_ARGS];
    int n_args;
    int line;
    int loops; /* a for stands before it */
    char var[PLAN_MAX_NAME];
    PlanText from, to;
    int loop_line;
} PlanStep;

typedef struct {
    PlanBuffer buffers[PLAN_MAX_BUFFERS];
    int n_buffers;
    PlanStep *steps;
    int n_steps;
    /* The kernels launched, each name once, in order of first use. */
    char (*kernels)[PLAN_MAX_KERNEL_NAME];
    int kernel_line[PLAN_MAX_STEPS];
    int n_kernels;
} Plan;

/* source must outlive the plan. On error *line is the offending source line (0: none) and the text
 * begins with "line N: ". */
int plan_parse(const char *source, size_t len, Plan *out, int *line, Error *err);
int plan_parse_trusted(const char *source, size_t len, Plan *out, int *line,
                       Error *err); /* library lines are allowed */
void plan_release(Plan *p);

/* Split `text` into a name and the offset after '+': "x + rows*cols" gives x and "rows*cols". 1
 * when it has that shape (offset->len 0 for the bare name), else 0. For resolve. */
int plan_text_pointer(PlanText text, PlanText *name, PlanText *offset);

/* "1e-5f", "-0.5", "INFINITY": 1 and its value; 0: not a float literal. */
int plan_text_float(PlanText text, double *value);

#endif
