/* A child forked while the server is idle, which makes its own copies of the memory that compiling
 * writes and then waits: a request that it takes waits for neither. It serves one request; the next
 * one needs another child. */
#ifndef EVAL_COMPILE_PREFORK_H
#define EVAL_COMPILE_PREFORK_H

#include <sys/types.h>

#include "base/buffer.h"

typedef struct Prefork Prefork;

/* What the child does with a request: it replies to `fd` and ends. used_s: the CPU time that it has
 * behind it. */
typedef void PreforkWork(void *context, const Buffer *request, double used_s, int fd);

/* To be called when this process has done such work once: the memory that it has written by then is
 * what a child copies. */
Prefork *prefork_open(PreforkWork *work, void *context);
void prefork_close(Prefork *s); /* ends the child */

/* Have a child wait, unless one does. It is no error that none can be had. */
void prefork_fork(Prefork *s);

/* Hand the request to the child that waits: its pid, for the caller to wait for, and in *fd where
 * the reply comes, to be closed by the caller. 0: there is none that takes it. */
pid_t prefork_take(Prefork *s, const Buffer *request, int *fd);

#endif
