/* Writes and reads the three sections of an answer. */
#include "stages/data/answer.h"

#include <string.h>

static const char code_heading[] = "## Code";

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

static const char *last_block(const char *p, const char *end, size_t *len)
{
    const char *found = NULL;
    for (;;) {
        const char *open = fence(p, end);
        const char *nl = open ? memchr(open, '\n', (size_t)(end - open)) : NULL;
        const char *close = nl ? fence(nl + 1, end) : NULL;
        if (!close) return found;
        found = nl + 1;
        *len = (size_t)(close - found);
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
        if ((size_t)(end - p) >= sizeof code_heading - 1 &&
            !memcmp(p, code_heading, sizeof code_heading - 1))
            heading = p;
    const char *code = heading ? last_block(heading, end, len) : NULL;
    return code ? code : last_block(text, end, len);
}
