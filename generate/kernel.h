/* One kernel: results that are computed together, over one set of loop axes. Tracing goes from its
 * results back to what lies in memory and lists the operations with the place of their elements; an
 * operation that two results need is there once. */
#ifndef GENERATE_KERNEL_H
#define GENERATE_KERNEL_H

#include "generate/index/index.h"
#include "generate/node.h"

/* The columns of a part are a multiple of PART_UNIT, that is of vectors of any width. */
enum { PART_UNIT = 8 };
enum {
    KERNEL_STEPS = 192,
    KERNEL_ROOTS = 4,
    KERNEL_SIZES = 40,
    KERNEL_TENSORS = 48,
    KERNEL_LOOPED = 8
};

/* level: how many passes over a row must be over before it can be computed. axes: bits of those on which it
 * depends; of a fold without those that it is over. */
typedef struct {
    int node, arg[3], level;
    int place;   /* it is a coordinate, of which axes of indices may be made */
    int scanned; /* how many scans, one behind the other, it needs, itself among them */
    int inside;  /* the condition, by number, under which its elements are there; 0: always */
    int looped; /* a fold of few terms, over axes of its own, that each element adds up by itself */
    Index at;
    unsigned axes, over;
} Step;

/* A condition: each step's number lies from 0 to below the size. */
enum { KERNEL_TERMS = 8, KERNEL_CONDITIONS = 32 };
typedef struct {
    int n;
    struct {
        int step;
        Size below;
    } term[KERNEL_TERMS];
} Condition;

typedef struct {
    Size size;
    char name[24];
} KernelSize;
typedef struct {
    int node, written;
    char name[GRAPH_NAME + 2];
} KernelTensor;

typedef struct {
    Nodes *nodes;
    Axes axes;
    int bound[INDEX_AXES];    /* by axis: the step whose number it is; -1: it is a loop's */
    int n_conditions, inside; /* inside: of what is traced now */
    Condition condition[KERNEL_CONDITIONS]; /* 0 is no condition */
    IndexScope scope;                       /* over axes and the kernel's sizes */
    int n;
    Step step[KERNEL_STEPS];
    int n_roots;
    struct {
        int node, step;
        Index at;
    } root[KERNEL_ROOTS + 1]; /* the last is room for one */
    int scan, backward; /* the axis of scans, and whether they run to its beginning; -1: none */
    unsigned rows;      /* the axes of a row; the others are its columns */
    int has_folds;
    int n_sizes, n_tensors;
    KernelSize size[KERNEL_SIZES];
    KernelTensor tensor[KERNEL_TENSORS];
    unsigned looped; /* the axes of looped folds */
    int n_looped, looped_node[KERNEL_LOOPED];
    int n_open;  /* folds of rows whose elements are traced now */
    int has_own; /* a fold that is placed gets axes of its own */
    int again;   /* the kernel is traced anew: one more fold is looped */
    int n_traced;
    struct {
        int node, inside, step;
        Index at;
    } traced[KERNEL_STEPS]; /* points: each is looked at once under a condition, not once a use */
    int wanted;             /* the node that must lie in memory before: -1 */
} Kernel;

/* Begins a kernel of one result, and of the parts of the fold that it is paired with. 0: done; 1: the node
 * k->wanted has to be stored first, and the kernel is of no use; -1: *err. */
int kernel_trace(Kernel *k, Nodes *nodes, int root, Error *err);
/* The same for several results, none of which is paired: of as many elements as the largest one, or of one
 * for each row that is folded for it. */
int kernel_trace_together(Kernel *k, Nodes *nodes, const int *root, int n, Error *err);
int kernel_largest(const Kernel *k); /* the number of a result of most elements */
/* 1: what it computes on its way lies in memory by now, for other kernels: it has to be traced anew. */
int kernel_is_stale(const Kernel *k);
/* Of a kernel of too many steps: the last point that it computes at several places, which another kernel is
 * to store, or -1; *err says it in both cases. */
