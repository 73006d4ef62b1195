/* Tasks derived from graphs: tolerances hold a running sum and half precision, and constraints hold. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tasks/derive/honest.h"
#include "tasks/derive/sizes.h"
#include "tasks/task_graph.h"
#include "tests/small_draft.h"

/* ---- small drafts ---- */

/* linear and softmax in bfloat16: one kernel, and two with a rounding in between. */
static void test_half_types(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.linear(x, w, b)", "y = aten.softmax.int(h, -1)"};
    Small s = {.axes = {{"rows", NULL, 512}, {"depth", NULL, 256}, {"cols", NULL, 512}},
               .inputs = {tensor("x", DTYPE_BF16, "rows", "depth"),
                          tensor("w", DTYPE_BF16, "cols", "depth"),
                          tensor("b", DTYPE_BF16, "cols", NULL)}};
    small(&s, lines, 2, 3, 3);
    Task *t = derived(&s.d);
    const Workload *w = task_workload(t, ROLE_SIM);
    double rtol = t->rtol[DTYPE_BF16];
    HonestError e;
    Error err;
    assert_true(rtol >= 0x1p-7 && rtol <= 0.05);
    const HonestGrowth grown[] = {{1, 1}, {3, 1}};
    HonestError both[2];
    const TaskCase of = {t, w, VARIANT_DRAWN, 0, 1};
    const HonestPlan one = {&rtol, grown, 1, 1, NULL, 0}, two = {&rtol, grown, 2, 1, NULL, 0};
    if (honest_measure(&of, &one, &e, &err) || honest_measure(&of, &two, both, &err))
        fail_msg("%s", err.text);
    assert_true(both[0].atol[0] == e.atol[0] && both[1].atol[0] >= 3 * e.atol[0]);
    HonestKept *kept; /* the same executions, evaluated later */
    HonestError again[2], middle;
    if (honest_keep(t, w, &kept, &middle, &err)) fail_msg("%s", err.text);
    honest_replay(kept, &two, again);
    honest_kept_free(kept);
    assert_true(middle.rtol[0] > 0 && again[0].finite);
    assert_true(again[0].atol[0] == both[0].atol[0] && again[1].atol[0] == both[1].atol[0]);
    /* Four times the error takes e.atol beyond rtol: with 4 * atol the tolerance would be met. */
    assert_true(e.atol[0] <= 3 * w->atol[0]);
    task_free(t);
}

