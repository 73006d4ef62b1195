/* A scan without tables: every byte is looked at once. */
#include "eval/candidate/ptx_words.h"

#include <string.h>

#include "base/words.h"

static int is_word_char(char c)
{
    return word_has(c) || c == '$' || c == '%';
}

/* Skip everything that is no part of a word: other characters, comments, strings. */
static const char *skip(const char *p)
{
    while (*p && !is_word_char(*p)) {
        const char *end = NULL;
        if (!strncmp(p, "//", 2))
            end = strchr(p, '\n');
        else if (!strncmp(p, "/*", 2))
            end = (end = strstr(p + 2, "*/")) ? end + 1 : NULL;
        else if (*p == '"')
            end = strchr(p + 1, '"');
        else
            end = p;
        if (!end) return p + strlen(p);
        p = end + 1;
    }
    return p;
}

const char *ptxwords_next(const char *p, size_t *n)
{
    p = skip(p);
    for (*n = 0; is_word_char(p[*n]);) ++*n;
    return *n ? p : NULL;
}
