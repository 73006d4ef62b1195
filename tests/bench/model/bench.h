/* Speeds of the engine: training and sampling of a model with random weights, at the shape of an
 * open model. */
#ifndef TESTS_BENCH_MODEL_BENCH_H
#define TESTS_BENCH_MODEL_BENCH_H

#include "model/core/model.h"
#include "model/memory_plan.h"

/* Find a shape by its name ("qwen2.5-7b"). */
int bench_shape(const char *name, ModelConfig *c, Error *err);
const char *bench_shape_names(void); /* "a|b|c" */

/* Make a model with random weights. One random block is repeated, so it takes seconds. */
int bench_model(const ModelConfig *c, const Ops *ops, Model **out, Error *err);

/* The best rate of several products of square matrices, in FLOP/s. */
double bench_peak(const Ops *ops, int side);

/* FLOPs of the forward pass per token, at this mean context. A multiply-add counts two. */
double bench_forward_flops(const ModelConfig *c, double context);
/* FLOPs of a training step per token, with gradients of inputs and (full) of weights. Recomputation
 * is not counted. */
double bench_training_flops(const ModelConfig *c, double context, int full);

typedef struct {
    int sequences, length, steps;
    TrainerOptions trainer;
    double peak; /* FLOP/s: shares are relative to it */
    int profile;
} BenchTraining;

/* Measure training and print the results on stdout. */
int bench_training(Model *m, const BenchTraining *b, Error *err);

typedef struct {
    int batch, prompt, new_tokens, copies;
    double peak;
} BenchSampling;

/* Measure sampling and print the results on stdout. */
int bench_sampling(Model *m, const BenchSampling *b, Error *err);

/* ---- profile ---- */

/* Replace the model's table of operations by one that waits for each operation and times it. */
void profile_begin(Model *m);
/* Restore the table and print the operations, slowest first. */
int profile_end(Model *m, Error *err);

#endif
