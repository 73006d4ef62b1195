/* One loop for all: over the bytes of a word. */
#include "base/words.h"

size_t word_length(const char *p, const char *end)
{
    size_t n = 0;
    while (p + n != end && word_has(p[n])) n++;
    return n;
}

size_t word_name_length(const char *p, const char *end)
{
    return p != end && word_begins_name(*p) ? word_length(p, end) : 0;
}

size_t word_step(const char *p, const char *end)
{
    size_t n = word_length(p, end);
    return n ? n : 1;
}

const char *word_next(const char *p, const char *end, size_t *n)
{
    while (p != end && (end || *p) && !word_has(*p)) p++;
    *n = word_length(p, end);
    return *n ? p : NULL;
}

int word_is_name(const char *text, size_t size)
{
    size_t n = word_name_length(text, NULL);
    return n && !text[n] && n < size;
}

int word_choice(const char *choices, const char *word)
{
    int place = 0;
    for (const char *p = choices;; p++, place++) {
        size_t n = strcspn(p, "|");
        if (word_is(p, n, word)) return place;
        p += n;
        if (!*p) return -1;
    }
}

const char *word_chosen(const char *choices, int place, size_t *n)
{
    while (place-- > 0) choices = strchr(choices, '|') + 1;
    *n = strcspn(choices, "|");
    return choices;
}

int word_in(const char *text, const char *word)
{
    size_t n;
    for (const char *p = word_next(text, NULL, &n); p; p = word_next(p + n, NULL, &n))
        if (word_is(p, n, word)) return 1;
    return 0;
}
