/* The runner: a child process that owns the device and judges one job after another, so that a
 * candidate that takes the process down, or never ends, costs only the runner. Its parent holds the
 * lease and never touches a kernel. They speak in frames of eval/wire.h over a socket pair:
 *   hello   {class, arch, predicted} or {error}
 *   job     the job's body (queue/job.h)
 *   answer  {retry, verdict}: retry: the evaluator failed, another attempt may not */
#ifndef EVAL_RUNNER_H
#define EVAL_RUNNER_H

#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct {
    const char *device;   /* "sim:h100" */
    int noop;             /* judge nothing: see runner_child.c */
} RunnerOptions;

typedef struct {
    pid_t pid;            /* 0: not running */
    int fd;
    char device_class[64], arch[16];
    int predicted;
} Runner;

/* Start it and wait for its hello, at most 60 s. 1: it said why it cannot serve the device. */
int runner_start(Runner *r, const RunnerOptions *opt, Error *err);
int runner_send(Runner *r, const void *body, size_t len, Error *err);

typedef struct {
    int retry;
    Buffer verdict;       /* an encoded record; the caller inits and releases */
} Answer;

/* When fd is readable: 0 an answer, -1 the runner died or speaks nonsense. */
int runner_answer(Runner *r, Answer *out, Error *err);
void runner_kill(Runner *r);  /* with all that it started; also when it is dead already */

/* The child's side; never returns. */
_Noreturn void runner_child(int fd, const RunnerOptions *opt);

#endif
