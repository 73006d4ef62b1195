/* A finished run and its tasks: what has changed since, and the reports that a run has had. The files
 * and digests of the run's tasks are in its settings.mk. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/settings/settings.h"

enum { MAX_FRAGMENT = 64 << 20, SHOWN = 5, MAX_REPORTS = 10000 };

/* The value of an assignment in the text of settings.mk; NULL: it has none. The caller frees it. */
static char *assigned(const char *text, const char *name)
{
    char *start = memory_printf("\noverride %s :=", name), *value = NULL;
    const char *at = strstr(text, start);
    if (at) {
        at += strlen(start);
        at += *at == ' ';
        value = memory_strndup(at, strcspn(at, "\n"));
    }
    free(start);
    return value;
}

/* The length of the name in "relu/task.json=0123456789ab": the digest has no "=". */
static size_t name_length(const char *word, size_t n)
{
    while (n && word[n - 1] != '=') n--;
    return n ? n - 1 : 0;
}

/* The word of a list that has this name; NULL: none. */
static const char *find(const char *list, const char *name, size_t len, size_t *n)
{
    const char *word;
    while ((word = setting_next_word(&list, n)))
        if (name_length(word, *n) == len && !memcmp(word, name, len)) return word;
    return NULL;
}

typedef struct {
    Buffer *out; /* the first SHOWN changes in words */
    int n;
} Changes;

static void add_change(Changes *c, const char *word, size_t n, const char *what)
{
    if (c->n++ < SHOWN)
        buffer_printf(c->out, "%s%.*s %s", c->n > 1 ? ", " : "", (int)name_length(word, n), word,
                      what);
}

/* The files of `list` whose digest in `other` is another one. */
static void add_changed(Changes *c, const char *list, const char *other)
{
    const char *word, *found;
    size_t n, len;
    while ((word = setting_next_word(&list, &n))) {
        found = find(other, word, name_length(word, n), &len);
        if (found && (len != n || memcmp(found, word, n))) add_change(c, word, n, "has changed");
    }
}

/* The files of `list` that `other` lacks. */
static void add_lacking(Changes *c, const char *list, const char *other, const char *what)
{
    const char *word;
    size_t n, len;
    while ((word = setting_next_word(&list, &n)))
        if (!find(other, word, name_length(word, n), &len)) add_change(c, word, n, what);
}

/* What differs between the tasks of the run and those there are, in words; "" when nothing does. */
static void what_changed(const Settings *s, const char *fragment, Buffer *out)
{
    char *old = assigned(fragment, "tasks_files"), *names = assigned(fragment, "TASKS"),
         *hex = assigned(fragment, "stamp_tasks");
    const int same_names = names && setting_is(s, SETTING_TASKS, names),
              changed = hex && strcmp(hex, s->tasks_digest);
    Changes c = {out, 0};
    if (old && (!hex || changed)) {
        add_changed(&c, s->tasks_files, old);
        if (same_names) {
            add_lacking(&c, s->tasks_files, old, "is new");
            add_lacking(&c, old, s->tasks_files, "is gone");
        }
        if (c.n > SHOWN) buffer_printf(out, " and %d more", c.n - SHOWN);
    } else if (same_names && changed) {
        buffer_puts(out, "files of its tasks have changed");
    }
    free(hex);
    free(names);
    free(old);
}

int settings_check_tasks(const Settings *s, Error *err)
{
    char *report = settings_in_run(s, "report.tsv"), *path = settings_in_run(s, "settings.mk");
    Buffer old, what;
    int rc = 0;
    buffer_init(&old, MAX_FRAGMENT);
    buffer_init(&what, 1 << 16);
    if (!setting_is(s, SETTING_REFRESH, "1") && file_exists(report) && file_exists(path) &&
        !file_read(path, MAX_FRAGMENT, &old, NULL))
        what_changed(s, old.data, &what);
    if (what.len)
        rc = error_set(err, ERROR_USAGE,
                       "%s/%s is finished, and since then %s: RUN=NAME is another run, REFRESH=1 "
                       "makes this one again and keeps its report",
                       setting_text(s, SETTING_RUNS), setting_text(s, SETTING_RUN), what.data);
    buffer_release(&old);
    buffer_release(&what);
    free(report);
    free(path);
    return rc;
}

/* Gives the report's file a second name, which outlives its replacement. */
static int keep(const Settings *s, const char *end, int n, Error *err)
{
    char from[32], to[32];
    snprintf(from, sizeof from, "report.%s", end);
    snprintf(to, sizeof to, "report-%d.%s", n, end);
    char *old = settings_in_run(s, from), *new = settings_in_run(s, to);
    int rc = 0;
    if (link(old, new) && errno != ENOENT && errno != EEXIST)
        rc = error_errno(err, "cannot keep %s as %s", old, new);
    free(old);
    free(new);
    return rc;
}

static int is_taken(const Settings *s, int n)
{
    char name[32];
    snprintf(name, sizeof name, "report-%d.tsv", n);
    char *path = settings_in_run(s, name);
    const int taken = file_exists(path);
    free(path);
    return taken;
}

int settings_keep_report(const Settings *s, Error *err)
{
    char *table = settings_in_run(s, "report.tsv");
    struct stat st;
    const int new = !stat(table, &st) && st.st_nlink == 1;
    int n = 1;
    free(table);
    if (!new) return 0;
    while (n < MAX_REPORTS && is_taken(s, n)) n++;
    /* The table last: a kept table says that the page is kept. */
    if (keep(s, "html", n, err) || keep(s, "tsv", n, err)) return -1;
    log_info("the report is kept as %s/%s/report-%d.html", setting_text(s, SETTING_RUNS),
             setting_text(s, SETTING_RUN), n);
    return 0;
}
