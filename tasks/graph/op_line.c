/* Reads one operator call. Parsing cuts the line into pieces and finds the operator; binding gives
 * each piece a value in a scope. No piece is copied, and every list is bounded by op.h. */
#include "tasks/graph/op_line.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

typedef struct {
    const char *start, *p, *end;
    Error *err;
} Cut;

static int fail(Cut *c, const char *at, const char *what)
{
    return error_set(c->err, ERROR_INVALID, "column %d: %s", (int)(at - c->start) + 1, what);
}

static void blanks(Cut *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t')) c->p++;
}

static int take(Cut *c, char token)
{
    blanks(c);
    if (c->p == c->end || *c->p != token) return 0;
    c->p++;
    return 1;
}

/* A name at c->p; len 0: there is none. */
static OpText word(Cut *c, int dots)
{
    blanks(c);
    OpText t = {c->p, 0};
    if (c->p == c->end || isdigit((unsigned char)*c->p)) return t;
    while (c->p < c->end && (word_has(*c->p) || (dots && *c->p == '.'))) c->p++;
    t.len = (size_t)(c->p - t.p);
    return t;
}

/* Everything up to the next comma or closing bracket outside of brackets and quotes. */
static int piece(Cut *c, OpText *out)
{
    int depth = 0;
    blanks(c);
    out->p = c->p;
    for (; c->p < c->end; c->p++) {
        char ch = *c->p;
        if (ch == '\'') {
            const char *quote = c->p++;
            while (c->p < c->end && *c->p != '\'') c->p++;
            if (c->p == c->end) return fail(c, quote, "the text has no closing quote");
        } else if (ch == '(' || ch == '[') {
            depth++;
        } else if (ch == ')' || ch == ']') {
            if (!depth) break;
            depth--;
        } else if (ch == ',' && !depth) {
            break;
        }
    }
    if (depth) return fail(c, out->p, "a bracket is not closed");
    out->len = (size_t)(c->p - out->p);
    while (out->len && isspace((unsigned char)out->p[out->len - 1])) out->len--;
    return out->len ? 0 : fail(c, out->p, "expected an argument");
}

static int results(Cut *c, OpLine *out)
{
    do {
        if (out->n_results == OP_MAX_RESULTS) return fail(c, c->p, "more than 16 results");
        OpText *r = &out->result[out->n_results++];
        *r = word(c, 0);
        if (!r->len) return fail(c, r->p, "expected the name of a result");
        for (int i = 0; i + 1 < out->n_results; i++)
            if (out->result[i].len == r->len && !memcmp(out->result[i].p, r->p, r->len) &&
                !(r->len == 1 && *r->p == '_'))
                return fail(c, r->p, "two results have this name");
    } while (take(c, ','));
    return take(c, '=') ? 0 : fail(c, c->p, "expected '=' after the results");
}

/* Without an overload: the one entry that begins so, else the .default one, else .Tensor or .self. */
static const Op *find(const char *name, Error *err)
{
    const Op *one = NULL, *standard = NULL;
    size_t len = strlen(name);
    int n = 0;
    const Op *op;
    for (int i = 0; (op = op_at(i)); i++) {
        if (!strcmp(op->name, name)) return op;
        if (strncmp(op->name, name, len) || op->name[len] != '.' || strchr(op->name + len + 1, '.'))
            continue;
        one = op;
        n++;
        if (!strcmp(op->name + len, ".default") ||
            (!standard && (!strcmp(op->name + len, ".Tensor") || !strcmp(op->name + len, ".self"))))
            standard = op;
    }
    if (standard || n == 1) return standard ? standard : one;
    if (!n) return op_find(name, err);
    error_set(err, ERROR_INVALID, "%.80s has %d overloads; write one of them, such as %s", name, n,
              one->name);
    return NULL;
}

