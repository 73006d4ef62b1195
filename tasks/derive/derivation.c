/* Copies a draft, decides which axes stay, and binds its graph to sizes. */
#include "tasks/derive/derivation.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/words.h"
#include "tasks/derive/indices.h"

enum { MAX_TEXT = 1 << 16, LONG_ARGUMENT = 32 };
static const int64_t largest = INT32_MAX;

char *derivation_keep(Derivation *v, char *text)
{
    v->owned = memory_grow(v->owned, (size_t)v->n_owned + 1, sizeof *v->owned);
    return v->owned[v->n_owned++] = text;
}

static const char *copy(Derivation *v, const char *text)
{
    return text ? derivation_keep(v, memory_strdup(text)) : NULL;
}

/* ---- axes that become numbers ---- */

/* The text with every name of the list replaced by the text in `by`. Words after a dot or within
 * quotes are no axes. */
static char *replace(const char *text, const DraftAxis *axes, const char *const *by, int n)
{
    Buffer b;
    buffer_init(&b, MAX_TEXT);
    int quoted = 0;
    for (const char *p = text; *p;) {
        size_t len = word_step(p, NULL);
        const char *with = NULL;
        for (int i = 0; i < n && !quoted && !with; i++)
            if (by[i] && word_is(p, len, axes[i].name)) with = by[i];
        if (with && p > text && p[-1] == '.') with = NULL;
        if (with)
            buffer_puts(&b, with);
        else
            buffer_append(&b, p, len);
        quoted ^= *p == '\'';
        p += len;
    }
    return buffer_detach(&b);
}

/* A long dimension of an argument: it decides what a workload costs. */
static int is_long_argument(const Draft *d, const DraftAxis *a)
{
    for (int i = 0; i < d->n_inputs && a->size >= LONG_ARGUMENT; i++)
        for (int k = 0; k < d->inputs[i].rank && !d->inputs[i].parameter; k++)
            if (word_in(d->inputs[i].shape[k], a->name)) return 1;
    return 0;
}

/* An axis of one element stays one: with more of them another task may be computed, and PyTorch
 * broadcasts. Of too many axes, those whose sizes are smallest become numbers, long arguments' last. */
static int frozen_axes(const Draft *d, char **by)
{
    int left = 0;
    for (int i = 0; i < d->n_axes; i++) {
        const DraftAxis *a = &d->axes[i];
        if (a->size == 1 || (a->low == a->high && a->low))
            by[i] = memory_printf("%lld", (long long)a->size);
        left += !by[i];
    }
    for (; left > TASK_MAX_AXES; left--) {
        int least = -1, least_long = 0;
        for (int i = 0; i < d->n_axes; i++) {
            int is_long = !by[i] && is_long_argument(d, &d->axes[i]);
            if (by[i] || (least >= 0 && is_long > least_long)) continue;
            if (least >= 0 && is_long == least_long && d->axes[i].size >= d->axes[least].size)
                continue;
            least = i, least_long = is_long;
        }
        by[least] = memory_printf("%lld", (long long)d->axes[least].size);
    }
    return left;
}

static void copy_tensors(Derivation *v, DraftTensor *to, const DraftTensor *from, int n,
                         const Draft *d, char **by)
{
    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].name = copy(v, from[i].name);
        to[i].parameter = copy(v, from[i].parameter);
        to[i].format = copy(v, from[i].format);
        if (from[i].highest)
            to[i].highest = derivation_keep(
                v, replace(from[i].highest, d->axes, (const char *const *)by, d->n_axes));
        for (int k = 0; k < from[i].rank; k++)
            to[i].shape[k] = derivation_keep(
                v, replace(from[i].shape[k], d->axes, (const char *const *)by, d->n_axes));
    }
}

static void copy_texts(Derivation *v, const char **to, const char *const *from, int n,
                       const Draft *d, char **by)
{
    for (int i = 0; i < n; i++)
        to[i] = derivation_keep(
            v, replace(from[i], d->axes, (const char *const *)by, by ? d->n_axes : 0));
}

