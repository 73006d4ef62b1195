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

/* A value of an axis, in at most seven characters: there is room for no more. */
static void put_tick(double v, Buffer *b)
{
    char text[32];
    if (snprintf(text, sizeof text, "%.3g", v) > 7) snprintf(text, sizeof text, "%.1g", v);
    buffer_printf(b, "%s</text>", text);
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
            put_tick(v, b);
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

/* The 95% interval of a share of n, by Wilson. */
static void interval(double share, double n, Point *p)
{
    double z = 1.96, d = 1 + z * z / n, middle = (share + z * z / (2 * n)) / d,
           half = z / d * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    p->low = fmax(0, middle - half);
    p->high = fmin(1, middle + half);
}

/* Adds the value of a name in a file at x: with the interval NAME.low to NAME.high where the file has
 * one, or the interval of a share of the number `count`, unless NULL. */
static void add_value(const FileNumbers *f, const char *name, const char *count, double x,
                      Series *s)
{
    char end[64];
    const double *v = run_number(f, name), *of = count ? run_number(f, count) : NULL, *low, *high;
    if (!v || !isfinite(*v)) return;
    Point p = {x, *v, NAN, NAN};
    snprintf(end, sizeof end, "%s.low", name);
    low = run_number(f, end);
    snprintf(end, sizeof end, "%s.high", name);
    high = run_number(f, end);
    if (of && *of >= 1)
        interval(*v, *of, &p);
    else if (low && high && isfinite(*low) && isfinite(*high))
        p.low = *low, p.high = *high;
    add_point(s, p);
}

static const char *const round_stages[] = {"selfsup", "crl"};

/* How many rounds before the end of stage g, which is 0 or 1; -1: before the first stage. */
static int rounds_until(const RunNumbers *n, int g)
{
    int sum = 0;
    for (int k = 0; k <= g; k++) {
        int last = 0;
        for (int i = 0; i < n->n; i++)
            if (!strcmp(n->files[i].stage, round_stages[k]) && n->files[i].round > last)
                last = n->files[i].round;
        sum += last;
    }
    return sum;
}

/* The values of a name by round: those of stage 2, then those of stage 3. */
static void by_round(const RunNumbers *n, const char *name, const char *count, Series *s)
{
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < n->n; i++) {
            const FileNumbers *f = &n->files[i];
            if (!strcmp(f->stage, round_stages[g]) && !strstr(f->path, "/model/") && f->round >= 1)
                add_value(f, name, count, rounds_until(n, g - 1) + f->round, s);
        }
}

/* The round whose model wrote the report's samples of a file, report/STAGE or report/STAGE-ROUND; -1:
 * the file is another one. */
static int round_of_model(const RunNumbers *n, const char *path)
{
    static const char *const stages[] = {"report/sft", "report/selfsup", "report/crl"};
    static const char file[] = "/metrics.qa";
    for (int g = 0; g < 3; g++) {
        const char *rest = path + strlen(stages[g]);
        char *end;
        if (strncmp(path, stages[g], strlen(stages[g])) != 0) continue;
        if (!strcmp(rest, file)) return rounds_until(n, g - 1);
        long round = *rest == '-' ? strtol(rest + 1, &end, 10) : 0;
        if (g && round > 0 && !strcmp(end, file)) return rounds_until(n, g - 2) + (int)round;
    }
    return -1;
}

