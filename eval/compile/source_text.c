/* One pass that knows comments, strings and spliced lines. In a raw string a line that looks like a
 * directive is blanked too. */
#include "eval/compile/source_text.h"

#include <ctype.h>
#include <string.h>

#include "base/words.h"

typedef struct {
    char *text;
    size_t len;
} Source;

/* Steps over backslashes that splice the next line. */
static size_t spliced(const Source *s, size_t i)
{
    for (;;) {
        size_t k = i + 1;
        if (i >= s->len || s->text[i] != '\\') return i;
        if (k < s->len && s->text[k] == '\r') k++;
        if (k >= s->len || s->text[k] != '\n') return i;
        i = k + 1;
    }
}

static int at(const Source *s, size_t i)
{
    return i < s->len ? (unsigned char)s->text[i] : 0;
}

static size_t next(const Source *s, size_t i)
{
    return spliced(s, i + 1);
}

/* Returns the end of the comment at i, or i when there is none. */
static size_t comment(const Source *s, size_t i)
{
    size_t k = next(s, i);
    if (at(s, i) != '/' || (at(s, k) != '/' && at(s, k) != '*')) return i;
    int block = at(s, k) == '*', last = 0;
    for (k = next(s, k); k < s->len; k = next(s, k)) {
        if (!block && at(s, k) == '\n') return k;
        if (block && last == '*' && at(s, k) == '/') return next(s, k);
        last = at(s, k);
    }
    return s->len;
}

static size_t blanks(const Source *s, size_t i)
{
    for (size_t end; i < s->len; i = end) {
        end = comment(s, i);
        if (end == i) {
            if (!isspace(at(s, i)) || at(s, i) == '\n') return i;
            end = next(s, i);
        }
    }
    return i;
}

/* Is a directive "line", or a line mark such as "# 5", behind the # before i? */
static int is_line(const Source *s, size_t i)
{
    i = blanks(s, i);
    if (isdigit(at(s, i))) return 1;
    for (const char *c = "line"; *c; c++, i = next(s, i))
        if (at(s, i) != *c) return 0;
    return !word_has((char)at(s, i));
}

/* Blanks from i to the end of the line, but for comments. Returns where that is. */
static size_t blank(Source *s, size_t i)
{
    while (i < s->len && s->text[i] != '\n') {
        size_t end = comment(s, i);
        if (end == i) {
            for (end = next(s, i); i < end && i < s->len; i++)
                if (s->text[i] != '\n') s->text[i] = ' ';
        }
        i = end;
    }
    return i;
}

/* Returns the end of the string or character at i, at the latest the end of the line. */
static size_t literal(const Source *s, size_t i)
{
    int quote = at(s, i);
    for (i = next(s, i); i < s->len && at(s, i) != quote && at(s, i) != '\n'; i = next(s, i))
        if (at(s, i) == '\\') i = next(s, i);
    return at(s, i) == quote ? next(s, i) : i;
}

void source_text_prepare(char *text, size_t len)
{
    Source s = {text, len};
    int starts = 1; /* nothing but blanks so far on this line */
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\xff') text[i] = '?';
    for (size_t i = spliced(&s, 0), end; i < len; i = end) {
        int c = at(&s, i);
        size_t second = next(&s, i);
        int digraph = c == '%' && at(&s, second) == ':';
        if ((end = comment(&s, i)) != i) continue;
        end = second;
        if (starts && (c == '#' || digraph)) {
            if (is_line(&s, digraph ? next(&s, second) : second)) end = blank(&s, i);
            starts = 0;
        } else if (c == '"' || (c == '\'' && !(i && isalnum(at(&s, i - 1))))) {
            end = literal(&s, i);
        }
        starts = c == '\n' || (starts && isspace(c));
    }
}
