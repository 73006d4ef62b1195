/* Prompts as an artifact: for each task `groups` of them, plain or contrastive. */
#ifndef STAGES_CRL_PROMPTS_H
#define STAGES_CRL_PROMPTS_H

#include "stages/crl/exemplar.h"
#include "tasks/task.h"

typedef struct {
    const char *stage; /* in the ids: "crl-3" */
    int groups;        /* prompts a task */
    int plain;         /* of them, how many show no exemplars (the first ones) */
    int exemplars;     /* N of a contrastive prompt */
    int heldout;       /* heldout tasks too: plain always, their kernels are in no pool */
    int full;          /* style */
    ExemplarOptions draw;
    uint64_t seed;
} PromptOptions;

/* A contrastive prompt whose pool has one kernel, or one bucket, shows the baseline (score 1)
 * beside it; with none it shows the baseline alone. */
int prompts_write(const TaskSet *tasks, const Pool *pool, const PromptOptions *o, const char *path,
                  const ArtifactSpec *spec, Error *err);

#endif
