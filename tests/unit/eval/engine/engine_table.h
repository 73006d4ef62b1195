/* A whole CUDA table on the simulator, for tests that run a model: a driver that records graphs and
 * launches them node by node, device memory that is counted, and matrix products, which cuBLASLt
 * computes on a GPU, on the host. Everything else is the engine's. One test program includes it
 * once, in place of engine_support.h. */
#ifndef TESTS_ENGINE_TABLE_H
#define TESTS_ENGINE_TABLE_H

#define cuda_launch engine_cuda_launch /* launches below can be recorded */
#include "tests/unit/eval/engine/engine_support.h"
#undef cuda_launch

void cuda_launch(CudaKernel k, Dim3 grid, Dim3 block, size_t shared, void **args);

/* ---- a driver that records graphs ---- */

typedef struct {
    CudaKernel kernel; /* KERNEL_COUNT: a copy */
    Dim3 grid, block;
    size_t shared, bytes;
    char params[512];
    void *to;
    const void *from;
    int to_device;
} Node;

typedef struct {
    Node *node;
    int n;
} Recording;

static struct {
    Recording *open;
    int launches, graphs;
    size_t memory; /* total memory, from which cuda_memory computes the free memory */
    struct {
        void *p;
        size_t bytes;
    } block[64]; /* of cuda_alloc; p NULL: free */
} fake;

static Node *record(void)
{
    Recording *r = fake.open;
    r->node = memory_grow(r->node, (size_t)r->n + 1, sizeof *r->node);
    memset(&r->node[r->n], 0, sizeof *r->node);
    return &r->node[r->n++];
}

static void kernel_info(CudaKernel k, KernelInfo *info)
{
    static const char *const names[][2] = {
#define X(source, kernel) {#source, #kernel},
        CUDA_KERNELS(X)
#undef X
    };
    if (ops->kernel(engine.sim.d, engine_module(names[k][0]), names[k][1], info, &engine.sim.err))
        fail_msg("%s", engine.sim.err.text);
}

void cuda_launch(CudaKernel k, Dim3 grid, Dim3 block, size_t shared, void **args)
{
    if (!fake.open) {
        engine_cuda_launch(k, grid, block, shared, args);
        return;
    }
    KernelInfo info;
    kernel_info(k, &info);
    Node *n = record();
    n->kernel = k, n->grid = grid, n->block = block, n->shared = shared;
    for (int i = 0; i < info.n_params; i++) {
        assert_true(info.params[i].offset + info.params[i].size <= sizeof n->params);
        memcpy(n->params + info.params[i].offset, args[i], info.params[i].size);
    }
}

static CuResult move(void *to, const void *from, size_t bytes, int to_device)
{
    if (fake.open) {
        Node *n = record();
        n->kernel = KERNEL_COUNT, n->to = to, n->from = from, n->bytes = bytes,
        n->to_device = to_device;
    } else if (to_device)
        cuda_upload(to, from, bytes);
    else
        engine_get(from, to, bytes);
    return 0;
}

static CuResult to_device(CuPtr to, const void *from, size_t bytes, CuStream s)
{
    (void)s;
    return move((void *)(uintptr_t)to, from, bytes, 1);
}

static CuResult to_host(void *to, CuPtr from, size_t bytes, CuStream s)
{
    (void)s;
    return move(to, (const void *)(uintptr_t)from, bytes, 0);
}

static CuResult capture_begin(CuStream s, int mode)
{
    (void)s, (void)mode;
    assert_null(fake.open);
    fake.open = memory_array(1, sizeof *fake.open);
    fake.graphs++;
    return 0;
}

static CuResult capture_end(CuStream s, CuGraph *graph)
{
    (void)s;
    *graph = (CuGraph)(void *)fake.open;
    fake.open = NULL;
    return 0;
}

static CuResult instantiate(CuGraphExec *exec, CuGraph graph, unsigned long long flags)
{
    (void)flags;
    *exec = (CuGraphExec)(void *)graph;
    return 0;
}

static CuResult graph_launch(CuGraphExec exec, CuStream s)
{
    const Recording *r = (const void *)exec;
    (void)s;
    fake.launches++;
    for (int i = 0; i < r->n; i++) {
        Node *n = &r->node[i];
        if (n->kernel == KERNEL_COUNT) {
            move(n->to, n->from, n->bytes, n->to_device);
            continue;
        }
        KernelInfo info;
        void *args[16];
        kernel_info(n->kernel, &info);
        for (int a = 0; a < info.n_params; a++) args[a] = n->params + info.params[a].offset;
        engine_cuda_launch(n->kernel, n->grid, n->block, n->shared, args);
    }
    return 0;
}

static CuResult exec_destroy(CuGraphExec exec)
{
    Recording *r = (void *)exec;
    free(r->node);
    free(r);
    return 0;
}

static CuResult graph_destroy(CuGraph graph)
{
    (void)graph;
    return 0;
}

static CuResult host_alloc(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    *p = memory_alloc(bytes);
    return 0;
}

static CuResult host_free(void *p)
{
    free(p);
    return 0;
}