int kernel_repeated(const Kernel *k, Error *err);
/* A spread and its mean become folds over the last dimension of their parts: the spreads, the means, and how
 * many elements each is of. columns: elements of a row. */
void kernel_join_spread(Nodes *n, int spread, const int part[3], Size columns);
/* Joins neighbouring axes through which all elements lie in one piece. */
void kernel_merge(Kernel *k);

/* The loops on which an index depends: bits by axis. */
unsigned kernel_loops(const Kernel *k, const Index *at);
/* The name of a size in the kernel: that of a parameter, or a number. */
const char *kernel_size(void *kernel, Size s, Error *err);
const char *kernel_tensor(Kernel *k, int node, int written);
/* Gives a kernel the sizes and tensors of another one, which has its own already: two texts of one kernel. */
void kernel_share(Kernel *k, const Kernel *with);

enum { TEXT_PACKED = 8, TEXT_BUFFERS = 6 + TEXT_PACKED, TEXT_SIZES = 16 };

/* Filters that one launch packs, before what reads the first of them: `at` in the plan. bytes: of all at the
 * timed sizes. beside: as pack_filters has it. */
typedef struct {
    size_t at;
    int n;
    double bytes;
    struct {
        char name[GRAPH_NAME], filters[SIZE_TEXT], channels[SIZE_TEXT], taps[SIZE_TEXT];
        int beside, transposed;
    } of[TEXT_PACKED];
} TextPack;

/* Appends the kernel's source, unless an equal one is there, and the line that launches it. seen: the texts
 * of all so far. estimate: it gets the kernel's time by the analytic model (estimate.h); NULL: none is asked
 * for. shared: buffers that products share, by the sizes that they need (product_text.h). */
typedef struct {
    Buffer *plan, *source;
    int number; /* of the next kernel */
    int n_seen;
    struct {
        char *text;
        int number;
    } * seen;
    unsigned helpers;  /* bits of what the source has already */
    unsigned multiply; /* and of the instructions of half types, by type and columns */
    struct Estimate *estimate;
    struct {
        int n;
        char size[TEXT_SIZES][SIZE_TEXT];
    } shared[TEXT_BUFFERS];
    int n_packs;
    TextPack *pack;
} KernelText;
int kernel_write(Kernel *k, KernelText *t, Error *err);
/* Adds the source of a kernel, in which @ stands for its number, or finds one that is equal but for the names
 * of its parameters: the number. */
int kernel_put_source(KernelText *t, const char *text);

/* For kernels whose loops are written elsewhere: what they do with one element, whose flat place in
 * the first result is line * width + column, with batch * rows + row as the line where rows is above
 * 0. given: the steps that the text has as `sum` and `sum_2`; width: an axis begins there. Statements
 * that end in a return of the result. between: a text behind what depends on the line alone; is_small:
 * places have 32 bits; near: functions of half types may err by less than these round. */
typedef struct {
    int n_given, given[2];
    Size width, rows;
    const char *between;
    int is_small, near;
} KernelElement;
int kernel_put_element(Kernel *k, KernelText *t, const KernelElement *e, Buffer *out, Error *err);
/* Parameters, with their types or by name, and what the plan passes. wide: sizes of 64 bits. */
void kernel_put_parameters(const Kernel *k, int types, int wide, Buffer *out);
int kernel_put_arguments(const Kernel *k, Buffer *out, Error *err);
/* Does a step read two neighbours of a half type in one piece where the result's two columns are one piece?
 * Its tensor is as large as the result, or has the columns for some of the rows. `rows` are known. */
typedef enum { PAIRS_NONE, PAIRS_OF_COLUMNS, PAIRS_OF_ALL } KernelPairs;
KernelPairs kernel_reads_pairs(const Kernel *k, int step);
int kernel_is_wide(const Kernel *k); /* a tensor has 2^30 elements or more */

/* 1: it reads a tensor at places that another one names. */
int kernel_gathers(const Kernel *k);

#endif
