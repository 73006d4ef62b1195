/* Speeds of the engine: a model of some shape with random weights, trained and sampled from. */
#ifndef MODEL_BENCH_H
#define MODEL_BENCH_H

#include "model/core/model.h"
#include "model/memory_plan.h"

/* The shape by its name ("qwen2.5-7b"); -1 where there is none. */
int bench_shape(const char *name, ModelConfig *c, Error *err);
const char *bench_shape_names(void); /* "a|b|c" */

/* One random block, repeated: as many weights as there is memory for, in seconds. */
int bench_model(const ModelConfig *c, const Ops *ops, Model **out, Error *err);

/* The best of some products of three square matrices, in FLOP/s. */
double bench_peak(const Ops *ops, int side);

/* FLOPs of a token: multiply-adds count two. */
double bench_forward_flops(const ModelConfig *c, double context);
/* Of training: gradients of inputs, and (full) of weights; what is computed again is not counted
 * again. */
double bench_training_flops(const ModelConfig *c, double context, int full);

typedef struct {
    int sequences, length, steps;
    TrainerOptions trainer;
    double peak; /* FLOP/s that shares are of */
    int profile;
} BenchTraining;

/* Prints its lines on stdout, as the next. */
int bench_training(Model *m, const BenchTraining *b, Error *err);

typedef struct {
    int batch, prompt, new_tokens, copies;
    double peak;
} BenchSampling;

int bench_sampling(Model *m, const BenchSampling *b, Error *err);

/* ---- where the time goes: every operation is waited for and timed ---- */
void profile_begin(Model *m);
/* Puts the model's own table back, and prints the operations by their time. */
int profile_end(Model *m, Error *err);

#endif