static void copy_draft(Derivation *v, const Draft *d, char **by)
{
    v->axes = memory_array((size_t)d->n_axes + 1, sizeof *v->axes);
    v->inputs = memory_array((size_t)d->n_inputs, sizeof *v->inputs);
    v->outputs = memory_array((size_t)d->n_outputs, sizeof *v->outputs);
    v->constraints = memory_array((size_t)d->n_constraints + 1, sizeof *v->constraints);
    v->lines = memory_array((size_t)d->n_lines, sizeof *v->lines);
    v->tags = memory_array((size_t)d->n_tags + 1, sizeof *v->tags);
    v->draft = *d;
    v->draft.n_axes = 0;
    for (int i = 0; i < d->n_axes; i++) {
        DraftAxis *a = &v->axes[v->draft.n_axes];
        if (by[i]) continue;
        *a = d->axes[i];
        a->name = copy(v, a->name);
        a->description = copy(v, a->description);
        if (a->low < 1) a->low = 1;
        if (a->high < 1 || a->high > largest) a->high = largest;
        v->draft.n_axes++;
    }
    copy_tensors(v, v->inputs, d->inputs, d->n_inputs, d, by);
    copy_tensors(v, v->outputs, d->outputs, d->n_outputs, d, by);
    copy_texts(v, v->constraints, d->constraints, d->n_constraints, d, by);
    copy_texts(v, v->lines, d->lines, d->n_lines, d, by);
    copy_texts(v, v->tags, d->tags, d->n_tags, d, NULL);
    v->draft.axes = v->axes, v->draft.inputs = v->inputs, v->draft.outputs = v->outputs;
    v->draft.constraints = v->constraints, v->draft.lines = v->lines, v->draft.tags = v->tags;
    v->draft.name = copy(v, d->name);
    v->draft.description = copy(v, d->description);
    v->draft.op_type = copy(v, d->op_type);
}

/* ---- opening ---- */

static int check_counts(const Draft *d, Error *err)
{
    if (d->n_axes < 0 || d->n_axes > DERIVE_MAX_AXES)
        return error_set(err, ERROR_LIMIT, "expected at most %d axes, found %d", DERIVE_MAX_AXES,
                         d->n_axes);
    if (d->n_constraints < 0 || d->n_constraints > DERIVE_MAX_CONSTRAINTS)
        return error_set(err, ERROR_LIMIT, "expected at most %d constraints, found %d",
                         DERIVE_MAX_CONSTRAINTS, d->n_constraints);
    if (d->n_inputs < 1 || d->n_inputs > GRAPH_MAX_INPUTS)
        return error_set(err, ERROR_LIMIT, "expected 1 to %d inputs, found %d", GRAPH_MAX_INPUTS,
                         d->n_inputs);
    if (d->n_outputs < 1 || d->n_outputs > GRAPH_MAX_OUTPUTS)
        return error_set(err, ERROR_LIMIT, "expected 1 to %d outputs, found %d", GRAPH_MAX_OUTPUTS,
                         d->n_outputs);
    if (d->n_lines < 1 || d->n_lines > GRAPH_MAX_NODES)
        return error_set(err, ERROR_LIMIT, "expected 1 to %d lines, found %d", GRAPH_MAX_NODES,
                         d->n_lines);
    if (!d->name || !word_is_name(d->name, sizeof((Task *)0)->name))
        return error_set(err, ERROR_INVALID, "\"%.80s\" is no name of a task",
                         d->name ? d->name : "");
    if (d->level < 1 || d->level > 3)
        return error_set(err, ERROR_INVALID, "level: expected 1, 2 or 3, found %d", d->level);
    return 0;
}

