/* What a plan costs by the simulator's model, before anything is judged: library calls by their tables, other
 * launches of op lines by the bytes of their tensors, the generator's kernels by its estimate. From it follow
 * the first line of a search, and whether there is anything to search. */
#ifndef TUNE_BOUND_H
#define TUNE_BOUND_H

#include "base/buffer.h"
#include "generate/estimate.h"
#include "tasks/task.h"

enum { BOUND_CALLS = 400 };

typedef struct {
    int launches, library; /* and how many of them call a library */
    double us;             /* of all launches, one after another */
    double library_us;
    double peak;  /* share of the peak of arithmetic or memory that library calls reach */
    int by_bytes; /* that peak is the memory's */
    char calls[BOUND_CALLS]; /* operators that call a library: "linear, conv2d" */
    char lines[BOUND_CALLS]; /* and those of other op lines that launch something */
    double line_us;
} PlanCost;

/* estimate: of the source's kernels; NULL: it has none. *known: 0 when a kernel has no estimate. */
int plan_cost(const Task *t, const char *source, const Estimate *estimate, PlanCost *out,
              int *known, Error *err);

typedef struct {
    PlanCost eager, first; /* PyTorch's plan, and the generator's */
    int n_kernels, known;
    char ops[ESTIMATE_OPS]; /* that become kernels */
    double eager_us;        /* of eager PyTorch: measured, or by the model */
    double best_us;         /* the least time with these op lines, by the model */
    char why[200];          /* the module has no kernel; "": it has one */
    int measured; /* eager_us: 0 by the model, 1 measured, 2 predicted as a verdict has it */
} Bound;

int bound_find(const Task *t, const char *source, const Estimate *estimate, Bound *out, Error *err);
/* Takes eager PyTorch's time from a verdict. predicted: the verdict and the model have the same times of
 * library calls. */
void bound_measured(Bound *b, double eager_us, int predicted);
/* The generator can gain so little that a search is of no use. Before there is a verdict, op lines that
 * call no library may take longer than the model knows. */
int bound_is_hopeless(const Bound *b);
void bound_write(const Bound *b, const Profile *gpu, Buffer *out); /* a line, without its end */

#endif
