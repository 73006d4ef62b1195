/* How a kernel's loops lie on threads, and what its text is written from. */
#ifndef GENERATE_WRITER_H
#define GENERATE_WRITER_H

#include "generate/kernel.h"

/* columns: axes of a row's elements. last: the axis along which neighbouring threads walk; strip: the axis
 * of rows along which they do, where a row's elements lie apart; part: the axis of a split row's parts; -1:
 * none. vec: neighbouring elements of a thread. lanes: threads of a row. block: threads of a block of short
 * rows, and where nothing is folded. each: vectors that a thread takes one after another
 * there. items: vectors that a thread keeps in registers. wide: places need 64 bits. kept and defined are by
 * step: loads that stay in registers (2: they are there), and values that are known for the whole row. */
typedef struct {
    Kernel *k;
    KernelText *t;
    Error *err;
    Buffer body;
    unsigned columns;
    int last, vec, lanes, block, each, items, strip, part;
    int wide;
    unsigned char *kept, *defined;
    int failed;
} Writer;

static inline const Node *node_of(const Writer *w, int step)
{
    return &w->k->nodes->node[w->k->step[step].node];
}

/* A step that reads memory; a fold of this kernel; a step that differs from column to column. */
static inline int is_load(const Writer *w, int step)
{
    const Step *s = &w->k->step[step];
    return node_of(w, step)->stored && s->arg[0] < 0;
}

static inline int is_fold(const Writer *w, int step)
{
    return node_of(w, step)->kind == NODE_FOLD && w->k->step[step].arg[0] >= 0;
}

static inline int in_columns(const Writer *w, int step)
{
    return (w->k->step[step].axes & w->columns) != 0;
}

Size writer_product(const Writer *w, unsigned axes);
/* Vectors in which a load, or a result, is read or written. */
int writer_is_vector(const Writer *w, int step);
int writer_root_is_vector(const Writer *w, int root);
int writer_passes(const Writer *w); /* over a row, before results are stored */

/* Sets all of the fields above but kept and defined, which the caller has cleared. */
void writer_schedule(Writer *w);

#endif
