/* Reads a graph as a formula: binds it to primes, follows views back to the memory that they show, and
 * finds for each operand how it lies in the space of its result. */
#include "stages/teacher/formula/row_formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "ops/op_pointwise.h"
#include "stages/teacher/formula/formula_read.h"
#include "tasks/task_graph.h"

/* ---- sizes ---- */

static const int64_t primes[TASK_MAX_AXES] = {1009, 1511, 2003, 2503, 3001, 3511, 4001, 4507,
                                              5003, 5501, 6007, 6521, 7001, 7507, 8009, 8501};

static int prime_axis(void *task, const char *name, size_t len, int64_t *value)
{
    const Task *t = task;
    for (int i = 0; i < t->n_axes; i++)
        if (word_is(name, len, t->axis_name[i])) {
            *value = primes[i];
            return 0;
        }
    return -1;
}

void formula_size(FormulaReader *r, int64_t n, const char *text)
{
    if (r->n_sizes == FORMULA_NUMBERS) return;
    r->size[r->n_sizes].n = n;
    snprintf(r->size[r->n_sizes++].text, FORMULA_TEXT, "%s", text);
}

int formula_size_text(FormulaReader *r, int64_t n, char out[FORMULA_TEXT], Error *err)
{
    for (int i = 0; i < r->n_sizes; i++)
        if (r->size[i].n == n) {
            snprintf(out, FORMULA_TEXT, "%s", r->size[i].text);
            return 0;
        }
    if (r->sizes && !formula_find_size(r, n, out)) return 0;
    if (n > 512)
        return error_set(err, ERROR_UNSUPPORTED, "a size is neither an axis nor a small number");
    snprintf(out, FORMULA_TEXT, "%lld", (long long)n);
    return 0;
}

/* ---- values ---- */

static int is_reserved(const char *name)
{
    static const char *const reserved[] = {
        "i",        "j",       "k",        "m",    "n",     "p",     "t",      "v",     "w",
        "row",      "col",     "rows",     "cols", "tid",   "lane",  "step",   "part",  "buf",
        "a",        "b",       "as",       "bs",   "tx",    "ty",    "M",      "N",     "K",
        "P",        "T",       "own",      "base", "carry", "tile",  "big",    "acc",   "apply",
        "left",     "high",    "wide",     "half", "int",   "float", "for",    "if",    "max",
        "min",      "abs",     "exp",      "log",  "batch", "kept",  "blocks", "first", "inner",
        "plane",    "partial", "channels", "all",  "do",    "char",  "short",  "void",  "log2",
        "ceil_div", "dim3"};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(name, reserved[i])) return 1;
    return 0;
}

static int is_taken(const Formula *f, const char *name)
{
    if (is_reserved(name)) return 1;
    for (int i = 0; i < f->n_values; i++)
        if (f->value[i].kind != VALUE_LOAD && !strcmp(f->value[i].name, name)) return 1;
    for (int i = 0; i < f->task->n_inputs; i++)
        if (!strcmp(f->task->inputs[i].name, name)) return 1;
    for (int i = 0; i < f->task->n_axes; i++)
        if (!strcmp(f->task->axis_name[i], name)) return 1;
    return 0;
}

void formula_free_name(const Formula *f, const char *base, char out[64])
{
    snprintf(out, 64, "%s", base);
    for (int i = 2; is_taken(f, out) && i < 99; i++) snprintf(out, 64, "%.50s%d", base, i);
}

int formula_add(FormulaReader *r, ValueKind kind, const char *name, Error *err)
{
    Formula *f = r->f;
    if (f->n_values == FORMULA_VALUES)
        return error_set(err, ERROR_UNSUPPORTED, "the formula has more than %d values",
                         FORMULA_VALUES);
    FormulaValue *v = &f->value[f->n_values];
    *v = (FormulaValue){.kind = kind,
                        .dtype = DTYPE_F32,
                        .arg = {-1, -1, -1},
                        .mean = -1,
                        .top = -1,
                        .input = -1,
                        .source = -1,
                        .node = -1,
                        .text = "a"};
    if (kind == VALUE_LOAD)
        snprintf(v->name, sizeof v->name, is_reserved(name) ? "%.50s_in" : "%s", name);
    else
        formula_free_name(f, name, v->name);
    snprintf(v->op, sizeof v->op, "%s", r->op);
    return f->n_values++;
}