static int arguments(Cut *c, OpLine *out)
{
    if (!take(c, '(')) return fail(c, c->p, "expected '(' after the operator");
    if (take(c, ')')) return 0;
    do {
        if (out->n_args == OP_MAX_ARGS) return fail(c, c->p, "more than 16 arguments");
        const char *start = c->p;
        OpText key = word(c, 0);
        blanks(c);
        if (key.len && c->p < c->end && *c->p == '=' && !(c->p + 1 < c->end && c->p[1] == '='))
            c->p++;
        else
            key.len = 0, c->p = start;
        if (!key.len && out->n_args && out->keyword[out->n_args - 1].len)
            return fail(c, start, "a positional argument follows one by keyword");
        out->keyword[out->n_args] = key;
        if (piece(c, &out->value[out->n_args++])) return -1;
    } while (take(c, ','));
    return take(c, ')') ? 0 : fail(c, c->p, "expected ',' or ')' after an argument");
}

int op_line_parse(const char *text, size_t len, OpLine *out, Error *err)
{
    Cut c = {text, text, text + len, err};
    char name[96];
    memset(out, 0, sizeof *out);
    if (len > OP_LINE_MAX)
        return error_set(err, ERROR_LIMIT, "expected an operator of at most %d bytes, found %zu",
                         OP_LINE_MAX, len);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\t')
            return fail(&c, text + i, "a control character");
    if (results(&c, out)) return -1;
    OpText op = word(&c, 1);
    if (!op.len || op.len >= sizeof name)
        return fail(&c, op.p, "expected the name of an operator, such as aten.relu.default");
    snprintf(name, sizeof name, "%.*s", (int)op.len, op.p);
    if (!(out->op = find(name, err))) return error_prefix(err, "column %d", (int)(op.p - text) + 1);
    if (arguments(&c, out)) return -1;
    blanks(&c);
    return c.p == c.end ? 0 : fail(&c, c.p, "expected the end of the line");
}

/* ---- values ---- */

typedef struct {
    const OpScope *scope;
    OpCall *call;
    int *id;
    Error *err;
} Binding;

/* The index in the call of the tensor of a name; -1: no tensor has it; -2: an error. A tensor that
 * is named twice is passed once. */
static int tensor_index(Binding *b, OpText t)
{
    OpTensor x = {0};
    if (word_length(t.p, t.p + t.len) < t.len) return -1;
    int id = b->scope->tensor ? b->scope->tensor(b->scope->ctx, t.p, t.len, &x) : -1;
    if (id < 0) return -1;
    for (int i = 0; i < b->call->n_tensors; i++)
        if (b->id[i] == id) return i;
    int at = op_call_tensor(b->call, &x, b->err);
    if (at < 0) return -2;
    b->id[at] = id;
    return at;
}

/* A decimal number with a point or an exponent, inf or nan. */
static int float_literal(OpText t, double *out)
{
    char text[64], *end;
    int real = 0;
    if (!t.len || t.len >= sizeof text) return 0;
    memcpy(text, t.p, t.len);
    text[t.len] = 0;
    const char *s = text + (*text == '-' || *text == '+');
    if ((*s == 'i' || *s == 'n') && (!strcmp(s, "inf") || !strcmp(s, "nan"))) {
        *out = *s == 'n' ? NAN : *text == '-' ? -INFINITY : INFINITY;
        return 1;
    }
    if (!isdigit((unsigned char)*s) && *s != '.') return 0;
    for (const char *p = s; *p; p++) {
        if (!isdigit((unsigned char)*p) && !strchr(".eE+-", *p)) return 0;
        real |= *p == '.' || *p == 'e' || *p == 'E';
    }
    *out = strtod(text, &end);
    return real && !*end;
}

static int dtype_value(OpText t, OpValue *v, Error *err)
{
    Dtype d = dtype_named(t.p + 6, t.len - 6);
    if (d == DTYPES)
        return error_set(err, ERROR_INVALID, "%.*s is no element type", (int)t.len, t.p);
    *v = (OpValue){.kind = OP_DTYPE, .integer = {d}};
    return 0;
}

