/* Operations between lanes, block votes and atomics, from CUDA C++ against the host. */
#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_support.h"

enum { N = 256 };

static Sim sim;

static void test_warps(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/warp_exchanges.cu"));
    enum { K = 25 };
    static int y[K * N];
    DevicePtr py = sim_buffer(&sim, "output y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {N}}), 2, A(py), A(N));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < N; i++) {
        int l = i & 31, w = i & ~31, sum = 0, xors = 0, match = 0;
        uint32_t ballot = 0;
        for (int j = 0; j < 32; j++) {
            sum += (w + j) * 3 + 1;
            xors ^= (w + j) * 3 + 1;
            ballot |= (uint32_t)(j % 3 == 0) << j;
            match |= (int)((uint32_t)(j / 10 == l / 10) << j);
        }
#define V(lane) ((w + (lane)) * 3 + 1)
        const int want[K] = {V(5),
                             V(l < 3 ? l : l - 3),
                             V(l + 7 > 31 ? l : l + 7),
                             V(l ^ 9),
                             V((l & ~7) | ((l / 2) & 7)),
                             V((l & 7) + 3 > 7 ? l : l + 3),
                             (int)ballot,
                             0,
                             1,
                             match,
                             sum,
                             -V(0),
                             xors,
                             -1,
                             l < 16 ? V(l ^ 1) : V(l ^ 2),
                             16,
                             52,
                             1,
                             0,
                             V(l ^ 4),
                             V(l == 31 ? 31 : l + 1),
                             (int)(0xaau << (l & 24)),
                             l < 16 ? 120 : 376,
                             (int)((l & 1 ? 0xau : 0x5u) << (l & 28)),
                             l < 6};
        for (int k = 0; k < K; k++)
            if (y[k * N + i] != want[k])
                fail_msg("warp expression %d of thread %d: %d, %d expected", k, i, y[k * N + i],
                         want[k]);
    }
    sim_stop(&sim);
}

static void test_atomics(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/atomics.cu"));
    int y[16] = {0};
    float f = 0;
    double d = 0;
    uint64_t u[2] = {0, 0};
    uint32_t h = 0;
    y[4] = -1;
    DevicePtr py = sim_buffer(&sim, "y", y, sizeof y), pf = sim_buffer(&sim, "f", &f, 4),
              pd = sim_buffer(&sim, "d", &d, 8);
    DevicePtr pu = sim_buffer(&sim, "u", u, 16), ph = sim_buffer(&sim, "h", &h, 4);
    sim_run(&sim, ((Shape){.kernel = "k", .grid = {4}, .block = {64}}), 5, A(py), A(pf), A(pd),
            A(pu), A(ph));
    sim_read(&sim, py, y, sizeof y);
    sim_read(&sim, pf, &f, 4);
    sim_read(&sim, pd, &d, 8);
    sim_read(&sim, pu, u, 16);
    sim_read(&sim, ph, &h, 4);
    const int want[] = {32640, 100, -255, -1, ~127, 0, 56, 1, 42, -512, 4, 256, 252, 24, 12};
    for (int k = 0; k < 15; k++) {
        if (k == 7)
            assert_true(y[k] >= 1 && y[k] <= 256); /* any thread may be the first */
        else
            assert_int_equal(y[k], want[k]);
    }
    assert_true(f == 128 && d == 64 && u[0] == 256ull << 33 && u[1] == 255 &&
                h == (0x5800u << 16 | 0x5c00u));
    sim_run(&sim, ((Shape){.kernel = "after"}), 1, A(py));
    sim_read(&sim, py, y, 4);
    assert_int_equal(y[0], 5 + 86 * 7 + 85 * 11 + 85 * 13);
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warps),
        cmocka_unit_test(test_atomics),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
