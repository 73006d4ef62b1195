/* The figures of the report, written as SVG. Lines, bars and text have classes, whose colours the
 * page defines, so that one picture serves the light and the dark theme. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/report.h"

/* ---- best speedup by round ---- */

enum { WIDTH = 960, HEIGHT = 430, LEFT = 52, RIGHT = 190, TOP = 16, BOTTOM = 44, LABEL_STEP = 15 };
enum { LONGEST_LABEL = 16 };              /* letters */
enum { MAX_POINTS = 240, MAX_DOTS = 60 }; /* 3 pixels per point; dots that do not touch */

typedef struct {
    int points; /* collect is the first; each of the others has rounds_per_point rounds */
    int rounds_per_point;
    double low, high; /* speedups at the ends of the axis, which is logarithmic */
    const ReportTask **task;
    double *best; /* [tasks][points] */
    int tasks;
} Axes;

int figure_rounds_per_point(const Report *r)
{
    return r->n_rounds > MAX_POINTS ? (r->n_rounds + MAX_POINTS - 1) / MAX_POINTS : 1;
}

static double x_of(const Axes *a, int point)
{
    double width = WIDTH - LEFT - RIGHT;
    return a->points > 1 ? LEFT + width * point / (a->points - 1) : LEFT + width / 2;
}

static double y_of(const Axes *a, double v)
{
    return TOP +
           (HEIGHT - TOP - BOTTOM) * (1 - (log(v) - log(a->low)) / (log(a->high) - log(a->low)));
}

/* Returns the last round of a point. */
static int round_of(const Report *r, const Axes *a, int point)
{
    int last = point * a->rounds_per_point;
    return (last < r->n_rounds ? last : r->n_rounds) - 1;
}

/* Returns the best score of a task in the rounds of a point. */
static double value(const Report *r, const Axes *a, const ReportTask *t, int point)
{
    double best = point ? 1 : t->stage[REPORT_COLLECT].best;
    for (int k = (point - 1) * a->rounds_per_point; point && k <= round_of(r, a, point); k++)
        best = fmax(best, t->round[k].best);
    return best;
}

/* Only train tasks with samples are drawn. */
static int is_drawn(const Report *r, const ReportTask *t)
{
    if (t->task->degenerate || t->task->heldout) return 0;
    for (int k = 0; k < r->n_rounds; k++)
        if (t->round[k].attempted) return 1;
    return t->stage[REPORT_COLLECT].attempted > 0;
}

/* Computes the geometric mean over the drawn tasks at every point. so_far: of the best until
 * then. */
static void geomeans(const Axes *a, int so_far, double *out)
{
    double *best = memory_array((size_t)a->tasks, sizeof *best);
    for (int k = 0; k < a->points; k++) {
        double logs = 0;
        for (int i = 0; i < a->tasks; i++) {
            double v = a->best[i * a->points + k];
            best[i] = k && so_far ? fmax(best[i], v) : v;
            logs += log(best[i]);
        }
        out[k] = a->tasks ? exp(logs / a->tasks) : 1;
    }
    free(best);
}

static Axes choose_axes(const Report *r)
{
    int each = figure_rounds_per_point(r);
    Axes a = {1 + (r->n_rounds + each - 1) / each, each, 0.94, 1.5, NULL, NULL, 0};
    a.task = memory_array((size_t)r->tasks.n, sizeof *a.task);
    a.best = memory_array((size_t)r->tasks.n * (size_t)a.points, sizeof *a.best);
    for (int i = 0; i < r->tasks.n; i++) {
        if (!is_drawn(r, &r->task[i])) continue;
        double *v = &a.best[a.tasks * a.points];
        a.task[a.tasks++] = &r->task[i];
        for (int k = 0; k < a.points; k++) {
            v[k] = value(r, &a, &r->task[i], k);
            a.high = fmax(a.high, 1.12 * v[k]);
        }
    }
    return a;
}

static void draw_grid(const Report *r, const Axes *a, Buffer *b)
{
    static const double ticks[] = {1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000};
    double right = WIDTH - RIGHT, above = HEIGHT;
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks && ticks[i] <= a->high; i++) {
        double y = y_of(a, ticks[i]);
        if (above - y < 18) continue;
        above = y;
        buffer_printf(b,
                      "<line class=\"%s\" x1=\"%d\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text class=\"t end\" x=\"%d\" y=\"%.1f\">%g×</text>\n",
                      ticks[i] == 1 ? "axis" : "grid", LEFT, right, y, y, LEFT - 8, y + 4,
                      ticks[i]);
    }
    int step = 1, end = a->points - 1;
    while (end / step > 12) step++;
    for (int k = 0; k < a->points; k++) {
        double x = x_of(a, k);
        buffer_printf(b, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x,
                      HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5);
        if (k != end && (k % step || end - k < step))
            continue; /* the last point has a label, with room for it */
        buffer_printf(b, "<text class=\"t mid\" x=\"%.1f\" y=\"%d\">", x, HEIGHT - BOTTOM + 20);
        const char *name = k ? r->round_name[round_of(r, a, k)] : "collect";
        html_escape(b, name, strlen(name));
        buffer_puts(b, "</text>\n");
    }
}

