/* Some elements of a graph's outputs in double precision, computed of what they need alone. Backward
 * through the graph, each operator names the elements of its inputs that the asked ones need
 * (ops/op_element.h); forward, these alone are computed. A value of which a large share is needed, or
 * whose operator knows no single elements, is computed whole by the operator's reference. */
#ifndef TASKS_GRAPH_DEMAND_H
#define TASKS_GRAPH_DEMAND_H

#include "tasks/graph/graph.h"

/* fetch: elements [from, from + n) of an input as doubles. hold: they are there, in *all, which has the whole
 * input and stays; NULL: inputs are not held. Both return 0 or -1. */
typedef struct {
    void *of;
    int (*fetch)(void *of, int input, int64_t from, int64_t n, double *dst, Error *err);
    int (*hold)(void *of, int input, int64_t from, int64_t n, const float **all, Error *err);
} DemandInputs;

/* The elements of one output: n flat indices, sorted, without repetitions. */
typedef struct {
    int64_t n;
    const int64_t *at;
    double *value; /* is filled: n doubles */
} DemandedOutput;

/* One DemandedOutput for each output of the graph. max_work: elements that may be read by operators, in
 * a sum; max_elements: of inputs and results that may be needed. work: what was read, also where it was too
 * much. dry: nothing is computed. */
typedef struct {
    const GraphBound *b;
    DemandInputs inputs;
    DemandedOutput *output;
    int dry;
    double max_work, max_elements, work;
} Demand;

/* 0: the values are filled; 1: it takes too much; -1: *err. The same bits for an element in whatever company
 * it is asked for, but where a value is computed whole in one and not in the other. */
int graph_demand(Demand *d, Error *err);

#endif
