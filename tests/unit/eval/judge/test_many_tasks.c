/* A baseline that was loaded stays good while tasks are added. Only a device with a clock keeps it: here
 * the simulator, with a clock that always shows the same time. */
#include <malloc.h>
#include <math.h>
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

#include "eval/judge/evaluator.h"

enum { TASKS = 40 };

static DeviceOps timed;
static DeviceInfo timed_info;
static const DeviceOps *sim;

static const DeviceInfo *info(Device *d)
{
    timed_info = *sim->info(d);
    timed_info.predicted = 0;
    snprintf(timed_info.arch, sizeof timed_info.arch, "sm_80");
    return &timed_info;
}

static int clock_100us(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                       DeviceClock *out, Fault *fault)
{
    (void)mode, (void)phase;
    *out = (DeviceClock){.us = 100, .host_us = 110, .flush_us = 5};
    return sim->run(d, launches, n, fault);
}

static void write_task(const char *folder, int number)
{
    char path[256];
    snprintf(path, sizeof path, "%s/t%d", folder, number);
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/task.json");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"name\": \"t%d\", \"description\": \"relu\", \"op_type\": \"relu\", \"tags\": "
            "[\"graph\"], \"level\": 1, \"split\": \"train\", \"axes\": {\"n\": {\"description\": "
            "\"elements\"}}, \"inputs\": {\"x\": {\"dtype\": \"float32\", \"shape\": [\"n\"], "
            "\"draw\": \"normal\"}}, \"outputs\": {\"y\": {\"dtype\": \"float32\", \"shape\": "
            "[\"n\"]}}, \"graph\": [\"y = aten.relu.default(x)\"], \"tolerance\": {\"float32\": "
            "{\"atol\": 0, \"rtol\": 0}}, \"workloads\": [{\"role\": \"check\", \"axes\": {\"n\": "
            "33}}, {\"role\": \"time\", \"axes\": {\"n\": 640}}, {\"role\": \"sim\", \"axes\": "
            "{\"n\": 64}}]}\n",
            number);
    fclose(f);
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

static const DeviceClockOps clock_ops = {.reserve = reserve,
                                         .time = clock_100us,
                                         .telemetry = telemetry,
                                         .lock = lock,
                                         .canary = canary};

static void judge(Evaluator *e, const char *source)
{
    static Verdict v;
    evaluator_run(e, "set/t0", source, strlen(source), &v);
    if (v.outcome != OUTCOME_OK) fail_msg("%s: %s", outcome_name(v.outcome), v.message);
    verdict_release(&v);
}

static void test_many_tasks(void **state)
{
    (void)state;
    static const char one[] = "//@ launch r<<<ceil_div(n, 32), 32>>>(x, y, n)\n"
                              "extern \"C\" __global__ void r(const float *x, float *y, int n)\n"
                              "{\n    int i = blockIdx.x * 32 + threadIdx.x;\n"
                              "    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;\n}\n";
    char root[] = "/tmp/quern-many-XXXXXX", name[64], command[128];
    const char *arg;
    Error err;
    Evaluator *e;
    sim = device_find("sim:a100", &arg, &err);
    assert_non_null(sim);
    timed = *sim;
    timed.prefix = "timed", timed.form = "timed:PROFILE", timed.example = "timed:a100";
    timed.info = info, timed.clock = &clock_ops, timed.prediction = NULL;
    device_register(&timed);
    assert_non_null(mkdtemp(root));
    snprintf(name, sizeof name, "%s/set", root);
    assert_int_equal(mkdir(name, 0700), 0);
    for (int i = 0; i < TASKS; i++) write_task(name, i);
    write_task(root, TASKS);
    const EvaluatorOptions opt = {
        .device = "timed:a100", .tasks_root = root, .seed = 1, .budget_s = 0.1};
    mallopt(M_PERTURB, 0x5a); /* freed memory keeps nothing */
    if (evaluator_open(&opt, &e, &err)) fail_msg("%s", err.text);
    judge(e, one);
    for (int i = 1; i < TASKS; i++) {
        snprintf(name, sizeof name, "set/t%d", i);
        if (!evaluator_task(e, name, &err)) fail_msg("%s", err.text);
    }
    judge(e, one);
    evaluator_close(e);
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_tasks)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
