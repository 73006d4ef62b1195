/* A task becomes the draft of which it was derived, but for the module's own sizes. */
#include "tasks/derive/again.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "tasks/derive/tolerances.h"

enum { DIGITS = 6, MAX_FILE = 1 << 24, PATH_BYTES = 4096 };

/* Points into the task. The caller frees its arrays with release. */
static void draft_tensors(DraftTensor *to, const TaskTensor *from, int n)
{
    for (int i = 0; i < n; i++) {
        const TaskTensor *x = &from[i];
        int integer = x->draw == DRAW_INTEGER;
        to[i] = (DraftTensor){.name = x->name,
                              .dtype = x->dtype,
                              .rank = x->rank,
                              .parameter = x->parameter ? x->name : NULL,
                              .mean = x->mean,
                              .std = x->std,
                              .has_statistics = 1,
                              .has_draw = 1,
                              .draw = x->draw,
                              .low = integer ? (double)x->draw_low : x->low,
                              .high = integer ? (double)x->draw_high : x->high,
                              .highest = x->draw_highest,
                              .distinct = x->distinct + 1};
        for (int k = 0; k < x->rank; k++) to[i].shape[k] = x->shape[k];
    }
}

static void draft_of(const Task *t, const Workload *w, Draft *d)
{
    DraftAxis *axes = memory_array((size_t)t->n_axes + 1, sizeof *axes);
    DraftTensor *in = memory_array((size_t)t->n_inputs, sizeof *in),
                *out = memory_array((size_t)t->n_outputs, sizeof *out);
    for (int i = 0; i < t->n_axes; i++)
        axes[i] = (DraftAxis){.name = t->axis_name[i], .size = w->axis[i]};
    draft_tensors(in, t->inputs, t->n_inputs);
    draft_tensors(out, t->outputs, t->n_outputs);
    *d = (Draft){.name = t->name,
                 .level = t->level,
                 .axes = axes,
                 .n_axes = t->n_axes,
                 .constraints = (const char *const *)t->constraints,
                 .n_constraints = t->n_constraints,
                 .inputs = in,
                 .n_inputs = t->n_inputs,
                 .outputs = out,
                 .n_outputs = t->n_outputs,
                 .lines = (const char *const *)t->graph->text,
                 .n_lines = t->graph->n_nodes};
}

static void draft_release(Draft *d)
{
    free((void *)d->axes);
    free((void *)d->inputs);
    free((void *)d->outputs);
}

/* The text of the same task, of the draft's names and axes. */
static char *text_of(const Derivation *v, const Task *t)
{
    Description all = {0};
    for (int i = 0; i < DTYPES; i++) all.rtol[i] = t->rtol[i] < 0 ? 0 : t->rtol[i];
    for (int i = 0; i < t->n_workloads; i++) {
        Sizes s;
        memcpy(s.at, t->workloads[i].axis, sizeof s.at);
        description_add(&all, t->workloads[i].role, &s);
        if (!t->workloads[i].atol) continue;
        size_t n = (size_t)t->n_outputs * ATOL_CASES;
        all.at[i].atol = memory_array(n, sizeof(double));
        memcpy(all.at[i].atol, t->workloads[i].atol, n * sizeof(double));
    }
    char *text = description_text(v, &all);
    description_release(&all);
    return text;
}

static int measure(Derivation *v, const Task *t, Description *d, Error *err)
{
    Task *own;
    Sizes timed = derivation_own(v);
    char *text = text_of(v, t);
    int rc = task_parse(t->name, text, &own, err);
    free(text);
    if (rc) return -1;
    description_add(d, ROLE_TIME, &timed);
    rc = tolerances_measure_timed(v, own, d, err);
    task_free(own);
    return rc;
}

static char *atol_text(const Task *t, const double *atol)
{
    json_t *all = json_object();
    for (int i = 0; i < t->n_outputs; i++) {
        json_t *list = json_array();
        for (int k = 0; k < ATOL_CASES; k++)
            json_array_append_new(list, json_real(atol[i * ATOL_CASES + k]));
        json_object_set_new(all, t->outputs[i].name, list);
    }
    char *text = json_dumps(all, JSON_REAL_PRECISION(DIGITS));
    json_decref(all);
    return text;
}

/* Where the "atol" of timed workload number i begins; NULL: there is none. */
static const char *timed_atol(const char *text, int i)
{
    const char *role = text;
    for (int k = 0; k <= i && role; k++) role = strstr(role + (k > 0), "\"role\": \"time\"");
    return role ? strstr(role, "\"atol\": {") : NULL;
}

/* Puts the text in place of the "atol" of timed workload number i. */
static int write_atol(const Task *t, int i, const char *atol, int *changed, Error *err)
{
    char path[PATH_BYTES];
    Buffer old, text;
    snprintf(path, sizeof path, "%s/task.json", t->dir);
    buffer_init(&old, MAX_FILE);
    if (file_read(path, MAX_FILE, &old, err)) return -1;
    const char *from = timed_atol(old.data, i), *end = from ? strchr(from, '}') : NULL;
    if (!end) {
        buffer_release(&old);
        return error_set(err, ERROR_CORRUPT, "%s: no \"atol\" of a timed workload", path);
    }
    from = strchr(from, '{');
    int differs = strncmp(from, atol, (size_t)(end + 1 - from)) != 0;
    *changed |= differs;
    buffer_init(&text, MAX_FILE);
    buffer_append(&text, old.data, (size_t)(from - old.data));
    buffer_puts(&text, atol);
    buffer_puts(&text, end + 1);
    int rc = differs ? file_write_atomic(path, text.data, text.len, err) : 0;
    buffer_release(&text);
    buffer_release(&old);
    return rc;
}

/* Timed workload number i. */
static int again(const Task *t, const Workload *w, int i, int *changed, Error *err)
{
    Derivation v;
    Draft draft;
    Description d = {0};
    draft_of(t, w, &draft);
    int rc = derivation_open(&v, &draft, err);
    draft_release(&draft);
    if (rc) return error_prefix(err, "%s", t->name);
    rc = measure(&v, t, &d, err);
    if (!rc) {
        char *text = atol_text(t, d.at[0].atol);
        rc = write_atol(t, i, text, changed, err);
        free(text);
    }
    description_release(&d);
    derivation_release(&v);
    return rc;
}

int derive_again(const Task *t, int *changed, Error *err)
{
    TimedPair pairs[TASK_MAX_TIMED];
    int n = task_timed(t, pairs), rc = 0;
    *changed = 0;
    for (int i = 0; i < n && !rc; i++)
        if (!t->graph || !pairs[i].timed->atol)
            return error_set(err, ERROR_UNSUPPORTED,
                             "%s: there is no timed tolerance that was derived", t->name);
        else
            rc = again(t, pairs[i].timed, i, changed, err);
    return rc;
}
