/* The built-in template teacher: a grammar of CUDA kernels for graphs of pointwise operators, folds over
 * rows, scans, products and windows. It writes a candidate (a
 * source with its launch plan) and the two texts before the code of an answer. At a given rate it makes a
 * beginner's mistake, so that there is something to filter. */
#ifndef STAGES_TEACHER_TEMPLATE_H
#define STAGES_TEACHER_TEMPLATE_H

#include <stdint.h>

#include "base/error.h"
#include "tasks/task.h"

enum { TEMPLATE_MAX_CHOICES = 64 };

typedef struct {
    char *source;            /* the candidate, NUL-terminated */
    char *analysis, *design; /* one or two sentences each */
    int n_choices;
    struct {
        char name[24], value[24];
    } choices[TEMPLATE_MAX_CHOICES]; /* in their order: "block" = "256" */
    int mistake;                     /* 1: the source has one */
    char mistake_name[32];           /* "missing_sync", or "" */
} TemplateKernel;

/* How a kernel is drawn. */
typedef struct {
    uint64_t seed;
    double mistake_rate;
    const char *without; /* designs that are not drawn, as designs_of gives them; NULL: none */
} TemplateDraw;

/* Writes one kernel; equal arguments give equal bytes. UNKNOWN_NAME: the task's graph is no formula. The
 * caller releases *out. */
int template_for_task(const Task *task, TemplateDraw draw, TemplateKernel *out, Error *err);

/* Whether there is a formula for the task. */
int template_knows(const Task *task);
void template_release(TemplateKernel *k);

#endif
