/* The dataset of stage 1: the distinct correct kernels of train tasks, whatever their speed
 * (method, section 2). Each kernel gives one plain example, which is the teacher's answer, and on
 * average `contrastive` more are made for a kernel. A contrastive example's target beats both
 * kernels that its prompt shows, and where it can it shares the design of the better one. Its answer
 * begins with their comparison, the counter that decides it, and what the target does better. It
 * teaches the format of the prompts of stage 3. A drill is a contrastive prompt with the scores of
 * two kernels and without their sources; its answer is the comparison alone. In a whole answer a
 * few tokens of several hundred depend on the comparison, so that it is learned from drills. */
#ifndef STAGES_SFT_DATASET_H
#define STAGES_SFT_DATASET_H

#include "stages/data/samples.h"
#include "stages/policy/prompt_facts.h"
#include "tasks/task.h"

typedef struct {
    double contrastive;       /* contrastive examples per kernel, on average */
    double drills;            /* drills per kernel, on average */
    const PromptFacts *facts; /* style, device, baselines of the prompts */
    uint64_t seed;
    int empty;          /* no kernel at all is no error */
    double corrections; /* corrections per kernel, on average */
} DatasetOptions;

/* Writes the dataset artifact. *kept becomes the number of kernels. No kernel at all is an
 * error, unless o->empty. */
int dataset_write(const SampleSet *s, const TaskSet *tasks, const DatasetOptions *o,
                  const char *path, const ArtifactSpec *spec, long *kept, Error *err);

#endif
