/* How a kernel's loops lie on threads, and what its text is written from. */
#ifndef GENERATE_WRITER_H
#define GENERATE_WRITER_H

#include "generate/kernel.h"

/* LONG_SLICE: elements of a row of which a block takes a piece where nothing is folded. */
enum { WRITER_NAME = GRAPH_NAME + 8, LONG_SLICE = 1024 };

/* columns: axes of a row's elements. last: the axis along which neighbouring threads walk; strip: the axis
 * of rows along which they do, where a row's elements lie apart; part: the axis of a split row's parts; -1:
 * none. slices: nothing is folded, and a block takes a piece of a row. alone: a thread folds rows of so few
 * columns, whose number is known, by itself: `each` neighbours along the axis `along`. turned: a thread
 * folds rows along the strip by itself, and a block stores the results along another axis (fold_text.h).
 * block to keep: as the genes of these names. wide: places need 64 bits. kept and defined are by step: loads
 * that stay in registers (2: they are there), and values that are known for the whole row. */
typedef struct {
    Kernel *k;
    KernelText *t;
    Error *err;
    Buffer body;
    unsigned columns;
    int last, strip, part, slices, alone, along, each, turned;
    int block, lanes, vec, items, keep;
    int wide;
    unsigned n_loops; /* so far: each has a counter of its own */
    unsigned char *kept, *defined;
    char (*name)[WRITER_NAME];   /* by step: of its value; NULL: t and the step's number */
    const Index *flat;           /* the place that the text has as `i`; NULL: none */
    const unsigned char *branch; /* by step: those that a branch has computed; NULL: none */
    const unsigned char *moved;  /* by step: loads that a tile in shared memory has; NULL: none */
    int number;                  /* of the source that it is launched by */
    int ahead; /* of the step that is written: the next of its calls that have names; 0: none has */
    unsigned open;    /* the axes of looped folds whose terms are written */
    int failed, near; /* near: as KernelElement says */
    int element;      /* one is written alone, for loops that lie elsewhere */
    int interior;     /* conditions of places hold here: they are left out */
} Writer;

static inline const Node *node_of(const Writer *w, int step)
{
    return &w->k->nodes->node[w->k->step[step].node];
}

/* A step that reads memory; a fold of this kernel; a step that differs from column to column. A result that
 * is one number everywhere has no arguments, and is no load. */
static inline int is_load(const Writer *w, int step)
{
    const Step *s = &w->k->step[step];
    if (!node_of(w, step)->stored || s->arg[0] >= 0) return 0;
    for (int i = 0; i < w->k->n_roots; i++)
        if (w->k->root[i].node == s->node) return 0;
    return 1;
}

static inline int is_fold(const Writer *w, int step)
{
    return node_of(w, step)->kind == NODE_FOLD && w->k->step[step].arg[0] >= 0 &&
           !w->k->step[step].looped;
}

static inline int writer_is_scan(const Writer *w, int step)
{
    return node_of(w, step)->kind == NODE_SCAN && w->k->step[step].arg[0] >= 0;
}

static inline int in_columns(const Writer *w, int step)
{
    return (w->k->step[step].axes & w->columns) != 0;
}

/* A looped fold that all elements of a vector have: its sums are like a load's elements. */
static inline int writer_is_loop(const Writer *w, int step)
{
    const Step *s = &w->k->step[step];
    return s->looped && in_columns(w, step) && !(s->axes & w->k->looped);
}

/* A computed value that may stay in registers: kept is 1 until a pass has computed it, then 2. */
static inline int writer_is_value(const Writer *w, int step)
{
    return node_of(w, step)->kind == NODE_POINT && !is_load(w, step) &&
           w->k->step[step].arg[0] >= 0 && !(w->k->step[step].axes & w->k->looped);
}

/* A value that a pass, whose steps are in `set`, computes for later ones. */
static inline int writer_is_new(const Writer *w, const unsigned char *set, int step)
{
    return set[step] && w->kept[step] == 1 && in_columns(w, step) && writer_is_value(w, step);
}

/* 1: the step is computed within a looped fold that is not open. */
static inline int is_within_loop(const Writer *w, int step)
{
    return (w->k->step[step].axes & w->k->looped & ~w->open) != 0;
}

/* ---- text ---- */

typedef enum {
    HELP_PACK,
    HELP_STORE,
    HELP_OVER,
    HELP_FOLD,
    HELP_FOLD_COLUMNS,
    HELP_PEAK,
    HELP_EXCHANGE,
    HELP_MOMENTS,
    HELP_ORDER,
    HELP_SCAN,
    HELP_SCAN_COLUMNS,
    HELP_NEAR,
    HELP_QUICK,
    HELP_DIVISOR,
    HELP_BESIDE,
} Help;
void writer_help(Writer *w, int which); /* puts a function of helpers.cu into the source, once */
const char *writer_type(const Writer *w, int step);
const char *writer_name(const Writer *w, int step, char out[WRITER_NAME]);
const char *writer_pack(const Writer *w, int step, char out[WRITER_NAME]); /* V of its values */
int writer_origin(const Writer *w,
                  int step); /* of a plain kernel: the step whose value it copies */
