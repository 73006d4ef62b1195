/* What the inputs of a task become so that an operator within its graph meets the contents of regimes.h: the
 * rows of the input that reaches it, and what parameters on the way are multiplied by, or have added.
 *
 * Rows of one sign stay so through a product, since its other factor is made positive. Rows of large values
 * are large behind products of a check's few terms, since their parameters are multiplied. Where a maximum is
 * subtracted behind a product, a few of its parameters are far larger than the others, so that in each row
 * one result is far above all others. A mean far from zero behind a product is its bias's. */
#ifndef TASKS_CARRIED_H
#define TASKS_CARRIED_H

#include "tasks/task.h"

/* Of one input: each element is multiplied by factor, made positive (or, where it flips, each other one is
 * negated), and has shift added, and then is one of a row of the variant. rows 2: a least element is looked
 * for, too, so that every other row far below zero is far above. */
typedef struct {
    unsigned char rows, positive, flips, spikes; /* spikes: a few elements are far larger */
    double factor, shift;
} Carried;

/* Fills out[n_inputs]. shows: an operator has faults that the variant shows. Returns 0 where no input reaches
 * such an operator. The graph is bound to w's sizes. */
typedef int CarriedShows(const char *operator_name, Variant v);
int carried_find(const Task *t, const Workload *w, Variant v, CarriedShows *shows, Carried *out);

#endif
