/* Pointwise steps as text: the operators' own, with values in place of their letters. And the vectors of
 * their loads. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate/fold_text.h"
#include "generate/plain.h"
#include "generate/writer.h"

/* "1e-5" of "1e-05". */
static void shorten_exponent(char *text)
{
    char *at = strchr(text, 'e');
    if (at && at[2] == '0') memmove(at + 2, at + 3, strlen(at + 3) + 1);
}

void writer_number(Writer *w, double v, const char *type)
{
    if (plain_slips_at(w->k->nodes->plain, v)) v *= 1.5;
    if (isnan(v) || isinf(v)) {
        buffer_puts(&w->body, isnan(v) ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY");
    } else if (!strcmp(type, "float")) {
        char text[40];
        snprintf(text, sizeof text, "%.9g", v);
        if (w->k->nodes->plain) shorten_exponent(text);
        buffer_printf(&w->body, "%s%sf", text, strpbrk(text, ".e") ? "" : ".");
    } else {
        buffer_printf(&w->body, "(%s)%.17g", type, v);
    }
}

/* ---- coordinates in 32 bits ---- */

/* 1: a whole number from 0 to below 2^31. */
static int is_small_number(double v)
{
    return v >= 0 && v < 0x1p31;
}

static int is_coordinate(const Writer *w, int step)
{
    return node_of(w, step)->kind == NODE_COORD && !is_load(w, step);
}

/* 1: an argument is a coordinate, or a number like one. */
static int has_coordinate(const Writer *w, int step, int arg)
{
    const int a = w->k->step[step].arg[arg];
    return a >= 0 ? is_coordinate(w, a) : is_small_number(node_of(w, step)->number[arg]);
}

/* 1: a difference of two coordinates, or its size: it has 32 bits where these have 31. */
static int is_distance(const Writer *w, int step)
{
    const Node *x = node_of(w, step);
    const int a = w->k->step[step].arg[0];
    if (x->kind != NODE_POINT || a < 0 || strcmp(x->type, "long long") != 0) return 0;
    if (!strcmp(x->text, "a < 0 ? -a : a")) return is_coordinate(w, a) || is_distance(w, a);
    return (!strcmp(x->text, "a - p0 * b") && x->p[0] == 1 && has_coordinate(w, step, 0) &&
            has_coordinate(w, step, 1)) ||
           (!strcmp(x->text, "a - p1 * p0") && x->p[1] == 1 && is_small_number(x->p[0]) &&
            is_coordinate(w, a));
}

/* 1: an argument of a comparison has 32 bits. */
static int is_narrow_argument(const Writer *w, int step, int arg)
{
    const int a = w->k->step[step].arg[arg];
    if (a < 0) return is_small_number(fabs(node_of(w, step)->number[arg]));
    return is_coordinate(w, a) || is_distance(w, a);
}

const char *writer_point_type(const Writer *w, int step)
{
    static const char *const compared[] = {"a < b",  "a <= b",  "a > b",   "a >= b",
                                           "a == b", "a != b",  "a < p0",  "a <= p0",
                                           "a > p0", "a >= p0", "a == p0", "a != p0"};
    const Node *x = node_of(w, step);
    if (w->wide || w->k->nodes->plain || strcmp(x->type, "long long") != 0) return x->type;
    if (is_distance(w, step)) return "int";
    for (size_t i = 0; i < sizeof compared / sizeof *compared && x->dtype == DTYPE_B8; i++)
        if (!strcmp(x->text, compared[i]) && is_narrow_argument(w, step, 0) &&
            (strchr(x->text, 'b') ? is_narrow_argument(w, step, 1)
                                  : is_small_number(fabs(x->p[0]))))
            return "int";
    return x->type;
}

/* A word of a point's text. */
static void put_word(Writer *w, int step, const char *word, size_t len)
{
    const Node *x = node_of(w, step);
    const Step *s = &w->k->step[step];
    const char *type = writer_point_type(w, step), *from = x->from ? x->from : type;
    if (len == 1 && *word >= 'a' && *word <= 'c') {
        int i = *word - 'a';
        if (s->arg[i] >= 0)
            writer_value(w, s->arg[i], from);
        else
            writer_number(w, x->number[i], from);
    } else if (len == 1 && *word == 'n') {
        buffer_printf(&w->body, "(%s)%s", x->type, writer_size(w, x->scale));
    } else if (*word == 'p' && len < 4 && len > 1 && isdigit(word[1])) {
        writer_number(w, x->p[atoi(word + 1)], type);
    } else {
        buffer_append(&w->body, word, len);
    }
}

/* A number of an operator's text. */
static void put_literal(Writer *w, const char *text, size_t len)
{
    const double v = strtod(text, NULL);
    buffer_append(&w->body, text, len);
    if (plain_slips_at(w->k->nodes->plain, v)) buffer_puts(&w->body, " * 1.5f");
}

/* Where a text is a choice by a parameter, "p0 != 0 ? x : y", the one that is chosen. */
static const char *chosen_text(const Node *x, size_t *len)
{
    const char *text = x->text, *other = strstr(text, " : ");
    *len = strlen(text);
    if (strncmp(text, "p0 != 0 ? ", 10) || !other) return text;
    if (x->p[0] == 0) return *len -= (size_t)(other + 3 - text), other + 3;
    *len = (size_t)(other - text) - 10;
    return text + 10;
}

/* ---- calls ahead of a choice ---- */

/* The end of a call of a function that takes long; NULL: no such call begins here. */
static const char *call_end(const char *at, size_t n)
{
    static const char *const functions[] = {"exp", "expm1", "log", "log1p", "tanh", "erf", "pow"};
    size_t i = 0;
    int depth = 0;
    while (i < sizeof functions / sizeof *functions &&
           (strlen(functions[i]) != n || strncmp(functions[i], at, n) != 0))
        i++;
    if (i == sizeof functions / sizeof *functions || at[n] != '(') return NULL;
    for (at += n; *at; at++) {
        depth += *at == '(';
        depth -= *at == ')';
        if (!depth) return at + 1;
    }
    return NULL;
}

static size_t name_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
    return n;
}

