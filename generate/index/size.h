/* Sizes of a graph as a plan writes them. A graph is bound several times, to axes that differ; a Size is
 * one number of it at each binding, so that equal Sizes are equal wherever the graph can be bound.
 * Binding 0 has the task's timed sizes. */
#ifndef GENERATE_SIZE_H
#define GENERATE_SIZE_H

#include "tasks/derive/derivation.h"

enum { SIZE_BINDINGS = 4, SIZE_TEXT = 160, SIZE_KNOWN = 256 };

typedef struct {
    int64_t at[SIZE_BINDINGS];
} Size;

typedef struct {
    const Task *task;
    Derivation derived;
    GraphBound *bound[SIZE_BINDINGS];
    unsigned char *odd; /* by value: it has a shape that is no expression */
    int n_known;
    struct {
        Size size;
        char text[SIZE_TEXT];
    } known[SIZE_KNOWN];
} SizeTable;

/* The graph that kernels are made for: a task's own, or that beside its reference.c; NULL: there is none. */
static inline const Graph *size_graph(const Task *t)
{
    return t->graph ? t->graph : t->operators;
}

/* The task as a GPU times it: its timed sizes are the module's own, and the shortened ones one more workload.
 * The caller frees it, alone, before t. NULL: t is timed so already. */
Task *size_own(const Task *t);
int size_is_own(const Task *t); /* it is such a task */

/* UNSUPPORTED: no sizes can be found that tell the axes apart. The task must outlive the table. */
int size_open(SizeTable *t, const Task *task, Error *err);
void size_close(SizeTable *t);

/* The task as a draft, with its timed sizes. least: no axis is smaller, so that none counts as a number. */
int size_derivation(const Task *t, int64_t least, Derivation *out, Error *err);

/* The expression of a size over the task's axes: 0, or UNSUPPORTED. */
int size_text(SizeTable *t, Size s, char out[SIZE_TEXT], Error *err);

/* Makes a size that has no expression yet one of those that have: text, of the graph. */
void size_know(SizeTable *t, Size s, const char *text);
/* Makes a sum one of the sizes that have an expression. */
void size_know_sum(SizeTable *t, Size a, Size b);

Size size_number(int64_t n);
Size size_times(Size a, Size b);
Size size_plus(Size a, Size b);
Size size_over(Size a, Size b); /* rounds down */
Size size_rest(Size a, Size b); /* what a division leaves */
int size_same(Size a, Size b);
int size_is(Size a, int64_t n);   /* at every binding */
int size_divides(Size d, Size a); /* d divides a at every binding; d is above 0 */
int size_less(Size a, Size b);    /* at every binding */
int size_constant(Size a);        /* one number at every binding */

#endif
