/* The source is read as text, without a parser of C++. */
#include "eval/candidate/source_hints.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"

/* ---- host code: one pass that steps over comments, strings and characters ---- */

/* A word that begins with one of these counts; those that end in '(' need a call. */
static const char *const marks[] = {
    "<<<",         "main(",           "cudaMalloc",   "cudaMemcpy", "cudaFree",
    "cudaLaunch",  "cudaDeviceSynch", "cudaStream",   "cudaEvent",  "cudaGraph",
    "torch::",     "PYBIND11_MODULE", "at::Tensor",   "TORCH_",     "load_inline",
    "std::vector", "std::cout",       "cublasCreate", "cudnnCreate"};

/* Returns the length of the comment, string or character at p, or 0. */
static size_t skipped(const char *p, size_t n)
{
    if (n >= 2 && p[0] == '/' && (p[1] == '/' || p[1] == '*')) {
        const char *close = p[1] == '/' ? memchr(p, '\n', n) : memmem(p + 2, n - 2, "*/", 2);
        return close ? (size_t)(close - p) + (p[1] == '/' ? 0 : 2) : n;
    }
    if (*p != '"' && *p != '\'') return 0;
    size_t i = 1;
    while (i < n && p[i] != *p && p[i] != '\n') i += p[i] == '\\' && i + 1 < n ? 2 : 1;
    return i < n ? i + 1 : n;
}

static const char *mark_at(const char *p, size_t n)
{
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        if (n >= strlen(marks[k]) && !memcmp(p, marks[k], strlen(marks[k]))) return marks[k];
    return NULL;
}

int host_code(const char *source, size_t len, char *out, size_t size)
{
    int line = 1;
    unsigned char begins[256] = {0}; /* by the first character: a mark begins with it */
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) begins[(unsigned char)*marks[k]] = 1;
    for (size_t i = 0, skip; i < len; i += skip) {
        skip = skipped(source + i, len - i);
        int may = !skip && begins[(unsigned char)source[i]];
        const char *mark = may ? mark_at(source + i, len - i) : NULL;
        if (mark && word_has(*mark) && i && word_has(source[i - 1])) mark = NULL;
        if (mark) {
            size_t n = strcspn(mark, "(");
            if (word_has(*mark)) n += word_length(source + i + n, source + len);
            snprintf(out, size, "%.*s", (int)n, source + i);
            return line;
        }
        if (!skip) skip = 1;
        for (size_t k = 0; k < skip; k++) line += source[i + k] == '\n';
    }
    return 0;
}

/* ---- undefined names ---- */

/* A declaration is taken to be a statement that begins with two identifiers, such as `float sum`
 * or `const float4 v`, and names the variable before any `(`. */
static int ends_statement(char c)
{
    return c == ';' || c == '{' || c == '}';
}

/* Does the statement that ends before `at` begin with two words, the second one at or before it? */
static int begins_declaration(const char *from, const char *at)
{
    int words = 0;
    for (const char *p = from; p <= at && words < 2;) {
        if (word_begins_name(*p)) {
            words++;
            p += word_length(p, at + 1);
        } else if (isspace((unsigned char)*p)) {
            p++;
        } else {
            return 0;
        }
    }
    return words == 2 && strncmp(from, "return", 6) && strncmp(from, "else", 4);
}

/* 1: the place declares the name without an initialiser; 0: with one; -1: it declares no such name. */
static int declared(const char *source, const char *end, const char *name, size_t n)
{
    const char *from = name, *after = name + n;
    int depth = 0;
    while (from > source && !ends_statement(from[-1]) && from[-1] != '\n') from--;
    while (from < name && isspace((unsigned char)*from)) from++;
    if (from == name || !begins_declaration(from, name + n - 1)) return -1;
    for (const char *p = from; p < name; p++) {
        depth += *p == '(';
        depth -= *p == ')';
    }
    if (depth) return -1;
    const char *before = name;
    while (before > from && isspace((unsigned char)before[-1])) before--;
    if (before == from || !(word_has(before[-1]) || before[-1] == ',')) return -1;
    while (after < end &&
           (isspace((unsigned char)*after) || *after == '[' || *after == ']' || word_has(*after)))
        after++;
    return after < end && (*after == ';' || *after == ',') ? 1 : 0;
}

