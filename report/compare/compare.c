/* Loads runs and compares them. A resample draws tasks that two runs share, and for each run as many of
 * its samples of a task as it has. */
#include "report/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- settings ---- */

static int is_compared(const char *name)
{
    static const char *const not [] = {"RUN", "RUNS", "REFRESH", "empty", "hash", "tasks_files"};
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        if (!strcmp(name, not [i])) return 0;
    /* What is derived follows from the others; the digest of the tasks does not. */
    return (*name >= 'A' && *name <= 'Z') || !strcmp(name, "stamp_tasks");
}

static int is_listed(const Compare *c, const char *name)
{
    for (int i = 0; i < c->n_settings; i++)
        if (!strcmp(c->setting[i].name, name)) return 1;
    return 0;
}

static void compare_setting(Compare *c, const char *name)
{
    const char *first = run_folder_setting(&c->folder[0], name);
    int differ = 0;
    if (!is_compared(name) || is_listed(c, name)) return;
    for (int i = 1; i < c->n_runs; i++)
        differ |= strcmp(first, run_folder_setting(&c->folder[i], name)) != 0;
    if (!differ) return;
    c->setting = memory_grow(c->setting, (size_t)c->n_settings + 1, sizeof *c->setting);
    CompareSetting *s = &c->setting[c->n_settings++];
    *s = (CompareSetting){.name = memory_strdup(name)};
    for (int i = 0; i < c->n_runs; i++)
        s->value[i] = memory_strdup(run_folder_setting(&c->folder[i], name));
    if (!strcmp(name, "stamp_tasks")) c->same_tasks = 0;
}

static void compare_settings(Compare *c)
{
    for (int i = 0; i < c->n_runs; i++)
        for (int k = 0; k < c->folder[i].n_settings; k++)
            compare_setting(c, c->folder[i].settings[k].name);
}

/* ---- stages ---- */

typedef struct {
    const Tally *of[2];
} Both;

typedef struct {
    Both *task;
    int n;
} Paired;

typedef struct {
    long attempted, succeeded;
    double logs;
} Sum;

static void add_all(Sum *s, const Tally *t)
{
    s->attempted += t->attempted;
    s->succeeded += t->succeeded;
    s->logs += log(t->best);
}

/* Adds a resample of a task's samples; of a whole run, which has none, the task as it is. */
static void add_drawn(Sum *s, const Tally *t, Random *r)
{
    double best = 1;
    if (!t->score) {
        add_all(s, t);
        return;
    }
    for (long k = 0; k < t->attempted; k++) {
        double score = t->score[random_below(r, (uint64_t)t->attempted)];
        s->succeeded += score >= 0;
        best = fmax(best, fmin(score, t->best));
    }
    s->attempted += t->attempted;
    s->logs += log(best);
}

static double rate_of(const Sum *s)
{
    return s->attempted ? (double)s->succeeded / (double)s->attempted : NAN;
}

enum { DIFFERENCE, RATIO, FIGURES };

static void figures_of(const Sum sum[2], int tasks, double out[FIGURES])
{
    double difference = rate_of(&sum[1]) - rate_of(&sum[0]);
    out[DIFFERENCE] = isnan(difference) ? 0 : difference;
    out[RATIO] = exp((sum[1].logs - sum[0].logs) / tasks);
}

static void draw_both(void *ctx, Random *r, double *out)
{
    const Paired *p = ctx;
    Sum sum[2] = {{0}};
    for (int i = 0; i < p->n; i++) {
        const Both *t = &p->task[random_below(r, (uint64_t)p->n)];
        for (int k = 0; k < 2; k++) add_drawn(&sum[k], t->of[k], r);
    }
    figures_of(sum, p->n, out);
}

