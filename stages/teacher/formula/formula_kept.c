/* Operators that stay op lines of the plan. An op line names inputs of the task, results of other op lines,
 * and views of them; the memory of a computed value is a buffer of one dimension, which a view line gives
 * its shape. The lines are written once all names are known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "stages/teacher/formula/formula_code.h"
#include "stages/teacher/formula/formula_read.h"

enum { LINES_MAX = 1 << 16 };

int formula_is_product(const char *op)
{
    static const char names[] = " mm bmm matmul linear addmm conv1d conv2d conv3d ";
    char word[40];
    snprintf(word, sizeof word, " %s ", op);
    return strstr(names, word) != NULL;
}

/* The values whose memory the call takes. */
static int find_taken(const FormulaReader *r, const GraphCall *c, uint64_t *out, Error *err)
{
    for (int i = 0; i < c->call.n_tensors; i++) {
        int base = r->b->values[c->in[i]].base;
        if (base < r->f->task->n_inputs) continue;
        if (r->of[base] < 0)
            return error_set(err, ERROR_UNSUPPORTED, "%s is in no memory", r->b->graph->name[base]);
        *out |= (uint64_t)1 << r->of[base];
    }
    return 0;
}

int formula_keep(FormulaReader *r, int node, Error *err)
{
    const GraphCall *c = &r->b->calls[node];
    int first = r->b->graph->first[node], whole = -1;
    uint64_t takes = 0;
    if (c->call.op->flags & OP_IN_PLACE)
        return error_set(err, ERROR_UNSUPPORTED, "%s writes in place", c->call.op->name);
    if (find_taken(r, c, &takes, err)) return -1;
    for (int i = 0; i < c->call.n_results; i++) {
        if (i && !r->b->values[first + i].live) continue;
        if (r->b->values[first + i].base != first + i) continue; /* a view */
        int at = formula_add(r, VALUE_KEPT, r->b->graph->name[first + i], err);
        if (at < 0) return -1;
        FormulaValue *v = &r->f->value[at];
        v->node = node;
        v->nth = i;
        v->dtype = c->call.result[i].dtype;
        v->takes = whole < 0 ? takes : (uint64_t)1 << whole;
        if (whole < 0) whole = at;
        r->of[first + i] = at;
    }
    return whole < 0 ? error_set(err, ERROR_UNSUPPORTED, "%s is a view", c->call.op->name) : 0;
}

int formula_kept_output(FormulaReader *r, int value, Error *err)
{
    int base = r->b->values[value].base;
    if (base == value) return r->of[base];
    int at = formula_add(r, VALUE_KEPT, r->b->graph->name[value], err);
    if (at < 0) return -1;
    r->f->value[at].takes = (uint64_t)1 << r->of[base];
    r->f->value[at].dtype = r->b->values[base].tensor.dtype;
    return at;
}

/* ---- lines ---- */

typedef struct {
    FormulaReader *r;
    char **name;  /* by value of the graph; NULL: not in the plan yet */
    Buffer lines; /* of the value that is written */
    Error *err;
} Lines;

static const char *name_of(Lines *l, int value);

/* An argument with the names that tensors have in the plan. */
static int put_argument(Lines *l, Buffer *b, OpText t)
{
    int quoted = 0;
    for (const char *p = t.p, *end = t.p + t.len; p < end;) {
        size_t n = word_step(p, end);
        int alone = p == t.p || p[-1] != '.';
        int v = alone && !quoted ? graph_find(l->r->b->graph, p, n) : -1;
        const char *name = v >= 0 ? name_of(l, v) : NULL;
        if (v >= 0 && !name) return -1;
        quoted ^= *p == '\'';
        if (name)
            buffer_puts(b, name);
        else
            buffer_append(b, p, n);
        p += n;
    }
    return 0;
}

/* "op RESULTS = aten.name(args)" */
static int put_line(Lines *l, const char *results, int node)
{
    const OpLine *line = &l->r->b->graph->line[node];
    Buffer b;
    int rc = 0;
    buffer_init(&b, OP_LINE_MAX);
    buffer_printf(&b, "op %s = %s(", results, line->op->name);
    for (int i = 0; i < line->n_args && !rc; i++) {
        buffer_puts(&b, i ? ", " : "");
        if (line->keyword[i].len)
            buffer_printf(&b, "%.*s=", (int)line->keyword[i].len, line->keyword[i].p);
        rc = put_argument(l, &b, line->value[i]);
    }
    buffer_puts(&b, ")\n");
    if (!rc && b.full) rc = error_set(l->err, ERROR_UNSUPPORTED, "an op line would be too long");
    if (!rc) buffer_append(&l->lines, b.data, b.len);
    buffer_release(&b);
    return rc;
}

