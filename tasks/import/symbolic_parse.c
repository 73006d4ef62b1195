/* Parses symbolic sizes: calls such as Add(...), infix operators, and paths of guards. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "tasks/import/symbolic.h"

enum { MAX_DEPTH = 48, MAX_PATH = 200 };

typedef struct {
    const char *start, *p;
    Symbols *symbols;
    SymDimension *dimension;
    void *ctx;
    Symbolic *out;
    Error *err;
    int depth;
} Parser;

static int expression(Parser *p, int level);

static int fail(Parser *p, const char *what)
{
    return error_set(p->err, ERROR_UNSUPPORTED, "the size \"%.120s\": column %d: %s", p->start,
                     (int)(p->p - p->start) + 1, what);
}

static int node(Parser *p, SymNode n)
{
    Symbolic *e = p->out;
    if (e->n == SYMBOLIC_MAX_NODES) return fail(p, "it is too long");
    e->node = memory_grow(e->node, (size_t)e->n + 1, sizeof *e->node);
    e->node[e->n] = n;
    return e->n++;
}

static int binary(Parser *p, SymKind kind, int a, int b)
{
    return a < 0 || b < 0 ? -1 : node(p, (SymNode){.kind = kind, .a = a, .b = b});
}

static int integer(Parser *p, int64_t v)
{
    return node(p, (SymNode){.kind = SYM_INTEGER, .integer = v});
}

static void blanks(Parser *p)
{
    while (*p->p == ' ') p->p++;
}

static int take(Parser *p, const char *token)
{
    size_t len = strlen(token);
    blanks(p);
    if (strncmp(p->p, token, len)) return 0;
    if (word_begins_name(*token) && word_has(p->p[len])) return 0;
    p->p += len;
    return 1;
}

static int need(Parser *p, const char *token)
{
    char what[40];
    if (take(p, token)) return 0;
    snprintf(what, sizeof what, "expected %s", token);
    return fail(p, what);
}

/* 'text': its place and length. */
static int quoted(Parser *p, const char **text, size_t *len)
{
    blanks(p);
    char quote = *p->p;
    if (quote != '\'' && quote != '"') return fail(p, "expected a quoted name");
    *text = ++p->p;
    while (*p->p && *p->p != quote) p->p++;
    *len = (size_t)(p->p - *text);
    return *p->p++ ? 0 : fail(p, "a quote is not closed");
}

static int symbol(Parser *p, const char *name, size_t len)
{
    int s = symbols_find(p->symbols, name, len);
    if (s < 0) s = symbols_add(p->symbols, name, len, p->err);
    return s < 0 ? -1 : node(p, (SymNode){.kind = SYM_SYMBOL, .a = s});
}

static int number(Parser *p)
{
    char *end;
    size_t len = strspn(p->p, "0123456789");
    const char *at = p->p;
    if (strchr(".eE", at[len]) && at[len]) {
        double real = strtod(at, &end);
        p->p = end;
        return node(p, (SymNode){.kind = SYM_REAL, .real = real});
    }
    if (len > 18) return fail(p, "a number beyond 10^18");
    p->p += len;
    return integer(p, strtoll(at, NULL, 10));
}

/* The dimension of a tensor, after `L`: ['x'][0].size()[2]. */
static int dimension(Parser *p)
{
    char path[MAX_PATH] = "";
    size_t len = 0;
    while (take(p, "[")) {
        const char *text = p->p;
        size_t n = strspn(text, "0123456789");
        if (n)
            p->p += n;
        else if (quoted(p, &text, &n))
            return -1;
        if (len + n + 2 > sizeof path) return fail(p, "a path is too long");
        len +=
            (size_t)snprintf(path + len, sizeof path - len, "%s%.*s", len ? "_" : "", (int)n, text);
        if (need(p, "]")) return -1;
    }
    if (need(p, ".size()[")) return -1;
    int64_t d = strtoll(p->p, NULL, 10), value = 0;
    p->p += strspn(p->p, "0123456789");
    const char *text = NULL;
    if (need(p, "]")) return -1;
    if (!p->dimension || p->dimension(p->ctx, path, d, &text, &value))
        return fail(p, "it names no dimension of an input");
    if (!text) return integer(p, value);
    Parser inner = *p;
    inner.start = inner.p = text;
    inner.dimension = NULL;
    int at = expression(&inner, 0);
    blanks(&inner);
    return at >= 0 && *inner.p ? fail(&inner, "expected the end") : at;
}