static void fill_figures(Paired *p, CompareRow *row)
{
    Sum sum[2] = {{0}};
    double middle[FIGURES];
    Interval in[FIGURES] = {{NAN, NAN, NAN}, {NAN, NAN, NAN}};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < 2; k++) add_all(&sum[k], p->task[i].of[k]);
    figures_of(sum, p->n ? p->n : 1, middle);
    if (p->n > 1) statistics_resample(draw_both, p, 1, FIGURES, in);
    for (int k = 0; k < FIGURES; k++) {
        in[k].middle = middle[k];
        if (p->n > 1)
            statistics_widen(&in[k], p->n, k == RATIO ? 0 : -1, k == RATIO ? INFINITY : 1);
    }
    for (int k = 0; k < 2; k++) {
        row->attempted[k] = sum[k].attempted;
        row->succeeded[k] = sum[k].succeeded;
    }
    row->rate = (CompareFigure){rate_of(&sum[0]), rate_of(&sum[1]), in[DIFFERENCE]};
    row->geomean = (CompareFigure){exp(sum[0].logs / (p->n ? p->n : 1)),
                                   exp(sum[1].logs / (p->n ? p->n : 1)), in[RATIO]};
    /* Resamples of samples that are all alike are alike: then the trials bound the difference. */
    if (rate_of(&sum[0]) == rate_of(&sum[1]) && (!sum[0].succeeded || rate_of(&sum[0]) == 1)) {
        int good = sum[0].succeeded > 0;
        row->rate.interval.low = -statistics_none_of(sum[good].attempted);
        row->rate.interval.high = statistics_none_of(sum[!good].attempted);
    }
    if (!sum[0].attempted || !sum[1].attempted) row->rate.interval = (Interval){NAN, NAN, NAN};
    if (!sum[0].succeeded) row->geomean.a = NAN;
    if (!sum[1].succeeded) row->geomean.b = NAN;
    if (!sum[0].succeeded || !sum[1].succeeded) row->geomean.interval = (Interval){NAN, NAN, NAN};
}

static const Tally *tally_of(const ReportTask *t, int stage)
{
    return stage < REPORT_STAGES ? &t->stage[stage] : &t->run;
}

static void compare_stage(const Report *a, const Report *b, int stage, int heldout, CompareRow *row)
{
    Paired p = {memory_array((size_t)a->tasks.n, sizeof *p.task), 0};
    for (int i = 0; i < a->tasks.n; i++) {
        const ReportTask *x = &a->task[i], *y = report_task(b, x->task->name);
        if (!y || x->task->degenerate || x->task->heldout != heldout) continue;
        p.task[p.n++] = (Both){{tally_of(x, stage), tally_of(y, stage)}};
    }
    *row = (CompareRow){.stage = stage < REPORT_STAGES ? report_stage_names[stage] : "best",
                        .split = heldout ? "heldout" : "train",
                        .tasks = p.n};
    fill_figures(&p, row);
    free(p.task);
}

/* ---- kernels ---- */

static void compare_kernels(const Report *a, const Report *b, CompareKernel **out, int *n)
{
    *out = memory_array((size_t)a->tasks.n, sizeof **out);
    *n = 0;
    for (int i = 0; i < a->tasks.n; i++) {
        const ReportTask *x = &a->task[i], *y = report_task(b, x->task->name);
        if (!y) continue;
        CompareKernel k = {.task = x->task->name,
                           .heldout = x->task->heldout,
                           .degenerate = x->task->degenerate,
                           .a = x->source ? x->score : NAN,
                           .b = y->source ? y->score : NAN,
                           .compile_a = x->source ? x->over_compile : (Interval){0},
                           .compile_b = y->source ? y->over_compile : (Interval){0}};
        double from = x->source ? x->score : 0, to = y->source ? y->score : 0;
        k.won = to > 1.01 * from ? 1 : from > 1.01 * to ? -1 : 0;
        (*out)[(*n)++] = k;
    }
}

int compare_load(const char *const *names, int n, const char *runs, Compare *out, Error *err)
{
    *out = (Compare){.same_device = 1, .same_tasks = 1};
    for (int i = 0; i < n; i++) {
        out->n_runs = i + 1; /* what compare_release finds */
        if (run_folder_open(names[i], runs, &out->folder[i], err)) return -1;
        report_files_find(&out->folder[i], &out->files[i]);
        if (report_load(&out->files[i], &out->run[i], err))
            return error_prefix(err, "%s", names[i]);
        if (strcmp(out->run[i].device, out->run[0].device) != 0) out->same_device = 0;
    }
    compare_settings(out);
    for (int i = 1; i < n; i++) {
        for (int s = 0; s < COMPARE_STAGES; s++)
            for (int h = 0; h < COMPARE_SPLITS; h++)
                compare_stage(&out->run[0], &out->run[i], s, h, &out->row[i - 1][2 * s + h]);
        compare_kernels(&out->run[0], &out->run[i], &out->kernel[i - 1], &out->n_kernels[i - 1]);
    }
    return 0;
}

void compare_release(Compare *c)
{
    for (int i = 0; i < c->n_runs; i++) {
        report_release(&c->run[i]);
        report_files_release(&c->files[i]);
        run_folder_release(&c->folder[i]);
        if (i) free(c->kernel[i - 1]);
    }
    for (int i = 0; i < c->n_settings; i++) {
        for (int k = 0; k < c->n_runs; k++) free(c->setting[i].value[k]);
        free(c->setting[i].name);
    }
    free(c->setting);
}
