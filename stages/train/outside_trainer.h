/* Training by another program. The examples and the settings are written to files, a command runs,
 * and the checkpoint or adapter that it has written becomes the model of this stage.
 *
 * The folder OUTPUT.trainer/ has
 *   dataset.jsonl         one example per line: prompt_ids, answer_ids, advantage; when known,
 *                         messages (the texts of user and assistant) and old_logp, sampler_logp
 *                         and ref_logp (one value per token of the answer)
 *   training.json         stage (sft, selfsup, crl), loss, learning rate, batch, epochs, seed, adapter;
 *                         the paths of base (the model to start from), reference (null without a KL
 *                         term), dataset, output and state
 *   output/               empty; the command writes the model there
 *   state/                for the command; it stays when a stopped command is called again
 *
 * The environment of the command has QUERN_TRAINING, the path of training.json. */
#ifndef STAGES_TRAIN_OUTSIDE_TRAINER_H
#define STAGES_TRAIN_OUTSIDE_TRAINER_H

#include "stages/train/training.h"

typedef struct {
    const char *command; /* for sh -c */
    double limit_s;      /* the command is ended after this time, which is an error */
    const char *stage, *base, *output, *reference; /* reference: NULL without a KL term */
    const ArtifactSpec *spec;
    const TrainingOptions *training;
    LoraOptions lora; /* the adapter to train; rank 0: all weights */
} OutsideTrainer;

/* Runs the command on the examples. When this process is told to stop, or the time is over, the
 * command gets SIGTERM and has 30 s to end. Its child processes end with it, and all of them end
 * when this process dies. On success output is a model directory with its manifest, and the folder
 * is removed. On failure the folder stays. ERROR_CHILD: the command failed, or wrote no model. */
int outside_train(const OutsideTrainer *o, const Example *ex, long n, Error *err);

#endif
