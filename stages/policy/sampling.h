/* Samples answers of a policy to prompts and writes a samples artifact. The native engine records
 * the ids and log-probabilities as sampled; an endpoint's are recorded when it returns them. A
 * journal keeps finished answers for a resumed run. */
#ifndef STAGES_POLICY_SAMPLING_H
#define STAGES_POLICY_SAMPLING_H

#include "artifacts/artifact.h"
#include "stages/policy/budget.h"
#include "stages/policy/engine.h"

typedef struct {
    const char *prompts, *output, *stage;
    int copies; /* samples of a prompt that does not say how many: the size of a group */
    int max_new, batch, concurrency;
    double temperature, top_p;
    uint64_t seed;
    int top_k;                 /* 0: all tokens */
    double min_p;              /* 0: all tokens */
    const char *stop;          /* a text that ends an answer, or NULL */
    const char *adapter;       /* a PEFT directory that the endpoint loads meanwhile, or NULL */
    const EngineFlags *engine; /* native only */
    Budget *budget;            /* endpoint only; NULL: none */
    BudgetPrice price;
} SamplingOptions;

/* Samples from a model directory. With several GPUs every process calls it (engine_start): each
 * samples a share of the rows into OUTPUT.part-N, and only the first returns, after it has joined
 * the parts. The artifact is the same for any number of GPUs. A requested stop is ERROR_STOPPED. */
int sampling_native(const char *model_dir, const SamplingOptions *o, const ArtifactSpec *spec,
                    Error *err);
/* Samples from an endpoint, "openai:MODEL" or "anthropic:MODEL". With an adapter the requests ask
 * for ids and log-probabilities, since a stage trains on the samples. */
int sampling_endpoint(const char *policy, const SamplingOptions *o, const ArtifactSpec *spec,
                      Error *err);

#endif
