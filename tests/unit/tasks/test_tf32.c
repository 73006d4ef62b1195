/* The precision of a task: its field, and tolerances where eager PyTorch may use TF32. Factors in TF32 are
 * within them, factors in bfloat16 and sums without one term of 64 are not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tasks/derive/judged.h"
#include "tasks/derive/tf32.h"
#include "tasks/task.h"
#include "tasks/task_graph.h"
#include "tests/fixture_path.h"
#include "tests/small_draft.h"

static const char conv_path[] =
    "tasks/kernelbench/level1/k1_56_conv_standard_2d_asymmetric_input_asymmetric_kernel";

static Task *load(const char *path, const char *precision)
{
    Task *t;
    Error err;
    if (precision)
        setenv("PRECISION", precision, 1);
    else
        unsetenv("PRECISION");
    int rc = task_load(fixture_path(path), &t, &err);
    unsetenv("PRECISION");
    if (rc) fail_msg("%s", err.text);
    return t;
}

static void test_rounding(void **state)
{
    (void)state;
    assert_true(tf32_nearest(1 + 0x1p-11) == 1 + 0x1p-10);
    assert_true(tf32_truncated(1 + 0x1p-11) == 1);
    assert_true(tf32_nearest(-1 - 0x1p-10 - 0x1p-13) == -1 - 0x1p-10);
    assert_true(tf32_truncated(-1 - 0x1p-10 - 0x1p-12) == -1 - 0x1p-10);
    assert_true(tf32_nearest(3) == 3 && tf32_truncated(0) == 0 && isinf(tf32_nearest(INFINITY)));
    assert_true(isnan(tf32_nearest(NAN)) && isnan(tf32_truncated(NAN)));
    const float x[] = {1 + 0x1p-11f, -1 - 0x1p-10f - 0x1p-13f, 3, -0.1f, 0x1p-149f, -INFINITY, NAN};
    double near[7];
    tf32_nearest_floats(x, 7, near);
    for (int i = 0; i < 6; i++) assert_true(near[i] == tf32_nearest((double)x[i]));
    assert_true(isnan(near[6]));
}

/* Which libraries round, and whose digest that changes. */
static void test_which(void **state)
{
    static const struct {
        const char *path, *precision;
        unsigned tf32;
    } rows[] = {
        {conv_path, NULL, TF32_CUDNN},
        {conv_path, "highest", 0},
        {conv_path, "high", TF32_CUDNN},
        {"tasks/matmul", NULL, 0},
        {"tasks/matmul", "high", TF32_CUBLAS},
        {"tasks/matmul", "medium", TF32_CUBLAS},
        {"tasks/conv3d_norm_min_clamp", "default", TF32_CUDNN},
        {"tasks/relu", "high", 0},
        {"tasks/composed/mm_silu_f16", "high", 0},
        {"tasks/kernelbench/level1/k1_82_conv_depthwise_2d_square_input_square_kernel", NULL, 0},
        {"tasks/kernelbench/level2/k2_12_gemm_multiply_leakyrelu", "default", 0},
        {"tasks/kernelbench/level2/k2_12_gemm_multiply_leakyrelu", "high", TF32_CUBLAS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Task *t = load(rows[i].path, rows[i].precision), *plain = load(rows[i].path, "highest");
        if (t->tf32 != rows[i].tf32) fail_msg("%s: %u", rows[i].path, t->tf32);
        assert_int_equal(!strcmp(t->digest, plain->digest), !rows[i].tf32);
        task_free(t);
        task_free(plain);
    }
}

/* A draft's precision is the task's; a run may only name one of four. */
static void test_field(void **state)
{
    (void)state;
    const char *const lines[] = {"y = aten.mm(x, w)"};
    const Precision high = {MATMUL_HIGH, 0};
    Small s = {.axes = {{"rows", NULL, 512}, {"cols", NULL, 512}, {"depth", NULL, 512}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "depth"),
                          tensor("w", DTYPE_F32, "depth", "cols")}};
    small(&s, lines, 1, 3, 2);
    s.d.precision = &high;
    Task *t = derived(&s.d);
    assert_int_equal(t->precision.matmul, MATMUL_HIGH);
    assert_int_equal(t->precision.cudnn_tf32, 0);
    assert_int_equal(t->tf32, TF32_CUBLAS);
    task_free(t);
    Error err;
    setenv("PRECISION", "tf32", 1);
    assert_int_equal(task_load(fixture_path("tasks/relu"), &t, &err), -1);
    unsetenv("PRECISION");
    assert_non_null(strstr(err.text, "PRECISION: expected default, highest, high or medium"));
}

