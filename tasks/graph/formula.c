/* Writes formulas: operators as signs where Python has one, else as calls without namespace, overload and
 * arguments that are the schema's defaults at the end. */
#include "tasks/graph/formula.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

enum { MAX_TEXT = 1 << 20, LINE_LONG = 160 };

/* How tightly the parts of an expression hold together. */
typedef enum { ANY, SUM, PRODUCT, POSTFIX } Binding;

typedef struct {
    const Graph *g;
    int *uses;      /* by value: in arguments; an output has one more */
    char **text;    /* by value: what stands where it is used; NULL: its name */
    Binding *bound; /* by value: of its text */
    FormulaForm form;
    int in_place; /* an operator writes into its argument: then nothing moves */
} Formula;

/* Calls f for each value that an argument names. */
static void count_uses(Formula *f, OpText t)
{
    for (const char *p = t.p, *end = t.p + t.len; p < end;) {
        size_t n = word_length(p, end);
        int v = n ? graph_find(f->g, p, n) : -1;
        if (v >= 0) f->uses[v]++;
        p += n ? n : 1;
    }
}

/* An argument with the values' texts in place of their names. */
static void put_argument(const Formula *f, Buffer *b, OpText t, Binding least)
{
    for (const char *p = t.p, *end = t.p + t.len; p < end;) {
        size_t n = word_length(p, end);
        int v = n ? graph_find(f->g, p, n) : -1;
        int whole = n == t.len;
        if (v >= 0 && f->text[v]) {
            int brackets = whole && f->bound[v] < least;
            buffer_printf(b, brackets ? "(%s)" : "%s", f->text[v]);
        } else {
            buffer_append(b, p, n ? n : 1);
        }
        p += n ? n : 1;
    }
}

/* The operator's name without namespace and overload. */
static OpText short_name(const Op *op)
{
    const char *name = op->name + strlen("aten.");
    return (OpText){name, strcspn(name, ".")};
}

/* What two operands become: "a + b". */
static const struct {
    const char *op, *sign;
    Binding bound;
} signs[] = {{"add", "+", SUM},          {"sub", "-", SUM},        {"mul", "*", PRODUCT},
             {"multiply", "*", PRODUCT}, {"div", "/", PRODUCT},    {"mm", "@", PRODUCT},
             {"bmm", "@", PRODUCT},      {"matmul", "@", PRODUCT}, {"true_divide", "/", PRODUCT}};

static int put_sign(const Formula *f, const OpLine *l, Buffer *b, Binding *bound)
{
    if (l->n_args != 2 || l->keyword[1].len) return 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (op_text_is(short_name(l->op), signs[i].op)) {
            put_argument(f, b, l->value[0], signs[i].bound);
            buffer_printf(b, " %s ", signs[i].sign);
            put_argument(f, b, l->value[1], (Binding)(signs[i].bound + 1));
            *bound = signs[i].bound;
            return 1;
        }
    return 0;
}

/* Linear layers, transposes and products with an addend. */
static int put_product(const Formula *f, const OpLine *l, Buffer *b, Binding *bound)
{
    OpText name = short_name(l->op);
    if (op_text_is(name, "linear") && l->n_args >= 2) {
        int bias = l->n_args > 2 && !op_text_is(l->value[2], "None");
        put_argument(f, b, l->value[0], PRODUCT);
        buffer_puts(b, " @ ");
        put_argument(f, b, l->value[1], POSTFIX);
        buffer_puts(b, ".T");
        if (bias) buffer_puts(b, " + ");
        if (bias) put_argument(f, b, l->value[2], PRODUCT);
        *bound = bias ? SUM : PRODUCT;
        return 1;
    }
    if (op_text_is(name, "addmm") && l->n_args == 3) {
        put_argument(f, b, l->value[1], PRODUCT);
        buffer_puts(b, " @ ");
        put_argument(f, b, l->value[2], POSTFIX);
        buffer_puts(b, " + ");
        put_argument(f, b, l->value[0], PRODUCT);
        *bound = SUM;
        return 1;
    }
    if ((op_text_is(name, "t") || op_text_is(name, "numpy_T")) && l->n_args == 1) {
        put_argument(f, b, l->value[0], POSTFIX);
        buffer_puts(b, ".T");
        *bound = POSTFIX;
        return 1;
    }
    return 0;
}

