/* A task is a folder tasks/<name>/ with task.json, and either reference.c and baseline.cu or a
 * "graph" in task.json, from which both follow. Two more files are optional: baseline_cuda.cu is
 * the baseline on a GPU, where eager PyTorch launches something else there, such as library calls;
 * best.cu is the best fused or library implementation known, which is reported beside the baseline
 * and is never speedup 1.0.
 *
 * task.json:
 *   name, description, op_type, tags [], level 1..3, split "train"|"heldout"
 *   axes       {"rows": {"description": "..."}, ...}; their order is the axis order. "own": the module's
 *              size, where the first timed workload is smaller: a device with room for it times it (Task.own)
 *   call       {"x": {"tensor": true}, "scale": 2.0}, optional: the arguments of the exported call, for
 *              packages
 *   inputs     {"x": {"dtype": "float32", "shape": ["rows", "cols"], "draw": "normal"}}
 *   outputs    the same without "draw"; "integer" draws take "low" and "high", which may be an
 *              expression over the axes: "rows - 1", and may take "distinct": a dimension along
 *              which no integer comes twice
 *   graph      ["h = aten.linear(x, w, b)", "y = aten.relu(h)"]: operators of graph/op_line.h over
 *              axes and inputs; each output is the name of a result. bytes and flops then follow
 *   tolerance  {"float32": {"atol": 1e-5, "rtol": 1e-4}, "terms": "cols", "degree": 2}
 *              Without a graph, of float32 also "tf32": {"atol": 1e-3, "rtol": 1e-3}: what an error grows by
 *              where factors are rounded to TF32; its atol is multiplied by the root of `terms`
 *   special    ["large", "inf", "nan"], optional: the special values beyond 0 and tiny numbers
 *   turns      "rows", optional: an axis. Tensors whose first dimension is this axis, rotated by any
 *              number of positions, give the outputs rotated by the same number
 *   exact      "cols", optional: outputs are sums of at most so many products of inputs, so that
 *              small integers give exact results
 *   bytes      "4*(rows*cols*2)", and
 *   flops      "rows*cols": the least that any kernel must move and compute
 *   precision  {"matmul": "highest", "cudnn_tf32": true}, optional: how eager PyTorch computes float32
 *              (base/precision.h), which the baseline does too; without it PyTorch's default
 *   budget     "2x" or "1e-3", optional: the error that is allowed (base/precision.h)
 *   workloads  [{"role": "check"|"time"|"sim", "axes": {"rows": 7, "cols": 33}}]; optional in each:
 *              "atol" {"y": [a, b, c, d, e]}, which replaces the tolerance's: at input scales 1, 8
 *              and 1/8, for needles and for special values; "note", a sentence about the sizes.
 *              At most TASK_MAX_TIMED have the role "time", each with an optional "weight" in the mean
 *              of their scores. As many or one have "sim": the sizes of the same number, or of all
 *   constraints ["c % 8 == 0"], optional: what the axes of every workload keep to
 *   degenerate "y ignores w", optional: why the task has the tag of this name
 * An input of a graph may have "mean" and "std" (normal, mixed), "low" and "high" (uniform), and
 * "parameter", which keeps it as drawn at every input scale and in every variant: its name in the
 * module's state_dict, or true, when that is the input's name. "fixed": true keeps another input so.
 * "unused": true says that no line of the graph takes it, "format" in which memory format the module has it.
 * Shapes, bytes and flops are expressions of base/expr.h over the axes.
 *
 * reference.c defines
 *   void reference(const int64_t *axis, const double *const *in, double *const *out)
 * over arrays of doubles in C order, in the order of task.json. Make compiles it to
 * build/tasks/<name>.so. */
#ifndef TASKS_TASK_H
#define TASKS_TASK_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/expr.h"
#include "base/precision.h"
#include "tasks/graph/graph.h"