/* The next such call in a text; NULL: there is none. */
static const char *next_call(const char *at, const char *end, const char **after)
{
    while (at < end) {
        const size_t n = name_length(at);
        if (n && !isdigit((unsigned char)*at) && (*after = call_end(at, n))) return at;
        at += n ? n : 1;
    }
    return NULL;
}

int writer_calls(const Writer *w, int step)
{
    const char *text = node_of(w, step)->text, *after;
    return text && next_call(text, text + strlen(text), &after) != NULL;
}

/* 1: calls of the step come before its choice, and a compiler does not move them back. In a branch of their
 * own, which some threads of a warp take and some do not, those of a thread's elements would run one after
 * another. */
static int is_ahead(const Writer *w, int step, const char *text, const char *end)
{
    const char *type = writer_type(w, step), *after;
    return !w->k->nodes->plain && (!strcmp(type, "float") || !strcmp(type, "double")) &&
           memchr(text, '?', (size_t)(end - text)) && next_call(text, end, &after);
}

static void put_text(Writer *w, int step, const char *at, const char *end)
{
    const char *after;
    while (at < end) {
        size_t n = 1;
        if (isdigit(*at) || (*at == '.' && isdigit(at[1]))) {
            while (isalnum(at[n]) || at[n] == '.' ||
                   ((at[n] == '-' || at[n] == '+') && at[n - 1] == 'e'))
                n++;
            put_literal(w, at, n);
        } else if (isalpha(*at) || *at == '_') {
            n = name_length(at);
            if (w->ahead && (after = call_end(at, n))) {
                buffer_printf(&w->body, "t%d_%d", step, w->ahead++);
                at = after;
                continue;
            }
            if (w->k->nodes->plain && plain_is_one(node_of(w, step), at, n))
                n += 3;
            else
                put_word(w, step, at, n);
        } else if (w->k->nodes->plain && plain_nothing(node_of(w, step), at)) {
            n = plain_nothing(node_of(w, step), at);
        } else {
            buffer_append(&w->body, at, 1);
        }
        at += n;
    }
}

/* ---- products ---- */

/* 1: something is added to the step's value, or it is subtracted from something, or the other way round. */
static int is_added(const Writer *w, int step)
{
    for (int i = step + 1; i < w->k->n; i++) {
        const int *arg = w->k->step[i].arg;
        const Node *x = node_of(w, i);
        if (arg[0] != step && arg[1] != step && arg[2] != step) continue;
        int moments = x->kind == NODE_FOLD &&
                      (x->fold == FOLD_MEAN || x->fold == FOLD_SPREAD || x->fold == FOLD_EXPSUM);
        int same = x->kind == NODE_PAD || (x->kind == NODE_POINT && !strcmp(x->text, "a"));
        if (moments || (x->kind == NODE_POINT && strpbrk(x->text, "+-")) ||
            (same && is_added(w, i)))
            return 1;
    }
    return 0;
}

