/* Loads the tasks below one folder, sorted by name. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/paths.h"
#include "tasks/task.h"

enum { TASKSET_MAX = 4096 };

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void taskset_paths_free(char **paths, int n)
{
    for (int i = 0; i < n; i++) free(paths[i]);
    free(paths);
}

/* Lists the folders that hold a task.json, sorted. */
static int list_folders(const char *root, char ***names, int *n, Error *err)
{
    DIR *d = opendir(root);
    struct dirent *e;
    if (!d) return error_errno(err, "tasks folder %s", root);
    *names = NULL;
    *n = 0;
    while ((e = readdir(d))) {
        char path[4096];
        if (e->d_name[0] == '.') continue;
        if (snprintf(path, sizeof path, "%s/%s/task.json", root, e->d_name) >= (int)sizeof path ||
            !file_exists(path))
            continue;
        if (*n == TASKSET_MAX) {
            closedir(d);
            taskset_paths_free(*names, *n);
            return error_set(err, ERROR_LIMIT, "tasks folder %s: more than %d tasks", root,
                             TASKSET_MAX);
        }
        *names = memory_grow(*names, (size_t)*n + 1, sizeof **names);
        (*names)[(*n)++] = memory_strdup(e->d_name);
    }
    closedir(d);
    if (*n) qsort(*names, (size_t)*n, sizeof **names, by_name);
    return 0;
}

/* Is name in "a,b,c"? */
static int listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = list; *p;) {
        size_t word = strcspn(p, ",");
        if (word == len && !memcmp(p, name, len)) return 1;
        p += word + (p[word] == ',');
    }
    return 0;
}

static int check_listed(const char *only, char *const *names, int n, const char *root, Error *err)
{
    for (const char *p = only; *p;) {
        size_t word = strcspn(p, ",");
        int known = word == 0;
        for (int i = 0; i < n; i++) known |= strlen(names[i]) == word && !memcmp(names[i], p, word);
        if (!known)
            return error_set(err, ERROR_UNKNOWN_NAME, "no task \"%.*s\" in %s", (int)word, p, root);
        p += word + (p[word] == ',');
    }
    return 0;
}

int taskset_paths(const char *root, const char *only, char ***paths, int *n, Error *err)
{
    char **names = NULL;
    int n_names = 0;
    *paths = NULL;
    *n = 0;
    if (!root) root = getenv("QUERN_TASKS");
    char *own = NULL;
    if (!root || !*root) root = own = paths_in_root("tasks", err);
    if (!root) return -1;
    if (!only || !strcmp(only, "all")) only = "";
    if (list_folders(root, &names, &n_names, err)) {
        free(own);
        return -1;
    }
    int rc = check_listed(only, names, n_names, root, err);
    if (!rc && !n_names)
        rc = error_set(err, ERROR_CORRUPT, "tasks folder %s: no folder in it holds a task.json",
                       root);
    if (!rc) {
        *paths = memory_array((size_t)n_names, sizeof **paths);
        for (int i = 0; i < n_names; i++)
            if (!*only || listed(only, names[i]))
                (*paths)[(*n)++] = memory_printf("%s/%s", root, names[i]);
    }
    taskset_paths_free(names, n_names);
    free(own);
    return rc;
}

int taskset_load(const char *root, const char *only, TaskSet *out, Error *err)
{
    char **paths;
    int n, rc = 0;
    memset(out, 0, sizeof *out);
    if (taskset_paths(root, only, &paths, &n, err)) return -1;
    out->tasks = memory_array((size_t)n, sizeof *out->tasks);
    Digester d;
    Digest digest;
    digester_init(&d);
    for (int i = 0; i < n && !rc; i++) {
        if ((rc = task_load(paths[i], &out->tasks[out->n], err))) break;
        digester_add_field(&d, out->tasks[out->n]->digest, DIGEST_HEX - 1);
        out->n++;
    }
    digester_finish(&d, &digest);
    digest_hex(&digest, out->digest);
    taskset_paths_free(paths, n);
    if (rc) taskset_release(out);
    return rc;
}

void taskset_release(TaskSet *s)
{
    for (int i = 0; i < s->n; i++) task_free(s->tasks[i]);
    free(s->tasks);
    memset(s, 0, sizeof *s);
}

Task *taskset_find(const TaskSet *s, const char *name, size_t len)
{
    for (int i = 0; i < s->n; i++)
        if (strlen(s->tasks[i]->name) == len && !memcmp(s->tasks[i]->name, name, len))
            return s->tasks[i];
    return NULL;
}