typedef struct {
    const char *name;
    SymKind kind;
    int n; /* operands; 0: any number of them, folded from the left */
} Function;

static const Function functions[] = {{"Add", SYM_ADD, 0},
                                     {"Mul", SYM_MUL, 0},
                                     {"Max", SYM_MAX, 0},
                                     {"Min", SYM_MIN, 0},
                                     {"FloorDiv", SYM_FLOOR_DIV, 2},
                                     {"CleanDiv", SYM_FLOOR_DIV, 2},
                                     {"Mod", SYM_MOD, 2},
                                     {"PythonMod", SYM_MOD, 2},
                                     {"Pow", SYM_POW, 2},
                                     {"PowByNatural", SYM_POW, 2},
                                     {"FloatPow", SYM_POW, 2},
                                     {"IntTrueDiv", SYM_DIV, 2},
                                     {"FloatTrueDiv", SYM_DIV, 2},
                                     {"Rational", SYM_DIV, 2},
                                     {"Eq", SYM_EQ, 2},
                                     {"Equality", SYM_EQ, 2},
                                     {"Ne", SYM_NE, 2},
                                     {"Unequality", SYM_NE, 2},
                                     {"And", SYM_AND, 0},
                                     {"Or", SYM_OR, 0},
                                     {"FloorToInt", SYM_FLOOR, 1},
                                     {"TruncToInt", SYM_FLOOR, 1},
                                     {"floor", SYM_FLOOR, 1},
                                     {"CeilToInt", SYM_CEIL, 1},
                                     {"ceiling", SYM_CEIL, 1},
                                     {"sym_max", SYM_MAX, 0},
                                     {"sym_min", SYM_MIN, 0},
                                     {"math.floor", SYM_FLOOR, 1},
                                     {"math.trunc", SYM_FLOOR, 1},
                                     {"math.ceil", SYM_CEIL, 1},
                                     {"max", SYM_MAX, 0},
                                     {"min", SYM_MIN, 0},
                                     {NULL}};

/* The operands up to the closing bracket. LessThan and its like have two and become one comparison. */
static int apply(Parser *p, const Function *f)
{
    int left = expression(p, 0), n = 1;
    for (; left >= 0 && take(p, ","); n++) {
        int right = expression(p, 0);
        left = binary(p, f->kind, left, right);
    }
    if (left < 0 || need(p, ")")) return -1;
    if (f->n && f->n != n) return fail(p, "another number of operands is expected");
    return f->n == 1 ? node(p, (SymNode){.kind = f->kind, .a = left, .b = left}) : left;
}

static int skip_call(Parser *p)
{
    while (*p->p && *p->p != ')') p->p++;
    return need(p, ")");
}

/* A call, after its opening bracket. */
static int call(Parser *p, const char *name, size_t len)
{
#define IS(word) (len == strlen(word) && !strncmp(name, word, len))
    const char *text;
    size_t n;
    int e;
    if (IS("Symbol")) return quoted(p, &text, &n) || skip_call(p) ? -1 : symbol(p, text, n);
    if (IS("Float")) {
        if (quoted(p, &text, &n) || skip_call(p)) return -1;
        return node(p, (SymNode){.kind = SYM_REAL, .real = strtod(text, NULL)});
    }
    if (IS("Integer") || IS("ToFloat") || IS("float") || IS("int") || IS("Identity"))
        return (e = expression(p, 0)) < 0 || need(p, ")") ? -1 : e;
    if (IS("Not")) {
        if ((e = expression(p, 0)) < 0 || need(p, ")")) return -1;
        return node(p, (SymNode){.kind = SYM_NOT, .a = e, .b = e});
    }
    if (len > 6 && !strncmp(name, "torch.", 6)) name += 6, len -= 6;
    for (const Function *f = functions; f->name; f++)
        if (IS(f->name)) return apply(p, f);
    return fail(p, "a function that Quern does not know");
#undef IS
}

