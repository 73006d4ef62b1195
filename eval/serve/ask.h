/* Ask the evaluators for the outcomes of a few candidates and wait for them. For stages that need
 * the outcomes at once and store no verdicts. */
#ifndef EVAL_SERVE_ASK_H
#define EVAL_SERVE_ASK_H

#include "eval/device/outcome.h"
#include "queue/queue.h"
#include "tasks/task.h"

typedef struct {
    const Task *task;
    const char *source;
    size_t len;
    Outcome outcome; /* output */
} AskItem;

/* Submit n candidates and wait for all of them. Jobs that the queue loses are submitted again.
 * Fails when the queue fails, when nothing finishes for patience_s, or on a stop signal. */
int ask_all(Queue *q, const char *device_class, uint64_t seed, AskItem *items, size_t n,
            double patience_s, Error *err);

#endif