static int load(FormulaReader *r, int base, Domain d, int space, Error *err)
{
    Formula *f = r->f;
    int is_input = base < f->task->n_inputs, from = is_input ? base : r->of[base];
    if (from < 0) return error_set(err, ERROR_UNSUPPORTED, "a result that is not read");
    for (int i = 0; i < f->n_values; i++) {
        const FormulaValue *v = &f->value[i];
        if (v->kind == VALUE_LOAD && v->domain == d && v->space == space &&
            (is_input ? v->input : v->source) == from)
            return i;
    }
    int at = formula_add(r, VALUE_LOAD, is_input ? f->task->inputs[base].name : f->value[from].name,
                         err);
    if (at < 0) return -1;
    FormulaValue *v = &f->value[at];
    v->domain = d;
    v->space = space;
    v->dtype = r->b->values[base].tensor.dtype;
    *(is_input ? &v->input : &v->source) = from;
    if (!is_input) f->value[from].uses++;
    return at;
}

int formula_operand(FormulaReader *r, int value, const OpTensor *like, int space, Error *err)
{
    const OpTensor *t = &r->b->values[value].tensor;
    int base = r->b->values[value].base, from = r->of[base];
    int kept = from >= 0 && r->f->value[from].kind == VALUE_KEPT;
    Domain d;
    if (kept) from = -1; /* it lies in memory, as an input does */
    if (from >= 0 && r->f->value[from].domain == PER_ROW && r->f->value[from].space == space &&
        op_elements(like) == r->f->space[space].n_rows)
        return from;
    if (from >= 0 && r->f->value[from].domain == PER_TASK) return from;
    const FormulaSpace *s = &r->f->space[space];
    if (from < 0 && s->n_cols != 1 && op_elements(like) == s->n_rows &&
        s->n_rows != s->n_rows * s->n_cols && op_is_contiguous(t) && !t->offset &&
        (op_elements(t) == s->n_rows || op_elements(t) == 1))
        return load(r, base, op_elements(t) == 1 ? PER_TASK : PER_ROW, space, err);
    if (formula_domain(r, t, like, &d))
        return error_set(err, ERROR_UNSUPPORTED, "%s lies in no way that is known",
                         r->b->graph->name[value]);
    if (from >= 0 && r->f->value[from].domain == d && r->f->value[from].space == space) return from;
    if (from >= 0 && d != PER_TRANSPOSED)
        return error_set(err, ERROR_UNSUPPORTED, "%s changes its shape on the way",
                         r->b->graph->name[value]);
    return load(r, base, d, space, err);
}

/* ---- operators ---- */

/* The space and domain of a pointwise result: per row if all computed operands are. */
static int result_place(FormulaReader *r, const GraphCall *c, Domain *d, Error *err)
{
    const OpTensor *y = &c->call.result[0];
    const Formula *f = r->f;
    int rows = -1, scalar = 0, full = 0;
    for (int i = 0; i < c->call.n_tensors; i++) {
        int from = r->of[r->b->values[c->in[i]].base];
        if (from < 0) continue;
        if (f->value[from].kind == VALUE_KEPT)
            full = 1;
        else if (f->value[from].domain == PER_ROW)
            rows = f->value[from].space;
        else if (f->value[from].domain == PER_TASK)
            scalar = 1;
        else
            full = 1;
    }
    *d = PER_ELEMENT;
    if (!full && rows >= 0 && op_elements(y) == f->space[rows].n_rows) {
        *d = PER_ROW;
        return rows;
    }
    if (!full && scalar && op_elements(y) == 1) *d = PER_TASK;
    return formula_space(r, y, err);
}

/* Is the value one number, which aten.full made? */
static int formula_constant(const FormulaReader *r, int value, double *out)
{
    int node = r->b->values[value].node;
    const OpCall *call = node < 0 ? NULL : &r->b->calls[node].call;
    if (!call || strcmp(call->op->name, "aten.full.default") || op_elements(&call->result[0]) != 1)
        return 0;
    *out = call->arg[1].number;
    return 1;
}

/* A number that is an axis's size is bound to the sizes with which the graph is read. */
static int has_size(const FormulaReader *r, const OpCall *call)
{
    for (int i = 0; i < call->n_args; i++)
        for (int k = 0; k < r->n_sizes && call->arg[i].kind != OP_TENSOR; k++)
            if (call->arg[i].number == (double)r->size[k].n && r->size[k].n > 1) return 1;
    return 0;
}

