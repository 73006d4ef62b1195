/* Sampled answers as training examples, and the frame that the three stages share: load the policy,
 * train it on the examples (here, or by an outside trainer), save the new model. */
#ifndef STAGES_TRAIN_LEARN_H
#define STAGES_TRAIN_LEARN_H

#include "stages/data/samples.h"
#include "stages/policy/engine.h"
#include "stages/policy/policy.h"
#include "stages/train/training.h"

/* One sample with its advantage: the recorded ids, or, of an endpoint that gave none, its text
 * encoded by p (NULL: that is an error). with_old copies the log-probabilities as sampled, where
 * they are. */
int learn_example(const Policy *p, const Sample *s, double advantage, int with_old, Example *out,
                  Error *err);

/* The tokenizer that learn_example needs for these samples: *out is NULL when every answer has ids,
 * else tokenizer, into which base's is loaded unless it holds one. The caller releases it. */
int learn_tokenizer(const SampleSet *s, const char *base, Policy *tokenizer, const Policy **out,
                    Error *err);

typedef struct {
    const char *stage;         /* "sft", "selfsup", "crl" */
    const char *base, *output; /* model directories; base NULL: start below */
    Policy *start;             /* a new policy, released by learn_run; or NULL */
    const ArtifactSpec *spec;
    TrainingOptions training; /* checkpoint and spec are filled in */
    const char *reference;    /* model for the KL term, or NULL */
    const EngineFlags *engine;
} LearnOptions;

/* A round's inputs: samples and verdicts, base, and the rounds before it (stages/data/history.h).
 */
int learn_inputs(const char *samples, const char *verdicts, const char *base, const char *history,
                 ArtifactSpec *out, Error *err);
/* Before the examples are made. 1: they are to be learned, and the GPUs' processes run; 0: output
 * is that work already; -1. */
int learn_begin(const LearnOptions *o, Error *err);
/* Train base on the examples and write output. Without examples the weights are carried over
 * unchanged, and that is said. Where the loss has a ratio, log-probabilities before the update that
 * are missing are computed; with a correction all are, and those as sampled are what they are
 * compared with. With several GPUs every process calls it, and the first alone returns. */
int learn_run(const LearnOptions *o, Example *ex, long n, Error *err);

#endif
