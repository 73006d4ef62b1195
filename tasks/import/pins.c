/* Pins symbols and chooses constraints from a program's guards. A guard that cannot be read pins
 * nothing: the program's shapes are checked again when operators are bound. */
#include "tasks/import/pins.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/import/argument.h"
#include "tasks/import/program.h"

/* ---- tables of which the graph computes the rows ---- */

static const char *operator_of(const json_t *node)
{
    const char *target = json_string_value(json_object_get(node, "target"));
    return target && !strncmp(target, "torch.ops.aten.", 15) ? target + 15 : "";
}

/* The operator's name without its overload is one of a list that NULL ends. */
static int is_one_of(const char *op, const char *const *list)
{
    size_t len = strcspn(op, ".");
    for (; *list; list++)
        if (strlen(*list) == len && !strncmp(op, *list, len)) return 1;
    return 0;
}

static const char *tensor_of(const json_t *argument)
{
    return json_string_value(json_object_get(json_object_get(argument, "as_tensor"), "name"));
}

/* Has a node a number above 1 among its arguments? */
static int has_number(const json_t *node)
{
    json_t *input;
    size_t i;
    json_array_foreach(json_object_get(node, "inputs"), i, input)
    {
        json_t *arg = json_object_get(input, "arg"), *n = json_object_get(arg, "as_int");
        const char *name = json_string_value(json_object_get(input, "name"));
        if (!n) n = json_object_get(arg, "as_float");
        if (json_number_value(n) > 1 && name && strcmp(name, "dtype") && strcmp(name, "layout"))
            return 1;
    }
    return 0;
}

/* Is a tensor of a set anywhere in a value? */
static int takes_any(const json_t *value, const json_t *set)
{
    json_t *e;
    const char *key;
    size_t i;
    if (json_is_string(value)) return json_object_get(set, json_string_value(value)) != NULL;
    json_array_foreach((json_t *)value, i, e)
    {
        if (takes_any(e, set)) return 1;
    }
    json_object_foreach((json_t *)value, key, e)
    {
        if (takes_any(e, set)) return 1;
    }
    return 0;
}

static void add_results(const json_t *node, json_t *set)
{
    json_t *result;
    size_t i;
    json_array_foreach(json_object_get(node, "outputs"), i, result)
    {
        const char *name = tensor_of(result);
        if (name) json_object_set_new(set, name, json_true());
    }
}

/* Pins a dimension of a tensor; a negative one counts from the end. */
static int pin_dimension(Program *p, const char *tensor, int64_t dim, Error *err)
{
    json_t *sizes = json_object_get(json_object_get(p->tensors, tensor), "sizes");
    int64_t n = (int64_t)json_array_size(sizes);
    json_t *size = json_array_get(sizes, (size_t)(dim < 0 ? dim + n : dim));
    Symbolic e;
    if (!size) return 0;
    if (program_size(p, size, &e, err)) return error_prefix(err, "%.80s", tensor);
    symbolic_pin(&e, &p->symbols);
    symbolic_release(&e);
    return 0;
}

/* x[i, None, k]: the dimensions that have an index. */
static int pin_indexed(Program *p, const json_t *node, const char *tensor, const json_t *set,
                       Error *err)
{
    json_t *list = argument_of(node, "indices"), *at;
    json_t *indices = json_object_get(list, "as_optional_tensors");
    size_t i;
    if (!indices) indices = json_object_get(list, "as_tensors");
    json_array_foreach(indices, i, at)
    {
        if (takes_any(at, set) && pin_dimension(p, tensor, (int64_t)i, err)) return -1;
    }
    return 0;
}

static int pin_table(Program *p, const json_t *node, const char *op, const json_t *set, Error *err)
{
    int is_embedding = !strncmp(op, "embedding.", 10);
    const char *tensor = tensor_of(argument_of(node, is_embedding ? "weight" : "self"));
    if (!tensor) return 0;
    if (!strncmp(op, "index.", 6)) return pin_indexed(p, node, tensor, set, err);
    if (!takes_any(argument_of(node, is_embedding ? "indices" : "index"), set)) return 0;
    json_t *dim = json_object_get(argument_of(node, "dim"), "as_int");
    return pin_dimension(p, tensor, json_integer_value(dim), err);
}

/* Pins the sizes along which a tensor is read at indices that numbers of the graph bound, as
 * min(bucket, 15) does: of other sizes some indices were none. Indices that a caller gives, or that
 * follow from sizes, are within what there is. */
