/* The evaluator process: takes jobs of its device's classes, has the runner judge them, keeps the
 * lease alive and hands in the verdicts. Stateless: all that it knows is in the job and the queue.
 */
#ifndef EVAL_SERVE_EVAL_WORKER_H
#define EVAL_SERVE_EVAL_WORKER_H

#include "base/error.h"
#include "eval/serve/runner.h"

typedef struct {
    RunnerOptions runner;
    const char *redis, *queue; /* as queue_open's */
    const char *consumer;      /* NULL: host, process id and a random number */
    double deadline_s;         /* one job's; then the runner is killed and the job is dead */
    int once;                  /* end after one job */
    int compilers; /* processes that compile ahead (eval/serve/precompile.h); 0: none; -1: as many
                      as the device deserves */
} EvalWorkerOptions;

enum { WORKER_CANNOT = 1, WORKER_SICK = 2 };

/* Until SIGTERM (drains: what runs gets 5 s, then it is handed back), or an error: -1,
 * WORKER_CANNOT when the device cannot be used at all, so that another try would not help, or
 * WORKER_SICK when it had to leave service: its job went back to the queue, undone and uncounted,
 * and the queue remembers the device and the reason until a worker serves it again. */
int eval_worker_run(const EvalWorkerOptions *opt, Error *err);

#endif
