/* On the simulator: the attention of decoding equals the full pass bit for bit.
 * test_engine_attention.c checks that the latter is right. */
#include "tests/unit/eval/engine/engine_support.h"

static inline void *same_new(const char *label, const void *data, size_t bytes)
{
    return engine_new(label, data, bytes);
}
static inline void same_free(void *p)
{
    engine_free(p);
}
#define same_fail(...) fail_msg(__VA_ARGS__)
#include "tests/unit/model/attention_checks.h"

static void dim_64(void **state)
{
    (void)state;
    same_spreads((AttentionCase){64, 4, 2, 1, 0, 0, 0, {1, 15, 64, 17, 65, 300, 130}});
    same_spreads((AttentionCase){64, 2, 1, 1, 30, 0, 0, {95, 31, 200}});
}

static void dim_128(void **state)
{
    (void)state;
    same_spreads((AttentionCase){128, 7, 1, 0, 0, 0, 0, {65, 170}});
    same_spreads((AttentionCase){128, 2, 1, 0, 49, 0, 0, {90, 170}});
    same_attention((AttentionCase){128, 2, 2, 0, 0, 3, 0, {300, 1, 64}});
}

static void odd_dims(void **state)
{
    (void)state;
    same_spreads((AttentionCase){80, 3, 1, 2, 0, 0, 0, {17, 130}});
    same_attention((AttentionCase){16, 16, 1, 0, 0, 2, 1, {300, 33}});
    same_attention((AttentionCase){24, 9, 1, 0, 0, 2, 0, {65, 47}});
    same_attention((AttentionCase){8, 4, 2, 0, 0, 2, 0, {40, 128}});
    same_attention((AttentionCase){96, 2, 2, 0, 3, 3, 0, {129, 5}});
    same_attention((AttentionCase){256, 1, 1, 0, 0, 2, 1, {66, 16}});
}

/* Neither the number of multiprocessors nor other rows change the result: columns are divided
 * differently, and warps have several groups of keys. */
static void other_cuts(void **state)
{
    (void)state;
    static const int sms[] = {1, 5, 132};
    for (int i = 0; i < 3; i++) {
        engine.state.sms = sms[i];
        same_attention((AttentionCase){128, 2, 1, 0, 0, 2, 0, {1000, 65}});
        same_attention((AttentionCase){16, 8, 8, 126, 0, 2, 0, {500, 300}});
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dim_64, engine_setup, engine_teardown),
        {"dim_64_older", dim_64, engine_setup_sm_80, engine_teardown, NULL},
        cmocka_unit_test_setup_teardown(dim_128, engine_setup, engine_teardown),
        {"dim_128_older", dim_128, engine_setup_sm_80, engine_teardown, NULL},
        cmocka_unit_test_setup_teardown(odd_dims, engine_setup, engine_teardown),
        cmocka_unit_test_setup_teardown(other_cuts, engine_setup, engine_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
