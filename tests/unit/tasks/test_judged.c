/* Tolerances of sizes and contents that task.json does not describe. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tasks/derive/judged.h"
#include "tasks/derive/measured_sizes.h"
#include "tests/small_draft.h"

/* y is the line, of rows of x. */
static Task *small_task(const char *line)
{
    const char *const lines[] = {line};
    Small s = {.axes = {{"rows", NULL, 512}, {"cols", NULL, 512}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    small(&s, lines, 1, 2, 1);
    return derived(&s.d);
}

static Tolerance tolerance(Judged *j, const TaskCase *c)
{
    Tolerance by;
    Error err;
    int usable;
    if (judged_tolerance(j, c, 0, &by, &usable, &err)) fail_msg("%s", err.text);
    assert_true(usable);
    return by;
}

/* The worst error of a running float32 sum of each row, in tolerances. */
static double running_sums(const Task *t, const Workload *w, Tolerance by)
{
    int64_t rows = w->axis[0], cols = w->axis[1];
    float *x = memory_array((size_t)(rows * cols) + 1, sizeof *x);
    double worst = 0;
    Error err;
    assert_int_equal(task_draw(&(TaskCase){t, w, VARIANT_DRAWN, 12345, 1}, 0, x, &err), 0);
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0;
        double want = 0;
        for (int64_t k = r * cols; k < (r + 1) * cols; k++) sum += x[k], want += (double)x[k];
        worst = fmax(worst, fabs((double)sum - want) / (by.atol + by.rtol * fabs(want)));
    }
    free(x);
    return worst;
}

static void test_drawn_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {3, 1021}, {257, 6}, {130, 129}, {1, 4099}};
    Task *t = small_task("y = aten.sum.dim_IntList(x, [1])");
    Judged *j = judged_new();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const Workload w = {.role = ROLE_CHECK, .axis = {sizes[i][0], sizes[i][1]}};
        const TaskCase c = {t, &w, VARIANT_DRAWN, 0, 1};
        Tolerance by = tolerance(j, &c), again = tolerance(j, &c);
        assert_true(judged_is_measured(&c));
        assert_true(by.atol == again.atol && by.rtol == t->rtol[DTYPE_F32]);
        assert_true(running_sums(t, &w, by) < 0.7);
        assert_true(by.atol < 0.02); /* one term left out is seen */
    }
    judged_free(j);
    task_free(t);
}

/* At the sizes that are described, a case without them has about the same tolerance. */
static void test_agrees(void **state)
{
    (void)state;
    Task *t = small_task("y = aten.softmax.int(x, -1)");
    const Workload *check = task_largest_check(t);
    Workload bare = *check;
    Judged *j = judged_new();
    bare.atol = NULL;
    for (int k = 0; k < 3; k++) {
        const TaskCase known = {t, check, VARIANT_DRAWN, 0, k ? k == 1 ? 8 : 0.125 : 1};
        TaskCase c = known;
        c.workload = &bare;
        Tolerance described = tolerance(j, &known), by = tolerance(j, &c);
        assert_false(judged_is_measured(&known));
        assert_true(by.atol >= described.atol && by.atol < 4 * described.atol);
    }
    judged_free(j);
    task_free(t);
}

/* A later process has what an earlier one measured, and a damaged entry is measured again. */
static void test_stored(void **state)
{
    (void)state;
    char dir[] = "/tmp/quern-judged-XXXXXX", *all;
    assert_non_null(mkdtemp(dir));
    Task *t = small_task("y = aten.softmax.int(x, -1)");
    const Workload w = {.role = ROLE_CHECK, .axis = {64, 48}};
    const TaskCase c = {t, &w, VARIANT_LARGE_ROWS, 0, 1};
    double first = 0;
    for (int i = 0; i < 3; i++) {
        Judged *j = judged_new();
        Cache *cache = cache_open(dir, CACHE_FOLDER_BYTES);
        judged_store(j, cache);
        double by = tolerance(j, &c).atol;
        assert_true(i == 0 || by == first);
        assert_int_equal(judged_stored(j), i == 1);
        first = by;
        judged_free(j);
        cache_close(cache);
        all = memory_printf("for f in %s/*/*; do echo >>$f; done", dir);
        if (i == 1) assert_int_equal(system(all), 0);
        free(all);
    }
    all = memory_printf("rm -r %s", dir);
    assert_int_equal(system(all), 0);
    free(all);
    task_free(t);
}

/* Costly sizes are measured with fewer rows; the largest of more errors is a little larger. */
static void test_many_rows(void **state)
{
    (void)state;
    Task *t = small_task("y = aten.softmax.int(x, -1)");
    Judged *j = judged_new();
    const Workload few = {.role = ROLE_CHECK, .axis = {1 << 10, 48}},
                   many = {.role = ROLE_CHECK, .axis = {1 << 21, 48}};
    const TaskCase small = {t, &few, VARIANT_LARGE_ROWS, 0, 1},
                   large = {t, &many, VARIANT_LARGE_ROWS, 0, 1};
    double by = tolerance(j, &large).atol / tolerance(j, &small).atol;
    assert_true(by >= 0.5 && by < 8);
    judged_free(j);
    task_free(t);
}

/* Sums keep their terms, and rows that are normalised need not. */
static void test_measured_sizes(void **state)
{
    (void)state;
    Task *t = small_task("y = aten.softmax.int(x, -1)");
    MeasuredExtent own, at;
    Workload w = {.role = ROLE_CHECK, .axis = {1 << 21, 4096}};
    assert_int_equal(measured_sizes(&(MeasuredSizes){t, 1e6, 0, 0}, &w, &own, &at), 0);
    assert_true(w.axis[1] == 4096 && w.axis[0] < 1 << 8 && at.flops <= 1e6 && own.flops > 1e9);
    assert_int_equal(measured_sizes(&(MeasuredSizes){t, 1e3, 256, 0}, &w, &own, &at), 0);
    assert_true(w.axis[1] == 256 && w.axis[0] == 4);
    task_free(t);
}

/* A table whose numbers are positions keeps its rows: they depend on no input, though their shape may. */
static void test_tables_of_positions(void **state)
{
    (void)state;
    static const char *const lines[] = {"a = aten.arange(cols)", "b = aten.unsqueeze(a, 0)",
                                        "c = aten.expand_as(b, x)", "e = aten.embedding(t, c)",
                                        "y = aten.add.Tensor(e, x_1)"};
    Small s = {.axes = {{"rows", NULL, 512}, {"cols", NULL, 64}, {"places", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols"),
                          tensor("t", DTYPE_F32, "places", "32"),
                          tensor("x_1", DTYPE_F32, "32", NULL)}};
    MeasuredExtent own, at;
    Workload w = {.role = ROLE_CHECK, .axis = {512, 64, 64}};
    small(&s, lines, 5, 3, 3);
    Task *t = derived(&s.d);
    assert_int_equal(measured_sizes(&(MeasuredSizes){t, 1e3, 4, 4}, &w, &own, &at), 0);
    assert_true(w.axis[0] == 4 && w.axis[1] == 4 && w.axis[2] == 64);
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn_sizes),    cmocka_unit_test(test_agrees),
        cmocka_unit_test(test_stored),         cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_measured_sizes), cmocka_unit_test(test_tables_of_positions),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
