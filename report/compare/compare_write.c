/* A comparison as text, as TSV and as a page. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare/compare.h"

static int has(const Interval *in)
{
    return !isnan(in->low) && !isnan(in->high);
}

static int is_shown(const CompareRow *w)
{
    return w->tasks && (w->attempted[0] || w->attempted[1]);
}

static void count_kernels(const Compare *c, int i, int out[3])
{
    memset(out, 0, 3 * sizeof *out);
    for (int k = 0; k < c->n_kernels[i]; k++)
        if (!c->kernel[i][k].degenerate) out[c->kernel[i][k].won + 1]++;
}

/* The run's best kernels over torch.compile, on the tasks where both have its time. Returns how many. */
static int over_compile(const Compare *c, int i, double *a, double *b)
{
    int n = 0;
    *a = *b = 0;
    for (int k = 0; k < c->n_kernels[i]; k++) {
        const CompareKernel *w = &c->kernel[i][k];
        if (w->degenerate || !(w->compile_a > 0 && w->compile_b > 0)) continue;
        *a += log(w->compile_a), *b += log(w->compile_b), n++;
    }
    *a = exp(*a / (n ? n : 1)), *b = exp(*b / (n ? n : 1));
    return n;
}

static void compile_line(const Compare *c, int i, Buffer *out)
{
    double a, b;
    int n = over_compile(c, i, &a, &b);
    if (!n)
        buffer_puts(out, "torch.compile was not measured.");
    else
        buffer_printf(out, "Over torch.compile, geomean of %d task%s: a %.2fx, b %.2fx.", n,
                      n == 1 ? "" : "s", a, b);
}

static void warnings(const Compare *c, void (*say)(Buffer *, const char *), Buffer *b)
{
    int predicted = 0, uneven = 0;
    for (int i = 0; i + 1 < c->n_runs; i++)
        for (int k = 0; k < COMPARE_STAGES * COMPARE_SPLITS; k++)
            uneven |= c->row[i][k].attempted[0] != c->row[i][k].attempted[1];
    for (int i = 0; i < c->n_runs; i++) predicted |= c->run[i].own_predicted;
    if (!c->same_device)
        say(b, "The runs were judged on different devices: their speedups cannot be compared.");
    if (!c->same_tasks)
        say(b, "The files of the tasks differ: a task of one name may be another task.");
    if (uneven)
        say(b, "The runs drew different numbers of samples: the best of more is faster by chance "
               "alone.");
    if (predicted) say(b, "Speedups are predicted by a simulator.");
}

/* ---- text ---- */

static const char *times(double v, char out[24])
{
    if (isnan(v))
        snprintf(out, 24, "-");
    else
        snprintf(out, 24, "%.2fx", v);
    return out;
}

static void say_text(Buffer *b, const char *s)
{
    buffer_printf(b, "%s\n", s);
}

static void settings_text(const Compare *c, Buffer *b)
{
    if (!c->n_settings) buffer_puts(b, "No setting differs.\n");
    for (int i = 0; i < c->n_settings; i++) {
        const CompareSetting *s = &c->setting[i];
        buffer_printf(b, "%s\n", strcmp(s->name, "stamp_tasks") ? s->name : "files of the tasks");
        for (int k = 0; k < c->n_runs; k++)
            buffer_printf(b, "  %-20s %.90s\n", c->run[k].run,
                          *s->value[k] ? s->value[k] : "(none)");
    }
}

static void row_text(const CompareRow *w, Buffer *b)
{
    char x[24], y[24];
    if (!is_shown(w)) return;
    buffer_printf(b, "%-8s %-8s %5d  %6ld/%-6ld %6ld/%-6ld ", w->stage, w->split, w->tasks,
                  w->succeeded[0], w->attempted[0], w->succeeded[1], w->attempted[1]);
    if (has(&w->rate.interval) && strcmp(w->stage, "best"))
        buffer_printf(b, "%+5.1f [%+5.1f %+5.1f]", 100 * w->rate.interval.middle,
                      100 * w->rate.interval.low, 100 * w->rate.interval.high);
    else
        buffer_printf(b, "%19s", "-");
    buffer_printf(b, "  %8s %8s", times(w->geomean.a, x), times(w->geomean.b, y));
    if (has(&w->geomean.interval))
        buffer_printf(b, "  %.2fx [%.2f %.2f]", w->geomean.interval.middle, w->geomean.interval.low,
                      w->geomean.interval.high);
    buffer_puts(b, "\n");
}

