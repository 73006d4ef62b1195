/* Placeholders are looked up in the list of values from its beginning: lists are short. */
#include "base/part.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char mark[] = "//@ ", letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";

/* The text of a part: its first byte and behind its last. */
static const char *find_part(const char *file, const char *part, const char **end)
{
    size_t n = strlen(part);
    for (const char *at = file; (at = strstr(at, mark)); at += n) {
        at += sizeof mark - 1;
        if (strncmp(at, part, n) || !strchr(": \n", at[n])) continue;
        const char *from = strchr(at, '\n');
        if (!from++) break;
        *end = strstr(from, mark);
        if (!*end) *end = from + strlen(from);
        if (*end - from > 1 && (*end)[-2] == '\n') --*end;
        if (*end - from > 1 && (*end)[-2] == '\\') *end -= 2;
        return from;
    }
    abort();
}

static void put_value(Buffer *b, const char *values, const char *name, size_t n)
{
    for (const char *at = values; *at; at += strcspn(at, ";"), at += *at == ';') {
        if (!strncmp(at, name, n) && at[n] == '=') {
            buffer_append(b, at + n + 1, strcspn(at + n + 1, ";"));
            return;
        }
    }
    abort();
}

static void put(Buffer *b, const char *file, const char *part, const char *list)
{
    const char *end, *at = find_part(file, part, &end);
    while (at < end) {
        const char *next = memchr(at, '@', (size_t)(end - at));
        size_t n = next ? strspn(next + 1, letters) : 0;
        int named = n && next[n + 1] == '@';
        if (!next) next = end;
        buffer_append(b, at, (size_t)(next - at) + (next < end && !named));
        if (named) put_value(b, list, next + 1, n);
        at = named ? next + n + 2 : next + 1;
    }
}

void part_put(Buffer *b, const char *file, const char *part)
{
    put(b, file, part, "");
}

void part_fill(Buffer *b, const char *file, const char *part, const char *values, ...)
{
    va_list args;
    va_start(args, values);
    char *list = memory_vprintf(values, args);
    va_end(args);
    for (const char *at = list; *at; at += strcspn(at, ";"), at += *at == ';')
        if (at[strspn(at, letters)] != '=') abort(); /* a semicolon in a value */
    put(b, file, part, list);
    free(list);
}
