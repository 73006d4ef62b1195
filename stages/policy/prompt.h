/* The text of a prompt: the task, its reference, N scored kernels and the instructions (method,
 * Table 3). There are two styles. `full` is for models that read English. `brief` has the same
 * parts without prose, for the small model that the default run trains from scratch. */
#ifndef STAGES_POLICY_PROMPT_H
#define STAGES_POLICY_PROMPT_H

#include "base/buffer.h"
#include "tasks/task.h"

typedef struct {
    const char *id; /* the sample's, or "baseline" */
    const char *source;
    size_t len;
    double score;
} Exemplar;

/* Appends the prompt to out. The exemplars are shown in their order as code1, code2, ...; n = 0
 * gives the plain prompt of stage 1. A line of an exemplar that looks like a part of the prompt is
 * dotted out, so that a kernel cannot forge exemplars or instructions. */
void prompt_write(Buffer *out, const Task *t, const Exemplar *exemplars, int n, int full);

#endif
