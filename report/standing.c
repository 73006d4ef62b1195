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

/* Draws as many of a task's samples as it has, and counts the correct ones. */
static void draw_samples(const Tally *t, Random *r, long *attempted, long *succeeded)
{
    *attempted += t->attempted;
    for (long i = 0; i < t->attempted; i++)
        *succeeded += t->score[random_below(r, (uint64_t)t->attempted)] >= 0;
}

/* Both stages of a resample have the same tasks. */
static void draw_gain(void *ctx, Random *r, double *out)
{
    const Tasks *all = ctx;
    long tried[2] = {0}, good[2] = {0};
    for (int i = 0; i < all->n; i++) {
        const ReportTask *t = all->task[random_below(r, (uint64_t)all->n)];
        draw_samples(&t->stage[REPORT_SFT], r, &tried[0], &good[0]);
        draw_samples(&t->stage[REPORT_CRL], r, &tried[1], &good[1]);
    }
    *out = tried[0] && tried[1]
               ? (double)good[1] / (double)tried[1] - (double)good[0] / (double)tried[0]
               : 0;
}

static double rate_of(const Tasks *all, ReportStage stage)
{
    long attempted = 0, succeeded = 0;
    for (int i = 0; i < all->n; i++) {
        attempted += all->task[i]->stage[stage].attempted;
        succeeded += all->task[i]->stage[stage].succeeded;
    }
    return attempted ? (double)succeeded / (double)attempted : NAN;
}

static void resample(StatisticsDraw *draw, Tasks *all, double least, double most, Interval *out)
{
    out->low = out->high = NAN;
    if (all->n < 2 || isnan(out->middle)) return;
    statistics_resample(draw, all, 1, 1, out);
    statistics_widen(out, all->n, least, most);
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
    out->beaten_in.middle = out->beaten;
    resample(draw_beaten, &all, 0, all.n, &out->beaten_in);
    if (all.n > 1 && !out->beaten) out->beaten_in.high = all.n * statistics_none_of(all.n);
    if (all.n > 1 && out->beaten == all.n)
        out->beaten_in.low = all.n * (1 - statistics_none_of(all.n));
    out->gain.middle = rate_of(&all, REPORT_CRL) - rate_of(&all, REPORT_SFT);
    resample(draw_gain, &all, -1, 1, &out->gain);
    free(all.task);
}
