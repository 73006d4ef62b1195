/* Every panel has the same frame. Points that are too many are averaged, so that the page stays
 * small. data-plot, data-name and data-of are for the page's script (report/style.c). */
#include "report/metrics/curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    WIDTH = 310,
    HEIGHT = 204,
    LEFT = 54,
    RIGHT = 8,
    TOP = 24,
    BOTTOM = 40,
    MAX_POINTS = 80,
    MAX_SERIES = 4
};

typedef struct {
    double x, y, low, high; /* low and high NAN: no interval */
} Point;

typedef struct {
    const char *label, *class;
    Point *p;
    int n;
} Series;

typedef struct {
    const char *title, *x_name;
    int is_share;
    Series series[MAX_SERIES];
    int n;
} Panel;

static void add_point(Series *s, Point p)
{
    if (!(s->n & (s->n - 1))) s->p = memory_grow(s->p, s->n ? (size_t)s->n * 2 : 1, sizeof *s->p);
    s->p[s->n++] = p;
}

/* Averages neighbours until at most MAX_POINTS are left. */
static void thin(Series *s)
{
    int each = (s->n + MAX_POINTS - 1) / MAX_POINTS, n = 0;
    if (each < 2) return;
    for (int i = 0; i < s->n; i += each) {
        int k = s->n - i < each ? s->n - i : each;
        Point sum = {0, 0, NAN, NAN};
        for (int j = i; j < i + k; j++) sum.x += s->p[j].x / k, sum.y += s->p[j].y / k;
        s->p[n++] = sum;
    }
    s->n = n;
}

/* ---- drawing ---- */

typedef struct {
    double x0, x1, y0, y1;
} Range;

static Range range_of(const Panel *p)
{
    Range r = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->series[i].n; k++) {
            const Point *q = &p->series[i].p[k];
            r.x0 = fmin(r.x0, q->x), r.x1 = fmax(r.x1, q->x);
            r.y0 = fmin(r.y0, isnan(q->low) ? q->y : q->low);
            r.y1 = fmax(r.y1, isnan(q->high) ? q->y : q->high);
        }
    if (p->is_share) r.y0 = 0, r.y1 = 1;
    if (r.y0 > 0 && r.y0 < 0.5 * r.y1) r.y0 = 0;
    if (r.y1 <= r.y0) r.y1 = r.y0 + 1;
    if (r.x1 <= r.x0) r.x0 -= 0.5, r.x1 += 0.5;
    return r;
}

static double x_at(const Range *r, double x)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (x - r->x0) / (r->x1 - r->x0);
}

static double y_at(const Range *r, double y)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (r->y1 - y) / (r->y1 - r->y0);
}

static void frame(const Panel *p, const Range *r, Buffer *b)
{
    buffer_printf(b, "<text x=\"%d\" y=\"14\" class=\"strong\">%s</text>", LEFT, p->title);
    for (int k = 0; k <= 2; k++) {
        double v = r->y0 + (r->y1 - r->y0) * k / 2, y = y_at(r, v);
        buffer_printf(b,
                      "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text "
                      "class=\"t end\" x=\"%d\" y=\"%.1f\">",
                      LEFT, WIDTH - RIGHT, y, y, LEFT - 5, y + 4);
        if (p->is_share)
            buffer_printf(b, "%.0f%%</text>", 100 * v);
        else
            buffer_printf(b, "%.3g</text>", v);
    }
    buffer_printf(b,
                  "<text class=\"t\" x=\"%d\" y=\"%d\">%.0f</text><text class=\"t end\" x=\"%d\" "
                  "y=\"%d\">%s %.0f</text>",
                  LEFT, HEIGHT - BOTTOM + 18, ceil(r->x0), WIDTH - RIGHT, HEIGHT - BOTTOM + 18,
                  p->x_name, floor(r->x1));
}

static void draw(const Series *s, const Range *r, Buffer *b)
{
    buffer_printf(b, "<g class=\"series\" data-name=\"%s\">", s->label);
    for (int k = 0; k < s->n; k++)
        if (!isnan(s->p[k].low) && s->p[k].high > s->p[k].low)
            buffer_printf(b,
                          "<line class=\"range %s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                          "y2=\"%.1f\"/>",
                          s->class, x_at(r, s->p[k].x), x_at(r, s->p[k].x), y_at(r, s->p[k].low),
                          y_at(r, s->p[k].high));
    buffer_printf(b, "<polyline class=\"%s\" points=\"", s->class);
    for (int k = 0; k < s->n; k++)
        buffer_printf(b, "%.1f,%.1f ", x_at(r, s->p[k].x), y_at(r, s->p[k].y));
    buffer_puts(b, "\"/>");
    for (int k = 0; k < s->n && s->n <= 24; k++)
        buffer_printf(b,
                      "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>%s, %.0f: "
                      "%.4g</title></circle>",
                      s->class, x_at(r, s->p[k].x), y_at(r, s->p[k].y), s->label, s->p[k].x,
                      s->p[k].y);
    buffer_puts(b, "</g>");
}

