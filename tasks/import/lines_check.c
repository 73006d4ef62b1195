/* Compares the shapes and types that Quern infers with those that PyTorch recorded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/import/lines.h"

typedef struct {
    OpTensor tensor;
    int input; /* it shares the memory of this input of the program; -1: it has its own */
} Value;

typedef struct {
    Program *p;
    const Lines *lines;
    json_t *index; /* by name in lines: of value[] */
    json_t *back;  /* by name in lines: the program's name */
    Value *value;
    int n;
} Check;

static int axis(void *ctx, const char *name, size_t len, int64_t *value)
{
    const Check *c = ctx;
    for (int i = 0; i < c->p->symbols.n; i++) {
        const Symbol *s = &c->p->symbols.list[i];
        if (strlen(s->axis) != len || memcmp(s->axis, name, len)) continue;
        *value = s->own;
        return 0;
    }
    return -1;
}

static int tensor(void *ctx, const char *name, size_t len, OpTensor *out)
{
    const Check *c = ctx;
    char text[GRAPH_NAME];
    if (len >= sizeof text) return -1;
    snprintf(text, sizeof text, "%.*s", (int)len, name);
    json_t *at = json_object_get(c->index, text);
    if (!at) return -1;
    *out = c->value[json_integer_value(at)].tensor;
    return (int)json_integer_value(at);
}

static void add(Check *c, const char *name, const OpTensor *t, int input)
{
    c->value = memory_grow(c->value, (size_t)c->n + 1, sizeof *c->value);
    c->value[c->n] = (Value){*t, input};
    json_object_set_new(c->index, name, json_integer(c->n++));
}

/* The tensor as PyTorch recorded it, at the module's own sizes. */
static int recorded(Program *p, const char *name, OpTensor *out, Error *err)
{
    Symbolic size[OP_MAX_RANK];
    SymValue v;
    *out = (OpTensor){0};
    if (program_tensor(p, name, &out->dtype, &out->rank, size, err)) return -1;
    int rc = 0;
    for (int d = 0; d < out->rank; d++) {
        if (!rc) rc = symbolic_value(&size[d], &p->symbols, NULL, &v, err);
        if (!rc && (v.is_real || v.integer < 1 || v.integer > INT32_MAX))
            rc = error_set(err, ERROR_LIMIT,
                           "dimension %d of %.80s has the size %lld, 1 to %d expected", d, name,
                           (long long)v.integer, INT32_MAX);
        out->size[d] = rc ? 1 : v.integer;
        symbolic_release(&size[d]);
    }
    op_contiguous(out);
    return rc;
}

static void shape_text(const OpTensor *t, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s[", dtype_name(t->dtype));
    for (int d = 0; d < t->rank && n < size; d++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", d ? ", " : "", (long long)t->size[d]);
    if (n < size) snprintf(out + n, size - n, "]");
}

static int compare(Check *c, const char *name, const OpTensor *got, Error *err)
{
    const char *original = json_string_value(json_object_get(c->back, name));
    OpTensor want;
    char a[200], b[200];
    if (!original) return 0; /* a constant's line */
    if (recorded(c->p, original, &want, err)) return -1;
    int same = want.dtype == got->dtype && want.rank == got->rank;
    for (int d = 0; d < want.rank && same; d++) same = want.size[d] == got->size[d];
    if (same) return 0;
    shape_text(got, a, sizeof a);
    shape_text(&want, b, sizeof b);
    return error_set(err, ERROR_INVALID, "Quern infers %s where PyTorch has %s", a, b);
}

static int check_call(Check *c, const char *text, OpCall *call, Error *err)
{
    OpLine l;
    OpScope scope = {c, axis, tensor};
    int id[OP_MAX_TENSORS];
    if (op_line_parse(text, strlen(text), &l, err) || op_line_call(&l, &scope, call, id, err))
        return -1;
    for (int i = 0; i < l.n_results; i++) {
        char name[GRAPH_NAME];
        snprintf(name, sizeof name, "%.*s", (int)l.result[i].len, l.result[i].p);
        int of = (call->op->flags & OP_IN_PLACE) && !i ? 0 : call->view_of[i];
        int input = of >= 0 && call->n_tensors ? c->value[id[of]].input : -1;
        if (compare(c, name, &call->result[i], err)) return -1;
        if ((call->op->flags & OP_IN_PLACE) && input >= 0)
            return error_set(err, ERROR_UNSUPPORTED,
                             "it writes to the module's input or parameter %.80s",
                             c->p->inputs[input].name);
        add(c, name, &call->result[i], input);
    }
    return 0;
}

static int check_line(Check *c, const Line *line, Error *err)
{
    OpCall *call = memory_alloc(sizeof *call);
    int rc = check_call(c, line->text, call, err);
    if (rc) {
        char place[PROGRAM_PLACE];
        program_place(line->node, place, sizeof place);
        const char *target = json_string_value(json_object_get(line->node, "target"));
        error_prefix(err, "%s%s%.100s", place, *place ? ": " : "",
                     target ? target + strlen("torch.ops.") : "a constant");
    }
    free(call);
    return rc;
}

int lines_check(Program *p, const Lines *l, Error *err)
{
    Check c = {.p = p, .lines = l, .index = json_object(), .back = json_object()};
    const char *original;
    json_t *name;
    int rc = 0;
    json_object_foreach(l->names, original, name)
    {
        if (!json_object_get(c.back, json_string_value(name)))
            json_object_set_new(c.back, json_string_value(name), json_string(original));
    }
    for (int i = 0; i < p->n_inputs && !rc; i++) {
        OpTensor t;
        if (p->inputs[i].unknown) continue;
        rc = recorded(p, p->inputs[i].placeholder, &t, err);
        if (!rc) add(&c, lines_name(l, &p->inputs[i]), &t, i);
    }
    for (int i = 0; i < l->n && !rc; i++)
        if (l->list[i].live) rc = check_line(&c, &l->list[i], err);
    json_decref(c.index);
    json_decref(c.back);
    free(c.value);
    return rc;
}
