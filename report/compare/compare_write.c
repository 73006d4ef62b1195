/* A comparison as text. */
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

/* A geometric mean of times that were measured apart: the shares of their intervals add in quadrature. */
typedef struct {
    double log, squares;
    int n;
} Mean;

static void mean_add(Mean *m, const Interval *v)
{
    double half = (v->high - v->low) / (2 * v->middle);
    m->log += log(v->middle), m->squares += half * half, m->n++;
}

static void mean_text(const Mean *m, const char *name, Buffer *out)
{
    double middle = exp(m->log / m->n), half = sqrt(m->squares) / m->n;
    buffer_printf(out, " %s %.2fx [%.2f %.2f]", name, middle, middle * fmax(0, 1 - half),
                  middle * (1 + half));
}

/* The runs' best kernels over torch.compile, on the tasks where both have its time. */
static void compile_line(const Compare *c, int i, Buffer *out)
{
    Mean a = {0}, b = {0};
    for (int k = 0; k < c->n_kernels[i]; k++) {
        const CompareKernel *w = &c->kernel[i][k];
        if (w->degenerate || !(w->compile_a.middle > 0 && w->compile_b.middle > 0)) continue;
        mean_add(&a, &w->compile_a);
        mean_add(&b, &w->compile_b);
    }
    if (!a.n) {
        buffer_puts(out, "torch.compile was not measured.");
        return;
    }
    buffer_printf(out, "Over torch.compile, geomean of %d task%s [95%%]:", a.n,
                  a.n == 1 ? "" : "s");
    mean_text(&a, "a", out);
    buffer_puts(out, ",");
    mean_text(&b, "b", out);
    buffer_puts(out, ".");
}

static void say(Buffer *b, const char *s)
{
    buffer_printf(b, "%s\n", s);
}

static void warnings(const Compare *c, Buffer *b)
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

static const char *times(double v, char out[24])
{
    if (isnan(v))
        snprintf(out, 24, "-");
    else
        snprintf(out, 24, "%.2fx", v);
    return out;
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
    warnings(c, b);
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
