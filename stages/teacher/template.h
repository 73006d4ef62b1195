/* The built-in template teacher: a grammar of CUDA kernels per operation family. It writes a
 * candidate (source with its launch plan) and the two texts that go before the code in an answer,
 * and makes the mistakes beginners make at a stated rate, so that filtering has work. */
#ifndef STAGES_TEACHER_TEMPLATE_H
#define STAGES_TEACHER_TEMPLATE_H

#include <stdint.h>

#include "base/error.h"

enum { TEMPLATE_MAX_CHOICES = 12 };

typedef struct {
    char *source;            /* a whole candidate, NUL-terminated */
    char *analysis, *design; /* one or two sentences each */
    int n_choices;
    struct {
        char name[24], value[24];
    } choices[TEMPLATE_MAX_CHOICES]; /* what was chosen, in order: "block" = "256" */
    int mistake;                     /* 1: one was made */
    char mistake_name[32];           /* "missing_sync", or "" */
} TemplateKernel;

/* One kernel; equal arguments give equal bytes. The family is chosen by the task's name, else by
 * op_type (NULL: none); -1 when neither names a family. */
int template_generate(const char *task_name, const char *op_type, uint64_t seed,
                      double mistake_rate, TemplateKernel *out, Error *err);
void template_release(TemplateKernel *k);

int template_knows(const char *task_name, const char *op_type);

/* Names of the families and of the mistakes, in a fixed order; NULL past the end. */
const char *template_family_name(int index);
const char *template_mistake_list(int index);

#endif
