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
#include "eval/judge/device_reference.h"
#include "eval/sim/sim.h"
#include "tests/unit/eval/compile_support.h"

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

/* Both references of the first workload. Returns what device_reference does. */
static int compute(TaskSet *set, double *host[2], double *device[2], Error *err)
{
    if (taskset_load("tasks", NULL, set, err)) fail_msg("%s", err->text);
    Task *t = set->tasks[0];
    const Workload *w = &t->workloads[0];
    ReferenceDevice d = {.ops = &sim_device_ops, .compiler = compiler};
    void *inputs[TASK_MAX_TENSORS];
    double *wide[TASK_MAX_TENSORS];
    size_t n;
    for (int i = 0; i < t->n_inputs; i++) {
        if (task_elements(t, w, &t->inputs[i], &n, err)) fail_msg("%s", err->text);
        inputs[i] = memory_array(n, dtype_size(t->inputs[i].dtype));
        wide[i] = memory_array(n, sizeof(double));
        if (task_draw(t, w, i, VARIANT_DRAWN, 7, 1.0, inputs[i], err)) fail_msg("%s", err->text);
        dtype_to_double(t->inputs[i].dtype, inputs[i], wide[i], n);
    }
    for (int i = 0; i < 2; i++) {
        if (task_elements(t, w, &t->outputs[i], &n, err)) fail_msg("%s", err->text);
        host[i] = memory_array(n, sizeof(double));
        device[i] = memory_array(n, sizeof(double));
    }
    if (task_reference(t, w, (const double *const *)wide, host, err)) fail_msg("%s", err->text);
    if (sim_device_ops.open("h100", &d.device, err)) fail_msg("%s", err->text);
    int rc = device_reference(&d, t, w, inputs, device, err);
    sim_device_ops.close(d.device);
    for (int i = 0; i < t->n_inputs; i++) {
        free(inputs[i]);
        free(wide[i]);
    }
    return rc;
}

static void same_as_host(const char *dtype)
{
    TaskSet set = {0};
    double *host[2], *device[2];
    Error err;
    write_task(dtype, "\"v = aten.relu.default(x)\", ");
    int rc = compute(&set, host, device, &err);
    if (rc) fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < (i ? 17 : 17 * 33); k++)
            if (!(fabs(host[i][k] - device[i][k]) <= 1e-13 * (1e-3 + fabs(host[i][k]))))
                fail_msg("output %d, element %d: %.17g, the host has %.17g", i, k, device[i][k],
                         host[i][k]);
        free(host[i]);
        free(device[i]);
    }
    assert_int_equal(device_reference_wanted(set.tasks[0], &set.tasks[0]->workloads[0]), 0);
    assert_int_equal(device_reference_wanted(set.tasks[0], &set.tasks[0]->workloads[1]), 1);
    taskset_release(&set);
}

static void floats_and_halves(void **state)
{
    (void)state;
    same_as_host("float32");
    same_as_host("float16");
}

static void rounding_is_the_hosts(void **state)
{
    (void)state;
    TaskSet set = {0};
    double *host[2], *device[2];
    Error err;
    write_task("float32",
               "\"u = aten.to.dtype(x, torch.float16)\", \"v = aten.mul.Tensor(x, u)\", ");
    assert_int_equal(compute(&set, host, device, &err), 1);
    if (!strstr(err.text, "rounds u to float16")) fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++) {
        free(host[i]);
        free(device[i]);
    }
    taskset_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats_and_halves),
                                       cmocka_unit_test(rounding_is_the_hosts)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("device_reference", tests, open_compiler, close_compiler);
}
