/* report.html: one file without references to other files, whole without its script. All text from a run
 * is escaped. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/metrics/curves.h"
#include "report/report.h"

static void number(Buffer *b, double v, const char *unit)
{
    char out[48];
    if (isnan(v)) {
        buffer_puts(b, "–");
        return;
    }
    why_number(v, unit, out, sizeof out);
    html_text(b, out);
}

static void figures(const Report *r, Buffer *b)
{
    const char *predicted = r->own_predicted ? " (predicted)" : "";
    int each = figure_rounds_per_point(r);
    buffer_printf(b, "<h2>Best speedup by round</h2>\n<figure>\n");
    figure_rounds(r, b);
    buffer_printf(b,
                  "<figcaption>Speedup%s of the best kernel among each round's own samples, "
                  "logarithmic; 1× where none is better than "
                  "the baseline. Thin: the train tasks. Thick: their geometric mean. Dashed: the "
                  "geometric mean of the best so far, "
                  "what the teachers wrote included. Collect and the rounds draw different numbers "
                  "of samples.",
                  predicted);
    if (each > 1)
        buffer_printf(b, " There are %d rounds: each point is the best of %d, named by the last.",
                      r->n_rounds, each);
    buffer_puts(b, "</figcaption></figure>\n<h2>Outcomes by stage</h2>\n<figure>\n");
    figure_outcomes(r, b);
    buffer_puts(b, "<figcaption>Of the samples on train tasks; collect is what the teachers "
                   "wrote, the others each stage's final model.</figcaption></figure>\n");
}

/* What the programs noted step by step, and what each took. */
static void run_figures(const Report *r, Buffer *b)
{
    Buffer part;
    buffer_init(&part, 4 << 20);
    if (r->numbers && curves_write(r->numbers, &part)) {
        buffer_puts(b, "<h2>Learning</h2>\n<figure class=\"curves\">\n");
        buffer_append(b, part.data, part.len);
        buffer_puts(
            b, "<figcaption>Loss by step; the rounds' own samples by round, stage 2 before "
               "stage 3, on prompts with kernels to compare and without; by "
               "model: plain prompts of train and heldout tasks, answered by the model after "
               "so many rounds. Bars are 95% intervals of the samples.</figcaption></figure>\n");
    }
    buffer_clear(&part);
    if (r->numbers && learned_techniques(r->numbers, &part)) {
        buffer_puts(b, "<h2>Techniques by round</h2>\n<p>Of the correct kernels of train tasks, "
                       "how many use each.</p>\n");
        buffer_append(b, part.data, part.len);
    }
    buffer_clear(&part);
    if (r->numbers && learned_turns(r->numbers, &part)) {
        buffer_puts(b,
                    "<h2>Turns</h2>\n<p>Answers of stage 3 by turn. From the second on a prompt "
                    "shows the kernel before and its verdict. <i>Mended</i>: correct after a wrong "
                    "one; <i>faster</i>: than a correct one; <i>broken</i>: wrong after a correct "
                    "one. <i>Best so far</i> is the mean over the sequences of answers.</p>\n");
        buffer_append(b, part.data, part.len);
    }
    buffer_clear(&part);
    if (r->n_rules && timeline_write(r->rules, r->n_rules, &part)) {
        buffer_puts(b, "<h2>Where the time went</h2>\n<figure>\n");
        buffer_append(b, part.data, part.len);
        buffer_puts(b,
                    "<div class=\"legend\"><span><b class=\"o-plan\"></b>sampling</span><span><b "
                    "class=\"o-compile\"></b>judging</span><span><b class=\"o-ok\"></b>training"
                    "</span><span><b class=\"o-none\"></b>other</span></div></figure>\n");
    }
    buffer_release(&part);
}

/* ---- device classes ---- */

