/* The runner: a child process that owns the device and judges one job after another. A candidate
 * that crashes or hangs the process costs only the runner. The parent holds the lease and runs no
 * kernel. They exchange frames of eval/compile/wire.h over a socket pair:
 *   hello   {class, arch, predicted, uuid}, or {error, code}: a sentence and its ErrorCode
 *   job     fields of eval/compile/wire.h: the job's body (eval/serve/job.h); for a precompiled job
 *           also the key and the reply of the compilation (eval/compile/compile_client.h)
 *   answer  {brief, retry, verdict, sick?}: brief: another evaluator may time other sizes; retry: the
 *           evaluator failed and another attempt may not; sick: why the device must leave service */
#ifndef EVAL_SERVE_RUNNER_H
#define EVAL_SERVE_RUNNER_H

#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "eval/serve/job.h"

typedef struct {
    const char *device; /* "sim:h100" */
    int noop;           /* judge nothing: see runner_noop.c */
    const char *uuid;   /* of the noop runner's device; NULL: it has none */
} RunnerOptions;

/* A forked child that serves this process over a socket pair: the runner, or a compiling process. */
typedef struct {
    pid_t pid; /* 0: not running */
    int fd;    /* a write ends after 10 s when the child does not read; -1: none */
} Forked;

typedef struct {
    Forked child;
    char device_class[64], arch[16];
    char uuid[48]; /* of a real device, else "" */
    int predicted;
} Runner;

/* Start the runner and wait for its hello, at most 60 s. Returns 0, 1 when the runner says why it
 * cannot serve the device (*err is then the runner's own error), -1 on any other failure. */
int runner_start(Runner *r, const RunnerOptions *opt, Error *err);
/* Send a job. key and compiled: of PrecompiledJob; without compiled the runner compiles. */
int runner_send(Runner *r, const Buffer *body, const char *key, const Buffer *compiled, Error *err);

enum { RUNNER_SICK = 600 };

typedef struct {
    int brief, retry;
    char sick[RUNNER_SICK]; /* why the device must leave service, or "" */
    Buffer verdict;         /* an encoded record; the caller inits and releases */
} RunnerAnswer;

/* Read the answer when fd is readable. Returns -1 when the runner died or sent something else. */
int runner_answer(Runner *r, RunnerAnswer *out, Error *err);

/* Fork. The child has its own process group, descriptor 3 as its end of the socket and no other one
 * beside stdout and stderr. It dies with its parent and ignores stop signals, which the parent
 * handles. It calls serve, which does not return. */
int runner_fork(Forked *c, void (*serve)(const void *ctx), const void *ctx, Error *err);
/* Kill the child and its group, and wait. Allowed when it is dead already, or none. */
void runner_kill(Forked *c);

enum { FORKED_FD = 3 };
enum { RUNNER_MAX_JOB = 12 << 20, RUNNER_MAX_COMPILED = 10 << 20 };

/* The child's main function. */
_Noreturn void runner_child(int fd, const RunnerOptions *opt);
/* The noop runner's verdict on a job. sick is written when the device is sick. Returns `retry`. */
int runner_noop(const RunnerOptions *opt, const Job *job, Record *verdict, char sick[RUNNER_SICK]);

#endif
