/* Schemas: "Tensor self, int[2] stride=1, *, ScalarType? dtype=None" read parameter by parameter. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_schema.h"

static int word(const char **at, const char *stops, char *out, size_t size)
{
    size_t n = strcspn(*at, stops);
    if (!n || n >= size) return -1;
    memcpy(out, *at, n);
    out[n] = 0;
    *at += n;
    return 0;
}

/* Advances *at past one parameter. 1: one was read; 0: the end; -1: the schema is malformed. */
static int next(const char **at, int *keyword_only, SchemaParameter *p, Error *err)
{
    const char *start = *at;
    memset(p, 0, sizeof *p);
    *at += strspn(*at, ", ");
    if (**at == '*') {
        *keyword_only = 1;
        (*at)++;
        *at += strspn(*at, ", ");
    }
    if (!**at) return 0;
    if (word(at, "?[ ", p->type, sizeof p->type)) goto bad;
    if (**at == '[') {
        char *end;
        p->list = 1;
        p->count = (int)strtol(*at + 1, &end, 10);
        if (*end != ']') goto bad;
        *at = end + 1;
    }
    if (**at == '?') p->optional = 1, (*at)++;
    *at += strspn(*at, " ");
    if (word(at, ",=", p->name, sizeof p->name)) goto bad;
    p->required = **at != '=';
    if (!p->required) {
        (*at)++;
        if (**at == '[') {
            if (word(at, "]", p->fallback, sizeof p->fallback)) goto bad;
            (*at)++;
        } else if (word(at, ",", p->fallback, sizeof p->fallback)) {
            goto bad;
        }
    }
    p->keyword_only = *keyword_only;
    return 1;
bad:
    return error_set(err, ERROR_INVALID, "the schema \"%s\" is malformed at \"%.20s\"", start, *at);
}

static Schema *read_schema(const Op *op, Error *err)
{
    Schema *s = memory_alloc(sizeof *s);
    const char *at = s->text = op->schema;
    int keyword_only = 0, more;
    SchemaParameter p;
    while ((more = next(&at, &keyword_only, &p, err)) == 1) {
        if (s->n == OP_MAX_ARGS)
            more =
                error_set(err, ERROR_LIMIT, "%s: more than %d parameters", op->name, OP_MAX_ARGS);
        if (more < 0) break;
        s->p[s->n++] = p;
    }
    if (!more) return s;
    free(s);
    return NULL;
}

const Schema *schema_of(const Op *op, Error *err)
{
    enum { PLACES = 1 << 12 }; /* more than there are texts in the library */
    static _Atomic(Schema *) known[PLACES];
    size_t at = (uintptr_t)op->schema % PLACES;
    for (int tries = 0; tries < PLACES; tries++, at = (at + 1) % PLACES) {
        Schema *have = atomic_load(&known[at]);
        if (!have) {
            Schema *own = read_schema(op, err);
            if (!own || atomic_compare_exchange_strong(&known[at], &have, own)) return own;
            free(own); /* another thread was faster */
        }
        if (have->text == op->schema) return have;
    }
    error_set(err, ERROR_LIMIT, "more than %d schemas", PLACES);
    return NULL;
}

static const char *kind_name(OpKind k)
{
    static const char *const names[] = {"None",           "a tensor", "a list of tensors",
                                        "an int",         "a float",  "a bool",
                                        "a list of ints", "a dtype",  "a string"};
    return names[k];
}

static int matches(const SchemaParameter *p, OpKind k)
{
    if (!strcmp(p->type, "Any")) return 1;
    if (p->list) return k == (!strcmp(p->type, "Tensor") ? OP_TENSORS : OP_INTS);
    if (!strcmp(p->type, "Tensor")) return k == OP_TENSOR;
    if (!strcmp(p->type, "Operand")) return k == OP_TENSOR || k == OP_INT || k == OP_FLOAT;
    if (!strcmp(p->type, "int")) return k == OP_INT;
    if (!strcmp(p->type, "float")) return k == OP_FLOAT || k == OP_INT;
    if (!strcmp(p->type, "Scalar")) return k == OP_FLOAT || k == OP_INT || k == OP_BOOL;
    if (!strcmp(p->type, "bool")) return k == OP_BOOL;
    if (!strcmp(p->type, "ScalarType")) return k == OP_DTYPE;
    return !strcmp(p->type, "str") && k == OP_STRING;
}

int schema_accept(const SchemaParameter *p, OpValue *v, Error *err)
{
    if (v->kind == OP_NONE && p->optional) return 0;
    if (v->n < 0 || v->n > OP_MAX_LIST)
        return error_set(err, ERROR_LIMIT, "%s: expected at most %d elements, found %d", p->name,
                         OP_MAX_LIST, v->n);
    if (p->list && !strcmp(p->type, "int") && v->kind == OP_INT) {
        for (int i = 1; i < p->count && i < OP_MAX_LIST; i++) v->integer[i] = v->integer[0];
        v->n = p->count ? p->count : 1;
        v->kind = OP_INTS;
    }
    if (!matches(p, v->kind))
        return error_set(err, ERROR_INVALID, "%s: expected %s%s%s, found %s", p->name, p->type,
                         p->list ? "[]" : "", p->optional ? " or None" : "", kind_name(v->kind));
    if (p->list && p->count && v->n == 1 && !strcmp(p->type, "int")) {
        for (int i = 1; i < p->count && i < OP_MAX_LIST; i++) v->integer[i] = v->integer[0];
        v->n = p->count;
    }
    if (v->kind == OP_BOOL || v->kind == OP_INT) v->number = (double)v->integer[0];
    return 0;
}

int schema_default(const SchemaParameter *p, OpValue *v, Error *err)
{
    const char *s = p->fallback;
    memset(v, 0, sizeof *v);
    if (!strcmp(s, "None")) return 0;
    if (!strcmp(s, "True") || !strcmp(s, "False")) {
        v->kind = OP_BOOL;
        v->integer[0] = *s == 'T';
    } else if (!strcmp(p->type, "str")) {
        v->kind = OP_STRING;
        snprintf(v->text, sizeof v->text, "%s", s);
    } else if (*s == '[') {
        v->kind = OP_INTS;
        for (char *end; s[1]; s = end) {
            v->integer[v->n++] = strtoll(s + 1, &end, 10);
            if (end == s + 1 || v->n == OP_MAX_LIST)
                return error_set(err, ERROR_INVALID, "%s: the default %s is malformed", p->name,
                                 p->fallback);
        }
    } else if (strpbrk(s, ".e")) {
        v->kind = OP_FLOAT;
        v->number = strtod(s, NULL);
    } else {
        v->kind = OP_INT;
        v->integer[0] = strtoll(s, NULL, 10);
    }
    return schema_accept(p, v, err);
}