/* ---- tolerances ---- */

typedef enum { NEAREST, TRUNCATED, BFLOAT, LEFT_OUT, FACTORS } Factors;

static double bfloat(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static void change(double *x, size_t n, Factors f)
{
    for (size_t i = 0; i < n; i++)
        x[i] = f == BFLOAT    ? bfloat(x[i])
               : f == NEAREST ? tf32_nearest(x[i])
                              : tf32_truncated(x[i]);
}

/* The largest error of outputs as a part of the tolerance, with both inputs changed. LEFT_OUT: in TF32, and
 * the first of each 64 elements of the weight is zero. */
static double worst(Judged *j, const TaskCase *c, Factors f)
{
    const Task *t = c->task;
    GraphBound *b;
    Error err;
    Tolerance by;
    size_t n[2];
    double *in[2], *want, *got, most = 0;
    if (task_graph_bind(t, c->workload, &b, &err)) fail_msg("%s", err.text);
    size_t out = (size_t)op_elements(&b->values[t->graph->output[0]].tensor);
    want = memory_array(out, sizeof *want), got = memory_array(out, sizeof *got);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(task_elements(t, c->workload, &t->inputs[i], &n[i], &err), 0);
        in[i] = memory_array(n[i], sizeof **in);
        assert_int_equal(task_draw_wide(c, i, in[i], &err), 0);
    }
    const double *const given[2] = {in[0], in[1]};
    assert_int_equal(graph_run(b, given, &want, NULL, &err), 0);
    for (int i = 0; i < 2; i++) change(in[i], n[i], f);
    for (size_t i = 0; i < n[1] && f == LEFT_OUT; i += 64) in[1][i] = 0;
    assert_int_equal(graph_run(b, given, &got, NULL, &err), 0);
    if (judged_tolerance(j, c, 0, &by, NULL, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < out; i++)
        most = fmax(most, fabs(got[i] - want[i]) / (by.atol + by.rtol * fabs(want[i])));
    for (int i = 0; i < 2; i++) free(in[i]);
    free(want), free(got);
    graph_bound_free(b);
    return most;
}

static void check_tolerances(const char *path, const char *precision)
{
    Task *t = load(path, precision);
    Judged *j = judged_new();
    double by[FACTORS] = {0};
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        if (w->role == ROLE_TIME) continue;
        for (int s = 0; s < 3; s++)
            for (int f = 0; f < FACTORS; f++) {
                const TaskCase c = {t, w, VARIANT_DRAWN, 100, s == 2 ? 0.125 : s ? 8 : 1};
                by[f] = fmax(by[f], worst(j, &c, (Factors)f));
            }
    }
    print_message("# %s at %s: nearest %.2f, truncated %.2f, bfloat16 %.2f, left out %.2f\n",
                  t->name, precision, by[NEAREST], by[TRUNCATED], by[BFLOAT], by[LEFT_OUT]);
    assert_true(by[NEAREST] < 0.75 && by[TRUNCATED] < 0.75);
    assert_true(by[BFLOAT] > 2 && by[LEFT_OUT] > 10);
    judged_free(j);
    task_free(t);
}

static void test_tolerances(void **state)
{
    (void)state;
    check_tolerances(conv_path, "default");
    check_tolerances("tasks/kernelbench/level1/k1_1_square_matrix_multiplication", "high");
    check_tolerances("tasks/kernelbench/level1/k1_61_conv_transposed_3d_square_input_square_kernel",
                     "medium");
}

