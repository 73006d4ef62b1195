/* Tables of PyTorch's times: a line of names, then lines of fields with tabs between. */
#include "eval/judge/rivals.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/sort.h"

enum {
    TABLE_MAX = 1 << 26, /* bytes */
    SETS_MAX = 4         /* folders above a task's that may have a table */
};

static const char columns[] = "task\taxes\tgpu\ttorch\tprecision\tway\tus\tus_low\tus_"
                              "high\tratio\tratio_low\tratio_high\truns\terror";
enum { TASK, AXES, GPU, TORCH, PRECISION, WAY, US, US_LOW, US_HIGH, ERROR_TEXT = 13, FIELDS };

/* Split a line at its tabs. Returns how many fields it has. */
static int split(char *line, char *field[FIELDS])
{
    int n = 0;
    for (char *f; (f = strsep(&line, "\t")) != NULL; n++)
        if (n < FIELDS) field[n] = f;
    return n;
}

static int number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *end || !isfinite(*out) || *out < 0 ? -1 : 0;
}

static int read_row(char *line, RivalRow *out)
{
    char *f[FIELDS];
    if (split(line, f) != FIELDS) return -1;
    *out = (RivalRow){.task = f[TASK],
                      .axes = f[AXES],
                      .gpu = f[GPU],
                      .torch = f[TORCH],
                      .precision = f[PRECISION],
                      .way = f[WAY],
                      .error = f[ERROR_TEXT]};
    return number(f[US], &out->us) || number(f[US_LOW], &out->low) ||
                   number(f[US_HIGH], &out->high) || (!*out->error && !(out->us > 0))
               ? -1
               : 0;
}

int rivals_read(const char *path, RivalVisit *visit, void *ctx, Error *err)
{
    Buffer text;
    buffer_init(&text, TABLE_MAX);
    int rc = file_read(path, TABLE_MAX, &text, err), n = 0;
    char *rest = text.data;
    while (!rc && rest && *rest) {
        RivalRow row;
        char *line = strsep(&rest, "\n");
        if (!rest) break; /* a torn last line: the table is being written */
        if (n++ ? read_row(line, &row) : strcmp(line, columns))
            rc = error_set(err, ERROR_CORRUPT, "%s, line %d: this is no row of PyTorch's times",
                           path, n);
        else if (n > 1)
            visit(ctx, &row);
    }
    buffer_release(&text);
    return rc;
}

/* ---- the rows of a verdict ---- */

static const char *const ways[] = {"eager", "compile", "max-autotune"};
enum { WAYS = sizeof ways / sizeof *ways };
_Static_assert(3 * WAYS == VERDICT_MAX_RIVALS, "a verdict has three times of each way");

typedef struct {
    const RivalKey *key;
    char *axes;
    Verdict *verdict;
    int found;
} Search;

/* The sizes as the tables have them: {"cols":64,"rows":8}, by name. */
static char *axes_text(const Task *t, const Workload *w)
{
    Buffer b;
    char *item[TASK_MAX_AXES];
    buffer_init(&b, 1 << 14);
    for (int i = 0; i < t->n_axes; i++)
        item[i] = memory_printf("\"%s\":%lld", t->axis_name[i], (long long)w->axis[i]);
    qsort(item, (size_t)t->n_axes, sizeof *item, sort_by_text);
    for (int i = 0; i < t->n_axes; i++) {
        buffer_printf(&b, "%s%s", i ? "," : "", item[i]);
        free(item[i]);
    }
    char *out = memory_printf("{%s}", t->n_axes ? b.data : "");
    buffer_release(&b);
    return out;
}

static double time_of(const Verdict *v, const char *way, const char *what)
{
    char name[sizeof v->rivals[0].name];
    snprintf(name, sizeof name, "%s_%s", way, what);
    for (int i = 0; i < v->n_rivals; i++)
        if (!strcmp(v->rivals[i].name, name)) return v->rivals[i].value;
    return 0;
}

static void put(Verdict *v, const char *way, const char *what, double us)
{
    DeviceCounter *c = &v->rivals[v->n_rivals++];
    snprintf(c->name, sizeof c->name, "%s_%s", way, what);
    c->value = us;
}

/* Later rows are newer. Those of another PyTorch replace what was found. */
static void take(void *ctx, const RivalRow *row)
{
    Search *s = ctx;
    Verdict *v = s->verdict;
    int way = 0;
    while (way < WAYS && strcmp(row->way, ways[way])) way++;
    if (way == WAYS || !(row->us > 0) || strcmp(row->task, s->key->task->name) ||
        strcmp(row->axes, s->axes) || strcmp(row->gpu, s->key->gpu) ||
        strcmp(row->precision, s->key->precision))
        return;
    s->found = 1;
    if (strcmp(v->torch, row->torch)) v->n_rivals = 0;
    if (time_of(v, row->way, "us") > 0) return;
    snprintf(v->torch, sizeof v->torch, "%s", row->torch);
    put(v, row->way, "us", row->us);
    put(v, row->way, "low_us", row->low);
    put(v, row->way, "high_us", row->high);
}

const char *rivals_precision(const Precision *p)
{
    if (p->matmul != MATMUL_HIGHEST) return precision_matmul_names[p->matmul];
    return p->cudnn_tf32 ? "default" : "highest";
}

int rivals_find(const RivalKey *key, Verdict *v, Error *err)
{
    Search s = {key, axes_text(key->task, key->timed), v, 0};
    char *folder = memory_strdup(key->task->dir ? key->task->dir : "");
    int rc = 0;
    for (int i = 0; i < SETS_MAX && !rc && !s.found; i++) {
        char *end = strrchr(folder, '/');
        if (!end || end == folder) break;
        *end = 0;
        char *path = memory_printf("%s/rivals.tsv", folder);
        if (file_exists(path)) rc = rivals_read(path, take, &s, err);
        free(path);
    }
    free(folder);
    free(s.axes);
    return rc;
}

/* The two times were measured apart, so that the shares of their intervals add in quadrature. */
int rivals_over(const Verdict *v, const char *way, Interval *out)
{
    double us = time_of(v, way, "us"), low = time_of(v, way, "low_us"),
           high = time_of(v, way, "high_us");
    if (!(us > 0 && v->time_us > 0 && v->speedup > 0)) return 0;
    double half = hypot((high - low) / (2 * us), (v->high - v->low) / (2 * v->speedup));
    out->middle = us / v->time_us;
    out->low = out->middle * fmax(0, 1 - half);
    out->high = out->middle * (1 + half);
    return 1;
}

void rivals_text(const Verdict *v, char out[RIVALS_TEXT])
{
    Interval compile, autotune;
    int n, has = rivals_over(v, "compile", &compile);
    if (!has) {
        snprintf(out, RIVALS_TEXT, "torch.compile was not measured");
        return;
    }
    n = snprintf(out, RIVALS_TEXT, "%.3gx torch.compile (%.3g to %.3g)", compile.middle,
                 compile.low, compile.high);
    if (rivals_over(v, "max-autotune", &autotune))
        snprintf(out + n, RIVALS_TEXT - (size_t)n, ", %.3gx its max-autotune (%.3g to %.3g)",
                 autotune.middle, autotune.low, autotune.high);
}
