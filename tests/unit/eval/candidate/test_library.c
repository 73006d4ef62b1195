/* Vendor libraries by name: the table of calls, and arguments that are refused before a library is
 * called. Every task's baseline and best sources are plans that this build reads. On a GPU, the
 * calls compute what eval/cuda/library/library.h says, on odd shapes and from a graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/candidate/candidate.h"
#include "eval/candidate/library_arguments.h"
#include "eval/candidate/resolve.h"
#include "eval/cuda/library/library.h"
#include "gpu/driver.h"
#include "tests/fixture_path.h"

static void call_fails(const char *name, const uint64_t *args, int n, const char *want)
{
    Error err = {0};
    assert_int_equal(library_call(name, args, n, NULL, &err), -1);
    if (!strstr(err.text, want)) fail_msg("expected '%s' in: %s", want, err.text);
}

static void test_calls(void **state)
{
    (void)state;
    assert_null(library_signature("cublas.sgem"));
    assert_null(library_signature(""));
    assert_string_equal(library_signature("cublas.sgemm")->kinds, "pppiii");
    uint64_t args[16] = {1, 1, 1, 1, 2, 3};
    call_fails("cublas.nothing", args, 6, "no library call is named \"cublas.nothing\"");
    call_fails("cublas.sgemm", args, 5, "cublas.sgemm takes 6 arguments, found 5");
    args[1] = 0;
    call_fails("cublas.sgemm", args, 6, "argument 2 is a null pointer");
    args[1] = 1;
    args[5] = 0;
    call_fails("cublas.sgemm", args, 6, "argument 6 is 0; expected 1 to 2147483647");
    args[5] = (uint64_t)1 << 31;
    call_fails("cublas.sgemm", args, 6, "argument 6 is 2147483648");
    args[5] = (uint64_t)-1;
    call_fails("cublas.sgemm", args, 6, "argument 6 is -1");
    uint64_t batched[10] = {1, 1, 1, 1, 1, 1, 1, 2, 0, 0};
    call_fails("cublas.sgemm_batched", batched, 10, "argument 8 is 2; expected 0 to 1");
}

/* Sizes that contradict each other are refused before a library is called. */
static void test_contradictions(void **state)
{
    (void)state;
    uint64_t gemm[18] = {1, 1, 1, 0, 0, 1, 4, 5, 6, 0, 0, 5, 5, 5};
    call_fails("cublas.gemm", gemm, 18, "a row is longer than the distance to the next one");
    gemm[11] = 6, gemm[3] = 4;
    call_fails("cublas.gemm", gemm, 18, "dtype: expected 0 to 3, found 4");
    gemm[3] = 1, gemm[4] = 2;
    call_fails("cublas.gemm", gemm, 18, "a half or a float32 result");
    uint64_t conv[27] = {1, 1, 1, 0, 0, 2, 6, 4, 4, 1, 1, 1, 1, 0,
                         1, 8, 3, 6, 1, 0, 1, 8, 3, 6, 1, 0, 1};
    call_fails("cudnn.convolution", conv, 27, "channels do not fall into 4 groups");
    conv[8] = 2, conv[17] = 7;
    call_fails("cudnn.convolution", conv, 27, "dimension 1: expected 6 outputs, found 7");
    conv[17] = 6, conv[15] = 2;
    call_fails("cudnn.convolution", conv, 27, "the kernel of 3 is larger than the input of 2");
}

