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

static char *in_run(const Settings *s, const char *name)
{
    return memory_printf("%s/%s/%s", setting_text(s, SETTING_RUNS), setting_text(s, SETTING_RUN),
                         name);
}

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

/* Adds the names of `list` that `other` lacks (changed 0), or has with another digest. Returns how many
 * there are; `out` names the first. */
static int differences(const char *list, const char *other, int changed, const char *what,
                       int before, Buffer *out)
{
    const char *p = list, *word, *found;
    size_t n, len;
    int count = 0;
    while ((word = setting_next_word(&p, &n))) {
        size_t name = name_length(word, n);
        found = find(other, word, name, &len);
        if (changed ? !found || (len == n && !memcmp(found, word, n)) : found != NULL) continue;
        if (before + count < SHOWN)
            buffer_printf(out, "%s%.*s %s", before + count ? ", " : "", (int)name, word, what);
        count++;
    }
    return count;
}

/* What differs between the tasks of the run and those there are, in words; "" when nothing does. */
static void what_changed(const Settings *s, const char *fragment, Buffer *out)
{
    char *old = assigned(fragment, "tasks_files"), *names = assigned(fragment, "TASKS");
    char *hex = assigned(fragment, "stamp_tasks");
    int same_names = names && !strcmp(names, setting_text(s, SETTING_TASKS)), n = 0;
    if (old && (!hex || strcmp(hex, s->tasks_digest))) {
        n = differences(s->tasks_files, old, 1, "has changed", 0, out);
        if (same_names) {
            n += differences(s->tasks_files, old, 0, "is new", n, out);
            n += differences(old, s->tasks_files, 0, "is gone", n, out);
        }
        if (n > SHOWN) buffer_printf(out, " and %d more", n - SHOWN);
    } else if (same_names && hex && strcmp(hex, s->tasks_digest)) {
        buffer_puts(out, "files of its tasks have changed");
    }
    free(hex);
    free(names);
    free(old);
}

int settings_check_tasks(const Settings *s, Error *err)
{
    char *report = in_run(s, "report.tsv"), *path = in_run(s, "settings.mk");
    Buffer old, what;
    int rc = 0;
    buffer_init(&old, MAX_FRAGMENT);
    buffer_init(&what, 1 << 16);
    if (strcmp(setting_text(s, SETTING_REFRESH), "1") != 0 && file_exists(report) &&
        file_exists(path) && !file_read(path, MAX_FRAGMENT, &old, NULL))
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
    char *old = in_run(s, from), *new = in_run(s, to);
    int rc = link(old, new) && errno != ENOENT && errno != EEXIST
                 ? error_errno(err, "cannot keep %s as %s", old, new)
                 : 0;
    free(old);
    free(new);
    return rc;
}

int settings_keep_report(const Settings *s, Error *err)
{
    char *table = in_run(s, "report.tsv");
    struct stat st;
    int n = 1, rc = 0;
    if (!stat(table, &st) && st.st_nlink == 1) {
        for (int taken = 1; taken && n < MAX_REPORTS; n += taken) {
            char name[32];
            snprintf(name, sizeof name, "report-%d.tsv", n);
            char *path = in_run(s, name);
            taken = file_exists(path);
            free(path);
        }
        /* The table last: a kept table says that the page is kept. */
        rc = keep(s, "html", n, err) || keep(s, "tsv", n, err) ? -1 : 0;
        if (!rc)
            log_info("the report is kept as %s/%s/report-%d.html", setting_text(s, SETTING_RUNS),
                     setting_text(s, SETTING_RUN), n);
    }
    free(table);
    return rc;
}
