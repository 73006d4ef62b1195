/* A win at the module's own sizes, whose contents repeat, on a device with a clock, by all steps of a
 * judgement: it must be as fast where no two positions are equal. The device is a stand-in that runs C
 * functions by the kernels' names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "eval/judge/evaluator.h"

#include "tests/unit/eval/device/fake_device.h"
#include "tests/unit/eval/judge/kept_contents.h"

static char root[] = "/tmp/quern-own-XXXXXX";
static DeviceOps stand_in;
static Evaluator *evaluator;

static int open_stand_in(const char *arg, Device **out, Error *err)
{
    (void)arg, (void)err;
    *out = &fake;
    return 0;
}

static void close_stand_in(Device *d)
{
    (void)d;
}

static void write_text(const char *name, const char *text)
{
    char path[256];
    Error err;
    snprintf(path, sizeof path, "%s/%s", root, name);
    if (file_write_atomic(path, text, strlen(text), &err)) fail_msg("%s", err.text);
}

/* The module has 8192 elements, of which 2048 are timed on a simulator. */
static void make_task(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/relu", root);
    assert_int_equal(mkdir(path, 0755), 0);
    write_text("relu/task.json",
               "{\"name\": \"relu\", \"description\": \"d\", \"op_type\": \"o\", \"tags\": "
               "[\"graph\"], \"level\": 1, \"split\": \"train\", \"axes\": {\"n\": "
               "{\"description\": \"n\", \"own\": 8192}}, \"inputs\": {\"x\": {\"dtype\": "
               "\"float32\", \"shape\": [\"n\"], \"draw\": \"mixed\"}}, \"outputs\": {\"y\": "
               "{\"dtype\": \"float32\", \"shape\": [\"n\"]}}, \"graph\": [\"y = "
               "aten.relu.default(x)\"], \"tolerance\": {\"float32\": {\"atol\": 0, \"rtol\": "
               "1e-06}}, \"workloads\": [{\"role\": \"check\", \"axes\": {\"n\": 31}}, {\"role\": "
               "\"check\", \"axes\": {\"n\": 1024}}, {\"role\": \"time\", \"axes\": {\"n\": "
               "2048}}, {\"role\": \"sim\", \"axes\": {\"n\": 1024}}]}");
    write_text("baseline.cu",
               "//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)\n"
               "extern \"C\" __global__ void relu(const float *x, float *y, int n)\n{\n}\n");
    write_text("with_buffer.cu",
               "//@ buffer float kept[n]\n"
               "//@ launch relu<<<ceil_div(n, 256), 256>>>(x, kept, n)\n"
               "//@ launch relu<<<ceil_div(n, 256), 256>>>(kept, y, n)\n"
               "extern \"C\" __global__ void relu(const float *x, float *y, int n)\n{\n}\n");
}

