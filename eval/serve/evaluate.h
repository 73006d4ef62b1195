/* A `samples` artifact through the queue into a `verdicts` artifact. */
#ifndef EVAL_SERVE_EVALUATE_H
#define EVAL_SERVE_EVALUATE_H

#include <stdint.h>

#include "base/error.h"

enum { EVALUATE_MAX_DEVICES = 16 };

typedef struct {
    const char *samples, *output;
    const char *best;     /* a pool: what is known of each task, for records
                             (eval/serve/second_device.h); or NULL */
    double second_wait_s; /* how long a record waits for a second device of its class to appear */
    const char
        *devices[EVALUATE_MAX_DEVICES]; /* device classes; a verdict for each sample and device */
    int n_devices;
    uint64_t seed;
    const char *redis, *queue; /* as queue_open's */
    int urgent;
    double patience_s; /* fail when nothing finishes for so long */
} EvaluateOptions;

/* 0 written (or already the same), -1 failed; after a stop signal -1 with the journal kept. */
int evaluate_run(const EvaluateOptions *opt, Error *err);

#endif
