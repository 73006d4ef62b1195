/* An execution of a graph by one honest way (honest.h). */
#ifndef TASKS_DERIVE_HONEST_WAY_H
#define TASKS_DERIVE_HONEST_WAY_H

#include "tasks/derive/honest_sums.h"
#include "tasks/task.h"

typedef struct {
    const Way *way;
    const int64_t *terms;       /* by node */
    const double *drift, *walk; /* by node: honest_drift, honest_walk */
    const char *last;           /* by value: an output, which is always stored */
    const char *factors; /* by node: the tensors whose rich values make it inexact; 0: none do */
    int open;            /* outputs are not rounded to a type narrower than float32 */
    int inexact; /* the node's results need a rounding, and were not computed without errors */
} Execution;

/* Of a costly sum: those of its tensors whose numbers or products are summed; else 0. */
int way_factors(const OpCall *c);

/* e->way NULL: the reference. */
int way_run(const GraphBound *b, Execution *e, const double *const *in, double *const *out,
            Error *err);

/* Rounds to a type; to float32 where it is no narrower one. */
void way_round(Dtype d, double *x, int64_t n);

/* The relative error of one term that gives a sum of n terms the error of a running sum. */
double way_sum_error(int64_t n);

/* Multiplies elements [from, from + n) of a tensor, which are x[0] on, by 1 + by * noise in [-1, 1) that the
 * key and their indices give. */
void way_blur(double *x, int64_t from, int64_t n, double by, uint64_t key);

/* Adds by * that noise instead. */
void way_shift(double *x, int64_t from, int64_t n, double by, uint64_t key);

/* Of an operator that gives numbers at equal steps: what each of them may be off, however small it is, since
 * it is the sum of a start and of rounded steps. 0 of other operators, and of whole numbers. */
double way_step_error(const OpCall *c);

void way_fill_bits(const TaskTensor *x, Variant variant, int input, double *v, size_t n);

#endif
