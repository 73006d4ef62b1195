/* The template teacher: equal seeds give equal kernels, and a mistake changes one. What a kernel's text says
 * of its design. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "stages/data/describe.h"
#include "stages/teacher/template.h"

static TemplateKernel generate(const Task *task, uint64_t seed, double rate)
{
    TemplateKernel k;
    Error err;
    if (template_for_task(task, (TemplateDraw){seed, rate, NULL}, &k, &err))
        fail_msg("%s", err.text);
    return k;
}

static void kernels_of_formulas(void **state)
{
    (void)state;
    TaskSet tasks;
    Error err;
    if (taskset_load(NULL, "silu_bias,bias_norm_rowadd,gelu_softmax,mm_tanh,silu_cumsum,relu",
                     &tasks, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < tasks.n; i++) {
        const Task *task = tasks.tasks[i];
        assert_int_equal(template_knows(task), strcmp(task->name, "relu") != 0);
        for (uint64_t seed = 0; seed < 20 && template_knows(task); seed++) {
            TemplateKernel a = generate(task, seed, 0), b = generate(task, seed, 0),
                           bad = generate(task, seed, 1);
            assert_string_equal(a.source, b.source);
            assert_string_equal(a.design, b.design);
            assert_string_equal(a.design, bad.design);
            assert_true(!a.mistake && bad.mistake);
            assert_string_not_equal(a.source, bad.source);
            template_release(&a);
            template_release(&b);
            template_release(&bad);
        }
    }
    taskset_release(&tasks);
}

static void describe(const char *source, const char *expected)
{
    Buffer b;
    buffer_init(&b, 1024);
    assert_int_equal(describe_source(source, strlen(source), &b), 0);
    assert_string_equal(b.data, expected);
    buffer_release(&b);
}

static void test_describe(void **state)
{
    (void)state;
    describe("//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, n)\n"
             "__global__ void relu(const float *x, float *y, int n) {\n  float4 v = *(const float4 "
             "*)(x + 4);\n}\n",
             "1 launch, 256 threads, float4");
    describe("//@ buffer float p[n]\n//@ launch a<<<dim3(4, n), dim3(32, 8)>>>(x, p)\n//@ launch "
             "b<<<n, 64>>>(p, y)\n"
             "// __shfl in a comment\n/* atomicAdd */ __shared__ float s[4]; __syncthreads(); "
             "__syncthreads();",
             "2 launches, 256 threads, buffers, 2 barriers");
    describe("", "0 launches");
    describe("//@ launch matmul<64, 32, 8, 4><<<dim3(1, 2), (64 / 4) * (32 / 4)>>>(a)\n  "
             "__shared__ float as[K][M];\n  float sum[T][T] = {};",
             "1 launch, 128 threads, template <64, 32, 8, 4>, shared tiles");
    describe("//@ launch k<<<1, min(n, 4)>>>(x)\n  float sum[4][4] = {};",
             "1 launch, 16 values in registers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_of_formulas),
                                       cmocka_unit_test(test_describe)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
