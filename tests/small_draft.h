/* Drafts of a few lines, and the tasks that are derived from them. cmocka.h is included before. */
#ifndef TESTS_SMALL_DRAFT_H
#define TESTS_SMALL_DRAFT_H

#include <stdlib.h>
#include <string.h>

#include "tasks/derive/derive.h"

static inline Task *derived(const Draft *d)
{
    Error err;
    char *text;
    Task *t;
    if (derive_task(d, &text, &err) || task_parse(d->name, text, &t, &err))
        fail_msg("%s", err.text);
    free(text);
    return t;
}

/* A task to generate for: it is timed at the draft's sizes, and has the tolerances of sizes up to 64, which
 * nothing is judged by: to measure the large ones takes seconds. */
static inline Task *planned(const Draft *d)
{
    DraftAxis axes[TASK_MAX_AXES];
    Draft less = *d;
    for (int i = 0; i < d->n_axes; i++) {
        axes[i] = d->axes[i];
        if (axes[i].size > 64) axes[i].size = 64;
    }
    less.axes = axes;
    Task *t = derived(&less);
    for (int a = 0; a < t->n_axes; a++)
        for (int i = 0; i < d->n_axes; i++)
            for (int w = 0; w < t->n_workloads; w++)
                if (t->workloads[w].role == ROLE_TIME && !strcmp(t->axis_name[a], axes[i].name))
                    t->workloads[w].axis[a] = d->axes[i].size;
    return t;
}

typedef struct {
    DraftAxis axes[4];
    DraftTensor inputs[4], output;
    Draft d;
} Small;

static inline DraftTensor tensor(const char *name, Dtype dtype, const char *a, const char *b)
{
    return (DraftTensor){.name = name, .dtype = dtype, .rank = b ? 2 : a ? 1 : 0, .shape = {a, b}};
}

static inline void small(Small *s, const char *const *lines, int n_lines, int n_axes, int n_inputs)
{
    s->output = (DraftTensor){.name = "y", .dtype = DTYPES, .rank = -1};
    s->d = (Draft){.name = "small",
                   .level = 1,
                   .axes = s->axes,
                   .n_axes = n_axes,
                   .inputs = s->inputs,
                   .n_inputs = n_inputs,
                   .outputs = &s->output,
                   .n_outputs = 1,
                   .lines = lines,
                   .n_lines = n_lines};
}

#endif
