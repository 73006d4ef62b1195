/* Exponentials of running sums, which grow beyond what small sizes show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/small_draft.h"

static Small scan(const char *const *lines, int n)
{
    Small s = {.axes = {{"m", NULL, 64}, {"n", NULL, 1024}},
               .inputs = {tensor("x", DTYPE_F32, "m", "n"), tensor("dt", DTYPE_F32, "m", "n")}};
    small(&s, lines, n, 2, 2);
    return s;
}

/* Where a helper returned it, the draft points to the helper's arrays. */
static void settle(Small *s)
{
    s->d.axes = s->axes, s->d.inputs = s->inputs, s->d.outputs = &s->output;
}

/* A random walk of 1,024 steps: what it depends on is drawn smaller, at every scale, and nothing else. */
static void test_calmed(void **state)
{
    (void)state;
    static const char *const lines[] = {"s = aten.cumsum(dt, 1)", "e = aten.exp(s)",
                                        "y = aten.mul.Tensor(e, x)"};
    Small s = scan(lines, 3);
    settle(&s);
    Task *t = derived(&s.d);
    assert_true(t->inputs[1].std < 0.1 && t->inputs[1].parameter);
    assert_true(t->inputs[0].std == 1 && !t->inputs[0].parameter);
    assert_true(task_workload(t, ROLE_TIME)->atol[0] < 0.5);
    task_free(t);
}

/* Decays are no reason, nor is a running sum behind the exponential. */
static void test_calm_enough(void **state)
{
    (void)state;
    static const char *const cases[2][5] = {
        {"p = aten.softplus(dt)", "q = aten.neg(p)", "s = aten.cumsum(q, 1)", "e = aten.exp(s)",
         "y = aten.mul.Tensor(e, x)"},
        {"e = aten.exp(dt)", "s = aten.cumsum(e, 1)", "g = aten.log1p(s)", "h = aten.relu(g)",
         "y = aten.mul.Tensor(h, x)"}};
    for (int i = 0; i < 2; i++) {
        Small s = scan(cases[i], 5);
        settle(&s);
        Task *t = derived(&s.d);
        assert_true(t->inputs[1].std == 1 && !t->inputs[1].parameter);
        task_free(t);
    }
}

/* A sum that drifts overflows however small its inputs are. */
static void test_drifts(void **state)
{
    (void)state;
    static const char *const lines[] = {"p = aten.softplus(dt)", "s = aten.cumsum(p, 1)",
                                        "e = aten.exp(s)", "y = aten.mul.Tensor(e, x)"};
    Small s = scan(lines, 4);
    char *text;
    Error err;
    settle(&s);
    assert_int_equal(derive_task(&s.d, &text, &err), -1);
    assert_non_null(strstr(err.text, "graph[2]: an exponential of a running sum reaches"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calmed),
                                       cmocka_unit_test(test_calm_enough),
                                       cmocka_unit_test(test_drifts)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