static int check_draft(const Draft *d, Error *err)
{
    if (check_counts(d, err)) return -1;
    for (int i = 0; i < d->n_axes; i++) {
        const DraftAxis *a = &d->axes[i];
        int64_t high = a->high < 1 ? largest : a->high;
        if (!word_is_name(a->name, sizeof((Task *)0)->axis_name[0]))
            return error_set(err, ERROR_INVALID, "\"%.80s\" is no name of an axis", a->name);
        if (a->size < 1 || a->size < a->low || a->size > high || a->size > largest)
            return error_set(
                err, ERROR_INVALID, "axis %s: the size %lld is not within %lld to %lld", a->name,
                (long long)a->size, (long long)(a->low < 1 ? 1 : a->low), (long long)high);
    }
    for (int i = 0; i < d->n_inputs + d->n_outputs; i++) {
        const DraftTensor *x = i < d->n_inputs ? &d->inputs[i] : &d->outputs[i - d->n_inputs];
        if (x->rank < (i < d->n_inputs ? 0 : -1) || x->rank > TASK_MAX_RANK)
            return error_set(err, ERROR_INVALID, "%.64s: expected at most %d dimensions, found %d",
                             x->name, TASK_MAX_RANK, x->rank);
    }
    return 0;
}

static int is_axis(void *ctx, const char *name)
{
    const Derivation *v = ctx;
    for (int i = 0; i < v->draft.n_axes; i++)
        if (!strcmp(v->axes[i].name, name)) return 1;
    return 0;
}

static int read_graph(Derivation *v, Error *err)
{
    const char **inputs = memory_array((size_t)v->draft.n_inputs, sizeof *inputs),
               **outputs = memory_array((size_t)v->draft.n_outputs, sizeof *outputs);
    for (int i = 0; i < v->draft.n_inputs; i++) inputs[i] = v->inputs[i].name;
    for (int i = 0; i < v->draft.n_outputs; i++) outputs[i] = v->outputs[i].name;
    GraphSource s = {v->lines, v->draft.n_lines,   inputs,  v->draft.n_inputs,
                     outputs,  v->draft.n_outputs, is_axis, v};
    int rc = graph_read(&s, &v->graph, err);
    free(inputs);
    free(outputs);
    return rc;
}

int derivation_open(Derivation *v, const Draft *d, Error *err)
{
    *v = (Derivation){0};
    if (check_draft(d, err)) return -1;
    char **by = memory_array((size_t)d->n_axes + 1, sizeof *by);
    frozen_axes(d, by);
    copy_draft(v, d, by);
    for (int i = 0; i < d->n_axes; i++) free(by[i]);
    free(by);
    GraphBound *b;
    Sizes own = derivation_own(v);
    if (read_graph(v, err) || derivation_bind(v, &own, &b, err)) {
        derivation_release(v);
        return -1;
    }
    graph_bound_free(b);
    return 0;
}

void derivation_release(Derivation *v)
{
    graph_free(v->graph);
    for (int i = 0; i < v->n_owned; i++) free(v->owned[i]);
    free(v->owned);
    free(v->axes);
    free(v->inputs);
    free(v->outputs);
    free(v->constraints);
    free(v->lines);
    free(v->tags);
    *v = (Derivation){0};
}

/* ---- sizes ---- */

Sizes derivation_own(const Derivation *v)
{
    Sizes s = {{0}};
    for (int i = 0; i < v->draft.n_axes; i++) s.at[i] = v->axes[i].size;
    return s;
}

typedef struct {
    const Derivation *v;
    const Sizes *s;
} Scope;

static int lookup(void *ctx, const char *name, size_t len, int64_t *value)
{
    const Scope *x = ctx;
    for (int i = 0; i < x->v->draft.n_axes; i++)
        if (word_is(name, len, x->v->axes[i].name)) {
            *value = x->s->at[i];
            return 0;
        }
    return -1;
}

int derivation_value(const Derivation *v, const Sizes *s, const char *text, int64_t *out,
                     Error *err)
{
    Scope scope = {v, s};
    return expr_eval(text, strlen(text), lookup, &scope, out, err);
}