void compare_text(const Compare *c, Buffer *b)
{
    settings_text(c, b);
    warnings(c, say_text, b);
    for (int i = 0; i + 1 < c->n_runs; i++) {
        const char *a = c->run[0].run, *other = c->run[i + 1].run;
        int n[3];
        count_kernels(c, i, n);
        buffer_printf(b,
                      "\na: %s\nb: %s\n\n%-8s %-8s %5s  %-13s %-13s %19s  %8s %8s  b / a [95%%]\n",
                      a, other, "stage", "split", "tasks", "correct a", "correct b",
                      "b - a, points", "geomean a", "b");
        for (int k = 0; k < COMPARE_STAGES * COMPARE_SPLITS; k++) row_text(&c->row[i][k], b);
        buffer_printf(b, "\nBest kernels: b won %d, a won %d, %d within a hundredth.\n", n[2], n[0],
                      n[1]);
        compile_line(c, i, b);
        buffer_puts(b, "\n");
        for (int k = 0; k < c->n_kernels[i]; k++) {
            const CompareKernel *w = &c->kernel[i][k];
            char x[24], y[24];
            buffer_printf(b, "%-28s %9s %9s  %s%s\n", w->task, times(w->a, x), times(w->b, y),
                          w->won > 0   ? "b"
                          : w->won < 0 ? "a"
                                       : "",
                          w->degenerate ? " (degenerate: not counted)" : "");
        }
    }
}

/* ---- TSV ---- */

static void number(Buffer *b, double v)
{
    isnan(v) ? buffer_puts(b, "\tnan") : buffer_printf(b, "\t%.4f", v);
}

static void figure_tsv(const char *table, const char *run, const char *name, const char *split,
                       const CompareFigure *f, Buffer *b)
{
    buffer_printf(b, "%s\t%s\t%s\t%s", table, run, name, split);
    number(b, f->a);
    number(b, f->b);
    number(b, f->interval.middle);
    number(b, f->interval.low);
    number(b, f->interval.high);
    buffer_puts(b, "\n");
}

/* A value of a setting may hold any letter. */
static void plain(Buffer *b, const char *s)
{
    for (; *s; s++) buffer_append(b, *s == '\t' || *s == '\n' || *s == '\r' ? " " : s, 1);
}

void compare_tsv(const Compare *c, Buffer *b)
{
    buffer_puts(b, "table\trun\tname\tsplit\ta\tb\tb_against_a\tlow\thigh\n");
    for (int i = 0; i + 1 < c->n_runs; i++) {
        const char *run = c->run[i + 1].run;
        for (int k = 0; k < c->n_settings; k++) {
            buffer_printf(b, "setting\t%s\t%s\t\t", run, c->setting[k].name);
            plain(b, c->setting[k].value[0]);
            buffer_puts(b, "\t");
            plain(b, c->setting[k].value[i + 1]);
            buffer_puts(b, "\t\t\t\n");
        }
        for (int k = 0; k < COMPARE_STAGES * COMPARE_SPLITS; k++) {
            const CompareRow *w = &c->row[i][k];
            if (!is_shown(w)) continue;
            if (strcmp(w->stage, "best")) figure_tsv("rate", run, w->stage, w->split, &w->rate, b);
            figure_tsv("geomean", run, w->stage, w->split, &w->geomean, b);
        }
        for (int k = 0; k < c->n_kernels[i]; k++) {
            const CompareKernel *w = &c->kernel[i][k];
            const CompareFigure f = {w->a, w->b, {w->b / w->a, NAN, NAN}};
            figure_tsv("kernel", run, w->task,
                       w->degenerate ? "degenerate"
                       : w->heldout  ? "heldout"
                                     : "train",
                       &f, b);
            if (w->compile_a > 0 && w->compile_b > 0)
                figure_tsv("over_compile", run, w->task, w->heldout ? "heldout" : "train",
                           &(CompareFigure){
                               w->compile_a, w->compile_b, {w->compile_b / w->compile_a, NAN, NAN}},
                           b);
        }
    }
}

/* ---- the page ---- */

static void say_html(Buffer *b, const char *s)
{
    buffer_puts(b, "<p class=\"note\">");
    html_text(b, s);
    buffer_puts(b, "</p>\n");
}

static void settings_html(const Compare *c, Buffer *b)
{
    buffer_puts(b, "<h2>Settings that differ</h2>\n");
    if (!c->n_settings) buffer_puts(b, "<p>None.</p>\n");
    if (!c->n_settings) return;
    buffer_puts(b, "<div class=\"scroll\"><table><tr><th>setting");
    for (int i = 0; i < c->n_runs; i++) {
        buffer_puts(b, "<th class=\"left\">");
        html_text(b, c->run[i].run);
    }
    buffer_puts(b, "</tr>\n");
    for (int i = 0; i < c->n_settings; i++) {
        const CompareSetting *s = &c->setting[i];
        int tasks = !strcmp(s->name, "stamp_tasks");
        buffer_printf(b, "<tr><td>%s", tasks ? "files of the tasks" : s->name);
        for (int k = 0; k < c->n_runs; k++) {
            buffer_puts(b, "<td class=\"left wrap\"><code>");
            html_escape(b, s->value[k], tasks ? strnlen(s->value[k], 12) : strlen(s->value[k]));
            buffer_puts(b, "</code>");
        }
        buffer_puts(b, "</tr>\n");
    }
    buffer_puts(b, "</table></div>\n");
}

