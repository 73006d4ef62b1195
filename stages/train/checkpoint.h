/* Metrics by step, and checkpoints of a training loop: weights, optimiser, step and the metrics so
 * far. A new checkpoint is written beside the old one and takes its place by renames, so that a
 * kill at any moment leaves one that is whole. */
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
double metric_last(const MetricLog *l, const char *name); /* NaN: none */
/* spec gives producer, config and inputs; the kind becomes `metrics`. */
int metric_write(const MetricLog *l, const char *path, const ArtifactSpec *spec, Error *err);
void metric_release(MetricLog *l);

typedef struct {
    const char *dir;
    const ArtifactSpec *spec;
} Checkpoint;

/* With ranks (model/core/ranks.h) all of them call it, and the first writes. */
int checkpoint_save(const Checkpoint *c, const Model *m, const Trainer *t, const MetricLog *log,
                    long step, Error *err);
/* *step stays 0 when there is none, or one of another configuration (which is said, and left
 * alone). */
int checkpoint_load(const Checkpoint *c, Model *m, Trainer *t, MetricLog *log, long *step,
                    Error *err);
/* The checkpoint, and what a killed save left beside it. */
void checkpoint_remove(const char *dir);

#endif
