/* Functions, parameters, local and shared memory, and calls through pointers, from CUDA C++ against
 * the host. */
#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_support.h"

enum { N = 256 };

static Sim sim;

enum { EXPRESSIONS = 17 };

/* The parameter `in` of the kernel. */
static const struct {
    int v[6];
    double d;
} big = {{100, 200, 300, 400, 500, 600}, 12.0};

/* The results of the expressions of thread i for the input x. */
static void expected(int i, const int *x, int want[EXPRESSIONS])
{
    static const int fib[] = {0, 1, 1, 2, 3, 5, 8, 13};
    int loc[16], poly = 0, steps = 0;
    for (int j = 0; j < 16; j++) loc[(j * 5) & 15] = x[(i + j) % N];
    for (int k = 0; k < 7; k++) poly = poly * 3 + loc[(i + k) & 15];
    for (int v = i + 1; v != 1 && steps < 200; steps++) v = v & 1 ? 3 * v + 1 : v / 2;
    const int *q = &x[i / 4 * 4];
    int cases[] = {3, 2, x[0], 9, i * i, 1, -1, 77, 0};
    uint32_t u = (uint32_t)x[i], lo = (uint32_t)i * 0x9e3779b9u;
    const int results[EXPRESSIONS] = {
        loc[i & 15],
        poly,
        fib[i & 7],
        i + i % 6,
        3,
        (int8_t)i + (uint16_t)(i * 1000) + 2 + (1 << 20),
        big.v[i % 6],
        12,
        -9,
        q[0] + q[1] * 2 + q[2] * 3 + q[3] * 4,
        (int16_t)u - (int16_t)(u >> 16),
        (int)((u & 255) + (u >> 8 & 255) + (u >> 16 & 255) + (u >> 24)),
        cases[i % 9],
        x[i],
        steps,
        N + 1000,
        (int)((uint64_t)lo * 2 >> 32)};
    memcpy(want, results, sizeof results);
}

static void test_functions_and_memory(void **state)
{
    (void)state;
    static int x[N], y[EXPRESSIONS * N], want[EXPRESSIONS];
    sim_start_cuda(&sim, fixture_text("sim/math_functions.cu"));
    for (int i = 0; i < N; i++) x[i] = i * i - 3 * i + 1000;
    DevicePtr px = sim_buffer(&sim, "input x", x, sizeof x),
              py = sim_buffer(&sim, "output y", NULL, sizeof y);
    DeviceLaunch l = {.module = sim.m,
                      .kernel = "k",
                      .grid = {1, 1, 1},
                      .block = {N, 1, 1},
                      .shared_bytes = N * 4};
    KernelInfo info;
    assert_int_equal(ops->kernel(sim.d, sim.m, "k", &info, &sim.err), 0);
    assert_int_equal(info.n_params, 5);
    assert_int_equal(info.params[3].size, 32);
    assert_int_equal(info.static_shared, 256);
    int n = N;
    memcpy(l.params + info.params[0].offset, &px, 8);
    memcpy(l.params + info.params[1].offset, &py, 8);
    memcpy(l.params + info.params[2].offset, &n, 4);
    memcpy(l.params + info.params[3].offset, &big, 32);
    l.params[info.params[4].offset] = (unsigned char)-9;
    if (ops->run(sim.d, &l, 1, &sim.fault)) fail_msg("%s", sim.fault.message);
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < N; i++) {
        expected(i, x, want);
        for (int k = 0; k < EXPRESSIONS; k++)
            if (y[k * N + i] != want[k])
                fail_msg("expression %d of thread %d: %d, %d expected", k, i, y[k * N + i],
                         want[k]);
    }
    sim_stop(&sim);
}

/* ---- calls through pointers ---- */

/* The functions of `table` in the source below. */
static int pointed(int f, int a, int b)
{
    switch (f) {
    case 0: return a + b;
    case 1: return a - 2 * b;
    case 2: return a > 0 ? 1 + pointed(a & 3, a - 1, b) : 3;
    default: return a > 0 ? 2 * pointed(2, a - 1, b) : b;
    }
}

static void test_pointers(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/function_pointers.cu"));
    static int y[256];
    uint64_t wild = 0x050000000008u;
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof y),
              pointer = sim_buffer(&sim, "pointer", &wild, 8);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {64}}), 2, A(py), A(0));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < 64; i++) {
        int sum = 0, v = 0;
        for (int lane = 0; lane < 32; lane++) sum += pointed(lane & 3, 2, 1);
        for (int r = 0; r < i % 5; r++) v += pointed((i + r) & 3, i % 7, r + 1);
        assert_int_equal(y[i], i % 3 ? i : 107);
        assert_int_equal(y[64 + i], v);
        assert_int_equal(y[128 + i], sum);
        assert_int_equal(y[192 + i], (i % 3 ? 0 : 9) + 32);
    }
    assert_int_equal(sim_try(&sim, (Shape){.kernel = "k", .block = {64}}, 2, A(py), A(pointer)), 1);
    assert_int_equal(sim.fault.outcome, OUTCOME_LAUNCH_ERROR);
    assert_non_null(strstr(sim.fault.message, "leads to no function"));
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_and_memory),
        cmocka_unit_test(test_pointers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
