/* The submitter of samples: send the candidates of a `samples` artifact through the queue and write
 * a `verdicts` artifact. Equal candidates are one job. Verdicts are journalled as they come, so the
 * same call continues after an interruption. */
#ifndef EVAL_SERVE_EVALUATE_H
#define EVAL_SERVE_EVALUATE_H

#include <stdint.h>

#include "base/error.h"

enum { EVALUATE_MAX_DEVICES = 16 };

typedef struct {
    const char *samples, *output;
    const char *best; /* a pool with the best known scores (eval/serve/second_device.h), or NULL */
    double second_wait_s; /* how long a record waits for a second device of its class */
    const char *devices[EVALUATE_MAX_DEVICES]; /* classes: one verdict a sample and class */
    int n_devices;
    uint64_t seed;
    int sanitize;              /* Job.sanitize, on devices that measure */
    const char *redis, *queue; /* as queue_open's */
    int urgent;                /* before all jobs that are not */
    double patience_s;         /* fail when nothing finishes for this long */
} EvaluateOptions;

/* Returns 0 when the output is written or holds the same already, -1 on an error. ERROR_STOPPED
 * after a stop signal. The journal is kept on every error. */
int evaluate_run(const EvaluateOptions *opt, Error *err);

#endif