/* The colour tells a difference whose interval excludes none. */
static const char *sign(const Interval *in, double none)
{
    return !has(in) || (in->low <= none && in->high >= none) ? "lo"
           : in->middle > none                               ? "hi"
                                                             : "worse";
}

static void row_html(const CompareRow *w, Buffer *b)
{
    const Interval *rate = &w->rate.interval, *ratio = &w->geomean.interval;
    if (!is_shown(w)) return;
    buffer_printf(b, "<tr><td>%s<td class=\"left\">%s<td>%d", w->stage, w->split, w->tasks);
    for (int k = 0; k < 2; k++)
        buffer_printf(b, "<td>%ld of %ld", w->succeeded[k], w->attempted[k]);
    if (has(rate) && strcmp(w->stage, "best"))
        buffer_printf(b, "<td class=\"%s\">%+.1f <small>[%+.1f to %+.1f]</small>", sign(rate, 0),
                      100 * rate->middle, 100 * rate->low, 100 * rate->high);
    else
        buffer_puts(b, "<td>–");
    buffer_puts(b, "<td>");
    html_factor(b, w->geomean.a);
    buffer_puts(b, "<td>");
    html_factor(b, w->geomean.b);
    if (has(ratio))
        buffer_printf(b, "<td class=\"%s\">%.2f× <small>[%.2f–%.2f]</small></tr>\n", sign(ratio, 1),
                      ratio->middle, ratio->low, ratio->high);
    else
        buffer_puts(b, "<td>–</tr>\n");
}

static void pair_html(const Compare *c, int i, Buffer *b)
{
    int n[3];
    count_kernels(c, i, n);
    buffer_puts(b, "<h2>");
    html_text(b, c->run[i + 1].run);
    buffer_puts(b, " (b) against ");
    html_text(b, c->run[0].run);
    buffer_puts(b, " (a)</h2>\n<div class=\"scroll\"><table><tr><th>stage<th "
                   "class=\"left\">split<th>tasks<th>correct, a<th>correct, b<th>b − a, points<th>"
                   "geomean, a<th>geomean, b<th>b / a</tr>\n");
    for (int k = 0; k < COMPARE_STAGES * COMPARE_SPLITS; k++) row_html(&c->row[i][k], b);
    buffer_printf(b,
                  "</table></div>\n<h3>Best kernels: b won %d, a won %d, %d within a "
                  "hundredth</h3>\n<p>",
                  n[2], n[0], n[1]);
    compile_line(c, i, b);
    buffer_puts(b, "</p>\n<div class=\"scroll\"><table><tr><th>task<th>a<th>b<th>b / a</tr>\n");
    for (int k = 0; k < c->n_kernels[i]; k++) {
        const CompareKernel *w = &c->kernel[i][k];
        buffer_puts(b, "<tr><td>");
        html_text(b, w->task);
        buffer_puts(b, w->degenerate ? " (degenerate)<td>" : "<td>");
        html_factor(b, w->a);
        buffer_puts(b, "<td>");
        html_factor(b, w->b);
        buffer_printf(b, "<td class=\"%s\">", w->won > 0 ? "hi" : w->won < 0 ? "worse" : "lo");
        html_factor(b, w->b / w->a);
        buffer_puts(b, "</tr>\n");
    }
    buffer_puts(b, "</table></div>\n");
}

void compare_html(const Compare *c, Buffer *b)
{
    buffer_puts(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<title>Quern: runs compared</title>\n<style>\n");
    page_style(b);
    buffer_printf(b, "</style></head>\n<body><main>\n<h1>Quern: %d runs compared</h1>\n",
                  c->n_runs);
    warnings(c, say_html, b);
    buffer_puts(b,
                "<p class=\"soft\">In brackets: the 95% interval by resampling the tasks that both "
                "runs have, and the samples of each; of whole runs (best) tasks alone. A colour "
                "means that the interval excludes equality.</p>\n");
    settings_html(c, b);
    for (int i = 0; i + 1 < c->n_runs; i++) pair_html(c, i, b);
    buffer_puts(b, "</main></body></html>\n");
}
