/* Metrics by step, and checkpoints of a training loop: the weights, the optimizer's state, the step
 * and the metrics until then. A new checkpoint is written beside the old one and replaces it by
 * renames, so that a kill at any moment leaves a whole one. */
#ifndef STAGES_TRAIN_CHECKPOINT_H
#define STAGES_TRAIN_CHECKPOINT_H

#include "artifacts/artifact.h"
#include "model/core/model.h"
#include "model/trainer.h"

typedef struct {
    long step;
    char name[24];
    double value;
} Metric;

typedef struct {
    Metric *items;
    long n, cap;
} MetricLog;

void metric_add(MetricLog *l, long step, const char *name, double value);
double metric_last(const MetricLog *l, const char *name); /* NaN without a value */
/* Writes a metrics artifact with the producer, configuration and inputs of spec. */
int metric_write(const MetricLog *l, const char *path, const ArtifactSpec *spec, Error *err);
void metric_release(MetricLog *l);

typedef struct {
    const char *dir;
    const ArtifactSpec *spec;
} Checkpoint;

/* A training between two steps. */
typedef struct {
    Model *m;
    Trainer *t;
    MetricLog log;
    long step; /* the next one */
} TrainingState;

/* Saves the state. With ranks (model/core/ranks.h) all of them call it, and the first writes. */
int checkpoint_save(const Checkpoint *c, const TrainingState *s, Error *err);
/* Loads the checkpoint. Without one the step is 0; so it is with one of another configuration, which
 * is logged and stays there. A damaged checkpoint is moved to DIR.damaged, and that is an error. */
int checkpoint_load(const Checkpoint *c, TrainingState *s, Error *err);
/* Removes the checkpoint, and what a killed save has left beside it. */
void checkpoint_remove(const char *dir);

#endif
