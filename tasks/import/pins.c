/* Pins symbols and chooses constraints from a program's guards. A guard that cannot be read pins
 * nothing: the program's shapes are checked again when operators are bound. */
#include "tasks/import/pins.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { PINS_LEAST = 32 }; /* a larger least size is one of the module's own numbers */
enum { SAMPLES = 96, SAMPLE_SPAN = 24, PASSES = 16, CONSTRAINT_TEXT = 1000 };

/* SymDimension: of an input of the program. */
static int dimension(void *program, const char *path, int64_t d, const char **text, int64_t *number)
{
    Program *p = program;
    json_t *sizes = json_object_get(json_object_get(p->tensors, path), "sizes");
    json_t *size = d >= 0 ? json_array_get(sizes, (size_t)d) : NULL;
    *text = json_string_value(json_object_get(json_object_get(size, "as_expr"), "expr_str"));
    if (*text) return 0;
    json_t *n = json_object_get(size, "as_int");
    *number = json_integer_value(n);
    return json_is_integer(n) ? 0 : -1;
}

static int parse_guard(Program *p, size_t i, Symbolic *out)
{
    const char *text = json_string_value(json_array_get(p->guards, i));
    return text ? symbolic_parse(text, &p->symbols, dimension, p, out, NULL) : -1;
}

static const SymNode *top(const Symbolic *e)
{
    return &e->node[e->n - 1];
}

static int is_integer(const Symbolic *e, int i, int64_t value)
{
    return e->node[i].kind == SYM_INTEGER && e->node[i].integer == value;
}

/* a % b == 0 */
static int is_divisibility(const Symbolic *e)
{
    const SymNode *t = top(e);
    return t->kind == SYM_EQ &&
           ((e->node[t->a].kind == SYM_MOD && is_integer(e, t->b, 0)) ||
            (e->node[t->b].kind == SYM_MOD && is_integer(e, t->a, 0)));
}

static int pin_one(Program *p, const char *used)
{
    for (int i = 0; i < p->symbols.n; i++)
        if (used[i] && p->symbols.list[i].known) return p->symbols.list[i].pinned = 1;
    return 0;
}

/* One free symbol in an equality has no choice but the module's size. Returns what was pinned. */
static int pin_by_guards(Program *p)
{
    int pinned = 0;
    for (size_t i = 0; i < json_array_size(p->guards); i++) {
        Symbolic e;
        char used[SYMBOLS_MAX] = {0};
        if (parse_guard(p, i, &e)) continue;
        if (top(&e)->kind == SYM_EQ && !is_divisibility(&e) &&
            symbolic_uses(&e, &p->symbols, used) == 1)
            pinned += pin_one(p, used);
        symbolic_release(&e);
    }
    return pinned;
}

/* A value that a node uses: an integer expression, or its symbols are pinned. */
static int pin_value(Program *p, const char *name, const json_t *value, int is_real, Error *err)
{
    Symbolic e;
    Buffer text;
    if (is_real && !json_object_get(value, "as_expr")) return 0;
    if (program_size(p, value, &e, err)) return error_prefix(err, "%.80s", name);
    int rc = 0;
    for (int i = 0; i < e.n && !rc; i++)
        if (e.node[i].kind == SYM_SYMBOL && !p->symbols.list[e.node[i].a].known)
            rc = error_set(err, ERROR_UNSUPPORTED,
                           "the contents of a tensor decide the size %s (%.80s)",
                           p->symbols.list[e.node[i].a].name, name);
    buffer_init(&text, CONSTRAINT_TEXT);
    if (!rc && (is_real || symbolic_text(&e, &p->symbols, &text, NULL)))
        symbolic_pin(&e, &p->symbols);
    buffer_release(&text);
    symbolic_release(&e);
    return rc;
}

static int pin_by_arguments(Program *p, Error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)p->sizes, name, value)
    {
        if (pin_value(p, name, value, 0, err)) return -1;
    }
    json_object_foreach((json_t *)p->numbers, name, value)
    {
        if (pin_value(p, name, value, 1, err)) return -1;
    }
    return 0;
}

int pins_find(Program *p, Error *err)
{
    for (int i = 0; i < p->symbols.n; i++)
        if (p->symbols.list[i].low > PINS_LEAST || p->symbols.list[i].low == p->symbols.list[i].high)
            p->symbols.list[i].pinned = 1;
    if (pin_by_arguments(p, err)) return -1;
    for (int pass = 0; pass < PASSES && pin_by_guards(p); pass++) continue;
    return 0;
}

/* ---- constraints ---- */

/* x != 1, and x != max(1, y) and its like, hold in PyTorch's reasoning about strides alone. */
static int is_about_one(const Symbolic *e)
{
    const SymNode *t = top(e);
    if (t->kind == SYM_NE) return 1;
    return t->kind == SYM_LE && (is_integer(e, t->a, 1) || is_integer(e, t->a, 2));
}

static int is_alternative(const Symbolic *e)
{
    return top(e)->kind == SYM_OR;
}

/* Does the guard hold for sampled sizes from the least on? */
static int holds(const Program *p, const Symbolic *e)
{
    int64_t values[SYMBOLS_MAX];
    uint64_t state = 88172645463325252ULL;
    SymValue v;
    for (int k = 0; k < SAMPLES; k++) {
        for (int i = 0; i < p->symbols.n; i++) {
            const Symbol *s = &p->symbols.list[i];
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            int64_t span = s->high - s->low < SAMPLE_SPAN ? s->high - s->low + 1 : SAMPLE_SPAN;
            values[i] = s->low + (k ? (int64_t)(state % (uint64_t)span) : 0);
        }
        if (symbolic_value(e, &p->symbols, values, &v, NULL) || v.is_real || !v.integer) return 0;
    }
    return 1;
}

static int keep(const Program *p, const Symbolic *e)
{
    char used[SYMBOLS_MAX] = {0};
    SymValue v;
    if (is_about_one(e) || is_alternative(e) || !symbolic_uses(e, &p->symbols, used)) return 0;
    /* a guard that the module's own sizes break is none of the module's */
    if (symbolic_value(e, &p->symbols, NULL, &v, NULL) || v.is_real || !v.integer) return 0;
    return !holds(p, e);
}

int pins_constraints(Program *p, char *out[PINS_MAX_CONSTRAINTS], int *n, Error *err)
{
    *n = 0;
    for (size_t i = 0; i < json_array_size(p->guards); i++) {
        Symbolic e;
        Buffer text;
        if (parse_guard(p, i, &e)) continue;
        buffer_init(&text, CONSTRAINT_TEXT);
        int use = keep(p, &e) && !symbolic_text(&e, &p->symbols, &text, NULL);
        for (int k = 0; k < *n && use; k++) use = strcmp(out[k], text.data) != 0;
        int full = use && *n == PINS_MAX_CONSTRAINTS;
        if (use && !full) out[(*n)++] = memory_strdup(text.data);
        buffer_release(&text);
        symbolic_release(&e);
        if (full) {
            while (*n) free(out[--*n]);
            return error_set(err, ERROR_UNSUPPORTED,
                             "the module has more than %d constraints between its sizes",
                             PINS_MAX_CONSTRAINTS);
        }
    }
    return 0;
}