/* Runs a graph again with each input drawn again: the bits of a whole execution. */
static void rerun_all(const Task *t)
{
    GraphBound *b;
    GraphKept *kept;
    Error err;
    double *in[4], *other, *want, *got;
    const Workload *w = task_workload(t, ROLE_SIM);
    size_t n[4], n_out;
    if (task_graph_bind(t, w, &b, &err) || task_elements(t, w, &t->outputs[0], &n_out, &err))
        fail_msg("%s", err.text);
    want = calloc(n_out, sizeof *want), got = calloc(n_out, sizeof *got);
    for (int i = 0; i < t->n_inputs; i++) {
        task_elements(t, w, &t->inputs[i], &n[i], &err);
        in[i] = calloc(n[i], sizeof **in);
        for (size_t k = 0; k < n[i]; k++) in[i][k] = sin((double)(7 * k) + i);
    }
    if (graph_keep(b, (const double *const *)in, &kept, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < t->n_inputs; i++) {
        double *saved = in[i];
        other = calloc(n[i], sizeof *other);
        for (size_t k = 0; k < n[i]; k++) other[k] = cos((double)(5 * k) + i);
        in[i] = other;
        if (graph_run(b, (const double *const *)in, &want, NULL, &err)) fail_msg("%s", err.text);
        in[i] = saved;
        if (graph_rerun(kept, i, other, &got, &err)) fail_msg("%s", err.text);
        assert_memory_equal(want, got, n_out * sizeof *want);
        free(other);
    }
    for (int i = 0; i < t->n_inputs; i++) free(in[i]);
    free(want), free(got);
    graph_kept_free(kept);
    graph_bound_free(b);
}

/* Of a graph that writes in place, with what is read before and after it. */
static void test_rerun(void **state)
{
    (void)state;
    static const char *const lines[3][4] = {
        {"a = aten.relu(x)", "h = aten.linear(a, w, b)", "v = aten.t(h)",
         "y = aten.softmax.int(v, -1)"},
        {"a = aten.relu(x)", "h = aten.linear(a, w, b)", "v = aten.relu_.default(h)",
         "y = aten.softmax.int(h, -1)"},
        {"h = aten.linear(x, w)", "c = aten.sigmoid(h)", "v = aten.add_.Tensor(h, b)",
         "y = aten.mul.Tensor(c, h)"}};
    for (int k = 0; k < 3; k++) {
        Small s = {.axes = {{"rows", NULL, 64}, {"depth", NULL, 32}, {"cols", NULL, 48}},
                   .inputs = {tensor("x", DTYPE_F32, "rows", "depth"),
                              tensor("w", DTYPE_F32, "cols", "depth"),
                              tensor("b", DTYPE_F32, "cols", NULL)}};
        small(&s, lines[k], 4, 3, 3);
        Task *t = derived(&s.d);
        rerun_all(t);
        task_free(t);
    }
}

/* The worst error of running sums of the rows of w, in tolerances. */
static double running_sums(const Task *t, const Workload *w)
{
    size_t n = (size_t)(w->axis[0] * w->axis[1]);
    float *x = memory_array(n + 1, sizeof *x);
    double worst = 0;
    Tolerance by;
    Error err;
    const TaskCase c = {t, w, VARIANT_DRAWN, 99, 1};
    if (task_tolerance(&c, 0, &by, &err) || task_draw(&c, 0, x, &err)) fail_msg("%s", err.text);
    for (int64_t r = 0; r < w->axis[0] && r < 256; r++) {
        float sum = 0;
        double want = 0;
        for (int64_t k = 0; k < w->axis[1]; k++) {
            sum += x[r * w->axis[1] + k];
            want += (double)x[r * w->axis[1] + k];
        }
        worst = fmax(worst, fabs((double)sum - want) / (by.atol + by.rtol * fabs(want)));
    }
    free(x);
    return worst;
}

/* One running sum is honest, of positive terms and of terms of both signs; a thousandth of the terms is not
 * left out unseen. */
static void test_running_sums(void **state)
{
    (void)state;
    static const char *const lines[] = {"y = aten.sum.dim_IntList(x, [1])"};
    for (int positive = 0; positive < 2; positive++) {
        Small s = {.axes = {{"rows", NULL, 1024}, {"cols", NULL, 16384}},
                   .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
        small(&s, lines, 1, 2, 1);
        s.inputs[0].has_draw = 1, s.inputs[0].draw = positive ? DRAW_POSITIVE : DRAW_NORMAL;
        Task *t = derived(&s.d);
        for (int i = 0; i < t->n_workloads; i++)
            assert_true(running_sums(t, &t->workloads[i]) < 0.8);
        const Workload *time = task_workload(t, ROLE_TIME);
        print_message("# timed %g of %g\n", running_sums(t, time), time->atol[AT_SCALE_1]);
        assert_true(time->atol[AT_SCALE_1] < 4);
        assert_string_equal(t->exact ? t->exact : "", "cols");
        task_free(t);
    }
}

/* A product whose sums are long when it is timed: most elements of the small workloads need no atol, the
 * many large ones do. */
static void test_long_sums(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.mm(a, b)", "y = aten.tril(h)"};
    Small s = {.axes = {{"m", NULL, 4096}, {"n", NULL, 4096}, {"k", NULL, 4096}},
               .inputs = {tensor("a", DTYPE_F32, "m", "k"), tensor("b", DTYPE_F32, "k", "n")}};
    small(&s, lines, 2, 3, 2);
    Task *t = derived(&s.d);
    const Workload *time = task_workload(t, ROLE_TIME), *sim = task_workload(t, ROLE_SIM);
    /* The outputs are 64 on average; the error of 4,096 terms in float32 is about 2e-5 of that, with
     * factors in TF32 at most 0.1. */
    assert_true(time->atol[AT_SCALE_1] > 5e-4 && time->atol[AT_SCALE_1] < 5e-3);
    assert_true(sim->atol[AT_SCALE_1] > 1e-6 && sim->atol[AT_SCALE_1] < time->atol[AT_SCALE_1] / 8);
    task_free(t);
}

/* A scan of small sizes: special contents are exact there with one draw, and cancel with another. At the
 * timed sizes partial sums need more bits than float32 has: a running sum of 32,768 terms errs by 0.0019. */
static void test_special(void **state)
{
    (void)state;
    static const char *const lines[] = {"y = aten.cumsum(x, 1)"};
    Small s = {.axes = {{"m", NULL, 1024}, {"n", NULL, 32768}},
               .inputs = {tensor("x", DTYPE_F32, "m", "n")}};
    small(&s, lines, 1, 2, 1);
    Task *t = derived(&s.d);
    for (int i = 0; i < t->n_workloads; i++) {
        const double *a = t->workloads[i].atol;
        assert_true(a[AT_SCALE_EIGHTH] > 0);
        assert_true(a[AT_SPECIAL] >= a[AT_SCALE_EIGHTH]);
    }
    const double *timed = task_workload(t, ROLE_TIME)->atol;
    assert_true(timed[AT_SPECIAL] > 0.0019 && timed[AT_SPECIAL] < 4 * timed[AT_SCALE_1]);
    task_free(t);
}

static double timed_atol(Small *s, const char *const *lines, int n, int n_axes, int n_inputs)
{
    small(s, lines, n, n_axes, n_inputs);
    Task *t = derived(&s->d);
    double atol = task_workload(t, ROLE_TIME)->atol[AT_SCALE_1];
    task_free(t);
    return atol;
}

/* The errors along a running sum are one walk: more rows have larger errors than the few that are
 * measured. */
static void test_walks(void **state)
{
    (void)state;
    static const char *const lines[] = {"y = aten.cumsum(x, 1)"};
    double atol[2];
    for (int k = 0; k < 2; k++) {
        Small s = {.axes = {{"m", NULL, k ? 4096 : 2}, {"n", NULL, 32768}},
                   .inputs = {tensor("x", DTYPE_F32, "m", "n")}};
        s.inputs[0].has_draw = 1, s.inputs[0].draw = DRAW_NORMAL;
        atol[k] = timed_atol(&s, lines, 1, 2, 1);
    }
    assert_true(atol[1] > 2 * atol[0]);
}

/* How many times as large the tolerance of 2^14 times as many sums is, of 64 numbers times
 * exponentials of running sums. */
static double many_by_few(double deviation)
{
    const char *const lines[] = {"c = aten.cumsum(x, 1)", "e = aten.exp(c)",
                                 "p = aten.mul.Tensor(e, z)",
                                 "y = aten.sum.dim_IntList(p, [1], False)"};
    static const HonestGrowth grown[] = {{1, 1}, {1, 1 << 14}};
    Small s = {.axes = {{"m", NULL, 4096}, {"n", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "m", "n"), tensor("z", DTYPE_F32, "m", "n")}};
    for (int i = 0; i < 2; i++) s.inputs[i].has_draw = 1, s.inputs[i].draw = DRAW_NORMAL;
    s.inputs[0].parameter = "x", s.inputs[0].has_statistics = 1, s.inputs[0].std = deviation;
    s.inputs[0].min = -6 * deviation, s.inputs[0].max = 6 * deviation;
    small(&s, lines, 4, 2, 2);
    Task *t = derived(&s.d);
    Workload w = {.role = ROLE_CHECK, .axis = {600, 64}};
    HonestError found[2];
    Error err;
    const HonestPlan plan = {&t->rtol[DTYPE_F32], grown, 2, 1, NULL, 0};
    if (honest_measure(&(TaskCase){t, &w, VARIANT_DRAWN, 0, 1}, &plan, found, &err))
        fail_msg("%s", err.text);
    task_free(t);
    return found[1].atol[0] / found[0].atol[0];
}

/* The errors of sums of a few large terms have a heavy tail: the largest of many is far larger. */
static void test_heavy_tail(void **state)
{
    (void)state;
    double heavy = many_by_few(0.25), normal = many_by_few(0.001);
    print_message("# heavy %.2f, normal %.2f\n", heavy, normal);
    assert_true(heavy > 2 && normal <= 1);
}

/* Samples that show no error of the timed sizes: groups of one element, and a clamp that one element in
 * ten thousand passes. */
static void test_hidden(void **state)
{
    (void)state;
    static const char *const groups[] = {"h = aten.mm(x, w)", "y = aten.group_norm(h, 64)"};
    static const char *const clamp[] = {"h = aten.mm(x, w)", "g = aten.sub.Tensor(h, 100.0)",
                                        "y = aten.relu(g)"};
    Small s = {.axes = {{"n", NULL, 4096}, {"k", NULL, 512}, {"m", NULL, 4096}},
               .inputs = {tensor("x", DTYPE_F32, "m", "k"), tensor("w", DTYPE_F32, "k", "n")}};
    for (int i = 0; i < 2; i++) s.inputs[i].has_draw = 1, s.inputs[i].draw = DRAW_NORMAL;
    double of_groups = timed_atol(&s, groups, 2, 3, 2), of_clamp = timed_atol(&s, clamp, 3, 3, 2);
    assert_true(of_groups > 1e-6 && of_groups < 1e-3);
    assert_true(of_clamp > 1e-5 && of_clamp < 0.1);
}

/* A unit that only needles turn on: other seeds may turn it on in other cases too. */
static void test_needles_of_other_seeds(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.abs(x)", "s = aten.sum.dim_IntList(h, [1])",
                                        "g = aten.rsub.Scalar(s, 0.6)", "y = aten.relu(g)"};
    Small s = {.axes = {{"m", NULL, 64}}, .inputs = {tensor("x", DTYPE_F32, "m", "16")}};
    small(&s, lines, 4, 1, 1);
    Task *t = derived(&s.d);
    for (int k = 0; k < ATOL_CASES; k++) assert_true(task_workload(t, ROLE_CHECK)->atol[k] > 1e-9);
    task_free(t);
}

/* Exponentials of sums of a parameter: with normal numbers some rows are 10^20 times as large as others,
 * and half of the digits would pass. */
static void test_calm(void **state)
{
    (void)state;
    static const char *const lines[] = {"c = aten.cumsum(w, 1)", "d = aten.exp(c)",
                                        "y = aten.mm(x, d)"};
    Small s = {.axes = {{"m", NULL, 64}, {"n", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "m", "n"), tensor("w", DTYPE_F32, "n", "128")}};
    s.inputs[1].parameter = "w", s.inputs[1].has_statistics = 1, s.inputs[1].std = 1;
    s.inputs[1].min = -4, s.inputs[1].max = 4;
    small(&s, lines, 3, 2, 2);
    Task *t = derived(&s.d);
    assert_true(t->inputs[1].std == 0.125);
    assert_true(t->rtol[DTYPE_F32] < 1e-4 && !t->degenerate);
    task_free(t);
}

/* The error of a running product is relative. */
static void test_running_product(void **state)
{
    (void)state;
    static const char *const lines[] = {"y = aten.cumprod(x, 1)"};
    Small s = {.axes = {{"m", NULL, 64}, {"n", NULL, 4096}},
               .inputs = {tensor("x", DTYPE_F32, "m", "n")}};
    small(&s, lines, 1, 2, 1);
    s.inputs[0].has_draw = 1, s.inputs[0].draw = DRAW_UNIFORM;
    s.inputs[0].low = 0.9, s.inputs[0].high = 1.1, s.inputs[0].fixed = 1;
    Task *t = derived(&s.d);
    assert_true(t->rtol[DTYPE_F32] >= 2 * 0x1p-24 * 64 && t->rtol[DTYPE_F32] < 1e-4);
    task_free(t);
}

static void test_constraints(void **state)
{
    (void)state;
    static const char *const lines[] = {"y = aten.group_norm(x, 8, w, b)"};
    static const char *const constraints[] = {"c % 8 == 0", "n <= c + 1"};
    Small s = {.axes = {{"n", NULL, 64, 2, 100}, {"c", NULL, 256}, {"one", NULL, 1}},
               .inputs = {tensor("x", DTYPE_F32, "n", "c"), tensor("w", DTYPE_F32, "c", NULL),
                          tensor("b", DTYPE_F32, "c * one", NULL)}};
    small(&s, lines, 1, 3, 3);
    s.d.constraints = constraints, s.d.n_constraints = 2;
    Task *t = derived(&s.d);
    assert_int_equal(t->n_axes, 2); /* an axis of one element becomes a number */
    assert_int_equal(t->n_constraints, 2);
    for (int i = 0; i < t->n_workloads; i++) {
        const int64_t *at = t->workloads[i].axis;
        assert_true(at[1] % 8 == 0 && at[0] <= at[1] + 1 && at[0] >= 2 && at[0] <= 100);
    }
    assert_string_equal(t->outputs[0].shape[1], "c");
    task_free(t);
}

/* The shape of a concatenation of axes, one of them twice. */
static void test_expression(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.cat([x, w, x], 1)", "y = aten.relu(h)"};
    Small s = {.axes = {{"n", NULL, 64}, {"a", NULL, 48}, {"b", NULL, 80}},
               .inputs = {tensor("x", DTYPE_F32, "n", "a"), tensor("w", DTYPE_F32, "n", "b")}};
    small(&s, lines, 2, 3, 2);
    Task *t = derived(&s.d);
    assert_string_equal(t->outputs[0].shape[1], "2 * a + b");
    task_free(t);
}

/* 64 GiB of input: the timed sizes are a part of it, which the workload says. */
static void test_scaled(void **state)
{
    (void)state;
    static const char *const lines[] = {"y = aten.relu(x)"};
    Small s = {.axes = {{"n", NULL, 1 << 17}, {"c", NULL, 1 << 17}},
               .inputs = {tensor("x", DTYPE_F32, "n", "c")}};
    small(&s, lines, 1, 2, 1);
    Task *t = derived(&s.d);
    const Workload *w = task_workload(t, ROLE_TIME);
    assert_true((double)w->axis[0] * (double)w->axis[1] * 8 <= DERIVE_TIME_BYTES);
    assert_non_null(w->note);
    assert_non_null(strstr(w->note, "of the module's 131072"));
    task_free(t);
}

/* Small tensors, and a result of 1.25 GiB with as much scratch: both must fit the simulator. */
static void test_slots(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.mul.Tensor(x, w)", "y = aten.logsumexp(h, [1])"};
    Small s = {.axes = {{"n", NULL, 320}, {"c", NULL, 1 << 20}},
               .inputs = {tensor("x", DTYPE_F32, "n", "1"), tensor("w", DTYPE_F32, "c", NULL)}};
    small(&s, lines, 2, 2, 2);
    Derivation v;
    Sizes own, time;
    Error err;
    if (derivation_open(&v, &s.d, &err)) fail_msg("%s", err.text);
    own = derivation_own(&v);
    if (sizes_time(&v, &own, DERIVE_TIME_BYTES, &time, &err)) fail_msg("%s", err.text);
    assert_true((double)time.at[0] * (double)time.at[1] * 8 <= DERIVE_SLOT_BYTES);
    assert_true((double)time.at[0] * (double)time.at[1] * 16 > DERIVE_SLOT_BYTES);
    derivation_release(&v);
}

static void test_draws(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.log(x)", "g = aten.div.Tensor(h, w)",
                                        "y = aten.cross_entropy_loss(g, t)"};
    Small s = {.axes = {{"n", NULL, 1024}, {"c", NULL, 100}},
               .inputs = {tensor("x", DTYPE_F32, "n", "c"), tensor("w", DTYPE_F32, "c", NULL),
                          tensor("t", DTYPE_I64, "n", NULL)}};
    small(&s, lines, 3, 2, 3);
    Task *t = derived(&s.d);
    assert_int_equal(t->inputs[0].draw, DRAW_POSITIVE);
    assert_int_equal(t->inputs[1].draw, DRAW_POSITIVE);
    assert_int_equal(t->inputs[2].draw, DRAW_INTEGER);
    assert_int_equal(t->inputs[2].draw_low, 0);
    assert_string_equal(t->inputs[2].draw_highest, "c - 1");
    task_free(t);
}

