/* The reference of a graph on a device, here the simulator, is the host's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "eval/judge/compile_ahead.h"
#include "eval/judge/contents/cases.h"
#include "eval/judge/device_reference.h"
#include "eval/judge/loaded_ops.h"
#include "eval/sim/sim.h"
#include "tests/unit/eval/compile/compile_support.h"
#include "tests/unit/eval/judge/kept_contents.h"

/* A task with outputs of every kind: y is rounded to the dtype, places are indices. */
static const char task_json[] =
    "{\"name\": \"mixed\", \"description\": \"d\", \"op_type\": \"linear\", \"tags\": [\"graph\"], "
    "\"level\": 2, \"split\": \"train\", \"axes\": {\"rows\": {\"description\": \"r\"}, "
    "\"cols\": {\"description\": \"c\"}}, \"inputs\": {"
    "\"x\": {\"dtype\": \"%s\", \"shape\": [\"rows\", \"cols\"], \"draw\": \"normal\"}, "
    "\"w\": {\"dtype\": \"%s\", \"shape\": [\"cols\", \"cols\"], \"draw\": \"normal\"}, "
    "\"at\": {\"dtype\": \"int64\", \"shape\": [\"rows\"], \"draw\": \"integer\", \"low\": 0, "
    "\"high\": 2}}, \"outputs\": {\"y\": {\"dtype\": \"%s\", \"shape\": [\"rows\", \"cols\"]}, "
    "\"z\": {\"dtype\": \"%s\", \"shape\": [\"rows\"]}}, \"graph\": [%s"
    "\"h = aten.linear.default(v, w)\", \"y = aten.softmax.int(h, -1)\", "
    "\"s = aten.sum.dim_IntList(y, [-1])\", \"z = aten.mul.Tensor(s, at)\"], "
    "\"tolerance\": {\"float32\": {\"atol\": 1e-5, \"rtol\": 1e-5}, "
    "\"float16\": {\"atol\": 1e-2, \"rtol\": 1e-2}}, \"workloads\": ["
    "{\"role\": \"check\", \"axes\": {\"rows\": 17, \"cols\": 33}}, "
    "{\"role\": \"time\", \"axes\": {\"rows\": 65536, \"cols\": 256}}, "
    "{\"role\": \"sim\", \"axes\": {\"rows\": 64, \"cols\": 64}}]}";

static void write_task(const char *dtype, const char *first)
{
    Error err;
    char *text = memory_printf(task_json, dtype, dtype, dtype, dtype, first);
    if (file_mkdirs("tasks/mixed", &err) ||
        file_write_atomic("tasks/mixed/task.json", text, strlen(text), &err))
        fail_msg("%s", err.text);
    free(text);
}

/* The outputs of the first workload by each reference, as doubles: the cases' own, on a device that
 * keeps contents where `keeping` is set. Returns what device_reference does. */
