/* Means of logarithms are geometric means, so that paired differences of best8 and best are ratios. */
#include "lab/ablation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "lab/gap.h"
#include "stages/data/round_figures.h"

static const double least_score = 0.01;

/* ---- arithmetic ---- */

double ablation_half_interval(const double *v, int n, double *mean)
{
    /* Student's t at 97.5% for 1 to 30 degrees of freedom. */
    static const double t[30] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
    double sum = 0, square = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    *mean = n ? sum / n : NAN;
    if (n < 2) return 0;
    for (int i = 0; i < n; i++) square += (v[i] - *mean) * (v[i] - *mean);
    return (n <= 31 ? t[n - 2] : 1.96) * sqrt(square / (n - 1) / n);
}

/* ---- a run ---- */

static double log_score(double s)
{
    return log2(fmax(s, least_score));
}

/* Adds the log2 of the task's expected best of 8 to *sum, unless an earlier sample is of the same
 * task. Returns 1 when it did. */
static int add_task(const SampleSet *s, long at, double *sum)
{
    const char *task = s->items[at].task;
    double *score = memory_array((size_t)s->n, sizeof *score);
    int n = 0, first = !s->items[at].heldout;
    for (long i = 0; i < at && first; i++) first = strcmp(s->items[i].task, task) != 0;
    for (long i = at; i < s->n && first; i++)
        if (!strcmp(s->items[i].task, task) && s->items[i].outcome != OUTCOME_EVALUATOR_ERROR)
            score[n++] = s->items[i].score;
    if (first && n) *sum += log_score(figures_best_of(score, n, 8));
    free(score);
    return first && n;
}

static void read_samples(const SampleSet *s, AblationCell *out)
{
    RoundFigures f;
    double sum = 0;
    int tasks = 0;
    round_figures(s, NULL, &f);
    long judged = f.plain.samples + f.contrastive.samples;
    for (long i = 0; i < s->n; i++) tasks += add_task(s, i, &sum);
    out->value[ABLATION_SUCCESS] =
        judged ? (double)(f.plain.succeeded + f.contrastive.succeeded) / (double)judged : NAN;
    out->value[ABLATION_BEST8] = tasks ? sum / tasks : NAN;
}

/* Whether the report asks a task: it has those of TASKS, the rounds may have others beside them. */
static int is_reported(const SampleSet *report, const char *task)
{
    for (long i = 0; i < report->n; i++)
        if (!strcmp(report->items[i].task, task)) return 1;
    return 0;
}

static void read_pool(const Pool *p, const SampleSet *report, AblationCell *out)
{
    double sum = 0;
    int tasks = 0;
    for (long i = 0; i < p->n; i++) {
        const char *task = p->items[i].task;
        int first = is_reported(report, task);
        for (long k = 0; k < i && first; k++) first = strcmp(p->items[k].task, task) != 0;
        if (!first) continue;
        sum += log_score(pool_best(p, task)->score);
        tasks++;
    }
    out->value[ABLATION_BEST] = tasks ? sum / tasks : NAN;
}

/* Moves the samples of the report's tasks to the front. Returns how many there are. */
static long keep_reported(SampleSet *s, const SampleSet *report)
{
    long kept = 0;
    for (long i = 0; i < s->n; i++) {
        if (!is_reported(report, s->items[i].task)) continue;
        Sample x = s->items[i];
        s->items[i] = s->items[kept];
        s->items[kept++] = x;
    }
    return kept;
}

/* The rounds of stage 3: how many samples, and how often comparisons were right. */
static int read_rounds(const char *run, const SampleSet *report, AblationCell *out, Error *err)
{
    long right = 0, wrong = 0;
    int rc = 0;
    for (int round = 1; !rc; round++) {
        char *samples = memory_printf("%s/crl/%d/samples.qa", run, round);
        SampleSet s;
        RoundFigures f;
        int there = file_exists(samples);
        rc = there ? samples_load(samples, NULL, &s, err) : 0;
        free(samples);
        if (!there || rc) break;
        const SampleSet own = {.items = s.items, .n = keep_reported(&s, report)};
        round_figures(&own, NULL, &f);
        right += f.right;
        wrong += f.wrong;
        out->evaluations += s.n;
        samples_release(&s);
    }
    out->value[ABLATION_COMPARED] = right + wrong ? (double)right / (double)(right + wrong) : NAN;
    return rc;
}

/* With LAB_WITHHOLD=1: the gap that the final model's samples close, and the run's pool. */
static int read_gaps(const char *run, const SampleSet *s, const Pool *p, AblationCell *out,
                     Error *err)
{
    Pool teacher = {0}, full = {0};
    Gap of_samples, of_pool;
    char *from = memory_printf("%s/collect/pool.qa", run),
         *to = memory_printf("%s/lab/full/pool.qa", run);
    int there = file_exists(from) && file_exists(to),
        rc = there && (pool_load(from, &teacher, err) || pool_load(to, &full, err)) ? -1 : 0;
    if (!rc) {
        gap_of_samples(s, &teacher, &full, &of_samples);
        gap_of_pool(p, &teacher, &full, &of_pool);
        out->value[ABLATION_GAP8] = of_samples.closed.middle;
        out->value[ABLATION_GAP] = of_pool.closed.middle;
        gap_release(&of_samples);
        gap_release(&of_pool);
    }
    pool_release(&teacher);
    pool_release(&full);
    free(from);
    free(to);
    return rc;
}

