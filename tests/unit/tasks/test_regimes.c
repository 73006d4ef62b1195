/* Contents that show faults of operators reach them through the graph. */
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
#include "tasks/regimes.h"
#include "tests/small_draft.h"

/* A task of n inputs; three have a third axis. */
static Task *task_of(DraftTensor *inputs, int n, const char *const *lines, int n_lines)
{
    Small s = {.axes = {{"rows", NULL, 512}, {"cols", NULL, 512}, {"n", NULL, 512}}};
    memcpy(s.inputs, inputs, (size_t)n * sizeof *inputs);
    small(&s, lines, n_lines, n == 3 ? 3 : 2, n);
    return derived(&s.d);
}

static DraftTensor parameter(DraftTensor x, double low, double high)
{
    x.parameter = x.name;
    x.has_draw = 1, x.draw = DRAW_UNIFORM, x.low = low, x.high = high;
    return x;
}

typedef struct {
    double least, most;
    int64_t below, above; /* elements below -limit and above limit */
} Seen;

/* The output of the reference in a variant. */
static Seen seen_in(Task *t, Variant v, double limit)
{
    const Workload *w = regimes_workload(t);
    double *in[TASK_MAX_TENSORS], *out;
    const TaskCase c = {t, w, v, 1, 1};
    size_t n;
    Error err;
    Seen s = {INFINITY, -INFINITY, 0, 0};
    assert_non_null(w);
    assert_true(task_has_variant(t, w, v));
    for (int i = 0; i < t->n_inputs; i++) {
        assert_int_equal(task_elements(t, w, &t->inputs[i], &n, &err), 0);
        in[i] = memory_array(n + 1, sizeof(double));
        assert_int_equal(task_draw_wide(&c, i, in[i], &err), 0);
    }
    assert_int_equal(task_elements(t, w, &t->outputs[0], &n, &err), 0);
    out = memory_array(n + 1, sizeof *out);
    assert_int_equal(task_reference(t, w, (const double *const *)in, &out, &err), 0);
    for (size_t k = 0; k < n; k++) {
        s.least = fmin(s.least, out[k]), s.most = fmax(s.most, out[k]);
        s.below += out[k]<-limit, s.above += out[k]> limit;
    }
    for (int i = 0; i < t->n_inputs; i++) free(in[i]);
    free(out);
    return s;
}

/* The product's parameters are as small as those of 8,192 columns, and a check has few columns. */
static void test_behind_a_product(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols"),
                        parameter(tensor("w", DTYPE_F32, "n", "cols"), -0.011, 0.011),
                        parameter(tensor("b", DTYPE_F32, "n", NULL), -0.011, 0.011)};
    const char *const exponential[] = {"h = aten.linear(x, w, b)", "y = aten.logsumexp(h, [1])"};
    const char *const hinge[] = {"h = aten.linear(x, w, b)", "y = aten.clamp(h, -100, 100)"};
    Task *t = task_of(in, 3, exponential, 2);
    assert_true(seen_in(t, VARIANT_LARGE_ROWS, 88).above > 0);
    assert_true(seen_in(t, VARIANT_LOW, 1e4).most < -1e4);
    task_free(t);
    t = task_of(in, 3, hinge, 2);
    Seen s = seen_in(t, VARIANT_LARGE_ROWS, 99.9);
    assert_true(s.above > 0 && s.below > 0);
    task_free(t);
}

/* Of nearly each row of a product one element is so far above the others that their exponentials are zero and
 * overflow where a maximum leaves it out. */
static void test_largest_behind_a_product(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols"),
                        parameter(tensor("w", DTYPE_F32, "n", "cols"), -0.011, 0.011),
                        parameter(tensor("b", DTYPE_F32, "n", NULL), -0.011, 0.011)};
    const char *const lines[] = {"h = aten.linear(x, w, b)", "y = aten.log_softmax.int(h, 1)"};
    Task *t = task_of(in, 3, lines, 2);
    size_t n;
    Seen s = seen_in(t, VARIANT_LARGE_ROWS, 88);
    assert_int_equal(task_elements(t, regimes_workload(t), &t->outputs[0], &n, NULL), 0);
    int64_t rows = (int64_t)(n / regimes_row(t, regimes_workload(t), 1));
    assert_true((int64_t)n - s.below <= rows * 3 / 2);
    task_free(t);
}