enum { TASK_MAX_AXES = 16, TASK_MAX_TENSORS = 1024, TASK_MAX_RANK = 8, TASK_MAX_WORKLOADS = 32 };
enum { TASK_MAX_CONSTRAINTS = 256, TASK_MAX_TIMED = 8 };
enum { TASK_LARGE = 1 << 20 }; /* elements from which on all cores share the work */

/* normal: mean 0, variance 1, inside +-6. uniform: [-1, 1), or [low, high). positive: [0.5, 1.5).
 * integer: low to high, both included, never scaled. mixed: normal, but of 16 elements one is 16
 * times as large, one is tiny and one is zero. */
typedef enum { DRAW_NORMAL, DRAW_UNIFORM, DRAW_POSITIVE, DRAW_INTEGER, DRAW_MIXED } Draw;
const char *draw_name(Draw d);

/* Kinds of inputs of a case.
 *   needles   noise of size 1/16 with one element in 128 of size 4 to 8, which reveals skipped work
 *   special   half of the elements are zeros of both signs, subnormals, the smallest normal numbers,
 *             and what the task's "special" adds
 *   integers  more bits than TF32, float16 or bfloat16 keep, with results exact in float32
 * Those from VARIANTS on are for the operators of regimes.h, and change the inputs that reach them, and
 * parameters (carried.h), row by row:
 *   signs     rows of one sign, of whole numbers with ties, and of large negative ones
 *   large     rows 64 and 8 times as large, 150 above and below zero, and of few dominant elements
 *   far       the mean is 1000 times the deviation; constant rows
 *   low       all elements are below -1e5 (float16: about -3e4)
 *   ends      what is drawn positive is anything from 2^-30 to 2^10
 *   few bits  numbers of four bits, whose products with integers are exact
 *   zeros     each third row is zeros
 * One is for inputs of integers alone:
 *   range     rows at the upper end of the range, at the lower one, at both, and as drawn
 * One is for inputs of half types that are summed:
 *   falling   the first quarter of a row is large, each other element less than a sum of it has places for
 * One is for inputs of float32 that reach a maximum or a softmax by views alone:
 *   least     each other row from -1.2e38 to -1.8e38 (for a minimum others from 1.2e38 to 1.8e38) */
typedef enum {
    VARIANT_DRAWN,
    VARIANT_NEEDLES,
    VARIANT_SPECIAL,
    VARIANT_INTEGERS,
    VARIANTS,
    VARIANT_SIGNS = VARIANTS,
    VARIANT_LARGE_ROWS,
    VARIANT_FAR,
    VARIANT_LOW,
    VARIANT_ENDS,
    VARIANT_FEW_BITS,
    VARIANT_ZERO_ROWS,
    VARIANT_RANGE,
    VARIANT_LEAST,
    VARIANT_FALLING,
    VARIANTS_OF_REGIMES
} Variant;
const char *variant_name(Variant v);
enum { SPECIAL_LARGE = 1, SPECIAL_INF = 2, SPECIAL_NAN = 4 };

typedef struct {
    char name[64];
    Dtype dtype;
    int rank;
    char *shape[TASK_MAX_RANK];  /* expressions */
    Draw draw;                   /* inputs only */
    int64_t draw_low, draw_high; /* DRAW_INTEGER; see task_integers */
    char *draw_highest;          /* an expression in place of draw_high; NULL: none */
    int distinct;                /* the dimension along which no integer comes twice; -1: none */
    double mean, std;            /* of DRAW_NORMAL and DRAW_MIXED: 0 and 1 unless given */
    double low, high;            /* of DRAW_UNIFORM: -1 and 1 unless given */
    int parameter; /* of a module, or "fixed": not scaled, and as drawn in every variant */
    int unused;    /* no line of the graph takes it, so that it has no effect */
} TaskTensor;

typedef enum { ROLE_CHECK, ROLE_TIME, ROLE_SIM } Role;

