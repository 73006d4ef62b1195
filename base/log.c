/* Lines on stderr, one write each, and a progress line on terminals. Where stderr is a pipe to a log,
 * mk/run passes the terminal on as a descriptor: the bar goes there and not into the log. Of programs
 * that run at once, the one that holds the lock of the logs' folder draws. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"

static const char *program_name = "quern";
static int level = 1; /* 0 quiet, 1 info, 2 debug */
static int on_terminal;
static double started;
static int line_open;                /* a progress line is on the terminal */
static int terminal = STDERR_FILENO; /* where it is drawn */
static const char *progress_file;    /* what quern-status reads, or NULL */

/* Opens descriptors 0 to 2 on /dev/null where they are closed, before main: a connection or a file would
 * else take their numbers, and get what is said to people. */
__attribute__((constructor)) static void open_descriptors(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)!open("/dev/null", O_RDWR);
}

/* Takes the terminal that mk/run hands on, if no other program draws there. The lock lives as long as
 * this process. */
static int draws_alone(void)
{
    char folder[4096];
    const char *slash = strrchr(progress_file, '/');
    if (!slash || (size_t)(slash - progress_file) >= sizeof folder) return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - progress_file), progress_file);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return 0;
    if (!flock(fd, LOCK_EX | LOCK_NB)) return 1;
    close(fd);
    return 0;
}

static void find_terminal(void)
{
    const char *given = getenv("QUERN_PROGRESS");
    char *end;
    if (!given) return;
    long fd = strtol(given, &end, 10);
    int handed = end > given && *end == ':' && fd >= 0 && fd <= 1 << 20;
    progress_file = handed ? end + 1 : given;
    if (handed) terminal = (int)fd;
}

void log_open(const char *program)
{
    program_name = program;
    const char *s = getenv("QUERN_LOG");
    level = !s ? 1 : !strcmp(s, "quiet") ? 0 : !strcmp(s, "debug") ? 2 : 1;
    on_terminal = isatty(STDERR_FILENO);
    started = clock_seconds();
    find_terminal();
}

/* Takes the progress line from the terminal, so that the next text does not follow it. */
static void clear_line(void)
{
    if (line_open && write(terminal, "\r\033[K", 4) < 0) on_terminal = 0;
    line_open = 0;
}

/* Writes the line at once, so that lines of parallel programs do not mix. */
static void say(const char *tag, const char *fmt, va_list ap)
{
    char line[2048];
    clear_line();
    int n = snprintf(line, sizeof line, "%s: %s", program_name, tag);
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
    clear_line();
    fprintf(stderr, "%s: %s\n", program_name, err->text);
    exit(status);
}

_Noreturn void log_die(const Error *err)
{
    int signal = stop_requested();
    log_exit(signal ? EXIT_STATUS_SIGNAL + signal : error_exit_status(err->code), err);
}

/* Writes what is done for quern-status: one line, replaced as a whole. A failure stops nothing. */
static void publish(const Progress *p, double rate, double left)
{
    char line[256];
    if (!progress_file) return;
    int fd = open(progress_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    int n = snprintf(line, sizeof line, "%s %ld %ld %s %.3f %.0f %*s\n", p->what, p->done, p->total,
                     p->unit, rate, left, 40, ""); /* a shorter line covers the longer one before */
    if (fd >= 0 && (pwrite(fd, line, (size_t)n, 0) < 0 || close(fd))) progress_file = NULL;
}

static void draw(const Progress *p, double now, int to_log)
{
    char line[512];
    double dt = now - p->start, rate = dt > 0 ? (double)(p->done - p->first) / dt : 0;
    double left = rate > 0 ? (double)(p->total - p->done) / rate : 0;
    publish(p, rate, left);
    int n = snprintf(line, sizeof line, "%s: %s %ld/%ld %s, %.1f/s, %.0f s left", program_name,
                     p->what, p->done, p->total, p->unit, rate, left);
    if (to_log) fprintf(stderr, "%s\n", line);
    if (!on_terminal || n >= (int)sizeof line) return;
    dprintf(terminal, "\r\033[K%s", line);
    line_open = 1;
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
                    .logged = now,
                    .first = done};
    if (terminal != STDERR_FILENO && !on_terminal) on_terminal = isatty(terminal) && draws_alone();
    if (level > 0) publish(p, 0, 0);
}

void progress_set(Progress *p, long done)
{
    p->done = done;
    double now = clock_seconds();
    /* A log gets a line a minute. */
    int to_log = (!on_terminal || terminal != STDERR_FILENO) && now - p->logged >= 60;
    int looked_at = on_terminal || progress_file;
    if (level < 1 || now - p->shown < (looked_at ? 1.0 / 6 : 60.0)) return;
    p->shown = now;
    if (to_log) p->logged = now;
    draw(p, now, to_log);
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
    if (!fflush(stdout) && !ferror(stdout)) return status;
    int failed = errno;
    struct pollfd out = {.fd = STDOUT_FILENO};
    if (poll(&out, 1, 0) == 1 && out.revents & POLLERR) /* a pager or `head` that has seen enough */
        return status ? status : EXIT_STATUS_SIGNAL + SIGPIPE;
    fprintf(stderr, "%s: cannot write the result to stdout: %s\n", program_name,
            failed ? strerror(failed) : "an earlier write failed");
    return status ? status : EXIT_STATUS_SYSTEM;
}