/* The general calls name the same products and convolutions as those of fewer arguments. */
static void test_arguments(void **state)
{
    (void)state;
    const double half = 0.5;
    uint64_t dense[10] = {7, 8, 9, 3, 4, 5, 6, 1, 0},
             strided[18] = {7, 8, 9, 0, 0, 3, 4, 5, 6, 1, 0, 4, 5, 5, 24, 30, 20};
    memcpy(&dense[9], &half, sizeof half);
    memcpy(&strided[17], &half, sizeof half);
    LibraryProduct p, q;
    assert_int_equal(library_product("cublas.sgemm_batched", dense, 10, &p, NULL), 1);
    assert_int_equal(library_product("cublas.gemm", strided, 18, &q, NULL), 1);
    assert_memory_equal(&p.batch, &q.batch, sizeof p - offsetof(LibraryProduct, batch));
    assert_true(p.a == q.a && p.b == q.b && p.c == q.c && q.transpose_a && !q.transpose_b);
    uint64_t flat[12] = {7, 8, 9, 2, 3, 5, 9, 8, 7, 3, 2, 1},
             full[27] = {7, 8, 9, 0, 0, 2, 3, 5, 1, 9, 3, 5, 2, 1,
                         1, 8, 3, 4, 2, 1, 1, 7, 3, 4, 2, 1, 1};
    LibraryConvolution c, d;
    assert_int_equal(library_convolution("cudnn.conv3d_forward", flat, 12, &c, NULL), 1);
    assert_int_equal(library_convolution("cudnn.convolution", full, 27, &d, NULL), 1);
    assert_memory_equal(&c, &d, sizeof c);
    assert_int_equal(library_product("cudnn.convolution", full, 27, &p, NULL), 0);
    assert_int_equal(library_convolution("cublas.gemm", strided, 18, &c, NULL), 0);
}

/* The plan's text and names, on every workload. tests/shell/baselines.t compiles the kernels. */
static void check_source(const Task *t, const char *file, const char *source, int *with_library)
{
    static const DeviceInfo gpu = {.max_threads_per_block = 1024,
                                   .max_shared_per_block = 232448,
                                   .memory_bytes = (size_t)120 << 30};
    Candidate c;
    Fault f = {0};
    int n;
    size_t *bytes = NULL;
    if (!source) return;
    if (candidate_parse(source, strlen(source), 1, &c, &f))
        fail_msg("%s/%s: %s", t->name, file, f.message);
    PlanContext context = {.plan = &c.plan, .task = t, .device = &gpu};
    if (plan_check_names(&context, &f)) fail_msg("%s/%s: %s", t->name, file, f.message);
    for (int w = 0; w < t->n_workloads; w++) {
        if (plan_buffers(&context, &t->workloads[w], &bytes, &n, &f))
            fail_msg("%s/%s: %s", t->name, file, f.message);
        free(bytes);
    }
    int calls = 0;
    for (int s = 0; s < c.plan.n_steps; s++) calls += c.plan.steps[s].library != NULL;
    *with_library += calls > 0;
    /* As a candidate, the same text is refused only when it calls a library. */
    Candidate own;
    int refused = candidate_parse(source, strlen(source), 0, &own, &f) != 0;
    assert_int_equal(refused, calls > 0);
    candidate_release(&own);
    candidate_release(&c);
}

