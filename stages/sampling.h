/* Answers of a policy to prompts, as a samples artifact: from the native engine, with ids and
 * log-probabilities as sampled, or from an endpoint. A journal keeps finished ones. */
#ifndef STAGES_SAMPLING_H
#define STAGES_SAMPLING_H

#include "artifacts/artifact.h"

typedef struct {
    const char *prompts, *output, *stage;
    int copies;                    /* samples a prompt: the group */
    int max_new, batch, concurrency;
    double temperature, top_p;
    uint64_t seed;
} SamplingOptions;

int sampling_native(const char *model_dir, const SamplingOptions *o, const ArtifactSpec *spec, Error *err);
/* policy: "openai:MODEL" or "anthropic:MODEL". */
int sampling_endpoint(const char *policy, const SamplingOptions *o, const ArtifactSpec *spec, Error *err);

#endif