/* The cases for which a workload can have a tolerance of its own, in the order of "atol". */
enum { AT_SCALE_1, AT_SCALE_8, AT_SCALE_EIGHTH, AT_NEEDLES, AT_SPECIAL, ATOL_CASES };

typedef struct {
    Role role;
    int64_t axis[TASK_MAX_AXES];
    double weight; /* ROLE_TIME: in the mean of the scores; 1 unless given */
    char *note;    /* how its sizes differ from the module's own; NULL: they do not */
    double *atol;  /* [output][ATOL_CASES]; NULL: the tolerance of the task */
} Workload;

typedef struct {
    char name[64], op_type[64];
    char *description, *dir, *bytes, *flops;  /* bytes and flops of a graph: NULL */
    char *reference_source, *baseline_source; /* of a graph: its text, and its `//@ op` lines */
    char *baseline_cuda_source, *best_source; /* NULL: none */
    int level, heldout, degenerate;
    int by_composition, by_family; /* tags of heldout tasks: why they are held out */
    int n_axes, n_inputs, n_outputs, n_workloads;
    char axis_name[TASK_MAX_AXES][32];
    TaskTensor *inputs, *outputs;
    char **constraints; /* expressions that are not 0 at any size that is allowed */
    int n_constraints;
    int in_memory;                     /* it was read from a text, and dir is no folder */
    double atol[DTYPES], rtol[DTYPES]; /* by Dtype; -1: none given */
    char *terms;      /* expression: atol is per term of the longest sum; NULL: 1 */
    unsigned special; /* SPECIAL_... */
    int rotates;      /* axis: see "turns" above; -1: none */
    enum {
        POSITIONS_UNKNOWN,
        POSITIONS_INDEPENDENT,
        POSITIONS_DEPENDENT
    } positions; /* positions.h */
    char *exact; /* expression: terms of the longest sum of products; NULL: integers are inexact */
    Precision precision; /* that counts: $PRECISION, or the task's own */
    ErrorBudget budget;  /* that counts: $TOLERANCE, or the task's own */
    unsigned tf32; /* TF32_CUBLAS, TF32_CUDNN: what it lets round factors of this task to TF32 */
    double tf32_atol,
        tf32_rtol; /* what that adds without a graph: atol is by the root of `terms` */
    int degree;    /* atol grows as scale^degree when inputs are scaled up (default 1) */
    Workload workloads[TASK_MAX_WORKLOADS];
    /* "own" by axis; 0: the timed workload has the module's size. */
    int64_t own_size[TASK_MAX_AXES];
    /* The first timed workload at its own sizes, without atol; NULL: it has them. */
    Workload *own;
    char digest[DIGEST_HEX]; /* of task.json, reference.c and the .cu files */
    void *library;           /* the dlopen'ed reference; NULL until task_reference */
    Graph *graph;            /* NULL: reference.c and baseline.cu are given */
    Graph *operators; /* beside these: the same as a graph, for the kernel generator; or NULL */
} Task;

/* Loads and checks one folder. Errors name file and field. */
int task_load(const char *dir, Task **out, Error *err);
/* Reads a task of a graph from the text of its task.json. */
int task_parse(const char *name, const char *text, Task **out, Error *err);
void task_free(Task *t);

typedef struct {
    Task **tasks; /* sorted by name */
    int n;
    char digest[DIGEST_HEX]; /* of all tasks' digests */
} TaskSet;

/* Folders nest: one that holds a task.json is a task, any other is a set of the tasks below it. The
 * last part of its path names a task, and is unique among all tasks.
 *
 * only: words by comma, each the name of a task ("relu"), a set ("kernelbench/level1"), or a pattern
 * of them ("kernelbench/level2/k*"). NULL, "" or "all": the tasks that are in no set, or every task
 * where each is in a set. root NULL:
 * $QUERN_TASKS, else Quern's own tasks (base/paths.h). */
