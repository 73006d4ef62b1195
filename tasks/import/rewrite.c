/* Writes some operators as others. */
#include "tasks/import/rewrite.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/import/names.h"

const json_t *rewrite_argument(const json_t *node, size_t i)
{
    return json_object_get(json_array_get(json_object_get(node, "inputs"), i), "arg");
}

const char *rewrite_tensor(const json_t *node, size_t i)
{
    return json_string_value(
        json_object_get(json_object_get(rewrite_argument(node, i), "as_tensor"), "name"));
}

/* The name in lines of element i of a list of tensors; NULL: *err. */
static const char *element(Writer *w, const json_t *list, size_t i)
{
    const char *name = json_string_value(json_object_get(json_array_get(list, i), "name")),
               *in_lines = name ? json_string_value(json_object_get(w->out->names, name)) : NULL;
    if (!in_lines)
        error_set(w->err, ERROR_CORRUPT, "it uses a tensor that nothing before it gives");
    return in_lines;
}

/* ---- copies into constants ---- */

const char *rewrite_pattern(const ProgramInput *x)
{
    const char *made = json_string_value(json_object_get(x->notes, "pattern"));
    if (!made || !json_is_number(json_object_get(x->notes, "value"))) return NULL;
    if (x->kind == INPUT_CONSTANT && !strcmp(made, "full")) return made;
    return !strcmp(made, "tril") || !strcmp(made, "triu") ? made : NULL;
}

static int is_overwriting(const json_t *node, const char *name)
{
    const char *target = json_string_value(json_object_get(node, "target")),
               *to = rewrite_tensor(node, 0), *from = rewrite_tensor(node, 1);
    return target && !strcmp(target, "torch.ops.aten.copy_.default") && to && from &&
           !strcmp(to, name) && strcmp(from, name);
}

int rewrite_overwrites(const Program *p, const ProgramInput *x)
{
    json_t *node;
    size_t i;
    json_array_foreach((json_t *)p->nodes, i, node)
    {
        if (program_mentions(json_object_get(node, "inputs"), x->placeholder))
            return is_overwriting(node, x->placeholder);
    }
    return 0;
}

/* A copy into a constant whose contents are not known makes it: 1, done; 0, it is another node. */
static int write_copy(Writer *w, const json_t *node, const char *result)
{
    const ProgramInput *x = NULL;
    char chosen[GRAPH_NAME];
    for (int i = 0; i < w->p->n_inputs && !x; i++)
        if (w->p->inputs[i].kind == INPUT_CONSTANT && !rewrite_pattern(&w->p->inputs[i]) &&
            is_overwriting(node, w->p->inputs[i].placeholder))
            x = &w->p->inputs[i];
    if (!x || !result) return 0;
    const char *name = rewrite_tensor(node, 1),
               *from = json_string_value(json_object_get(w->out->names, name));
    json_t *want = json_object_get(json_object_get(w->p->tensors, x->placeholder), "sizes"),
           *have = json_object_get(json_object_get(w->p->tensors, name), "sizes");
    Dtype dtype;
    Symbolic size[OP_MAX_RANK];
    int rank;
    if (!from) return 0;
    if (program_tensor(w->p, name, &dtype, &rank, size, w->err)) return -1;
    for (int d = 0; d < rank; d++) symbolic_release(&size[d]);
    if (dtype != x->dtype || rank != x->rank || json_array_size(want) != json_array_size(have))
        return error_set(w->err, ERROR_UNSUPPORTED,
                         "it copies %.80s into a constant of another type or rank", name);
    names_choose(w->out->taken, result, chosen, sizeof chosen);
    lines_add(w->out, memory_printf("%s = aten.clone(%s)", chosen, from), NULL);
    lines_rename(w->out, result, chosen);
    lines_rename(w->out, x->placeholder, chosen);
    return 1;
}

/* ---- stacks ---- */

/* aten.stack of `n` tensors from `first`; -1: one has no name. */
static int stack_text(Writer *w, const json_t *list, size_t first, size_t n, int64_t dim,
                      Buffer *text)
{
    buffer_puts(text, "aten.stack([");
    for (size_t i = first; i < first + n; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "name")),
                   *in_lines =
                       name ? json_string_value(json_object_get(w->out->names, name)) : NULL;
        if (!in_lines)
            return error_set(w->err, ERROR_CORRUPT,
                             "it uses a tensor that nothing before it gives");
        buffer_printf(text, "%s%s", i > first ? ", " : "", in_lines);
    }
    buffer_printf(text, "], %lld)", (long long)dim);
    return 0;
}

/* More tensors than an operator takes: stacks of as many as it takes, which are joined. */
static int write_stacks(Writer *w, const json_t *node, const json_t *list, const char *result)
{
    int64_t dim = json_integer_value(json_object_get(rewrite_argument(node, 1), "as_int"));
    size_t n = json_array_size(list);
    char chosen[GRAPH_NAME];
    Buffer join;
    int rc = 0;
    if (n > OP_MAX_LIST * OP_MAX_LIST)
        return error_set(w->err, ERROR_LIMIT, "it stacks %zu tensors, at most %d expected", n,
                         OP_MAX_LIST * OP_MAX_LIST);
    buffer_init(&join, OP_LINE_MAX);
    for (size_t i = 0; i < n && !rc; i += OP_MAX_LIST) {
        Buffer text;
        buffer_init(&text, OP_LINE_MAX);
        names_choose(w->out->taken, "stacked", chosen, sizeof chosen);
        buffer_printf(&text, "%s = ", chosen);
        rc = stack_text(w, list, i, n - i < OP_MAX_LIST ? n - i : OP_MAX_LIST, dim, &text);
        buffer_printf(&join, "%s%s", i ? ", " : "", chosen);
        if (!rc) lines_add(w->out, buffer_detach(&text), NULL);
        buffer_release(&text);
    }
    if (!rc) {
        names_choose(w->out->taken, result, chosen, sizeof chosen);
        lines_add(w->out,
                  memory_printf("%s = aten.cat([%s], %lld)", chosen, join.data, (long long)dim),
                  node);
        lines_rename(w->out, result, chosen);
    }
    buffer_release(&join);
    return rc;
}

