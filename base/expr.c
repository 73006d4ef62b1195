/* A recursive-descent evaluator; binary() climbs the levels of precedence. */
#include "base/expr.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

enum { EXPR_MAX_TEXT = 4096, EXPR_MAX_DEPTH = 64 };

typedef struct {
    const char *start, *p, *end;
    ExprLookup *lookup;
    void *ctx;
    int depth;
    int skip; /* in a branch that is not taken: a missing name or 1/0 is no error */
    Error *err;
} Parser;

static int ternary(Parser *ps, int64_t *v);

static int fail(Parser *ps, const char *what)
{
    return error_set(ps->err, ERROR_INVALID, "expression \"%.*s\", column %d: %s",
                     (int)(ps->end - ps->start), ps->start, (int)(ps->p - ps->start) + 1, what);
}

static void blanks(Parser *ps)
{
    while (ps->p < ps->end && isspace((unsigned char)*ps->p)) ps->p++;
}

static int take(Parser *ps, const char *token)
{
    blanks(ps);
    const char *p = ps->p;
    while (*token && p < ps->end && *p == *token) p++, token++;
    if (*token) return 0;
    ps->p = p;
    return 1;
}

static int number(Parser *ps, int64_t *v)
{
    char digits[40];
    size_t n = 0;
    while (ps->p + n < ps->end && isalnum((unsigned char)ps->p[n]) && n + 1 < sizeof digits) {
        digits[n] = ps->p[n];
        n++;
    }
    digits[n] = 0;
    char *rest;
    errno = 0;
    long long x = strtoll(digits, &rest, digits[0] == '0' && (digits[1] | 32) == 'x' ? 16 : 10);
    if (errno || *rest) return fail(ps, "expected an integer literal");
    ps->p += n;
    *v = x;
    return 0;
}

static int apply_call(Parser *ps, const char *name, size_t len, const int64_t *a, int n, int64_t *v)
{
    if (word_is(name, len, "log2")) {
        if (n != 1) return fail(ps, "log2 takes one argument");
        if (a[0] < 1) return ps->skip ? (*v = 0) : fail(ps, "log2 of a number below 1");
        *v = 63 - __builtin_clzll((unsigned long long)a[0]);
        return 0;
    }
    if (n != 2) return fail(ps, "ceil_div, min and max take two arguments");
    if (word_is(name, len, "min")) {
        *v = a[0] < a[1] ? a[0] : a[1];
        return 0;
    }
    if (word_is(name, len, "max")) {
        *v = a[0] > a[1] ? a[0] : a[1];
        return 0;
    }
    if (word_is(name, len, "ceil_div")) {
        if (ps->skip) return (int)(*v = 0);
        if (a[1] <= 0 || a[0] < 0) return fail(ps, "ceil_div expects a >= 0 and b > 0");
        *v = a[0] / a[1] + (a[0] % a[1] != 0);
        return 0;
    }
    return fail(ps, "unknown function (known: ceil_div, min, max, log2)");
}

static int name_or_call(Parser *ps, int64_t *v)
{
    const char *name = ps->p;
    size_t len = word_length(name, ps->end);
    ps->p += len;
    if (take(ps, "(")) {
        int64_t args[2] = {0, 0};
        int n = 0;
        do {
            if (n == 2) return fail(ps, "too many arguments");
            if (ternary(ps, &args[n++])) return -1;
        } while (take(ps, ","));
        if (!take(ps, ")")) return fail(ps, "expected ')' after the arguments");
        return apply_call(ps, name, len, args, n, v);
    }
    if (ps->lookup && !ps->lookup(ps->ctx, name, len, v)) return 0;
    if (ps->skip) return (int)(*v = 0);
    ps->p = name;
    return error_set(
        ps->err, ERROR_UNKNOWN_NAME, "expression \"%.*s\", column %d: unknown name '%.*s'",
        (int)(ps->end - ps->start), ps->start, (int)(name - ps->start) + 1, (int)len, name);
}

static int primary(Parser *ps, int64_t *v)
{
    blanks(ps);
    if (ps->p >= ps->end) return fail(ps, "expected a value, found the end");
    if (take(ps, "(")) {
        if (ternary(ps, v)) return -1;
        return take(ps, ")") ? 0 : fail(ps, "expected ')'");
    }
    if (isdigit((unsigned char)*ps->p)) return number(ps, v);
    if (word_begins_name(*ps->p)) return name_or_call(ps, v);
    return fail(ps, "expected a number, a name or '('");
}

static int unary(Parser *ps, int64_t *v)
{
    if (++ps->depth > EXPR_MAX_DEPTH) return fail(ps, "nested too deeply (at most 64 levels)");
    blanks(ps);
    int rc;
    if (take(ps, "-")) {
        rc = unary(ps, v);
        if (!rc && __builtin_sub_overflow((int64_t)0, *v, v))
            rc = fail(ps, "overflow of 64-bit integers");
    } else if (take(ps, "+")) {
        rc = unary(ps, v);
    } else if (ps->p < ps->end && *ps->p == '!' && !(ps->p + 1 < ps->end && ps->p[1] == '=')) {
        ps->p++;
        rc = unary(ps, v);
        *v = !*v;
    } else if (take(ps, "~")) {
        rc = unary(ps, v);
        *v = ~*v;
    } else {
        rc = primary(ps, v);
    }
    ps->depth--;
    return rc;
}