/* What a finished run has, of which the page is written last. */
typedef struct {
    char *samples, *verdicts, *pool, *report;
} Finished;

static int read_finished(const char *run, const Finished *f, AblationCell *out, Error *err)
{
    SampleSet s;
    Pool p;
    if (samples_load(f->samples, f->verdicts, &s, err)) return -1;
    int rc = pool_load(f->pool, &p, err);
    if (!rc) {
        read_samples(&s, out);
        read_pool(&p, &s, out);
        rc = read_gaps(run, &s, &p, out, err) || read_rounds(run, &s, out, err) ? -1 : 0;
        pool_release(&p);
    }
    samples_release(&s);
    return rc;
}

int ablation_cell_read(const char *run, AblationCell *out, Error *err)
{
    *out = (AblationCell){0};
    const Finished f = {memory_printf("%s/report/crl/samples.qa", run),
                        memory_printf("%s/report/crl/verdicts.qa", run),
                        memory_printf("%s/report/crl/pool.qa", run),
                        memory_printf("%s/report.html", run)};
    int rc = 0;
    if (file_exists(f.report) && file_exists(f.samples) && file_exists(f.verdicts) &&
        file_exists(f.pool)) {
        rc = read_finished(run, &f, out, err);
        out->there = !rc;
    }
    free(f.samples);
    free(f.verdicts);
    free(f.pool);
    free(f.report);
    return rc;
}

/* ---- the table ---- */

static int is_ratio(int value)
{
    return value == ABLATION_BEST8 || value == ABLATION_BEST;
}

/* A mean, and for later arms the paired difference: points for shares, a factor for scores. */
static void put_value(Buffer *out, const AblationCell *arm, const AblationCell *first, int n,
                      int value)
{
    double all[ABLATION_MAX_SEEDS], paired[ABLATION_MAX_SEEDS], mean, difference;
    int n_all = 0, n_paired = 0;
    for (int i = 0; i < n; i++) {
        if (!arm[i].there || isnan(arm[i].value[value])) continue;
        all[n_all++] = arm[i].value[value];
        if (arm != first && first[i].there && !isnan(first[i].value[value]))
            paired[n_paired++] = arm[i].value[value] - first[i].value[value];
    }
    if (!n_all) {
        buffer_puts(out, " - |");
        return;
    }
    ablation_half_interval(all, n_all, &mean);
    double half = ablation_half_interval(paired, n_paired, &difference);
    if (is_ratio(value))
        buffer_printf(out, " %.3f", exp2(mean));
    else
        buffer_printf(out, " %.1f%%", 100 * mean);
    if (n_paired > 1 && is_ratio(value))
        buffer_printf(out, " (x%.3f, %.3f to %.3f)", exp2(difference), exp2(difference - half),
                      exp2(difference + half));
    else if (n_paired > 1)
        buffer_printf(out, " (%+.1f, %+.1f to %+.1f)", 100 * difference, 100 * (difference - half),
                      100 * (difference + half));
    buffer_puts(out, " |");
}

static void put_holes(Buffer *out, const AblationCell *arm, const char *const *seeds, int n)
{
    int holes = 0, there = 0;
    for (int i = 0; i < n; i++) there += arm[i].there;
    buffer_printf(out, " %d", there);
    for (int i = 0; i < n; i++)
        if (!arm[i].there)
            buffer_printf(out, "%s%s", holes++ ? ", " : "; MISSING: seed ", seeds[i]);
    buffer_puts(out, " |");
}

void ablation_table(const AblationCell *cells, const AblationNames *of, Buffer *out)
{
    const int n_seeds = of->n_seeds;
    buffer_puts(out, "| arm | seeds | evaluations | success | best of 8 | best of the run | right "
                     "comparisons | gap closed, best of 8 | gap closed by the run "
                     "|\n|---|---|---|---|---|---|---|---|---|\n");
    for (int a = 0; a < of->n_arms; a++) {
        const AblationCell *arm = cells + a * n_seeds;
        long evaluations = 0, there = 0;
        for (int i = 0; i < n_seeds; i++) evaluations += arm[i].evaluations, there += arm[i].there;
        buffer_printf(out, "| %s |", of->arms[a]);
        put_holes(out, arm, of->seeds, n_seeds);
        buffer_printf(out, there ? " %ld |" : " - |", there ? evaluations / there : 0);
        for (int v = 0; v < ABLATION_VALUES; v++) put_value(out, arm, cells, n_seeds, v);
        buffer_puts(out, "\n");
    }
    buffer_printf(out,
                  "\nIn brackets: the difference to %s over the seeds that both have, with its "
                  "95%% interval.\n",
                  of->arms[0]);
}
