/* The rows of report.tsv and of the page's table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "report/report.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

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
    qsort(v, (size_t)n, sizeof *v, ascending);
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

static void fill_row(const Report *r, int stage, int split, TableRow *row)
{
    static const char *const splits[] = {"train", "heldout", "all"};
    double *best = memory_array((size_t)r->tasks.n, sizeof *best);
    int n = 0;
    *row = (TableRow){0};
    for (int i = 0; i < r->tasks.n; i++) {
        const ReportTask *t = &r->task[i];
        if (t->task->degenerate || (split < 2 && t->task->heldout != split)) continue;
        const Tally *tally = stage < REPORT_STAGES ? &t->stage[stage] : &t->run;
        row->attempted += tally->attempted;
        row->succeeded += tally->succeeded;
        best[n++] = tally->best;
    }
    table_statistics(best, n, row);
    snprintf(row->stage, sizeof row->stage, "%s",
             stage < REPORT_STAGES ? report_stage_names[stage] : "best");
    snprintf(row->split, sizeof row->split, "%s", splits[split]);
    free(best);
}

void table_rows(const Report *r, TableRow out[TABLE_ROWS])
{
    int n = 0;
    for (int stage = REPORT_SFT; stage <= REPORT_STAGES; stage++) /* the last is the whole run */
        for (int split = 0; split < 3; split++) fill_row(r, stage, split, &out[n++]);
}

void table_tsv(const TableRow rows[TABLE_ROWS], Buffer *out)
{
    buffer_puts(out, "stage\tsplit\ttasks\tattempted\tsucceeded\tfaster\tmean\tgeomean\tmedian\tmax"
                     "\tp25\tp75\n");
    for (int i = 0; i < TABLE_ROWS; i++) {
        const TableRow *w = &rows[i];
        buffer_printf(out, "%s\t%s\t%d\t%ld\t%ld\t%d", w->stage, w->split, w->tasks, w->attempted,
                      w->succeeded, w->faster);
        const double v[] = {w->mean, w->geomean, w->median, w->max, w->p25, w->p75};
        for (int k = 0; k < 6; k++)
            isnan(v[k]) ? buffer_puts(out, "\tnan") : buffer_printf(out, "\t%.4f", v[k]);
        buffer_puts(out, "\n");
    }
}
