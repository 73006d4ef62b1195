/* Words and lists in the text of a setting. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/settings/settings.h"

const char *setting_next_word(const char **p, size_t *len)
{
    static const char between[] = ", \t";
    const char *word = *p + strspn(*p, between);
    *len = strcspn(word, between);
    *p = word + *len;
    return *len ? word : NULL;
}

char *setting_join(const char *list, char by)
{
    char *out = memory_alloc(strlen(list) + 1), *end = out;
    size_t n;
    for (const char *word; (word = setting_next_word(&list, &n));) {
        if (end > out) *end++ = by;
        memcpy(end, word, n);
        end += n;
    }
    *end = 0;
    return out;
}

int setting_has_word(const char *list, const char *word, size_t len)
{
    size_t n;
    for (const char *w; (w = setting_next_word(&list, &n));)
        if (n == len && !memcmp(w, word, len)) return 1;
    return 0;
}

void setting_add_word(char **list, const char *word, size_t len)
{
    if (setting_has_word(*list, word, len)) return;
    char *longer = memory_printf("%s%s%.*s", *list, **list ? " " : "", (int)len, word);
    free(*list);
    *list = longer;
}

char *setting_shell_word(const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:+,@%^-";
    if (*text && !text[strspn(text, plain)]) return memory_strdup(text);
    char *out = memory_alloc(4 * strlen(text) + 3), *end = out;
    *end++ = '\'';
    for (; *text; text++) {
        if (*text == '\'') {
            memcpy(end, "'\\''", 4);
            end += 4;
        } else {
            *end++ = *text;
        }
    }
    *end++ = '\'';
    *end = 0;
    return out;
}

void setting_replace_letter(char *text, char from, char to)
{
    for (; *text; text++)
        if (*text == from) *text = to;
}