/* The names of the series, in a row below the axis. */
static void keys(const Panel *p, Buffer *b)
{
    enum { CHARACTER = 7, GAP = 14 };
    int x = LEFT;
    for (int i = 0; i < p->n; i++) {
        const Series *s = &p->series[i];
        if (!s->n || !*s->label) continue;
        buffer_printf(b, "<text class=\"%s\" data-of=\"%s\" x=\"%d\" y=\"%d\">%s</text>", s->class,
                      s->label, x, HEIGHT - 4, s->label);
        x += (int)strlen(s->label) * CHARACTER + GAP;
    }
}

/* Draws the panel when a series has points, and releases them. Returns 1 when it drew. */
static int panel(Panel *p, Buffer *b)
{
    int any = 0;
    for (int i = 0; i < p->n; i++) {
        thin(&p->series[i]);
        any += p->series[i].n > 1;
    }
    if (any) {
        Range r = range_of(p);
        buffer_printf(b,
                      "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\" "
                      "data-plot=\"%d %d %d %d %.6g %.6g %.6g %.6g\" data-scale=\"%s\" "
                      "data-x=\"%s\">",
                      WIDTH, HEIGHT, p->title, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, r.x0,
                      r.x1, r.y0, r.y1, p->is_share ? "share" : "plain", p->x_name);
        frame(p, &r, b);
        for (int i = 0; i < p->n; i++)
            if (p->series[i].n) draw(&p->series[i], &r, b);
        keys(p, b);
        buffer_puts(b, "</svg>\n");
    }
    for (int i = 0; i < p->n; i++) free(p->series[i].p);
    return any > 0;
}

/* ---- the panels ---- */

static const double *value_of(const FileNumbers *f, const char *name)
{
    for (int i = 0; i < f->n_steps; i++)
        if (!strcmp(f->steps[i].name, name)) return &f->steps[i].value;
    return NULL;
}

/* The 95% interval of a share of n, by Wilson. */
static void interval(double share, double n, Point *p)
{
    double z = 1.96, d = 1 + z * z / n, middle = (share + z * z / (2 * n)) / d,
           half = z / d * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    p->low = fmax(0, middle - half);
    p->high = fmin(1, middle + half);
}

/* The values of a name by round, in the order of the stages' rounds: stage 2, then stage 3. count: the
 * name of the number that a share is of, or NULL. */
static void by_round(const RunNumbers *n, const char *name, const char *count, Series *s)
{
    static const char *const stages[] = {"selfsup", "crl"};
    int before = 0;
    for (int g = 0; g < 2; g++) {
        int last = 0;
        for (int i = 0; i < n->n; i++) {
            const FileNumbers *f = &n->files[i];
            if (strcmp(f->stage, stages[g]) != 0 || strstr(f->path, "/model/") || f->round < 1)
                continue;
            const double *v = value_of(f, name), *of = count ? value_of(f, count) : NULL;
            if (f->round > last) last = f->round;
            if (!v || !isfinite(*v)) continue;
            Point p = {before + f->round, *v, NAN, NAN};
            if (of && *of >= 1) interval(*v, *of, &p);
            add_point(s, p);
        }
        before += last;
    }
}

static int loss_panel(const RunNumbers *n, const char *stage, const char *title, Buffer *b)
{
    Panel p = {.title = title, .x_name = "step", .series = {{"", "one", NULL, 0}}, .n = 1};
    int64_t base = 0;
    for (int i = 0; i < n->n; i++) {
        const FileNumbers *f = &n->files[i];
        int64_t last = -1;
        if (strcmp(f->stage, stage) != 0 || !strstr(f->path, "/model/")) continue;
        for (int k = 0; k < f->n_steps; k++) {
            const StepValue *v = &f->steps[k];
            if (v->step > last) last = v->step;
            if (!strcmp(v->name, "loss") && isfinite(v->value))
                add_point(&p.series[0], (Point){(double)(base + v->step), v->value, NAN, NAN});
        }
        base += last + 1;
    }
    return panel(&p, b);
}

