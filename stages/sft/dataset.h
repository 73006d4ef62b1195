/* The dataset of stage 1: what ran and was correct, once each, of train tasks; speed decides
 * nothing. For every kernel one plain example (the teacher's own answer), and on average
 * `contrastive` more, whose prompt shows two other scored kernels and whose answer opens with their
 * comparison: they teach the format that stage 3 prompts in. */
#ifndef STAGES_SFT_DATASET_H
#define STAGES_SFT_DATASET_H

#include "stages/data/samples.h"
#include "tasks/task.h"

typedef struct {
    double contrastive; /* examples a kernel, on average */
    int full;           /* style of the prompts */
    uint64_t seed;
} DatasetOptions;

/* Writes the dataset artifact; *kept counts distinct kernels. */
int dataset_write(const SampleSet *s, const TaskSet *tasks, const DatasetOptions *o,
                  const char *path, const ArtifactSpec *spec, long *kept, Error *err);

#endif
