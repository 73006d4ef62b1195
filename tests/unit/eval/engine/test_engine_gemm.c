/* The kernels that add a bias before a product, on the simulator. The products themselves are
 * cuBLASLt's (tests/unit/gpu/test_cublaslt.c). */
#include "tests/unit/eval/engine/engine_support.h"

static void *put(const char *label, float *values, size_t n, int wide)
{
    return wide ? engine_new(label, values, n * sizeof *values) : engine_bf16(label, values, n);
}

/* Numbers between rows must not be written: in an undefined d the simulator reports a read of them.
 * c is not read when beta is 0. */
static void one(int wide, int m, int n, int ldd, float beta, int apart)
{
    uint64_t seed = (uint64_t)(m * 1000 + n);
    size_t all = (size_t)(m - 1) * (size_t)ldd + (size_t)n, unit = wide ? 4 : 2;
    float *c = memory_array(all, sizeof *c), *bias = memory_array((size_t)n, sizeof *bias),
          *got = memory_array((size_t)n, sizeof *got);
    int adds = beta != 0, aligned = n % 8 == 0 && ldd % 8 == 0;
    for (size_t i = 0; i < all; i++) c[i] = engine_random(&seed);
    for (int i = 0; i < n; i++) bias[i] = engine_random(&seed);
    void *from = adds ? put("c", c, all, wide) : engine_new("c", NULL, all * unit),
         *d = apart ? engine_new("d", NULL, all * unit) : from;
    void *v = engine_bf16("bias", bias, (size_t)n);
    Dim3 grid = {((unsigned)m + 31) / 32, ((unsigned)n + 255) / 256, 1}, block = {256, 1, 1};
    if (wide)
        LAUNCH(KERNEL_spread_bias_wide, grid, block, 0, &d, &from, &v, &beta, &adds, &m, &n, &ldd);
    else
        LAUNCH(KERNEL_spread_bias, grid, block, 0, &d, &from, &v, &beta, &adds, &m, &n, &ldd,
               &aligned);
    for (int i = 0; i < m; i++) {
        char *row = (char *)d + (size_t)i * (size_t)ldd * unit;
        if (wide)
            engine_get(row, got, (size_t)n * sizeof *got);
        else
            engine_floats(row, got, (size_t)n);
        for (int j = 0; j < n; j++) {
            double want =
                (adds ? (double)beta * (double)c[(size_t)i * (size_t)ldd + (size_t)j] : 0) +
                (double)bias[j];
            if (wide)
                assert_true(__builtin_fabs((double)got[j] - want) < 1e-6);
            else
                assert_true(got[j] == bf16_round((double)(float)want));
        }
    }
    free(c), free(bias), free(got);
}

static void test_bias(void **state)
{
    (void)state;
    engine_start("sm_90");
    for (int wide = 0; wide < 2; wide++) {
        one(wide, 1, 1, 1, 0, 0);
        one(wide, 3, 257, 257, 1, 1);
        one(wide, 5, 300, 312, 0.5f, 0);
        one(wide, 35, 512, 512, 0, 1);
        one(wide, 41, 264, 272, 2, 1);
        one(wide, 4, 40, 64, 1, 0);
    }
    engine_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bias)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
