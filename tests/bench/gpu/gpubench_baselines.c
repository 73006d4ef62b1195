/* Part baselines: the time of every task's baseline on this device, beside PyTorch's on the same
 * GPU. Each task is judged by a process of its own, as quern-eval judges it; no two are timed at
 * once. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/stop.h"
#include "eval/judge/rivals.h"
#include "tests/bench/gpu/gpubench_rows.h"

enum {
    VERDICT_TEXT_MAX = 1 << 20,
    TASK_S = 120, /* most that a task may take */
    JOBS_MAX = 16,
    CORES_A_JOB = 3
};

/* The rows of a task in a table of tools/rival.py, at PyTorch's default precision. The compiled way is
 * optional. */
typedef struct {
    char task[64];
    double us, best_us; /* 0: not given */
} Eager;

typedef struct {
    Eager *items;
    int n;
} EagerList;

static Eager *eager_of(EagerList *l, const char *task)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->items[i].task, task)) return &l->items[i];
    l->items = memory_grow(l->items, (size_t)l->n + 1, sizeof *l->items);
    Eager *e = &l->items[l->n++];
    *e = (Eager){0};
    snprintf(e->task, sizeof e->task, "%s", task);
    return e;
}

static void take_row(void *of, const RivalRow *row)
{
    if (strcmp(row->precision, "default") || !(row->us > 0)) return;
    Eager *e = eager_of(of, row->task);
    if (!strcmp(row->way, "eager"))
        e->us = row->us;
    else if (!(e->best_us > 0) || row->us < e->best_us)
        e->best_us = row->us;
}

static const Eager *find(const EagerList *l, const char *task)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->items[i].task, task)) return l->items[i].us > 0 ? &l->items[i] : NULL;
    return NULL;
}

typedef struct {
    GpuBench *b;
    const Task *const *tasks;
    int n, next;
    GpuBaselineRows rows;
    pthread_mutex_t mutex; /* of next, rows and what is printed */
    EagerList eager;
    int compared, near, failed, rc;
    Error err;
} Baselines;

static void print_number(const char *format, double v, int known)
{
    if (known)
        printf(format, v);
    else
        printf("%10s", "-");
}

static void print_row(Baselines *s, const GpuBaselineRow *v)
{
    char what[128];
    const Eager *g = find(&s->eager, v->task);
    int best = g && g->best_us > 0;
    if (strcmp(v->outcome, "ok")) {
        s->failed++;
        printf("  %-40s%s: %.200s\n", v->task, v->outcome, v->message);
        return;
    }
    printf("  %-40s%10.2f%10.2f", v->task, v->plain_us, v->us);
    print_number("%10.2f", g ? g->us : 0, g != NULL);
    print_number("%10.3f", g ? v->us / g->us : 0, g != NULL);
    print_number("%10.3f", best ? v->us / g->best_us : 0, best);
    printf("%9.1f%%  %s\n", v->us > 0 ? 100 * v->light_us / v->us : 0.0,
           best ? "torch.compile" : "");
    fflush(stdout);
    gpubench_raw(s->b, "baselines", "verdict", v->seconds, "s");
    snprintf(what, sizeof what, "%s baseline", v->task);
    gpubench_raw(s->b, "baselines", what, v->us, "us");
    snprintf(what, sizeof what, "%s light", v->task);
    gpubench_raw(s->b, "baselines", what, v->light_us, "us");
    snprintf(what, sizeof what, "%s PyTorch eager", v->task);
    if (g) gpubench_raw(s->b, "baselines", what, g->us, "us");
    snprintf(what, sizeof what, "%s torch.compile", v->task);
    if (best) gpubench_raw(s->b, "baselines", what, g->best_us, "us");
    s->compared += g != NULL;
    s->near += g && fabs(v->us / g->us - 1) <= 0.1;
}

