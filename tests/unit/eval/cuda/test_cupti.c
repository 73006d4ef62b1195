/* Counters over a library, made here, that has CUPTI's ABI: the order of calls, the passes, metrics
 * that a chip does not have, and activity records where counting is not allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "eval/cuda/measure/cupti.h"
#include "tests/fixture_path.h"

static char folder[] = "/tmp/quern-cupti-XXXXXX";

static int make_library(void **state)
{
    char path[200], command[5000];
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/lib64", folder);
    if (mkdir(path, 0700)) return -1;
    snprintf(command, sizeof command, "gcc -w -fPIC -shared -o %s/lib64/libcupti.so.13 '%s'",
             folder, fixture_path("tests/fixtures/cuda/cupti.c"));
    if (system(command)) return -1;
    return setenv("CUDA_HOME", folder, 1);
}

static int remove_library(void **state)
{
    char command[200];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static struct {
    int prepared, run, fails;
} work_done;

static int prepare(void *of, Error *err)
{
    (void)of, (void)err;
    work_done.prepared++;
    return 0;
}

static int run(void *of, Error *err)
{
    (void)of;
    work_done.run++;
    return work_done.fails ? error_set(err, ERROR_INVALID, "the kernel trapped") : 0;
}

static const CuptiWork work = {.context = (void *)7, .ordinal = 3, .prepare = prepare, .run = run};

static double value(const DeviceCounter *c, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(c[i].name, name)) return c[i].value;
    return -1;
}

/* Without the right to count, the values come from activity records. A run that fails is an
 * error. */
static void test_records(void **state)
{
    DeviceCounter c[DEVICE_MAX_COUNTERS];
    Error err = {0};
    int n;
    (void)state;
    setenv("FAKE_REFUSES", "1", 1);
    memset(&work_done, 0, sizeof work_done);
    if (cupti_counters(&work, c, &n, &err)) fail_msg("%s", err.text);
    assert_int_equal(work_done.run, 1);
    assert_true(value(c, n, "kernel0_us") == 12.5 && value(c, n, "kernel0_blocks") == 10 &&
                value(c, n, "kernel0_registers") == 40);
    assert_true(value(c, n, "kernel0_threads_a_block") == 128 &&
                value(c, n, "kernel0_shared_bytes") == 48);
    work_done.fails = 1;
    assert_int_equal(cupti_counters(&work, c, &n, &err), -1);
    assert_int_equal(n, 0);
    assert_non_null(strstr(err.text, "the kernel trapped"));
    assert_non_null(strstr(err.text, "NVreg_RestrictProfilingToAdminUsers"));
    unsetenv("FAKE_REFUSES");
}

/* Three passes, each after a preparation. This chip does not have the stall reasons. */
static void test_counters(void **state)
{
    DeviceCounter c[DEVICE_MAX_COUNTERS];
    Error err = {0};
    int n;
    (void)state;
    memset(&work_done, 0, sizeof work_done);
    if (cupti_counters(&work, c, &n, &err)) fail_msg("%s", err.text);
    assert_int_equal(work_done.run, 3);
    assert_int_equal(work_done.prepared, 3);
    assert_true(value(c, n, "time_ns") == 1 && value(c, n, "dram_bytes_read") == 8);
    assert_true(value(c, n, "stall_memory") == -1);
    assert_int_equal(n, 59);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records),
                                       cmocka_unit_test(test_counters)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_library, remove_library);
}