/* The device has so many bytes for buffers. */
static void reopen(size_t buffers, const char *file)
{
    char baseline[256];
    Error err;
    snprintf(baseline, sizeof baseline, "%s/%s", root, file);
    const EvaluatorOptions opt = {
        .device = "fake:0", .tasks_root = root, .seed = 1, .budget_s = 0.2, .baseline = baseline};
    if (evaluator) evaluator_close(evaluator);
    fake.info.buffers_bytes = buffers;
    if (evaluator_open(&opt, &evaluator, &err)) fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    make_task();
    fake.info.dram_bytes_per_s = fake.info.flops_per_s = 1e15;
    fake.info.total_bytes = (size_t)8 << 30;
    fake.info.contents_bytes = (size_t)1 << 30;
    stand_in = fake_ops;
    stand_in.golden = &kept_contents;
    stand_in.form = stand_in.example = "fake:0";
    stand_in.meaning = "a stand-in";
    stand_in.open = open_stand_in;
    stand_in.close = close_stand_in;
    kept_beside = &fake_ops;
    device_register(&stand_in);
    reopen((size_t)1 << 30, "baseline.cu");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    evaluator_close(evaluator);
    assert_int_equal(kept, 0);
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void judge(const char *kernel, Verdict *v)
{
    char source[400];
    snprintf(source, sizeof source,
             "//@ launch %s<<<ceil_div(n, 256), 256>>>(x, y, n)\n"
             "extern \"C\" __global__ void %s(const float *x, float *y, int n)\n{\n"
             "    int i = blockIdx.x * 256 + threadIdx.x;\n"
             "    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;\n}\n",
             kernel, kernel);
    fake.calls = 0;
    evaluator_run(evaluator, "relu", source, strlen(source), v);
}

static int says(const Verdict *v, const char *part)
{
    for (int i = 0; i < v->n_checks; i++)
        if (strstr(v->checks[i], part)) return 1;
    return 0;
}

/* Another evaluator, which finds less memory. */
static void test_no_room(void **state)
{
    (void)state;
    static Verdict v;
    reopen((size_t)1 << 10, "baseline.cu");
    judge("relu", &v);
    if (v.outcome != OUTCOME_OK) fail_msg("%s: %s", outcome_name(v.outcome), v.message);
    assert_true(says(&v, "time n=2048 in place of the module's own sizes: too little"));
    assert_true(says(&v, "time n=2048, input scale 1: outputs of all "));
    verdict_release(&v);
}

/* ---- a device that has no room for the candidate's buffer at the timed sizes ---- */

static size_t refused;

static int alloc_but(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err)
{
    if (bytes == refused && !strcmp(label, "buffer own"))
        return error_set(err, ERROR_LIMIT, "no room for %zu bytes", bytes);
    return fake_ops.alloc(d, bytes, label, out, err);
}

/* The plan has `times` as many bytes of buffers as the baseline. */
static void judge_with_buffer(int times, Verdict *v)
{
    char source[400];
    snprintf(source, sizeof source,
             "//@ buffer float own[%d * n]\n"
             "//@ launch relu<<<ceil_div(n, 256), 256>>>(x, own, n)\n"
             "//@ launch relu<<<ceil_div(n, 256), 256>>>(own, y, n)\n"
             "extern \"C\" __global__ void relu(const float *x, float *y, int n)\n{\n"
             "    int i = blockIdx.x * 256 + threadIdx.x;\n"
             "    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;\n}\n",
             times);
    fake.calls = 0;
    refused = (size_t)times * 2048 * sizeof(float);
    evaluator_run(evaluator, "relu", source, strlen(source), v);
    refused = 0;
}

/* A plan is blamed only where its buffers take more than the baseline's, which the device has held. */
static void test_no_room_for_buffers(void **state)
{
    (void)state;
    static Verdict v;
    stand_in.alloc = alloc_but;
    reopen((size_t)1 << 10, "with_buffer.cu");
    judge_with_buffer(1, &v);
    assert_int_equal(v.outcome, OUTCOME_EVALUATOR_ERROR);
    assert_non_null(strstr(v.message, "no room for 8192 bytes"));
    verdict_release(&v);
    judge_with_buffer(3, &v);
    assert_int_equal(v.outcome, OUTCOME_PLAN_ERROR);
    assert_non_null(strstr(v.message, "leave the device no room for the baseline"));
    verdict_release(&v);
    stand_in.alloc = fake_ops.alloc;
}

static void test_copies(void **state)
{
    (void)state;
    static Verdict v;
    judge("relu", &v);
    if (v.outcome != OUTCOME_OK) fail_msg("%s: %s", outcome_name(v.outcome), v.message);
    assert_true(v.score > 1.2);
    assert_true(says(&v, "time n=8192, input scale 1: outputs of all "));
    assert_false(says(&v, "in place of"));
    verdict_release(&v);
    judge("copies", &v);
    if (strcmp(v.cheat, "input_dispatch") || !strstr(v.message, "where no two are equal"))
        fail_msg("%s: %s", outcome_name(v.outcome), v.message);
    verdict_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_no_room),
                                       cmocka_unit_test(test_no_room_for_buffers)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
