/* The rounding errors of honest kernels, and the tolerances that follow. A graph is executed in double
 * precision with the errors of other arithmetic put in: every result is rounded to float32 or to its
 * own type, and what is summed carries the error of a sum in one of several orders. Correct kernels
 * differ in
 *
 *   order      one running sum; halves of halves; 32 or 256 running sums, then these
 *   fma        products that are only added are not rounded
 *   stored     intermediate results are rounded to their type (one kernel an operator), or not (fused)
 *   functions  those of the precise mathematical library, or of an approximate one
 *
 * One more way has running sums alone, whose errors have one sign: by honest_drift(n) for n terms that may
 * all be equal, as where an operator has clamped them, and by honest_walk(n) for others. Row reductions add
 * the terms as they are, and have the error that they have. Errors are drawn with a fixed seed.
 *
 * The inputs of a case are drawn several times. The margin is HONEST_MARGIN over the worst draw; where that
 * draw needs more than HONEST_MARGIN times what the middle one needs, such as where an output is divided by
 * a deviation that may be small, it is this ratio, at most HONEST_WIDEST. A costly graph is drawn once, and
 * has the margin HONEST_SINGLE times as large. */
#ifndef TASKS_DERIVE_HONEST_H
#define TASKS_DERIVE_HONEST_H

#include "tasks/task.h"

enum {
    HONEST_MARGIN = 2,
    HONEST_MARGIN_HALF = 4
}; /* tolerance by worst error: float32; narrower */

/* No kernel adds more terms than this in one running sum. */
enum { HONEST_DRIFT_MAX = 1 << 18, HONEST_SEED = 7 };

#define HONEST_WIDEST 8.0
#define HONEST_SINGLE 1.5

/* The relative error of a running sum of n equal terms in float32. */
double honest_drift(int64_t n);
/* The same of positive terms that differ: twice the largest of some sums, as the largest of millions is. */
double honest_walk(int64_t n);

/* How much of rtol and atol the honest variants of one case need. rtol: per output, what the middle
 * element needs; atol: what every element needs beyond rtol. NOT finite: the reference is not. overflow:
 * an honest result is not. */
typedef struct {
    int finite, overflow;
    double rtol[GRAPH_MAX_OUTPUTS], atol[GRAPH_MAX_OUTPUTS];
    double mean[GRAPH_MAX_OUTPUTS]; /* error of an element */
    double few[GRAPH_MAX_OUTPUTS];  /* mean size of the elements; 0: there are enough of them */
} HonestError;

/* From measured sizes to larger ones: `by` is what errors are multiplied by, at least 1, for longer sums and
 * the largest of more normal errors; `elements` how many times as many elements there are. Where some
 * eighths of the measured elements have far larger errors than others, such as in sums of products of
 * exponentials, the largest error grows with a power of `elements`, by at most HONEST_WIDEST. chain: by what
 * errors that do not drift are multiplied, where it is more, since sums that follow each other multiply what
 * the first ones err. */
typedef struct {
    double by, elements, chain;
} HonestGrowth;

typedef struct HonestKept HonestKept;

/* How a case is measured. A costly graph has fewer ways and one draw. brief: so has every graph of which
 * these take long for a judge; the margin of one draw is HONEST_SINGLE times as large. */
typedef struct {
    const double *rtol;        /* by output */
    const HonestGrowth *grown; /* n of them, for n results */
    int n, all;                /* all: every way, else the four that differ most */
    const HonestKept *kept;    /* of the same task: equal parameters are taken; NULL: none */
    int brief;
} HonestPlan;
/* The outputs of one honest way. single: the results of one operator alone were rounded to a half type. */
typedef void HonestOutputs(void *ctx, int way, int single, double *const *got);

enum { HONEST_OUTPUTS = 16 }; /* at most so many ways */

/* Executes the graph on given inputs by the ways that differ most, one after another, and with the results
 * of each of the first operators stored alone. Outputs of half types are not rounded to these: a kernel may
 * err so before it stores a result. What others read of an output is one more result that is stored alone.
 * 1: that costs more than a judge has, or an operator rounds on the way in its own manner (attention,
 * recurrent cells, what ATen composes of other operators). */
int honest_outputs(const TaskCase *c, const double *const *in, HonestOutputs *take, void *ctx,
                   Error *err);
int honest_measure(const TaskCase *c, const HonestPlan *p, HonestError *out, Error *err);

/* Measures rtol of contents as drawn, and keeps the executions: honest_replay gives of them what
 * honest_measure gives of the same case. t lives as long. The caller frees *kept in any case. */
int honest_keep(const Task *t, const Workload *w, HonestKept **kept, HonestError *out, Error *err);
void honest_replay(const HonestKept *kept, const HonestPlan *p, HonestError *out);
void honest_kept_free(HonestKept *kept); /* NULL is allowed */

#endif
