/* The routes of all operators that have one, against their references: the calls of libraries as the
 * simulator computes them, or with QUERN_TEST_DEVICE those of a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/eval/operators/op_device.h"

/* At least so many of an operator's cases in float32 have a route. */
enum { LEAST = 10, HALF_CASES = 12 };

static int operators; /* that have a route */

static void route(Batch *b, const Op *op, const json_t *cases)
{
    int taken = 0, half = 0;
    if (!op->route) return;
    for (int n = 0; n < FIXTURE_CASES; n++)
        taken += add(b, op->name, json_array_get(cases, (size_t)n), DTYPE_F32, 1);
    for (int n = 0; n < HALF_CASES; n++)
        half +=
            add(b, op->name, json_array_get(cases, (size_t)n), n % 2 ? DTYPE_F16 : DTYPE_BF16, 1);
    if (taken < LEAST || !half)
        fail_msg("%s: %d of %d cases have a route, %d in half", op->name, taken, FIXTURE_CASES,
                 half);
    print_message("# %s: %d and %d calls\n", op->name, taken, half);
    operators++;
}

static void routes(void **state)
{
    (void)state;
    each_operator(route);
    assert_true(operators || getenv("ONLY_OP"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(routes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("op_routes", tests, NULL, close_batch_compiler);
}
