/* Samples with their verdicts, in memory. The training stages, the pool and the report read
 * them. */
#ifndef STAGES_DATA_SAMPLES_H
#define STAGES_DATA_SAMPLES_H

#include "artifacts/artifact.h"
#include "eval/device/outcome.h"

enum { SAMPLES_MAX_TURNS = 8 };

typedef struct {
    char *id, *task, *group, *source, *prompt, *text;
    int heldout;
    Outcome outcome; /* EVALUATOR_ERROR without a verdict or without an answer */
    double score, speedup;
    double reward; /* the score; of an answer that others follow see stages/data/turns.h */
    char *parent;  /* id of the sample whose verdict this one answers; NULL: the first turn */
    int turn;      /* from 1 */
    char source_digest[DIGEST_HEX];
    int32_t *ids, *prompt_ids; /* as sampled; NULL when an endpoint did not return them */
    float *logprobs;
    int n_ids, n_prompt;
    View verdict;   /* the whole verdict; valid as long as the set */
    int truncated;  /* finish is not "stop" */
    int unanswered; /* finish is "error": the endpoint failed, and the verdict means nothing */
} Sample;

typedef struct {
    Sample *items;
    long n;
    ArtifactReader *verdicts;
} SampleSet;

/* Loads the samples and, unless verdicts is NULL, the verdict of each, matched by id. A sample
 * without a verdict is ERROR_INVALID. The caller releases *out. */
int samples_load(const char *samples, const char *verdicts, SampleSet *out, Error *err);
void samples_release(SampleSet *s);
/* The samples sorted by id, in an array that the caller frees, and the one of an id; NULL: there is none. */
Sample **samples_by_id(const SampleSet *s);
Sample *samples_find(const SampleSet *s, Sample **index, const char *id);
/* Returns how many answered samples lack the ids of the prompt or of the answer. */
long samples_without_ids(const SampleSet *s);
/* Reads the limit on the tokens of an answer from the configuration of a samples artifact. */
int samples_limit(const char *samples, int *out, Error *err);

/* ---- the reviews of record kernels (stages/crl/review.h): which rewards are withheld ---- */
/* Makes a failure of every sample whose review withholds its reward: outcome cheat, score 0. path
 * NULL: there are no reviews. Samples with the source of a withheld one, for its task, are withheld
 * too. */
int reviews_apply(const char *path, SampleSet *s, Error *err);

#endif
