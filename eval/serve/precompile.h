/* Compilation beside the device, never on its path: while the runner judges one candidate, a few
 * more are leased and a pool of processes compiles them. What a compiler answered, good or bad,
 * goes to the runner with its job (compiler_offer), so a verdict is the same as without.
 *
 * A job that waits here is held under the name "CONSUMER+N", renewed like any other; it is handed
 * back untouched when the worker ends, and its lease counts as no delivery when the worker is
 * killed (queue_begin). */
#ifndef EVAL_SERVE_PRECOMPILE_H
#define EVAL_SERVE_PRECOMPILE_H

#include <poll.h>

#include "base/digest.h"
#include "eval/serve/runner.h"
#include "queue/queue.h"

typedef struct Precompile Precompile;

enum { PRECOMPILE_MAX_COMPILERS = 64 };

typedef struct {
    Queue *queue;
    const char *const *classes; /* as queue_take's; must live as long */
    int n_classes;
    const char *consumer, *arch;
    const char *uuid; /* of the device: job_take */
    int compilers;    /* processes, at least 1; two jobs more than that are held */
    QueueDeadResult *dead_result;
    void *ctx;
} PrecompileOptions;

int precompile_open(const PrecompileOptions *opt, Precompile **out, Error *err);
/* Hands back what waits; NULL is none. */
void precompile_close(Precompile *a);

/* What must happen now: take jobs where there is room, give them to compilers, hear those, renew
 * leases. Never waits for a compilation. -1: the queue failed. */
int precompile_advance(Precompile *a, Error *err);
/* Descriptors to poll for, and when to tend at the latest (clock_seconds). */
int precompile_poll_fds(const Precompile *a, struct pollfd *fds, double *due);

typedef struct {
    QueueJob job;         /* held by the consumer itself */
    char key[DIGEST_HEX]; /* of the compilation */
    Buffer compiled;      /* empty: none could be had; the runner does it */
} PrecompiledJob;

/* The job that waits longest among those compiled, waiting at most timeout_s for one: 1, 0 none,
 * -1. Release it. */
int precompile_next(Precompile *a, double timeout_s, PrecompiledJob *out, Error *err);
void precompiled_job_release(PrecompiledJob *j);

#endif
