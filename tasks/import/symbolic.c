/* Values and texts of symbolic sizes. */
#include "tasks/import/symbolic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

int symbols_find(const Symbols *s, const char *name, size_t len)
{
    for (int i = 0; i < s->n; i++)
        if (word_is(name, len, s->list[i].name)) return i;
    return -1;
}

int symbols_add(Symbols *s, const char *name, size_t len, Error *err)
{
    if (s->n == SYMBOLS_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d symbolic sizes", SYMBOLS_MAX);
    if (!len || len >= sizeof s->list->name)
        return error_set(err, ERROR_LIMIT, "the symbol %.60s has no name of 1 to %zu bytes", name,
                         sizeof s->list->name - 1);
    s->list = memory_grow(s->list, (size_t)s->n + 1, sizeof *s->list);
    s->list[s->n] = (Symbol){.low = 1, .high = INT32_MAX};
    memcpy(s->list[s->n].name, name, len);
    return s->n++;
}

void symbols_release(Symbols *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->list[i].same) {
            symbolic_release(s->list[i].same);
            free(s->list[i].same);
        }
    free(s->list);
    *s = (Symbols){0};
}

void symbolic_number(int64_t number, Symbolic *out)
{
    out->node = memory_alloc(sizeof *out->node);
    out->node[0] = (SymNode){.kind = SYM_INTEGER, .integer = number};
    out->n = 1;
}

void symbolic_release(Symbolic *e)
{
    free(e->node);
    *e = (Symbolic){0};
}

int symbolic_uses(const Symbolic *e, const Symbols *s, char *used)
{
    int n = 0;
    for (int i = 0; i < e->n; i++) {
        int k = e->node[i].a;
        if (e->node[i].kind != SYM_SYMBOL || s->list[k].pinned) continue;
        if (s->list[k].same) {
            n += symbolic_uses(s->list[k].same, s, used);
        } else if (!used[k]) {
            used[k] = 1;
            n++;
        }
    }
    return n;
}

void symbolic_pin(const Symbolic *e, Symbols *s)
{
    for (int i = 0; i < e->n; i++) {
        Symbol *y = e->node[i].kind == SYM_SYMBOL ? &s->list[e->node[i].a] : NULL;
        if (!y || y->pinned) continue;
        y->pinned = 1;
        if (y->same) symbolic_pin(y->same, s);
    }
}

/* Appends a copy of node i and what it uses; the index of the copy. */
static int copy(const Symbolic *e, int i, Symbolic *out)
{
    SymNode n = e->node[i];
    if (n.kind > SYM_SYMBOL) {
        int single = n.a == n.b;
        n.a = copy(e, n.a, out);
        n.b = single ? n.a : copy(e, n.b, out);
    }
    out->node = memory_grow(out->node, (size_t)out->n + 1, sizeof *out->node);
    out->node[out->n] = n;
    return out->n++;
}

int symbolic_equate(Symbols *s, int symbol, const Symbolic *e, int i)
{
    Symbol *y = &s->list[symbol];
    char used[SYMBOLS_MAX] = {0};
    SymValue v;
    if (y->pinned || y->same) return 0;
    Symbolic *same = memory_alloc(sizeof *same);
    copy(e, i, same);
    symbolic_uses(same, s, used);
    if (used[symbol] || symbolic_value(same, s, NULL, &v, NULL) || v.is_real ||
        v.integer != y->own) {
        symbolic_release(same);
        free(same);
        return 0;
    }
    y->same = same;
    return 1;
}

