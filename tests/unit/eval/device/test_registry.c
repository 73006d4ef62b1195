/* The registry of device backends: both have registered themselves, and an unknown name is answered
 * with what there is, in a fixed order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "eval/device/device.h"

static void test_devices_are_found(void **state)
{
    (void)state;
    Error err;
    const char *arg;
    const DeviceOps *sim = device_find("sim:h100", &arg, &err);
    assert_non_null(sim);
    assert_string_equal(sim->prefix, "sim");
    assert_string_equal(arg, "h100");
    const DeviceOps *cuda = device_find("cuda:1", &arg, &err);
    assert_non_null(cuda);
    assert_string_equal(cuda->prefix, "cuda");
    assert_string_equal(arg, "1");
}

static void refused(const char *name, const char *text)
{
    Error err = {0};
    const char *arg;
    assert_null(device_find(name, &arg, &err));
    assert_int_equal(err.code, ERROR_UNKNOWN_NAME);
    assert_string_equal(err.text, text);
}

static void test_unknown(void **state)
{
    (void)state;
    refused("tpu:0", "device \"tpu:0\": expected cuda:N, a GPU, or sim:PROFILE, where PROFILE is "
                     "a100, h100, h200, l40, rtx3090 or h20");
    refused("simulator:h100", "device \"simulator:h100\": expected cuda:N, a GPU, or sim:PROFILE, "
                              "where PROFILE is a100, h100, h200, l40, rtx3090 or h20");
    refused("sim", "device \"sim\": expected cuda:N, such as cuda:0, or sim:PROFILE, such as "
                   "sim:h100");
    refused("cuda:", "device \"cuda:\": expected cuda:N, such as cuda:0, or sim:PROFILE, such as "
                     "sim:h100");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_devices_are_found),
                                       cmocka_unit_test(test_unknown)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
