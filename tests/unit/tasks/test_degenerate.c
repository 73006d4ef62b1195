/* Tasks that are degenerate, and those that are not: work that algebra removes, inputs that cancel at some
 * sizes or at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/small_draft.h"

static void test_degenerate(void **state)
{
    (void)state;
    static const struct {
        const char *lines[3];
        int n, degenerate, exact;
    } cases[] = {
        {{"h = aten.softmax.int(x, 1)", "y = aten.mean.dim(h, [1])"}, 2, 1},
        {{"g = aten.mean.dim(x, [1], True)", "h = aten.mean.dim(g, [1], True)",
          "y = aten.sub.Tensor(g, h)"},
         3,
         1},
        {{"h = aten.unsqueeze(x, 0)", "y = aten.sum.dim_IntList(h, [2])"}, 2, 0, 1},
        {{"h = aten.t(x)", "y = aten.mm(h, x)"}, 2, 0},
        {{"h = aten.mm(x, w)", "y = aten.sum.dim_IntList(h, [1])"}, 2, 1},
        {{"h = aten.mm(x, w)", "g = aten.amax(h, [1], True)", "y = aten.softmax.int(g, 1)"}, 3, 1},
        {{"h = aten.mm(x, w)", "y = aten.amax(h, [1])"}, 2, 0},
        {{"h = aten.mul.Tensor(w, 0.0)", "y = aten.mm(x, h)"}, 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Small s = {.axes = {{"m", NULL, 256}, {"k", NULL, 128}, {"n", NULL, 64}},
                   .inputs = {tensor("x", DTYPE_F32, "m", "k"), tensor("w", DTYPE_F32, "k", "n")}};
        small(&s, cases[i].lines, cases[i].n, 3, i < 4 ? 1 : 2);
        Task *t = derived(&s.d);
        if (t->degenerate != cases[i].degenerate)
            fail_msg("case %zu: degenerate is %d", i, t->degenerate);
        assert_int_equal(t->exact != NULL, cases[i].exact);
        task_free(t);
    }
}

/* An embedding that is added before a norm of `groups` groups. */
static Task *embedded(const char *norm, int64_t low, int64_t high, const char *constraint)
{
    const char *const lines[] = {"u = aten.unsqueeze(t, 2)", "h = aten.add.Tensor(x, u)", norm};
    Small s = {
        .axes = {{"batch", NULL, 4}, {"c", NULL, 256, low, high}, {"n", NULL, 16}},
        .inputs = {tensor("x", DTYPE_F32, "batch", "c"), tensor("t", DTYPE_F32, "batch", "c")}};
    s.inputs[0].rank = 3, s.inputs[0].shape[2] = "n";
    small(&s, lines, 3, 3, 2);
    s.d.constraints = &constraint, s.d.n_constraints = constraint != NULL;
    return derived(&s.d);
}

/* An input that cancels at the least sizes alone is no reason, and the largest check workload is larger; one
 * that cancels at every size is. */
static void test_cancels(void **state)
{
    (void)state;
    Task *some = embedded("y = aten.group_norm(h, 32)", 0, 0, "c % 32 == 0");
    assert_false(some->degenerate);
    assert_true(task_largest_check(some)->axis[1] >= 64);
    Task *always = embedded("y = aten.group_norm(h, 256)", 256, 256, NULL);
    assert_true(always->degenerate);
    task_free(some);
    task_free(always);
}

/* A tolerance that is wide at another input scale hides an input, or lets zeros pass, there alone; a loop
 * begins with zeros. */
static void test_not_degenerate(void **state)
{
    (void)state;
    static const struct {
        const char *lines[3];
        int n;
    } cases[] = {
        {{"p = aten.sigmoid(x)", "y = aten.binary_cross_entropy(p, w)"}, 2},
        {{"p = aten.log_softmax.int(x, 1)", "q = aten.softmax.int(w, 1)",
          "y = aten.kl_div(p, q, 2)"},
         3},
        {{"z = aten.mul.Tensor(w, 0.0)", "v = aten.add.Tensor(z, w)", "y = aten.mul.Tensor(x, v)"},
         3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Small s = {.axes = {{"m", NULL, 64}, {"k", NULL, 128}},
                   .inputs = {tensor("x", DTYPE_F32, "m", "k"), tensor("w", DTYPE_F32, "m", "k")}};
        if (i == 2) s.inputs[1] = tensor("w", DTYPE_F32, "k", NULL);
        small(&s, cases[i].lines, cases[i].n, 2, 2);
        Task *t = derived(&s.d);
        if (t->degenerate) fail_msg("case %zu is degenerate", i);
        task_free(t);
    }
}

/* A vector of parameters that is added to all elements of a softmax's or a norm's row is no reason; one that
 * is taken away again, or that only a maximum hides, is. */
static void test_shifted(void **state)
{
    (void)state;
    static const struct {
        const char *lines[3];
        int n, degenerate;
    } cases[] = {
        {{"u = aten.unsqueeze(b, 1)", "h = aten.add.Tensor(x, u)", "y = aten.softmax.int(h, 1)"},
         3,
         0},
        {{"u = aten.unsqueeze(b, 1)", "h = aten.add.Tensor(x, u)", "y = aten.layer_norm(h, [k])"},
         3,
         0},
        {{"u = aten.unsqueeze(b, 1)", "h = aten.add.Tensor(x, u)", "y = aten.sub.Tensor(h, u)"},
         3,
         1},
        {{"u = aten.unsqueeze(b, 1)", "v = aten.mul.Tensor(u, 1e-12)", "y = aten.add.Tensor(x, v)"},
         3,
         1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Small s = {.axes = {{"m", NULL, 256}, {"k", NULL, 128}},
                   .inputs = {tensor("x", DTYPE_F32, "m", "k"), tensor("b", DTYPE_F32, "m", NULL)}};
        s.inputs[1].parameter = "b";
        small(&s, cases[i].lines, cases[i].n, 2, 2);
        Task *t = derived(&s.d);
        if (t->degenerate != cases[i].degenerate)
            fail_msg("case %zu: degenerate is %d", i, t->degenerate);
        task_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_degenerate), cmocka_unit_test(test_cancels),
        cmocka_unit_test(test_shifted), cmocka_unit_test(test_not_degenerate)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
