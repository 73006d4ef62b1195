/* A task's graph: operator lines (op_line.h) over named inputs and axes, in order. A name is defined
 * once, before it is used, so that a graph has no cycle and no dangling name.
 *
 * Binding a graph to axis values gives every value its shape, strides, dtype and base: a view names
 * the memory of another value, and an in-place operator's result is its first argument's memory.
 * Execution keeps one array of doubles for each base and frees it after its last use. */
#ifndef TASKS_GRAPH_GRAPH_H
#define TASKS_GRAPH_GRAPH_H

#include "tasks/graph/op_line.h"

enum { GRAPH_MAX_NODES = 4096, GRAPH_MAX_INPUTS = 1024, GRAPH_MAX_OUTPUTS = 64 };
enum { GRAPH_NAME = 64 }; /* bytes of a name, with its NUL */

typedef struct {
    int n_nodes, n_inputs, n_outputs, n_values; /* values: the inputs, then the results in order */
    char **text;                                /* by node: its line; `line` points into it */
    OpLine *line;
    int *first;               /* by node: the value of its first result */
    char (*name)[GRAPH_NAME]; /* by value; "_" is a result that nothing uses */
    int *by_name;             /* values sorted by name */
    int output[GRAPH_MAX_OUTPUTS];
} Graph;

/* Reads n lines. Each output is the name of a result. `taken` says whether another thing, such as an
 * axis, has a name (NULL: nothing has). Errors name the line: "graph[3]: column 9: ...". */
typedef struct {
    const char *const *lines;
    int n_lines;
    const char *const *inputs;
    int n_inputs;
    const char *const *outputs;
    int n_outputs;
    int (*taken)(void *ctx, const char *name);
    void *ctx;
} GraphSource;
int graph_read(const GraphSource *s, Graph **out, Error *err);
void graph_free(Graph *g);                                    /* NULL is allowed */
int graph_find(const Graph *g, const char *name, size_t len); /* a value, or -1 */

typedef struct {
    OpTensor tensor; /* offset and strides are in elements of the base */
    int base;        /* the value that owns the memory: itself, unless it is a view */
    int node;        /* that gives it; -1: an input */
    int live;        /* an output depends on its contents */
    int varies;      /* its contents depend on an input */
    int last;        /* of a base: the last node that touches its memory; n_nodes: an output */
    int64_t extent;  /* of a base: its elements in memory */
} GraphValue;

typedef struct {
    OpCall call;
    int in[OP_MAX_TENSORS]; /* the values of call.tensor */
    int view, live;
} GraphCall;

typedef struct {
    const Graph *graph;
    GraphValue *values;
    GraphCall *calls; /* by node */
    double peak;      /* bytes of the reference's arrays at the same time, inputs not counted */
} GraphBound;

/* inputs: shapes and dtypes in the graph's order. */
int graph_bind(const Graph *g, ExprLookup *axis, void *ctx, const OpTensor *inputs,
               GraphBound **out, Error *err);
void graph_bound_free(GraphBound *b); /* NULL is allowed */

/* The least that any kernel moves and computes: the elements of inputs that reach an output and the
 * outputs once; the operators' flops, without those that reach no output or depend on no input. */
int graph_cost(const GraphBound *b, OpCost *out, Error *err);

/* Watches and changes an execution. `arguments` may put other arrays into in[] before a node runs, and
 * returns 1 when `results` gives the results itself, so that the operator need not run. `results` may
 * change a node's results, which are C order arrays of their elements. */
typedef struct {
    const GraphBound *b;
    int node;
    const double *const *in;
    double *const *out;
} GraphStep;
typedef struct {
    void *ctx;
    int (*arguments)(void *ctx, const GraphBound *b, int node, const double **in, Error *err);
    int (*results)(void *ctx, const GraphStep *s, Error *err);
} GraphHook;

/* in[i] and out[i] are C order arrays of the inputs' and outputs' elements. The same bits every
 * time. hook NULL: none. */
int graph_run(const GraphBound *b, const double *const *in, double *const *out,
              const GraphHook *hook, Error *err);

/* An execution whose values are kept, so that a graph runs again with other elements of one input:
 * graph_rerun executes what depends on it (input -1: no other elements), with the bits of graph_run. b
 * and in[] must live as long. A graph with more than GRAPH_KEPT_BYTES of values runs again as a whole.
 * Threads may share one GraphKept. */
#define GRAPH_KEPT_BYTES (1.0 * (1 << 30))
typedef struct GraphKept GraphKept;
int graph_keep(const GraphBound *b, const double *const *in, GraphKept **out, Error *err);
int graph_rerun(const GraphKept *k, int input, const double *elements, double *const *out,
                Error *err);
void graph_kept_free(GraphKept *k); /* NULL is allowed */

#endif
