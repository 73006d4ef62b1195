/* A kernel that a device with a clock has judged is executed by the simulator too: wins, and all right
 * kernels when that is asked for. The device is a stand-in that runs C functions by the kernels'
 * names, so it finds every kernel "relu" right, whatever the source does. */
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

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "eval/judge/evaluator.h"

#include "tests/unit/eval/device/fake_device.h"

static Evaluator *evaluator;
static Error err;
static char root[] = "/tmp/quern-sanitizer-XXXXXX";

static int open_stand_in(const char *arg, Device **out, Error *e)
{
    (void)arg, (void)e;
    *out = &fake;
    return 0;
}

static void close_stand_in(Device *d)
{
    (void)d;
}

static DeviceOps stand_in;

static void write_text(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/relu/%s", root, name);
    if (file_write_atomic(path, text, strlen(text), &err)) fail_msg("%s", err.text);
}

static void copy_text(const char *name)
{
    char path[256];
    Buffer text;
    buffer_init(&text, 1 << 20);
    snprintf(path, sizeof path, "%s/tasks/relu/%s", getenv("QUERN_SOURCE"), name);
    if (file_read(path, 1 << 20, &text, &err)) fail_msg("%s", err.text);
    write_text(name, text.data);
    buffer_release(&text);
}

/* relu with a timed size that the host compares fast. */
static int set_up(void **state)
{
    (void)state;
    char path[256];
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/relu", root);
    assert_int_equal(mkdir(path, 0755), 0);
    copy_text("reference.c");
    copy_text("baseline.cu");
    write_text("task.json",
               "{\"name\": \"relu\", \"description\": \"y[i] = max(x[i], 0)\", \"op_type\": "
               "\"elementwise\", \"tags\": [], \"level\": 1, \"split\": \"train\", \"axes\": "
               "{\"n\": {\"description\": \"elements\"}}, \"inputs\": {\"x\": {\"dtype\": "
               "\"float32\", \"shape\": [\"n\"], \"draw\": \"mixed\"}}, \"outputs\": {\"y\": "
               "{\"dtype\": \"float32\", \"shape\": [\"n\"]}}, \"tolerance\": {\"float32\": "
               "{\"atol\": 0, \"rtol\": 1e-06}}, \"bytes\": \"8 * n\", \"flops\": \"n\", "
               "\"workloads\": [{\"role\": \"check\", \"axes\": {\"n\": 31}}, {\"role\": "
               "\"check\", \"axes\": {\"n\": 1024}}, {\"role\": \"sim\", \"axes\": {\"n\": 4096}}, "
               "{\"role\": \"time\", \"axes\": {\"n\": 40000}}]}");
    fake.info.dram_bytes_per_s = 1e15;
    fake.info.flops_per_s = 1e15;
    stand_in = fake_ops;
    stand_in.form = stand_in.example = "fake:0";
    stand_in.meaning = "a stand-in";
    stand_in.open = open_stand_in;
    stand_in.close = close_stand_in;
    device_register(&stand_in);
    EvaluatorOptions opt = {.device = "fake:0", .tasks_root = root, .seed = 1, .budget_s = 0.2};
    if (evaluator_open(&opt, &evaluator, &err)) fail_msg("%s", err.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    evaluator_close(evaluator);
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

#define LAUNCH "//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)\n"
#define KERNEL(body)                                                                 \
    LAUNCH "extern \"C\" __global__ void relu(const float *x, float *y, int n)\n{\n" \
           "    int i = blockIdx.x * 256 + threadIdx.x;\n" body "}\n"

/* Judges a source on the stand-in, where it takes candidate_us and the baseline 15. */
static void judge(const char *source, double candidate_us, Verdict *v)
{
    fake.candidate_us = candidate_us;
    evaluator_run(evaluator, "relu", source, strlen(source), v);
}

static int says(const Verdict *v, const char *part)
{
    for (int i = 0; i < v->n_checks; i++)
        if (strstr(v->checks[i], part)) return 1;
    return 0;
}

static const char honest[] = KERNEL("    if (i < n) y[i] = fmaxf(x[i], 0);\n");

static void test_honest_win(void **state)
{
    (void)state;
    static Verdict v;
    judge(honest, 10, &v);
    if (v.outcome != OUTCOME_OK) fail_msg("%s: %s", outcome_name(v.outcome), v.message);
    assert_true(v.score > 1.2);
    assert_true(says(&v, "finds no race"));
    verdict_release(&v);
}

static void test_findings(void **state)
{
    (void)state;
    static const struct {
        const char *source, *part;
        Outcome outcome;
        int line;
    } wrong[] = {
        {KERNEL("    float s;\n    for (int k = 0; k < n % 3 + 1; k++) s += x[k];\n    if (i < n) "
                "y[i] = s;\n"),
         "`s`, which has no value", OUTCOME_UNINITIALISED, 6},
        {KERNEL("    y[i] = fmaxf(x[i], 0);\n"), "input x, which has 124 bytes",
         OUTCOME_OUT_OF_BOUNDS, 5},
        {KERNEL("    __shared__ float s[256];\n    s[threadIdx.x] = i < n ? x[i] : 0;\n"
                "    if (i < n) y[i] = fmaxf(s[threadIdx.x ^ 32], 0);\n"),
         "with no barrier between", OUTCOME_RACE, 6},
        {KERNEL("    if (i < n) y[i] = fmaxf(x[i], 0);\n    if (i < 31) y[0] = i;\n"),
         "another thread of its warp", OUTCOME_RACE, 6},
        /* More local memory than sim:h100 gives its own candidates: the GPU may have more. */
        {KERNEL("    volatile float own[15000];\n    own[i % 15000] = i < n ? x[i] : 0;\n"
                "    if (i < n) y[i] = fmaxf(own[i % 15000], 0);\n    if (i < 31) y[0] = i;\n"),
         "another thread of its warp", OUTCOME_RACE, 8},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        static Verdict v;
        judge(wrong[i].source, 10, &v);
        if (v.outcome != wrong[i].outcome || v.line != wrong[i].line ||
            !strstr(v.message, wrong[i].part) || !strstr(v.message, "sim:"))
            fail_msg("%zu: %s, line %d: %s", i, outcome_name(v.outcome), v.line, v.message);
        assert_true(v.score == 0);
        verdict_release(&v);
    }
}

/* The blocks of no check and of no small size go on to another place. */
static void test_timed_trips(void **state)
{
    (void)state;
    static Verdict v;
    static const char body[] =
        "//@ launch relu<<<min(ceil_div(n, 256), 32), 256>>>(x, y, n)\n"
        "extern \"C\" __global__ void relu(const float *x, float *y, int n)\n{\n"
        "    __shared__ float s[256];\n"
        "    int own = threadIdx.x, other = own ^ 32;\n"
        "    for (int k = blockIdx.x * 256; k < n; k += gridDim.x * 256) {\n"
        "        s[own] = k + own < n ? x[k + own] : 0;\n"
        "        __syncthreads();\n"
        "        if (k + other < n) y[k + other] = fmaxf(s[other], 0);\n"
        "        %s\n    }\n}\n";
    char source[2048];
    snprintf(source, sizeof source, body, "");
    judge(source, 10, &v);
    if (v.outcome != OUTCOME_RACE || v.line != 9 || !strstr(v.message, "timed blocks") ||
        !strstr(v.message, "n=40000"))
        fail_msg("%s, line %d: %s", outcome_name(v.outcome), v.line, v.message);
    verdict_release(&v);
    snprintf(source, sizeof source, body, "__syncthreads();");
    judge(source, 10, &v);
    if (v.outcome != OUTCOME_OK) fail_msg("%s: %s", outcome_name(v.outcome), v.message);
    assert_true(says(&v, "finds no race"));
    assert_false(says(&v, "could not check"));
    verdict_release(&v);
}

static void test_not_made(void **state)
{
    (void)state;
    static Verdict v;
    judge(
        KERNEL(
            "    float z = i;\n    asm volatile(\"min.xorsign.abs.f32 %0, %0, %0;\" : \"+f\"(z));\n"
            "    if (i < n) y[i] = fmaxf(x[i], 0);\n"),
        10, &v);
    if (v.outcome != OUTCOME_OK) fail_msg("%s: %s", outcome_name(v.outcome), v.message);
    assert_true(says(&v, "could not check it: unsupported"));
    verdict_release(&v);
}

/* What is no win is checked only when all are. */
static void test_all(void **state)
{
    (void)state;
    static const char undefined[] = KERNEL("    float s;\n    for (int k = 0; k < n % 3 + 1; k++) "
                                           "s += x[k];\n    if (i < n) y[i] = s;\n");
    static Verdict v;
    char key[DIGEST_HEX];
    judge(undefined, 30, &v);
    assert_int_equal(v.outcome, OUTCOME_OK);
    assert_false(says(&v, "sim:"));
    memcpy(key, v.key, sizeof key);
    verdict_release(&v);
    evaluator_sanitize_all(evaluator, 1);
    judge(undefined, 30, &v);
    assert_int_equal(v.outcome, OUTCOME_UNINITIALISED);
    assert_string_not_equal(key, v.key);
    verdict_release(&v);
    judge(honest, 30, &v);
    assert_int_equal(v.outcome, OUTCOME_OK);
    assert_true(says(&v, "finds no race"));
    verdict_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_honest_win),
                                       cmocka_unit_test(test_findings),
                                       cmocka_unit_test(test_timed_trips),
                                       cmocka_unit_test(test_not_made), cmocka_unit_test(test_all)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
