/* Part latency: the time of one elementwise candidate, everything included, in a running evaluator
 * and from the start of a process. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/judge/statistics.h"
#include "tests/bench/gpu/gpubench.h"

enum { SAMPLES_MAX = 1000, SIDE = 4096, SERIES = 3 };
static const double apart_s = 0.5; /* pause between processes: the driver cleans up after each */

typedef struct {
    GpuBench *b;
    char tasks[4096]; /* relu alone, timed at 4096 x 4096 */
    const char *source;
    double seconds[SAMPLES_MAX];
    int n;
} Latency;

static int continues(const Latency *l)
{
    return l->n < l->b->latency && l->n < SAMPLES_MAX && !(l->n > 2 && gpubench_over(l->b));
}

/* Give the next series an end, so that each has an equal share of the time limit. */
static void next_series(Latency *l, double start, int done)
{
    if (l->b->limit_s > 0) l->b->until = start + l->b->limit_s * done / SERIES;
}

static void report(Latency *l, const char *series, const char *asked)
{
    char what[96];
    snprintf(what, sizeof what, "median of %d, %s", l->n, series);
    gpubench_row(l->b, "latency", what, statistics_median(l->seconds, l->n), "s", asked);
}

static int judged_ok(Evaluator *e, const char *source, Error *err)
{
    Verdict v;
    evaluator_run(e, "relu", source, strlen(source), &v);
    int rc = v.outcome == OUTCOME_OK ? 0
                                     : error_set(err, ERROR_INVALID, "relu: %s: %.600s",
                                                 outcome_name(v.outcome), v.message);
    verdict_release(&v);
    return rc;
}

static int warm(Latency *l, Error *err)
{
    Evaluator *e;
    if (evaluator_open(
            &(EvaluatorOptions){.device = l->b->device, .tasks_root = l->tasks, .seed = 1}, &e,
            err))
        return -1;
    int rc = judged_ok(e, l->source, err); /* prepares the task */
    for (l->n = 0; !rc && continues(l); l->n++) {
        char *source = gpubench_variant(l->source, l->n);
        double start = clock_seconds();
        rc = judged_ok(e, source, err);
        l->seconds[l->n] = clock_seconds() - start;
        gpubench_raw(l->b, "latency", "warm", l->seconds[l->n], "s");
        free(source);
    }
    evaluator_close(e);
    return rc;
}

/* Run one process, with all caches in `cache`. */
static int cold_once(Latency *l, const char *cache, long number, double *seconds, Error *err)
{
    char program[4096], path[4096];
    char *source = gpubench_variant(l->source, number);
    snprintf(program, sizeof program, "%s/quern-eval", l->b->bin);
    snprintf(path, sizeof path, "%s/candidate.cu", l->b->work);
    int rc = file_write_atomic(path, source, strlen(source), err);
    free(source);
    if (rc) return rc;
    char *usual = memory_strdup(getenv("QUERN_CACHE"));
    setenv("QUERN_CACHE", cache, 1);
    const char *const argv[] = {program,       "--task", "relu",   "--device", l->b->device,
                                "--task-root", l->tasks, "--json", path,       NULL};
    Buffer out, said;
    ProcessResult r;
    buffer_init(&out, 1 << 20);
    buffer_init(&said, 65536);
    clock_sleep(apart_s);
    double start = clock_seconds();
    rc = process_run(argv, &(ProcessOptions){.timeout_s = 120}, &out, &said, &r, err);
    *seconds = clock_seconds() - start;
    if (!rc && r.exit_code)
        rc = error_set(err, ERROR_CHILD, "quern-eval ended with %d: %.200s%.300s", r.exit_code,
                       said.data, out.data);
    buffer_release(&out);
    buffer_release(&said);
    setenv("QUERN_CACHE", usual, 1);
    free(usual);
    return rc;
}

/* Empty the cache but for the GPU's measured bounds (light-*), which a device gets only once. */
static int clear_cache(const char *cache, Error *err)
{
    char path[4500];
    DIR *d = opendir(cache);
    if (!d) return error_errno(err, "cannot read %s", cache);
    int rc = 0;
    for (struct dirent *f; !rc && (f = readdir(d));) {
        if (f->d_name[0] == '.' || !strncmp(f->d_name, "light-", 6)) continue;
        snprintf(path, sizeof path, "%s/%s", cache, f->d_name);
        rc = file_remove_tree(path, err);
    }
    closedir(d);
    return rc;
}

/* prepared: the harness' own compilations are in the cache. The candidate's never is. */
static int cold(Latency *l, const char *cache, int prepared, Error *err)
{
    int rc = 0;
    for (l->n = 0; !rc && continues(l); l->n++) {
        if (!prepared && clear_cache(cache, err)) return -1;
        rc = cold_once(l, cache, 200000 + (prepared ? 0 : 50000) + l->n, &l->seconds[l->n], err);
        gpubench_raw(l->b, "latency", prepared ? "cold process" : "cold process and caches",
                     l->seconds[l->n], "s");
    }
    return rc;
}

static int first(Latency *l, char *cache, size_t size, Error *err)
{
    double seconds;
    if (gpubench_folder(l->b, "cache-cold", cache, size, err) || file_remove_tree(cache, err) ||
        file_mkdirs(cache, err) || cold_once(l, cache, 100000, &seconds, err))
        return -1;
    gpubench_row(l->b, "latency", "first process ever on a GPU, which measures its light", seconds,
                 "s", "");
    return 0;
}

/* Measure the cold processes first, before this process opens the driver: a GPU that another
 * process holds opens 90 ms faster. */
int gpubench_latency(GpuBench *b, Error *err)
{
    Latency *l = memory_alloc(sizeof *l);
    Buffer text;
    l->b = b;
    buffer_init(&text, 1 << 20);
    gpubench_begin(b, "One elementwise candidate at 4096x4096, everything included");
    char path[4200], cache[4096];
    double start = clock_seconds();
    int rc = gpubench_tasks(b, "tasks-latency", "relu", "n", (int64_t)SIDE * SIDE, l->tasks, err);
    snprintf(path, sizeof path, "%s/relu/baseline.cu", l->tasks);
    if (!rc) rc = file_read(path, 1 << 18, &text, err);
    l->source = text.data;
    if (!rc) rc = first(l, cache, sizeof cache, err);
    next_series(l, start, 1);
    if (!rc) rc = cold(l, cache, 1, err);
    if (!rc) report(l, "cold process", "<0.40");
    next_series(l, start, 2);
    if (!rc) rc = cold(l, cache, 0, err);
    if (!rc) report(l, "cold process, nothing cached but the GPU's light", "");
    next_series(l, start, SERIES);
    if (!rc) rc = warm(l, err);
    if (!rc) report(l, "warm process", "<0.15");
    buffer_release(&text);
    free(l);
    return rc;
}