/* Binary operators by level, weakest first; longer spellings before their prefixes. */
static const char *const levels[][5] = {
    {"||"},       {"&&"},     {"|"},          {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"},
    {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
enum { LEVELS = sizeof levels / sizeof *levels };

/* The level of the operator that comes next, or -1: there is none. */
static int operator_at(Parser *ps, const char **op)
{
    blanks(ps);
    const char *p = ps->p;
    if (p == ps->end || !strchr("|&^=!<>+-*/%", *p)) return -1;
    char next = p + 1 < ps->end ? p[1] : 0;
    for (int level = 0; level < LEVELS; level++)
        for (int i = 0; i < 5 && levels[level][i]; i++) {
            *op = levels[level][i];
            if (**op != *p || ((*op)[1] && (*op)[1] != next)) continue;
            if (!(*op)[1] && (next == *p || next == '=') && strchr("|&<>", *p)) continue;
            return level;
        }
    return -1;
}

static int combine(Parser *ps, const char *op, int64_t a, int64_t b, int64_t *v)
{
    int overflow = 0;
    switch (op[0] + (op[1] ? 256 * op[1] : 0)) {
    case '+': overflow = __builtin_add_overflow(a, b, v); break;
    case '-': overflow = __builtin_sub_overflow(a, b, v); break;
    case '*': overflow = __builtin_mul_overflow(a, b, v); break;
    case '/':
    case '%':
        if (b == 0 || (a == INT64_MIN && b == -1))
            return ps->skip ? (int)(*v = 0) : fail(ps, "division by zero or overflow");
        *v = *op == '/' ? a / b : a % b;
        break;
    case '<' + 256 * '<':
    case '>' + 256 * '>':
        if (b < 0 || b > 62)
            return ps->skip ? (int)(*v = 0) : fail(ps, "shift count outside 0..62");
        if (*op == '<')
            overflow = __builtin_mul_overflow(a, (int64_t)1 << b, v);
        else
            *v = a >> b;
        break;
    case '<': *v = a < b; break;
    case '>': *v = a > b; break;
    case '<' + 256 * '=': *v = a <= b; break;
    case '>' + 256 * '=': *v = a >= b; break;
    case '=' + 256 * '=': *v = a == b; break;
    case '!' + 256 * '=': *v = a != b; break;
    case '&': *v = a & b; break;
    case '^': *v = a ^ b; break;
    case '|': *v = a | b; break;
    }
    if (overflow && !ps->skip) return fail(ps, "overflow of 64-bit integers");
    if (overflow) *v = 0;
    return 0;
}

/* A value, and the operators of this and of stronger levels that follow it. */
static int binary(Parser *ps, int weakest, int64_t *v)
{
    const char *op = "";
    int level;
    if (unary(ps, v)) return -1;
    while (weakest < LEVELS && (level = operator_at(ps, &op)) >= weakest) {
        int64_t b;
        ps->p += strlen(op);
        int decided = level == 0 ? *v != 0 : level == 1 ? *v == 0 : 0;
        ps->skip += decided;
        int rc = binary(ps, level + 1, &b);
        ps->skip -= decided;
        if (rc) return -1;
        if (level == 0)
            *v = *v || b;
        else if (level == 1)
            *v = *v && b;
        else if (combine(ps, op, *v, b, v))
            return -1;
    }
    return 0;
}

static int ternary(Parser *ps, int64_t *v)
{
    if (++ps->depth > EXPR_MAX_DEPTH) return fail(ps, "nested too deeply (at most 64 levels)");
    int64_t cond, yes, no;
    if (binary(ps, 0, &cond)) return -1;
    *v = cond;
    if (take(ps, "?")) {
        ps->skip += !cond;
        int rc = ternary(ps, &yes);
        ps->skip -= !cond;
        if (rc) return -1;
        if (!take(ps, ":")) return fail(ps, "expected ':'");
        ps->skip += !!cond;
        rc = ternary(ps, &no);
        ps->skip -= !!cond;
        if (rc) return -1;
        *v = cond ? yes : no;
    }
    ps->depth--;
    return 0;
}

int expr_eval(const char *text, size_t len, ExprLookup *lookup, void *ctx, int64_t *value,
              Error *err)
{
    if (len > EXPR_MAX_TEXT)
        return error_set(err, ERROR_LIMIT, "expression of %zu bytes: at most %d are read", len,
                         EXPR_MAX_TEXT);
    Parser ps = {
        .start = text, .p = text, .end = text + len, .lookup = lookup, .ctx = ctx, .err = err};
    if (ternary(&ps, value)) return -1;
    blanks(&ps);
    if (ps.p < ps.end) return fail(&ps, "expected the end of the expression");
    return 0;
}