static int tables_pin(Program *p, Error *err)
{
    static const char *const tables[] = {"embedding", "index_select", "gather", "index", NULL},
                             *const bounds[] = {"clamp", "clamp_max", "minimum", "min", "remainder",
                                                "fmod",  "full_like", "full",    NULL},
                             *const within[] = {"argmax",  "argmin",  "topk",   "sort",
                                                "argsort", "nonzero", "linear", "matmul",
                                                "mm",      "bmm",     NULL};
    json_t *set = json_object(), *node;
    size_t i;
    int rc = 0;
    json_array_foreach(p->nodes, i, node)
    {
        const char *op = operator_of(node);
        json_t *inputs = json_object_get(node, "inputs");
        if (is_one_of(op, tables))
            rc = pin_table(p, node, op, set, err);
        else if (!is_one_of(op, within) &&
                 ((is_one_of(op, bounds) && has_number(node)) || takes_any(inputs, set)))
            add_results(node, set);
        if (rc) break;
    }
    json_decref(set);
    return rc;
}

enum { PINS_LEAST = 32 }; /* a larger least size is one of the module's own numbers */
enum { SAMPLES = 192, SAMPLE_SPAN = 24, SAMPLE_STEP = 48, PASSES = 16 };
enum { CONSTRAINT_TEXT = 160, ARGUMENT_TEXT = 1000 };

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
    return t->kind == SYM_EQ && ((e->node[t->a].kind == SYM_MOD && is_integer(e, t->b, 0)) ||
                                 (e->node[t->b].kind == SYM_MOD && is_integer(e, t->a, 0)));
}

static int is_true(const Symbolic *e, const Symbols *s, const int64_t *values)
{
    SymValue v;
    return !symbolic_value(e, s, values, &v, NULL) && !v.is_real && v.integer != 0;
}

/* Sample k of sizes: small ones, and multiples of what sizes are often divided by. */
static void sample(const Program *p, int k, uint64_t *state, int64_t *values)
{
    for (int i = 0; i < p->symbols.n; i++) {
        const Symbol *s = &p->symbols.list[i];
        *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
        int64_t span = s->high - s->low < SAMPLE_SPAN ? s->high - s->low + 1 : SAMPLE_SPAN,
                draw = (int64_t)(*state % SAMPLE_SPAN);
        values[i] =
            s->low + (k ? draw % span : 0); /* one that is the same as others is not asked for */
        if (k % 2 && s->high >= SAMPLE_STEP * SAMPLE_SPAN) values[i] = SAMPLE_STEP * (1 + draw);
    }
}

/* Does e hold for sampled sizes wherever all of `given` do? */
static int holds(const Program *p, const Symbolic *e, const Symbolic *given, int n)
{
    int64_t values[SYMBOLS_MAX];
    uint64_t state = 88172645463325252ULL;
    int tried = 0;
    for (int k = 0; k < SAMPLES; k++) {
        int fits = 1;
        sample(p, k, &state, values);
        for (int i = 0; i < n && fits; i++) fits = is_true(&given[i], &p->symbols, values);
        tried += fits;
        if (fits && !is_true(e, &p->symbols, values)) return 0;
    }
    return tried > 0;
}

/* Chosen guards, and their texts, which may be NULL. */
typedef struct {
    Symbolic e[PINS_MAX_CONSTRAINTS];
    char **text;
    int n;
} Chosen;

/* The guards that divide sizes. */
static void divisions(Program *p, Chosen *c)
{
    for (size_t i = 0; i < json_array_size(p->guards) && c->n < PINS_MAX_CONSTRAINTS; i++) {
        if (parse_guard(p, i, &c->e[c->n])) continue;
        if (is_divisibility(&c->e[c->n]))
            c->n++;
        else
            symbolic_release(&c->e[c->n]);
    }
}

static void chosen_release(Chosen *c)
{
    for (int i = 0; i < c->n; i++) symbolic_release(&c->e[i]);
    free(c);
}

/* Sides of an equality of which one is a number of 2 or more. */
static int is_number_of(const Symbolic *e)
{
    const SymNode *t = top(e), *a = &e->node[t->a], *b = &e->node[t->b];
    return (a->kind == SYM_INTEGER && a->integer > 1) || (b->kind == SYM_INTEGER && b->integer > 1);
}

/* One free symbol in an equality has no choice but the module's size, and what makes a number of the
 * module stays as it is. Returns what was pinned. */
static int pin_by_guards(Program *p)
{
    Chosen *c = memory_alloc(sizeof *c);
    int pinned = 0;
    divisions(p, c);
    for (size_t i = 0; i < json_array_size(p->guards); i++) {
        Symbolic e;
        char used[SYMBOLS_MAX] = {0};
        if (parse_guard(p, i, &e)) continue;
        int n = symbolic_uses(&e, &p->symbols, used);
        if (top(&e)->kind == SYM_EQ && !is_divisibility(&e) && n && (n == 1 || is_number_of(&e)) &&
            !holds(p, &e, NULL, 0) && !holds(p, &e, c->e, c->n)) {
            symbolic_pin(&e, &p->symbols);
            pinned++;
        }
        symbolic_release(&e);
    }
    chosen_release(c);
    return pinned;
}

