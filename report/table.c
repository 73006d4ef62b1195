/* The rows of report.tsv and of the page's table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/sort.h"
#include "report/report.h"

double table_percentile(const double *v, int n, double p)
{
    double rank = p * (n - 1);
    int low = (int)floor(rank);
    if (low + 1 >= n) return v[n - 1];
    return v[low] + (rank - low) * (v[low + 1] - v[low]);
}

void table_statistics(double *v, int n, TableRow *row)
{
    row->tasks = n;
    row->faster = 0;
    row->mean = row->geomean = row->median = row->max = row->p25 = row->p75 = NAN;
    if (!n) return;
    sort_doubles(v, (size_t)n);
    double sum = 0, logs = 0;
    for (int i = 0; i < n; i++) {
        sum += v[i];
        logs += log(v[i]);
        row->faster += v[i] > 1.01;
    }
    row->mean = sum / n;
    row->geomean = exp(logs / n);
    row->median = table_percentile(v, n, 0.5);
    row->max = v[n - 1];
    row->p25 = table_percentile(v, n, 0.25);
    row->p75 = table_percentile(v, n, 0.75);
}

typedef struct {
    const Tally **tally; /* of n tasks */
    double *best;        /* scratch: n */
    int n;
    double rate; /* of all, for a resample without samples */
} Tallies;

static void statistics_of(const TableRow *w, double rate, double *out)
{
    out[TABLE_RATE] = rate;
    out[TABLE_FASTER] = w->faster;
    out[TABLE_MEAN] = w->mean;
    out[TABLE_GEOMEAN] = w->geomean;
    out[TABLE_MEDIAN] = w->median;
}

/* Draws tasks, and as many samples of each as it has. A sample counts at most as its task's best,
 * which a second judgement may have lowered. */
static void draw(void *ctx, Random *r, double *out)
{
    const Tallies *all = ctx;
    long attempted = 0, succeeded = 0;
    TableRow w;
    for (int i = 0; i < all->n; i++) {
        const Tally *t = all->tally[random_below(r, (uint64_t)all->n)];
        all->best[i] = t->score ? 1 : t->best;
        attempted += t->attempted;
        succeeded += t->score ? 0 : t->succeeded;
        for (long k = 0; t->score && k < t->attempted; k++) {
            double score = t->score[random_below(r, (uint64_t)t->attempted)];
            succeeded += score >= 0;
            all->best[i] = fmax(all->best[i], fmin(score, t->best));
        }
    }
    table_statistics(all->best, all->n, &w);
    statistics_of(&w, attempted ? (double)succeeded / (double)attempted : all->rate, out);
}

static void intervals(const Tallies *t, TableRow *row)
{
    double middle[TABLE_STATISTICS];
    statistics_of(row, t->rate, middle);
    if (t->n > 1) statistics_resample(draw, (void *)(uintptr_t)t, 1, TABLE_STATISTICS, row->in);
    for (int k = 0; k < TABLE_STATISTICS; k++) {
        row->in[k].middle = middle[k];
        if (t->n < 2 || isnan(middle[k]))
            row->in[k].low = row->in[k].high = NAN;
        else
            statistics_widen(&row->in[k], t->n, k == TABLE_RATE || k == TABLE_FASTER ? 0 : 1,
                             k == TABLE_RATE     ? 1
                             : k == TABLE_FASTER ? t->n
                                                 : INFINITY);
    }
    /* Resamples of equal samples are equal: then the trials themselves bound the rate. */
    if (row->attempted && !row->succeeded)
        row->in[TABLE_RATE] = (Interval){0, 0, statistics_none_of(row->attempted)};
    if (row->attempted && row->succeeded == row->attempted)
        row->in[TABLE_RATE] = (Interval){1, 1 - statistics_none_of(row->attempted), 1};
}

static void fill_row(const Report *r, int stage, int split, TableRow *row)
{
    static const char *const splits[] = {"train", "heldout", "all"};
    double *best = memory_array((size_t)r->tasks.n, sizeof *best);
    const Tally **tallies = memory_array((size_t)r->tasks.n, sizeof *tallies);
    int n = 0;
    *row = (TableRow){0};
    for (int i = 0; i < r->tasks.n; i++) {
        const ReportTask *t = &r->task[i];
        if (t->task->degenerate || (split < 2 && t->task->heldout != split)) continue;
        const Tally *tally = stage < REPORT_STAGES ? &t->stage[stage] : &t->run;
        row->attempted += tally->attempted;
        row->succeeded += tally->succeeded;
        tallies[n] = tally;
        best[n++] = tally->best;
    }
    table_statistics(best, n, row);
    snprintf(row->stage, sizeof row->stage, "%s",
             stage < REPORT_STAGES ? report_stage_names[stage] : "best");
    snprintf(row->split, sizeof row->split, "%s", splits[split]);
    double rate = row->attempted ? (double)row->succeeded / (double)row->attempted : NAN;
    intervals(&(Tallies){tallies, best, n, rate}, row);
    free(tallies);
    free(best);
}

void table_rows(const Report *r, TableRow out[TABLE_ROWS])
{
    int n = 0;
    for (int stage = REPORT_COLLECT; stage <= REPORT_STAGES;
         stage++) /* the last is the whole run */
        for (int split = 0; split < 3; split++) fill_row(r, stage, split, &out[n++]);
}

static void put_number(Buffer *out, double v)
{
    isnan(v) ? buffer_puts(out, "\tnan") : buffer_printf(out, "\t%.4f", v);
}

void table_tsv(const TableRow rows[TABLE_ROWS], Buffer *out)
{
    buffer_puts(out, "stage\tsplit\ttasks\tattempted\tsucceeded\tfaster\tmean\tgeomean\tmedian\tmax"
                     "\tp25\tp75\trate_low\trate_high\tfaster_low\tfaster_high\tmean_low\tmean_high"
                     "\tgeomean_low\tgeomean_high\tmedian_low\tmedian_high\n");
    for (int i = 0; i < TABLE_ROWS; i++) {
        const TableRow *w = &rows[i];
        buffer_printf(out, "%s\t%s\t%d\t%ld\t%ld\t%d", w->stage, w->split, w->tasks, w->attempted,
                      w->succeeded, w->faster);
        const double v[] = {w->mean, w->geomean, w->median, w->max, w->p25, w->p75};
        for (int k = 0; k < 6; k++) put_number(out, v[k]);
        for (int k = 0; k < TABLE_STATISTICS; k++) {
            put_number(out, w->in[k].low);
            put_number(out, w->in[k].high);
        }
        buffer_puts(out, "\n");
    }
}