static void test_tasks(void **state)
{
    (void)state;
    TaskSet set;
    Error err = {0};
    int baselines = 0, best = 0, plain = 0;
    if (taskset_load(fixture_path("tasks"), NULL, &set, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < set.n; i++) {
        const Task *t = set.tasks[i];
        check_source(t, "baseline.cu", t->baseline_source, &plain);
        check_source(t, "baseline_cuda.cu", t->baseline_cuda_source, &baselines);
        check_source(t, "best.cu", t->best_source, &best);
    }
    assert_int_equal(plain, 0);     /* baseline.cu runs on the simulator too */
    assert_int_equal(baselines, 5); /* three matrix products, attention, the convolution */
    assert_int_equal(best, 1);
    taskset_release(&set);
}

/* ---- on a GPU ---- */

static struct {
    const CudaDriver *cu;
    CuContext context;
    CuStream stream;
} gpu;

static void ok(CuResult r, const char *what)
{
    Error err;
    if (cuda_check(r, what, &err)) fail_msg("%s", err.text);
}

static int open_gpu(void **state)
{
    (void)state;
    CuDevice device;
    if (!(gpu.cu = cuda_driver(NULL))) return 0; /* the tests on a GPU are skipped */
    ok(gpu.cu->device_get(&device, 0), "cuDeviceGet");
    ok(gpu.cu->context_create(&gpu.context, 0, device), "cuCtxCreate");
    ok(gpu.cu->stream_create(&gpu.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    if (!gpu.cu) return 0;
    gpu.cu->stream_destroy(gpu.stream);
    gpu.cu->context_destroy(gpu.context);
    return 0;
}

/* A tensor on the host and on the device. */
typedef struct {
    size_t n;
    float *host;
    CuPtr device;
} Tensor;

static Tensor tensor(size_t n, uint64_t seed)
{
    Tensor t = {n, memory_array(n, sizeof(float)), 0};
    Random random;
    random_init(&random, seed, 0);
    for (size_t i = 0; i < n; i++) t.host[i] = (float)(random_uniform(&random) * 2 - 1);
    ok(gpu.cu->memory_alloc(&t.device, n * sizeof(float)), "cuMemAlloc");
    ok(gpu.cu->copy_to_device(t.device, t.host, n * sizeof(float)), "copy");
    return t;
}

static void tensor_release(Tensor *t)
{
    gpu.cu->memory_free(t->device);
    free(t->host);
}

static void call_twice(const char *name, const uint64_t *args, int n)
{
    Error err;
    CuGraph graph;
    CuGraphExec exec;
    if (library_call(name, args, n, gpu.stream, &err)) fail_msg("%s", err.text);
    ok(gpu.cu->stream_synchronize(gpu.stream), name);
    ok(gpu.cu->capture_begin(gpu.stream, CU_CAPTURE_THREAD_LOCAL), "capture");
    if (library_call(name, args, n, gpu.stream, &err)) fail_msg("captured: %s", err.text);
    ok(gpu.cu->capture_end(gpu.stream, &graph), "capture");
    ok(gpu.cu->graph_instantiate(&exec, graph, 0), "graph");
    ok(gpu.cu->set_bytes(args[2], 0, 4, gpu.stream), "set");
    ok(gpu.cu->graph_launch(exec, gpu.stream), "graph");
    ok(gpu.cu->stream_synchronize(gpu.stream), name);
    gpu.cu->graph_exec_destroy(exec);
    gpu.cu->graph_destroy(graph);
}

static void expect(const Tensor *got, const double *want, double terms, const char *what)
{
    float *now = memory_array(got->n, sizeof(float));
    ok(gpu.cu->copy_to_host(now, got->device, got->n * sizeof(float)), "copy back");
    for (size_t i = 0; i < got->n; i++)
        if (!(fabs(now[i] - want[i]) <= 1e-6 * terms)) /* the error of TF32 is 1e-3 */
            fail_msg("%s: element %zu is %g, expected %g", what, i, (double)now[i], want[i]);
    free(now);
}

static double dot(const Tensor *a, size_t a0, size_t a_step, const Tensor *b, size_t b0,
                  size_t b_step, int k)
{
    double sum = 0;
    for (int l = 0; l < k; l++) sum += (double)a->host[a0 + l * a_step] * b->host[b0 + l * b_step];
    return sum;
}

static void product(uint64_t batch, uint64_t m, uint64_t n, uint64_t k, int ta, int tb, int relu)
{
    const double alpha = batch > 1 ? 0.125 : 1.0;
    char what[100];
    snprintf(what, sizeof what, "%d x (%d x %d x %d), %d%d%d", (int)batch, (int)m, (int)n, (int)k,
             ta, tb, relu);
    Tensor a = tensor(batch * m * k, 1), b = tensor(batch * k * n, 2), c = tensor(batch * m * n, 3),
           bias = tensor(n, 4);
    double *want = memory_array(c.n, sizeof *want);
    for (size_t e = 0; e < c.n; e++) {
        size_t i = e / (m * n), row = e / n % m, col = e % n;
        want[e] = alpha * dot(&a, i * m * k + (ta ? row : row * k), ta ? m : 1, &b,
                              i * k * n + (tb ? col * k : col), tb ? 1 : n, (int)k);
        if (relu) want[e] = fmax(want[e] + bias.host[col], 0);
    }
    uint64_t plain[] = {a.device, b.device, c.device, m, n, k},
             fused[] = {a.device, b.device, bias.device, c.device, m, n, k};
    uint64_t batched[] = {a.device, b.device, c.device,     batch,        m,
                          n,        k,        (uint64_t)ta, (uint64_t)tb, 0};
    memcpy(&batched[9], &alpha, sizeof alpha);
    if (relu) {
        Error err;
        if (library_call("cublaslt.sgemm_bias_relu", fused, 7, gpu.stream, &err))
            fail_msg("%s: %s", what, err.text);
        ok(gpu.cu->stream_synchronize(gpu.stream), what);
    } else if (batch == 1 && !ta && !tb) {
        call_twice("cublas.sgemm", plain, 6);
    } else {
        call_twice("cublas.sgemm_batched", batched, 10);
    }
    expect(&c, want, 1 + (double)k, what);
    free(want);
    tensor_release(&a);
    tensor_release(&b);
    tensor_release(&c);
    tensor_release(&bias);
}

static void test_products(void **state)
{
    (void)state;
    product(1, 1, 1, 2, 0, 0, 0);
    product(1, 7, 5, 33, 0, 0, 0);
    product(1, 34, 49, 31, 0, 0, 0);
    product(1, 256, 128, 512, 0, 0, 0);
    for (int t = 0; t < 4; t++) product(3, 17, 9, 21, t & 1, t >> 1, 0);
    product(1, 1, 41, 2, 0, 0, 1);
    product(1, 33, 17, 65, 0, 0, 1);
    product(1, 128, 256, 64, 0, 0, 1);
}

static void convolution(int batch, int cin, int cout, int d, int kernel, int stride, int padding)
{
    int e = (d + 2 * padding - kernel) / stride + 1;
    size_t in = (size_t)d * d * d, k3 = (size_t)kernel * kernel * kernel, out = (size_t)e * e * e;
    Tensor x = tensor((size_t)batch * cin * in, 5), w = tensor((size_t)cout * cin * k3, 6),
           y = tensor((size_t)batch * cout * out, 7);
    double *want = memory_array(y.n, sizeof *want);
    for (size_t i = 0; i < y.n; i++) {
        size_t b = i / out / cout, co = i / out % cout, p = i % out;
        int at[3] = {(int)(p / e / e) * stride - padding, (int)(p / e % e) * stride - padding,
                     (int)(p % e) * stride - padding};
        for (int c = 0; c < cin; c++)
            for (int t = 0; t < (int)k3; t++) {
                int z = at[0] + t / kernel / kernel, r = at[1] + t / kernel % kernel,
                    q = at[2] + t % kernel;
                if (z < 0 || r < 0 || q < 0 || z >= d || r >= d || q >= d) continue;
                want[i] += (double)w.host[(co * cin + c) * k3 + t] *
                           x.host[((b * cin + c) * d + z) * d * d + (size_t)r * d + q];
            }
    }
    uint64_t args[] = {x.device,      w.device,         y.device,         (uint64_t)batch,
                       (uint64_t)cin, (uint64_t)cout,   (uint64_t)d,      (uint64_t)d,
                       (uint64_t)d,   (uint64_t)kernel, (uint64_t)stride, (uint64_t)padding};
    call_twice("cudnn.conv3d_forward", args, 12);
    expect(&y, want, 1 + (double)cin * (double)k3, "the convolution");
    free(want);
    tensor_release(&x);
    tensor_release(&w);
    tensor_release(&y);
}

static void test_convolution(void **state)
{
    (void)state;
    convolution(1, 1, 1, 3, 3, 1, 0);
    convolution(2, 3, 5, 7, 3, 1, 0);
    convolution(2, 4, 8, 9, 3, 2, 1);
    Error err = {0};
    uint64_t args[] = {4096, 4096, 4096, 1, 1, 1, 2, 2, 2, 3, 1, 0};
    assert_int_equal(library_call("cudnn.conv3d_forward", args, 12, gpu.stream, &err), -1);
    assert_non_null(strstr(err.text, "the kernel of 3 is larger than the input of 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),     cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_products),  cmocka_unit_test(test_convolution)};
    Error none;
    int there = cuda_driver(&none) != NULL;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!there) printf("# the calls are not run: %s\n", none.text);
    return _cmocka_run_group_tests("tests", tests, there ? 6 : 4, open_gpu, close_gpu);
}
