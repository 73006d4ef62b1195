/* The built-in template teacher: a grammar of CUDA kernels for each family of operations, and one for
 * graphs of pointwise operators, folds over rows, scans, products and windows. It writes a candidate (a
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

/* Writes one kernel; equal arguments give equal bytes. The task's name, else its op_type, names the family;
 * else its graph is read as a formula. UNKNOWN_NAME: neither is known. The caller releases
 * *out. */
int template_for_task(const Task *task, TemplateDraw draw, TemplateKernel *out, Error *err);

/* Whether there is a family or a formula for the task. */
int template_knows(const Task *task);

/* The same for a family: op_type may be NULL. */
int template_generate(const char *task_name, const char *op_type, TemplateDraw draw,
                      TemplateKernel *out, Error *err);
void template_release(TemplateKernel *k);
int template_has_family(const char *task_name, const char *op_type);

/* Return the names of the families and of the mistakes in a fixed order; NULL past the end. formula: also
 * those that only kernels of a formula have. */
const char *template_family_name(int index);
const char *template_mistake_list(int formula, int index);

#endif
