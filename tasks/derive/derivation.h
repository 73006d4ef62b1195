/* A draft while it is derived: a copy of its own, with the axes that stay and with all other names of
 * axes replaced by numbers in shapes, constraints and lines. */
#ifndef TASKS_DERIVE_DERIVATION_H
#define TASKS_DERIVE_DERIVATION_H

#include "tasks/derive/derive.h"

typedef struct {
    Draft draft; /* its arrays and texts are this struct's; op_type and description may be NULL */
    DraftAxis *axes;
    DraftTensor *inputs, *outputs;
    const char **constraints, **lines, **tags;
    Graph *graph;
    char **owned;
    int n_owned;
} Derivation;

/* Axis values in the order of draft.axes. */
typedef struct {
    int64_t at[TASK_MAX_AXES];
} Sizes;

int derivation_open(Derivation *v, const Draft *d, Error *err);
void derivation_release(Derivation *v);
char *derivation_keep(Derivation *v, char *text); /* takes a text that is freed with v */

/* Evaluates an expression over the axes. */
int derivation_value(const Derivation *v, const Sizes *s, const char *text, int64_t *out,
                     Error *err);
/* Binds the graph. An error: an axis is out of its range, a constraint does not hold, an operator
 * refuses the shapes, or a tensor would have no elements. */
int derivation_bind(const Derivation *v, const Sizes *s, GraphBound **out, Error *err);
/* The same for what has no interest in the graph: 0 or -1. */
int derivation_fits(const Derivation *v, const Sizes *s);
Sizes derivation_own(const Derivation *v); /* the module's own sizes */

/* Finds an expression over the axes that equals f wherever the graph can be bound; NULL: none is
 * found. f returns a number of a bound graph. The caller keeps the text with derivation_keep. */
typedef int64_t BoundNumber(const Derivation *v, const GraphBound *b, const void *what);
char *derivation_expression(const Derivation *v, BoundNumber *f, const void *what,
                            const Sizes *more, int n_more);

#endif
