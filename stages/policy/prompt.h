/* The text of a prompt: the task, its reference, N scored kernels, what is asked (method, Table 3).
 * Two styles: `full` for models that read English, `brief` for the small model that the default run
 * trains from scratch: the same parts without the prose. */
#ifndef STAGES_POLICY_PROMPT_H
#define STAGES_POLICY_PROMPT_H

#include "base/buffer.h"
#include "tasks/task.h"

typedef struct {
    const char *id; /* of the sample, or "baseline" */
    const char *source;
    size_t len;
    double score;
} Exemplar;

/* exemplars in the order shown: code1, code2... n 0: the plain prompt of stage 1. A line of theirs
 * that would be read as a part of the prompt is made unlike one. */
void prompt_write(Buffer *out, const Task *t, const Exemplar *exemplars, int n, int full);

#endif
