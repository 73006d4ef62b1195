/* Wide tasks: others than those of the run, of which each round asks some. */
#ifndef LAB_WIDE_H
#define LAB_WIDE_H

#include "stages/crl/prompts.h"

typedef struct {
    TaskSet tasks;
    int ask;    /* train tasks that are drawn, by the seed and the stage's name */
    int copies; /* answers to each prompt */
} Wide;

/* Loads the tasks; none of them is in `own`. The caller releases w->tasks. */
int wide_load(const char *root, const char *names, const TaskSet *own, Wide *w, Error *err);
/* A PromptMore, with a Wide for its ctx: prompts of the tasks that are drawn, each as likely as the others,
 * in the order of their names. */
int wide_write(void *ctx, const Prompts *p, Error *err);

#endif
