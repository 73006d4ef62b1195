/* Sums, means, variances, norms and softmax in float32, as kernels compute them. */
#ifndef TASKS_DERIVE_HONEST_SUMS_H
#define TASKS_DERIVE_HONEST_SUMS_H

#include "tasks/graph/graph.h"

typedef enum { RUNNING, HALVES, LANES_32, LANES_256, ORDERS } Order;

/* One honest way to compute a graph (honest.h). */
typedef struct {
    Order order;
    int fma, stored, approximate, drift;
    int only;       /* 1 + the node whose results alone are stored; 0: stored tells */
    int two_passes; /* a variance is of distances to the mean: contents are far from zero */
    uint64_t number;
} Way;

/* Computes a call from arguments that are float32 numbers: 1 when it is of these operators and its
 * results are float32 numbers, unrounded to a narrower type; 0: another operator, out is unchanged. */
int honest_sums(const GraphCall *c, const Way *way, const double *const *in, double *const *out);

/* Normalisations that honest_sums computes. */
int honest_norm(const OpCall *c);

#endif
