/* The baseline of a task, which defines speedup 1.0. It is prepared at the task's first candidate
 * and kept. It is what an eager framework launches: baseline_cuda.cu where the task has it, else
 * baseline.cu. On a device that predicts times it is timed once. On a GPU it stays loaded in the
 * trusted process to be timed in pairs with every candidate. */
#ifndef EVAL_JUDGE_BASELINE_H
#define EVAL_JUDGE_BASELINE_H

#include "eval/judge/run.h"

typedef struct {
    int ready;
    Candidate candidate;
    Loaded loaded; /* stays open on a device with a clock */
    double us;     /* the predicted time, equal in every run */
    int n_counters;
    DeviceCounter counters[DEVICE_MAX_COUNTERS];
} Baseline;

typedef struct {
    const DeviceOps *ops;
    Device *device;
    Compiler *compiler;
    Cases *cases;
    uint64_t seed;
    const char *source; /* replaces the task's baseline; NULL: the task's */
} BaselineContext;

/* The source of a task's baseline. given: a source to take instead, or NULL. */
const char *baseline_text(const Task *t, const char *given);

/* Make *b ready for workload w. Returns -1 when the baseline itself fails, which is never the
 * candidate's fault. */
int baseline_prepare(const BaselineContext *x, Task *t, const Workload *w, Baseline *b, Error *err);
void baseline_release(Baseline *b);

#endif