static int compute(TaskSet *set, int keeping, double *host[2], double *device[2], Error *err)
{
    if (taskset_load("tasks", NULL, set, err)) fail_msg("%s", err->text);
    Task *t = set->tasks[0];
    DeviceOps ops = sim_device_ops;
    if (keeping) ops.golden = &kept_contents;
    Machine d = {.ops = &ops, .compiler = compiler};
    if (sim_device_ops.open("h100", &d.device, err)) fail_msg("%s", err->text);
    Cases *cases = cases_new(1 << 20, NULL, NULL);
    const Case *drawn = cases_get(cases, t, &t->workloads[0], VARIANT_DRAWN, 7, 1.0, err);
    if (!drawn) fail_msg("%s", err->text);
    Case c = *drawn;
    for (int i = 0; i < 2; i++) {
        size_t n = c.output_bytes[i] / dtype_size(t->outputs[i].dtype);
        host[i] = memory_array(n, sizeof(double));
        memcpy(host[i], drawn->expected[i], n * sizeof(double));
        c.expected[i] = device[i] = memory_array(n, sizeof(double));
    }
    int rc = device_reference(&d, &c, err);
    if (!rc) {
        Case next = c;
        long compiled = compiled_so_far();
        for (int i = 0; i < 2; i++) {
            next.golden_expected[i] = NULL;
            next.expected[i] = memory_array(c.output_bytes[i], sizeof(double));
        }
        rc = device_reference(&d, &next, err);
        assert_int_equal(compiled_so_far(), compiled); /* its kernels were kept */
        for (int i = 0; i < 2; i++) {
            if (next.golden_expected[i]) forget(NULL, next.golden_expected[i]);
            free(next.expected[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (!keeping) assert_null(c.golden_expected[i]);
        if (!c.golden_expected[i]) continue;
        assert_int_equal(c.golden_expected[i]->bytes / sizeof(double),
                         c.output_bytes[i] / dtype_size(t->outputs[i].dtype));
        memcpy(device[i], c.golden_expected[i]->data, c.golden_expected[i]->bytes);
        forget(NULL, c.golden_expected[i]);
    }
    for (int i = 0; i < t->n_inputs; i++)
        if (c.golden_inputs[i]) forget(NULL, c.golden_inputs[i]);
    assert_int_equal(kept, 0);
    cases_free(cases);
    sim_device_ops.close(d.device);
    return rc;
}

static void lines_as_host(const char *dtype, int keeping, const char *first)
{
    TaskSet set = {0};
    double *host[2], *device[2];
    Error err;
    write_task(dtype, first);
    int rc = compute(&set, keeping, host, device, &err);
    if (rc) fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < (i ? 17 : 17 * 33); k++)
            if (!(fabs(host[i][k] - device[i][k]) <= 1e-13 * (1e-3 + fabs(host[i][k]))))
                fail_msg("output %d, element %d: %.17g, the host has %.17g", i, k, device[i][k],
                         host[i][k]);
        free(host[i]);
        free(device[i]);
    }
    assert_int_equal(device_reference_needed(set.tasks[0], &set.tasks[0]->workloads[0]), 0);
    assert_int_equal(device_reference_needed(set.tasks[0], &set.tasks[0]->workloads[1]), 1);
    taskset_release(&set);
}

static void same_as_host(const char *dtype, int keeping)
{
    lines_as_host(dtype, keeping, "\"v = aten.relu.default(x)\", ");
}

/* What the graph makes a narrower float, or a wider one, is a double on both sides. */
static void named_types_are_doubles(void **state)
{
    (void)state;
    lines_as_host("float16", 0,
                  "\"u = aten.to.dtype(x, torch.float32)\", \"e = aten.exp.default(u)\", "
                  "\"v = aten.to.dtype(e, torch.float16)\", ");
    lines_as_host("float32", 0,
                  "\"u = aten.to.dtype(x, torch.bfloat16)\", \"v = aten.mul.Tensor(x, u)\", ");
}

static void floats_and_halves(void **state)
{
    (void)state;
    same_as_host("float32", 0);
    same_as_host("float16", 0);
}

static void results_stay_on_the_device(void **state)
{
    (void)state;
    same_as_host("float32", 1);
    same_as_host("float16", 1);
}

/* What the device has no room for is the host's, and nothing is left behind. */
static void no_room_on_the_device(void **state)
{
    (void)state;
    TaskSet set = {0};
    double *host[2], *device[2];
    Error err;
    write_task("float32", "\"v = aten.relu.default(x)\", ");
    refuses = 1;
    assert_int_equal(compute(&set, 1, host, device, &err), -1);
    refuses = 0;
    for (int i = 0; i < 2; i++) {
        free(host[i]);
        free(device[i]);
    }
    taskset_release(&set);
}

static void rounding_is_the_hosts(void **state)
{
    (void)state;
    TaskSet set = {0};
    double *host[2], *device[2];
    Error err;
    write_task(
        "float32",
        "\"u = aten.to.dtype(x, torch.float8_e4m3fn)\", \"e = aten.to.dtype(u, torch.float32)\", "
        "\"v = aten.mul.Tensor(x, e)\", ");
    assert_int_equal(compute(&set, 0, host, device, &err), 1);
    if (!strstr(err.text, "rounds u to float8_e4m3fn")) fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++) {
        free(host[i]);
        free(device[i]);
    }
    taskset_release(&set);
}

static int no_memory(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err)
{
    (void)d, (void)out;
    return error_set(err, ERROR_LIMIT, "no %zu bytes for %s", bytes, label);
}

/* The baseline's kernels and those of the reference at the timed sizes are asked for once. */
static void compiled_ahead(void **state)
{
    (void)state;
    TaskSet set = {0};
    Error err;
    Fault f;
    Loaded l;
    Candidate lines;
    DeviceOps ops = sim_device_ops;
    ops.alloc = no_memory;
    Machine d = {.ops = &ops, .compiler = compiler};
    write_task("float32", "\"v = aten.exp.default(x)\", ");
    if (taskset_load("tasks", NULL, &set, &err)) fail_msg("%s", err.text);
    Task *t = set.tasks[0];
    const Workload *w = &t->workloads[1];
    if (sim_device_ops.open("h100", &d.device, &err)) fail_msg("%s", err.text);
    long before = compiled_so_far();
    compile_ahead(compiler, ops.info(d.device)->arch, t);
    long after = compiled_so_far();
    assert_true(after > before);
    Case c = {.task = t, .workload = w, .scale = 1};
    assert_int_equal(device_reference(&d, &c, &err), -1);
    assert_non_null(strstr(err.text, "no "));
    loaded_init(&l, &d, t, 1);
    assert_int_equal(candidate_parse(task_baseline(t), strlen(task_baseline(t)), 1, &lines, &f), 0);
    assert_int_equal(loaded_compile(&l, &lines, &f), 0);
    assert_int_equal(loaded_ops_compile(&l, &w, 1, &f), 0);
    assert_int_equal(compiled_so_far(), after);
    loaded_close(&l);
    candidate_release(&lines);
    sim_device_ops.close(d.device);
    taskset_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_and_halves),       cmocka_unit_test(results_stay_on_the_device),
        cmocka_unit_test(no_room_on_the_device),   cmocka_unit_test(rounding_is_the_hosts),
        cmocka_unit_test(named_types_are_doubles), cmocka_unit_test(compiled_ahead)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("device_reference", tests, open_counted_compiler,
                                       close_compiler);
}