static int by_x(const void *a, const void *b)
{
    const Point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

/* The values of a name by the model that answered: in the report's samples, which alone have heldout
 * tasks, and of other models in the samples of the round after, which the model of a round answers. */
static void by_model(const RunNumbers *n, const char *name, const char *count, Series *s)
{
    Series rounds = {"", "", NULL, 0};
    for (int i = 0; i < n->n; i++) {
        int round = round_of_model(n, n->files[i].path);
        if (round >= 0) add_value(&n->files[i], name, count, round, s);
    }
    by_round(n, name, count, &rounds);
    for (int i = 0, known = s->n; i < rounds.n; i++) {
        int seen = 0;
        rounds.p[i].x -= 1;
        for (int k = 0; k < known; k++) seen |= s->p[k].x == rounds.p[i].x;
        if (!seen) add_point(s, rounds.p[i]);
    }
    free(rounds.p);
    if (s->n) qsort(s->p, (size_t)s->n, sizeof *s->p, by_x);
}

/* The mean of a name over the steps of each round of stage 3. */
static void by_update(const RunNumbers *n, const char *name, Series *s)
{
    for (int i = 0; i < n->n; i++) {
        const FileNumbers *f = &n->files[i];
        double sum = 0;
        int k = 0;
        if (strcmp(f->stage, "crl") != 0 || !strstr(f->path, "/model/")) continue;
        for (int j = 0; j < f->n_steps; j++)
            if (!strcmp(f->steps[j].name, name) && isfinite(f->steps[j].value))
                sum += f->steps[j].value, k++;
        if (k) add_point(s, (Point){rounds_until(n, 0) + f->round, sum / k, NAN, NAN});
    }
}

static int loss_panel(const RunNumbers *n, const char *stage, const char *title, Buffer *b)
{
    Panel p = {.title = title,
               .x_name = "step",
               .series = {{"", "one", NULL, 0}, {"of other tasks", "two", NULL, 0}},
               .n = 1};
    int64_t base = 0;
    for (int i = 0; i < n->n; i++) {
        const FileNumbers *f = &n->files[i];
        int64_t last = -1;
        if (strcmp(f->stage, stage) != 0 || !strstr(f->path, "/model/")) continue;
        for (int k = 0; k < f->n_steps; k++) {
            const StepValue *v = &f->steps[k];
            if (v->step > last) last = v->step;
            int other = !strcmp(v->name, "validation");
            if ((other || !strcmp(v->name, "loss")) && isfinite(v->value))
                add_point(&p.series[other], (Point){(double)(base + v->step), v->value, NAN, NAN});
        }
        base += last + 1;
    }
    if (p.series[1].n) p.n = 2, p.series[0].label = "training";
    return panel(&p, b);
}

typedef enum { BY_ROUND, BY_MODEL, BY_UPDATE } Source;

/* A panel's lines: names of values, of the numbers that shares are of, and where the values are. */
typedef struct {
    const char *title;
    int is_share;
    struct {
        const char *label, *name, *count;
        Source from;
    } line[MAX_SERIES];
} Plot;

static const Plot plots[] = {
    {"Correct answers",
     1,
     {{"plain", "plain.success", "plain.samples", BY_ROUND},
      {"contrastive", "contrastive.success", "contrastive.samples", BY_ROUND}}},
    {"Correct, by model",
     1,
     {{"train", "plain.success", "plain.samples", BY_MODEL},
      {"composition", "composition.success", "composition.samples", BY_MODEL},
      {"family", "family.success", "family.samples", BY_MODEL},
      {"heldout", "heldout.success", "heldout.samples", BY_MODEL}}},
    {"Mean score",
     0,
     {{"plain", "plain.mean", NULL, BY_ROUND},
      {"contrastive", "contrastive.mean", NULL, BY_ROUND}}},
    {"Best of 8",
     0,
     {{"plain", "plain.best8", NULL, BY_ROUND},
      {"contrastive", "contrastive.best8", NULL, BY_ROUND}}},
    {"Best of 8, by model",
     0,
     {{"train", "plain.best8", NULL, BY_MODEL},
      {"composition", "composition.best8", NULL, BY_MODEL},
      {"family", "family.best8", NULL, BY_MODEL},
      {"heldout", "heldout.best8", NULL, BY_MODEL}}},
    {"Comparisons that are right", 1, {{"", "comparison.right", "comparison.judged", BY_ROUND}}},
    {"Tokens an answer",
     0,
     {{"plain", "plain.tokens", NULL, BY_ROUND},
      {"contrastive", "contrastive.tokens", NULL, BY_ROUND}}},
    {"Entropy, nats a token",
     0,
     {{"plain", "plain.entropy", NULL, BY_ROUND},
      {"contrastive", "contrastive.entropy", NULL, BY_ROUND}}},
    {"KL to stage 2, nats a token", 0, {{"", "reference.kl", NULL, BY_UPDATE}}},
};

/* All heldout tasks have a line of their own where neither kind of them has one. */
static void drop_heldout(Panel *p)
{
    Series *all = p->n == MAX_SERIES ? &p->series[MAX_SERIES - 1] : NULL;
    if (!all || strcmp(all->label, "heldout") != 0) return;
    if (p->series[1].n || p->series[2].n) all->n = 0;
}

int curves_write(const RunNumbers *n, Buffer *b)
{
    static const char *const classes[MAX_SERIES] = {"one", "two", "three", "two"};
    int panels = loss_panel(n, "sft", "Loss, stage 1", b) +
                 loss_panel(n, "selfsup", "Loss, stage 2", b) +
                 loss_panel(n, "crl", "Loss, stage 3", b);
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        Panel p = {.title = plots[i].title, .x_name = "round", .is_share = plots[i].is_share};
        for (int k = 0; k < MAX_SERIES && plots[i].line[k].name; k++) {
            const char *name = plots[i].line[k].name, *count = plots[i].line[k].count;
            Series *s = &p.series[p.n++];
            *s = (Series){plots[i].line[k].label, classes[k], NULL, 0};
            switch (plots[i].line[k].from) {
            case BY_ROUND: by_round(n, name, count, s); break;
            case BY_MODEL: by_model(n, name, count, s); break;
            case BY_UPDATE: by_update(n, name, s); break;
            }
        }
        drop_heldout(&p);
        panels += panel(&p, b);
    }
    return panels;
}

