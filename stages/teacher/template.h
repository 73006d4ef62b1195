/* The built-in template teacher: a grammar of CUDA kernels for each family of operations. It writes
 * a candidate (a source with its launch plan) and the two texts before the code of an answer. At a
 * given rate it makes a beginner's mistake, so that there is something to filter. */
#ifndef STAGES_TEACHER_TEMPLATE_H
#define STAGES_TEACHER_TEMPLATE_H

#include <stdint.h>

#include "base/error.h"

enum { TEMPLATE_MAX_CHOICES = 12 };

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

/* Writes one kernel; equal arguments give equal bytes. The task's name, else op_type (which may be
 * NULL), names the family; ERROR_UNKNOWN_NAME when neither does. The caller releases *out. */
int template_generate(const char *task_name, const char *op_type, uint64_t seed,
                      double mistake_rate, TemplateKernel *out, Error *err);
void template_release(TemplateKernel *k);

/* Whether there is a family for the task. */
int template_knows(const char *task_name, const char *op_type);

/* Return the names of the families and of the mistakes in a fixed order; NULL past the end. */
const char *template_family_name(int index);
const char *template_mistake_list(int index);

#endif
