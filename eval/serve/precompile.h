/* Compile the next candidates while the device judges one: without that the sustained rate is a third
 * lower (docs/measurements/evaluator.md). A pool of processes leases a few more
 * jobs and compiles them. The compiler's reply goes to the runner together with its job
 * (compiler_offer), so the verdict is the same as without precompilation.
 *
 * A waiting job is leased under the name "CONSUMER+N" and renewed like any other. It is handed back
 * when the worker ends. When the worker is killed, its lease ends without a counted delivery
 * (queue_begin). */
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
    const QueueConsumer *consumer; /* borrowed until precompile_close */
    const char *arch;
    const char *uuid; /* of the device: see job_take */
    int measures; /* the device has a clock: what a task's first verdict needs is compiled, too */
    int compilers; /* processes, at least 1; two more jobs are held, or three times as many of a deep queue
                      or where a task ends later */
} PrecompileOptions;

int precompile_open(const PrecompileOptions *opt, Precompile **out, Error *err);
void precompile_close(Precompile *p); /* hand back waiting jobs; NULL is allowed */

/* Do all pending work: read replies, renew leases, take jobs, assign them to compilers. Never waits
 * for a compilation. Returns -1 when the queue failed. */
int precompile_advance(Precompile *p, Error *err);
/* Fill fds with the descriptors to poll for and return their number, at most
 * PRECOMPILE_MAX_COMPILERS. *due: when to call precompile_advance at the latest (clock_seconds). */
int precompile_poll_fds(const Precompile *p, struct pollfd *fds, double *due);

typedef struct {
    QueueJob job;         /* leased by the consumer itself */
    char key[DIGEST_HEX]; /* of the compilation */
    Buffer compiled;      /* the compiler's reply; empty: none, the runner compiles */
} PrecompiledJob;

/* Get the compiled job that has waited longest. Waits at most timeout_s. Returns 1 with a job for
 * precompiled_job_release, 0 with none, -1 on an error. */
int precompile_next(Precompile *p, double timeout_s, PrecompiledJob *out, Error *err);
void precompiled_job_release(PrecompiledJob *j);

#endif
