/* A lowered name of C++ is _Z, the length and the letters of the name, and the parameters; in namespaces _ZN,
 * each part so, and E. A function with C linkage has its own name. */
#include "eval/compile/entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

enum { NAME_MAX_BYTES = 256, PREFIX_MAX = 2 * NAME_MAX_BYTES };

int entry_is_plain(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!word_has(*p) && *p != ':') return 0;
    return *name && strlen(name) < NAME_MAX_BYTES;
}

int entry_same_name(const char *a, const char *end, const char *b)
{
    for (;;) {
        while (a < end && *a == ' ') a++;
        while (*b == ' ' || *b == '\t') b++;
        if (a == end || !*b) return a == end && !*b;
        if (*a++ != *b++) return 0;
    }
}

/* How the lowered name of a function of C++ begins. */
static void lowered_prefix(const char *name, char out[PREFIX_MAX])
{
    const char *end = name + strlen(name);
    int nested = strchr(name, ':') != NULL;
    size_t used = (size_t)snprintf(out, PREFIX_MAX, "_Z%s", nested ? "N" : "");
    for (const char *p = name; p < end;) {
        size_t n = word_length(p, end);
        if (n) used += (size_t)snprintf(out + used, PREFIX_MAX - used, "%zu%.*s", n, (int)n, p);
        p += n ? n : 1;
    }
    if (nested) snprintf(out + used, PREFIX_MAX - used, "E");
}

char *entry_find(const char *ptx, const char *name)
{
    static const char mark[] = ".entry ";
    char prefix[PREFIX_MAX];
    char *found = NULL;
    while (*name == ':') name++;
    lowered_prefix(name, prefix);
    size_t n_prefix = strlen(prefix), n_name = strlen(name);
    for (const char *p = ptx; (p = strstr(p, mark));) {
        p += sizeof mark - 1;
        size_t n = strcspn(p, "( \t\r\n");
        int by_prefix = n > n_prefix && !strncmp(p, prefix, n_prefix) && p[n_prefix] != 'I';
        if (!by_prefix && (n != n_name || strncmp(p, name, n))) continue;
        if (found) {
            free(found);
            return NULL;
        }
        found = memory_strndup(p, n);
    }
    return found;
}