int taskset_load(const char *root, const char *only, TaskSet *out, Error *err);
void taskset_release(TaskSet *s);
/* The index in the set of one task, by its name or its folder ("composed/clamp_triu"). A task that is not
 * there is loaded and added at the end; the set's digest stays. -1: there is none, or it cannot be
 * read. */
int taskset_need(TaskSet *s, const char *root, const char *word, Error *err);
/* A command's task may be the path of its folder, as a shell completes it. Where `task` is one and no root is
 * given, root becomes the folder that holds it, which lives until the process ends, and task its name. */
void task_at_path(const char **root, const char **task);
/* The folders that taskset_load would load, sorted; the caller frees. */
int taskset_paths(const char *root, const char *only, char ***paths, int *n, Error *err);
void taskset_paths_free(char **paths, int n);
Task *taskset_find(const TaskSet *s, const char *name, size_t len); /* NULL: none */

/* The first workload of a role, or NULL. */
const Workload *task_workload(const Task *t, Role role);
/* The timed workload with the most elements of inputs and outputs: the largest sizes of any check. */
const Workload *task_largest_timed(const Task *t);

/* A timed workload, and the sizes at which a simulator runs its launches whole. */
typedef struct {
    const Workload *timed, *small;
} TimedPair;
/* Fills out[TASK_MAX_TIMED] in the order of task.json, and returns how many there are. small is a workload of
 * role "sim": the one of the same number, else the only one where no axis of it is larger, else timed. */
int task_timed(const Task *t, TimedPair *out);

/* Axis and shape arithmetic for one workload; ExprLookup over the axes with ctx = TaskScope. */
typedef struct {
    const Task *task;
    const Workload *workload;
} TaskScope;
int task_lookup(void *task_scope, const char *name, size_t len, int64_t *value);
int task_shape(const Task *t, const Workload *w, const TaskTensor *x, int64_t shape[TASK_MAX_RANK],
               Error *err);
/* Is the tensor's first dimension the axis of "turns"? */
int task_rotates(const Task *t, const TaskTensor *x);
int task_is_scalar(const Task *t); /* all outputs are scalars */
int task_elements(const Task *t, const Workload *w, const TaskTensor *x, size_t *n, Error *err);
/* The bounds of an integer draw, both included. An error: they are too close for distinct integers. */
typedef struct {
    int64_t low, high;
} IntegerBounds;
int task_integers(const Task *t, const Workload *w, const TaskTensor *x, IntegerBounds *out,
                  Error *err);
int task_cost(const Task *t, const Workload *w, double *bytes, double *flops, Error *err);
/* Returns 0 when the workload keeps to the task's constraints. */
int task_allows(const Task *t, const Workload *w, Error *err);

/* The source of the baseline: baseline_cuda.cu where the task has it. */
const char *task_baseline(const Task *t);

/* The check workload with the most elements of the first input, which is judged with all variants too:
 * its many blocks can show a dependence on order. NULL: there is none. */
const Workload *task_largest_check(const Task *t);

/* Does the workload have this variant? 0 or 1. */
int task_has_variant(const Task *t, const Workload *w, Variant v);

/* A case: which inputs of a task. Equal cases give equal bytes with any number of threads. scale multiplies
 * the drawn values; variants other than drawn have sizes of their own. Values are rounded to the dtype. */
typedef struct {
    const Task *task;
    const Workload *workload;
    Variant variant;
    uint64_t seed;
    double scale;
} TaskCase;

/* Fills one input with elements of its dtype. */
int task_draw(const TaskCase *c, int input, void *dst, Error *err);

/* Elements of a large input that are drawn together, as VARIANT_DRAWN. */
size_t task_part(const Task *t, int input);

/* How the float32 numbers of a large tensor are drawn: each TASK_STREAM elements from a stream of
 * random numbers of their own. `by_index`: an element's number depends on its index and the stream's
 * first one, `state`[0], alone; else xoshiro's states are at 4 numbers a stream. */