/* ---- the timeline ---- */

enum { LINE = 960, ROW = 18, NAME = 170, MAX_ROWS = 60 };

static double spent_on(const RunRule *r, int n, const char *stage, size_t len)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (!strncmp(r[i].name, stage, len) && (r[i].name[len] == '-' || !r[i].name[len]))
            sum += r[i].seconds;
    return sum;
}

/* The rules of a run, and the scale of their line. */
typedef struct {
    const RunRule *rules;
    int n;
    double start, scale; /* seconds since 1970; units of the picture for a second */
} Timeline;

/* stage: its name ends at "-" or at the end of the text. */
static void stage_row(const Timeline *t, const char *stage, int row, Buffer *b)
{
    const RunRule *r = t->rules;
    int y = 6 + row * ROW, n = t->n;
    size_t len = strcspn(stage, "-");
    buffer_printf(b, "<text x=\"0\" y=\"%d\">%.*s</text><text class=\"t end\" x=\"%d\" y=\"%d\">",
                  y + 12, (int)len, stage, NAME - 12, y + 12);
    double s = spent_on(r, n, stage, len);
    buffer_printf(b, s < 120 ? "%.0f s</text>" : "%.1f min</text>", s < 120 ? s : s / 60);
    for (int i = 0; i < n; i++) {
        if (strncmp(r[i].name, stage, len) != 0 || (r[i].name[len] != '-' && r[i].name[len]) ||
            !run_name_is_plain(r[i].name))
            continue;
        double x = NAME + (r[i].start - t->start) * t->scale, w = fmax(1, r[i].seconds * t->scale);
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
    const char *stages[MAX_ROWS];
    int rows = 0;
    for (int i = 0; i < n; i++) {
        size_t len = strcspn(rules[i].name, "-");
        int known = !run_name_is_plain(rules[i].name);
        start = fmin(start, rules[i].start);
        end = fmax(end, rules[i].start + rules[i].seconds);
        for (int k = 0; k < rows; k++)
            known |= strcspn(stages[k], "-") == len && !strncmp(stages[k], rules[i].name, len);
        if (!known && rows < MAX_ROWS) stages[rows++] = rules[i].name;
    }
    if (!rows || end <= start) return 0;
    buffer_printf(b, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Timeline\">", LINE,
                  6 + rows * ROW + 8);
    const Timeline t = {rules, n, start, (LINE - NAME) / (end - start)};
    for (int k = 0; k < rows; k++) stage_row(&t, stages[k], k, b);
    buffer_puts(b, "</svg>\n");
    return rows;
}
