/* Two runs side by side, from their folders: settings, paired intervals, kernels; and what is not
 * comparable is said. */
#include "tests/unit/report/run_fixture.h"

#include "base/memory.h"
#include "report/compare/compare.h"

static const Row sft[] = {
    {"relu", "race", 0}, {"softmax", "race", 0}, {"matmul", "race", 0}, {"gelu", "race", 0}};
static const Row weak[] = {{"relu", "ok", 1.5},    {"relu", "race", 0},   {"softmax", "ok", 1.2},
                           {"softmax", "race", 0}, {"matmul", "ok", 1.1}, {"gelu", "race", 0}};
static const Row strong[] = {{"relu", "ok", 3},      {"relu", "ok", 1.4},   {"softmax", "ok", 2.4},
                             {"softmax", "ok", 1.1}, {"matmul", "race", 0}, {"gelu", "race", 0}};

static void write_run(const char *name, const char *device, const char *seed, const Row *crl)
{
    char path[128], text[512], below[64];
    const char *unused[2];
    Error err;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(file_mkdirs(path, &err), 0);
    snprintf(path, sizeof path, "%s/%s/settings.mk", dir, name);
    snprintf(
        text, sizeof text,
        "override RUN := %s\noverride PROFILE := <p>\noverride DEVICE := %s\noverride SEED := %s\n"
        "override TASKS := relu,softmax,matmul,gelu\noverride TASK_ROOT := %s\n"
        "override local_devices := %s\noverride stamp_tasks := same\n",
        name, device, seed, fixture_path("tasks"), name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), &err), 0);
    snprintf(below, sizeof below, "%s/report/sft", name);
    write_pair(below, sft, 4, &unused[0], &unused[1]);
    snprintf(below, sizeof below, "%s/report/crl", name);
    write_pair(below, crl, 6, &unused[0], &unused[1]);
}

static void load(const char *a, const char *b, Compare *c)
{
    Error err = {0};
    if (compare_load((const char *[]){a, b}, 2, dir, c, &err)) fail_msg("%s", err.text);
}

static const CompareRow *row_of(const Compare *c, const char *stage, const char *split)
{
    for (int i = 0; i < COMPARE_STAGES * COMPARE_SPLITS; i++)
        if (!strcmp(c->row[0][i].stage, stage) && !strcmp(c->row[0][i].split, split))
            return &c->row[0][i];
    return NULL;
}

static void says(const Compare *c, const char *text)
{
    Buffer b;
    buffer_init(&b, 1 << 20);
    compare_text(c, &b);
    if (!strstr(b.data, text)) fail_msg("'%s' is not in:\n%s", text, b.data);
    buffer_release(&b);
}

static void two_runs(void **state)
{
    (void)state;
    Compare *c = memory_alloc(sizeof *c);
    write_run("a", "sim:h100", "1", weak);
    write_run("b", "sim:h100", "2", strong);
    load("a", "b", c);
    assert_int_equal(c->n_settings, 1); /* SEED; not what is derived, nor the name */
    assert_string_equal(c->setting[0].name, "SEED");
    assert_string_equal(c->setting[0].value[1], "2");
    const CompareRow *crl = row_of(c, "crl", "train");
    assert_int_equal(crl->tasks, 3);
    near(crl->rate.a, 0.6); /* 3 of 5 */
    near(crl->rate.b, 0.8);
    near(crl->rate.interval.middle, 0.2);
    assert_true(crl->rate.interval.low < 0.2 && crl->rate.interval.high > 0.2);
    near(crl->geomean.interval.middle, cbrt(3 * 2.4 * 1 / (1.5 * 1.2 * 1.1)));
    assert_true(crl->geomean.interval.low < crl->geomean.interval.middle);
    /* Nothing is correct: no speedup, and a difference that is bounded by the trials alone. */
    const CompareRow *held = row_of(c, "crl", "heldout");
    assert_true(isnan(held->geomean.a) && isnan(held->geomean.interval.low));
    near(held->rate.interval.high, statistics_none_of(1));
    near(held->rate.interval.low, -statistics_none_of(1));
    int won = 0;
    for (int i = 0; i < c->n_kernels[0]; i++) won += c->kernel[0][i].won;
    assert_int_equal(won, 2 - 1); /* relu, softmax; a's matmul */
    says(c, "Best kernels: b won 2, a won 1, 1 within a hundredth.");
    says(c,
         "Over torch.compile, geomean of 1 task [95%]: a 1.80x [1.71 1.89], b 3.60x [3.42 3.78].");
    says(c, "Speedups are predicted by a simulator.");
    compare_release(c);
    free(c);
}

static void two_devices(void **state)
{
    (void)state;
    Compare *c = memory_alloc(sizeof *c);
    write_run("c<", "NVIDIA H100", "1", weak);
    load("a", "c<", c);
    assert_int_equal(c->same_device, 0);
    says(c, "judged on different devices");
    says(c, "DEVICE\n  a                    sim:h100\n  c<                   NVIDIA H100\n");
    says(c,
         "Over torch.compile, geomean of 1 task [95%]: a 1.80x [1.71 1.89], b 1.80x [1.71 1.89].");
    compare_release(c);
    free(c);
}

static void same_run(void **state)
{
    (void)state;
    Compare *c = memory_alloc(sizeof *c);
    Error err = {0};
    load("a", "a", c);
    says(c, "No setting differs.");
    near(row_of(c, "crl", "train")->rate.interval.middle, 0);
    compare_release(c);
    assert_int_equal(compare_load((const char *[]){"a", "none"}, 2, dir, c, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    compare_release(c);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_runs),
        cmocka_unit_test(two_devices),
        cmocka_unit_test(same_run),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