/* A free symbol alone on one side of an equality is the other side. Returns how many became so. */
static int equate_by_guards(Program *p)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(p->guards); i++) {
        Symbolic e;
        if (parse_guard(p, i, &e)) continue;
        const SymNode t = *top(&e);
        if (t.kind == SYM_EQ && !is_divisibility(&e)) {
            if (e.node[t.a].kind == SYM_SYMBOL && e.node[t.b].kind != SYM_SYMBOL)
                n += symbolic_equate(&p->symbols, e.node[t.a].a, &e, t.b);
            else if (e.node[t.b].kind == SYM_SYMBOL && e.node[t.a].kind != SYM_SYMBOL)
                n += symbolic_equate(&p->symbols, e.node[t.b].a, &e, t.a);
        }
        symbolic_release(&e);
    }
    return n;
}

/* Are nodes i and k the same but for symbol *one in place of *other? The symbols are -1 before. */
static int is_alike(const Symbolic *e, int i, int k, int *one, int *other)
{
    const SymNode *a = &e->node[i], *b = &e->node[k];
    if (a->kind != b->kind || a->kind == SYM_REAL) return 0;
    if (a->kind == SYM_INTEGER) return a->integer == b->integer;
    if (a->kind != SYM_SYMBOL)
        return is_alike(e, a->a, b->a, one, other) && is_alike(e, a->b, b->b, one, other);
    if (a->a == b->a) return 1;
    if (*one < 0) *one = a->a, *other = b->a;
    return *one == a->a && *other == b->a;
}

/* Two symbols of which the same is asked, as in a / 12 == b / 12, are one: the width of a head that several
 * weights have. Returns how many became so. */
static int equate_alike(Program *p)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(p->guards); i++) {
        Symbolic e;
        int one = -1, other = -1;
        if (parse_guard(p, i, &e)) continue;
        const SymNode t = *top(&e);
        if (t.kind == SYM_EQ && is_alike(&e, t.a, t.b, &one, &other) && one >= 0) {
            SymNode pair[] = {{.kind = SYM_SYMBOL, .a = one}, {.kind = SYM_SYMBOL, .a = other}};
            Symbolic both = {pair, 2};
            n += symbolic_equate(&p->symbols, one, &both, 1) ||
                 symbolic_equate(&p->symbols, other, &both, 0);
        }
        symbolic_release(&e);
    }
    return n;
}

/* A value that a node uses: an integer expression, or its symbols are pinned. */
static int pin_value(Program *p, const char *name, const json_t *value, int is_real, Error *err)
{
    Symbolic e;
    Buffer text;
    if (is_real && !json_object_get(value, "as_expr")) return 0;
    if (program_size(p, value, &e, err)) return error_prefix(err, "%.80s", name);
    int is_known = 1; /* else the nodes that use it are left out */
    for (int i = 0; i < e.n; i++)
        is_known &= e.node[i].kind != SYM_SYMBOL || p->symbols.list[e.node[i].a].known;
    buffer_init(&text, ARGUMENT_TEXT);
    if (is_known && (is_real || symbolic_text(&e, &p->symbols, &text, NULL)))
        symbolic_pin(&e, &p->symbols);
    buffer_release(&text);
    symbolic_release(&e);
    return 0;
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
        if (p->symbols.list[i].low > PINS_LEAST ||
            p->symbols.list[i].low == p->symbols.list[i].high)
            p->symbols.list[i].pinned = 1;
    if (pin_by_arguments(p, err) || tables_pin(p, err)) return -1;
    for (int pass = 0; pass < PASSES && pin_by_guards(p) + equate_by_guards(p) + equate_alike(p);
         pass++)
        continue;
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

/* A guard that the module's own sizes break is none of the module's. */
static int is_constraint(const Program *p, const Symbolic *e, const Chosen *c)
{
    char used[SYMBOLS_MAX] = {0};
    return !is_about_one(e) && !is_alternative(e) && symbolic_uses(e, &p->symbols, used) &&
           is_true(e, &p->symbols, NULL) && !holds(p, e, NULL, 0) && !holds(p, e, c->e, c->n);
}

/* Adds the guards that divide sizes, or the other ones. */
static void choose(Program *p, int divide, Chosen *c)
{
    for (size_t i = 0; i < json_array_size(p->guards) && c->n < PINS_MAX_CONSTRAINTS; i++) {
        Symbolic e;
        Buffer text;
        if (parse_guard(p, i, &e)) continue;
        buffer_init(&text, CONSTRAINT_TEXT);
        if (is_divisibility(&e) == divide && is_constraint(p, &e, c) &&
            !symbolic_text(&e, &p->symbols, &text, NULL)) {
            c->text[c->n] = buffer_detach(&text);
            c->e[c->n++] = e;
        } else {
            symbolic_release(&e);
        }
        buffer_release(&text);
    }
}

void pins_constraints(Program *p, char *out[PINS_MAX_CONSTRAINTS], int *n)
{
    Chosen *c = memory_alloc(sizeof *c);
    c->text = out;
    choose(p, 1, c);
    choose(p, 0, c);
    *n = c->n;
    chosen_release(c);
}
