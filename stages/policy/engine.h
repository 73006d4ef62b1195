/* The flags of the stage programs that choose the device, the adapter and the use of memory, and
 * loading a policy as these flags say. */
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

/* Rows of the flag table of a program that runs a model. */
#define ENGINE_FLAGS(e)                                                                   \
    FLAG("engine", FLAG_TEXT, &(e).device, "cpu, cuda:N, or auto: a GPU if there is one", \
         .aside = CONFIG_CHANGED),                                                        \
        FLAG("gpus", FLAG_INT, &(e).gpus,                                                 \
             "so many of one host, from the engine's on, share the work", 1, RANKS_MAX,   \
             .aside = CONFIG_CHANGED),                                                    \
        FLAG("plan", FLAG_BOOL, &(e).plan,                                                \
             "print what the run will take of the device's memory, and end", .aside = 1)
/* Rows of the flag table of a program that trains a model. */
#define TRAINING_FLAGS(e)                                                                        \
    ENGINE_FLAGS(e),                                                                             \
        FLAG("lora", FLAG_INT, &(e).lora,                                                        \
             "rank of an adapter to train in place of the weights; 0: the weights", 0, 512,      \
             .aside = CONFIG_CHANGED),                                                           \
        FLAG("lora-alpha", FLAG_FLOAT, &(e).alpha, "the adapter is scaled by alpha/rank", 1e-3,  \
             1e4, .aside = CONFIG_CHANGED),                                                      \
        FLAG("rslora", FLAG_BOOL, &(e).rslora, "by alpha/sqrt(rank) instead",                    \
             .aside = CONFIG_CHANGED),                                                           \
        FLAG("max-tokens", FLAG_INT, &(e).tokens,                                                \
             "of one micro-batch; 0: on a GPU by its memory, on the CPU 8192", 0, 1 << 24,       \
             .aside = 1),                                                                        \
        FLAG("recompute", FLAG_TEXT, &(e).recompute,                                             \
             "activations computed again in the backward pass: less memory, a third more work",  \
             .choices = "auto|on|off", .aside = 1),                                              \
        FLAG("lean", FLAG_BOOL, &(e).lean,                                                       \
             "on a GPU no fp32 masters, rounded stochastically: half the memory",                \
             .aside = CONFIG_CHANGED),                                                           \
        FLAG("trainer", FLAG_TEXT, &(e).trainer,                                                 \
             "command of an outside trainer (docs/pipeline.md)", .aside = CONFIG_CHANGED),       \
        FLAG("trainer-hours", FLAG_FLOAT, &(e).trainer_hours, "that it may take", 0.0001, 10000, \
             .aside = 1)

/* Checks the flags after parsing; a combination without sense is a usage error. base is the model
 * to start from, or NULL. */
void engine_check(EngineFlags *e, const FlagSpec *spec, const char *base);
/* Makes it a usage error when a text flag of `names` ("dataset|output") is missing. --plan needs
 * none of them. */
void engine_required(const EngineFlags *e, const FlagSpec *spec, const char *names);
/* Adds --max-tokens to the configuration, under its name there, "micro-tokens". */
void engine_config(const EngineFlags *e, ArtifactSpec *s);
LoraOptions engine_lora(const EngineFlags *e, uint64_t seed);
/* fixed_weights: as in TrainerOptions. */
TrainerOptions engine_training(const EngineFlags *e, int fixed_weights);
/* With several GPUs, starts one process for each; all of them return from here (model/core/ranks.h). No
 * device may be open and no file written before. */
int engine_start(const EngineFlags *e, Error *err);
/* Ends the processes that engine_start started; only the first returns. */
int engine_finish(Error *err);
/* Opens the device of this process. */
int engine_ops(const EngineFlags *e, const Ops **out, Error *err);
/* Loads a model directory onto the device; an adapter's with its base. */
int engine_policy(const EngineFlags *e, const char *dir, Policy *out, Error *err);
/* Gives the model the adapter that --lora asks for. An adapter that the model already has is
 * trained further; its rank must be the one asked for. */
int engine_adapter(const EngineFlags *e, uint64_t seed, Model *m, Error *err);
/* --plan: prints a table of the memory that training takes. It loads and allocates nothing. base
 * NULL: for a model of the configuration `small`. */
int engine_plan(const EngineFlags *e, const char *base, const ModelConfig *small, int fixed_weights,
                Error *err);
/* The same for sampling `batch` rows of at most max_new tokens each. */
int engine_plan_sampling(const EngineFlags *e, const char *dir, int batch, int max_new, Error *err);

#endif
