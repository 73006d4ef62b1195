/* The evaluator process, one consumer of the queue. It takes jobs of its device's classes, sends
 * them to the runner, renews the lease meanwhile and stores the verdicts. It keeps no state: all
 * state is in the job and in the queue. (queue/worker.c is the queue's interface for consumers.) */
#ifndef EVAL_SERVE_EVAL_WORKER_H
#define EVAL_SERVE_EVAL_WORKER_H

#include "base/error.h"
#include "eval/serve/runner.h"

typedef struct {
    RunnerOptions runner;
    const char *redis, *queue; /* as queue_open's */
    const char *consumer;      /* NULL: host, process id and a random number */
    double deadline_s;         /* of one job; then the runner is killed and the job is dead */
    int once;                  /* end after one job */
    int compilers; /* processes of eval/serve/precompile.h; 0: none; -1: chosen by the device */
} EvalWorkerOptions;

/* Serve until SIGTERM. The job in work then gets 5 s, and is handed back when it needs longer.
 *
 * ERROR_DEVICE_SICK: the device cannot be used, or had to leave service; a new start would not
 * help. When it had to leave service, its job is handed back without a counted delivery. The queue
 * then remembers the device and the reason until a worker serves the device again. */
int eval_worker_run(const EvalWorkerOptions *opt, Error *err);

#endif