static int read_point(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    const OpCall *call = &c->call;
    const Pointwise *w = call->op->detail;
    double p[OP_MAX_ARGS] = {0}, number[OP_MAX_ARGS] = {0};
    Domain d;
    int space = result_place(r, c, &d, err), arg[3] = {-1, -1, -1};
    if (space < 0) return -1;
    if (call->op->flags & OP_IN_PLACE)
        return error_set(err, ERROR_UNSUPPORTED, "%s writes in place", call->op->name);
    if (has_size(r, call)) return error_set(err, ERROR_UNSUPPORTED, "a number is a size");
    for (int i = w->operands; i < call->n_args && i - w->operands < 3; i++) {
        const OpValue *v = &call->arg[i];
        p[i - w->operands] = v->kind == OP_NONE     ? (i == w->operands ? -3e38 : 3e38)
                             : v->kind == OP_STRING ? !strcmp(v->text, "tanh")
                                                    : v->number;
    }
    for (int i = 0; i < w->operands; i++) {
        const OpValue *v = &call->arg[i];
        if (v->kind != OP_TENSOR || formula_constant(r, c->in[v->integer[0]], &number[i])) continue;
        arg[i] = formula_operand(r, c->in[v->integer[0]], &call->result[0], space, err);
        if (arg[i] < 0) return -1;
    }
    int at = formula_add(r, VALUE_POINT, name, err);
    if (at < 0) return -1;
    FormulaValue *v = &r->f->value[at];
    v->domain = d;
    v->space = space;
    v->text = formula_point_text(call->op, p);
    v->dtype = call->result[0].dtype;
    for (int i = 0; i < w->operands; i++) {
        v->arg[i] = arg[i];
        if (arg[i] < 0)
            v->number[i] = call->arg[i].kind == OP_TENSOR ? number[i] : call->arg[i].number;
    }
    memcpy(v->p, p, sizeof v->p);
    return at;
}

/* As a part of the formula. */
static int write_node(FormulaReader *r, int node, Error *err)
{
    const GraphCall *c = &r->b->calls[node];
    int value = r->b->graph->first[node], at;
    for (int i = 1; i < c->call.n_results && r->sizes; i++)
        if (r->b->values[value + i].live)
            return error_set(err, ERROR_UNSUPPORTED, "a second result is used");
    const char *name = r->b->graph->name[value];
    if (c->call.op->infer == pointwise_infer)
        at = read_point(r, c, name, err);
    else
        at = formula_composite(r, c, name, err);
    if (at < 0) return error_prefix(err, "%s", c->call.op->name);
    r->of[value] = at;
    r->f->value[at].dtype = c->call.result[0].dtype;
    return 0;
}

static int read_node(FormulaReader *r, int node, Error *err)
{
    const GraphCall *c = &r->b->calls[node];
    double number;
    Error why;
    if (!c->live || (c->view && op_is_view(&c->call))) return 0;
    snprintf(r->op, sizeof r->op, "%s", c->call.op->name + 5);
    r->op[strcspn(r->op, ".")] = 0;
    if (!r->sizes) return write_node(r, node, err);
    if (formula_constant(r, r->b->graph->first[node], &number)) return formula_keep(r, node, err);
    Formula *before = memory_alloc(sizeof *before);
    memcpy(before, r->f, sizeof *before);
    int rc = formula_is_product(r->op) ? -1 : write_node(r, node, &why);
    if (rc) {
        memcpy(r->f, before, sizeof *before);
        rc = formula_keep(r, node, err);
    }
    free(before);
    return rc;
}

static void count_uses(Formula *f)
{
    for (int i = 0; i < f->n_values; i++)
        for (int k = 0; k < 3; k++)
            if (f->value[i].arg[k] >= 0) f->value[f->value[i].arg[k]].uses++;
    for (int i = 0; i < f->n_values; i++)
        if (f->value[i].mean >= 0) f->value[f->value[i].mean].uses++;
    for (int i = f->n_values - 1; i >= 0; i--)
        for (int k = 0; k < i && f->value[i].kind == VALUE_KEPT; k++)
            f->value[k].uses += (int)(f->value[i].takes >> k & 1);
    f->value[f->result].uses++;
}

/* The result, and no other value, has the output's name. */
static void name_result(Formula *f, const char *name)
{
    for (int v = 0; v < f->n_values; v++)
        if (v != f->result && !strcmp(f->value[v].name, name))
            snprintf(f->value[v].name, sizeof f->value[v].name, "pre_%.50s", name);
    if (!is_reserved(name)) snprintf(f->value[f->result].name, 64, "%s", name);
}

