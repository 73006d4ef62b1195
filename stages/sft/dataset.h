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

/* ---- for the parts of this module ---- */

/* The examples of one task that are being written. */
typedef struct {
    ArtifactWriter *w;
    const SampleSet *samples;
    const Task *task;
    const DatasetOptions *o;
    PromptStyle style;
    const Sample **correct; /* distinct correct kernels, the best first */
    char **design;          /* a description of each */
    int n;
} TaskExamples;

typedef struct {
    const Sample *of; /* the answer is, or is made of, its text */
    const char *kind;
    long k; /* last part of the id */
    const Buffer *prompt;
    const char *answer;
} DatasetExample;

int dataset_example(ArtifactWriter *w, const DatasetExample *e, Error *err);
/* Whether a is faster than b beyond doubt: their intervals do not meet, and 2% lie between them. */
int dataset_beats(const Sample *a, const Sample *b);

/* ---- examples of a second turn (stages/crl/prompts.h): the prompt shows a kernel and its verdict, the
 * answer is a better kernel of the same task. Of a wrong kernel it is the correct one that differs
 * least, of a correct one the faster one that differs least. A teacher's mistake is one edit of a
 * correct kernel, so that its correction is often that kernel. Without such examples a model from
 * scratch does not know what a second turn asks for. ---- */

/* Writes up to floor(n c) examples; c is o->corrections. Wrong kernels and correct ones take turns. */
int corrections_write(const TaskExamples *x, Error *err);

#endif
