/* A compiling child that is forked before its request comes, so that no request waits for the fork of
 * a process that holds NVRTC. A verdict takes 6% less time (docs/measurements/evaluator.md). Each
 * child serves one request. */
#ifndef EVAL_COMPILE_PREFORK_H
#define EVAL_COMPILE_PREFORK_H

#include <sys/types.h>

#include "base/buffer.h"

typedef struct Prefork Prefork;

/* The child's work: it writes its reply to `fd` and ends the process. used_s: CPU seconds that the
 * child has used before. */
typedef void PreforkWork(void *context, const Buffer *request, double used_s, int fd);

/* What the child does before it waits; NULL: nothing. */
typedef void PreforkReady(void *context);

Prefork *prefork_open(PreforkWork *work, PreforkReady *ready, void *context);
void prefork_close(Prefork *s); /* and ends the child */

/* Fork a child unless one waits. A failure to fork is no error. */
void prefork_fork(Prefork *s);

/* Give the request to the waiting child. Returns its pid, for the caller to wait for, and the
 * descriptor of its reply in *fd, for the caller to close. 0: no child took the request. */
pid_t prefork_take(Prefork *s, const Buffer *request, int *fd);

#endif
