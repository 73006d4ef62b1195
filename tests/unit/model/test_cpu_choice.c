/* The narrow and the wide variant of the CPU's operations agree, and the processor decides which of
 * them a program gets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/cpu/ops_cpu.h"

const Ops *ops_cpu_narrow(void);
/* Weak: a build for one processor has no wide variant. */
const Ops *ops_cpu_wide(void) __attribute__((weak));

static void chosen(void **state)
{
    (void)state;
    int narrow = !cpu_has_wide() || cpu_setting().narrow != 0;
    assert_ptr_equal(ops_cpu(), narrow ? ops_cpu_narrow() : ops_cpu_wide());
}

static void agree(void **state)
{
    enum { ROWS = 3, N = 77, K = 45 };
    float x[ROWS * K], w[N * K], y[2][ROWS * N], act[2][ROWS * (K / 2)];
    (void)state;
    for (int i = 0; i < ROWS * K; i++) x[i] = sinf((float)i);
    for (int i = 0; i < N * K; i++) w[i] = cosf(3.0f * (float)i);
    for (int v = 0; v < 2; v++) {
        const Ops *ops = v ? ops_cpu_wide() : ops_cpu_narrow();
        Packed p = {0};
        ops->pack(&p, w, N, K);
        ops->matmul_packed(y[v], x, &p, ROWS, 0);
        ops->release(p.data);
        ops->swiglu(act[v], x, ROWS, K / 2);
    }
    for (int i = 0; i < ROWS * N; i++) assert_true(fabsf(y[0][i] - y[1][i]) < 1e-4f);
    for (int i = 0; i < ROWS * (K / 2); i++) assert_true(fabsf(act[0][i] - act[1][i]) < 1e-5f);
    assert_true(fabsf(y[0][N + 1]) > 1e-3f);
}

static void settings(void **state)
{
    (void)state;
    setenv("QUERN_CPU", "threads=3,narrow=1", 1);
    assert_true(cpu_setting().threads == 3 && cpu_setting().narrow == 1);
    setenv("QUERN_CPU", "threads=0", 1); /* out of range: as if it said nothing */
    assert_true(cpu_setting().threads == 0 && cpu_setting().narrow == 0);
    unsetenv("QUERN_CPU");
    assert_true(cpu_setting().threads == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen), cmocka_unit_test(settings)};
    const struct CMUnitTest both[] = {cmocka_unit_test(chosen), cmocka_unit_test(agree),
                                      cmocka_unit_test(settings)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cpu_has_wide() ? cmocka_run_group_tests(both, NULL, NULL)
                          : cmocka_run_group_tests(tests, NULL, NULL);
}
