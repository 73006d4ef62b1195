/* Training by another program: the examples and the settings go out as files, a command runs, and
 * the checkpoint or adapter that it wrote comes back as this stage's model.
 *
 * The folder OUTPUT.trainer/ holds
 *   dataset.jsonl          one example a line: prompt_ids, answer_ids, advantage, where known
 * messages (user and assistant text), old_logp, sampler_logp and ref_logp (one a token of the
 * answer) hyperparameters.json   stage, loss, learning rate, batch, epochs, seed, adapter output/
 * empty: what the command writes there is taken back state/                 the command's own: it
 * stays when the command was stopped and is called again and the command's environment names them:
 * QUERN_DATASET, QUERN_HYPERPARAMETERS, QUERN_OUTPUT, QUERN_STATE, with QUERN_STAGE (sft, selfsup,
 * crl), QUERN_BASE (the model to start from) and, with a KL term, QUERN_REFERENCE. */
#ifndef STAGES_TRAIN_OUTSIDE_TRAINER_H
#define STAGES_TRAIN_OUTSIDE_TRAINER_H

#include "stages/train/training.h"

typedef struct {
    const char *command; /* for sh -c */
    double limit_s;      /* of the command; it is ended then, and that is an error */
    const char *stage, *base, *output, *reference; /* reference: NULL none */
    const ArtifactSpec *spec;
    const TrainingOptions *training;
    LoraOptions lora; /* asked for; rank 0: all weights */
} Outside;

/* The command gets SIGTERM when this process is told to stop or its time is over, and 30 s to end;
 * what it started ends with it, and with this process. On success output is a model directory with
 * its manifest, and the folder is gone; on failure the folder stays. */
int outside_train(const Outside *o, const Example *ex, long n, Error *err);

#endif
