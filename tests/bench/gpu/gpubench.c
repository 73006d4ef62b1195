/* What the parts share: rows of results, the time limit, variants of a source, and copies of the
 * tasks with other timed sizes. */
#include "tests/bench/gpu/gpubench.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/stop.h"

void gpubench_begin(GpuBench *b, const char *title)
{
    b->until = b->limit_s > 0 ? clock_seconds() + b->limit_s : 0;
    printf("\n%s\n", title);
    fflush(stdout);
}

int gpubench_over(const GpuBench *b)
{
    return stop_requested() || (b->until > 0 && clock_seconds() >= b->until);
}

static void write_line(GpuBench *b, const char *part, const char *what, double value,
                       const char *unit, const char *asked, const char *judged)
{
    if (!b->out) return;
    fprintf(b->out, "%s\t%s\t%.9g\t%s\t%s\t%s\n", part, what, value, unit, asked, judged);
    fflush(b->out);
}

void gpubench_row(GpuBench *b, const char *part, const char *what, double value, const char *unit,
                  const char *asked)
{
    const char *judged = "";
    char bound[40] = "";
    if (*asked) {
        double limit = strtod(asked + 1, NULL);
        judged = (asked[0] == '<' ? value <= limit : value >= limit) ? "reached" : "NOT REACHED";
        snprintf(bound, sizeof bound, "%s %s", asked[0] == '<' ? "at most" : "at least", asked + 1);
    }
    printf("  %-58s %12.5g %-16s %-16s %s\n", what, value, unit, bound, judged);
    fflush(stdout);
    b->rows++;
    write_line(b, part, what, value, unit, asked, judged);
}

void gpubench_raw(GpuBench *b, const char *part, const char *what, double value, const char *unit)
{
    write_line(b, part, what, value, unit, "", "raw");
}

int gpubench_folder(const GpuBench *b, const char *name, char *out, size_t size, Error *err)
{
    if ((size_t)snprintf(out, size, "%s/%s", b->work, name) >= size)
        return error_set(err, ERROR_LIMIT, "too long a path: %s/%s", b->work, name);
    return file_mkdirs(out, err);
}

char *gpubench_variant(const char *source, long number)
{
    static unsigned long long run;
    if (!run) run = (unsigned long long)time(NULL) << 22 | (unsigned)getpid();
    return memory_printf("%s\n// variant %ld of %llx\n", source, number, run);
}

double gpubench_mean(const double *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    return n ? sum / n : 0;
}

/* ---- tasks at other sizes ---- */

static json_t *axes_of(json_t *workloads, const char *role)
{
    size_t i;
    json_t *w;
    json_array_foreach(workloads, i, w)
    {
        const char *r = json_string_value(json_object_get(w, "role"));
        if (r && !strcmp(r, role)) return json_object_get(w, "axes");
    }
    return NULL;
}

/* The timed workload, halved along its first axis. */
static json_t *half_axes(json_t *workloads)
{
    json_t *axes = json_deep_copy(axes_of(workloads, "time"));
    const char *first = axes ? json_object_iter_key(json_object_iter(axes)) : NULL;
    if (first)
        json_object_set_new(axes, first,
                            json_integer(json_integer_value(json_object_get(axes, first)) / 2));
    return axes;
}

/* Write task.json with other sizes for the timed workloads, as gpubench_tasks says. */
static int write_task(const char *from, const char *to, const char *axis, int64_t size, Error *err)
{
    json_t *task = json_read_file(from, 1 << 20, err);
    if (!task) return -1;
    json_t *workloads = json_object_get(task, "workloads"), *w;
    json_t *axes = !axis && size == GPUBENCH_HALF ? half_axes(workloads)
                                                  : json_deep_copy(axes_of(workloads, "sim"));
    size_t i;
    if (!axes) {
        json_decref(task);
        return error_set(err, ERROR_INVALID,
                         "%s: expected workloads of the roles \"time\" and \"sim\"", from);
    }
    if (axis) json_object_set_new(axes, axis, json_integer(size));
    json_array_foreach(workloads, i, w)
    {
        const char *role = json_string_value(json_object_get(w, "role"));
        if (role && strcmp(role, "check")) json_object_set(w, "axes", axes);
    }
    char *text = json_dumps(task, JSON_INDENT(2));
    int rc = text ? file_write_atomic(to, text, strlen(text), err)
                  : error_set(err, ERROR_MEMORY, "cannot write %s as JSON", from);
    free(text);
    json_decref(axes);
    json_decref(task);
    return rc;
}

/* Write a new task.json and link the other files. Links keep the times of the files, so a compiled
 * reference stays newer than its source. */
static int copy_task(const char *from, const char *to, const char *axis, int64_t size, Error *err)
{
    char source[4096], target[4096];
    DIR *d = opendir(from);
    if (!d) return error_errno(err, "cannot read %s", from);
    int rc = file_mkdirs(to, err);
    for (struct dirent *f; !rc && (f = readdir(d));) {
        if (f->d_name[0] == '.') continue;
        snprintf(source, sizeof source, "%s/%s", from, f->d_name);
        snprintf(target, sizeof target, "%s/%s", to, f->d_name);
        if (!strcmp(f->d_name, "task.json"))
            rc = write_task(source, target, axis, size, err);
        else if (symlink(source, target))
            rc = error_errno(err, "cannot link %s", target);
    }
    closedir(d);
    return rc;
}

int gpubench_tasks(const GpuBench *b, const char *name, const char *only, const char *axis,
                   int64_t size, char out[4096], Error *err)
{
    char **paths;
    int n;
    if (gpubench_folder(b, name, out, 4096, err) || file_remove_tree(out, err) ||
        file_mkdirs(out, err))
        return -1;
    if (taskset_paths(NULL, only, &paths, &n, err)) return -1;
    int rc = 0;
    for (int i = 0; i < n && !rc; i++) {
        char target[4096];
        const char *slash = strrchr(paths[i], '/');
        char *from = realpath(paths[i], NULL); /* links need an absolute path */
        snprintf(target, sizeof target, "%s/%s", out, slash ? slash + 1 : paths[i]);
        rc = from ? copy_task(from, target, axis, size, err)
                  : error_errno(err, "cannot find %s", paths[i]);
        free(from);
    }
    taskset_paths_free(paths, n);
    return rc;
}