typedef struct TaskStreams {
    int by_index, draw, variant; /* Draw; VARIANT_DRAWN, _NEEDLES or _SPECIAL */
    unsigned special;            /* of VARIANT_SPECIAL */
    double low, wide, mean, std, scale;
    size_t n;
    uint64_t *state; /* the caller frees it */
} TaskStreams;

enum { TASK_STREAM = 1 << 16 };
/* Returns 1 where an input is drawn so, its first n elements; 0: it is drawn in another way. */
int task_draw_streams(const TaskCase *c, int input, size_t n, TaskStreams *out);
/* Fills elements [from, from + count) of a tensor of more than TASK_LARGE elements, as task_draw
 * fills them; from is a multiple of task_part. A smaller tensor is filled whole. */
int task_draw_part(const TaskCase *c, int input, size_t from, size_t count, void *dst, Error *err);

/* task_draw's elements as doubles, a large input by parts. */
int task_draw_wide(const TaskCase *c, int input, double *dst, Error *err);

/* Writes the workload's name in messages: "check rows=7 cols=33". */
void task_workload_text(const Task *t, const Workload *w, char *out, size_t size);

/* What follows for each element, or all together, from the errors of honest kernels on the same inputs. */
typedef struct {
    size_t n;
    double most;  /* of task_mean_square; NAN: nothing follows for it */
    float *limit; /* by element; NULL: no element has one */
    /* Without limits: what the error of each is where kernels cut factors off (NULL: nothing is cut off), and
     * the error that is usual. */
    double *drift, unit;
} ElementLimits;

/* An element may differ from the reference by atol + rtol*|reference|, and by its own limit. */
typedef struct {
    double atol, rtol;
    const ElementLimits *elements; /* NULL: none */
} Tolerance;

/* Of one output of a case, with any seed. */
int task_tolerance(const TaskCase *c, int output, Tolerance *out, Error *err);

/* Runs the reference. in[i] and out[i] are the caller's arrays of task_elements doubles. */
int task_reference(Task *t, const Workload *w, const double *const *in, double *const *out,
                   Error *err);

/* How an output differs from the reference: the number of wrong elements, the first and the worst. */
typedef struct {
    size_t bad, first, worst;
    double first_got, first_want, worst_got, worst_want;
} TaskDifference;
/* One output of one workload, and what it may differ by. times: task_differences multiplies all limits by it;
 * 0: by 1. */
typedef struct {
    const Task *task;
    const Workload *workload;
    int output;
    Tolerance by;
    double times;
} TaskComparison;
void task_difference_text(const TaskComparison *c, const TaskDifference *d, Error *message);

/* The deviation of an output's elements; of one element its size. */
double task_spread(const double *want, size_t n);
/* Is an absolute tolerance small beside the spread, at most one hundredth? */
int task_tolerance_tells(double atol, const double *want, size_t n);

/* Adds those of elements [from, from + n), which are got[0] and want[0] on, by the rule of task_compare. */
void task_differences(const TaskComparison *c, const void *got, const double *want, size_t from,
                      size_t n, TaskDifference *d);

/* The mean of (difference/limit)^2, over the elements where all three are finite. Without limits, that of the
 * difference from the nearest multiple of the drift, in units; one element counts for so much at most. */
double task_mean_square(const ElementLimits *e, Dtype type, const void *got, const double *want);

/* Compares an output with the reference: |got - want| <= atol + rtol*|want| for every element, and its own
 * limit; NaN equals only NaN, an infinity only itself. With limits the mean of all is compared, too.
 * Returns 0 if they are equal, else 1 with a message that names the first and the worst element and how many
 * are wrong. */
int task_compare(const TaskComparison *c, const void *got, const double *want, Error *message);

/* The last part of it, where no element counts as wrong: 1 with a message: all together have larger errors
 * than honest kernels. */
int task_is_coarse(const TaskComparison *c, const void *got, const double *want, Error *message);

#endif