static int input_shapes(const Derivation *v, const Sizes *s, OpTensor *x, Error *err)
{
    for (int i = 0; i < v->draft.n_inputs; i++) {
        const DraftTensor *from = &v->inputs[i];
        x[i] = (OpTensor){.dtype = from->dtype, .rank = from->rank};
        for (int k = 0; k < from->rank; k++) {
            if (derivation_value(v, s, from->shape[k], &x[i].size[k], err))
                return error_prefix(err, "%s.shape[%d]", from->name, k);
            if (x[i].size[k] < 1 || x[i].size[k] > (int64_t)1 << 40)
                return error_set(err, ERROR_INVALID, "%s.shape[%d] is %lld", from->name, k,
                                 (long long)x[i].size[k]);
        }
        op_contiguous(&x[i]);
    }
    return 0;
}

static int check_sizes(const Derivation *v, const Sizes *s, Error *err)
{
    for (int i = 0; i < v->draft.n_axes; i++)
        if (s->at[i] < v->axes[i].low || s->at[i] > v->axes[i].high)
            return error_set(err, ERROR_INVALID, "axis %s: %lld is not within %lld to %lld",
                             v->axes[i].name, (long long)s->at[i], (long long)v->axes[i].low,
                             (long long)v->axes[i].high);
    for (int i = 0; i < v->draft.n_constraints; i++) {
        int64_t holds;
        if (derivation_value(v, s, v->constraints[i], &holds, err))
            return error_prefix(err, "constraint %d", i);
        if (!holds)
            return error_set(err, ERROR_INVALID, "the constraint \"%s\" does not hold",
                             v->constraints[i]);
    }
    return 0;
}

/* Distinct places need room. */
static int check_room(const Derivation *v, const GraphBound *b, int input, Error *err)
{
    int64_t room;
    if (dtype_is_float(v->inputs[input].dtype)) return 0;
    int dim = indices_distinct(b, input, &room);
    int64_t n = dim < 0 ? 0 : b->values[input].tensor.size[dim];
    if (dim < 0 || n <= room) return 0;
    return error_set(err, ERROR_UNSUPPORTED,
                     "%s names %lld of %lld places to write: which of two elements stays is open",
                     v->inputs[input].name, (long long)n, (long long)room);
}

int derivation_bind(const Derivation *v, const Sizes *s, GraphBound **out, Error *err)
{
    if (check_sizes(v, s, err)) return -1;
    Scope scope = {v, s};
    OpTensor *x = memory_array((size_t)v->draft.n_inputs, sizeof *x);
    int rc = input_shapes(v, s, x, err) || graph_bind(v->graph, lookup, &scope, x, out, err);
    free(x);
    if (rc) return -1;
    for (int i = 0; i < v->graph->n_values && !rc; i++)
        if ((*out)->values[i].live && op_elements(&(*out)->values[i].tensor) < 1)
            rc = error_set(err, ERROR_INVALID, "%s has no elements", v->graph->name[i]);
    for (int i = 0; i < v->draft.n_outputs && !rc; i++) {
        const OpTensor *y = &(*out)->values[v->graph->output[i]].tensor;
        for (int k = 0; k < v->outputs[i].rank && !rc; k++) {
            int64_t size;
            rc = derivation_value(v, s, v->outputs[i].shape[k], &size, err);
            if (!rc && (y->rank != v->outputs[i].rank || size != y->size[k]))
                rc = error_set(err, ERROR_INVALID,
                               "output %s: dimension %d of the graph's is not %s",
                               v->outputs[i].name, k, v->outputs[i].shape[k]);
        }
    }
    if (!rc && !indices_fit(*out))
        rc = error_set(err, ERROR_INVALID, "indices that the graph makes are out of range");
    for (int i = 0; i < v->draft.n_inputs && !rc; i++) rc = check_room(v, *out, i, err);
    const char *repeats = rc ? NULL : indices_repeat(*out);
    if (repeats)
        rc = error_set(err, ERROR_UNSUPPORTED,
                       "%s may write two elements to one place: which of them stays is open",
                       repeats);
    if (rc) graph_bound_free(*out);
    return rc ? -1 : 0;
}

int derivation_fits(const Derivation *v, const Sizes *s)
{
    GraphBound *b;
    if (derivation_bind(v, s, &b, NULL)) return -1;
    graph_bound_free(b);
    return 0;
}