int curves_write(const RunNumbers *n, Buffer *b)
{
    static const struct {
        const char *title, *names[3], *counts[3];
        int is_share;
    } rounds[] = {
        {"Correct answers",
         {"plain.success", "contrastive.success", "heldout.success"},
         {"plain.samples", "contrastive.samples", "heldout.samples"},
         1},
        {"Mean score", {"plain.mean", "contrastive.mean", "heldout.mean"}, {0}, 0},
        {"Comparisons that are right", {"comparison.right"}, {"comparison.asked"}, 1},
        {"Gap closed", {"plain.gap", "contrastive.gap", "heldout.gap"}, {0}, 0},
        {"Tokens an answer", {"plain.tokens", "contrastive.tokens", "heldout.tokens"}, {0}, 0},
        {"Entropy", {"entropy"}, {0}, 0},
        {"KL divergence", {"kl"}, {0}, 0},
    };
    static const char *const classes[] = {"one", "two", "three"};
    static const char *const labels[] = {"plain", "contrastive", "held out"};
    int panels = loss_panel(n, "sft", "Loss, stage 1", b) +
                 loss_panel(n, "selfsup", "Loss, stage 2", b) +
                 loss_panel(n, "crl", "Loss, stage 3", b);
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        Panel p = {.title = rounds[i].title, .x_name = "round", .is_share = rounds[i].is_share};
        for (int k = 0; k < 3 && rounds[i].names[k]; k++) {
            Series *s = &p.series[p.n++];
            *s = (Series){rounds[i].names[1] ? labels[k] : "", classes[k], NULL, 0};
            by_round(n, rounds[i].names[k], rounds[i].counts[k], s);
        }
        panels += panel(&p, b);
    }
    return panels;
}

/* ---- the timeline ---- */

enum { LINE = 960, ROW = 18, NAME = 170, MOST_ROWS = 60 };

/* Log files have the names of rules; another name is not put into the page. */
static int is_plain(const char *name)
{
    return !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")];
}

static double spent_on(const RunRule *r, int n, const char *stage, size_t len)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (!strncmp(r[i].name, stage, len) && (r[i].name[len] == '-' || !r[i].name[len]))
            sum += r[i].seconds;
    return sum;
}

static void stage_row(const RunRule *r, int n, const char *stage, size_t len, double start,
                      double scale, int row, Buffer *b)
{
    int y = 6 + row * ROW;
    buffer_printf(b, "<text x=\"0\" y=\"%d\">%.*s</text><text class=\"t end\" x=\"%d\" y=\"%d\">",
                  y + 12, (int)len, stage, NAME - 12, y + 12);
    double s = spent_on(r, n, stage, len);
    buffer_printf(b, s < 120 ? "%.0f s</text>" : "%.1f min</text>", s < 120 ? s : s / 60);
    for (int i = 0; i < n; i++) {
        if (strncmp(r[i].name, stage, len) != 0 || (r[i].name[len] != '-' && r[i].name[len]) ||
            !is_plain(r[i].name))
            continue;
        double x = NAME + (r[i].start - start) * scale, w = fmax(1, r[i].seconds * scale);
        buffer_printf(b,
                      "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
                      "height=\"%d\"><title>%s: %.1f s</title></rect>",
                      r[i].state == RULE_FAILED       ? "o-cheat"
                      : strstr(r[i].name, "verdicts") ? "o-compile"
                      : strstr(r[i].name, "model")    ? "o-ok"
                      : strstr(r[i].name, "samples")  ? "o-plan"
                                                      : "o-none",
                      x, y + 2, w, ROW - 5, r[i].name, r[i].seconds);
    }
}

int timeline_write(const RunRule *rules, int n, Buffer *b)
{
    double start = INFINITY, end = 0;
    const char *stages[MOST_ROWS];
    int rows = 0;
    for (int i = 0; i < n; i++) {
        size_t len = strcspn(rules[i].name, "-");
        int known = !is_plain(rules[i].name);
        start = fmin(start, rules[i].start);
        end = fmax(end, rules[i].start + rules[i].seconds);
        for (int k = 0; k < rows; k++)
            known |= strcspn(stages[k], "-") == len && !strncmp(stages[k], rules[i].name, len);
        if (!known && rows < MOST_ROWS) stages[rows++] = rules[i].name;
    }
    if (!rows || end <= start) return 0;
    buffer_printf(b, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Timeline\">", LINE,
                  6 + rows * ROW + 8);
    for (int k = 0; k < rows; k++)
        stage_row(rules, n, stages[k], strcspn(stages[k], "-"), start,
                  (LINE - NAME) / (end - start), k, b);
    buffer_puts(b, "</svg>\n");
    return rows;
}
