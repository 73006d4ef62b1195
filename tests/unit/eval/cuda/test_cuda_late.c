/* The device "cuda:N" over a driver that does all work as late as it is allowed to
 * (tests/fixtures/cuda): contents, graphs and the runs of a verdict. Memory that is reused too
 * early, or a wait that is missing, gives a wrong result. */
#include "eval/judge/baseline.h"
#include "eval/judge/paired_timing.h"

#include "tests/unit/eval/cuda/cuda_support.h"

/* Contents larger than the pinned memory, rotated and compared, while the host reuses its
 * memory. */
static void test_large_contents(void **state)
{
    (void)state;
    enum { BYTES = (21 << 20) + 48 };
    DeviceGolden *g[2];
    DevicePtr p;
    size_t first;
    unsigned char *bytes = memory_alloc(BYTES), *got = memory_alloc(BYTES);
    start();
    ok(ops->alloc(d, BYTES, "input x", &p, &err));
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < BYTES; k++)
            bytes[k] = (unsigned char)((k + (size_t)i) * 2654435761u >> 28);
        ok(ops->golden->keep(d, bytes, BYTES, &g[i], &err));
    }
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < BYTES; k++)
            bytes[k] = (unsigned char)((k + (size_t)i) * 2654435761u >> 28);
        const DeviceExpected x[] = {{p, g[0], 4096, -1}, {p, g[1], 4096, -1}},
                             plain = {p, g[i], 0, -1};
        ok(ops->golden->fill(d, &x[i], &err));
        ok(ops->read(d, p, got, BYTES, &err));
        assert_memory_equal(got, bytes + 4096, BYTES - 4096);
        assert_memory_equal(got + BYTES - 4096, bytes, 4096);
        assert_int_equal(ops->golden->same(d, &x[i], &first, &err), 0);
        assert_int_equal(ops->golden->same(d, &x[!i], &first, &err), 1);
        ok(ops->write(d, p, bytes, BYTES, &err));
        memset(bytes, 7, BYTES);
        assert_int_equal(ops->golden->same(d, &plain, &first, &err), 0);
    }
    for (int i = 0; i < 2; i++) ops->golden->free(d, g[i]);
    free(bytes), free(got);
    ops->close(d);
}

/* What a buffer holds becomes contents, which stay when the buffer changes. */
static void test_contents_of_a_buffer(void **state)
{
    (void)state;
    enum { BYTES = 96, KEPT = 80 };
    unsigned char bytes[BYTES], got[BYTES];
    DeviceGolden *g = NULL;
    DevicePtr p;
    start();
    for (int i = 0; i < BYTES; i++) bytes[i] = (unsigned char)i;
    ok(ops->alloc(d, BYTES, "output y", &p, &err));
    ok(ops->write(d, p, bytes, BYTES, &err));
    ok(ops->golden->keep_of(d, p, KEPT, &g, &err));
    ok(ops->poison(d, p, &err));
    ok(ops->golden->fill(d, &(DeviceExpected){p, g, 0, -1}, &err));
    ok(ops->read(d, p, got, BYTES, &err));
    assert_memory_equal(got, bytes, KEPT);
    for (int i = KEPT; i < BYTES; i++) assert_int_equal(got[i], 0xff);
    ops->golden->free(d, g);
    assert_int_equal(ops->golden->keep_of(d, p, BYTES + 1, &g, &err), -1);
    ops->free(d, p);
    ops->close(d);
}

/* Each of many sequences is captured once, and again after its module was unloaded and another has
 * its number. */
