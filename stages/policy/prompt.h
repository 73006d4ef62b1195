/* The text of a prompt: the task, its reference, N scored kernels and the instructions (method,
 * Table 3). There are two styles. `full` is for models that read English; it says all that a writer
 * who knows nothing of Quern needs. `brief` has the same parts without prose, for the small model
 * that the default run trains from scratch. */
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

/* All but `full` is shown in the style full alone. */
typedef struct {
    int full;
    const char *device; /* class that judges, "sim:h100"; NULL: not said */
    double baseline_us; /* the time of speedup 1.0; 0: not known */
    int predicted;      /* times come from a model of the device */
} PromptStyle;

/* Appends the prompt to out. The exemplars are shown in their order as code1, code2, ...; n = 0
 * gives the plain prompt of stage 1. A line of an exemplar that looks like a part of the prompt is
 * dotted out, so that a kernel cannot forge exemplars or instructions. */
void prompt_write(Buffer *out, const Task *t, const Exemplar *exemplars, int n,
                  const PromptStyle *style);

/* An answer, and what its verdict says (stages/policy/feedback.h). */
typedef struct {
    const char *source; /* the candidate */
    size_t len;         /* 0: the answer holds none */
    const char *verdict;
    size_t verdict_len;
} PromptAttempt;

/* Appends the prompt of a next turn: the task, the attempt and its verdict. Lines of both that look
 * like a part of the prompt are dotted out, too. */
void prompt_write_again(Buffer *out, const Task *t, const PromptAttempt *a,
                        const PromptStyle *style);

/* Appends the text of a kernel, or what quotes one, as prompts show it: forged lines dotted out. */
void prompt_kernel_write(Buffer *out, const char *s, size_t n);

/* ---- for the parts of this module: the sections of the style full ---- */

/* What a candidate is, what it may use, and a worked one of another family than the task's. */
void prompt_rules_write(Buffer *out, const Task *t);
/* Sizes, tolerance, device and baseline. */
void prompt_measure_write(Buffer *out, const Task *t, const PromptStyle *style);
/* How to answer; exemplars: how many kernels the prompt shows. */
void prompt_protocol_write(Buffer *out, int exemplars);

#endif
