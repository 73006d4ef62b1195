/* The run's numbers in the form of the paper's tables, and the paper's beside them. The paper is "CUDA-L1"
 * (arXiv 2507.14111): its tables 4 (levels), 5 (stages) and 6 (GPUs), against eager PyTorch on
 * KernelBench's 250 problems. Its shares of correct tasks on other GPUs than the A100 are those of its
 * repository; the percentiles there follow from the repository's list of results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lab/paper.h"

typedef struct {
    const char *name;
    int tasks;
    double mean, max, p75, median, p25;
    double correct; /* tasks with a correct kernel, of 100 */
    int faster;     /* tasks above 1.01 */
} PaperRow;

static const PaperRow paper_stages[] = {
    {"stage 1", 250, 1.14, 32.7, 1.00, 1.00, 0.96, 96.0, 50},
    {"stages 1 and 2", 250, 1.36, 48.3, 1.41, 1.09, 1.00, 98.8, 175},
    {"all stages", 250, 3.12, 120, 2.25, 1.42, 1.17, 99.6, 226}};
static const PaperRow paper_levels[] = {{"level 1", 100, 2.78, 65.8, 1.75, 1.28, 1.12, 99, 80},
                                        {"level 2", 100, 3.55, 120, 2.05, 1.39, 1.20, 100, 98},
                                        {"level 3", 50, 2.96, 24.9, 2.60, 1.94, 1.42, 100, 48}};
static const PaperRow paper_gpus[] = {{"A100", 250, 3.12, 120, 2.25, 1.42, 1.17, 99.6, 226},
                                      {"H100", 250, 3.855, 368.2, 1.76, 1.32, 1.09, 100, 218},
                                      {"L40", 250, 3.127, 182.3, 1.88, 1.31, 1.08, 99.2, 215},
                                      {"RTX 3090", 250, 2.513, 114.5, 1.57, 1.18, 1.03, 96.8, 201},
                                      {"H20", 250, 2.382, 63.7, 1.81, 1.34, 1.11, 98.8, 226}};

/* ---- rows ---- */

/* The best scores of some tasks, and how many of these have a correct kernel. */
typedef struct {
    double *best;
    int n, correct;
} Scores;

static void put_numbers(Buffer *b, int tasks, const double v[5], double correct, int faster)
{
    buffer_printf(b, "<td>%d", tasks);
    for (int i = 0; i < 5; i++) {
        buffer_puts(b, i ? "<td>" : "<td class=\"hi\">");
        html_factor(b, v[i]);
    }
    buffer_printf(b, "<td>%.3g%%<td>%d</tr>\n", correct, faster);
}

static void put_ours(Buffer *b, const char *name, Scores *s)
{
    TableRow w;
    if (!s->n) return;
    table_statistics(s->best, s->n, &w);
    buffer_puts(b, "<tr><td>");
    html_text(b, name);
    buffer_puts(b, "<td class=\"left\">this run");
    if (!s->correct) w.mean = w.max = w.p75 = w.median = w.p25 = NAN; /* 1.0 of nothing */
    put_numbers(b, s->n, (double[]){w.mean, w.max, w.p75, w.median, w.p25},
                100.0 * s->correct / s->n, w.faster);
}

static void put_paper(Buffer *b, const PaperRow *p)
{
    buffer_printf(b, "<tr class=\"soft\"><td>%s<td class=\"left\">paper", p->name);
    put_numbers(b, p->tasks, (double[]){p->mean, p->max, p->p75, p->median, p->p25}, p->correct,
                p->faster);
}

static void put_title(Buffer *b, const char *title)
{
    buffer_printf(b, "<tr class=\"top\"><td colspan=\"10\"><b>%s</b></tr>\n", title);
}

/* ---- groups of tasks ---- */

static int is_counted(const ReportTask *t)
{
    return !t->task->heldout && !t->task->degenerate;
}

static int is_kernelbench(const ReportTask *t)
{
    return strstr(t->task->dir, "kernelbench/level") != NULL;
}

static void add(Scores *s, double best, int correct)
{
    s->best[s->n++] = best;
    s->correct += correct;
}

static void by_stage(const Report *r, Scores *s, Buffer *b)
{
    put_title(b, "By stage: the best of its last model's samples");
    for (int stage = REPORT_SFT; stage < REPORT_STAGES; stage++) {
        s->n = s->correct = 0;
        for (int i = 0; i < r->tasks.n; i++) {
            const Tally *t = &r->task[i].stage[stage];
            if (is_counted(&r->task[i]) && t->attempted) add(s, t->best, t->succeeded > 0);
        }
        put_ours(b, paper_stages[stage - REPORT_SFT].name, s);
    }
    for (int i = 0; i < 3; i++) put_paper(b, &paper_stages[i]);
}