/* ---- einsum of more than two tensors ---- */

enum { EINSUM_MAX = 8, EINSUM_TEXT = 256 };

typedef struct {
    char of[EINSUM_MAX][EINSUM_TEXT],
        out[EINSUM_TEXT]; /* letters of the operands, and of the result */
    size_t n;
} Equation;

/* "ab,bc,cd->ad", with an explicit result. */
static int read_equation(const char *text, size_t n, Equation *e, Error *err)
{
    const char *arrow = strstr(text, "->"), *p = text;
    *e = (Equation){.n = n};
    for (size_t k = 0; arrow && k < n && p <= arrow; k++) {
        size_t len = 0;
        for (; p < arrow && *p != ','; p++)
            if (*p != ' ' && len + 1 < EINSUM_TEXT) e->of[k][len++] = *p;
        p += p < arrow;
    }
    size_t len = 0;
    for (p = arrow ? arrow + 2 : ""; *p; p++)
        if (*p != ' ' && len + 1 < EINSUM_TEXT) e->out[len++] = *p;
    int named = arrow && !strchr(text, '.');
    for (size_t k = 0; k < n && named; k++) named = *e->of[k] != 0;
    if (named) return 0;
    return error_set(err, ERROR_UNSUPPORTED,
                     "expected letters for each of %zu tensors and a result, found \"%.80s\"", n,
                     text);
}

/* The letters of the first two operands that a later operand or the result has, each once. */
static void kept_letters(const Equation *e, size_t next, const char *a, char out[EINSUM_TEXT])
{
    size_t len = 0;
    for (int side = 0; side < 2; side++)
        for (const char *p = side ? e->of[next] : a; *p; p++) {
            int later = strchr(e->out, *p) != NULL;
            for (size_t k = next + 1; k < e->n; k++) later |= strchr(e->of[k], *p) != NULL;
            if (later && !memchr(out, *p, len) && len + 1 < EINSUM_TEXT) out[len++] = *p;
        }
    out[len] = 0;
}

/* Pairs from the left, as PyTorch takes them. */
static int write_einsum(Writer *w, const json_t *node, const json_t *list, const char *result)
{
    const char *text = json_string_value(json_object_get(rewrite_argument(node, 0), "as_string")),
               *left = element(w, list, 0);
    size_t n = json_array_size(list);
    Equation e;
    char have[EINSUM_TEXT], to[EINSUM_TEXT], name[GRAPH_NAME], before[GRAPH_NAME];
    if (!text || n > EINSUM_MAX)
        return error_set(w->err, ERROR_LIMIT, "expected an equation of at most %d tensors",
                         EINSUM_MAX);
    if (!left || read_equation(text, n, &e, w->err)) return -1;
    snprintf(have, sizeof have, "%s", e.of[0]);
    for (size_t k = 1; k < n; k++) {
        const char *right = element(w, list, k);
        int last = k + 1 == n;
        if (!right) return -1;
        if (last)
            snprintf(to, sizeof to, "%s", e.out);
        else
            kept_letters(&e, k, have, to);
        names_choose(w->out->taken, last ? result : "paired", name, sizeof name);
        lines_add(w->out,
                  memory_printf("%s = aten.einsum('%s,%s->%s', [%s, %s])", name, have, e.of[k], to,
                                left, right),
                  last ? node : NULL);
        memcpy(have, to, sizeof have);
        memcpy(before, name, sizeof before);
        left = before;
    }
    lines_rename(w->out, result, name);
    return 0;
}

/* ---- bags ---- */

/* Of four results a module takes the first. Where bags begin is not drawn: an input that says so is
 * refused. */
int rewrite_bags(Writer *w, const json_t *node)
{
    const char *offsets = rewrite_tensor(node, 2);
    json_t *outputs = json_object_get(node, "outputs"), *other;
    size_t i;
    for (int k = 0; k < w->p->n_inputs && offsets; k++)
        if (!strcmp(w->p->inputs[k].placeholder, offsets))
            return error_set(
                w->err, ERROR_UNSUPPORTED,
                "the offsets are an input, whose contents decide where bags begin; give the bags "
                "as rows");
    json_array_foreach(outputs, i, other)
    {
        const char *name =
            json_string_value(json_object_get(json_object_get(other, "as_tensor"), "name"));
        json_t *reader;
        size_t k;
        json_array_foreach((json_t *)w->p->nodes, k, reader)
        {
            if (i && name && program_mentions(json_object_get(reader, "inputs"), name))
                return error_set(w->err, ERROR_UNSUPPORTED,
                                 "its result %zu is used, of which Quern has the first", i);
        }
    }
    return 0;
}

int rewrite_call(Writer *w, const json_t *node, const char *op, const char *result)
{
    const json_t *first = json_object_get(rewrite_argument(node, 0), "as_tensors"),
                 *second = json_object_get(rewrite_argument(node, 1), "as_tensors");
    if (!strcmp(op, "aten.stack.default") && json_array_size(first) > OP_MAX_LIST)
        return write_stacks(w, node, first, result) ? -1 : 1;
    if (!strcmp(op, "aten.einsum.default") && json_array_size(second) > 2)
        return write_einsum(w, node, second, result) ? -1 : 1;
    if (!strcmp(op, "aten.copy_.default")) return write_copy(w, node, result);
    return 0;
}
