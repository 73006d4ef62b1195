/* Sampled answers as training examples, and the step that the three stages share: load the policy,
 * train it on the examples (here or by an outside trainer), save the new model. */
#ifndef STAGES_TRAIN_LEARN_H
#define STAGES_TRAIN_LEARN_H

#include "stages/data/samples.h"
#include "stages/data/stage_config.h"
#include "stages/policy/engine.h"
#include "stages/policy/policy.h"
#include "stages/train/training.h"

/* Makes an example of a sample; the caller sets its advantage. The ids are the recorded ones;
 * when an endpoint has returned none, p encodes the text (p NULL is then an error). with_old
 * copies the log-probabilities as sampled, if the sample has them. The caller releases *out. */
int learn_example(const Policy *p, const Sample *s, int with_old, Example *out, Error *err);

/* The tokenizer that learn_example needs for these samples: *out is NULL when every answer has ids,
 * else tokenizer, into which base's is loaded unless it holds one. The caller releases it. */
int learn_tokenizer(const SampleSet *s, const char *base, Policy *tokenizer, const Policy **out,
                    Error *err);

typedef struct {
    const char *stage;         /* "sft", "selfsup", "crl" */
    const char *base, *output; /* model directories; base NULL: start from the next field */
    Policy *start;             /* a new policy, which the training releases; or NULL */
    const ArtifactSpec *spec;
    TrainingOptions training; /* checkpoint and spec are filled in */
    const char *reference;    /* model for the KL term, or NULL */
    const char *measured;     /* model whose KL divergence from the sampler is noted, or NULL */
    const EngineFlags *engine;
} LearnOptions;

/* Adds the inputs of a round: samples, verdicts, base, and the rounds before
 * (stages/data/history.h). */
int learn_inputs(const char *samples, const char *verdicts, const char *base, const char *history,
                 ArtifactSpec *out, Error *err);

/* ---- the common part of the programs of the three training stages: what follows when the flags are
 * parsed and the stage's own combinations of flags are checked ---- */
typedef struct {
    const FlagSpec *program;
    ConfigDefaults *defaults; /* from before the flags were parsed */
    EngineFlags *engine;
    const char *required;     /* flags that only --plan can do without: "samples|output" */
    const ModelConfig *small; /* the model that --plan measures when there is no base, or NULL */
    void *stage;              /* the first argument of the two functions */
    /* Adds the inputs of the new model to its spec. */
    int (*inputs)(void *stage, ArtifactSpec *spec, Error *err);
    /* Makes the n examples. The caller frees *ex, also after an error. */
    int (*examples)(void *stage, LearnOptions *l, Example **ex, long *n, Error *err);
} LearnProgram;

/* Checks the engine's flags, then plans or trains as l says. Fills in l->spec and l->engine.
 * Returns the exit status; an error ends the program with a message. */
int learn_program(const LearnProgram *p, LearnOptions *l);

#endif
