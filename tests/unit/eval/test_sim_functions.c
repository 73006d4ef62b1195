/* Functions, parameters, local and shared memory, and calls through pointers, from CUDA C++ against
 * the host. */
#include "sim_support.h"

enum { N = 256 };

static Sim sim;

enum { EXPRESSIONS = 17 };

/* P(e): the next expression of thread i. */
static const char *source =
    "#include <cuda_bf16.h>\n"
    "struct Big { int v[6]; double d; }; __device__ __noinline__ Big make(int a, double d) { "
    "Big b; for (int i = 0; i < 6; i++) b.v[i] = a + i; b.d = d * 2; return b; }\n"
    "__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
    "__device__ __noinline__ long long mix(signed char a, unsigned short b, float c, long "
    "long d) { return a + b + (long long)c + d; }\n"
    "template <int K> __device__ int poly(const int *v, int i) { int s = 0; for (int k = 0; "
    "k < K; k++) s = s * 3 + v[(i + k) & 15]; return s; }\n"
    "extern \"C\" __global__ void k(const int *x, int *y, int n, Big in, signed char tail) { "
    "extern __shared__ int dyn[]; __shared__ int fixed[64]; int i = threadIdx.x, k = 0;\n"
    "#define P(e) y[n * k++ + i] = (int)(e);\n"
    "dyn[i] = x[i]; fixed[i % 64] = n; __syncthreads(); int loc[16]; for (int j = 0; j < 16; "
    "j++) loc[(j * 5) & 15] = dyn[(i + j) % n];\n"
    "P(loc[i & 15]) P(poly<7>(loc, i)) P(fib(i & 7)) Big b = make(i, 1.5); P(b.v[i % 6]) "
    "P(b.d) P(mix((signed char)i, (unsigned short)(i * 1000), 2.5f, 1ll << 20))\n"
    "P(in.v[i % 6]) P(in.d) P(tail) int4 q = ((const int4 *)x)[i / 4]; P(q.x + q.y * 2 + q.z "
    "* 3 + q.w * 4) short2 s2 = ((const short2 *)x)[i]; P(s2.x - s2.y)\n"
    "uchar4 c4 = ((const uchar4 *)x)[i]; P(c4.x + c4.y + c4.z + c4.w) int t = fixed[63 - (i "
    "& 63)] - n; switch (i % 9) { case 0: t = 3; break; case 1: t = fib(3); break; case 2: t "
    "= x[0]; break; case 3: t = 9; break;\n"
    "case 4: t = i * i; break; case 5: t = 1; break; case 6: t = -1; break; case 7: t = 77; "
    "} P(t) int *gp = i & 1 ? &dyn[i] : (int *)&x[i]; P(*gp)\n"
    "int steps = 0; for (int v = i + 1; v != 1 && steps < 200; steps++) v = v & 1 ? 3 * v + "
    "1 : v / 2; P(steps) P(blockDim.x + gridDim.x * 1000)\n"
    "unsigned lo = i * 0x9e3779b9u, carry; asm volatile(\"{ .reg .pred p; add.cc.u32 %0, %1, "
    "%1; addc.u32 %0, 0, 0; }\" : \"=r\"(carry) : \"r\"(lo)); P(carry) }\n";

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
    sim_start_cuda(&sim, source);
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
    if (ops->run(sim.d, &l, 1, &sim.fault, &sim.err)) fail_msg("%s", sim.fault.message);
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
    sim_start_cuda(
        &sim,
        "typedef int (*Fn)(int, int); __device__ int add(int a, int b) { return a + b; } "
        "__device__ int sub(int a, int b) { return a - 2 * b; }\n"
        "__device__ int down(int, int); __device__ int twice(int a, int b) { return a > 0 ? 2 * "
        "down(a - 1, b) : b; }\n"
        "__device__ Fn table[4] = {add, sub, down, twice}; __device__ int down(int a, int b) { "
        "return a > 0 ? 1 + table[a & 3](a - 1, b) : 3; }\n"
        "struct Op { int k; __device__ virtual void into(int *at) const = 0; __device__ virtual "
        "int zero() const { return 0; } };\n"
        "struct Put : Op { __device__ void into(int *at) const override { *at = k; } }; struct "
        "More : Put { __device__ void into(int *at) const override { *at += k; } __device__ int "
        "zero() const override { return 9; } };\n"
        "extern \"C\" __global__ void k(int *y, Fn *bad) { int i = threadIdx.x; Put p; More m; "
        "p.k = i; m.k = 100; const Op *op = i % 3 ? (const Op *)&p : (const Op *)&m; y[i] = 7;\n"
        "op->into(&y[i]); int v = 0; for (int r = 0; r < i % 5; r++) v += table[(i + r) & 3](i % "
        "7, r + 1);\n"
        "y[64 + i] = v; y[128 + i] = __reduce_add_sync(0xffffffffu, table[i & 3](2, 1)); y[192 + "
        "i] = op->zero() + __popc(__activemask());\n"
        "if (bad) { Fn f = *bad; y[i] = f(1, 2); } }\n");
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
