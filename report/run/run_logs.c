/* Reads the ends of the logs, and more of a log whose last start is further from its end: a rule may
 * say much. What mk/run put aside counts too. */
#include "report/run/run_logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

enum { TAIL = 64 << 10, LONGEST_TAIL = 4 << 20, MAX_RULES = 100000 };

/* "2026-11-24T08:25:28Z" as seconds since 1970; 0 when it is no time. */
static double time_of(const char *text)
{
    struct tm t = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &t);
    return end ? (double)timegm(&t) : 0;
}

static void read_end(RunRule *r, const char *line)
{
    double seconds;
    int status;
    const char *comma = strchr(line, ',');
    if (!comma || sscanf(comma, ", %lf s, exit %d", &seconds, &status) != 2) return;
    r->seconds = seconds;
    r->spent += seconds;
    r->exit_status = status;
    r->state = !status ? RULE_DONE : status > 128 && status < 160 ? RULE_STOPPED : RULE_FAILED;
}

static void read_lines(RunRule *r, char *text)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!strncmp(line, "start: ", 7)) {
            r->start = time_of(line + 7);
            r->state = RULE_RUNNING;
            r->seconds = 0;
        } else if (!strncmp(line, "end: ", 5)) {
            read_end(r, line);
        } else if (strncmp(line, "command: ", 9) != 0) {
            snprintf(r->said, sizeof r->said, "%s", line);
        }
    }
}

/* Reads up to size - 1 bytes from the end of a file in dir. */
static int read_tail(int dir, const char *name, char *out, size_t size)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    off_t from =
        !fstat(fd, &st) && st.st_size > (off_t)size - 1 ? st.st_size - ((off_t)size - 1) : 0;
    ssize_t n = pread(fd, out, size - 1, from);
    close(fd);
    out[n > 0 ? n : 0] = 0;
    return n < 0 ? -1 : 0;
}

/* Reads a log's times, of the one before it too. */
static int read_log(int dir, const char *name, char *text, RunRule *r)
{
    char before[160];
    int rc;
    snprintf(before, sizeof before, "%s.1", name);
    if (!read_tail(dir, before, text, TAIL)) read_lines(r, text);
    double spent = r->spent;
    r->start = 0;
    size_t size = TAIL;
    while (!(rc = read_tail(dir, name, text, size))) {
        size_t n = strlen(text);
        r->spent = spent;
        read_lines(r, text);
        if (r->start > 0 || n < size - 1 || size >= LONGEST_TAIL) break;
        size *= 8;
    }
    return rc;
}

static void read_progress(int dir, RunRule *r)
{
    char name[160], line[512];
    snprintf(name, sizeof name, "%s.progress", r->name);
    if (r->state != RULE_RUNNING || read_tail(dir, name, line, sizeof line)) return;
    if (sscanf(line, "%23s %ld %ld %23s %lf %lf", r->what, &r->done, &r->total, r->unit, &r->rate,
               &r->left) != 6)
        r->what[0] = 0;
}

static int by_start(const void *a, const void *b)
{
    const RunRule *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return strcmp(x->name, y->name);
}

int run_logs_read(const char *dir, RunRule **out, int *n, Error *err)
{
    char *folder = memory_printf("%s/log", dir), *text = memory_alloc(LONGEST_TAIL);
    DIR *d = opendir(folder);
    int rc = 0;
    *out = NULL;
    *n = 0;
    if (!d && errno != ENOENT) rc = error_errno(err, "cannot read %s", folder);
    for (struct dirent *e; d && *n < MAX_RULES && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        RunRule r = {.state = RULE_RUNNING};
        if (len < 5 || len - 4 >= sizeof r.name || strcmp(e->d_name + len - 4, ".log")) continue;
        snprintf(r.name, sizeof r.name, "%.*s", (int)(len - 4), e->d_name);
        if (read_log(dirfd(d), e->d_name, text, &r)) continue; /* it has just gone */
        if (r.start <= 0) continue;
        read_progress(dirfd(d), &r);
        *out = memory_grow(*out, (size_t)*n + 1, sizeof **out);
        (*out)[(*n)++] = r;
    }
    if (d) closedir(d);
    if (*n) qsort(*out, (size_t)*n, sizeof **out, by_start);
    free(text);
    free(folder);
    return rc;
}