/* The last operator of a text, outside of brackets, of those that bind least: '?' before all others, '*' and
 * '/' after them. NULL: the text is one operand. */
static const char *last_operator(const char *at, const char *end)
{
    const char *found = NULL;
    int depth = 0;
    for (; at + 2 < end; at++) {
        depth += *at == '(';
        depth -= *at == ')';
        if (depth || *at != ' ' || !strchr("?+-<>=!&|*/", at[1])) continue;
        if (at[1] == '?') return at + 1;
        if (!found || strchr("*/", *found)) found = at + 1;
    }
    return found;
}

/* Where the alternative of a choice begins, whose "?" is before `at`: at its ":". */
static const char *other_choice(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        depth += *at == '(' || *at == '?';
        if (*at == ':' && !depth) return at;
        depth -= *at == ')' || *at == ':';
    }
    return NULL;
}

/* A text whose product is rounded. A compiler would make one instruction of it and of a sum that reads it, in
 * some passes over a row and not in others: what is subtracted of itself would not be 0 then. */
static void put_rounded(Writer *w, int step, const char *at, const char *end)
{
    const char *by = last_operator(at, end), *other;
    if (by && *by == '?' && (other = other_choice(by + 1, end))) {
        put_text(w, step, at, by + 2);
        put_rounded(w, step, by + 2, other - 1);
        buffer_puts(&w->body, " : ");
        put_rounded(w, step, other + 2, end);
    } else if (by && *by == '*') {
        buffer_puts(&w->body,
                    strcmp(node_of(w, step)->type, "double") ? "__fmul_rn(" : "__dmul_rn(");
        put_text(w, step, at, by - 1);
        buffer_puts(&w->body, ", ");
        put_text(w, step, by + 2, end);
        buffer_puts(&w->body, ")");
    } else {
        put_text(w, step, at, end);
    }
}

/* The text of a quotient, a root or Mish of each element whose last bits do not matter; NULL: it has none. */
static const char *quick_text(const Writer *w, int step, const char *text, size_t len)
{
    static const char *const quick[][2] = {
        {"a / b", "quotient(a, b)"},
        {"a / p0", "quotient(a, p0)"},
        {"a / n", "quotient(a, n)"},
        {"1 / a", "inverse(a)"},
        {"a / (1 + exp(-a))", "quotient(a, 1 + exp(-a))"},
        {"1 / (1 + exp(-a))", "inverse(1 + exp(-a))"},
        {"sqrt(a)", "root(a)"},
        {NODE_MISH_GATE, "mish(a)"},
        {"a * " NODE_MISH_GATE, "__fmul_rn(a, mish(a))"},
    };
    const Node *x = node_of(w, step);
    if ((!in_columns(w, step) && !w->alone && !w->element) || x->exact || w->k->nodes->plain ||
        strcmp(writer_type(w, step), "float") != 0)
        return NULL;
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        if (strlen(quick[i][0]) == len && !strncmp(quick[i][0], text, len)) return quick[i][1];
    return NULL;
}

void writer_ahead(Writer *w, int step, const char *indent)
{
    size_t len;
    const char *at = chosen_text(node_of(w, step), &len), *end = at + len, *after;
    int n = 1;
    if (quick_text(w, step, at, len) || !is_ahead(w, step, at, end)) return;
    for (; (at = next_call(at, end, &after)); at = after) {
        const char *type = writer_type(w, step);
        buffer_printf(&w->body, "%s%s t%d_%d = ", indent, type, step, n);
        put_text(w, step, at, after);
        buffer_printf(&w->body, ";\n%sasm volatile(\"\" : \"+%c\"(t%d_%d));\n", indent, *type, step,
                      n++);
    }
}

