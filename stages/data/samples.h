/* Samples with their verdicts, in memory: what the training stages, the pool and the report read.
 */
#ifndef STAGES_DATA_SAMPLES_H
#define STAGES_DATA_SAMPLES_H

#include "artifacts/artifact.h"
#include "eval/device/outcome.h"

typedef struct {
    char *id, *task, *group, *source, *prompt, *text;
    int heldout;
    Outcome outcome; /* EVALUATOR_ERROR while no verdict is known, and where there was no answer to
                        judge */
    double score, speedup;
    char source_digest[DIGEST_HEX];
    int32_t *ids, *prompt_ids; /* as sampled; NULL where an endpoint did not tell */
    float *logprobs;
    int n_ids, n_prompt;
    View verdict;   /* lives with the set */
    int truncated;  /* finish is not "stop" */
    int unanswered; /* finish is "error": the endpoint's failure, of which the verdict says nothing
                     */
} Sample;

typedef struct {
    Sample *items;
    long n;
    ArtifactReader *verdicts;
} SampleSet;

/* Verdicts are matched by id; a sample without one is an error. verdicts NULL: samples alone. */
int samples_load(const char *samples, const char *verdicts, SampleSet *out, Error *err);
void samples_release(SampleSet *s);
/* How many answers hold no ids. */
long samples_without_ids(const SampleSet *s);
/* The limit on an answer's tokens that the samples were drawn with, from the artifact's
 * configuration. */
int samples_limit(const char *samples, int *out, Error *err);

#endif
