/* A candidate is judged beside libraries that others have used. When it fails there, a process of its own
 * decides. The device is the simulator with a clock, whose process of libraries spoils what runs in it
 * until it is renewed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/memory.h"
#include "eval/judge/evaluator.h"

static DeviceOps timed;
static DeviceInfo timed_info;
static const DeviceOps *sim;
static Evaluator *evaluator;
static Verdict v;
/* The process: others have been there; they have left what makes results wrong, or slow, or what ends it, or
 * that no code can be loaded. */
static int shared, spoils, slows, ends, refuses;
static double there_us = 100;     /* of a run in that process, for other reasons */
static int at;                    /* the only size at which they matter; 0: all */
static DeviceModule *trusted[64]; /* modules of baselines */
static int n_trusted;
static int renewed[2]; /* by DeviceClockOps.renew's `now` */
static int begun;      /* candidates */

static const char task[] =
    "{\"name\": \"%s\", \"description\": \"relu\", \"op_type\": \"relu\", \"tags\": [\"graph\"], "
    "\"level\": 1, \"split\": \"train\", \"axes\": {\"n\": {\"description\": \"elements\"}}, "
    "\"inputs\": "
    "{\"x\": {\"dtype\": \"float32\", \"shape\": [\"n\"], \"draw\": \"normal\"}}, \"outputs\": "
    "{\"y\": "
    "{\"dtype\": \"float32\", \"shape\": [\"n\"]}}, \"graph\": [\"y = aten.relu.default(x)\"], "
    "\"tolerance\": {\"float32\": {\"atol\": 0, \"rtol\": 0}}, \"workloads\": [{\"role\": "
    "\"check\", "
    "\"axes\": {\"n\": 33}}, %s{\"role\": \"time\", \"axes\": {\"n\": 640}}, {\"role\": \"sim\", "
    "\"axes\": "
    "{\"n\": 64}}]}\n";

#define COPY(LINES, VALUE)                                                                      \
    LINES "//@ launch copy<<<ceil_div(n, 32), 32>>>(h, y, n)\n"                                 \
          "extern \"C\" __global__ void copy(const float *h, float *y, int n)\n"                \
          "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = " VALUE \
          ";\n}\n"

static const char right[] = COPY("//@ op h = aten.relu.default(x)\n", "h[i]");
static const char wrong[] = COPY("//@ op h = aten.relu.default(x)\n", "h[i] + 1");
static const char branches[] = COPY("//@ op h = aten.relu.default(x)\n//@ when n >= 1000\n"
                                    "//@ launch copy<<<ceil_div(n, 64), 64>>>(h, y, n)\n"
                                    "//@ otherwise\n",
                                    "h[i]");
static const char refused[] = COPY("//@ op h = aten.relu.default(x)\n", "nothing[i]");
static const char alone[] = "//@ launch relu<<<ceil_div(n, 32), 32>>>(x, y, n)\n"
                            "extern \"C\" __global__ void relu(const float *x, float *y, int n)\n"
                            "{\n    int i = blockIdx.x * 32 + threadIdx.x;\n"
                            "    if (i < n) y[i] = x[i] + 1;\n}\n";

static const DeviceInfo *info(Device *d)
{
    timed_info = *sim->info(d);
    timed_info.predicted = 0;
    snprintf(timed_info.arch, sizeof timed_info.arch, "sm_80");
    return &timed_info;
}

/* The output of a candidate's kernel "copy", the second pointer, is spoilt. */
static int run(Device *d, const DeviceLaunch *launches, int n, Fault *fault)
{
    float nothing = -7;
    DevicePtr y;
    int size, rc = sim->run(d, launches, n, fault);
    if (rc || !shared || !strstr(launches[n - 1].kernel, "copy")) return rc;
    memcpy(&y, launches[n - 1].params + 8, sizeof y);
    memcpy(&size, launches[n - 1].params + 16, sizeof size);
    if (at && size != at) return 0;
    if (ends) return error_set(&fault->error, ERROR_DEVICE, "the runner with libraries ended");
    return spoils ? sim->write(d, y, &nothing, sizeof nothing, &fault->error) : 0;
}