static void draw_line(const Axes *a, const double *v, const char *class, const char *name,
                      Buffer *b)
{
    buffer_printf(b, "<g class=\"series\" data-name=\"%s\"><polyline class=\"%s\" points=\"", name,
                  class);
    for (int k = 0; k < a->points; k++)
        buffer_printf(b, "%s%.1f,%.1f", k ? " " : "", x_of(a, k), y_of(a, v[k]));
    buffer_printf(b, "\"><title>%s: ", name);
    for (int k = 0; k < a->points; k++) buffer_printf(b, "%s%.2f×", k ? ", " : "", v[k]);
    buffer_puts(b, "</title></polyline>");
    for (int k = 0; k < a->points && a->points <= MAX_DOTS && !strcmp(class, "geo"); k++)
        buffer_printf(b, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", x_of(a, k),
                      y_of(a, v[k]));
    buffer_puts(b, "</g>\n");
}

typedef struct {
    const char *name, *class;
    double value, y;
} EndLabel;

static int by_value(const void *a, const void *b)
{
    const EndLabel *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Draws the names at the ends of the lines. They are moved apart: downwards from the top, then
 * upwards from the bottom. A long name is cut to fit beside the lines. */
static void draw_labels(const Axes *a, EndLabel *l, int n, Buffer *b)
{
    double bottom = HEIGHT - BOTTOM + 4, x = x_of(a, a->points - 1);
    qsort(l, (size_t)n, sizeof *l, by_value);
    for (int i = 0; i < n; i++) {
        l[i].y = y_of(a, l[i].value);
        if (i && l[i].y < l[i - 1].y + LABEL_STEP) l[i].y = l[i - 1].y + LABEL_STEP;
    }
    for (int i = n - 1; i >= 0; i--) {
        double limit = i == n - 1 ? bottom : l[i + 1].y - LABEL_STEP;
        if (l[i].y > limit) l[i].y = limit;
    }
    for (int i = 0; i < n; i++) {
        int cut = strlen(l[i].name) > LONGEST_LABEL;
        buffer_printf(b,
                      "<path class=\"lead\" d=\"M%.1f %.1f L%.1f %.1f\"/><text class=\"%s\" "
                      "data-of=\"%s\" x=\"%.1f\" y=\"%.1f\">%.*s%s %.2f×</text>\n",
                      x + 6, y_of(a, l[i].value), x + 18, l[i].y, l[i].class, l[i].name, x + 22,
                      l[i].y + 4, cut ? LONGEST_LABEL - 3 : LONGEST_LABEL, l[i].name,
                      cut ? "…" : "", l[i].value);
    }
}

void figure_rounds(const Report *r, Buffer *b)
{
    Axes a = choose_axes(r);
    EndLabel *labels = memory_array((size_t)a.tasks + 2, sizeof *labels);
    double *v = memory_array((size_t)a.points, sizeof *v);
    int n = 0;
    buffer_printf(b,
                  "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Best "
                  "speedup by round\" data-plot=\"%d %d %d %d 0 %d %.6g %.6g\" data-scale=\"log\" "
                  "data-names=\"collect",
                  WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, a.points - 1, a.low,
                  a.high);
    for (int k = 1; k < a.points; k++) {
        const char *name = r->round_name[round_of(r, &a, k)];
        buffer_puts(b, "|");
        html_escape(b, name, strlen(name));
    }
    buffer_puts(b, "\">\n");
    draw_grid(r, &a, b);
    for (int i = 0; i < a.tasks; i++) {
        const double *own = &a.best[i * a.points];
        draw_line(&a, own, "task", a.task[i]->task->name, b);
        labels[n++] = (EndLabel){a.task[i]->task->name, "t", own[a.points - 1], 0};
    }
    geomeans(&a, 1, v);
    draw_line(&a, v, "sofar", "best so far", b);
    labels[n++] = (EndLabel){"best so far", "t sofar", v[a.points - 1], 0};
    geomeans(&a, 0, v);
    draw_line(&a, v, "geo", "geomean", b);
    labels[n++] = (EndLabel){"geomean", "t geo", v[a.points - 1], 0};
    draw_labels(&a, labels, n, b);
    buffer_puts(b, "</svg>\n");
    free(v);
    free(labels);
    free(a.task);
    free(a.best);
}

/* ---- outcomes by stage ---- */

static const struct {
    const char *label, *class;
    unsigned outcomes; /* bits */
} groups[] = {
    {"ok", "o-ok", 1u << OUTCOME_OK},
    {"wrong result", "o-wrong",
     1u << OUTCOME_WRONG_RESULT | 1u << OUTCOME_NONDETERMINISTIC | 1u << OUTCOME_UNINITIALISED},
    {"compile error", "o-compile", 1u << OUTCOME_COMPILE_ERROR},
    {"plan error", "o-plan", 1u << OUTCOME_PLAN_ERROR},
    {"bad access, race or launch", "o-memory",
     1u << OUTCOME_OUT_OF_BOUNDS | 1u << OUTCOME_RACE | 1u << OUTCOME_LAUNCH_ERROR},
    {"timeout", "o-time", 1u << OUTCOME_TIMEOUT},
    {"cheat", "o-cheat", 1u << OUTCOME_CHEAT},
    {"not judged", "o-none", 1u << OUTCOME_UNSUPPORTED | 1u << OUTCOME_EVALUATOR_ERROR},
};
enum { GROUPS = sizeof groups / sizeof *groups, BAR_LEFT = 128, BAR = 34, BAR_STEP = 52 };

static long group_count(const Report *r, int stage, int group)
{
    long n = 0;
    for (int o = 0; o < OUTCOME_COUNT; o++)
        if (groups[group].outcomes >> o & 1) n += r->outcomes[stage][o];
    return n;
}

/* Draws a segment, with its label, only the percentage, or nothing, as the width allows. */
static void draw_segment(int group, long n, long total, double x, double width, int y, Buffer *b)
{
    char full[64], percent[16];
    snprintf(percent, sizeof percent, "%.0f%%", 100.0 * (double)n / (double)total);
    snprintf(full, sizeof full, "%s %s", groups[group].label, percent);
    const char *label = width > 8.6 * (double)strlen(full)     ? full
                        : width > 13 * (double)strlen(percent) ? percent
                                                               : "";
    buffer_printf(b,
                  "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>%s: "
                  "%ld of %ld</title></rect>",
                  groups[group].class, x, y, width > 1.5 ? width - 1 : width, BAR,
                  groups[group].label, n, total);
    if (*label)
        buffer_printf(b, "<text class=\"on\" x=\"%.1f\" y=\"%d\">%s</text>", x + width / 2,
                      y + BAR / 2 + 4, label);
    buffer_puts(b, "\n");
}

static long stage_total(const Report *r, int stage)
{
    long total = 0;
    for (int g = 0; g < GROUPS; g++) total += group_count(r, stage, g);
    return total;
}

static void draw_bar(const Report *r, int stage, int y, Buffer *b)
{
    long total = stage_total(r, stage);
    buffer_printf(b,
                  "<text class=\"t strong\" x=\"0\" y=\"%d\">%s</text><text class=\"t\" x=\"0\" "
                  "y=\"%d\">%ld samples</text>\n",
                  y + 14, report_stage_names[stage], y + 30, total);
    double x = BAR_LEFT;
    for (int g = 0; g < GROUPS && total; g++) {
        long n = group_count(r, stage, g);
        double width = (double)(WIDTH - BAR_LEFT) * (double)n / (double)total;
        if (n) draw_segment(g, n, total, x, width, y, b);
        x += width;
    }
}

void figure_outcomes(const Report *r, Buffer *b)
{
    int n = 0, bars = 0;
    for (int s = 0; s < REPORT_STAGES; s++) bars += stage_total(r, s) > 0;
    buffer_printf(b, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Outcomes by stage\">\n",
                  WIDTH, bars ? bars * BAR_STEP - 12 : 1);
    for (int s = 0; s < REPORT_STAGES; s++)
        if (stage_total(r, s)) draw_bar(r, s, n++ * BAR_STEP, b);
    buffer_puts(b, "</svg>\n<p class=\"legend\">");
    for (int g = 0; g < GROUPS; g++) {
        long seen = 0;
        for (int s = 0; s < REPORT_STAGES; s++) seen += group_count(r, s, g);
        if (seen)
            buffer_printf(b, "<span><b class=\"%s\"></b>%s</span> ", groups[g].class,
                          groups[g].label);
    }
    buffer_puts(b, "</p>\n");
}
