/* PyTorch's times of a task: which rows of the tables a verdict takes, and how it says them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "eval/judge/rivals.h"

#define COLUMNS                                                                             \
    "task\taxes\tgpu\ttorch\tprecision\tway\tus\tus_low\tus_high\tratio\tratio_low\tratio_" \
    "high\truns\terror\n"
#define ROW(task, gpu, torch, precision, way, times)                                      \
    task "\t{\"cols\":64,\"rows\":8}\t" gpu "\t" torch "\t" precision "\t" way "\t" times \
         "\t\t\t\t9\t\n"

static char folder[] = "/tmp/quern-rivals-XXXXXX";

static void write_table(const char *below, const char *text)
{
    Error err;
    char *dir = memory_printf("%s%s", folder, below), *path = memory_printf("%s/rivals.tsv", dir);
    if (file_mkdirs(dir, &err) || file_write_atomic(path, text, strlen(text), &err))
        fail_msg("%s", err.text);
    free(path);
    free(dir);
}

/* Find the times of "mine" at rows=8, cols=64. Returns what rivals_find does. */
static int find(Verdict *v, Error *err)
{
    Task t = {.n_axes = 2, .axis_name = {"rows", "cols"}};
    Workload w = {.axis = {8, 64}};
    snprintf(t.name, sizeof t.name, "mine");
    t.dir = memory_printf("%s/set/level1/mine", folder);
    int rc = rivals_find(&(RivalKey){&t, &w, "GPU", "default"}, v, err);
    free(t.dir);
    return rc;
}

static Verdict timed(void)
{
    return (Verdict){.time_us = 10, .baseline_us = 29, .speedup = 2.9, .low = 2.871, .high = 2.929};
}

static void test_the_verdict_says_its_ratios(void **state)
{
    (void)state;
    Verdict v = timed();
    Error err = {0};
    char text[RIVALS_TEXT];
    write_table("/set", COLUMNS ROW("mine", "GPU", "2.11", "default", "eager", "29\t28.9\t29.1")
                            ROW("mine", "GPU", "2.11", "default", "compile", "12\t11.88\t12.12")
                                ROW("other", "GPU", "2.11", "default", "max-autotune", "1\t1\t1"));
    assert_int_equal(find(&v, &err), 0);
    assert_string_equal(v.torch, "2.11");
    Interval in;
    assert_int_equal(rivals_over(&v, "compile", &in), 1);
    assert_true(fabs(in.middle - 1.2) < 1e-9);
    assert_true(fabs(in.high / in.middle - 1 - hypot(0.01, 0.01)) < 1e-9);
    assert_true(fabs(1 - in.low / in.middle - hypot(0.01, 0.01)) < 1e-9);
    rivals_text(&v, text);
    assert_string_equal(text, "1.2x torch.compile (1.18 to 1.22)");
    assert_int_equal(rivals_over(&v, "max-autotune", &in), 0);
}

static void test_rows_of_others_are_not_taken(void **state)
{
    (void)state;
    Verdict v = timed();
    Error err = {0};
    char text[RIVALS_TEXT];
    write_table("/set",
                COLUMNS ROW("mine", "GPU 2", "2.11", "default", "compile", "12\t12\t12")
                    ROW("mine", "GPU", "2.11", "high", "compile", "12\t12\t12")
                        ROW("min", "GPU", "2.11", "default", "compile",
                            "12\t12\t12") "mine\t{\"cols\":64,\"rows\":9}\tGPU\t2."
                                          "11\tdefault\tcompile\t1\t1\t1\t\t\t\t9\t\n"
                                          "mine\t{\"cols\":64,\"rows\":8}\tGPU\t2."
                                          "11\tdefault\tcompile\t\t\t\t\t\t\t\ttook over 6 s\n");
    assert_int_equal(find(&v, &err), 0);
    assert_int_equal(v.n_rivals, 0);
    rivals_text(&v, text);
    assert_string_equal(text, "torch.compile was not measured");
}

static void test_the_newest_torch_and_the_nearest_table_count(void **state)
{
    (void)state;
    Verdict v = timed();
    Error err = {0};
    Interval in;
    write_table("/set", COLUMNS ROW("mine", "GPU", "2.11", "default", "eager", "30\t30\t30")
                            ROW("mine", "GPU", "2.11", "default", "compile", "20\t20\t20")
                                ROW("mine", "GPU", "2.12", "default", "compile", "15\t15\t15"));
    write_table("/set/level1",
                COLUMNS ROW("theirs", "GPU", "2.12", "default", "compile", "1\t1\t1"));
    assert_int_equal(find(&v, &err), 0);
    assert_string_equal(v.torch, "2.12");
    assert_int_equal(rivals_over(&v, "compile", &in), 1);
    assert_true(fabs(in.middle - 1.5) < 1e-9);
    assert_int_equal(rivals_over(&v, "eager", &in), 0);
    write_table("/set/level1",
                COLUMNS ROW("mine", "GPU", "2.12", "default", "compile", "11\t11\t11"));
    v = timed();
    assert_int_equal(find(&v, &err), 0);
    assert_int_equal(rivals_over(&v, "compile", &in), 1);
    assert_true(fabs(in.middle - 1.1) < 1e-9);
}

static void test_a_damaged_table_is_named_by_line(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "other\n",
        COLUMNS "mine\tonly\n",
        COLUMNS ROW("mine", "GPU", "2.11", "default", "compile", "fast\t1\t1"),
        COLUMNS ROW("mine", "GPU", "2.11", "default", "compile", "nan\t1\t1"),
        COLUMNS ROW("mine", "GPU", "2.11", "default", "compile", "-1\t1\t1"),
        COLUMNS ROW("mine", "GPU", "2.11", "default", "compile", "\t\t")};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        Verdict v = timed();
        Error err = {0};
        write_table("/set/level1", damaged[i]);
        assert_int_equal(find(&v, &err), -1);
        assert_non_null(strstr(err.text, i ? "rivals.tsv, line 2: " : "rivals.tsv, line 1: "));
    }
    Verdict v = timed();
    Error err = {0};
    write_table("/set/level1", COLUMNS ROW("mine", "GPU", "2.12", "default", "compile",
                                           "11\t11\t11") "mine\t{\"co");
    assert_int_equal(find(&v, &err), 0); /* a line that is being written */
    assert_int_equal(v.n_rivals, 3);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return file_remove_tree(folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_verdict_says_its_ratios),
        cmocka_unit_test(test_rows_of_others_are_not_taken),
        cmocka_unit_test(test_the_newest_torch_and_the_nearest_table_count),
        cmocka_unit_test(test_a_damaged_table_is_named_by_line),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
