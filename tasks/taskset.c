/* Finds task folders below a root and loads a selection of them. Folders nest: one that holds a
 * task.json is a task, any other is a set of the tasks below it. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "base/words.h"
#include "tasks/task.h"

enum { TASKSET_MAX = 4096, TASKSET_DEPTH = 4 };

/* Folders relative to the root: "relu", "kernelbench/level1/k1_19_relu". */
typedef struct {
    char **names;
    int n;
} Folders;

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int by_name(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int order = strcmp(last_part(x), last_part(y));
    return order ? order : strcmp(x, y);
}

void taskset_paths_free(char **paths, int n)
{
    for (int i = 0; i < n; i++) free(paths[i]);
    free(paths);
}

/* Adds the tasks below root/folder. "": the root itself. */
static int list_folders(Folders *f, const char *root, const char *folder, int depth, Error *err)
{
    char *path = memory_printf("%s%s%s", root, *folder ? "/" : "", folder);
    DIR *d = opendir(path);
    struct dirent *e;
    int rc = d ? 0 : error_errno(err, "tasks folder %s", path);
    while (!rc && (e = readdir(d))) {
        if (e->d_name[0] == '.') continue;
        if (e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) continue;
        char *name = memory_printf("%s%s%s", folder, *folder ? "/" : "", e->d_name),
             *file = memory_printf("%s/%s/task.json", root, name),
             *here = memory_printf("%s/%s/.", root, name);
        if (file_exists(file)) {
            if (f->n == TASKSET_MAX)
                rc = error_set(err, ERROR_LIMIT, "tasks folder %s: more than %d tasks", root,
                               TASKSET_MAX);
            f->names = memory_grow(f->names, (size_t)f->n + 1, sizeof *f->names);
            f->names[f->n++] = memory_strdup(name);
        } else if (depth + 1 < TASKSET_DEPTH && file_exists(here)) {
            rc = list_folders(f, root, name, depth + 1, err);
        }
        free(name);
        free(file);
        free(here);
    }
    if (d) closedir(d);
    free(path);
    return rc;
}

/* A task is named by the last part of its folder, so this differs from all others. */
static int check_unique(const Folders *f, const char *root, Error *err)
{
    for (int i = 1; i < f->n; i++)
        if (!strcmp(last_part(f->names[i]), last_part(f->names[i - 1])))
            return error_set(err, ERROR_CORRUPT,
                             "tasks folder %s: %s and %s have the same name of a task", root,
                             f->names[i - 1], f->names[i]);
    return 0;
}

/* "all": the tasks that are in no set, or every task where each is in one. Else the name of a task,
 * its folder, a set that holds it, or a pattern with an asterisk for one of these. */
static int matches(const char *word, const char *folder, int only_sets)
{
    if (!strcmp(word, "all")) return only_sets || !strchr(folder, '/');
    if (!fnmatch(word, folder, FNM_PATHNAME | FNM_LEADING_DIR)) return 1;
    return !strchr(word, '/') && !fnmatch(word, last_part(folder), 0);
}

/* The task or the set of tasks whose name is near to a word's. */
static int unknown(const char *word, const Folders *f, const char *root, Error *err)
{
    const char **names = memory_array((size_t)f->n + 1, sizeof *names);
    for (int i = 0; i < f->n; i++) names[i] = last_part(f->names[i]);
    const char *near = suggest_name(last_part(word), names, f->n);
    error_set(err, ERROR_UNKNOWN_NAME, "no task \"%.80s\" in %s%s%s%s", word, root,
              near ? "; did you mean " : "; `quern task list` lists them", near ? near : "",
              near ? "?" : "");
    free(names);
    return -1;
}

/* Marks what the words of a list "relu,level1" select. */
static int select_listed(const char *only, const Folders *f, char *chosen, const char *root,
                         Error *err)
{
    int only_sets = 1;
    for (int i = 0; i < f->n; i++) only_sets &= strchr(f->names[i], '/') != NULL;
    for (const char *p = only; *p;) {
        size_t len = strcspn(p, ","), end = len;
        while (end > 1 && p[end - 1] == '/') end--;
        char *word = memory_strndup(p, end);
        int known = !*word;
        for (int i = 0; i < f->n && *word; i++)
            if (matches(word, f->names[i], only_sets)) known = chosen[i] = 1;
        if (!known) unknown(word, f, root, err);
        free(word);
        if (!known) return -1;
        p += len + (p[len] == ',');
    }
    return 0;
}

static char *own_root(const char *root, Error *err)
{
    if (!root) root = getenv("QUERN_TASKS");
    return root && *root ? memory_strdup(root) : paths_in_root("tasks", err);
}