static int read_graph(FormulaReader *r, Error *err)
{
    const Graph *g = r->b->graph;
    for (int node = 0; node < g->n_nodes; node++)
        if (read_node(r, node, err)) return -1;
    const GraphValue *y = &r->b->values[g->output[0]];
    r->f->result = r->of[y->base];
    if (r->sizes && r->f->result >= 0 && r->f->value[r->f->result].kind == VALUE_KEPT &&
        (r->f->result = formula_kept_output(r, g->output[0], err)) < 0)
        return -1;
    if (g->n_outputs != 1 || r->f->result < 0 || !op_is_contiguous(&y->tensor))
        return error_set(err, ERROR_UNSUPPORTED, "expected one result, in memory of its own");
    name_result(r->f, g->name[g->output[0]]);
    r->f->value[r->f->result].dtype = y->tensor.dtype;
    count_uses(r->f);
    return r->sizes ? formula_kept_lines(r, err) : 0;
}

static int bind_to_primes(const Task *t, GraphBound **out, Error *err)
{
    OpTensor *inputs = memory_array((size_t)t->n_inputs, sizeof *inputs);
    int rc = 0;
    for (int i = 0; i < t->n_inputs && !rc; i++) {
        inputs[i] = (OpTensor){.dtype = t->inputs[i].dtype, .rank = t->inputs[i].rank};
        for (int d = 0; d < t->inputs[i].rank && !rc; d++)
            rc = expr_eval(t->inputs[i].shape[d], strlen(t->inputs[i].shape[d]), prime_axis,
                           (void *)(uintptr_t)t, &inputs[i].size[d], err);
        op_contiguous(&inputs[i]);
    }
    if (!rc) rc = graph_bind(t->graph, prime_axis, (void *)(uintptr_t)t, inputs, out, err);
    free(inputs);
    return rc;
}

static int bind_sizes(FormulaReader *r, int kept, Error *err)
{
    const Task *t = r->f->task;
    if (kept) return formula_bind_freely(r, err);
    if (bind_to_primes(t, &r->b, err))
        return error_set(err, ERROR_UNSUPPORTED, "task %s: its sizes are not free", t->name);
    for (int i = 0; i < t->n_axes; i++) formula_size(r, primes[i], t->axis_name[i]);
    return 0;
}

static int read_task(const Task *task, int kept, Split split, Formula **out, Error *err)
{
    FormulaReader r = {0};
    r.f = memory_alloc(sizeof *r.f);
    r.f->task = task;
    int rc = bind_sizes(&r, kept, err);
    if (!rc && !formula_splits(&r, split)) {
        rc = error_set(err, ERROR_UNSUPPORTED, "task %s has no such rows", task->name);
        graph_bound_free(r.b);
    } else if (!rc) {
        r.of = memory_array((size_t)r.b->graph->n_values + 1, sizeof *r.of);
        for (int i = 0; i < r.b->graph->n_values; i++) r.of[i] = -1;
        rc = read_graph(&r, err);
        if (rc) error_prefix(err, "task %s is no formula", task->name);
        graph_bound_free(r.b);
        free(r.of);
    }
    formula_close_sizes(&r);
    if (rc) {
        formula_free(r.f);
        return -1;
    }
    *out = r.f;
    return 0;
}

static int count_kept(const Formula *f)
{
    int n = 0;
    for (int i = 0; i < f->n_values; i++) n += f->value[i].kind == VALUE_KEPT && f->value[i].uses;
    return n;
}

/* With the split that keeps fewest operators. */
int formula_read(const Task *task, int kept, Formula **out, Error *err)
{
    Error unused;
    if (!task->graph) return error_set(err, ERROR_UNSUPPORTED, "task %s has no graph", task->name);
    int rc = read_task(task, kept, SPLIT_PLANES, out, err);
    for (Split split = SPLIT_LAST; kept && split < SPLITS; split++) {
        Formula *other;
        if (!rc && !count_kept(*out)) break;
        if (read_task(task, kept, split, &other, &unused)) continue;
        int better = rc || count_kept(other) < count_kept(*out);
        if (!rc) formula_free(better ? *out : other);
        if (better) *out = other;
        rc = 0;
    }
    return rc;
}

void formula_free(Formula *f)
{
    for (int i = 0; f && i < f->n_values; i++) free(f->value[i].lines);
    free(f);
}