void writer_step(Writer *w, int step, const char *indent);
void writer_number(Writer *w, double v, const char *type);
/* The calls of a pointwise step that come before it, and its expression. */
void writer_ahead(Writer *w, int step, const char *indent);
/* Reads an element that lies in one piece with its neighbour. 0: there is none; nothing is written. */
int writer_near_load(Writer *w, int step);
void writer_point(Writer *w, int step);
const char *writer_point_type(const Writer *w, int step); /* in which it is computed */
int writer_calls(const Writer *w, int step);              /* functions that take long */
void writer_value(Writer *w, int step,
                  const char *type); /* with a cast where its type is another */
const char *writer_size(Writer *w, Size s);
const char *writer_ctype(const Writer *w, int step); /* in memory */
void writer_index(Writer *w, const Index *at);
/* The axes in `mask` of a flat number, the last one varying fastest. */
void writer_axes(Writer *w, unsigned mask, const char *flat, const char *type, const char *indent);
/* The axes of an element: of its batch and row where no axis goes through both, else of its line. */
void writer_element_axes(Writer *w, const KernelElement *e);
/* Steps that are the same for a whole row, once the folds below `level` are known. */
void writer_row_steps(Writer *w, int level);

/* ---- schedule ---- */

/* What one pass over a row does with an element: it adds to the folds of a level that are over the same
 * axes, or stores the results. */
typedef struct {
    int level; /* of the folds; 0: results are stored */
    unsigned over;
} Pass;
int writer_takes_part(const Writer *w, const Pass *p, int step);
/* Sets set[i] for each step that a step needs, on the way to folds and scans, and for itself. */
void writer_close(const Writer *w, int step, unsigned char *set);
/* Sets set[i] for each step that the pass computes. */
void writer_needed(const Writer *w, const Pass *p, unsigned char *set);
/* The columns of the longest pass over a row. Folds over different axes are passes of their own. */
int64_t writer_longest_pass(const Writer *w);

void writer_loop(Writer *w, const Pass *p); /* the text of a pass over a row */
void writer_kept(Writer *w);                /* what stays in registers between passes */
void writer_fetch(Writer *w, int step, const char *to, const char *indent); /* a load's pack */
void writer_condition(Writer *w, int step); /* under which a step's elements are there */
void writer_step(Writer *w, int step, const char *indent);
/* The results of one element, and of a vector. */
void writer_stores(Writer *w, const char *indent);
void writer_vector_stores(Writer *w, const char *indent);

Size writer_product(const Writer *w, unsigned axes);
unsigned writer_stored(const Writer *w); /* the axes of columns that results have */
/* The axis, of a place that moves along with the last axis, along which a load reads whole vectors: as a cat
 * or a pad of halves of a row does. A vector lies inside or outside as a whole, so that its place can be
 * clamped like that of one element. -1: none. */
int writer_shifted(const Writer *w, int step);
/* How many elements from the last axis's own such a place is, where that is a number and no whole number of
 * vectors: two vectors have the elements then. 0: it is whole. */
int writer_beside(const Writer *w, int step);
/* How far apart neighbours along the last axis are in memory, 2 or 4, where vectors with all that lies
 * between can be read; 0: they cannot. base: where such a vector begins, before what a constant, or an axis
 * of a looped fold, adds within the distance. */
int writer_spacing(const Writer *w, int step, Index *base);
/* Vectors in which a load, or a result, is read or written. */
int writer_is_vector(const Writer *w, int step);
int writer_root_is_vector(const Writer *w, int root);
/* A load in vectors whose place depends on other steps of the columns, which are the same for a vector: it is
 * read once these are known. */
int writer_is_later(const Writer *w, int step);
/* An element of a padded tensor, which is the argument's or a number. */
int writer_is_guarded(const Writer *w, int step);
/* A load of neighbouring elements, or of one: it may be read before it is used. */
int writer_is_packed(const Writer *w, int step);
int writer_passes(const Writer *w); /* over a row, before results are stored */

/* Parts of a kernel's text (kernel_text.c). */
void writer_elements(Writer *w, const char *indent); /* computes and stores V of them */
void writer_source(Writer *w, int threads);
/* What must be whole numbers of vectors: "cols" or "cols | n1". "": everything is. */
void writer_guard(Writer *w, Buffer *to);

/* Of plain kernels (plain.c). The parts: what must be whole vectors, parameters with types, their names. */
typedef struct {
    const char *guard, *types, *names;
} PlainParts;
void plain_source(const Writer *w, Buffer *to, const PlainParts *p);

/* Sets all of the fields above but kept and defined, which the caller has cleared. */
void writer_schedule(Writer *w);
int writer_threads(const Writer *w); /* of a block */
/* Sets the axes of a plain kernel. Then its vector and block; returns the threads that a row should have. */
void writer_axes_plain(Writer *w);
int writer_schedule_plain(Writer *w);
/* A gene of the kernel. */
int writer_choose(const Writer *w, Gene gene, int by_default, int least, int most);
/* Sets them for tiles of a kernel without folds, whose result varies fastest along an axis. */
void writer_schedule_tiles(Writer *w, int across);

#endif