static int list_value(Binding *b, OpText t, OpValue *v)
{
    Cut c = {t.p, t.p + 1, t.p + t.len, b->err};
    *v = (OpValue){.kind = OP_INTS};
    if (take(&c, ']')) return c.p == c.end ? 0 : fail(&c, c.p, "expected the end of the list");
    do {
        OpText e;
        if (v->n == OP_MAX_LIST)
            return error_set(b->err, ERROR_LIMIT, "more than %d elements", OP_MAX_LIST);
        if (piece(&c, &e)) return -1;
        int at = tensor_index(b, e);
        if (at == -2) return -1;
        if (!v->n && at >= 0) v->kind = OP_TENSORS;
        if ((v->kind == OP_TENSORS) != (at >= 0))
            return error_set(b->err, ERROR_INVALID, "%.*s is %s tensor, unlike the elements before",
                             e.len > 60 ? 60 : (int)e.len, e.p, at >= 0 ? "a" : "no");
        v->integer[v->n] = at;
        if (at < 0 &&
            expr_eval(e.p, e.len, b->scope->axis, b->scope->ctx, &v->integer[v->n], b->err))
            return -1;
        v->n++;
    } while (take(&c, ','));
    return take(&c, ']') && c.p == c.end ? 0 : fail(&c, c.p, "expected ',' or ']' in a list");
}

static int string_value(OpText t, OpValue *v, Error *err)
{
    *v = (OpValue){.kind = OP_STRING};
    if (t.len < 2 || memchr(t.p + 1, '\'', t.len - 1) != t.p + t.len - 1)
        return error_set(err, ERROR_INVALID, "expected the end of the argument after the text");
    if (t.len - 2 >= sizeof v->text)
        return error_set(err, ERROR_LIMIT, "expected a text of at most %zu bytes, found %zu",
                         sizeof v->text - 1, t.len - 2);
    memcpy(v->text, t.p + 1, t.len - 2);
    return 0;
}

static int value(Binding *b, OpText t, OpValue *v)
{
    memset(v, 0, sizeof *v);
    if (*t.p == '[') return list_value(b, t, v);
    if (*t.p == '\'') return string_value(t, v, b->err);
    if (op_text_is(t, "None")) return 0;
    if (op_text_is(t, "True") || op_text_is(t, "False")) {
        v->kind = OP_BOOL;
        v->integer[0] = *t.p == 'T';
        return 0;
    }
    if (t.len > 6 && !memcmp(t.p, "torch.", 6)) return dtype_value(t, v, b->err);
    if (float_literal(t, &v->number)) {
        v->kind = OP_FLOAT;
        return 0;
    }
    int at = tensor_index(b, t);
    if (at == -2) return -1;
    v->kind = at >= 0 ? OP_TENSOR : OP_INT;
    v->integer[0] = at;
    if (at >= 0) return 0;
    if (expr_eval(t.p, t.len, b->scope->axis, b->scope->ctx, &v->integer[0], b->err)) return -1;
    v->number = (double)v->integer[0];
    return 0;
}

int op_line_call(const OpLine *l, const OpScope *scope, OpCall *call, int id[OP_MAX_TENSORS],
                 Error *err)
{
    Binding b = {scope, call, id, err};
    OpValue values[OP_MAX_ARGS];
    const char *keyword[OP_MAX_ARGS] = {0};
    char names[OP_MAX_ARGS][24];
    op_call_init(call, l->op);
    for (int i = 0; i < l->n_args; i++) {
        OpText k = l->keyword[i];
        if (k.len >= sizeof names[0])
            return error_set(err, ERROR_INVALID, "%s has no parameter %.*s", l->op->name,
                             (int)(k.len < 40 ? k.len : 40), k.p);
        memcpy(names[i], k.p, k.len);
        names[i][k.len] = 0;
        if (k.len) keyword[i] = names[i];
        if (value(&b, l->value[i], &values[i]))
            return error_prefix(err, "%s, argument %d", l->op->name, i + 1);
    }
    if (op_bind(call, keyword, values, l->n_args, err) || op_infer(call, err)) return -1;
    if (call->n_results != l->n_results)
        return error_set(err, ERROR_INVALID, "%s gives %d tensors, %d are named", l->op->name,
                         call->n_results, l->n_results);
    return 0;
}