/* The folders below `from`, sorted. */
static int find_folders(Folders *f, const char *from, Error *err)
{
    if (list_folders(f, from, "", 0, err)) return -1;
    if (!f->n)
        return error_set(err, ERROR_CORRUPT, "tasks folder %s: no folder in it holds a task.json",
                         from);
    qsort(f->names, (size_t)f->n, sizeof *f->names, by_name);
    return check_unique(f, from, err);
}

/* Whether a word may be a task's name, or the folder of one: no pattern, and no list. */
static int is_one(const char *word)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    return *word && *word != '/' && !word[strspn(word, letters)];
}

/* Whether a word is the folder of a task below `from`: then no other folder need be read. */
static int is_folder(const char *from, const char *word)
{
    if (!word || !is_one(word) || *word == '.' || strstr(word, "/.") ||
        word[strlen(word) - 1] == '/')
        return 0;
    char *file = memory_printf("%s/%s/task.json", from, word);
    int there = file_exists(file);
    free(file);
    return there;
}

int taskset_paths(const char *root, const char *only, char ***paths, int *n, Error *err)
{
    Folders f = {0};
    char *from = own_root(root, err);
    *paths = NULL;
    *n = 0;
    if (!from) return -1;
    if (is_folder(from, only)) {
        *paths = memory_array(1, sizeof **paths);
        (*paths)[(*n)++] = memory_printf("%s/%s", from, only);
        free(from);
        return 0;
    }
    int rc = find_folders(&f, from, err);
    char *chosen = memory_array((size_t)f.n + 1, 1);
    if (rc || select_listed(only && *only ? only : "all", &f, chosen, from, err))
        rc = -1;
    else
        *paths = memory_array((size_t)f.n, sizeof **paths);
    for (int i = 0; i < f.n && !rc; i++)
        if (chosen[i]) (*paths)[(*n)++] = memory_printf("%s/%s", from, f.names[i]);
    free(chosen);
    taskset_paths_free(f.names, f.n);
    free(from);
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

/* Loads the task of a folder below the root, or of a name, and adds it to the set. */
static int add_one(TaskSet *s, const char *root, const char *word, Error *err)
{
    char **paths;
    int n, at = -1;
    if (taskset_paths(root, word, &paths, &n, err)) return -1;
    for (int i = 0; i < n; i++)
        if (!strcmp(last_part(paths[i]), last_part(word))) at = i;
    Task *t = NULL;
    if (at < 0)
        error_set(err, ERROR_UNKNOWN_NAME, "%.80s is a set of tasks; expected one task", word);
    else
        task_load(paths[at], &t, err);
    taskset_paths_free(paths, n);
    if (!t) return -1;
    s->tasks = memory_grow(s->tasks, (size_t)s->n + 1, sizeof *s->tasks);
    s->tasks[s->n] = t;
    return s->n++;
}

/* Whether a task is the one of the folder root/word. */
static int is_at(const Task *t, const char *root, const char *word)
{
    char *from = own_root(root, NULL), *path = memory_printf("%s/%s", from ? from : "", word);
    int same = !strcmp(t->dir, path);
    free(from);
    free(path);
    return same;
}

int taskset_need(TaskSet *s, const char *root, const char *word, Error *err)
{
    size_t len = strlen(word);
    while (len > 1 && word[len - 1] == '/') len--;
    char *one = memory_strndup(word, len);
    const char *name = last_part(one);
    int at = -1;
    for (int i = 0; i < s->n && at < 0; i++)
        if (!strcmp(s->tasks[i]->name, name) && (name == one || is_at(s->tasks[i], root, one)))
            at = i;
    if (at < 0 && !is_one(one))
        error_set(err, ERROR_UNKNOWN_NAME, "no task is named \"%.80s\"", one);
    else if (at < 0)
        at = add_one(s, root, one, err);
    free(one);
    return at;
}

void task_at_path(const char **root, const char **task)
{
    size_t len = strlen(*task);
    while (len > 1 && (*task)[len - 1] == '/') len--;
    char *file = memory_printf("%.*s/task.json", (int)len, *task);
    if (!*root && memchr(*task, '/', len) && file_exists(file)) {
        char *folder = memory_strndup(*task, len), *slash = strrchr(folder, '/');
        *slash = 0;
        *root = slash == folder ? "/" : folder;
        *task = slash + 1;
    }
    free(file);
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
        if (word_is(name, len, s->tasks[i]->name)) return s->tasks[i];
    return NULL;
}