/* A computed value's buffer under its shape. */
static char *shape_buffer(Lines *l, int value)
{
    const OpTensor *t = &l->r->b->values[value].tensor;
    const char *memory = code_memory(l->r->f, l->r->of[value]);
    char one[FORMULA_TEXT], name[64];
    if (t->rank == 1) return memory_strdup(memory);
    snprintf(one, sizeof one, "%.40s_shaped", memory);
    formula_free_name(l->r->f, one, name);
    buffer_printf(&l->lines, "op %s = aten.view.default(%s, [", name, memory);
    for (int d = 0; d < t->rank; d++) {
        if (formula_size_text(l->r, t->size[d], one, l->err)) return NULL;
        buffer_printf(&l->lines, "%s%s", d ? ", " : "", one);
    }
    buffer_puts(&l->lines, "])\n");
    return memory_strdup(name);
}

/* The line that gives one value, a view; the operator's other results have no names. */
static int put_view(Lines *l, const char *name, int value)
{
    const GraphBound *b = l->r->b;
    int node = b->values[value].node, first = b->graph->first[node];
    Buffer results;
    buffer_init(&results, OP_LINE_MAX);
    for (int i = 0; i < b->calls[node].call.n_results; i++)
        buffer_printf(&results, "%s%s", i ? ", " : "", first + i == value ? name : "_");
    int rc = put_line(l, results.data, node);
    buffer_release(&results);
    return rc;
}

static char *view_name(Lines *l, int value)
{
    char name[64];
    formula_free_name(l->r->f, l->r->b->graph->name[value], name);
    return put_view(l, name, value) ? NULL : memory_strdup(name);
}

/* The name in the plan of a value of the graph, for which lines may be written; NULL: an error. */
static const char *name_of(Lines *l, int value)
{
    const Formula *f = l->r->f;
    int base = l->r->b->values[value].base, from = l->r->of[base];
    if (l->name[value]) return l->name[value];
    if (value < f->task->n_inputs)
        l->name[value] = memory_strdup(f->task->inputs[value].name);
    else if (value != base)
        l->name[value] = view_name(l, value);
    else if (from >= 0 && f->value[from].kind == VALUE_KEPT)
        l->name[value] = memory_strdup(code_memory(f, from));
    else if (from >= 0)
        l->name[value] = shape_buffer(l, value);
    else
        error_set(l->err, ERROR_UNSUPPORTED, "%s is in no memory", l->r->b->graph->name[value]);
    return l->name[value];
}

/* The line of an operator, and before it those of the views that it takes. */
static int write_operator(Lines *l, int at)
{
    const Formula *f = l->r->f;
    const GraphCall *c = &l->r->b->calls[f->value[at].node];
    int first = l->r->b->graph->first[f->value[at].node];
    Buffer results;
    buffer_init(&results, OP_LINE_MAX);
    for (int i = 0; i < c->call.n_results; i++) {
        int of = l->r->of[first + i];
        buffer_printf(&results, "%s%s", i ? ", " : "",
                      of >= 0 ? code_memory(f, of) : l->r->b->graph->name[first + i]);
    }
    int rc = results.full ? error_set(l->err, ERROR_UNSUPPORTED, "an op line would be too long")
                          : put_line(l, results.data, f->value[at].node);
    buffer_release(&results);
    return rc;
}

static int write_value(Lines *l, int at)
{
    FormulaValue *v = &l->r->f->value[at];
    int output = l->r->b->graph->output[0], rc = 0;
    if (v->kind != VALUE_KEPT || !v->uses || v->nth) return 0;
    buffer_init(&l->lines, LINES_MAX);
    if (v->node >= 0)
        rc = write_operator(l, at);
    else
        rc = put_line(l, l->r->f->task->outputs[0].name, l->r->b->values[output].node);
    if (!rc && l->lines.full)
        rc = error_set(l->err, ERROR_UNSUPPORTED, "the op lines would be too long");
    v->lines = buffer_detach(&l->lines);
    return rc;
}

int formula_kept_lines(FormulaReader *r, Error *err)
{
    Lines l = {.r = r, .err = err};
    int n = r->b->graph->n_values, rc = 0, written = 0;
    l.name = memory_array((size_t)n + 1, sizeof *l.name);
    for (int i = 0; i < r->f->n_values && !rc; i++) {
        const FormulaValue *v = &r->f->value[i];
        written += v->uses && v->kind != VALUE_KEPT && v->kind != VALUE_LOAD;
        rc = write_value(&l, i);
    }
    for (int i = 0; i < n; i++) free(l.name[i]);
    free(l.name);
    if (rc || written) return rc;
    return error_set(err, ERROR_UNSUPPORTED, "every operator would be kept");
}