/* Judge the plain kernel, or the graph's lines, as a candidate, in a process of its own. */
static int judge(Baselines *s, const Task *t, GpuBaselineRow *row, Error *err)
{
    char program[4096], file[4200];
    snprintf(program, sizeof program, "%s/quern-eval", s->b->bin);
    snprintf(file, sizeof file, "%s/baselines-%s.cu", s->b->work, t->name);
    const char *const argv[] = {program,      "--task", t->name, "--device",
                                s->b->device, "--json", file,    NULL};
    Buffer said, wrong;
    ProcessResult r;
    double start = clock_seconds();
    buffer_init(&said, VERDICT_TEXT_MAX);
    buffer_init(&wrong, VERDICT_TEXT_MAX);
    int rc = file_write_atomic(file, t->baseline_source, strlen(t->baseline_source), err);
    if (!rc) rc = process_run(argv, &(ProcessOptions){.timeout_s = TASK_S}, &said, &wrong, &r, err);
    if (!rc && (r.timed_out || !said.len)) {
        snprintf(row->task, sizeof row->task, "%s", t->name);
        snprintf(row->outcome, sizeof row->outcome, "%s", r.timed_out ? "timeout" : "no_verdict");
        snprintf(row->message, sizeof row->message, "%.200s", wrong.len ? wrong.data : "");
    } else if (!rc) {
        rc = gpubench_row_of_verdict(said.data, said.len, row, err);
    }
    row->seconds = clock_seconds() - start;
    unlink(file);
    buffer_release(&said);
    buffer_release(&wrong);
    return rc;
}

/* The index of the next task without a row, or -1. */
static int take(Baselines *s)
{
    int at = -1;
    pthread_mutex_lock(&s->mutex);
    while (!s->rc && at < 0 && s->next < s->n && !gpubench_over(s->b)) {
        at = s->next++;
        if (gpubench_rows_find(&s->rows, s->tasks[at]->name)) at = -1;
    }
    pthread_mutex_unlock(&s->mutex);
    return at;
}

static void *work(void *of)
{
    Baselines *s = of;
    for (int i; (i = take(s)) >= 0;) {
        GpuBaselineRow row = {0};
        Error err;
        int rc = judge(s, s->tasks[i], &row, &err);
        pthread_mutex_lock(&s->mutex);
        if (!rc) rc = gpubench_rows_add(&s->rows, &row, &err);
        if (!rc) print_row(s, &row);
        /* What is under way when a signal comes is not a failure. */
        if (rc && !s->rc && !stop_requested()) {
            s->rc = -1;
            s->err = err;
        }
        pthread_mutex_unlock(&s->mutex);
    }
    return NULL;
}

/* Several tasks are prepared side by side: the contents and references are the host's work, and
 * each timing has the GPU to itself by its lock. */
static int jobs_of(const GpuBench *b)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t jobs = b->jobs > 0 ? b->jobs : cores / CORES_A_JOB;
    char threads[24];
    jobs = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    snprintf(threads, sizeof threads, "%ld", (cores - 1) / jobs > 1 ? (cores - 1) / jobs : 1);
    if (jobs > 1) setenv("OMP_NUM_THREADS", threads, 0);
    return (int)jobs;
}

static int measure_all(Baselines *s, Error *err)
{
    pthread_t threads[JOBS_MAX];
    int jobs = jobs_of(s->b), n = 0;
    printf("  %-40s%10s%10s%10s%10s%10s%10s\n", "task", "plain", "baseline", "eager", "/eager",
           "/best", "of light");
    for (int i = 0; i < s->n; i++) {
        const GpuBaselineRow *known = gpubench_rows_find(&s->rows, s->tasks[i]->name);
        if (known) print_row(s, known);
    }
    pthread_mutex_init(&s->mutex, NULL);
    while (n < jobs && !pthread_create(&threads[n], NULL, work, s)) n++;
    if (!n) error_set(&s->err, ERROR_LIMIT, "no thread can be started"), s->rc = -1;
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&s->mutex);
    if (s->rc) *err = s->err;
    return s->rc;
}

int gpubench_baselines(GpuBench *b, Error *err)
{
    Baselines *s = memory_alloc(sizeof *s);
    TaskSet set = {0};
    s->b = b;
    gpubench_begin(
        b, "Baselines, median us of cold runs: the plain kernel, Quern's baseline, PyTorch eager");
    int rc = b->eager ? rivals_read(b->eager, take_row, &s->eager, err) : 0;
    if (!rc) rc = taskset_load(NULL, b->sets, &set, err);
    if (!rc) rc = gpubench_rows_open(&s->rows, b->baseline_rows, err);
    if (!rc) {
        s->tasks = (const Task *const *)set.tasks;
        s->n = set.n;
        rc = measure_all(s, err);
        gpubench_row(b, "baselines", "baselines that fail", s->failed, "", "<1");
    }
    if (!rc && s->compared)
        gpubench_row(b, "baselines", "tasks within 10% of PyTorch eager",
                     100.0 * s->near / s->compared, "%", ">90");
    gpubench_rows_close(&s->rows);
    taskset_release(&set);
    free(s->eager.items);
    free(s);
    return rc;
}
