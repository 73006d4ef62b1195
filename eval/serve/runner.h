/* The runner: a child process that owns the device and judges one job after another, so that a
 * candidate that takes the process down, or never ends, costs only the runner. Its parent holds the
 * lease and never touches a kernel. They speak in frames of eval/compile/wire.h over a socket pair:
 *   hello   {class, arch, predicted, uuid} or {error, code}
 *   job     fields of eval/compile/wire.h: the job's body (eval/serve/job.h); when it was compiled
 * ahead, the key and the reply of that compilation (eval/compile/compile_client.h) answer  {retry,
 * verdict, sick?}: retry: the evaluator failed, another attempt may not; sick: the device must
 * leave service, a sentence that says why */
#ifndef EVAL_SERVE_RUNNER_H
#define EVAL_SERVE_RUNNER_H

#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct {
    const char *device; /* "sim:h100" */
    int noop;           /* judge nothing: see runner_child.c */
    const char *uuid;   /* of the noop runner's device; NULL: it has none */
} RunnerOptions;

typedef struct {
    pid_t pid; /* 0: not running */
    int fd;
    char device_class[64], arch[16];
    char uuid[48]; /* of a real device, else "" */
    int predicted;
} Runner;

/* Start it and wait for its hello, at most 60 s. 1: it said why it cannot serve the device. */
int runner_start(Runner *r, const RunnerOptions *opt, Error *err);
/* compiled: eval/serve/precompile.h; NULL or empty: the runner compiles. */
int runner_send(Runner *r, const Buffer *body, const char *key, const Buffer *compiled, Error *err);

typedef struct {
    int retry;
    char sick[600]; /* why the device must leave service, or "" */
    Buffer verdict; /* an encoded record; the caller inits and releases */
} Answer;

/* When fd is readable: 0 an answer, -1 the runner died or speaks nonsense. */
int runner_answer(Runner *r, Answer *out, Error *err);
void runner_kill(Runner *r); /* with all that it started; also when it is dead already */

/* In a child just forked, to become a process that serves its parent over `fd`: descriptor 3 from
 * now on, the only one that stays open besides stdout and stderr. A group of its own; ends with its
 * parent, and at no signal that is meant for that. */
void runner_become_child(int fd, pid_t parent);

enum { RUNNER_MAX_JOB = 12 << 20, RUNNER_MAX_COMPILED = 10 << 20 };

/* The child's side; never returns. */
_Noreturn void runner_child(int fd, const RunnerOptions *opt);

#endif
