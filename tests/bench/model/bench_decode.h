/* How fast a model decodes, and on a GPU what a step's parts cost. */
#ifndef TESTS_BENCH_MODEL_BENCH_DECODE_H
#define TESTS_BENCH_MODEL_BENCH_DECODE_H

#include "model/core/model.h"

typedef struct {
    int batch, prompt, new_tokens; /* rows, each with a prompt of its own */
    double bandwidth;              /* bytes a second that shares are of; 0: none */
} BenchDecode;

/* Prints its lines on stdout. A step is timed from the host: with what goes there and comes back.
 */
int bench_decode(Model *m, const BenchDecode *b, Error *err);

/* Each part of a step of so many rows, at `tokens` of context: all layers' in one graph, the best
 * of five. */
int bench_step_parts(Model *m, int rows, int tokens, double bandwidth, Error *err);

#endif
