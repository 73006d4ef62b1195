/* Writes task.json: one line for each axis, tensor, operator and workload. */
#include "tasks/derive/task_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"
#include "tasks/graph/formula.h"

enum { MAX_TEXT = 1 << 24, DIGITS = 6, LONG_FORMULA = 300 };

void description_add(Description *d, Role role, const Sizes *s)
{
    if (d->n == TASK_MAX_WORKLOADS) return;
    d->at[d->n++] =
        (DescribedWorkload){.role = role, .sizes = *s, .own = *s, .weight = 1, .finite = 1};
}

void description_forget(Description *d)
{
    for (int i = 0; i < d->n; i++) {
        free(d->at[i].atol);
        d->at[i].atol = NULL;
        d->at[i].finite = 1;
    }
    memset(d->rtol, 0, sizeof d->rtol);
    d->blunt = 0;
}

void description_keep(Description *d, const int *good)
{
    int n = 0;
    for (int i = 0; i < d->n; i++) {
        if (good[i])
            d->at[n++] = d->at[i];
        else
            free(d->at[i].atol);
    }
    d->n = n;
}

void description_degenerate(Description *d, const char *reason)
{
    if (!d->degenerate) d->degenerate = memory_strdup(reason);
}

void description_release(Description *d)
{
    description_forget(d);
    free(d->exact);
    free(d->degenerate);
}

/* ---- text ---- */

static void put_value(Buffer *b, json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS));
    buffer_puts(b, text);
    free(text);
    json_decref(value);
}

static void put_field(Buffer *b, const char *name, json_t *value)
{
    buffer_printf(b, "  \"%s\": ", name);
    put_value(b, value);
    buffer_puts(b, ",\n");
}

/* "dimension 0 of x, dimension 1 of w" */
static char *place_of(const Derivation *v, const char *axis)
{
    Buffer b;
    buffer_init(&b, 512);
    for (int i = 0; i < v->draft.n_inputs; i++)
        for (int d = 0; d < v->inputs[i].rank; d++)
            if (!strcmp(v->inputs[i].shape[d], axis) && b.len < 80)
                buffer_printf(&b, "%sdimension %d of %s", b.len ? ", " : "", d, v->inputs[i].name);
    if (!b.len) buffer_puts(&b, "a size");
    return buffer_detach(&b);
}

/* NULL: there is none. */
static const DescribedWorkload *first_timed(const Description *d)
{
    for (int w = 0; w < d->n; w++)
        if (d->at[w].role == ROLE_TIME) return &d->at[w];
    return NULL;
}

/* "own" is the size that the first timed workload stands for, where it is larger. */
static void put_axes(Buffer *b, const Derivation *v, const Description *d)
{
    const DescribedWorkload *timed = first_timed(d);
    buffer_puts(b, "  \"axes\": {");
    for (int i = 0; i < v->draft.n_axes; i++) {
        const DraftAxis *a = &v->axes[i];
        char *place = a->description ? memory_strdup(a->description) : place_of(v, a->name);
        buffer_printf(b, "%s\n    \"%s\": ", i ? "," : "", a->name);
        json_t *o = json_pack("{s:s}", "description", place);
        if (timed && timed->own.at[i] > timed->sizes.at[i])
            json_object_set_new(o, "own", json_integer(timed->own.at[i]));
        put_value(b, o);
        free(place);
    }
    buffer_puts(b, v->draft.n_axes ? "\n  },\n" : "},\n");
}

static json_t *shape_of(const DraftTensor *x)
{
    json_t *shape = json_array();
    for (int d = 0; d < x->rank; d++) json_array_append_new(shape, json_string(x->shape[d]));
    return shape;
}

