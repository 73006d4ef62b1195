/* A message is cut at line breaks and between characters. */
#include "stages/policy/feedback.h"

#include <stdlib.h>
#include <string.h>

#include "stages/data/deciding.h"

enum { WORST = 3, QUOTED = 100 };

static size_t line_length(const char *p)
{
    return strcspn(p, "\n");
}

/* The longest prefix of at most max bytes that does not end inside a UTF-8 character. */
static size_t prefix(const char *p, size_t n, size_t max)
{
    if (n <= max) return n;
    while (max && ((unsigned char)p[max] & 0xc0) == 0x80) max--;
    return max;
}

static void put_clean(Buffer *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = (unsigned char)p[i] < 0x20 || p[i] == 0x7f ? ' ' : p[i];
        buffer_append(out, &c, 1);
    }
}

void feedback_trim(const char *message, int lines, size_t bytes, Buffer *out)
{
    int more = 0;
    for (const char *p = message; *p;) {
        size_t n = line_length(p), kept = lines > 0 ? prefix(p, n, bytes) : 0;
        if (lines-- > 0 && kept) {
            put_clean(out, p, kept);
            buffer_puts(out, kept < n ? " ...\n" : "\n");
            bytes = kept < n ? 0 : bytes - kept;
        } else if (n) {
            more++;
        }
        p += n + (p[n] == '\n');
    }
    if (more) buffer_printf(out, "(%d more line%s)\n", more, more > 1 ? "s" : "");
}

/* Writes 'Line 12, "acc += x[i];": ', or nothing when the verdict names no line. */
static void put_line(Buffer *out, const char *source, int64_t line, int full)
{
    const char *p = source;
    if (line < 1) return;
    for (int64_t k = 1; k < line && *p; k++) p += line_length(p) + (p[line_length(p)] == '\n');
    p += strspn(p, " \t");
    size_t n = line_length(p);
    buffer_printf(out, full ? "Line %lld" : "line %lld", (long long)line);
    if (full && n) {
        buffer_puts(out, ", \"");
        put_clean(out, p, prefix(p, n, QUOTED));
        buffer_puts(out, n > QUOTED ? " ...\"" : "\"");
    }
    buffer_puts(out, ": ");
}

static int put_wrong(const Sample *s, int full, Buffer *out, Error *err)
{
    int64_t line = 0;
    char *message = view_strdup(&s->verdict, "message", err);
    if (!message || view_int(&s->verdict, "line", &line, err)) {
        free(message);
        return -1;
    }
    if (full) buffer_printf(out, "It is not correct (%s). ", outcome_name(s->outcome));
    put_line(out, s->source, line, full);
    feedback_trim(*message ? message : outcome_name(s->outcome), full ? 8 : 1, full ? 1200 : 160,
                  out);
    free(message);
    return 0;
}

static int put_right(const Sample *s, int full, Buffer *out, Error *err)
{
    Deciding worst[WORST];
    double us = 0;
    int n = deciding_worst(&s->verdict, worst, WORST);
    if (view_float(&s->verdict, "time_us", &us, err)) return -1;
    if (full)
        buffer_printf(out,
                      "It is correct and %.2f times as fast as the baseline: it takes %.4g us.",
                      s->score, us);
    else
        buffer_printf(out, "score %.2f", s->score);
    if (full && n) buffer_puts(out, " What costs most:\n");
    for (int i = 0; i < n; i++)
        if (full)
            buffer_printf(out, "- %s: %s = %.4g; its resource takes %.0f%% of the time\n",
                          worst[i].label, worst[i].name, worst[i].slow, 100 * worst[i].share);
        else
            buffer_printf(out, "%s %s", i ? "," : ":", worst[i].label);
    if (!full || !n) buffer_puts(out, "\n");
    return 0;
}

int feedback_write(const Sample *s, int full, Buffer *out, Error *err)
{
    if (!s->verdict.map)
        return error_set(err, ERROR_INVALID, "sample %s: expected its verdict, found none", s->id);
    return s->outcome == OUTCOME_OK ? put_right(s, full, out, err) : put_wrong(s, full, out, err);
}