/* ---- values ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b && (a < 0) != (b < 0));
}

static int power(int64_t a, int64_t n, int64_t *out)
{
    *out = 1;
    if (n < 0 || n > 62) return -1;
    for (int64_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(*out, a, out)) return -1;
    return 0;
}

/* -1: no value. */
static int integers(SymKind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case SYM_ADD: return -__builtin_add_overflow(a, b, out);
    case SYM_MUL: return -__builtin_mul_overflow(a, b, out);
    case SYM_POW: return power(a, b, out);
    case SYM_FLOOR_DIV:
    case SYM_MOD:
        if (!b || (a == INT64_MIN && b == -1)) return -1;
        *out = kind == SYM_MOD ? a - floor_div(a, b) * b : floor_div(a, b);
        return 0;
    case SYM_MAX: *out = a > b ? a : b; return 0;
    case SYM_MIN: *out = a < b ? a : b; return 0;
    case SYM_EQ: *out = a == b; return 0;
    case SYM_NE: *out = a != b; return 0;
    case SYM_LT: *out = a < b; return 0;
    case SYM_LE: *out = a <= b; return 0;
    case SYM_AND: *out = a && b; return 0;
    case SYM_OR: *out = a || b; return 0;
    case SYM_NOT: *out = !a; return 0;
    case SYM_FLOOR:
    case SYM_CEIL: *out = a; return 0;
    default: return -1;
    }
}

static int reals(SymKind kind, double a, double b, SymValue *out)
{
    *out = (SymValue){.is_real = 1};
    switch (kind) {
    case SYM_ADD: out->real = a + b; return 0;
    case SYM_MUL: out->real = a * b; return 0;
    case SYM_DIV: out->real = a / b; return b != 0 ? 0 : -1;
    case SYM_FLOOR_DIV: out->real = floor(a / b); return b != 0 ? 0 : -1;
    case SYM_POW: out->real = pow(a, b); return isfinite(out->real) ? 0 : -1;
    case SYM_MAX: out->real = a > b ? a : b; return 0;
    case SYM_MIN: out->real = a < b ? a : b; return 0;
    case SYM_FLOOR:
    case SYM_CEIL:
        a = kind == SYM_CEIL ? ceil(a) : floor(a);
        *out = (SymValue){.integer = fabs(a) < 1e18 ? (int64_t)a : 0};
        return fabs(a) < 1e18 ? 0 : -1;
    case SYM_EQ: *out = (SymValue){.integer = a == b}; return 0;
    case SYM_NE: *out = (SymValue){.integer = a != b}; return 0;
    case SYM_LT: *out = (SymValue){.integer = a < b}; return 0;
    case SYM_LE: *out = (SymValue){.integer = a <= b}; return 0;
    default: return -1;
    }
}

static int combine(SymKind kind, SymValue a, SymValue b, SymValue *out)
{
    if (!a.is_real && !b.is_real && kind != SYM_DIV && (kind != SYM_POW || b.integer >= 0)) {
        *out = (SymValue){0};
        return integers(kind, a.integer, b.integer, &out->integer);
    }
    return reals(kind, a.is_real ? a.real : (double)a.integer,
                 b.is_real ? b.real : (double)b.integer, out);
}

static int leaf(const SymNode *n, const Symbols *s, const int64_t *values, SymValue *out)
{
    if (n->kind == SYM_SYMBOL && values && !s->list[n->a].pinned && s->list[n->a].same)
        return symbolic_value(s->list[n->a].same, s, values, out, NULL);
    *out = (SymValue){.is_real = n->kind == SYM_REAL, .integer = n->integer, .real = n->real};
    if (n->kind != SYM_SYMBOL) return 0;
    const Symbol *y = &s->list[n->a];
    out->integer = values && !y->pinned ? values[n->a] : y->own;
    return values || y->known ? 0 : -1;
}

int symbolic_value(const Symbolic *e, const Symbols *s, const int64_t *values, SymValue *out,
                   Error *err)
{
    SymValue *v = memory_array((size_t)e->n, sizeof *v);
    int rc = 0;
    for (int i = 0; i < e->n && !rc; i++) {
        const SymNode *n = &e->node[i];
        if (n->kind <= SYM_SYMBOL)
            rc = leaf(n, s, values, &v[i]);
        else
            rc = combine(n->kind, v[n->a], v[n->b], &v[i]);
    }
    *out = v[e->n - 1];
    free(v);
    return rc ? error_set(err, ERROR_INVALID, "a symbolic size overflows or has no value") : 0;
}

/* ---- texts ---- */

typedef struct {
    const Symbolic *e;
    const Symbols *s;
    Buffer *out;
    int depth;
} Writer;

enum { TEXT_DEPTH = 60 };
enum { LEVEL_OR = 1, LEVEL_AND, LEVEL_EQUAL, LEVEL_ORDER, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_ATOM };

