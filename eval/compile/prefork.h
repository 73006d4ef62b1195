/* A child forked while the server is idle, which makes its own copies of the memory that compiling
 * writes and then waits: a request that it takes waits for neither. It serves one request; the next
 * one needs another child. */
#ifndef EVAL_COMPILE_PREFORK_H
#define EVAL_COMPILE_PREFORK_H

#include <sys/types.h>

#include "base/buffer.h"

typedef struct Spare Spare;

/* What the child does with a request: it replies to `fd` and ends. used_s: the CPU time that it has
 * behind it. */
typedef void SpareWork(void *context, const Buffer *request, double used_s, int fd);

/* To be called when this process has done such work once: the memory that it has written by then is
 * what a child copies. */
Spare *spare_open(SpareWork *work, void *context);
void spare_close(Spare *s); /* ends the child */

/* Have a child wait, unless one does. It is no error that none can be had. */
void spare_fork(Spare *s);

/* Hand the request to the child that waits: its pid, for the caller to wait for, and in *fd where
 * the reply comes, to be closed by the caller. 0: there is none that takes it. */
pid_t spare_take(Spare *s, const Buffer *request, int *fd);

#endif
