/* Ask the evaluators about a few candidates, from within a stage that needs the outcome at once. */
#ifndef EVAL_SERVE_ASK_H
#define EVAL_SERVE_ASK_H

#include "eval/device/outcome.h"
#include "queue/queue.h"
#include "tasks/task.h"

typedef struct {
    const Task *task;
    const char *source;
    size_t len;
    Outcome outcome; /* out */
} AskItem;

/* Submit all, wait for all. -1: the queue failed, nothing finished for `patience_s`, or a stop was
 * requested. */
int ask_all(Queue *q, const char *device_class, uint64_t seed, AskItem *items, size_t n,
            double patience_s, Error *err);

#endif