static json_t *input_of(const DraftTensor *x)
{
    json_t *o = json_pack("{s:s, s:o, s:s}", "dtype", dtype_name(x->dtype), "shape", shape_of(x),
                          "draw", draw_name(x->draw));
    if (x->draw == DRAW_INTEGER) {
        json_object_set_new(o, "low", json_integer((json_int_t)x->low));
        json_object_set_new(
            o, "high", x->highest ? json_string(x->highest) : json_integer((json_int_t)x->high));
        if (x->distinct) json_object_set_new(o, "distinct", json_integer(x->distinct - 1));
    } else if (x->draw == DRAW_UNIFORM && (x->low != -1 || x->high != 1)) {
        json_object_set_new(o, "low", json_real(x->low));
        json_object_set_new(o, "high", json_real(x->high));
    } else if ((x->draw == DRAW_NORMAL || x->draw == DRAW_MIXED) && (x->mean != 0 || x->std != 1)) {
        json_object_set_new(o, "mean", json_real(x->mean));
        json_object_set_new(o, "std", json_real(x->std));
    }
    if (x->parameter) json_object_set_new(o, "parameter", json_string(x->parameter));
    if (x->format) json_object_set_new(o, "format", json_string(x->format));
    if (x->unused) json_object_set_new(o, "unused", json_true());
    if (x->fixed) json_object_set_new(o, "fixed", json_true());
    return o;
}

static void put_tensors(Buffer *b, const DraftTensor *x, int n, int input)
{
    buffer_printf(b, "  \"%s\": {", input ? "inputs" : "outputs");
    for (int i = 0; i < n; i++) {
        buffer_printf(b, "%s\n    \"%s\": ", i ? "," : "", x[i].name);
        put_value(b, input ? input_of(&x[i])
                           : json_pack("{s:s, s:o}", "dtype", dtype_name(x[i].dtype), "shape",
                                       shape_of(&x[i])));
    }
    buffer_puts(b, "\n  },\n");
}

static void put_texts(Buffer *b, const char *name, const char *const *texts, int n)
{
    buffer_printf(b, "  \"%s\": [", name);
    for (int i = 0; i < n; i++) {
        buffer_printf(b, "%s\n    ", i ? "," : "");
        put_value(b, json_string(texts[i]));
    }
    buffer_puts(b, "\n  ],\n");
}

static void put_tolerance(Buffer *b, const Derivation *v, const Description *d)
{
    json_t *all = json_object();
    for (int i = 0; i < v->draft.n_outputs; i++) {
        Dtype type = v->outputs[i].dtype;
        double atol = 0;
        for (int w = 0; w < d->n; w++)
            if (d->at[w].atol && d->at[w].role == ROLE_CHECK)
                atol = fmax(atol, d->at[w].atol[i * ATOL_CASES]);
        json_t *have = json_object_get(all, dtype_name(type));
        if (have) atol = fmax(atol, json_real_value(json_object_get(have, "atol")));
        json_object_set_new(
            all, dtype_name(type),
            json_pack("{s:f, s:f}", "atol", fmin(atol, 0.999), "rtol", d->rtol[type]));
    }
    put_field(b, "tolerance", all);
}

static char *note_of(const Derivation *v, const DescribedWorkload *w)
{
    Buffer b;
    buffer_init(&b, 1024);
    for (int i = 0; i < v->draft.n_axes; i++)
        if (w->sizes.at[i] != w->own.at[i])
            buffer_printf(&b, "%s%s is %lld of the module's %lld", b.len ? ", " : "",
                          v->axes[i].name, (long long)w->sizes.at[i], (long long)w->own.at[i]);
    return buffer_detach(&b);
}

static void put_workload(Buffer *b, const Derivation *v, const DescribedWorkload *w)
{
    static const char *const roles[] = {"check", "time", "sim"};
    json_t *axes = json_object(), *o = json_pack("{s:s}", "role", roles[w->role]);
    for (int i = 0; i < v->draft.n_axes; i++)
        json_object_set_new(axes, v->axes[i].name, json_integer(w->sizes.at[i]));
    json_object_set_new(o, "axes", axes);
    if (w->weight != 1) json_object_set_new(o, "weight", json_real(w->weight));
    char *note = note_of(v, w);
    if (w->role == ROLE_TIME && *note) json_object_set_new(o, "note", json_string(note));
    free(note);
    if (w->atol) {
        json_t *atol = json_object();
        for (int i = 0; i < v->draft.n_outputs; i++) {
            json_t *list = json_array();
            for (int k = 0; k < ATOL_CASES; k++)
                json_array_append_new(list, json_real(w->atol[i * ATOL_CASES + k]));
            json_object_set_new(atol, v->outputs[i].name, list);
        }
        json_object_set_new(o, "atol", atol);
    }
    put_value(b, o);
}

