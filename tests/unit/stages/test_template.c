/* The template teacher: equal seeds give equal kernels, every choice occurs, sizes are bounded, and
 * mistakes are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "stages/data/describe.h"
#include "stages/teacher/template.h"

enum { SEEDS = 2000, SOURCE_LIMIT = 2800 };

static TemplateKernel generate(const char *task, uint64_t seed, double rate)
{
    TemplateKernel k;
    Error err;
    assert_int_equal(template_generate(task, NULL, (TemplateDraw){seed, rate, 0}, &k, &err), 0);
    return k;
}

static void test_repeats(void **state)
{
    (void)state;
    for (int f = 0; template_family_name(f); f++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            TemplateKernel a = generate(template_family_name(f), seed, 0.5),
                           b = generate(template_family_name(f), seed, 0.5);
            assert_string_equal(a.source, b.source);
            assert_string_equal(a.analysis, b.analysis);
            assert_string_equal(a.design, b.design);
            assert_string_equal(a.mistake_name, b.mistake_name);
            template_release(&a);
            template_release(&b);
        }
}

static void test_families(void **state)
{
    (void)state;
    static const char *const tasks[] = {"relu",
                                        "gelu",
                                        "row_sum",
                                        "softmax",
                                        "layernorm",
                                        "transpose",
                                        "matmul",
                                        "diag_matmul",
                                        "matmul_bias_relu",
                                        "residual_rmsnorm",
                                        "conv3d_norm_min_clamp",
                                        "attention"};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        assert_true(template_has_family(tasks[i], NULL));
    assert_true(template_has_family("my_softmax", "softmax"));
    assert_false(template_has_family("gru", "rnn"));
    TemplateKernel k;
    Error err;
    assert_int_equal(template_generate("gru", "rnn", (TemplateDraw){.seed = 1}, &k, &err), -1);
    assert_non_null(strstr(err.text, "gru"));
    assert_null(k.source);
    template_release(&k);
}

static void check_texts(const TemplateKernel *k)
{
    assert_memory_equal(k->source, "//@ ", 4);
    assert_non_null(strstr(k->source, "//@ launch "));
    assert_non_null(strstr(k->source, "__global__ void "));
    assert_null(strchr(k->source, '$'));
    size_t len = strlen(k->source);
    assert_in_range(len, 150, SOURCE_LIMIT);
    assert_int_equal(k->source[len - 1], '\n');
    const char *plan_end = k->source;
    while (!strncmp(plan_end, "//@ ", 4)) plan_end = strchr(plan_end, '\n') + 1;
    assert_null(strstr(plan_end, "//"));
    assert_in_range(strlen(k->analysis), 10, 200);
    assert_in_range(strlen(k->design), 10, 200);
    assert_null(strchr(k->analysis, '$'));
    assert_null(strchr(k->design, '$'));
    assert_int_equal(k->analysis[strlen(k->analysis) - 1], '.');
    assert_in_range(k->n_choices, 1, TEMPLATE_MAX_CHOICES);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void test_variety(void **state)
{
    (void)state;
    for (int f = 0; template_family_name(f); f++) {
        uint64_t *seen = memory_array(SEEDS, sizeof *seen);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            TemplateKernel k = generate(template_family_name(f), seed, 0);
            check_texts(&k);
            assert_int_equal(k.mistake, 0);
            seen[seed] = random_hash(k.source, strlen(k.source));
            template_release(&k);
        }
        qsort(seen, SEEDS, sizeof *seen, compare_u64);
        int distinct = 1;
        for (int i = 1; i < SEEDS; i++) distinct += seen[i] != seen[i - 1];
        if (distinct < 60)
            fail_msg("%s: only %d distinct kernels", template_family_name(f), distinct);
        free(seen);
    }
}

static int known_mistake(const char *name)
{
    for (int i = 0; template_mistake_list(0, i); i++)
        if (!strcmp(template_mistake_list(0, i), name)) return i;
    return -1;
}

static void test_mistakes(void **state)
{
    (void)state;
    int made[64] = {0}, n_kinds = 0;
    for (int f = 0; template_family_name(f); f++)
        for (uint64_t seed = 0; seed < 400; seed++) {
            TemplateKernel good = generate(template_family_name(f), seed, 0),
                           bad = generate(template_family_name(f), seed, 1);
            assert_int_equal(bad.mistake, 1);
            int kind = known_mistake(bad.mistake_name);
            assert_in_range(kind, 0, 63);
            made[kind]++;
            assert_string_not_equal(good.source, bad.source);
            assert_string_equal(good.design, bad.design);
            template_release(&good);
            template_release(&bad);
        }
    for (; template_mistake_list(0, n_kinds); n_kinds++)
        if (!made[n_kinds]) fail_msg("%s was never made", template_mistake_list(0, n_kinds));
    assert_in_range(n_kinds, 8, 63);
}

static void test_rate(void **state)
{
    (void)state;
    int made = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        TemplateKernel k = generate("softmax", seed, 0.3);
        made += k.mistake;
        template_release(&k);
    }
    assert_in_range(made, 250, 350);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats), cmocka_unit_test(test_families),
        cmocka_unit_test(test_variety), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_rate),    cmocka_unit_test(test_describe),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