static const CudaDriver driver = {.copy_to_device_async = to_device,
                                  .copy_to_host_async = to_host,
                                  .capture_begin = capture_begin,
                                  .capture_end = capture_end,
                                  .graph_instantiate = instantiate,
                                  .graph_launch = graph_launch,
                                  .graph_exec_destroy = exec_destroy,
                                  .graph_destroy = graph_destroy,
                                  .host_alloc = host_alloc,
                                  .host_free = host_free};

/* ---- the rest of the table ---- */

void cuda_fail_with(const Error *err)
{
    fail_msg("%s", err->text);
}
int cuda_begin(void)
{
    return 0;
}
int cuda_wait(void)
{
    return 0;
}
void cuda_overlap(int on)
{
    (void)on;
}

/* There is one rank. */
int cuda_second_open(Error *err)
{
    return error_set(err, ERROR_INVALID, "no second stream here");
}
void cuda_second_close(void)
{
}
CuStream cuda_second_stream(void)
{
    return NULL;
}
void cuda_settle(void)
{
}

void *cuda_alloc(size_t bytes)
{
    int i = 0;
    while (fake.block[i].p) assert_true(++i < 64);
    fake.block[i].p = engine_new("alloc", NULL, bytes ? bytes : 1);
    fake.block[i].bytes = bytes;
    cuda_zero(fake.block[i].p, bytes);
    return fake.block[i].p;
}

void cuda_release(void *p)
{
    int i = 0;
    if (!p) return;
    while (fake.block[i].p != p) assert_true(++i < 64);
    fake.block[i].p = NULL;
    engine_free(p);
}

static size_t taken(void)
{
    size_t sum = 0;
    for (int i = 0; i < 64; i++)
        if (fake.block[i].p) sum += fake.block[i].bytes;
    return sum;
}

int cuda_status(Error *err)
{
    (void)err;
    return 0;
}

int cuda_memory(size_t *free_bytes, size_t *total, Error *err)
{
    (void)err;
    *free_bytes = fake.memory - taken();
    *total = fake.memory;
    return 0;
}

void cuda_load(Num *to, const float *host, size_t n)
{
    uint16_t *h = memory_array(n + 1, sizeof *h);
    for (size_t i = 0; i < n; i++) h[i] = bf16_from((double)host[i]);
    cuda_upload(to, h, n * 2);
    free(h);
}

void cuda_store(float *host, const Num *from, size_t n)
{
    engine_floats(from, host, n);
}

static float *floats_at(const void *p, size_t n)
{
    float *f = memory_array(n + 1, sizeof *f);
    engine_floats(p, f, n);
    return f;
}

/* A dot product in the order of the simulator's tensor cores: 16 products a link. */
static float chain(const float *a, const float *b, int n)
{
    float sum = 0;
    for (int k = 0; k < n;) {
        double link = (double)sum;
        for (int end = k + 16 < n ? k + 16 : n; k < end; k++) link += (double)a[k] * (double)b[k];
        sum = (float)link;
    }
    return sum;
}

/* The product as cuBLASLt computes it: for bf16, c and bias are added to the rounded sum. */
void cuda_gemm(const Gemm *g)
{
    assert_true(!g->a.turned && g->b.turned);
    int m = g->a.rows, k = g->a.columns;
    size_t num = g->wide ? 4 : 2, n = (size_t)g->b.columns, lda = (size_t)g->a.ld,
           ldb = (size_t)g->b.ld;
    float *a = floats_at(g->a.at, (size_t)(m - 1) * lda + (size_t)k);
    float *b = floats_at(g->b.at, (n - 1) * ldb + (size_t)k),
          *bias = g->bias ? floats_at(g->bias, n) : NULL;
    for (int i = 0; i < m; i++) {
        size_t at = (size_t)i * (size_t)g->ldd;
        float *row = memory_array(n, sizeof *row), *c = NULL;
        const char *from = (const char *)g->c + at * num;
        if (g->beta != 0) {
            c = memory_array(n, sizeof *c);
            if (g->wide)
                cuda_download(c, from, n * sizeof *c);
            else
                cuda_store(c, from, n);
        }
        for (size_t j = 0; j < n; j++) {
            float sum = g->alpha * chain(a + (size_t)i * lda, b + j * ldb, k);
            float first = (c ? g->beta * c[j] : 0) + (bias ? bias[j] : 0);
            if (!g->wide) first = bf16_round((double)first), sum = bf16_round((double)sum);
            row[j] = sum + first;
        }
        if (g->wide)
            cuda_upload((float *)g->d + at, row, n * 4);
        else
            cuda_load((uint16_t *)g->d + at, row, n);
        free(row), free(c);
    }
    free(a), free(b), free(bias);
}

static const Ops table = {.name = "simulator",
                          .num = 2,
                          .align = 128,
                          .alloc = cuda_alloc,
                          .release = cuda_release,
                          .copy = cuda_copy,
                          .zero = cuda_zero,
                          .upload = cuda_upload,
                          .download = cuda_download,
                          .load = cuda_load,
                          .store = cuda_store,
                          .status = cuda_status,
                          .memory = cuda_memory,
                          .gemm = cuda_gemm,
                          .add = cuda_add,
                          .rmsnorm = cuda_rmsnorm,
                          .head_norm = cuda_head_norm,
                          .rope = cuda_rope,
                          .attention = cuda_attention,
                          .swiglu = cuda_swiglu,
                          .embed = cuda_embed,
                          .cross_entropy = cuda_cross_entropy};

#endif
