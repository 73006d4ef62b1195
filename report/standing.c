/* What a run is worth: what its model found beyond its teacher, and what training added to it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/report.h"

int standing_beats_teacher(const ReportTask *t)
{
    return t->source && strcmp(t->found, "collect") != 0 &&
           t->score > 1.01 * t->stage[REPORT_COLLECT].best;
}

static int is_counted(const ReportTask *t)
{
    return !t->task->heldout && !t->task->degenerate;
}

typedef struct {
    const ReportTask **task;
    int n;
} Tasks;

static void draw_beaten(void *ctx, Random *r, double *out)
{
    const Tasks *all = ctx;
    *out = 0;
    for (int i = 0; i < all->n; i++)
        *out += standing_beats_teacher(all->task[random_below(r, (uint64_t)all->n)]);
}

/* A stage's samples: how many, how many are correct, and their scores, 0 of a wrong one. */
typedef struct {
    double tried, good, score;
} Sum;

static void add_sample(Sum *s, double score)
{
    s->tried++;
    s->good += score >= 0;
    s->score += fmax(score, 0);
}

/* Draws as many of a task's samples as it has. */
static void draw_samples(const Tally *t, Random *r, Sum *out)
{
    for (long i = 0; i < t->attempted; i++)
        add_sample(out, t->score[random_below(r, (uint64_t)t->attempted)]);
}

/* Both stages of a resample have the same tasks. out: the gain in the rate and in the mean sample. */
static void draw_gain(void *ctx, Random *r, double *out)
{
    const Tasks *all = ctx;
    Sum a = {0}, b = {0};
    for (int i = 0; i < all->n; i++) {
        const ReportTask *t = all->task[random_below(r, (uint64_t)all->n)];
        draw_samples(&t->stage[REPORT_SFT], r, &a);
        draw_samples(&t->stage[REPORT_CRL], r, &b);
    }
    int both = a.tried > 0 && b.tried > 0;
    out[0] = both ? b.good / b.tried - a.good / a.tried : 0;
    out[1] = both ? b.score / b.tried - a.score / a.tried : 0;
}

static Sum sum_of(const Tasks *all, ReportStage stage)
{
    Sum s = {0};
    for (int i = 0; i < all->n; i++) {
        const Tally *t = &all->task[i]->stage[stage];
        for (long k = 0; k < t->attempted; k++) add_sample(&s, t->score[k]);
    }
    return s;
}

/* The gains from stage 1 to stage 3; NAN without samples of both. */
static void find_gains(Tasks *all, Standing *out)
{
    Sum a = sum_of(all, REPORT_SFT), b = sum_of(all, REPORT_CRL);
    Interval in[2];
    out->mean_before = a.score / a.tried;
    out->mean_after = b.score / b.tried;
    in[0].middle = b.good / b.tried - a.good / a.tried;
    in[1].middle = out->mean_after - out->mean_before;
    for (int i = 0; i < 2; i++) in[i].low = in[i].high = NAN;
    if (all->n > 1 && a.tried > 0 && b.tried > 0) {
        statistics_resample(draw_gain, all, 1, 2, in);
        statistics_widen(&in[0], all->n, -1, 1);
        statistics_widen(&in[1], all->n, -INFINITY, INFINITY);
    }
    out->gain = in[0];
    out->rise = in[1];
}

static void find_beaten(Tasks *all, Standing *out)
{
    Interval *in = &out->beaten_in;
    *in = (Interval){out->beaten, NAN, NAN};
    if (all->n < 2) return;
    statistics_resample(draw_beaten, all, 1, 1, in);
    statistics_widen(in, all->n, 0, all->n);
    if (!out->beaten) in->high = all->n * statistics_none_of(all->n);
    if (out->beaten == all->n) in->low = all->n * (1 - statistics_none_of(all->n));
}

void standing_of(const Report *r, Standing *out)
{
    Tasks all = {memory_array((size_t)r->tasks.n, sizeof *all.task), 0};
    *out = (Standing){0};
    for (int i = 0; i < r->tasks.n; i++) {
        const ReportTask *t = &r->task[i];
        if (t->stage[REPORT_COLLECT].attempted) out->has_teacher = 1;
        if (!is_counted(t)) continue;
        all.task[all.n++] = t;
        out->beaten += standing_beats_teacher(t);
    }
    out->tasks = all.n;
    find_beaten(&all, out);
    find_gains(&all, out);
    free(all.task);
}
