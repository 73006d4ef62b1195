/* On the simulator: the kernels between the products of a decoding step equal those of the full
 * pass bit for bit. test_engine_train.c and test_engine_norm.c check that the latter are right. */
#include "tests/unit/eval/engine/engine_support.h"

static inline void *rows_new(const char *label, const void *data, size_t bytes)
{
    return engine_new(label, data, bytes);
}
static inline void rows_free(void *p)
{
    engine_free(p);
}
#define rows_fail(...) fail_msg(__VA_ARGS__)
#include "tests/unit/model/row_checks.h"

static int setup(void **state)
{
    (void)state;
    random_init(&row_numbers, 5, 0);
    engine_start("sm_90");
    return 0;
}

static void norms(void **state)
{
    (void)state;
    same_norms();
}

static void heads(void **state)
{
    (void)state;
    same_fresh();
}

static void gates(void **state)
{
    (void)state;
    same_gates();
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(norms, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(heads, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(gates, setup, engine_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
