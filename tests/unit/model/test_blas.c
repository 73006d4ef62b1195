/* The choice of OpenBLAS's kernels, and a product against exact integers. */
#include "model/cpu/blas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void better_core(void **state)
{
    (void)state;
    assert_string_equal(blas_better_core("Prescott", 2), "SkylakeX");
    assert_string_equal(blas_better_core("Nehalem", 1), "Haswell");
    assert_null(blas_better_core("Prescott", 0));
    assert_null(blas_better_core("Haswell", 2)); /* OpenBLAS knows the processor, or was told */
    assert_null(blas_better_core("Zen", 2));
}

static void opened(void **state)
{
    (void)state;
    Error err;
    assert_int_equal(blas_open(&err), 0);
    assert_int_equal(blas_open(&err), 0);
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        assert_null(blas_better_core(blas_core(), 1));
#endif
}

static void product(void **state)
{
    (void)state;
    enum { M = 5, N = 7, K = 33 };
    float a[M * K], b[N * K], c[M * N];
    for (int i = 0; i < M * K; i++) a[i] = (float)(i % 11) - 5;
    for (int i = 0; i < N * K; i++) b[i] = (float)(i % 7) - 3;
    for (int i = 0; i < M * N; i++) c[i] = 1;
    blas_sgemm(2, matrix(a, M, K), transposed(matrix(b, N, K)), 3, c, N);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++) sum += a[m * K + k] * b[n * K + k];
            assert_true(c[m * N + n] == 2 * sum + 3); /* small integers: exact */
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(better_core), cmocka_unit_test(opened),
                                       cmocka_unit_test(product)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
