/* A declaration is taken to be a statement that begins with two identifiers, such as `float sum`
 * or `const float4 v`, and names the variable before any `(`. */
#include "eval/candidate/undefined_name.h"

#include <ctype.h>
#include <string.h>

#include "base/words.h"

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

/* What stands behind the name: 1 no initialiser, 0 one, -1 it is no declaration of this name. */
static int declared(const char *source, const char *end, const char *name, size_t n)
{
    const char *from = name, *after = name + n;
    int depth = 0;
    while (from > source && !ends_statement(from[-1]) && from[-1] != '\n') from--;
    while (from < name && isspace((unsigned char)*from)) from++;
    if (from == name || !begins_declaration(from, name + n - 1)) return -1;
    for (const char *p = from; p < name; p++) {
        if (*p == '(' || *p == '=') depth += *p == '(' ? 1 : 0;
        if (*p == ')') depth--;
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
