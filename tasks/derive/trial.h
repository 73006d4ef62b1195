/* Executions of a graph on plain random inputs. */
#ifndef TASKS_DERIVE_TRIAL_H
#define TASKS_DERIVE_TRIAL_H

#include "tasks/derive/derivation.h"

typedef struct {
    GraphBound *b;
    double **in, **out;
    int n_inputs, n_outputs;
} Trial;

/* like: another trial of the same sizes and seed; NULL: none. */
int trial_open(Trial *t, const Derivation *v, const Sizes *s, uint64_t seed, const Trial *like,
               Error *err);
void trial_close(Trial *t);
int trial_run(Trial *t, const GraphHook *hook, Error *err);

#endif