static int load(Device *d, const DeviceCode *code, int home, DeviceModule **out, Fault *fault)
{
    if (shared && refuses && home == HOME_LIBRARY)
        return error_set(&fault->error, ERROR_DEVICE, "a module cannot be loaded");
    int rc = sim->load(d, code, home, out, fault);
    if (!rc && home == HOME_TRUSTED) trusted[n_trusted++ % 64] = *out;
    return rc;
}

static void unload(Device *d, DeviceModule *m)
{
    for (int i = 0; i < 64; i++)
        if (trusted[i] == m) trusted[i] = NULL;
    sim->unload(d, m);
}

static int is_baseline(const DeviceModule *m)
{
    for (int i = 0; i < 64; i++)
        if (trusted[i] == m) return 1;
    return 0;
}

/* What is slow there takes twice as long. */
static int clock_100us(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                       DeviceClock *out, Fault *fault)
{
    double us = is_baseline(launches[0].module) ? 100 : shared && slows ? 200 : there_us;
    (void)mode, (void)phase;
    *out = (DeviceClock){.us = us, .host_us = us + 10, .flush_us = 5};
    return run(d, launches, n, fault);
}

static int reserve(Device *d, const size_t *bytes, int n, Error *err)
{
    (void)d, (void)bytes, (void)n, (void)err;
    return 0;
}

static int telemetry(Device *d, DeviceTelemetry *out, Error *err)
{
    (void)d, (void)out, (void)err;
    return 0;
}

static int lock(Device *d, double *idle_s, Error *err)
{
    (void)d, (void)err;
    if (idle_s) *idle_s = INFINITY;
    return 0;
}

static int canary(Device *d, Error *err)
{
    (void)d, (void)err;
    return 0;
}

static void next(Device *d)
{
    (void)d;
    begun++;
}

static int is_shared(Device *d)
{
    (void)d;
    return shared;
}

static int renew(Device *d, int now, Error *err)
{
    (void)d, (void)err;
    renewed[now]++;
    if (now) shared = 0;
    return 0;
}

static const DeviceClockOps clock_ops = {.reserve = reserve,
                                         .time = clock_100us,
                                         .telemetry = telemetry,
                                         .lock = lock,
                                         .canary = canary,
                                         .next = next,
                                         .shared = is_shared,
                                         .renew = renew};

/* others: what they have left: 0: no other was there. Expects so many renewals, at once and for the next. */
static void judge_of(const char *name, const char *source, int others, Outcome outcome, int now,
                     int later)
{
    shared = others;
    renewed[0] = renewed[1] = begun = 0;
    evaluator_run(evaluator, name, source, strlen(source), &v);
    if (v.outcome != outcome) fail_msg("%s: %s", outcome_name(v.outcome), v.message);
    assert_int_equal(renewed[1], now);
    assert_int_equal(renewed[0], later);
    assert_int_equal(begun, 1);
    verdict_release(&v);
}

static void judge(const char *source, int others, Outcome outcome, int now, int later)
{
    judge_of("set/t", source, others, outcome, now, later);
}

/* None is blamed for what another has left; one that is wrong is wrong in its own process, too. */
static void test_blame(void **state)
{
    (void)state;
    spoils = slows = ends = 0;
    judge(right, 0, OUTCOME_OK, 0, 0);
    int checks = v.n_checks;
    judge(right, 1, OUTCOME_OK, 0, 0);
    spoils = 1;
    judge(right, 1, OUTCOME_OK, 1, 0);
    assert_int_equal(v.n_checks, checks);
    spoils = 0, ends = 1;
    judge(right, 1, OUTCOME_OK, 1, 0);
    ends = 0, slows = 1;
    judge(right, 1, OUTCOME_OK, 1, 0);
    assert_true(v.speedup > 0.99);
    slows = 0, refuses = 1;
    judge(right, 1, OUTCOME_OK, 1, 0);
    assert_int_equal(v.n_checks, checks);
    refuses = 0;
    judge(wrong, 0, OUTCOME_WRONG_RESULT, 0, 1);
    judge(wrong, 1, OUTCOME_WRONG_RESULT, 1, 1);
}

