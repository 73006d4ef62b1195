/* A graph as expressions over elements: what lies in memory, pointwise texts, folds over dimensions, and
 * other shapes of a node's elements. Operators that are none of these stay as they are. */
#ifndef GENERATE_NODE_H
#define GENERATE_NODE_H

#include "generate/genes.h"
#include "generate/index/size.h"

enum { NODE_WORD = 96 }; /* characters of an operator's name */
#define NODE_MISH_GATE "tanh((a > 0 ? a : 0) + log1p(exp(-fabs(a))))" /* Mish is a times this */

typedef enum {
    NODE_INPUT, /* in memory, in C order */
    NODE_POINT, /* a text over the elements of up to three nodes, after broadcasting */
    NODE_FOLD,  /* over some dimensions of a node, which the result does not have */
    NODE_VIEW,  /* element i of it is an element of another node, by strides */
    NODE_COORD, /* element i of it is i's coordinate along the dimension `axis`, an integer */
    NODE_PAD, /* coordinate c is arg[0]'s coordinate c - step[]; elements outside of it are number[0] */
    NODE_SCAN,   /* `fold`, a sum or a product, of the elements up to each along `axis` */
    NODE_GATHER, /* elements of arg[0] along `axis` under the numbers in arg[1] */
    NODE_KEPT    /* a result of an op line: in memory, in C order */
} NodeKind;
/* FOLD_SPREAD: the sum of squared distances from the mean; FOLD_EXPSUM: the sum of exp(a - the largest a).
 * One pass over the elements gives each of these together with the mean, or the largest one. */
typedef enum { FOLD_SUM, FOLD_MAX, FOLD_MIN, FOLD_PROD, FOLD_MEAN, FOLD_SPREAD, FOLD_EXPSUM } Fold;

typedef struct {
    NodeKind kind;
    Dtype dtype;
    int rank;
    Size size[OP_MAX_RANK];
    int arg[3]; /* nodes; -1: number[i] */
    double number[3];
    const char *text; /* of a point: over a, b, c, p0, ... and n, which is `scale` as a number */
    const char *type; /* of a point: in which it is computed, "float" */
    const char *from; /* of a point: the type of its operands; NULL: `type` */
    double p[OP_MAX_ARGS];
    Size scale;
    Fold fold;
    unsigned dims; /* of a fold: bits of the dimensions of arg[0] */
    int parts; /* of a fold: so many blocks fold a part of a row each, and the result has a last dimension
                * of this size; 0: one folds it */
    int whole; /* of parts: the fold that was read from the graph */
    int by;    /* of parts: the kept node whose kernel makes them beside its result; -1: none */
    int pair; /* of a spread or an exponential sum: the mean, the largest one; of these: it; -1: none */
    int across; /* of a gathered one: arg[1]'s dimensions replace the axis; 0: all coordinates are its */
    int axis;                       /* of a coordinate, a scan, a gathered one */
    Size step[OP_MAX_RANK], offset; /* of a view: in elements of arg[0] */
    int line;                       /* of a kept one: the graph's operator */
    int made;                       /* by which operator of the graph */
    int value;                      /* the graph's value with these contents; -1: none */
    int last; /* memory of a tensor whose second dimension is the last one here (layout.h); op lines take and
               * give it as the tensor */
    int depthwise; /* it is a depthwise convolution of two dimensions, of the operator by which it is made */
    int packed; /* that memory is what convolutions' kernels read: the layout (packing.h) */
    int exact; /* a step of what follows, as a rounding or a comparison, could differ by its last bit */
    int stored; /* its elements lie in memory, under `name` in the plan */
    char name[GRAPH_NAME], shaped[GRAPH_NAME]; /* shaped: of a view with its shape, for op lines */
} Node;

typedef struct {
    SizeTable *sizes;
    const Graph *graph;
    int n, room;
    Node *node;
    int *
        of; /* by value of the graph that owns its memory: the node of its contents now; -1: none */
    int *versions; /* by the same: how many contents its memory has had */
    int **kept;    /* by line: the nodes of an op line's tensors; NULL: it is none */
    int output[GRAPH_MAX_OUTPUTS];
    int plain_names;     /* of parameters: numbers, not what they stand for */
    Genes *genes;        /* the schedule, the caller's; NULL: defaults */
    struct Plain *plain; /* kernels are plain ones (plain.h); NULL: they are not */
    int line;            /* that is read */
    int place; /* the node of steps that are places of others' elements; 0: there is none */
} Nodes;

/* Reads a task's graph. The table must outlive *out, whose genes and plain the caller has set. */
int nodes_read(Nodes *out, SizeTable *sizes, Error *err);
int nodes_value(Nodes *n,
                int value); /* the node of a value of the graph, as it is at the end; -1: none */
void nodes_free(Nodes *n);
/* Makes nodes one whose elements are the same by their expressions. */
void nodes_join_equal(Nodes *n);
/* "aten.index_add" of "aten.index_add_", with its overload if it has one. */
void node_plain_name(const char *name, char out[NODE_WORD]);

/* Each returns a node. Shapes are those of a's elements, or of the broadcast ones. */
int node_point(Nodes *n, const char *text, Dtype dtype, int a, int b);
int node_fold(Nodes *n, Fold how, int a, unsigned dims);
int node_add(Nodes *n, const Node *x);
void node_broadcast(Node *x, const Node *a); /* x's shape with a's */
Node node_blank(NodeKind kind, Dtype dtype);
/* The fold `how`, FOLD_SPREAD or FOLD_EXPSUM, of a, paired with `with` of it: FOLD_MEAN or FOLD_MAX. */
int node_pair(Nodes *n, Fold how, Fold with, int a, unsigned dims);
/* The coordinate along `axis` of the elements of a's shape. */
int node_coordinate(Nodes *n, int a, int axis);
/* The same elements under another shape. */
int node_reshape(Nodes *n, int a, int rank, const Size *size);
/* The name of a node in schedules: of the first node of a value the value's, of a fold's parts the fold's and
 * "_parts", else "part_NUMBER". */
void node_key(const Nodes *n, int node, char out[GRAPH_NAME]);
/* 1: a name of a plan that something else has: a function, an axis, an output, a node in memory. */
int node_name_taken(const Nodes *n, const char *name);
Size node_count(const Node *x);
int node_same_shape(const Node *a, const Node *b);
/* Sets seen[i] for a node, and what it is made of elementwise or by places. Each is looked at once. */
void node_mark(const Nodes *n, int node, unsigned char *seen);

/* An operator at every binding, and the nodes of its tensors: what it becomes. result[i] is set for each of
 * its results. 0: done; 1: it stays an op line; -1: *err. */
typedef struct {
    const OpCall *call[SIZE_BINDINGS];
    const int *in;
    int *result;
} NodeCall;
int nodes_of_call(Nodes *n, const NodeCall *c, Error *err);

#endif