/* Looks upwards from `limit` for the nearest declaration of the name. */
static int is_undefined(const char *source, const char *end, const char *limit, const char *name,
                        size_t n)
{
    for (const char *p = limit; p-- > source;) {
        if ((size_t)(end - p) < n || memcmp(p, name, n) || (p > source && word_has(p[-1])) ||
            (p + n < end && word_has(p[n])))
            continue;
        int found = declared(source, end, p, n);
        if (found >= 0) return found;
    }
    return 0;
}

int undefined_name(const char *source, size_t len, int line, char *out, size_t size)
{
    const char *end = source + len, *from = source;
    for (int i = 1; i < line && from; i++) {
        from = memchr(from, '\n', (size_t)(end - from));
        if (from) from++;
    }
    if (!from || line < 1) return 0;
    const char *stop = memchr(from, '\n', (size_t)(end - from));
    if (!stop) stop = end;
    size_t n;
    for (const char *p = word_next(from, stop, &n); p; p = word_next(p + n, stop, &n)) {
        if (n >= size || !word_begins_name(*p) || !is_undefined(source, end, stop, p, n)) continue;
        memcpy(out, p, n);
        out[n] = 0;
        return 1;
    }
    return 0;
}

/* ---- narrowed integers: parameters are found by the kernel's name and their position ---- */

enum { MAX_DECLARATION = 128 };

/* The text behind the parenthesis of the kernel's declaration; NULL: it is not found. */
static const char *parameters_of(const char *source, const char *end, const char *kernel)
{
    size_t n;
    for (const char *p = word_next(source, end, &n); p; p = word_next(p + n, end, &n)) {
        const char *next = p + n;
        if (!word_is(p, n, kernel)) continue;
        while (next < end && (*next == ' ' || *next == '\n')) next++;
        if (next < end && *next == '(') return next + 1;
    }
    return NULL;
}

/* Parameter number `which` of a list, without the spaces around it: its bytes; 0: there is no such one. */
static size_t parameter_at(const char **list, const char *end, int which)
{
    const char *p = *list;
    for (; which && p < end && *p != ')'; p++) which -= *p == ',';
    if (which) return 0;
    while (p < end && (*p == ' ' || *p == '\n')) p++;
    *list = p;
    while (p < end && *p != ',' && *p != ')') p++;
    while (p > *list && (p[-1] == ' ' || p[-1] == '\n')) p--;
    return (size_t)(p - *list);
}

static int is_narrow(const char *declaration)
{
    static const char *const wide[] = {"long", "int64_t", "uint64_t", "longlong2"};
    static const char *const narrow[] = {"int",     "unsigned", "int32_t", "uint32_t",
                                         "int16_t", "short",    "char",    "float"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (word_in(declaration, wide[i])) return 0;
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (word_in(declaration, narrow[i])) return 1;
    return 0;
}

/* The int64 input that a plan's argument names, or -1. */
static int wide_input(const Task *t, PlanText argument)
{
    PlanText name, offset;
    if (!plan_text_pointer(argument, &name, &offset)) return -1;
    for (int i = 0; i < t->n_inputs; i++)
        if (t->inputs[i].dtype == DTYPE_I64 && word_is(name.p, name.len, t->inputs[i].name))
            return i;
    return -1;
}

int wide_integers_narrowed(const Candidate *c, const Task *t, char *declaration, size_t size)
{
    const Plan *p = &c->plan;
    const char *end = c->source + strlen(c->source);
    for (int s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->steps[s];
        if (step->kernel < 0) continue;
        for (int a = 0; a < step->n_args; a++) {
            int input = wide_input(t, step->args[a]);
            const char *list = parameters_of(c->source, end, p->kernels[step->kernel]);
            size_t n = input < 0 || !list ? 0 : parameter_at(&list, end, a);
            if (!n || n >= MAX_DECLARATION) continue;
            snprintf(declaration, size, "%.*s", (int)n, list);
            if (is_narrow(declaration)) return input;
        }
    }
    return -1;
}
