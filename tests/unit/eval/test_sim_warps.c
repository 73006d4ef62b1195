/* Operations between lanes, block votes and atomics, from CUDA C++ against the host. */
#include "sim_support.h"

enum { N = 256 };

static Sim sim;

static void test_warps(void **state)
{
    (void)state;
    sim_start_cuda(
        &sim,
        "extern \"C\" __global__ void k(int *y, int n) { int i = threadIdx.x, l = i & 31, k = 0; "
        "int v = i * 3 + 1;\n"
        "#define P(e) y[n * k++ + i] = (int)(e);\n"
        "P(__shfl_sync(~0u, v, 5)) P(__shfl_up_sync(~0u, v, 3)) P(__shfl_down_sync(~0u, v, 7)) "
        "P(__shfl_xor_sync(~0u, v, 9)) P(__shfl_sync(~0u, v, l / 2, 8))\n"
        "P(__shfl_down_sync(~0u, v, 3, 8)) P(__ballot_sync(~0u, l % 3 == 0)) P(__any_sync(~0u, l "
        "== 40)) P(__all_sync(~0u, l < 32)) P(__match_any_sync(~0u, l / 10))\n"
        "P(__reduce_add_sync(~0u, v)) P(__reduce_max_sync(~0u, -v)) P(__reduce_xor_sync(~0u, v)) "
        "P(__activemask())\n"
        "int q = 0; if (l < 16) { q = __shfl_xor_sync(0xffffu, v, 1); } else { q = "
        "__shfl_xor_sync(0xffff0000u, v, 2); } P(q)\n"
        "P(__popc(__ballot_sync(~0u, i & 1))) P(__syncthreads_count(i % 5 == 0)) "
        "P(__syncthreads_or(i == 77)) P(__syncthreads_and(i == 77))\n"
        "double dv = __shfl_xor_sync(~0u, (double)v, 4); P(dv) long long lv = "
        "__shfl_down_sync(~0u, (long long)v << 33, 1); P(lv >> 33) }\n");
    enum { K = 21 };
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
                             V(l == 31 ? 31 : l + 1)};
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
    sim_start_cuda(
        &sim,
        "#include <cuda_fp16.h>\n"
        "__device__ int counter = 5; __device__ float table[4] = {1.5f, 2.5f, 3.5f, 4.5f}; "
        "__constant__ int offsets[3] = {7, 11, 13};\n"
        "__device__ int *where = &counter; struct Pair { int a; float b; }; __device__ Pair "
        "pairs[2] = {{1, 2.0f}, {3, 4.0f}};\n"
        "extern \"C\" __global__ void k(int *y, float *f, double *d, unsigned long long *u, "
        "__half2 *h) { __shared__ int s[2]; int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "if (threadIdx.x < 2) s[threadIdx.x] = 0; __syncthreads();\n"
        "atomicAdd(&y[0], i); atomicMax(&y[1], i * 7 % 101); atomicMin(&y[2], -i); "
        "atomicOr(&y[3], 1 << (i & 31)); atomicAnd(&y[4], ~(1 << (i % 7)));\n"
        "atomicXor(&y[5], i); atomicInc((unsigned *)&y[6], 99); atomicCAS(&y[7], 0, i + 1); "
        "atomicExch(&y[8], 42); atomicSub(&y[9], 2); atomicDec((unsigned *)&y[10], 9);\n"
        "atomicAdd(f, 0.5f); atomicAdd(d, 0.25); atomicAdd(u, 1ull << 33); atomicAdd(&s[0], 1); "
        "atomicMax(&s[1], (int)threadIdx.x); atomicAdd(where, offsets[i % 3]);\n"
        "atomicAdd(h, __floats2half2_rn(1.0f, 0.5f)); atomicMax(u + 1, (unsigned long long)i);\n"
        "__syncthreads(); if (threadIdx.x == 0) { atomicAdd(&y[11], s[0]); atomicAdd(&y[12], "
        "s[1]); atomicAdd(&y[13], (int)(table[blockIdx.x & 3] * 2)); atomicAdd(&y[14], "
        "pairs[1].a); }\n"
        "if (i == 0) y[15] = 0; }\n"
        "extern \"C\" __global__ void after(int *y) { y[0] = counter; }\n");
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