/* Op lines are no faster than the baseline because that process is: both of them are, there. */
static void test_place(void **state)
{
    (void)state;
    there_us = 99;
    for (int others = 0; others < 2; others++) {
        judge(right, others, OUTCOME_OK, 0, 0);
        assert_true(v.speedup > 0.9999 && v.speedup < 1.0001 && v.score < 1);
    }
    there_us = 90; /* by more than a small win */
    judge(right, 1, OUTCOME_OK, 0, 0);
    assert_true(v.speedup > 0.9999 && v.speedup < 1.0001);
    judge(right, 0, OUTCOME_OK, 0, 0);
    assert_true(v.speedup > 0.9999 && v.speedup < 1.0001);
    there_us = 101;
    judge(right, 1, OUTCOME_OK, 0, 0);
    assert_true(v.speedup < 0.991);
    there_us = 100;
}

/* A source that was refused has run nowhere. One without op lines never was beside a library. */
static void test_elsewhere(void **state)
{
    (void)state;
    judge(refused, 1, OUTCOME_COMPILE_ERROR, 0, 0);
    judge(alone, 1, OUTCOME_WRONG_RESULT, 0, 0);
}

/* A failure at the second of two timed sizes: all is checked as for the first one again. */
static void test_two_sizes(void **state)
{
    (void)state;
    judge_of("set/u", branches, 0, OUTCOME_OK, 0, 0);
    int checks = v.n_checks;
    ends = 1, at = 640;
    judge_of("set/u", branches, 1, OUTCOME_OK, 1, 0);
    assert_int_equal(v.n_checks, checks);
    ends = at = 0;
}

/* also: workloads before the timed one. */
static int write_task(const char *root, const char *name, const char *also)
{
    char *file = memory_printf("%s/set/%s/task.json", root, name);
    FILE *f = fopen(file, "w");
    free(file);
    return !f || fprintf(f, task, name, also) < 0 || fclose(f) ? -1 : 0;
}

static int open_all(void **state)
{
    static char root[] = "/tmp/quern-shared-XXXXXX";
    const char *arg;
    Error err;
    (void)state;
    if (!(sim = device_find("sim:a100", &arg, &err)) || !mkdtemp(root)) return -1;
    timed = *sim;
    timed.prefix = "timed", timed.form = "timed:PROFILE", timed.example = "timed:a100";
    timed.info = info, timed.load = load, timed.unload = unload, timed.run = run;
    timed.clock = &clock_ops, timed.prediction = NULL;
    device_register(&timed);
    char *command = memory_printf("mkdir -p %s/set/t %s/set/u", root, root);
    if (system(command)) return -1;
    free(command);
    if (write_task(root, "t", "") ||
        write_task(root, "u", "{\"role\": \"time\", \"axes\": {\"n\": 8192}}, "))
        return -1;
    const EvaluatorOptions opt = {
        .device = "timed:a100", .tasks_root = root, .seed = 1, .budget_s = 0.1};
    *state = root;
    return evaluator_open(&opt, &evaluator, &err);
}

static int close_all(void **state)
{
    char *command = memory_printf("rm -rf %s", (char *)*state);
    int rc = system(command);
    free(command);
    evaluator_close(evaluator);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blame), cmocka_unit_test(test_place),
                                       cmocka_unit_test(test_elsewhere),
                                       cmocka_unit_test(test_two_sizes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_all, close_all);
}
