/* Files come from patterns, so that the order of a folder does not matter. */
#include "lab/mutate/originals.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/paths.h"
#include "generate/draw/draw.h"

enum { MAX_FILE = 256 << 10 };

/* Takes over the three texts. */
static void add(Originals *o, char *task, char *label, char *text)
{
    Digest d;
    if (o->n % 64 == 0) o->at = memory_grow(o->at, (size_t)o->n + 64, sizeof *o->at);
    Original *one = &o->at[o->n++];
    *one = (Original){.task = task, .label = label, .text = text};
    digest_of(text, strlen(text), &d);
    digest_hex(&d, one->digest);
}

/* The word behind `// KEY: ` at the begin of a line; NULL: there is none. The caller frees it. */
static char *header_word(const char *text, const char *key)
{
    for (const char *p = text; (p = strstr(p, key)); p++)
        if (p == text || p[-1] == '\n') {
            p += strlen(key);
            return memory_strndup(p, strcspn(p, " \r\n"));
        }
    return NULL;
}

/* The task of a file: its line, or the folder where the file is a task's own. */
static char *task_of(const char *path, const char *text)
{
    char *task = header_word(text, "// task: "), *expect = header_word(text, "// expect: ");
    const char *name = strrchr(path, '/');
    int own = name && (!strcmp(name, "/baseline.cu") || !strcmp(name, "/best.cu"));
    if (expect && strcmp(expect, "ok")) {
        free(task);
        task = NULL;
    }
    if (!task && own) {
        const char *from = name;
        while (from > path && from[-1] != '/') from--;
        task = memory_strndup(from, (size_t)(name - from));
    }
    free(expect);
    return task;
}

static int add_file(Originals *o, const char *path, Error *err)
{
    Buffer b;
    buffer_init(&b, MAX_FILE);
    if (file_read_source(path, MAX_FILE, &b, err)) return -1;
    char *task = task_of(path, b.data);
    const char *label = strrchr(path, '/');
    if (task && !strstr(b.data, "//@ library"))
        add(o, task, memory_strdup(label ? label + 1 : path), buffer_detach(&b));
    else
        free(task);
    buffer_release(&b);
    return 0;
}

int originals_glob(Originals *o, const char *pattern, Error *err)
{
    glob_t g;
    int rc = glob(pattern, 0, NULL, &g);
    if (rc && rc != GLOB_NOMATCH)
        return error_set(err, ERROR_IO, "%s: the folder cannot be read", pattern);
    for (size_t i = 0; !rc && i < g.gl_pathc; i++) rc = add_file(o, g.gl_pathv[i], err);
    globfree(&g);
    return rc < 0 ? -1 : 0;
}

int originals_own(Originals *o, Error *err)
{
    static const char *const patterns[] = {"tests/mutants/right/*.cu", "tests/cheats/honest_*.cu",
                                           "tasks/*/baseline.cu", "tasks/*/best.cu"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        char *path = paths_in_root(patterns[i], err);
        int rc = path ? originals_glob(o, path, err) : -1;
        free(path);
        if (rc) return -1;
    }
    return 0;
}

static int add_drawn(Originals *o, const Task *t, uint64_t seed, Error *err)
{
    Drawn d;
    if (draw_kernel(t, &(DrawOptions){.seed = seed}, &d, err))
        return err->code == ERROR_UNSUPPORTED ? 0 : -1;
    add(o, memory_strdup(t->name), memory_printf("generator %llu", (unsigned long long)seed),
        memory_strdup(d.source));
    draw_release(&d);
    return 0;
}

int originals_teacher(Originals *o, const TaskSet *tasks, int kernels, Error *err)
{
    for (int i = 0; i < tasks->n; i++)
        for (int seed = 1; seed <= kernels; seed++)
            if (add_drawn(o, tasks->tasks[i], (uint64_t)seed, err)) return -1;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const Original *x = a, *y = b;
    int by = strcmp(x->task, y->task);
    return by ? by : strcmp(x->digest, y->digest);
}

static void release_one(Original *o)
{
    free(o->task);
    free(o->label);
    free(o->text);
}

void originals_sort(Originals *o)
{
    int n = 0;
    if (!o->n) return;
    qsort(o->at, (size_t)o->n, sizeof *o->at, compare);
    for (int i = 0; i < o->n; i++) {
        if (n && !compare(&o->at[n - 1], &o->at[i]))
            release_one(&o->at[i]);
        else
            o->at[n++] = o->at[i];
    }
    o->n = n;
}
