/* A profile of the operations: a table whose operations wait until they are done and add up their
 * time. Products of different sizes are different entries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/core/transformer.h"
#include "tests/bench/model/bench.h"

enum { ENTRIES_MAX = 256 };

typedef struct {
    char what[80];
    double seconds, flops;
    long calls;
} Entry;

static struct {
    const Ops *real;
    Ops timed;
    Entry entry[ENTRIES_MAX];
    int n, failed;
    double begin;
    Error err; /* the first one: status() clears it */
} profile;

static void wait_for_all(void)
{
    if (!profile.failed) profile.failed = profile.real->status(&profile.err);
}

static void start(void)
{
    wait_for_all();
    profile.begin = clock_seconds();
}

static void finish(const char *what, double flops)
{
    wait_for_all();
    double spent = clock_seconds() - profile.begin;
    int i = 0;
    while (i < profile.n && strcmp(profile.entry[i].what, what)) i++;
    if (i == ENTRIES_MAX) return;
    Entry *e = &profile.entry[i];
    if (i == profile.n) {
        *e = (Entry){0};
        snprintf(e->what, sizeof e->what, "%s", what);
        profile.n++;
    }
    e->seconds += spent;
    e->flops += flops;
    e->calls++;
}

static void timed_gemm(const Gemm *g)
{
    char what[80];
    int m = g->a.rows, n = g->b.columns, k = g->a.columns;
    snprintf(what, sizeof what, "gemm %c%c %d x %d x %d%s", g->a.turned ? 't' : 'n',
             g->b.turned ? 't' : 'n', m, n, k,
             g->wide        ? " wide"
             : g->beta != 0 ? " added"
                            : "");
    start();
    profile.real->gemm(g);
    finish(what, 2.0 * m * n * k);
}

#define TIMED(name, parameters, arguments) \
    static void timed_##name parameters    \
    {                                      \
        start();                           \
        profile.real->name arguments;      \
        finish(#name, 0);                  \
    }
TIMED(copy, (void *to, const void *from, size_t bytes), (to, from, bytes))
TIMED(zero, (void *p, size_t bytes), (p, bytes))
TIMED(upload, (void *to, const void *host, size_t bytes), (to, host, bytes))
TIMED(download, (void *host, const void *from, size_t bytes), (host, from, bytes))
TIMED(bias_grad, (float *db, const Num *dy, int rows, int n), (db, dy, rows, n))
TIMED(rmsnorm, (Num * y, const Norm *x), (y, x))
TIMED(rmsnorm_grad, (Num * dx, int add, float *dw, const Num *dy, const Norm *x),
      (dx, add, dw, dy, x))
TIMED(head_norm, (Num * y, const Norm *x), (y, x))
TIMED(head_norm_grad, (Num * dx, float *dw, const Num *dy, const Norm *x), (dx, dw, dy, x))
TIMED(rope, (Num * qkv, const Rotation *r, HeadShape s, float sign), (qkv, r, s, sign))
TIMED(attention, (Num * out, float *lse, const Num *qkv, const BatchView *b, HeadShape s),
      (out, lse, qkv, b, s))
TIMED(attention_grad,
      (Num * dqkv, const Num *dout, const Attended *a, const BatchView *b, HeadShape s),
      (dqkv, dout, a, b, s))
TIMED(swiglu, (Num * act, const Num *gate_up, int rows, int ff), (act, gate_up, rows, ff))
TIMED(swiglu_grad, (Num * dgate_up, const Num *dact, const Num *gate_up, int rows, int ff),
      (dgate_up, dact, gate_up, rows, ff))
TIMED(embed, (float *x, const Num *table, const int32_t *ids, int rows, int n),
      (x, table, ids, rows, n))
TIMED(embed_grad, (float *dtable, const Num *dx, const BatchView *b, int n), (dtable, dx, b, n))
TIMED(cross_entropy, (float *logp, float *lse, const Logits *l), (logp, lse, l))
TIMED(cross_entropy_grad, (Num * dlogits, const float *lse, const float *weight, const Logits *l),
      (dlogits, lse, weight, l))
TIMED(adamw, (const AdamSlice *a, const AdamStep *s), (a, s))

static double timed_sum_squares(const float *x, size_t n)
{
    start();
    double sum = profile.real->sum_squares(x, n);
    finish("sum_squares", 0);
    return sum;
}

void profile_begin(Model *m)
{
    profile.real = m->ops;
    profile.n = profile.failed = 0;
    profile.timed = *m->ops;
    Ops *t = &profile.timed;
    t->gemm = timed_gemm;
    t->copy = timed_copy;
    t->zero = timed_zero;
    t->upload = timed_upload;
    t->download = timed_download;
    t->bias_grad = timed_bias_grad;
    t->rmsnorm = timed_rmsnorm;
    t->rmsnorm_grad = timed_rmsnorm_grad;
    t->head_norm = timed_head_norm;
    t->head_norm_grad = timed_head_norm_grad;
    t->rope = timed_rope;
    t->attention = timed_attention;
    t->attention_grad = timed_attention_grad;
    t->swiglu = timed_swiglu;
    t->swiglu_grad = timed_swiglu_grad;
    t->embed = timed_embed;
    t->embed_grad = timed_embed_grad;
    t->cross_entropy = timed_cross_entropy;
    t->cross_entropy_grad = timed_cross_entropy_grad;
    t->adamw = timed_adamw;
    t->sum_squares = timed_sum_squares;
    m->ops = t;
}

static int slower_first(const void *x, const void *y)
{
    double a = ((const Entry *)x)->seconds, b = ((const Entry *)y)->seconds;
    return (a < b) - (a > b);
}

int profile_end(Model *m, Error *err)
{
    m->ops = profile.real;
    if (profile.failed) return error_set(err, profile.err.code, "%s", profile.err.text);
    double sum = 0;
    for (int i = 0; i < profile.n; i++) sum += profile.entry[i].seconds;
    qsort(profile.entry, (size_t)profile.n, sizeof *profile.entry, slower_first);
    printf("one step, each operation waited for: %.1f ms\n", 1e3 * sum);
    for (int i = 0; i < profile.n; i++) {
        const Entry *e = &profile.entry[i];
        printf("%6.2f%% %9.2f ms %6ld x %-44s", 100 * e->seconds / sum, 1e3 * e->seconds, e->calls,
               e->what);
        if (e->flops > 0) printf(" %8.3g TFLOP/s", e->flops / e->seconds / 1e12);
        putchar('\n');
    }
    return 0;
}