static void class_table(const Report *r, Buffer *b)
{
    if (!r->n_classes) return;
    buffer_printf(b,
                  "<h2>On other hardware</h2>\n<p>The pool's best of each task, evaluated on every "
                  "device class%s; tasks without a "
                  "kernel in the pool show their baseline, 1.00×.</p>\n<div "
                  "class=\"scroll\"><table><tr><th>task",
                  r->predicted ? " (<code>sim:</code> classes are predicted)" : "");
    for (int k = 0; k < r->n_classes; k++) {
        buffer_puts(b, "<th>");
        html_text(b, r->class_name[k]);
    }
    buffer_puts(b, "</tr>\n");
    for (int i = 0; i < r->tasks.n; i++) {
        const ReportTask *t = &r->task[i];
        buffer_printf(b, "<tr><td>%s%s", t->task->name, t->task->degenerate ? " (degenerate)" : "");
        for (int k = 0; k < r->n_classes; k++) {
            double v = t->class_score[k];
            buffer_printf(b, "<td class=\"%s\">", v > 1.01 ? "hi" : "lo");
            if (t->class_outcome[k] != OUTCOME_OK)
                html_text(b, outcome_name(t->class_outcome[k]));
            else
                html_factor(b, v);
        }
        buffer_puts(b, "</tr>\n");
    }
    buffer_puts(b, "</table></div>\n");
}

/* ---- tasks ---- */

/* Draws a bar from the middle (equal) to the left (less) or the right (more), in the colour of
 * better or worse. The ends are a sixteenth and sixteen times. */
static void ratio_bar(double ratio, int better, Buffer *b)
{
    double at = ratio > 0 ? fmax(-1, fmin(1, log2(ratio) / 4)) : -1;
    buffer_printf(
        b, "<td class=\"bar\"><div><i class=\"%s\" style=\"left:%.1f%%;width:%.1f%%\"></i></div>",
        better > 0   ? "better"
        : better < 0 ? "worse"
                     : "other",
        at < 0 ? 50 + 50 * at : 50, 50 * fabs(at));
}

static void counter_table(const ReportTask *t, Buffer *b)
{
    CounterRow rows[EXPLAIN_ROWS];
    int n = explain_rows(t, rows);
    if (!n) return;
    buffer_puts(b, "<div class=\"scroll\"><table><tr><th>counter<th>baseline<th>best<th>best / "
                   "baseline<th></tr>\n");
    for (int i = 0; i < n; i++) {
        buffer_printf(b, "<tr><td>%s<td>", rows[i].label);
        number(b, rows[i].before, rows[i].unit);
        buffer_puts(b, "<td>");
        number(b, rows[i].after, rows[i].unit);
        if (rows[i].before > 0) {
            buffer_printf(b, "<td>%.2f", rows[i].after / rows[i].before);
            ratio_bar(rows[i].after / rows[i].before, rows[i].better, b);
        } else
            buffer_puts(b, "<td>–<td>");
        buffer_puts(b, "</tr>\n");
    }
    buffer_puts(b, "</table></div>\n");
}

/* Of several timed workloads. */
static void workload_table(const ReportTask *t, Buffer *b)
{
    if (!t->source || !t->n_rows) return;
    buffer_puts(b, "<div class=\"scroll\"><table><tr><th>timed sizes<th>weight<th>speedup<th>time, "
                   "us<th>baseline, us</tr>\n");
    for (int i = 0; i < t->n_rows; i++) {
        const VerdictRow *r = &t->rows[i];
        buffer_puts(b, "<tr><td>");
        html_text(b, r->sizes);
        buffer_printf(b, "<td>%.2f<td>%.3f<td>%.2f<td>%.2f</tr>\n", r->weight, r->speedup,
                      r->time_us, r->baseline_us);
    }
    buffer_puts(b, "</table></div>\n");
}

/* Where its kernel was found or refused is in data-tags, for the filter. */
static void task_head(const ReportTask *t, Buffer *b)
{
    const Task *k = t->task;
    const char *split = k->heldout ? "heldout" : "train";
    buffer_printf(b,
                  "<section class=\"task\" id=\"%s\" data-score=\"%.4f\" data-samples=\"%ld\" "
                  "data-tags=\"level %d %s %s\"><div class=\"head\"><h3><a class=\"link\" "
                  "href=\"#%s\">%s</a></h3><span class=\"tag\">level %d</span>"
                  "<span class=\"tag\">%s</span>",
                  k->name, t->source ? t->score : 0, t->run.attempted, k->level, split,
                  t->source    ? "correct"
                  : t->refused ? "refused"
                               : "none",
                  k->name, k->name, k->level, split);
    if (k->degenerate) buffer_puts(b, "<span class=\"tag warn\">degenerate: in no mean</span>");
    if (t->source)
        buffer_printf(b, "<span class=\"score\">%.2f×%s%s%s</span></div>\n", t->score,
                      t->predicted ? " predicted" : "", t->doubt[0] ? " " : "", t->doubt);
    else
        buffer_printf(b, "<span class=\"score none\">%s</span></div>\n",
                      t->refused ? "refused when judged again" : "no correct kernel");
    buffer_puts(b, "<p class=\"soft\">");
    html_text(b, k->description);
    buffer_puts(b, "</p>\n");
}