static int write(Writer *w, int i, int level);

/* A number if no symbol is left in node i. */
static int constant(const Writer *w, int i, int64_t *out)
{
    const SymNode *n = &w->e->node[i];
    int64_t a, b;
    if (n->kind == SYM_INTEGER || n->kind == SYM_SYMBOL) {
        *out = n->kind == SYM_INTEGER ? n->integer : w->s->list[n->a].own;
        return n->kind == SYM_INTEGER || w->s->list[n->a].pinned;
    }
    if (n->kind == SYM_REAL || !constant(w, n->a, &a)) return 0;
    if (n->b == n->a)
        b = a; /* of one operand */
    else if (!constant(w, n->b, &b))
        return 0;
    if (n->kind == SYM_DIV && b && a % b == 0) return *out = a / b, 1;
    return !integers(n->kind, a, b, out);
}

/* Counts the terms of a sum that are no numbers and adds those that are; w->out NULL: only counts. */
static int terms(Writer *w, int i, int sign, int *n, int64_t *number)
{
    const SymNode *e = &w->e->node[i];
    int64_t c;
    if (++w->depth > TEXT_DEPTH) return -1;
    int rc = 0;
    if (constant(w, i, &c)) {
        rc = -(__builtin_mul_overflow(c, (int64_t)sign, &c) ||
               __builtin_add_overflow(*number, c, number));
    } else if (e->kind == SYM_ADD) {
        rc = terms(w, e->a, sign, n, number) || terms(w, e->b, sign, n, number) ? -1 : 0;
    } else if (e->kind == SYM_MUL && constant(w, e->a, &c) && c == -1) {
        rc = terms(w, e->b, -sign, n, number);
    } else {
        if (*n || sign < 0) buffer_puts(w->out, *n ? sign < 0 ? " - " : " + " : "-");
        ++*n;
        rc = write(w, i, sign < 0 ? LEVEL_PRODUCT : LEVEL_SUM);
    }
    w->depth--;
    return rc;
}

static int sum(Writer *w, int i)
{
    int n = 0;
    int64_t number = 0;
    if (terms(w, i, 1, &n, &number) || number == INT64_MIN) return -1;
    if (number || !n)
        buffer_printf(w->out, n ? number < 0 ? " - %lld" : " + %lld" : "%lld",
                      (long long)(n && number < 0 ? -number : number));
    return 0;
}

static int pair(Writer *w, const SymNode *n, const char *token, int level)
{
    if (write(w, n->a, level)) return -1;
    buffer_puts(w->out, token);
    return write(w, n->b, level + 1);
}

static int function(Writer *w, const SymNode *n, const char *name)
{
    buffer_printf(w->out, "%s(", name);
    if (write(w, n->a, 0)) return -1;
    buffer_puts(w->out, ", ");
    if (write(w, n->b, 0)) return -1;
    return buffer_puts(w->out, ")");
}

/* 1 * a and a * 1 are a. */
static int product(Writer *w, const SymNode *n)
{
    int64_t c;
    if (constant(w, n->a, &c) && c == 1) return write(w, n->b, LEVEL_PRODUCT);
    if (constant(w, n->b, &c) && c == 1) return write(w, n->a, LEVEL_PRODUCT);
    return pair(w, n, " * ", LEVEL_PRODUCT);
}

static int power_text(Writer *w, const SymNode *n)
{
    int64_t k;
    if (!constant(w, n->b, &k) || k < 1 || k > 4) return -1;
    for (int64_t i = 0; i < k; i++) {
        if (i) buffer_puts(w->out, " * ");
        if (write(w, n->a, LEVEL_ATOM)) return -1;
    }
    return 0;
}

