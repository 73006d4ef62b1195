/* Which differences are looked at again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eval/judge/contents/second_look.h"
#include "tests/small_draft.h"

enum { MANY = 150000 };

static int ones(void *of, int input, int64_t from, int64_t n, double *dst, Error *err)
{
    (void)of, (void)input, (void)from, (void)err;
    for (int64_t i = 0; i < n; i++) dst[i] = 1;
    return 0;
}

static int held(void *of, int input, int64_t from, int64_t n, const float **all, Error *err)
{
    (void)of, (void)input, (void)from, (void)n, (void)err;
    *all = NULL;
    return 0;
}

/* Of many elements as many as `bad` differ, of which the first and the worst are as expected. */
static int looked(Task *t, Variant v, size_t bad)
{
    const Workload w = {.role = ROLE_CHECK, .axis = {8, 64, 8}};
    const DemandInputs inputs = {.fetch = ones, .hold = held};
    const SecondLook l = {.of = {t, &w, v, 4711, 1}, .n = MANY, .all = MANY, .inputs = &inputs};
    const TaskDifference d = {.bad = bad, .first = 3, .worst = 5};
    return second_look(&l, &d, NULL);
}

/* One element of 65536, in TF32 of 1024, and of contents at which faults show, where a row may err as one, of
 * 128. */
static void test_share(void **state)
{
    (void)state;
    static const char *const lines[] = {"p = aten.matmul(x, w)", "y = aten.softmax.int(p, -1)"};
    Small s = {.axes = {{"rows", NULL, 64}, {"terms", NULL, 64}, {"cols", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "terms"),
                          tensor("w", DTYPE_F32, "terms", "cols")}};
    small(&s, lines, 2, 3, 2);
    Task *t = derived(&s.d);
    assert_int_equal(looked(t, VARIANT_DRAWN, 2), 1);
    assert_int_equal(looked(t, VARIANT_DRAWN, 66), 0);
    assert_int_equal(looked(t, VARIANT_LARGE_ROWS, 66), 1);
    assert_int_equal(looked(t, VARIANT_LARGE_ROWS, MANY / 64), 0);
    assert_int_equal(looked(t, VARIANT_INTEGERS, 1), 0);
    t->tf32 = TF32_CUBLAS;
    assert_int_equal(looked(t, VARIANT_DRAWN, 66), 1);
    assert_int_equal(looked(t, VARIANT_DRAWN, MANY / 512), 0);
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_share)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
