/* Derived tolerances hold right kernels in float32 at seeds from which they were not derived. */
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
#include "tests/small_draft.h"

/* A layer norm in float32, by the mean of the squares. */
static void norm_rows(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++, x += cols, y += cols) {
        float sum = 0, squares = 0, n = (float)cols;
        for (int64_t c = 0; c < cols; c++) sum += x[c], squares += x[c] * x[c];
        float mean = sum / n, var = fmaxf(0, squares / n - mean * mean);
        for (int64_t c = 0; c < cols; c++) y[c] = (x[c] - mean) / sqrtf(var + 1e-5f);
    }
}

/* Rows of a few elements, some of which are nearly equal: one draw needs many times what another does. A
 * right kernel passes at seeds that were not drawn. */
static void test_other_seeds(void **state)
{
    (void)state;
    enum { SEEDS = 200, COLS = 3 };
    static const char *const lines[] = {"y = aten.layer_norm(x, [3])"};
    Small s = {.axes = {{"rows", NULL, 64}, {"cols", NULL, 3, 3, 3}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    small(&s, lines, 1, 2, 1);
    Task *t = derived(&s.d);
    int refused = 0, n_checks = 0;
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        int64_t rows = w->axis[0], n = rows * COLS; /* cols has one size, and is no axis */
        float x[64 * COLS], y[64 * COLS];
        double wide[64 * COLS], want[64 * COLS];
        TaskComparison with = {.task = t, .workload = w};
        Error err;
        if (w->role != ROLE_CHECK) continue;
        assert_int_equal(task_tolerance(&(TaskCase){t, w, VARIANT_DRAWN, 0, 1}, 0, &with.by, &err),
                         0);
        for (uint64_t seed = 1000; seed < 1000 + SEEDS; seed++, n_checks++) {
            assert_int_equal(task_draw(&(TaskCase){t, w, VARIANT_DRAWN, seed, 1}, 0, x, &err), 0);
            for (int64_t k = 0; k < n; k++) wide[k] = (double)x[k];
            const double *in = wide;
            double *out = want;
            assert_int_equal(task_reference(t, w, &in, &out, &err), 0);
            norm_rows(x, y, rows, COLS);
            refused += task_compare(&with, y, want, &err);
        }
    }
    if (refused > n_checks / 400) fail_msg("%d of %d are refused", refused, n_checks);
    task_free(t);
}

/* Images of three halves the size, with aligned corners, by coordinates in float32. */
static void resize_float(const float *x, float *y, int64_t images, int64_t side)
{
    int64_t wide = 3 * side / 2;
    float step = (float)(side - 1) / (float)(wide - 1);
    for (int64_t i = 0; i < images * wide * wide; i++) {
        const float *from = x + i / (wide * wide) * side * side;
        float h = step * (float)(i / wide % wide), w = step * (float)(i % wide);
        int64_t top = (int64_t)h, left = (int64_t)w, down = top < side - 1 ? side : 0,
                right = left < side - 1;
        float lower = h - (float)top, later = w - (float)left;
        from += top * side + left;
        y[i] = (1 - lower) * ((1 - later) * from[0] + later * from[right]) +
               lower * ((1 - later) * from[down] + later * from[down + right]);
    }
}

/* Weights of neighbours whose coordinates are rounded. */
static void test_coordinates(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "y = aten.upsample_bilinear2d(x, [3 * side / 2, 3 * side / 2], True)"};
    Small s = {.axes = {{"images", NULL, 1024}, {"side", NULL, 28}},
               .inputs = {{.name = "x",
                           .dtype = DTYPE_F32,
                           .rank = 4,
                           .shape = {"images", "1", "side", "side"}}}};
    small(&s, lines, 1, 2, 1);
    Task *t = derived(&s.d);
    const Workload *roles[] = {task_workload(t, ROLE_TIME), task_workload(t, ROLE_SIM)};
    for (int i = 0; i < 2; i++) {
        const Workload *w = roles[i];
        size_t n, n_out;
        Error err;
        TaskComparison with = {.task = t, .workload = w};
        if (task_elements(t, w, &t->inputs[0], &n, &err) ||
            task_elements(t, w, &t->outputs[0], &n_out, &err))
            fail_msg("%s", err.text);
        float *x = memory_array(n, sizeof *x), *y = memory_array(n_out, sizeof *y);
        double *wide = memory_array(n, sizeof *wide), *want = memory_array(n_out, sizeof *want);
        const double *in = wide;
        assert_int_equal(task_tolerance(&(TaskCase){t, w, VARIANT_DRAWN, 0, 1}, 0, &with.by, &err),
                         0);
        for (uint64_t seed = 1000; seed < 1008; seed++) {
            assert_int_equal(task_draw(&(TaskCase){t, w, VARIANT_DRAWN, seed, 1}, 0, x, &err), 0);
            dtype_to_double(DTYPE_F32, x, wide, n);
            assert_int_equal(task_reference(t, w, &in, &want, &err), 0);
            resize_float(x, y, w->axis[0], w->axis[1]);
            if (task_compare(&with, y, want, &err)) fail_msg("%s", err.text);
        }
        free(x), free(y), free(wide), free(want);
    }
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_seeds),
                                       cmocka_unit_test(test_coordinates)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
