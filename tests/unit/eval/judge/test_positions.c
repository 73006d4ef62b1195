/* Which tasks have positions that can be computed alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "eval/judge/contents/positions.h"
#include "eval/judge/contents/shortened.h"
#include "tests/small_draft.h"

/* The task of one line, or two, on x, of rows and cols. */
static void expect(Dtype dtype, const char *first, const char *second, int independent)
{
    const char *lines[] = {first, second};
    Small s = {.axes = {{"rows", NULL, 256}, {"cols", NULL, 128}},
               .inputs = {tensor("x", dtype, "rows", "cols")}};
    small(&s, lines, second ? 2 : 1, 2, 1);
    Task *t = derived(&s.d);
    if (!shortened_has_axis(t)) fail_msg("%s: no axis", first);
    for (int again = 0; again < 2; again++)
        if (positions_independent(t) != independent) fail_msg("%s: not %d", first, independent);
    task_free(t);
}

static void test_independent(void **state)
{
    (void)state;
    expect(DTYPE_F32, "y = aten.relu(x)", NULL, 1);
    expect(DTYPE_F32, "y = aten._softmax.default(x, 1, False)", NULL, 1);
    expect(DTYPE_F16, "y = aten._softmax.default(x, 1, False)", NULL, 1);
    expect(DTYPE_BF16, "h = aten.mean.dim(x, [1], True)", "y = aten.sub.Tensor(x, h)", 1);
}

/* Turned inputs give turned outputs in all of them. */
static void test_dependent(void **state)
{
    (void)state;
    expect(DTYPE_F32, "y = aten._softmax.default(x, 0, False)", NULL, 0);
    expect(DTYPE_BF16, "y = aten._softmax.default(x, 0, False)", NULL, 0);
    expect(DTYPE_F32, "h = aten.linalg_vector_norm(x)", "y = aten.div.Tensor(x, h)", 0);
    expect(DTYPE_F32, "h = aten.mean.dim(x, [0], True)", "y = aten.sub.Tensor(x, h)", 0);
    expect(DTYPE_F32, "h = aten.amax.default(x)", "y = aten.sub.Tensor(x, h)", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_independent),
                                       cmocka_unit_test(test_dependent)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
