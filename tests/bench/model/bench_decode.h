/* Speed of decoding, and on a GPU the time of each part of a step. */
#ifndef TESTS_BENCH_MODEL_BENCH_DECODE_H
#define TESTS_BENCH_MODEL_BENCH_DECODE_H

#include "model/core/model.h"

typedef struct {
    int batch, prompt, new_tokens; /* batch: rows, each with its own prompt */
    double bandwidth;              /* bytes a second: shares are relative to it; 0: no shares */
} BenchDecode;

/* Measure decoding and print the results on stdout. A step is timed on the host, so its transfers
 * count. */
int bench_decode(Model *m, const BenchDecode *b, Error *err);

/* Print the time of each part of a step, for `rows` rows at `tokens` of context. A part of all
 * layers runs in one graph; the best of five runs counts. */
int bench_step_parts(Model *m, int rows, int tokens, double bandwidth, Error *err);

#endif