/* A clamp hides the errors of all elements of a check, and of few at the timed size. */
static void test_hidden(void **state)
{
    (void)state;
    static const char path[] =
        "tasks/kernelbench/level2/k2_93_convtranspose2d_add_min_gelu_multiply";
    Task *t = load(path, NULL), *plain = load(path, "highest");
    Judged *j = judged_new();
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        Tolerance by, float32;
        if (w->role != ROLE_TIME) continue;
        const TaskCase c = {t, w, VARIANT_DRAWN, 1, 1}, same = {plain, w, VARIANT_DRAWN, 1, 1};
        assert_int_equal(judged_listed(j, &c, 0, &by, NULL), 0);
        assert_int_equal(judged_listed(j, &same, 0, &float32, NULL), 0);
        assert_true(by.atol > 100 * float32.atol && by.atol < 2e-3); /* elements are of 0.02 */
    }
    judged_free(j);
    task_free(t);
    task_free(plain);
}

/* Signals do not fade in a deep network whose sums are made shorter. PyTorch errs by 9e-6 with rounded
 * factors and by 5.3e-5 with truncated ones, at most, among results of 0.01. */
static void test_depth(void **state)
{
    (void)state;
    Task *t = load("tasks/kernelbench/level3/k3_5_alexnet", NULL);
    for (int i = 0; i < t->n_workloads; i++) {
        Tf32Error e;
        Error err;
        const TaskCase c = {t, &t->workloads[i], VARIANT_DRAWN, 1, 1};
        if (t->workloads[i].role != ROLE_TIME) continue;
        if (tf32_measure(&c, &e, &err)) fail_msg("%s", err.text);
        assert_true(e.atol[0] > 1.8e-5 && e.atol[0] < 2e-4);
    }
    task_free(t);
}

/* Where the signals of the contents that are measured die behind a layer, those of a case may not. */
static void test_own(void **state)
{
    (void)state;
    Task *t = load("tasks/kernelbench/level3/k3_5_alexnet", NULL);
    const TaskCase c = {t, task_largest_check(t), VARIANT_LARGE_ROWS, 3, 1};
    Tf32Own own;
    Error err;
    if (tf32_own(&c, &own, &err)) fail_msg("%s", err.text);
    assert_true(own.error[0] > 1e-4 * own.size[0] && own.error[0] < 0.02 * own.size[0]);
    task_free(t);
    t = load("tasks/kernelbench/level3/k3_5_alexnet", "highest");
    const TaskCase plain = {t, task_largest_check(t), VARIANT_LARGE_ROWS, 3, 1};
    assert_int_equal(tf32_own(&plain, &own, &err), 1);
    task_free(t);
}

/* Integers stay exact: one factor has more bits than bfloat16 keeps, and no more than TF32 does. */
static void test_integers(void **state)
{
    static const char *const words[] = {"highest", "high"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        Task *t = load("tasks/matmul", words[k]);
        const Workload *w = task_largest_check(t);
        double most = 0;
        Error err;
        for (int i = 0; i < 2; i++) {
            size_t n;
            assert_int_equal(task_elements(t, w, &t->inputs[i], &n, &err), 0);
            double *x = memory_array(n, sizeof *x);
            const TaskCase c = {t, w, VARIANT_INTEGERS, 3, 1};
            assert_int_equal(task_draw_wide(&c, i, x, &err), 0);
            for (size_t e = 0; e < n; e++) most = fmax(most, fabs(x[e]));
            free(x);
        }
        assert_true(k ? most <= 2047 && most > 512 : most > 2048);
        task_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_which),
        cmocka_unit_test(test_field),    cmocka_unit_test(test_tolerances),
        cmocka_unit_test(test_hidden),   cmocka_unit_test(test_depth),
        cmocka_unit_test(test_own),      cmocka_unit_test(test_integers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
