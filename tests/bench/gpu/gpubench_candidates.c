/* The candidates of the parts: kernels that the generator draws, right and wrong, and the tests'
 * kernels that fail or cheat. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "eval/candidate/candidate.h"
#include "generate/draw/draw.h"
#include "tests/bench/gpu/gpubench.h"
#include "tests/fixture_path.h"

static GpuBenchCandidate *add(GpuBenchList *l, const char *task, const char *kind,
                              const char *source)
{
    l->items = memory_grow(l->items, (size_t)l->n + 1, sizeof *l->items);
    GpuBenchCandidate *c = &l->items[l->n++];
    memset(c, 0, sizeof *c);
    snprintf(c->task, sizeof c->task, "%s", task);
    snprintf(c->kind, sizeof c->kind, "%s", kind);
    c->source = memory_strdup(source);
    return c;
}

void gpubench_list_release(GpuBenchList *l)
{
    for (int i = 0; i < l->n; i++) free(l->items[i].source);
    free(l->items);
    *l = (GpuBenchList){0};
}

/* Read the rest of the line "// NAME: ..." among a file's first lines. Returns 0 without one. */
static int header_field(const char *source, const char *name, char *out, size_t size)
{
    char lead[64];
    size_t n = (size_t)snprintf(lead, sizeof lead, "// %s: ", name);
    for (const char *p = source; !strncmp(p, "// ", 3);) {
        const char *end = strchr(p, '\n');
        if (!end) end = p + strlen(p);
        if (!strncmp(p, lead, n)) {
            snprintf(out, size, "%.*s", (int)(end - p - (long)n), p + n);
            return 1;
        }
        if (!*end) break;
        p = end + 1;
    }
    *out = 0;
    return 0;
}

static int add_file(const GpuBench *b, const char *path, Buffer *text, GpuBenchList *out,
                    Error *err)
{
    char task[64], by_device[64];
    const char *slash = strrchr(path, '/');
    if (file_read(path, CANDIDATE_MAX_SOURCE, text, err)) return -1;
    if (!header_field(text->data, "task", task, sizeof task)) return 0;
    GpuBenchCandidate *c = add(out, task, slash ? slash + 1 : path, text->data);
    snprintf(by_device, sizeof by_device, "expect %.*s", (int)strcspn(b->device, ":"), b->device);
    if (!header_field(c->source, by_device, c->expect, sizeof c->expect))
        header_field(c->source, "expect", c->expect, sizeof c->expect);
    return 0;
}

int gpubench_files(const GpuBench *b, const char *pattern, GpuBenchList *out, Error *err)
{
    char path[4096];
    glob_t found;
    Buffer text;
    int rc = 0;
    snprintf(path, sizeof path, "%s", fixture_path(pattern));
    if (glob(path, 0, NULL, &found)) return 0;
    buffer_init(&text, CANDIDATE_MAX_SOURCE + 1);
    for (size_t i = 0; i < found.gl_pathc && !rc; i++)
        rc = add_file(b, found.gl_pathv[i], &text, out, err);
    buffer_release(&text);
    globfree(&found);
    return rc;
}

int gpubench_expected(const GpuBenchCandidate *c, const char *outcome, const char *cheat)
{
    char got[160], want[160];
    if (!c->expect[0]) return 1;
    snprintf(got, sizeof got, " | %s%s%s | ", outcome, *cheat ? " " : "", cheat);
    snprintf(want, sizeof want, " | %s | ", c->expect);
    return strstr(want, got) != NULL;
}

enum { TEACHER_EXCESS = 4 }; /* kernels to draw for each needed one: some are repeated */

static int is_there(const GpuBenchList *l, int from, const char *source)
{
    for (int i = from; i < l->n; i++)
        if (!strcmp(l->items[i].source, source)) return 1;
    return 0;
}

/* Append n of the kernels that are drawn of a task, each text once. */
static int add_drawn(const Task *task, int n, double mistakes, GpuBenchList *out, Error *err)
{
    const int from = out->n;
    for (int seed = 1; seed <= TEACHER_EXCESS * n && out->n - from < n; seed++) {
        Drawn d;
        if (draw_kernel(task, &(DrawOptions){(uint64_t)seed, mistakes, NULL}, &d, err)) return -1;
        if (!is_there(out, from, d.source)) add(out, task->name, "teacher", d.source);
        draw_release(&d);
    }
    return 0;
}

/* Keep the tasks of which kernels can be drawn. */
static int keep_drawable(const TaskSet *tasks, const Task **out)
{
    int n = 0;
    for (int i = 0; i < tasks->n; i++)
        if (draw_knows(tasks->tasks[i])) out[n++] = tasks->tasks[i];
    return n;
}

int gpubench_teacher(const GpuBench *b, int n, double mistakes, GpuBenchList *out, Error *err)
{
    TaskSet tasks;
    if (taskset_load(NULL, b->sets, &tasks, err)) return -1;
    const Task **known = memory_array((size_t)tasks.n, sizeof *known);
    int rc = 0, n_known = keep_drawable(&tasks, known);
    for (int i = 0; i < n_known && !rc; i++)
        rc = add_drawn(known[i], n / n_known + (i < n % n_known), mistakes, out, err);
    free(known);
    taskset_release(&tasks);
    return rc;
}
