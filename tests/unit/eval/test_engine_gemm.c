/* The kernel that puts a bias under a wide product, on the simulator; the products themselves are cuBLASLt's
 * (tests/unit/gpu/test_cublaslt.c). */
#include "engine_support.h"

static void one(int m, int n, int ldd, float beta, int apart)
{
    uint64_t seed = (uint64_t)(m * 1000 + n);
    size_t all = (size_t)(m - 1) * (size_t)ldd + (size_t)n;
    float *c = memory_array(all, sizeof *c), *bias = memory_array((size_t)n, sizeof *bias), *got = memory_array(all, sizeof *got);
    int adds = beta != 0;
    for (size_t i = 0; i < all; i++) c[i] = engine_random(&seed);
    for (int i = 0; i < n; i++) bias[i] = engine_random(&seed);
    void *d = engine_new("d", apart ? NULL : c, all * sizeof *c), *from = apart ? engine_new("c", adds ? c : NULL, all * sizeof *c) : d;
    void *v = engine_bf16("bias", bias, (size_t)n);
    LAUNCH(KERNEL_spread_bias, ((Dim3){(unsigned)m, ((unsigned)n + 255) / 256, 1}), ((Dim3){256, 1, 1}), 0, &d, &from, &v, &beta, &adds, &n,
           &ldd);
    for (int i = 0; i < m; i++) {
        engine_get((float *)d + (size_t)i * (size_t)ldd, got, (size_t)n * sizeof *got);
        for (int j = 0; j < n; j++) {
            double want = (adds ? (double)beta * (double)c[(size_t)i * (size_t)ldd + (size_t)j] : 0) + (double)bias[j];
            assert_true(__builtin_fabs((double)got[j] - want) < 1e-6);
        }
    }
    free(c), free(bias), free(got);
}

static void test_bias(void **state)
{
    (void)state;
    engine_start("sm_90");
    one(1, 1, 1, 0, 0);
    one(3, 257, 257, 1, 0);
    one(5, 300, 311, 0.5f, 0); /* the numbers between rows are no one's: a written one is a fault or shows up */
    one(4, 512, 512, 0, 1);    /* c is not read when beta is 0: it holds nothing */
    one(4, 40, 64, 2, 1);
    engine_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bias)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