static void by_level(const Report *r, Scores *s, Buffer *b)
{
    put_title(b, "KernelBench by level: the whole run");
    for (int level = 1; level <= 3; level++) {
        s->n = s->correct = 0;
        for (int i = 0; i < r->tasks.n; i++) {
            const ReportTask *t = &r->task[i];
            if (is_counted(t) && is_kernelbench(t) && t->task->level == level)
                add(s, t->run.best, t->source != NULL);
        }
        put_ours(b, paper_levels[level - 1].name, s);
    }
    for (int i = 0; i < 3; i++) put_paper(b, &paper_levels[i]);
}

static int is_first_of_family(const Report *r, int at)
{
    for (int i = 0; i < at; i++)
        if (is_counted(&r->task[i]) && !is_kernelbench(&r->task[i]) &&
            !strcmp(r->task[i].task->op_type, r->task[at].task->op_type))
            return 0;
    return is_counted(&r->task[at]) && !is_kernelbench(&r->task[at]);
}

/* The rows of all tasks and of the families with more than one; those of the others are in one row. */
static void by_family(const Report *r, Scores *s, Buffer *b)
{
    Scores all = {memory_array((size_t)r->tasks.n, sizeof(double)), 0, 0},
           others = {memory_array((size_t)r->tasks.n, sizeof(double)), 0, 0};
    Buffer rows;
    buffer_init(&rows, 1 << 20);
    for (int i = 0; i < r->tasks.n; i++) {
        const char *family = r->task[i].task->op_type;
        if (!is_first_of_family(r, i)) continue;
        s->n = s->correct = 0;
        for (int k = i; k < r->tasks.n; k++) {
            const ReportTask *t = &r->task[k];
            if (!is_counted(t) || is_kernelbench(t) || strcmp(t->task->op_type, family) != 0)
                continue;
            add(s, t->run.best, t->source != NULL);
            add(&all, t->run.best, t->source != NULL);
        }
        if (s->n > 1)
            put_ours(&rows, family, s);
        else
            add(&others, s->best[0], s->correct);
    }
    put_title(b, "By family: the whole run");
    put_ours(b, "all tasks", &all);
    buffer_append(b, rows.data, rows.len);
    if (others.n < all.n) put_ours(b, "families of one task", &others);
    buffer_release(&rows);
    free(others.best);
    free(all.best);
}

static void by_device(const Report *r, Scores *s, Buffer *b)
{
    if (!r->n_classes) return;
    put_title(b, "By device: the pool's best kernels");
    for (int k = 0; k < r->n_classes; k++) {
        s->n = s->correct = 0;
        for (int i = 0; i < r->tasks.n; i++) {
            const ReportTask *t = &r->task[i];
            double v = t->class_score[k];
            if (is_counted(t))
                add(s, v > 1 ? v : 1, t->source && t->class_outcome[k] == OUTCOME_OK);
        }
        put_ours(b, r->class_name[k], s);
    }
    for (size_t i = 0; i < sizeof paper_gpus / sizeof *paper_gpus; i++)
        put_paper(b, &paper_gpus[i]);
}

void paper_write(const Report *r, Buffer *b)
{
    Scores s = {memory_array((size_t)r->tasks.n, sizeof(double)), 0, 0};
    int counted = 0, kernelbench = 0;
    for (int i = 0; i < r->tasks.n; i++) {
        counted += is_counted(&r->task[i]);
        kernelbench += is_counted(&r->task[i]) && is_kernelbench(&r->task[i]);
    }
    if (counted) {
        buffer_printf(
            b,
            "<h2 id=\"paper\">Beside the paper</h2>\n<p>Of each train task its best kernel, 1.0 "
            "where none is better than the baseline; <i>correct</i> is the share of tasks with a "
            "correct kernel. The paper's rows are CUDA-L1 (arXiv 2507.14111, tables 4 to 6): "
            "KernelBench's 250 problems on other hardware, against PyTorch there, with kernels "
            "tuned on an A100. They say what the method reached, and are no baseline of this "
            "run%s.</p>\n<div class=\"scroll\"><table><tr><th><th class=\"left\">whose<th>tasks"
            "<th>mean<th>max<th>75%%<th>50%%<th>25%%<th>correct<th>&gt; 1.01</tr>\n",
            kernelbench < counted ? ", whose tasks are others" : "");
        by_stage(r, &s, b);
        if (kernelbench) by_level(r, &s, b);
        if (kernelbench < counted) by_family(r, &s, b);
        by_device(r, &s, b);
        buffer_puts(b, "</table></div>\n");
    }
    free(s.best);
}
