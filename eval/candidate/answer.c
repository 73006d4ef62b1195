/* Writes and reads the three sections of an answer. */
#include "eval/candidate/answer.h"

#include <string.h>

/* Whether the line at p is a heading, of any level, that begins with the word Code. */
static int is_code_heading(const char *p, const char *end)
{
    static const char word[] = "Code";
    size_t n = 0;
    while (p < end && *p == '#') p++, n++;
    if (!n) return 0;
    while (p < end && *p == ' ') p++;
    return (size_t)(end - p) >= sizeof word - 1 && !memcmp(p, word, sizeof word - 1);
}

void answer_write(Buffer *out, const char *analysis, const char *design, const char *code)
{
    size_t n = strlen(code);
    buffer_printf(out,
                  "## Performance Analysis\n%s\n## Algorithm Design\n%s\n## Code "
                  "Implementation\n```cuda\n%s%s```",
                  analysis, design, code, n && code[n - 1] == '\n' ? "" : "\n");
}

/* Returns the first line that starts with "```". p is the start of a line. NULL: there is none. */
static const char *fence(const char *p, const char *end)
{
    while (p < end) {
        if (end - p >= 3 && !memcmp(p, "```", 3)) return p;
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl) return NULL;
        p = nl + 1;
    }
    return NULL;
}

static int is_code(const char *p, size_t n)
{
    return memmem(p, n, "__global__", 10) || memmem(p, n, "//@", 3);
}

/* The last block that holds code, such as one before the commands that build it; else the last. */
static const char *last_block(const char *p, const char *end, size_t *len)
{
    const char *found = NULL;
    int code = 0;
    for (;;) {
        const char *open = fence(p, end);
        const char *nl = open ? memchr(open, '\n', (size_t)(end - open)) : NULL;
        const char *close = nl ? fence(nl + 1, end) : NULL;
        if (!close) return found;
        int is = is_code(nl + 1, (size_t)(close - nl - 1));
        if (is || !code) {
            found = nl + 1;
            *len = (size_t)(close - found);
        }
        code |= is;
        p = memchr(close, '\n', (size_t)(end - close));
        if (!p) return found;
        p++;
    }
}

const char *answer_code(const char *text, size_t n, size_t *len)
{
    const char *end = text + n, *heading = NULL;
    *len = 0;
    for (const char *p = text; p && p < end;
         p = memchr(p, '\n', (size_t)(end - p)), p = p ? p + 1 : NULL)
        if (is_code_heading(p, end)) heading = p;
    const char *code = heading ? last_block(heading, end, len) : NULL;
    return code ? code : last_block(text, end, len);
}

typedef struct {
    int blocks; /* that hold code */
    int open;   /* line of the fence that nothing closes; 0: none */
    int fences;
} Fences;

static Fences count_fences(const char *text, const char *end)
{
    Fences f = {0};
    const char *start = NULL;
    int line = 0;
    for (const char *p = text; p && p < end;
         p = memchr(p, '\n', (size_t)(end - p)), p = p ? p + 1 : NULL) {
        line++;
        if (end - p < 3 || memcmp(p, "```", 3)) continue;
        f.fences++;
        if (start) f.blocks += is_code(start, (size_t)(p - start));
        f.open = start ? 0 : line;
        start = start ? NULL : p;
    }
    return f;
}

int answer_advice(const char *text, size_t n, int cut, Buffer *out)
{
    Fences f = count_fences(text, text + n);
    if (cut)
        return buffer_puts(out, "the limit on tokens cut the answer: think and comment less, so "
                                "that the code block ends before it");
    if (!f.fences)
        return buffer_puts(out, "the answer holds no code: put the whole candidate, plan and "
                                "kernels, between a line ```cuda and a line ```");
    if (f.open)
        return buffer_printf(out,
                             "the code block that begins on line %d of the answer is not closed: "
                             "end it with a line ```",
                             f.open);
    if (f.blocks > 1)
        return buffer_printf(out,
                             "the answer has %d code blocks, of which only the last is judged: put "
                             "plan and kernels into one",
                             f.blocks);
    return -1;
}