static int atom(Parser *p)
{
    blanks(p);
    if (isdigit((unsigned char)*p->p)) return number(p);
    if (take(p, "(")) {
        int e = expression(p, 0);
        return e < 0 || need(p, ")") ? -1 : e;
    }
    const char *name = p->p;
    if (!word_begins_name(*name)) return fail(p, "expected a size");
    while (word_has(*p->p) || *p->p == '.') p->p++;
    size_t len = (size_t)(p->p - name);
    if (len == 1 && *name == 'L' && *p->p == '[') return dimension(p);
    return take(p, "(") ? call(p, name, len) : symbol(p, name, len);
}

static int unary(Parser *p)
{
    if (take(p, "-")) {
        int minus = integer(p, -1);
        return minus < 0 ? -1 : binary(p, SYM_MUL, minus, unary(p));
    }
    int base = atom(p);
    return base >= 0 && take(p, "**") ? binary(p, SYM_POW, base, unary(p)) : base;
}

typedef struct {
    const char *token;
    SymKind kind;
    int level, swap; /* operands change places: a > b is b < a */
} Infix;

/* The longer token first. */
static const Infix infix[] = {{"or", SYM_OR, 1, 0}, {"and", SYM_AND, 2, 0},
                              {"==", SYM_EQ, 4, 0}, {"!=", SYM_NE, 4, 0},
                              {"<=", SYM_LE, 4, 0}, {">=", SYM_LE, 4, 1},
                              {"<", SYM_LT, 4, 0},  {">", SYM_LT, 4, 1},
                              {"+", SYM_ADD, 5, 0}, {"//", SYM_FLOOR_DIV, 6, 0},
                              {"*", SYM_MUL, 6, 0}, {"/", SYM_DIV, 6, 0},
                              {"%", SYM_MOD, 6, 0}, {NULL}};

static int operation(Parser *p, const Infix *f, int left)
{
    int right = expression(p, f->level + 1);
    return f->swap ? binary(p, f->kind, right, left) : binary(p, f->kind, left, right);
}

/* Operators of `level` and above, grouped from the left. */
static int expression(Parser *p, int level)
{
    if (++p->depth > MAX_DEPTH) return fail(p, "it is nested too deep");
    int left;
    if (take(p, "not")) {
        int e = expression(p, 3);
        left = e < 0 ? -1 : node(p, (SymNode){.kind = SYM_NOT, .a = e, .b = e});
    } else {
        left = unary(p);
    }
    for (const Infix *f = infix; left >= 0 && f->token;) {
        const char *before = p->p;
        if (level <= 5 && take(p, "-")) { /* a - b is a + -1 * b */
            int minus = integer(p, -1), right = minus < 0 ? -1 : expression(p, 6);
            left = binary(p, SYM_ADD, left, binary(p, SYM_MUL, minus, right));
            f = infix;
        } else if (f->level >= level && take(p, f->token)) {
            left = operation(p, f, left);
            f = infix;
        } else {
            p->p = before;
            f++;
        }
    }
    p->depth--;
    return left;
}

int symbolic_parse(const char *text, Symbols *s, SymDimension *dimension_of, void *ctx,
                   Symbolic *out, Error *err)
{
    Parser p = {.start = text,
                .p = text,
                .symbols = s,
                .dimension = dimension_of,
                .ctx = ctx,
                .out = out,
                .err = err};
    *out = (Symbolic){0};
    if (strlen(text) > SYMBOLIC_MAX_TEXT)
        return error_set(err, ERROR_LIMIT, "a size has %zu bytes of text, at most %d expected",
                         strlen(text), SYMBOLIC_MAX_TEXT);
    int rc = expression(&p, 0);
    if (rc >= 0) blanks(&p);
    if (rc >= 0 && *p.p) rc = fail(&p, "expected the end");
    if (rc >= 0) return 0;
    symbolic_release(out);
    return -1;
}