/* Integers that are compared with positions are lengths, or last positions; those that divide are counts. */
static void test_lengths(void **state)
{
    (void)state;
    static const struct {
        const char *lines[3];
        int n, low;
        const char *highest;
    } cases[] = {
        {{"k = aten.lt.Tensor(r, u)", "y = aten.mul.Tensor(x, k)"}, 2, 1, "n"},
        {{"k = aten.ge.Tensor(r, u)", "y = aten.masked_fill.Scalar(x, k, 0.0)"}, 2, 1, "n"},
        {{"k = aten.gt.Tensor(u, r)", "y = aten.mul.Tensor(x, k)"}, 2, 1, "n"},
        {{"k = aten.le.Tensor(r, u)", "y = aten.mul.Tensor(x, k)"}, 2, 0, "n - 1"},
        {{"k = aten.ge.Tensor(u, r)", "y = aten.mul.Tensor(x, k)"}, 2, 0, "n - 1"},
        {{"v = aten.sub.Tensor(u, 1)", "k = aten.lt.Tensor(r, v)", "y = aten.mul.Tensor(x, k)"},
         3,
         2,
         "n + 1"},
        {{"v = aten.sub.Tensor(u, 1)", "k = aten.gather(x, 1, v)", "y = aten.sub.Tensor(k, x)"},
         3,
         1,
         "n"},
        {{"y = aten.div.Tensor(x, u)"}, 1, 1, NULL},
        {{"y = aten.mul.Tensor(x, u)"}, 1, -8, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *lines[] = {"r = aten.arange(n)", "u = aten.unsqueeze(l, 1)", NULL, NULL, NULL};
        Small s = {.axes = {{"m", NULL, 32}, {"n", NULL, 64}},
                   .inputs = {tensor("x", DTYPE_F32, "m", "n"), tensor("l", DTYPE_I64, "m", NULL)}};
        memcpy(lines + 2, cases[i].lines, sizeof cases[i].lines);
        small(&s, lines, 2 + cases[i].n, 2, 2);
        Task *t = derived(&s.d);
        const TaskTensor *l = &t->inputs[1];
        if (l->draw_low != cases[i].low || strcmp(l->draw_highest ? l->draw_highest : "",
                                                  cases[i].highest ? cases[i].highest : ""))
            fail_msg("case %zu: from %lld to %s", i, (long long)l->draw_low, l->draw_highest);
        task_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_types),  cmocka_unit_test(test_running_sums),
        cmocka_unit_test(test_long_sums),   cmocka_unit_test(test_special),
        cmocka_unit_test(test_walks),       cmocka_unit_test(test_heavy_tail),
        cmocka_unit_test(test_hidden),      cmocka_unit_test(test_needles_of_other_seeds),
        cmocka_unit_test(test_calm),        cmocka_unit_test(test_running_product),
        cmocka_unit_test(test_constraints), cmocka_unit_test(test_scaled),
        cmocka_unit_test(test_slots),       cmocka_unit_test(test_expression),
        cmocka_unit_test(test_draws),       cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_rerun)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
