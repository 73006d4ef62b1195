/* Answers of a policy to prompts, as a samples artifact: from the native engine, with ids and
 * log-probabilities as sampled, or from an endpoint, with them where it tells. A journal keeps
 * finished ones. */
#ifndef STAGES_POLICY_SAMPLING_H
#define STAGES_POLICY_SAMPLING_H

#include "artifacts/artifact.h"
#include "stages/policy/engine.h"

typedef struct {
    const char *prompts, *output, *stage;
    int copies; /* samples a prompt: the group */
    int max_new, batch, concurrency;
    double temperature, top_p;
    uint64_t seed;
    int top_k;           /* 0: all */
    double min_p;        /* 0: all */
    const char *stop;    /* a text that ends an answer, or NULL */
    const char *adapter; /* a PEFT directory that the endpoint is given for as long as it is asked,
                            or NULL */
    const EngineFlags *engine; /* of the native one */
} SamplingOptions;

/* With several GPUs every process calls it (engine_start): each samples a share of the rows into
 * OUTPUT.part-N, the first joins them and alone returns. What comes out is the same. */
int sampling_native(const char *model_dir, const SamplingOptions *o, const ArtifactSpec *spec,
                    Error *err);
/* policy: "openai:MODEL" or "anthropic:MODEL". With an adapter the samples are to be learned from:
 * ids and log-probabilities are asked for. */
int sampling_endpoint(const char *policy, const SamplingOptions *o, const ArtifactSpec *spec,
                      Error *err);

#endif
