/* Part baselines: the time of every task's baseline on this device, beside PyTorch's on the same
 * GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "tests/bench/gpu/gpubench.h"

enum { EAGER_MAX = 1 << 22 };

/* One line of tests/gpu/eager.py:
 *   {"task": "softmax", "us": 210.4, "best": "fused", "best_us": 190.1}
 * The best library or fused implementation is optional. */
typedef struct {
    char task[64], best[64];
    double us, best_us; /* 0: not given */
} Eager;

typedef struct {
    Eager *items;
    int n;
} EagerList;

static int read_line(const char *line, size_t len, const char *path, int number, EagerList *out,
                     Error *err)
{
    char where[4200];
    Eager e = {0};
    snprintf(where, sizeof where, "%s, line %d", path, number);
    json_t *o = json_read_text(line, len, where, err);
    if (!o) return -1;
    if (json_object_get(o, "error")) { /* a task that failed there has no time */
        json_decref(o);
        return 0;
    }
    const char *task = json_need_text(o, "task", where, err),
               *best = json_string_value(json_object_get(o, "best"));
    int rc = task && !json_need_number(o, "us", where, &e.us, err) ? 0 : -1;
    if (!rc) {
        snprintf(e.task, sizeof e.task, "%s", task);
        snprintf(e.best, sizeof e.best, "%s", best ? best : "");
        e.best_us = json_number_value(json_object_get(o, "best_us"));
        out->items = memory_grow(out->items, (size_t)out->n + 1, sizeof *out->items);
        out->items[out->n++] = e;
    }
    json_decref(o);
    return rc;
}

static int read_eager(const char *path, EagerList *out, Error *err)
{
    Buffer text;
    buffer_init(&text, EAGER_MAX);
    int rc = file_read(path, EAGER_MAX, &text, err), number = 1;
    for (char *p = text.data; !rc && *p; number++) {
        size_t n = strcspn(p, "\n");
        if (n && *p == '{') rc = read_line(p, n, path, number, out, err);
        p += n + (p[n] == '\n');
    }
    buffer_release(&text);
    return rc;
}

static const Eager *find(const EagerList *l, const char *task)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->items[i].task, task)) return &l->items[i];
    return NULL;
}

typedef struct {
    GpuBench *b;
    EagerList eager;
    int compared, near, failed;
} Baselines;

static void print_number(const char *format, double v, int known)
{
    if (known)
        printf(format, v);
    else
        printf("%10s", "-");
}

/* Judge the plain kernel, or the graph's lines, as a candidate and print both times of the verdict's
 * pair. */
static void one_task(Baselines *s, Evaluator *e, const Task *t)
{
    Verdict v;
    char what[128];
    double start = clock_seconds();
    evaluator_run(e, t->name, t->baseline_source, strlen(t->baseline_source), &v);
    gpubench_raw(s->b, "baselines", "verdict", clock_seconds() - start, "s");
    if (v.outcome != OUTCOME_OK) {
        s->failed++;
        printf("  %-40s%s: %.200s\n", t->name, outcome_name(v.outcome), v.message);
    } else {
        const Eager *g = find(&s->eager, t->name);
        int best = g && g->best_us > 0;
        printf("  %-40s%10.2f%10.2f", t->name, v.time_us, v.baseline_us);
        print_number("%10.2f", g ? g->us : 0, g != NULL);
        print_number("%10.3f", g ? v.baseline_us / g->us : 0, g != NULL);
        print_number("%10.3f", best ? v.baseline_us / g->best_us : 0, best);
        printf("%9.1f%%  %s\n", v.baseline_us > 0 ? 100 * v.light_us / v.baseline_us : 0.0,
               best ? g->best : "");
        fflush(stdout);
        snprintf(what, sizeof what, "%s baseline", t->name);
        gpubench_raw(s->b, "baselines", what, v.baseline_us, "us");
        snprintf(what, sizeof what, "%s light", t->name);
        gpubench_raw(s->b, "baselines", what, v.light_us, "us");
        snprintf(what, sizeof what, "%s PyTorch eager", t->name);
        if (g) gpubench_raw(s->b, "baselines", what, g->us, "us");
        snprintf(what, sizeof what, "%s best (%s)", t->name, best ? g->best : "");
        if (best) gpubench_raw(s->b, "baselines", what, g->best_us, "us");
        s->compared += g != NULL;
        s->near += g && fabs(v.baseline_us / g->us - 1) <= 0.1;
    }
    verdict_release(&v);
}

int gpubench_baselines(GpuBench *b, Error *err)
{
    Baselines s = {.b = b};
    Evaluator *e = NULL;
    TaskSet set = {0};
    gpubench_begin(
        b, "Baselines, median us of cold runs: the plain kernel, Quern's baseline, PyTorch eager");
    int rc = b->eager ? read_eager(b->eager, &s.eager, err) : 0;
    if (!rc) rc = evaluator_open(&(EvaluatorOptions){.device = b->device, .seed = 1}, &e, err);
    if (!rc) rc = taskset_load(NULL, b->sets, &set, err);
    if (!rc) {
        printf("  %-40s%10s%10s%10s%10s%10s%10s\n", "task", "plain", "baseline", "eager", "/eager",
               "/best", "of light");
        for (int i = 0; i < set.n && !gpubench_over(b); i++) one_task(&s, e, set.tasks[i]);
        gpubench_row(b, "baselines", "baselines that fail", s.failed, "", "<1");
    }
    if (e) evaluator_close(e);
    taskset_release(&set);
    if (!rc && s.compared)
        gpubench_row(b, "baselines", "tasks within 10% of PyTorch eager",
                     100.0 * s.near / s.compared, "%", ">90");
    free(s.eager.items);
    return rc;
}