static void test_graphs(void **state)
{
    (void)state;
    enum { SEQUENCES = 100 };
    Fault fault;
    DeviceClock c;
    DevicePtr y;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    for (int round = 0; round < 2; round++) {
        for (int home = 0; home < HOMES; home++) {
            DeviceModule *m = load(home);
            for (int k = 1; k < SEQUENCES; k++) {
                int i =
                    round ? SEQUENCES - k : k; /* the second round begins with the last captured */
                DeviceLaunch l[2] = {launch(m, "ones", y, i, 0), launch(m, "ones", y, i, i)};
                ok(ops->poison(d, y, &err));
                for (int again = 0; again < 2; again++)
                    ok(clock_one(l, 2, CLOCK_GRAPH, &c, &fault));
                assert_true(c.us > 0 && c.flush_us > 0);
                expect_floats(y, N, 2 * i);
            }
            m->parks = 0; /* so that the runner unloads it */
            ops->unload(d, m);
        }
    }
    DeviceModule *m = load(0);
    DeviceLaunch l[2] = {launch(m, "ones", y, 1, 0), launch(m, "refused", y, 1, 0)};
    assert_int_equal(clock_one(l, 2, CLOCK_GRAPH, &c, &fault), 1);
    assert_int_equal(fault.outcome, OUTCOME_LAUNCH_ERROR);
    ok(clock_one(l, 1, CLOCK_GRAPH, &c, &fault));
    l[1] = launch(m, "illegal", y, 1, 0);
    assert_int_equal(clock_one(l, 2, CLOCK_GRAPH, &c, &fault), 1);
    assert_int_equal(fault.outcome, OUTCOME_OUT_OF_BOUNDS);
    m = load(0); /* in a new runner */
    ok(ops->poison(d, y, &err));
    l[0] = launch(m, "ones", y, N, 0);
    ok(clock_one(l, 1, CLOCK_GRAPH, &c, &fault));
    expect_floats(y, N, N);
    ops->free(d, y);
    ops->close(d);
}

/* A side of a comparison, with one kernel that the driver knows by name. */
static void side(Loaded *l, Plan *plan, char source[100], Task *t, const char *kernel, int trusted)
{
    Fault f;
    CompileResult code = {.ok = 1,
                          .n_lowered = 1,
                          .lowered = memory_array(1, sizeof *code.lowered),
                          .ptx = memory_strdup("")};
    code.lowered[0] = memory_strdup(kernel);
    code.cubin = memory_alloc(image.len);
    memcpy(code.cubin, image.data, image.len);
    code.cubin_len = image.len;
    snprintf(source, 100, "//@ launch %s<<<1, 32>>>(x, y, n)\n", kernel);
    ok(plan_parse(source, strlen(source), 0, plan, &f));
    loaded_init(l, &(Machine){ops, d, NULL}, t, trusted);
    if (loaded_open(l, plan, &code, &f)) fail_msg("%s %s", f.message, f.error.text);
}

/* All calls of a paired timing, in order. */
static void test_compared(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        Outcome outcome;
    } tries[] = {{"relu", OUTCOME_OK},
                 {"idle", OUTCOME_WRONG_RESULT},
                 {"stash", OUTCOME_OUT_OF_BOUNDS},
                 {"relu", OUTCOME_OK}};
    TaskSet tasks;
    Baseline baseline = {0};
    Plan plans[2];
    char sources[2][100];
    start();
    ok(taskset_load(NULL, "relu", &tasks, &err));
    Task *t = tasks.tasks[0];
    Workload *w = &t->workloads[0];
    w->axis[0] = 10000;
    Cases *cases = cases_new(1 << 28, ops, d);
    Evaluator evaluator = {
        .machine = {ops, d, NULL}, .cases = cases, .seed = 3, .clock = {CLOCK_COLD, 1, 3, 0}};
    side(&baseline.own.loaded, &plans[0], sources[0], t, "relu", 1);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        Judgement j;
        judgement_begin(&j, &evaluator, t, "", 0);
        j.fault.outcome = OUTCOME_OK;
        j.timed = w;
        j.baseline = &baseline;
        side(&j.loaded, &plans[1], sources[1], t, tries[i].kernel, 0);
        int rc = paired_measure(&j, &evaluator.clock);
        if (!rc) rc = paired_unseen(&j);
        if (rc < 0) fail_msg("%s", j.fault.error.text);
        Outcome found = rc ? j.fault.outcome : OUTCOME_OK;
        if (found != tries[i].outcome) fail_msg("%s: %s", tries[i].kernel, j.fault.message);
        assert_true(rc || (j.verdict.timing->n >= 4 && j.verdict.n_checks > 2));
        judgement_release(&j);
        plan_release(&plans[1]);
    }
    loaded_close(&baseline.own.loaded);
    plan_release(&plans[0]);
    cases_free(cases);
    taskset_release(&tasks);
    ops->close(d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_contents), cmocka_unit_test(test_contents_of_a_buffer),
        cmocka_unit_test(test_graphs), cmocka_unit_test(test_compared)};
    (void)argc;
    if (driver_ready(argv)) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