/* The largest mean of a row is far from zero, also where x is multiplied first. */
static void test_far(void **state)
{
    (void)state;
    DraftTensor gated[] = {tensor("x", DTYPE_F32, "rows", "cols"),
                           tensor("g", DTYPE_F32, "rows", "cols")};
    const char *const lines[] = {"h = aten.mul.Tensor(x, g)",
                                 "y = aten.var.correction(h, [1], correction=0)"};
    Task *t = task_of(gated, 2, lines, 2);
    /* g is of ones: the variance of 1000 * g would be 1e6. */
    assert_true(seen_in(t, VARIANT_FAR, 100).most < 100);
    task_free(t);
}

/* A least element is looked for among large ones, a largest one among those far below zero. */
static void test_low(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols")};
    const char *const least[] = {"y = aten.amin(x, [1])"}, *const most[] = {
                                                               "y = aten.amax(x, [1])"};
    Task *t = task_of(in, 1, least, 1);
    assert_true(seen_in(t, VARIANT_LOW, 9e4).above > 0);
    task_free(t);
    t = task_of(in, 1, most, 1);
    assert_true(seen_in(t, VARIANT_LOW, 9e4).most < -9e4);
    task_free(t);
}

/* Numbers below what maxima start from reach them, and no sum. */
static void test_least(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols")};
    const char *const most[] = {"y = aten.amax(x, [1])"}, *const summed[] = {
                                                              "h = aten.amax(x, [1])",
                                                              "y = aten.mean(h)"};
    Task *t = task_of(in, 1, most, 1);
    assert_true(seen_in(t, VARIANT_LEAST, 1e38).below > 0);
    task_free(t);
    t = task_of(in, 1, summed, 2);
    assert_false(task_has_variant(t, &t->workloads[0], VARIANT_LEAST));
    task_free(t);
}

/* Rows of half types that are summed begin with equal elements, and the others are so small that all sums are
 * nearly equal: what multiplies them is one, and what is added zero. */
static void test_falling(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_BF16, "rows", "cols"),
                        tensor("g", DTYPE_BF16, "rows", "cols"),
                        tensor("r", DTYPE_BF16, "rows", "cols")};
    const char *const lines[] = {"h = aten.mul.Tensor(x, g)", "q = aten.add.Tensor(h, r)",
                                 "y = aten.sum.dim_IntList(q, [1])"};
    Task *t = task_of(in, 3, lines, 3);
    Seen s = seen_in(t, VARIANT_FALLING, 0);
    assert_true(s.below == 0 && s.most > s.least && s.most < 1.2 * s.least);
    task_free(t);
    for (int i = 0; i < 3; i++) in[i].dtype = DTYPE_F32;
    t = task_of(in, 3, lines, 3);
    assert_false(regimes_has(t, VARIANT_FALLING));
    task_free(t);
}

/* Counts the rows with a single element far above the others, whose sum of places is *places. */
static int dominated(const Task *t, uint64_t seed, int64_t *places)
{
    const Workload *w = regimes_workload(t);
    const TaskCase c = {t, w, VARIANT_LARGE_ROWS, seed, 1};
    double *x = memory_array((size_t)(w->axis[0] * w->axis[1]), sizeof *x);
    Error err;
    int rows = 0;
    *places = 0;
    assert_int_equal(task_draw_wide(&c, 0, x, &err), 0);
    for (int64_t row = 0; row < w->axis[0]; row++) {
        int above = 0, near = 0;
        int64_t at = 0;
        for (int64_t k = 0; k < w->axis[1]; k++) {
            const double y = x[row * w->axis[1] + k];
            near += fabs(y) < 10;
            if (y > 200) above++, at = k;
        }
        if (above != 1 || near != w->axis[1] - 1) continue;
        rows++;
        *places += at;
    }
    free(x);
    return rows;
}

/* Two rows of five have a single element far above the others, in each draw elsewhere. */
static void test_dominant(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols")};
    const char *const lines[] = {"y = aten.softmax.int(x, 1)"};
    Task *t = task_of(in, 1, lines, 1);
    const Workload *w = regimes_workload(t);
    assert_true(w->axis[0] > 8 && w->axis[1] > 31);
    int64_t places, other;
    assert_true(dominated(t, 1, &places) >= w->axis[0] / 5 * 2);
    assert_true(dominated(t, 2, &other) >= w->axis[0] / 5 * 2);
    assert_int_not_equal(places, other);
    task_free(t);
}

