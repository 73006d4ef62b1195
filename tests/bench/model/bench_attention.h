/* Speed of a table's attention, at the head shapes and lengths of Qwen2.5 7B and 0.5B and of Llama
 * 3.1 8B. */
#ifndef TESTS_BENCH_MODEL_BENCH_ATTENTION_H
#define TESTS_BENCH_MODEL_BENCH_ATTENTION_H

#include "model/core/ops.h"

/* Print a line per shape: milliseconds, and TFLOP/s of the causal half of the scores (two products
 * forward, five backward). Returns -1 when the device failed. */
int bench_attention(const Ops *op, Error *err);

#endif
