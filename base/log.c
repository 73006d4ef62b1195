/* Lines on stderr, one write each, and a progress line on terminals. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"

static const char *program_name = "quern";
static int level = 1; /* 0 quiet, 1 info, 2 debug */
static int on_terminal;
static double started;
static int line_open; /* a progress line is on the terminal */

void log_open(const char *program)
{
    program_name = program;
    const char *s = getenv("QUERN_LOG");
    level = !s ? 1 : !strcmp(s, "quiet") ? 0 : !strcmp(s, "debug") ? 2 : 1;
    on_terminal = isatty(STDERR_FILENO);
    started = clock_seconds();
}

/* Writes the line at once, so that lines of parallel programs do not mix. */
static void say(const char *tag, const char *fmt, va_list ap)
{
    char line[2048];
    int n = snprintf(line, sizeof line, "%s%s: %s", line_open ? "\r\033[K" : "", program_name, tag);
    line_open = 0;
    vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    strcat(line, "\n");
    fputs(line, stderr);
}

void log_info(const char *fmt, ...)
{
    if (level < 1) return;
    va_list ap;
    va_start(ap, fmt);
    say("", fmt, ap);
    va_end(ap);
}

void log_debug(const char *fmt, ...)
{
    char since[32];
    if (level < 2) return;
    va_list ap;
    va_start(ap, fmt);
    snprintf(since, sizeof since, "%.1f ms: ", (clock_seconds() - started) * 1e3);
    say(since, fmt, ap);
    va_end(ap);
}

void log_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("warning: ", fmt, ap);
    va_end(ap);
}

_Noreturn void log_exit(int status, const Error *err)
{
    fprintf(stderr, "%s%s: %s\n", line_open ? "\r\033[K" : "", program_name, err->text);
    exit(status);
}

_Noreturn void log_die(const Error *err)
{
    int signal = stop_requested();
    log_exit(signal ? EXIT_STATUS_SIGNAL + signal : error_exit_status(err->code), err);
}

static void draw(const Progress *p, double now)
{
    double dt = now - p->start, rate = dt > 0 ? (double)(p->done - p->first) / dt : 0;
    double left = rate > 0 ? (double)(p->total - p->done) / rate : 0;
    fprintf(stderr, "%s%s: %s %ld/%ld %s, %.1f/s, %.0f s left%s", on_terminal ? "\r\033[K" : "",
            program_name, p->what, p->done, p->total, p->unit, rate, left, on_terminal ? "" : "\n");
    line_open = on_terminal;
}

void progress_start(Progress *p, const char *what, const char *unit, long done, long total)
{
    double now = clock_seconds();
    *p = (Progress){.what = what,
                    .unit = unit,
                    .done = done,
                    .total = total,
                    .start = now,
                    .shown = now,
                    .first = done};
}

void progress_set(Progress *p, long done)
{
    p->done = done;
    double now = clock_seconds();
    if (level < 1 || now - p->shown < (on_terminal ? 1.0 / 6 : 60.0)) return;
    p->shown = now;
    draw(p, now);
}

void progress_end(Progress *p)
{
    double dt = clock_seconds() - p->start;
    long fresh = p->done - p->first;
    log_info("%s: %ld of %ld %s, %ld of them now, in %.1f s (%.1f/s)", p->what, p->done, p->total,
             p->unit, fresh, dt, dt > 0 ? (double)fresh / dt : 0.0);
}

int log_close(int status)
{
    errno = 0;
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write the result to stdout: %s\n", program_name,
                strerror(errno));
        return status ? status : EXIT_STATUS_SYSTEM;
    }
    return status;
}