/* Gains of both signs bring what is positive below a bound. */
static void test_gains(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols"),
                        parameter(tensor("w", DTYPE_F32, "cols", NULL), 0.5, 1.5)};
    const char *const lines[] = {"h = aten.sigmoid(x)", "q = aten.rms_norm(h, [cols], w, 1e-6)",
                                 "y = aten.clamp(q, -100, 100)"};
    Task *t = task_of(in, 2, lines, 3);
    Seen s = seen_in(t, VARIANT_LARGE_ROWS, 1.5);
    assert_true(s.above > 0 && s.below > 0);
    task_free(t);
}

/* Both arguments of a maximum are far from zero. */
static void test_twins(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols"),
                        tensor("z", DTYPE_F32, "rows", "cols")};
    const char *const lines[] = {"y = aten.minimum(x, z)"};
    Task *t = task_of(in, 2, lines, 1);
    assert_true(seen_in(t, VARIANT_LARGE_ROWS, 100).above > 0);
    task_free(t);
}

/* A norm of zeros is what epsilons and clamps are for. */
static void test_zeros(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols")};
    const char *const lines[] = {"y = aten.linalg_vector_norm.default(x, 2, [1])"};
    Task *t = task_of(in, 1, lines, 1);
    assert_true(regimes_has(t, VARIANT_ZERO_ROWS));
    assert_true(seen_in(t, VARIANT_ZERO_ROWS, 0).least == 0);
    assert_true(seen_in(t, VARIANT_ZERO_ROWS, 0).above > 0);
    task_free(t);
}

/* Rows of integers at both ends of their range, and sums that reach them. */
static void test_range(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_I32, "rows", "cols")};
    in[0].has_draw = 1, in[0].draw = DRAW_INTEGER, in[0].low = -1000, in[0].high = 1000;
    const char *const lines[] = {"f = aten.to.dtype(x, torch.float32)",
                                 "y = aten.mean.dim(f, [1])"};
    Task *t = task_of(in, 1, lines, 2);
    assert_true(regimes_has(t, VARIANT_RANGE));
    Seen s = seen_in(t, VARIANT_RANGE, 998);
    assert_true(s.above > 0 && s.below > 0);
    assert_true(s.most < 1000 && s.least > -1000); /* a third is one off */
    task_free(t);
}

static void test_ends(void **state)
{
    (void)state;
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "cols")};
    const char *const lines[] = {"y = aten.log(x)"};
    Task *t = task_of(in, 1, lines, 1);
    Seen s = seen_in(t, VARIANT_ENDS, 1);
    assert_true(s.least < -18 && s.most > 6);
    task_free(t);
}

/* What a sine takes is exact: a tolerance for the errors of positions in the thousands is not needed. */
static void test_few_bits(void **state)
{
    (void)state;
    DraftTensor position = tensor("p", DTYPE_I32, "rows", "1");
    position.has_range = 1, position.min = 0, position.max = 4095;
    DraftTensor in[] = {position, tensor("x", DTYPE_F32, "cols", NULL)};
    const char *const lines[] = {"f = aten.to.dtype(p, torch.float32)", "h = aten.mul.Tensor(f, x)",
                                 "y = aten.sin(h)"};
    Task *t = task_of(in, 2, lines, 3);
    Judged *j = judged_new();
    const TaskCase drawn = {t, regimes_workload(t), VARIANT_DRAWN, 0, 1};
    TaskCase few = drawn;
    Tolerance a, b;
    few.variant = VARIANT_FEW_BITS;
    int usable;
    Error err;
    assert_int_equal(judged_tolerance(j, &drawn, 0, &a, NULL, &err), 0);
    assert_int_equal(judged_tolerance(j, &few, 0, &b, &usable, &err), 0);
    assert_true(usable && a.atol > 1e-4 && b.atol + b.rtol < 4e-6);
    judged_free(j);
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_behind_a_product),
        cmocka_unit_test(test_largest_behind_a_product),
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_low),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_falling),
        cmocka_unit_test(test_dominant),
        cmocka_unit_test(test_gains),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_few_bits),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