static void task_section(const Report *r, const ReportTask *t, int open, Buffer *b)
{
    Buffer why;
    buffer_init(&why, 4096);
    task_head(t, b);
    explain_text(t, &why);
    buffer_puts(b, "<p>");
    html_text(b, why.data);
    if (t->source) {
        buffer_puts(b, " <span class=\"soft\">Found in ");
        html_text(b, t->found);
        if (fabs(t->found_score - t->score) >= 0.005) buffer_printf(b, " at %.2f×", t->found_score);
        buffer_printf(b, "; %ld of %ld samples of the run were correct; %s.</span>",
                      t->run.succeeded, t->run.attempted, t->rivals);
    }
    buffer_puts(b, "</p>\n");
    int with_sources = r->tasks.n <= LINEAGE_TASKS;
    if (t->source) lineage_write(&t->lineage, t->task->name, with_sources, b);
    workload_table(t, b);
    counter_table(t, b);
    kernel_figures(r, t, b);
    buffer_printf(b,
                  "<details%s><summary>%s</summary><div class=\"pair\"><div><h4>baseline</h4><pre>",
                  open ? " open" : "", t->source ? "The kernels, side by side" : "The baseline");
    highlight_cuda(b, t->task->baseline_source);
    buffer_puts(b, "</pre></div>");
    if (t->source) {
        buffer_puts(b, "<div><h4>best <button class=\"copy\" hidden>copy</button></h4><pre>");
        highlight_cuda(b, t->source);
        buffer_puts(b, "</pre></div>");
    }
    buffer_puts(b, "</div></details>\n");
    /* After the kernels side by side: a link to a task opens its first details. */
    if (t->source && with_sources) lineage_sources(&t->lineage, t->task->name, b);
    buffer_puts(b, "</section>\n");
    buffer_release(&why);
}

static int by_score(const void *a, const void *b)
{
    const ReportTask *x = *(const ReportTask *const *)a, *y = *(const ReportTask *const *)b;
    if (x->task->degenerate != y->task->degenerate)
        return x->task->degenerate - y->task->degenerate;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return strcmp(x->task->name, y->task->name);
}

static void task_sections(const Report *r, Buffer *b)
{
    const ReportTask **order = memory_array((size_t)r->tasks.n, sizeof *order);
    for (int i = 0; i < r->tasks.n; i++) order[i] = &r->task[i];
    qsort(order, (size_t)r->tasks.n, sizeof *order, by_score);
    buffer_printf(b,
                  "<h2>Best kernels</h2>\n<p>Each task's best kernel of the run beside its "
                  "baseline, fastest first. A score is the lower "
                  "bound of the speedup%s; a record that no second GPU judged is "
                  "<em>unconfirmed</em>, one that a second GPU found slower <em>disputed</em> "
                  "and shown with the lower score. Counters that hardly differ are left out; bars "
                  "to the left are less, to the right more, green where that helps. "
                  "Sources are in <code>best/</code>.</p>\n",
                  r->judged_again ? ", as the kernel was judged once more after it was chosen"
                                  : "");
    buffer_puts(b, "<p id=\"tools\" hidden><label>Filter <input type=\"search\" "
                   "placeholder=\"name, train, level 2\"></label> <label>Sort by <select><option "
                   "value=\"page\">speedup<option value=\"name\">name<option value=\"samples\">"
                   "samples</select></label> <output></output></p>\n");
    for (int i = 0; i < r->tasks.n; i++) task_section(r, order[i], i == 0, b);
    free(order);
}

/* ---- failures, provenance ---- */