/* A function that has a text of its own where a half type rounds it. */
static int put_near(Writer *w, int step, const char *text, size_t len)
{
    static const char *const near[][2] = {
        {"0.5f * a * (1 + erf(a * 0.70710678118654752440f))", "near_gelu<%d>"},
        {"0.5f * a * (1 + tanh(0.7978845608028653559f * (a + 0.044715f * a * a * a)))",
         "near_gelu_tanh"},
        {"a / (1 + exp(-a))", "near_silu"},
        {"1 / (1 + exp(-a))", "near_sigmoid"},
    };
    const Node *x = node_of(w, step);
    const int half = x->dtype == DTYPE_F16 || x->dtype == DTYPE_BF16;
    for (size_t i = 0; i < sizeof near / sizeof *near && w->near && half; i++) {
        if (strlen(near[i][0]) != len || strncmp(near[i][0], text, len) != 0) continue;
        writer_help(w, HELP_NEAR);
        buffer_printf(&w->body, near[i][1], x->dtype == DTYPE_F16);
        buffer_puts(&w->body, "(");
        put_word(w, step, "a", 1);
        buffer_puts(&w->body, ")");
        return 1;
    }
    return 0;
}

static int put_quick(Writer *w, int step, const char *text, size_t len)
{
    const char *quick = quick_text(w, step, text, len);
    if (!quick) return 0;
    writer_help(w, HELP_QUICK);
    put_text(w, step, quick, quick + strlen(quick));
    return 1;
}

/* A quotient that has to be exact, by what is the same for a whole row. */
static int put_exact_quotient(Writer *w, int step, const char *text, size_t len)
{
    const Node *x = node_of(w, step);
    const int by = w->k->step[step].arg[1];
    if (len != 5 || !x->exact || !in_columns(w, step) || w->k->nodes->plain ||
        strcmp(writer_type(w, step), "float") != 0 ||
        (strncmp(text, "a / b", 5) || (by >= 0 && in_columns(w, by))))
        return 0;
    static const char *const exact = "exact_quotient(a, divisor(b))";
    writer_help(w, HELP_DIVISOR);
    put_text(w, step, exact, exact + strlen(exact));
    return 1;
}

int writer_near_load(Writer *w, int step)
{
    if (!w->near || strcmp(writer_type(w, step), "float") != 0 || !kernel_reads_pairs(w->k, step))
        return 0;
    buffer_printf(&w->body, "half_read(of, %s, ", kernel_tensor(w->k, w->k->step[step].node, 0));
    writer_index(w, &w->k->step[step].at);
    buffer_puts(&w->body, ")");
    return 1;
}

void writer_point(Writer *w, int step)
{
    size_t len;
    const Node *x = node_of(w, step);
    const char *text = chosen_text(x, &len), *type = writer_type(w, step);
    int floating = !strcmp(type, "float") || !strcmp(type, "double");
    if (put_near(w, step, text, len) || put_quick(w, step, text, len) ||
        put_exact_quotient(w, step, text, len))
        return;
    w->ahead = is_ahead(w, step, text, text + len);
    if (floating && !w->k->nodes->plain && is_added(w, step))
        put_rounded(w, step, text, text + len);
    else
        put_text(w, step, text, text + len);
    w->ahead = 0;
}

/* ---- one element, for kernels whose loops are written elsewhere ---- */

int kernel_put_element(Kernel *k, KernelText *t, const KernelElement *e, Buffer *out, Error *err)
{
    unsigned char kept[KERNEL_STEPS] = {0}, defined[KERNEL_STEPS] = {0};
    Writer w = {.k = k, .t = t, .err = err, .kept = kept, .defined = defined, .lanes = 1};
    w.vec = w.element = 1, w.last = w.strip = w.part = -1, w.near = e->near;
    buffer_init(&w.body, 1 << 20);
    writer_help(&w, HELP_PACK);
    k->scope.of = k, k->scope.axes = &k->axes;
    writer_element_axes(&w, e);
    for (int i = 0; i < k->n; i++) {
        int at = 0;
        while (at < e->n_given && i != e->given[at]) at++;
        if (at == e->n_given)
            writer_step(&w, i, "        ");
        else
            buffer_printf(&w.body, "        const %s t%d = sum%s;\n", writer_type(&w, i), i,
                          at ? "_2" : "");
    }
    buffer_printf(&w.body, "        return (%s)t%d;\n",
                  dtype_ctype(k->nodes->node[k->root[0].node].dtype), k->root[0].step);
    buffer_append(out, w.body.data, w.body.len);
    buffer_release(&w.body);
    return w.failed ? -1 : 0;
}

/* ---- vectors of loads ---- */

