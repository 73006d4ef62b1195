/* A bound graph as a list of calls over arrays: chains are their steps, what is written in place is a new
 * array, and every call reads and writes whole arrays in C order. What lies otherwise in its memory is
 * copied before. */
#ifndef TASKS_GRAPH_DEMAND_PROGRAM_H
#define TASKS_GRAPH_DEMAND_PROGRAM_H

#include "tasks/graph/graph.h"

typedef enum {
    STEP_CALL,
    STEP_COPY,   /* the result is the view of array in[0] */
    STEP_OVERLAY /* the result is in[0], with in[1] written to the view of it */
} StepKind;

typedef struct {
    StepKind kind;
    OpCall *call; /* STEP_CALL: tensors are contiguous where it is a chain's step */
    OpTensor view;
    int own;       /* `call` is the program's */
    int n_in, *in; /* arrays */
    int out;       /* the array of result 0; result i is i behind */
} Step;

/* Array i < n_inputs is input i of the graph. */
typedef struct {
    int n_steps, n_arrays;
    Step *step;
    int64_t *extent; /* by array: its elements */
    int output[GRAPH_MAX_OUTPUTS];
} Program;

int program_of(const GraphBound *b, Program *out, Error *err);
void program_free(Program *p);

/* The place in a view's C order of element `at` of its memory; -1: the view does not show it. */
int64_t program_shows(const OpTensor *view, int64_t at);

#endif
