/* Reads settings.mk, which quern-config writes and Make includes. Only its assignments are read. */
#include "report/run/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/suggest.h"

enum { SETTINGS_MAX_BYTES = 64 << 20, MAX_ROUNDS = 1000 };

/* What Make reads: "$$" is "$", "$(hash)" is "#", "$(empty)" is nothing. */
static char *unescaped(const char *s, size_t n)
{
    char *out = memory_alloc(n + 1);
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        if (n - i >= 2 && !strncmp(s + i, "$$", 2)) {
            out[at++] = '$';
            i += 2;
        } else if (n - i >= 7 && !strncmp(s + i, "$(hash)", 7)) {
            out[at++] = '#';
            i += 7;
        } else if (n - i >= 8 && !strncmp(s + i, "$(empty)", 8)) {
            i += 8;
        } else {
            out[at++] = s[i++];
        }
    }
    out[at] = 0;
    return out;
}

static void read_line(RunFolder *r, const char *line, size_t n)
{
    static const char word[] = "override ";
    const char *assigned = memmem(line, n, " :=", 3);
    if (n < sizeof word || strncmp(line, word, sizeof word - 1) || !assigned) return;
    const char *name = line + sizeof word - 1, *value = assigned + 3;
    if (value < line + n && *value == ' ') value++;
    r->settings = memory_grow(r->settings, (size_t)r->n_settings + 1, sizeof *r->settings);
    r->settings[r->n_settings++] = (RunSetting){memory_strndup(name, (size_t)(assigned - name)),
                                                unescaped(value, (size_t)(line + n - value))};
}

/* make optimize without TRAIN=1: such a run has no settings. */
static int is_search(const RunFolder *r)
{
    char *path = run_folder_path(r, "search/begun");
    int is = file_exists(path);
    free(path);
    return is;
}

/* Names the run that is meant, or a few that are there. */
static void no_run(const char *run, const char *runs, const char *below, Error *err)
{
    enum { KNOWN = 256, SHOWN = 4 };
    char *names[KNOWN], listed[256] = "";
    int n = 0;
    DIR *d = opendir(runs);
    for (struct dirent *e; d && n < KNOWN && (e = readdir(d));) {
        char *file = memory_printf("%s/%s/settings.mk", runs, e->d_name);
        if (e->d_name[0] != '.' && file_exists(file)) names[n++] = memory_strdup(e->d_name);
        free(file);
    }
    if (d) closedir(d);
    const char *near = suggest_name(run, (const char *const *)names, n);
    for (int i = 0; i < n && i < SHOWN && !near; i++) {
        size_t at = strlen(listed);
        snprintf(listed + at, sizeof listed - at, "%s %.48s", i ? "," : "; there are", names[i]);
    }
    error_set(err, ERROR_NOT_FOUND,
              "there is no run %s: neither %s/settings.mk nor %s/settings.mk is there%s%s%s", run,
              run, below, near ? "; did you mean " : listed, near ? near : "", near ? "?" : "");
    while (n) free(names[--n]);
}

int run_folder_open(const char *run, const char *runs, RunFolder *out, Error *err)
{
    Buffer text;
    *out = (RunFolder){0};
    if (!*run)
        return error_set(err, ERROR_USAGE, "expected the name or the folder of a run, found ''");
    char *path = memory_printf("%s/settings.mk", run);
    int below = !file_exists(path);
    free(path);
    out->dir = below ? memory_printf("%s/%s", runs, run) : memory_strdup(run);
    for (size_t n = strlen(out->dir); n > 1 && out->dir[n - 1] == '/';) out->dir[--n] = 0;
    path = run_folder_path(out, "settings.mk");
    if (!file_exists(path)) {
        int refused = errno == EACCES;
        if (refused)
            error_errno(err, "cannot open %s", path);
        else if (is_search(out))
            error_set(err, ERROR_NOT_FOUND,
                      "%s is a search of make optimize, which has no stages: "
                      "%s/search/report.txt says what it found",
                      out->dir, out->dir);
        else
            no_run(run, runs, out->dir, err);
        free(path);
        return -1;
    }
    buffer_init(&text, SETTINGS_MAX_BYTES);
    int rc = file_read(path, SETTINGS_MAX_BYTES, &text, err);
    for (const char *p = text.data; !rc && *p;) {
        size_t n = strcspn(p, "\n");
        read_line(out, p, n);
        p += n + (p[n] == '\n');
    }
    if (!rc && !out->n_settings)
        rc = error_set(err, ERROR_CORRUPT,
                       "%s holds no setting: the command that made the run writes it again", path);
    buffer_release(&text);
    free(path);
    const char *slash = strrchr(out->dir, '/'), *name = run_folder_setting(out, "RUN");
    out->name = memory_strdup(*name ? name : slash ? slash + 1 : out->dir);
    return rc;
}

void run_folder_release(RunFolder *r)
{
    for (int i = 0; i < r->n_settings; i++) {
        free(r->settings[i].name);
        free(r->settings[i].value);
    }
    free(r->settings);
    free(r->dir);
    free(r->name);
    *r = (RunFolder){0};
}

const char *run_folder_setting(const RunFolder *r, const char *name)
{
    for (int i = 0; i < r->n_settings; i++)
        if (!strcmp(r->settings[i].name, name)) return r->settings[i].value;
    return "";
}

int run_folder_has(const RunFolder *r, const char *name)
{
    const char *value = run_folder_setting(r, name);
    return *value && strcmp(value, "0") != 0;
}

int run_folder_is_live(const RunFolder *r)
{
    char *path = run_folder_path(r, "queue/lock");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0) return 0;
    int busy = flock(fd, LOCK_SH | LOCK_NB) != 0;
    close(fd);
    return busy;
}

static char *path_of(const RunFolder *r, const char *fmt, va_list ap)
{
    char rest[1024];
    vsnprintf(rest, sizeof rest, fmt, ap);
    return memory_printf("%s/%s", r->dir, rest);
}

char *run_folder_path(const RunFolder *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *path = path_of(r, fmt, ap);
    va_end(ap);
    return path;
}

int run_folder_holds(const RunFolder *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *path = path_of(r, fmt, ap);
    va_end(ap);
    int there = file_exists(path);
    free(path);
    return there;
}

int run_folder_rounds(const RunFolder *r, const char *stage)
{
    long n = strtol(run_folder_setting(r, !strcmp(stage, "crl") ? "ROUNDS" : "SELFSUP_ROUNDS"),
                    NULL, 10);
    return n < 0 ? 0 : n > MAX_ROUNDS ? MAX_ROUNDS : (int)n;
}

int run_folder_rounds_done(const RunFolder *r, const char *stage)
{
    int planned = run_folder_rounds(r, stage), trained = run_folder_has(r, "trained"), n = 0;
    while (n < planned && run_folder_holds(r, "%s/%d/pool.qa", stage, n + 1) &&
           (!trained || run_folder_holds(r, "%s/%d/model/manifest.qa", stage, n + 1)))
        n++;
    return n;
}

char *run_folder_last_pool(const RunFolder *r)
{
    static const char *const stages[] = {"crl", "selfsup"};
    if (run_folder_holds(r, "report/crl/pool.qa")) return run_folder_path(r, "report/crl/pool.qa");
    for (int s = 0; s < 2; s++)
        for (int n = run_folder_rounds(r, stages[s]); n > 0; n--)
            if (run_folder_holds(r, "%s/%d/pool.qa", stages[s], n))
                return run_folder_path(r, "%s/%d/pool.qa", stages[s], n);
    return run_folder_holds(r, "collect/pool.qa") ? run_folder_path(r, "collect/pool.qa") : NULL;
}
