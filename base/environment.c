/* Numbers by name in a variable of the environment. */
#include "base/environment.h"

#include <stdlib.h>
#include <string.h>

#include "base/words.h"

/* Reads "NAME=NUMBER", of `len` bytes. */
static int read_word(const char *variable, const char *word, size_t len,
                     const EnvironmentNumber *table, int n, Error *err)
{
    size_t name = strcspn(word, "=");
    for (int i = 0; i < n; i++) {
        if (name >= len || !word_is(word, name, table[i].name)) continue;
        char *end;
        double v = strtod(word + name + 1, &end);
        if (end == word + name + 1 || end != word + len ||
            !(v >= table[i].low && v <= table[i].high))
            return error_set(err, ERROR_USAGE, "%s: expected %s=%g to %g, found '%.*s'", variable,
                             table[i].name, table[i].low, table[i].high, (int)len, word);
        *table[i].value = v;
        return 0;
    }
    char known[256] = "";
    for (int i = 0; i < n && strlen(known) + strlen(table[i].name) + 8 < sizeof known; i++) {
        if (i) strcat(known, ",");
        strcat(strcat(known, table[i].name), "=N");
    }
    return error_set(err, ERROR_USAGE, "%s: expected some of %s, found '%.*s'", variable, known,
                     (int)len, word);
}

int environment_numbers(const char *variable, const EnvironmentNumber *table, int n, Error *err)
{
    const char *p = getenv(variable);
    while (p && *p) {
        size_t len = strcspn(p, ",");
        if (read_word(variable, p, len, table, n, err)) return -1;
        p += len + (p[len] == ',');
    }
    return 0;
}

long environment_test(const char *name)
{
    double refuse = 0, parts = 0;
    const EnvironmentNumber table[] = {{"refuse", 0, 1e9, &refuse}, {"parts", 0, 1e9, &parts}};
    Error unused;
    if (environment_numbers("QUERN_TEST", table, 2, &unused)) return 0;
    return (long)(strcmp(name, "parts") ? refuse : parts);
}
