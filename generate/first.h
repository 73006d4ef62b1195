/* The kernel generator: a right candidate for a task's graph, by a schedule or its defaults. Expressions are
 * joined as far as one kernel can compute them; convolutions, small products and what is no expression stay
 * op lines. */
#ifndef GENERATE_FIRST_H
#define GENERATE_FIRST_H

#include "generate/estimate.h"
#include "generate/genes.h"
#include "generate/plain.h"
#include "tasks/task.h"

enum { GENERATE_BUFFERS = 256 }; /* of a plan at most, as eval/candidate/plan.h has it */

typedef struct {
    char *source;           /* the candidate, which the caller frees */
    int n_kernels, n_lines; /* kernels of its own, and op lines */
    char why[200];          /* all operators stay as they are in eager PyTorch; "": not so */
} Generated;

/* genes: the given ones, which gets its points; NULL: defaults, and a source without schedule lines.
 * estimate: gets the kernels' times; may be NULL. UNSUPPORTED says what the graph has that cannot be
 * written. */
int generate_first(const Task *task, Genes *genes, Estimate *estimate, Generated *out, Error *err);
/* The same as plain kernels (plain.h), and what mistakes could be made in them. A graph beside a task's
 * reference.c will do. */
int generate_plain(const Task *task, Genes *genes, Plain *plain, Generated *out, Error *err);

#endif