/* The graph as one formula, or if it is longer the operators, "conv2d, relu, linear". */
static char *own_description(const Derivation *v)
{
    Buffer b;
    buffer_init(&b, MAX_TEXT);
    graph_formula(v->graph, FORMULA_NESTED, LONG_FORMULA, &b);
    if (b.len && strchr(b.data, '\n') == b.data + b.len - 1) {
        b.data[--b.len] = 0;
        return buffer_detach(&b);
    }
    buffer_clear(&b);
    for (int i = 0; i < v->graph->n_nodes && b.len < LONG_FORMULA; i++) {
        const char *name = v->graph->line[i].op->name + strlen("aten.");
        buffer_printf(&b, "%s%.*s", i ? ", " : "", (int)strcspn(name, "."), name);
    }
    return buffer_detach(&b);
}

/* The operator with the most flops at the module's own sizes. */
static char *costliest(const Derivation *v)
{
    GraphBound *b;
    Sizes own = derivation_own(v);
    double largest = -1;
    const char *name = "graph";
    if (derivation_bind(v, &own, &b, NULL)) return memory_strdup(name);
    for (int i = 0; i < v->graph->n_nodes; i++) {
        OpCost cost;
        const GraphCall *c = &b->calls[i];
        if (!c->live || c->view || op_cost(&c->call, &cost, NULL)) continue;
        if (cost.flops > largest) largest = cost.flops, name = c->call.op->name + strlen("aten.");
    }
    char *text = memory_strndup(name, strcspn(name, "."));
    graph_bound_free(b);
    return text;
}

static void put_head(Buffer *b, const Derivation *v, const Description *d)
{
    char *formula = own_description(v), *costly = costliest(v);
    json_t *tags = json_array();
    json_array_append_new(tags, json_string("graph"));
    for (int i = 0; i < v->draft.n_tags; i++)
        json_array_append_new(tags, json_string(v->draft.tags[i]));
    if (d->degenerate) json_array_append_new(tags, json_string("degenerate"));
    put_field(b, "name", json_string(v->draft.name));
    put_field(b, "description", json_string(v->draft.description ? v->draft.description : formula));
    put_field(b, "op_type", json_string(v->draft.op_type ? v->draft.op_type : costly));
    put_field(b, "tags", tags);
    if (d->degenerate) put_field(b, "degenerate", json_string(d->degenerate));
    put_field(b, "level", json_integer(v->draft.level));
    put_field(b, "split", json_string(v->draft.heldout ? "heldout" : "train"));
    free(formula);
    free(costly);
}

char *description_text(const Derivation *v, const Description *d)
{
    Buffer b;
    buffer_init(&b, MAX_TEXT);
    buffer_puts(&b, "{\n");
    put_head(&b, v, d);
    put_axes(&b, v, d);
    if (v->draft.n_constraints)
        put_texts(&b, "constraints", v->constraints, v->draft.n_constraints);
    put_tensors(&b, v->inputs, v->draft.n_inputs, 1);
    put_tensors(&b, v->outputs, v->draft.n_outputs, 0);
    put_texts(&b, "graph", v->lines, v->draft.n_lines);
    if (v->draft.call) buffer_printf(&b, "  \"call\": %s,\n", v->draft.call);
    if (v->draft.results) buffer_printf(&b, "  \"results\": %s,\n", v->draft.results);
    put_tolerance(&b, v, d);
    const Precision *p = v->draft.precision;
    if (p)
        put_field(&b, "precision",
                  json_pack("{s:s, s:b}", "matmul", precision_matmul_names[p->matmul], "cudnn_tf32",
                            p->cudnn_tf32));
    if (v->draft.budget) put_field(&b, "budget", json_string(v->draft.budget));
    if (d->rotates) put_field(&b, "turns", json_string(v->axes[d->rotates - 1].name));
    if (d->exact) put_field(&b, "exact", json_string(d->exact));
    buffer_puts(&b, "  \"workloads\": [");
    for (int i = 0; i < d->n; i++) {
        buffer_printf(&b, "%s\n    ", i ? "," : "");
        put_workload(&b, v, &d->at[i]);
    }
    buffer_puts(&b, "\n  ]\n}\n");
    return buffer_detach(&b);
}