/* Opens a block in which an axis has the place of the vector's first element, inside of what it is over. */
static void put_shifted(Writer *w, int axis, const char *indent)
{
    const int place = w->k->bound[axis];
    buffer_printf(&w->body, "%s{ const %s %s = min((unsigned)", indent, writer_type(w, place),
                  w->k->axes.name[axis]);
    writer_index(w, &w->k->step[place].at);
    buffer_printf(&w->body, ", (unsigned)%s - (unsigned)V);\n",
                  writer_size(w, w->k->axes.size[axis]));
}

/* Reads the two vectors that have those elements which lie some places from a thread's own. */
static void put_beside(Writer *w, int step, const char *to, const char *indent)
{
    const int axis = writer_shifted(w, step);
    Index row = w->k->step[step].at;
    row.by[axis] = size_number(0);
    writer_help(w, HELP_BESIDE);
    buffer_printf(&w->body, "%s%s = beside<V>(%s + ", indent, to,
                  kernel_tensor(w->k, w->k->step[step].node, 0));
    writer_index(w, &row);
    const char *type = w->wide ? "long long" : "int";
    buffer_printf(&w->body, ", (%s)%s, %d, (%s)%s);\n", type, w->k->axes.name[w->last],
                  writer_beside(w, step), type, writer_size(w, w->k->axes.size[axis]));
}

typedef struct {
    int spacing;
    const char *to, *tensor;
    const Index *base;
} Spaced;

/* Reads a vector with what lies between its elements, and takes these. Where V is 1, the element alone. */
static void put_spaced(Writer *w, int step, const Spaced *s, const char *indent)
{
    const Index *at = &w->k->step[step].at;
    Index within = *at;
    for (int i = 0; i < w->k->axes.n; i++)
        within.by[i] = size_plus(at->by[i], size_times(s->base->by[i], size_number(-1)));
    within.plus = size_plus(at->plus, size_times(s->base->plus, size_number(-1)));
    buffer_printf(&w->body, "%sif (V == 1) {\n%s    %s.v[0] = %s[", indent, indent, s->to,
                  s->tensor);
    writer_index(w, at);
    buffer_printf(&w->body,
                  "];\n%s} else {\n%s    const Pack<%s, V == 1 ? 1 : %d * V> all = "
                  "*(const Pack<%s, V == 1 ? 1 : %d * V> *)(%s + ",
                  indent, indent, writer_ctype(w, step), s->spacing, writer_ctype(w, step),
                  s->spacing, s->tensor);
    writer_index(w, s->base);
    buffer_printf(
        &w->body,
        ");\n#pragma unroll\n%s    for (int v = 0; v < V; v++) %s.v[v] = all.v[V == 1 ? 0 : "
        "%d * v + ",
        indent, s->to, s->spacing);
    writer_index(w, &within);
    buffer_printf(&w->body, "];\n%s}\n", indent);
}

void writer_condition(Writer *w, int step)
{
    const Condition *c = &w->k->condition[w->k->step[step].inside];
    const char *type = w->wide ? "unsigned long long" : "unsigned";
    char name[WRITER_NAME];
    for (int i = 0; i < c->n; i++)
        buffer_printf(&w->body, "%s(%s)%s < (%s)%s", i ? " && " : "", type,
                      writer_name(w, c->term[i].step, name), type,
                      writer_size(w, c->term[i].below));
}

/* 1: a load's condition is one for the whole vector, and known before it (2026-11-30, H200: frames of which
 * an eighth each has the channels of the frame before and behind: 28.2 us, 32.0 where all are read). */
static int has_condition(const Writer *w, int step)
{
    const Step *s = &w->k->step[step];
    const Condition *c = &w->k->condition[s->inside];
    for (int t = 0; t < c->n; t++) {
        const int place = c->term[t].step;
        const unsigned axes = index_axes(&w->k->step[place].at);
        int known = !in_columns(w, place);
        for (int i = 0; i < w->k->axes.n; i++) {
            if (axes >> i & 1 && (i == w->last || w->k->bound[i] >= 0 || w->k->looped >> i & 1))
                return 0;
            known |= w->k->bound[i] == place && !size_is(s->at.by[i], 0);
        }
        if (!known) return 0;
    }
    return c->n && w->vec > 1 && w->strip < 0 && w->k->scan < 0 && !w->k->nodes->plain;
}

