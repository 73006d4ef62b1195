/* The routes of all operators that have one, against their references: the calls of libraries as the
 * simulator computes them, or with QUERN_TEST_DEVICE those of a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/eval/op_device.h"

/* At least so many of an operator's cases in float32 have a route. */
enum { LEAST = 10, HALF_CASES = 12 };

static void routes(void **state)
{
    (void)state;
    const char *only = getenv("ONLY_OP");
    int operators = 0;
    Batch b = {.n = 0};
    buffer_init(&b.source, 1 << 22);
    choose_device();
    flush(&b);
    for (int i = 0; op_family(i).n; i++) {
        OpFamily family = op_family(i);
        json_t *all = fixture_file(family.name);
        for (int k = 0; k < family.n; k++) {
            const char *name = family.ops[k].name;
            const json_t *cases = json_object_get(json_object_get(all, name), "cases");
            int taken = 0, half = 0;
            if (!family.ops[k].route || (only && !strstr(name, only))) continue;
            for (int n = 0; n < FIXTURE_CASES; n++)
                taken += add(&b, name, json_array_get(cases, (size_t)n), OP_F32, 1);
            for (int n = 0; n < HALF_CASES; n++)
                half +=
                    add(&b, name, json_array_get(cases, (size_t)n), n % 2 ? OP_F16 : OP_BF16, 1);
            if (strstr(name, "conv_transpose3d")) { /* its plain kernel is the faster one */
                assert_int_equal(taken + half, 0);
                continue;
            }
            if (taken < LEAST || !half)
                fail_msg("%s: %d of %d cases have a route, %d in half", name, taken, FIXTURE_CASES,
                         half);
            print_message("# %s: %d and %d calls\n", name, taken, half);
            operators++;
        }
        flush(&b);
        json_decref(all);
    }
    assert_true(operators || only);
    buffer_release(&b.source);
    free(b.plain.launch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(routes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("op_routes", tests, open_compiler, close_compiler);
}
