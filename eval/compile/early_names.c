/* A name that is not clear is no mistake: the caller waits for NVRTC's own answer. */
#include "eval/compile/early_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "eval/device/device.h"

enum { MAX_NAME = 256, MAX_NAMES = 16 };

/* The last identifier before template arguments: foo of ns::foo<float>. Returns -1 for a longer
 * one. */
static int base_name(const char *expression, char out[MAX_NAME])
{
    size_t end = strcspn(expression, "<");
    while (end && isspace((unsigned char)expression[end - 1])) end--;
    size_t from = end;
    while (from && (isalnum((unsigned char)expression[from - 1]) || expression[from - 1] == '_'))
        from--;
    if (from == end || end - from >= MAX_NAME) return -1;
    snprintf(out, MAX_NAME, "%.*s", (int)(end - from), expression + from);
    return 0;
}

/* The name behind an .entry; -1: a longer one. */
static int entry_name(const char *p, char out[MAX_NAME])
{
    size_t n;
    p += strspn(p, " \t\n");
    n = strcspn(p, "( \t\n");
    if (!n || n >= MAX_NAME) return -1;
    snprintf(out, MAX_NAME, "%.*s", (int)n, p);
    return 0;
}

static char *find_entry(const char *ptx, const char *base)
{
    static const char word[] = ".entry";
    char name[MAX_NAME], plain[MAX_NAME], found[MAX_NAME] = "";
    for (const char *p = strstr(ptx, word); p; p = strstr(p, word)) {
        p += sizeof word - 1;
        if (entry_name(p, name)) return NULL;
        device_kernel_name(name, plain, sizeof plain);
        if (strcmp(plain, base)) continue;
        if (*found) return NULL;
        memcpy(found, name, sizeof found);
    }
    return *found ? memory_strdup(found) : NULL;
}

int early_names(const char *ptx, int n, const char *const *names, char **lowered)
{
    char base[MAX_NAME];
    if (n > MAX_NAMES) return -1;
    for (int i = 0; i < n; i++)
        if (base_name(names[i], base) || !(lowered[i] = find_entry(ptx, base))) return -1;
    return 0;
}
