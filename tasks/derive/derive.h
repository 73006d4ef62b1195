/* Writes the task.json of a graph. A draft says what is computed: axes with the module's own sizes,
 * tensors with symbolic shapes, operator lines. From these follow workloads, draws, tolerances and
 * tags (docs/tasks.md). Equal drafts give equal bytes.
 *
 *   axes         at most TASK_MAX_AXES stay; of more, those of the smallest sizes become numbers
 *   workloads    check: small, odd, prime and one, where the axes allow it. time: the module's own
 *                sizes, or smaller ones where the tensors would take more than DERIVE_TIME_BYTES, with
 *                a sentence in the workload's "note", and "own" in the axes (Task.own); or the shapes
 *                that the draft asks for, the largest first. sim, for each of these: at most DERIVE_SIM_WORK
 *   draws        of inputs without draw: integers in the range that the operators index, positive
 *                under log, sqrt, a power or as a divisor, else normal
 *   tolerance    DERIVE_MARGIN times the worst error of honest variants of the graph (honest.h)
 *   degenerate   a tag, and the reason in the field "degenerate"
 *
 * All text is the caller's and is not kept. */
#ifndef TASKS_DERIVE_DERIVE_H
#define TASKS_DERIVE_DERIVE_H

#include "tasks/task.h"

enum { DERIVE_MAX_AXES = 256, DERIVE_MAX_CONSTRAINTS = 256 };
/* Bounds: bytes of the timed tensors, intermediate results included; thread instructions of the
 * baseline at one check workload and at the simulator's; operations of one reference that is run to
 * measure long sums. */
#define DERIVE_TIME_BYTES (1.75 * (1 << 30))
/* What a simulator has for the results of op lines and their scratch (eval/sim/device.c). */
#define DERIVE_SLOT_BYTES (2000.0 * (1 << 20))
#define DERIVE_CHECK_WORK 3e5
#define DERIVE_SIM_WORK 4e6
#define DERIVE_DEEP_FLOPS 4e5
#define DERIVE_WIDE_FLOPS 16e6
#define DERIVE_WHOLE_FLOPS 2e9
/* Bytes of the tensors of all cases that are measured at a time. */
#define DERIVE_MEMORY (6.0 * (1 << 30))
/* A graph whose smallest sizes need more is refused: it would be executed some 50 times. */
#define DERIVE_MAX_FLOPS 3e10

typedef struct {
    const char *name;        /* a C identifier of at most 31 bytes */
    const char *description; /* NULL: the places where it stands, "dimension 0 of x" */
    int64_t size;            /* the module's own */
    int64_t low, high;       /* what the module allows, both included. 0: 1; 2^31 - 1 */
    int one; /* low is 2, and 1 may be allowed, too: one check workload has it then */
} DraftAxis;

typedef struct {
    const char *name;
    Dtype dtype; /* DTYPES of an output: the graph's */
    int rank;    /* -1 of an output: the graph's, and expressions are found for the shape */
    const char *shape[TASK_MAX_RANK]; /* integer expressions over the axes */
    /* of inputs */
    const char *parameter; /* its name in the module's state_dict; NULL: an argument of forward */
    int has_statistics;    /* of a parameter, over its elements */
    int has_range;         /* min and max of an example input's integers are known */
    double mean, std, min, max;
    int has_draw; /* `draw` and its numbers hold, as in task.json; 0: derive chooses */
    Draw draw;
    double low, high;    /* of DRAW_UNIFORM and DRAW_INTEGER */
    const char *highest; /* of DRAW_INTEGER, an expression in place of high; NULL: none */
    int distinct; /* of DRAW_INTEGER: 1 + the dimension along which no integer comes twice, or 0 */
    const char *
        format; /* the memory format that the module's own has, "channels_last"; NULL: contiguous */
    int unused; /* the module ignores it, or returns it as it is */
    int fixed;  /* as drawn at every input scale and in every variant, like a parameter */
} DraftTensor;

/* Sizes that are timed (shapes.h). Names are no terminated texts. */
typedef struct {
    const char *name;
    size_t len;
    int64_t size;
} DraftSize;

typedef struct {
    DraftSize sizes[TASK_MAX_AXES];
    int n;
    double weight;
} DraftShape;

typedef struct {
    const char *name;        /* of the task and its folder */
    const char *description; /* NULL: the graph as formulas */
    const char *op_type;     /* NULL: the costliest operator, "conv2d" */
    const char *const *tags; /* beside "graph" and "degenerate" */
    int n_tags, level, heldout;
    const DraftAxis *axes;
    int n_axes;
    const char *const *constraints; /* expressions that are not 0: "c % 8 == 0" */
    int n_constraints;
    const DraftTensor *inputs, *outputs;
    int n_inputs, n_outputs;
    const char *const *lines; /* of tasks/graph/op_line.h */
    int n_lines;
    const char *call; /* JSON: the arguments of the exported call, for packages. NULL: not known */
    /* JSON: a place in outputs or an input's name for each tensor that the module returns. NULL: each output
     * once, in order. */
    const char *results;
    const Precision *precision; /* NULL: PyTorch's default */
    const char *budget;         /* base/precision.h; NULL: none */
    const DraftShape *shapes;   /* n_shapes; none: the module's own sizes are timed */
    int n_shapes;
} Draft;

/* *text: the whole file, which the caller frees. Errors say which axis, tensor, line or constraint is
 * wrong; UNSUPPORTED: an operator without a plain kernel. */
int derive_task(const Draft *d, char **text, Error *err);

/* Of a program that derives, first in main: freed arrays stay with the process, since the next execution
 * needs as many, and threads sleep while they have no work (the program may start again for that). */
void derive_prepare(char *const argv[]);

/* Writes it to folder/NAME/task.json and makes the folders. */
int derive_write(const Draft *d, const char *folder, Error *err);

#endif