/* A size times a fraction whose denominator is a power of two, of which doubles are exact. */
static int rounded(Writer *w, const SymNode *n)
{
    const SymNode *product = &w->e->node[n->a];
    int first = w->e->node[product->a].kind == SYM_REAL, size = first ? product->b : product->a;
    const SymNode *factor = &w->e->node[first ? product->a : product->b];
    if (product->kind != SYM_MUL || factor->kind != SYM_REAL || !(factor->real > 0)) return -1;
    double up = factor->real;
    int64_t below = 1;
    while (up != floor(up) && below < 1024) up *= 2, below *= 2;
    if (up != floor(up) || up > 1 << 20) return -1;
    int more = below > 1 && n->kind == SYM_CEIL;
    if (more) buffer_puts(w->out, "(");
    if (up != 1) buffer_printf(w->out, "%lld * ", (long long)up);
    if (write(w, size, LEVEL_ATOM)) return -1;
    if (more) buffer_printf(w->out, " + %lld)", (long long)below - 1);
    if (below > 1) buffer_printf(w->out, " / %lld", (long long)below);
    return 0;
}

static int level_of(SymKind kind)
{
    switch (kind) {
    case SYM_OR: return LEVEL_OR;
    case SYM_AND: return LEVEL_AND;
    case SYM_EQ:
    case SYM_NE: return LEVEL_EQUAL;
    case SYM_LT:
    case SYM_LE: return LEVEL_ORDER;
    case SYM_ADD: return LEVEL_SUM;
    case SYM_MUL:
    case SYM_POW:
    case SYM_MOD:
    case SYM_FLOOR:
    case SYM_CEIL:
    case SYM_FLOOR_DIV: return LEVEL_PRODUCT;
    default: return LEVEL_ATOM;
    }
}

/* A symbol that is the same as an expression over others. */
static int inner(Writer *w, const Symbolic *e, int level)
{
    Writer x = {e, w->s, w->out, w->depth + 1};
    return w->depth < TEXT_DEPTH ? write(&x, e->n - 1, level) : -1;
}

static int operation(Writer *w, int i)
{
    const SymNode *n = &w->e->node[i];
    switch (n->kind) {
    case SYM_SYMBOL: return buffer_puts(w->out, w->s->list[n->a].axis);
    case SYM_ADD: return sum(w, i);
    case SYM_MUL: return product(w, n);
    case SYM_FLOOR_DIV: return pair(w, n, " / ", LEVEL_PRODUCT);
    case SYM_MOD: return pair(w, n, " % ", LEVEL_PRODUCT);
    case SYM_POW: return power_text(w, n);
    case SYM_FLOOR:
    case SYM_CEIL: return rounded(w, n);
    case SYM_MAX: return function(w, n, "max");
    case SYM_MIN: return function(w, n, "min");
    case SYM_EQ: return pair(w, n, " == ", LEVEL_ORDER);
    case SYM_NE: return pair(w, n, " != ", LEVEL_ORDER);
    case SYM_LT: return pair(w, n, " < ", LEVEL_SUM);
    case SYM_LE: return pair(w, n, " <= ", LEVEL_SUM);
    case SYM_AND: return pair(w, n, " && ", LEVEL_AND);
    case SYM_OR: return pair(w, n, " || ", LEVEL_OR);
    case SYM_NOT: buffer_puts(w->out, "!"); return write(w, n->a, LEVEL_ATOM);
    default: return -1;
    }
}

static int write(Writer *w, int i, int level)
{
    int64_t c;
    if (constant(w, i, &c)) {
        if (c == INT64_MIN) return -1;
        return buffer_printf(w->out, c < 0 && level > LEVEL_SUM ? "(%lld)" : "%lld", (long long)c);
    }
    const SymNode *n = &w->e->node[i];
    if (n->kind == SYM_SYMBOL && w->s->list[n->a].same)
        return inner(w, w->s->list[n->a].same, level);
    if (++w->depth > TEXT_DEPTH) return -1;
    int bracket = level_of(n->kind) < level;
    if (bracket) buffer_puts(w->out, "(");
    int rc = operation(w, i);
    if (bracket) buffer_puts(w->out, ")");
    w->depth--;
    return rc;
}

int symbolic_text(const Symbolic *e, const Symbols *s, Buffer *out, Error *err)
{
    Writer w = {e, s, out, 0};
    size_t before = out->len;
    if (!write(&w, e->n - 1, 0) && !out->full) return 0;
    if (out->full) return error_set(err, ERROR_LIMIT, "a symbolic size is too long");
    out->len = before;
    out->data[before] = 0;
    return error_set(err, ERROR_UNSUPPORTED,
                     "a size is no expression in integers; its factors are multiples of 1/1024");
}
