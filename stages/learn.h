/* Sampled answers as training examples, and the frame that both reinforcement stages share: load the
 * policy, train on the recorded ids, save the new model. */
#ifndef STAGES_LEARN_H
#define STAGES_LEARN_H

#include "stages/policy.h"
#include "stages/samples.h"
#include "stages/training.h"

/* The recorded ids of one native sample, with its advantage; with_old copies the log-probabilities as
 * sampled. -1 when the sample holds no ids. */
int learn_example(const Sample *s, double advantage, int with_old, Example *out, Error *err);

typedef struct {
    const char *program, *base, *output;   /* model directories */
    const ArtifactSpec *spec;
    TrainingOptions training;              /* checkpoint and spec are filled in */
    const char *reference;                 /* model for the KL term, or NULL */
} LearnOptions;

/* Train base on the examples and write output. Without examples the weights are carried over unchanged, and
 * that is said. */
int learn_run(const LearnOptions *o, Example *ex, long n, Error *err);

#endif
