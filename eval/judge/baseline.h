/* What defines speedup 1.0: each task's baseline, made ready at the task's first candidate and
 * kept. On a device that predicts it is baseline.cu, timed once; on a real one what an eager
 * framework launches there (baseline_cuda.cu where the task has it), kept loaded for pairs in a
 * process of its own. */
#ifndef EVAL_JUDGE_BASELINE_H
#define EVAL_JUDGE_BASELINE_H

#include "eval/candidate/candidate.h"
#include "eval/judge/run.h"

typedef struct {
    int ready;
    Candidate candidate;
    Loaded loaded; /* open on a device with a clock */
    double us;     /* predicted: the same on every run */
    int n_counters;
    DeviceCounter counters[DEVICE_MAX_COUNTERS];
} Baseline;

typedef struct {
    const DeviceOps *ops;
    Device *device;
    Compiler *compiler;
    Cases *cases;
    uint64_t seed;
    const char *source; /* instead of the task's own; NULL: the task's */
} BaselineMaker;

/* The text of a task's baseline on a device that predicts, or has a clock. given: instead, or NULL.
 */
const char *baseline_text(const Task *t, const char *given, int predicted);

/* Compile what a plan launches, and load it: 0, 1 the source's fault (in *f), -1 the evaluator's.
 */
int baseline_compile_and_load(const BaselineMaker *m, Task *t, const Candidate *c, int trusted,
                              Loaded *out, Finding *f, Error *err);

/* -1: the baseline is broken, which is the task's fault and never the candidate's. */
int baseline_prepare(const BaselineMaker *m, Task *t, const Workload *w, Baseline *b, Error *err);
void baseline_release(Baseline *b);

#endif
