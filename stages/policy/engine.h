/* What the stage programs say about the engine: device, adapter, memory; and loading a policy by
 * it. */
#ifndef STAGES_POLICY_ENGINE_H
#define STAGES_POLICY_ENGINE_H

#include "base/flags.h"
#include "model/core/lora.h"
#include "model/core/ranks.h"
#include "model/memory_plan.h"
#include "stages/data/stage_config.h"
#include "stages/policy/policy.h"

typedef struct {
    const char *device, *recompute, *trainer;
    int64_t lora, tokens, gpus;
    double alpha, trainer_hours;
    int rslora, lean, plan;
} EngineFlags;

#define ENGINE_DEFAULTS                                                                    \
    {                                                                                      \
        .device = "cpu", .recompute = "auto", .alpha = 32, .gpus = 1, .trainer_hours = 168 \
    }

/* Rows of a flag table: of every program that runs a model, */
#define ENGINE_FLAGS(e)                                                                \
    {"engine", FLAG_TEXT, &(e).device, "cpu, cuda:N, or auto: a GPU if there is one",  \
     .aside = CONFIG_CHANGED},                                                         \
        {"gpus",                                                                       \
         FLAG_INT,                                                                     \
         &(e).gpus,                                                                    \
         "so many of one host, from the engine's on, share the work",                  \
         1,                                                                            \
         RANKS_MAX,                                                                    \
         .aside = CONFIG_CHANGED},                                                     \
    {                                                                                  \
        "plan", FLAG_BOOL, &(e).plan,                                                  \
            "print what the run will take of the device's memory, and end", .aside = 1 \
    }
/* and of those that train one. */
#define TRAINING_FLAGS(e)                                                                        \
    ENGINE_FLAGS(e),                                                                             \
        {"lora",                                                                                 \
         FLAG_INT,                                                                               \
         &(e).lora,                                                                              \
         "rank of an adapter to train in place of the weights; 0: the weights",                  \
         0,                                                                                      \
         512,                                                                                    \
         .aside = CONFIG_CHANGED},                                                               \
        {"lora-alpha",                                                                           \
         FLAG_FLOAT,                                                                             \
         &(e).alpha,                                                                             \
         "the adapter is scaled by alpha/rank",                                                  \
         1e-3,                                                                                   \
         1e4,                                                                                    \
         .aside = CONFIG_CHANGED},                                                               \
        {"rslora", FLAG_BOOL, &(e).rslora, "by alpha/sqrt(rank) instead",                        \
         .aside = CONFIG_CHANGED},                                                               \
        {"max-tokens",                                                                           \
         FLAG_INT,                                                                               \
         &(e).tokens,                                                                            \
         "of one micro-batch; 0: on a GPU by its memory, on the CPU 8192",                       \
         0,                                                                                      \
         1 << 24,                                                                                \
         .aside = 1},                                                                            \
        {"recompute",                                                                            \
         FLAG_TEXT,                                                                              \
         &(e).recompute,                                                                         \
         "activations made again on the way back: less memory, a third more work",               \
         0,                                                                                      \
         0,                                                                                      \
         "auto|on|off",                                                                          \
         .aside = 1},                                                                            \
        {"lean", FLAG_BOOL, &(e).lean,                                                           \
         "on a GPU no fp32 masters, rounded stochastically: half the memory",                    \
         .aside = CONFIG_CHANGED},                                                               \
        {"trainer", FLAG_TEXT, &(e).trainer, "command of an outside trainer (docs/pipeline.md)", \
         .aside = CONFIG_CHANGED},                                                               \
    {                                                                                            \
        "trainer-hours", FLAG_FLOAT, &(e).trainer_hours, "that it may take", 0.0001, 10000,      \
            .aside = 1                                                                           \
    }

/* After parsing: combinations that make no sense are usage errors. base: the model to start from,
 * or NULL. */
void engine_check(EngineFlags *e, const FlagSpec *spec, const char *base);
/* A usage error too: a text flag of `names` ("dataset|output") that was not given. --plan needs
 * none of them. */
void engine_required(const EngineFlags *e, const FlagSpec *spec, const char *names);
/* Its --max-tokens, under the name that it has in the headers. */
void engine_config(const EngineFlags *e, ArtifactSpec *s);
LoraOptions engine_lora(const EngineFlags *e, uint64_t seed);
/* fixed_weights: as in TrainerOptions. */
TrainerOptions engine_training(const EngineFlags *e, int fixed_weights);
/* Several GPUs: a process for each, which all go on from here (model/core/ranks.h). Before a device is
 * opened or a file written. */
int engine_start(const EngineFlags *e, Error *err);
/* The last act: the other processes end here. */
int engine_finish(Error *err);
/* This process's device, opened. */
int engine_ops(const EngineFlags *e, const Ops **out, Error *err);
/* A model directory on the device; an adapter's with its base. */
int engine_policy(const EngineFlags *e, const char *dir, Policy *out, Error *err);
/* Give the model the adapter that was asked for. One that it was loaded with is trained further,
 * and must be of the same rank where one is asked for. */
int engine_adapter(const EngineFlags *e, uint64_t seed, Model *m, Error *err);
/* --plan: what training takes, in a table on stdout; nothing is loaded or allocated. base NULL: a
 * model of `small`. */
int engine_plan(const EngineFlags *e, const char *base, const ModelConfig *small, int fixed_weights,
                Error *err);
/* The same for sampling `batch` rows of up to max_new tokens each. */
int engine_plan_sampling(const EngineFlags *e, const char *dir, int batch, int max_new, Error *err);

#endif