static void put_call(const Formula *f, const OpLine *l, Buffer *b)
{
    OpText name = short_name(l->op);
    buffer_append(b, name.p, name.len);
    buffer_puts(b, "(");
    for (int i = 0; i < l->n_args; i++) {
        buffer_puts(b, i ? ", " : "");
        if (l->keyword[i].len) buffer_printf(b, "%.*s=", (int)l->keyword[i].len, l->keyword[i].p);
        put_argument(f, b, l->value[i], ANY);
    }
    buffer_puts(b, ")");
}

/* Operators whose result is their first argument, for a reader. */
static int is_identity(const OpLine *l)
{
    static const char *const names[] = {"contiguous", "clone", "detach", "alias", "dropout"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (op_text_is(short_name(l->op), names[i])) return 1;
    return 0;
}

static char *expression(const Formula *f, int node, Binding *bound)
{
    const OpLine *l = &f->g->line[node];
    Buffer b;
    buffer_init(&b, MAX_TEXT);
    *bound = POSTFIX;
    if (is_identity(l) && l->n_args) {
        int v = graph_find(f->g, l->value[0].p, l->value[0].len);
        put_argument(f, &b, l->value[0], ANY);
        if (v >= 0 && f->text[v]) *bound = f->bound[v];
    } else if (!put_sign(f, l, &b, bound) && !put_product(f, l, &b, bound)) {
        put_call(f, l, &b);
    }
    return buffer_detach(&b);
}

static void formula_init(Formula *f, const Graph *g, FormulaForm form)
{
    size_t n = (size_t)g->n_values + 1;
    *f = (Formula){g,
                   memory_array(n, sizeof *f->uses),
                   memory_array(n, sizeof *f->text),
                   memory_array(n, sizeof *f->bound),
                   form,
                   0};
    for (int node = 0; node < g->n_nodes; node++) {
        f->in_place |= (g->line[node].op->flags & OP_IN_PLACE) != 0;
        for (int i = 0; i < g->line[node].n_args; i++) count_uses(f, g->line[node].value[i]);
    }
    for (int i = 0; i < g->n_outputs; i++) f->uses[g->output[i]] += 2;
}

static int renames(const OpLine *l)
{
    return is_identity(l) || op_text_is(short_name(l->op), "t") ||
           op_text_is(short_name(l->op), "numpy_T");
}

static int moves(const Formula *f, int node, const char *text)
{
    if (f->form == FORMULA_LINES && !renames(&f->g->line[node])) return 0;
    return !f->in_place && f->g->line[node].n_results == 1 && f->uses[f->g->first[node]] == 1 &&
           strlen(text) < LINE_LONG;
}

void graph_formula(const Graph *g, FormulaForm form, size_t max_bytes, Buffer *out)
{
    Formula f;
    size_t start = out->len;
    int left = 0;
    formula_init(&f, g, form);
    for (int node = 0; node < g->n_nodes; node++) {
        const OpLine *l = &g->line[node];
        Binding bound;
        char *text = expression(&f, node, &bound);
        if (moves(&f, node, text)) {
            f.text[g->first[node]] = text;
            f.bound[g->first[node]] = bound;
            continue;
        }
        if (left || out->len - start + strlen(text) > max_bytes) {
            left++;
        } else {
            for (int i = 0; i < l->n_results; i++)
                buffer_printf(out, "%s%.*s", i ? ", " : "", (int)l->result[i].len, l->result[i].p);
            buffer_printf(out, " = %s\n", text);
        }
        free(text);
    }
    if (left) buffer_printf(out, "... and %d more lines\n", left);
    for (int v = 0; v < g->n_values; v++) free(f.text[v]);
    free(f.text);
    free(f.uses);
    free(f.bound);
}
