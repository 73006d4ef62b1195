/* The evaluator process: takes jobs of its device's classes, has the runner judge them, keeps the
 * lease alive and hands in the verdicts. Stateless: all that it knows is in the job and the queue. */
#ifndef EVAL_WORKER_H
#define EVAL_WORKER_H

#include "base/error.h"
#include "eval/runner.h"

typedef struct {
    RunnerOptions runner;
    const char *redis, *queue;  /* as queue_open's */
    const char *consumer;       /* NULL: host, process id and a random number */
    double deadline_s;          /* one job's; then the runner is killed and the job is dead */
    int once;                   /* end after one job */
} WorkerOptions;

/* Until SIGTERM (drains: what runs gets 5 s, then it is handed back), or an error: -1, or 1 when the device cannot
 * be used at all, so that another try would not help. */
int worker_run(const WorkerOptions *opt, Error *err);

#endif