static void failures(const Report *r, Buffer *b)
{
    enum { SHOWN = 3 };
    buffer_puts(b, "<h2>Failures</h2>\n<p>Of every sample of the run, with the most frequent "
                   "messages; messages that differ in numbers only "
                   "are counted as one and shown by the first.</p>\n<div "
                   "class=\"scroll\"><table><tr><th>outcome<th>samples<th>of these"
                   "<th class=\"left\">message</tr>\n");
    for (int i = 0, rank = 0; i < r->n_messages; i++) {
        const ReportMessage *m = &r->messages[i];
        rank = i && m[-1].outcome == m->outcome ? rank + 1 : 0;
        if (rank >= SHOWN) continue;
        if (rank)
            buffer_puts(b, "<tr><td><td>");
        else
            buffer_printf(b, "<tr class=\"top\"><td>%s<td>%ld", outcome_name(m->outcome),
                          r->failed[m->outcome]);
        buffer_printf(b, "<td>%ld<td class=\"left wrap\">", m->count);
        size_t n = strlen(m->text);
        html_escape(b, m->text, n < 300 ? n : 300);
        buffer_puts(b, n < 300 ? "</tr>\n" : " …</tr>\n");
    }
    buffer_puts(b, "</table></div>\n");
}

static void caveats(const Report *r, Buffer *b)
{
    buffer_puts(b, "<h2>What not to believe</h2>\n<ul>\n");
    if (r->predicted)
        buffer_puts(b, "<li>Predicted times are of a model of the GPU, on workloads small enough "
                       "to simulate. They rank kernels by what they "
                       "were counted doing; a real GPU may disagree.</li>\n");
    buffer_puts(b, "<li>Best-of-n grows with n: compare stages, which draw equally many samples, "
                   "not rounds with collect.</li>\n"
                   "<li>The lines by round show the scores that kernels were found with: where "
                   "times are measured, the best of many is "
                   "too high by luck.</li>\n"
                   "<li>Rounds, the pool and <i>best</i> include what the teachers wrote; a model "
                   "may repeat a teacher's kernel.</li>\n"
                   "<li>Speedups are against this repository's baselines, written as an eager "
                   "framework launches, not against a tuned "
                   "library.</li>\n<li>A degenerate task's work can be avoided by algebra: its "
                   "speedup says nothing of a kernel.</li>\n</ul>\n");
}

static void provenance(const Report *r, Buffer *b)
{
    buffer_puts(b, "<h2>Configuration and digests</h2>\n<p>What this page was made from, with the "
                   "SHA-256 of each payload. The tasks: <code>");
    html_text(b, r->tasks.digest);
    buffer_puts(b, "</code></p>\n<dl>\n");
    for (int i = 0; i < r->n_inputs; i++) {
        buffer_puts(b, "<dt>");
        html_text(b, r->inputs[i].path);
        buffer_puts(b, "<dd><code>");
        html_text(b, r->inputs[i].text);
        buffer_puts(b, "</code>");
        if (*r->inputs[i].config) {
            buffer_puts(b, "<br><code>");
            html_text(b, r->inputs[i].config);
            buffer_puts(b, "</code>");
        }
        buffer_puts(b, "</dd>\n");
    }
    buffer_puts(b, "</dl>\n");
}

int html_page(const Report *r, const TableRow rows[TABLE_ROWS], Buffer *b, Error *err)
{
    buffer_puts(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    if (r->live) buffer_puts(b, "<meta http-equiv=\"refresh\" content=\"15\">\n");
    buffer_puts(b, "<title>Quern: ");
    html_text(b, r->run);
    buffer_puts(b, "</title>\n<style>\n");
    page_style(b);
    buffer_puts(b, "</style></head>\n<body><script>");
    page_first_script(b);
    buffer_puts(b, "</script>\n<main>\n");
    html_top(r, rows, b);
    html_stages(r, rows, b);
    buffer_puts(b, "<div class=\"later\">\n");
    models_write(r, b);
    figures(r, b);
    run_figures(r, b);
    task_sections(r, b);
    class_table(r, b);
    failures(r, b);
    caveats(r, b);
    provenance(r, b);
    buffer_puts(b, "</div></main><script>");
    page_script(b);
    buffer_puts(b, "</script></body></html>\n");
    return b->full ? error_set(err, ERROR_LIMIT, "the page takes more than %zu bytes", b->max) : 0;
}