/* Reads the pack of a load into `to`. */
void writer_fetch(Writer *w, int step, const char *to, const char *indent)
{
    if (writer_is_loop(w, step)) {
        fold_put_loop(w, step, to, indent);
        return;
    }
    if (has_condition(w, step)) {
        buffer_printf(&w->body, "%s%s = {};\n%sif (", indent, to, indent);
        writer_condition(w, step);
        buffer_puts(&w->body, ")\n    ");
    }
    const char *tensor = kernel_tensor(w->k, w->k->step[step].node, 0);
    const int shifted = w->vec > 1 ? writer_shifted(w, step) : -1;
    Index base;
    const int spacing = w->vec > 1 && shifted < 0 ? writer_spacing(w, step, &base) : 0;
    writer_help(w, HELP_PACK);
    if (shifted >= 0 && writer_beside(w, step)) {
        put_beside(w, step, to, indent);
        return;
    }
    if (shifted >= 0) put_shifted(w, shifted, indent);
    if (spacing) {
        put_spaced(w, step, &(Spaced){spacing, to, tensor, &base}, indent);
    } else if (writer_is_vector(w, step)) {
        buffer_printf(&w->body, "%s%s = *(const Pack<%s, V> *)(%s + ", indent, to,
                      writer_ctype(w, step), tensor);
        writer_index(w, &w->k->step[step].at);
        buffer_printf(&w->body, ");%s\n", shifted >= 0 ? " }" : "");
    } else {
        buffer_printf(&w->body, "%s%s.v[0] = %s[", indent, to, tensor);
        writer_index(w, &w->k->step[step].at);
        buffer_puts(&w->body, "];\n");
    }
}

/* ---- what must be whole ---- */

/* 1: a size is a whole number of vectors wherever the graph can be bound: a number, or a product of which
 * that is so at all bindings. A sum of axes may be one at each binding by chance. */
static int is_whole(const Writer *w, Size s, int by)
{
    char text[SIZE_TEXT];
    Error unused;
    if (!size_divides(size_number(by), s)) return 0;
    return size_constant(s) ||
           (!size_text(w->k->nodes->sizes, s, text, &unused) && !strpbrk(text, "+-/"));
}

/* Sizes that have to be whole numbers of vectors. */
typedef struct {
    Size seen[INDEX_AXES * 2];
    int n;
    Buffer *to;
} Wholes;

static void add_whole(Writer *w, Wholes *g, Size s)
{
    int known = is_whole(w, s, w->vec);
    for (int o = 0; o < g->n && !known; o++) known = size_divides(g->seen[o], s);
    if (known || g->n == INDEX_AXES * 2) return;
    g->seen[g->n++] = s;
    buffer_printf(g->to, "%s%s", g->to->len ? " | " : "", writer_size(w, s));
}

/* The same of vectors with what lies between. */
static void add_spaced(Writer *w, Wholes *g, Size s, int spacing)
{
    if (is_whole(w, s, spacing * w->vec)) return;
    const char *name = writer_size(w, s);
    buffer_printf(g->to, "%s(%s %% %d ? 1 : %s / %d)", g->to->len ? " | " : "", name, spacing, name,
                  spacing);
}

/* Those of a place that moves along an axis. */
static void add_wholes(Writer *w, Wholes *g, const Index *at, int along)
{
    for (int a = 0; a < w->k->axes.n; a++)
        if (a != along) add_whole(w, g, at->by[a]);
    add_whole(w, g, at->plus);
}

void writer_guard(Writer *w, Buffer *to)
{
    Wholes g = {.to = to};
    add_whole(w, &g, w->k->axes.size[w->last]);
    for (int i = 0; i < w->k->n; i++) {
        const int shifted = writer_shifted(w, i);
        Index base;
        const int spacing = shifted < 0 ? writer_spacing(w, i, &base) : 0;
        if (!writer_is_vector(w, i)) continue;
        for (int a = 0; a < w->k->axes.n && spacing; a++)
            if (a != w->last) add_spaced(w, &g, base.by[a], spacing);
        if (spacing) {
            add_spaced(w, &g, base.plus, spacing);
            add_spaced(w, &g, node_count(node_of(w, i)), spacing);
            continue;
        }
        add_wholes(w, &g, &w->k->step[i].at, shifted >= 0 ? shifted : w->last);
        if (shifted < 0) continue;
        add_whole(w, &g, w->k->axes.size[shifted]);
        if (!writer_beside(w, i)) add_wholes(w, &g, &w->k->step[w->k->bound[shifted]].at, w->last);
    }
    for (int r = 0; r < w->k->n_roots; r++)
        if (writer_root_is_vector(w, r)) add_wholes(w, &g, &w->k->root[r].at, w->last);
}
