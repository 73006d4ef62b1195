/* The style and the scripts of the page, which carries them without comments and needless blanks. */
#include <ctype.h>
#include <string.h>

#include "base/embed.h"
#include "report/report.h"

EMBED(report_page_css, "report/page.css")
EMBED(report_page_js, "report/page.js")
EMBED(report_first_js, "report/first.js")

/* *lines: the line breaks among the blanks. Comments are blanks. */
static const char *skip_blanks(const char *at, int *lines)
{
    for (*lines = 0;; at++) {
        if (!strncmp(at, "/*", 2) && strstr(at + 2, "*/"))
            at = strstr(at + 2, "*/") + 1;
        else if (!isspace((unsigned char)*at))
            return at;
        else
            *lines += *at == '\n';
    }
}

/* The bytes of the string that begins here, or 1. */
static size_t token(const char *at)
{
    size_t n = 1;
    if (*at != '\'' && *at != '"') return 1;
    while (at[n] && at[n] != *at) n += at[n] == '\\' && at[n + 1] ? 2 : 1;
    return n + !!at[n];
}

/* `alone`: characters beside which blanks mean nothing. An empty line becomes a line break. */
static void squeeze(Buffer *b, const char *at, const char *alone)
{
    char last = 0;
    int lines, ignored;
    while (*at) {
        const char *from = at;
        at = skip_blanks(at, &lines);
        if (last && *at && lines > 1)
            buffer_puts(b, "\n");
        else if (last && *at && at > from && !strchr(alone, last) && !strchr(alone, *at))
            buffer_puts(b, " ");
        size_t n = *at ? token(at) : 0;
        int needless = *at == ';' && *skip_blanks(at + 1, &ignored) == '}';
        if (!needless && n) {
            buffer_append(b, at, n);
            last = at[n - 1];
        }
        at += n;
    }
}

void page_style(Buffer *b)
{
    squeeze(b, report_page_css, "{};,:>");
    buffer_puts(b, "\n");
}

void page_script(Buffer *b)
{
    squeeze(b, report_page_js, "{}()[];,:?=+-*/<>!&|.'");
}

void page_first_script(Buffer *b)
{
    squeeze(b, report_first_js, "{}()[];,:?=+-*/<>!&|.'");
}
