/* The whole decoder of a GPU on the simulator: prompts, pages, graphs, drawing, adapters, behind
 * model_sample. The matrix products of the full pass, which NVIDIA's library does on a GPU, are
 * done here by the host; everything else is the engine's own. */
#define cuda_launch engine_cuda_launch /* below launches are recorded too */
#include "engine_support.h"
#undef cuda_launch

#include <math.h>

#include "base/random.h"
#include "model/core/decoder.h"
#include "model/core/lora.h"
#include "model/core/transformer.h"
#include "model/decoder_create.h"
#include "model/memory_plan.h"
#include "model/sampler.h"

void cuda_launch(CudaKernel k, Dim3 grid, Dim3 block, size_t shared, void **args);

#ifdef __SANITIZE_ADDRESS__ /* a simulated decoder takes half a minute then: one of each kind */
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

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
    size_t memory; /* of which cuda_memory says what is free */
    struct {
        void *p;
        size_t bytes;
    } block[64]; /* of cuda_alloc; p NULL: none */
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
int cuda_beside_open(Error *err)
{
    return error_set(err, ERROR_INVALID, "no second stream here");
}
void cuda_beside_close(void)
{
}
CuStream cuda_beside(void)
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

/* As the simulator's tensor cores have it: 16 products a link. */
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

/* As cuBLASLt has it: of bf16, what is added is added to the rounded sum. */
void cuda_gemm(const Gemm *g)
{
    assert_true(!g->ta && g->tb);
    size_t num = g->wide ? 4 : 2;
    float *a = floats_at(g->a, (size_t)(g->m - 1) * (size_t)g->lda + (size_t)g->k);
    float *b = floats_at(g->b, (size_t)(g->n - 1) * (size_t)g->ldb + (size_t)g->k),
          *bias = g->bias ? floats_at(g->bias, (size_t)g->n) : NULL;
    for (int i = 0; i < g->m; i++) {
        size_t at = (size_t)i * (size_t)g->ldd;
        float *row = memory_array((size_t)g->n, sizeof *row), *c = NULL;
        const char *from = (const char *)g->c + at * num;
        if (g->beta != 0) {
            c = memory_array((size_t)g->n, sizeof *c);
            if (g->wide)
                cuda_download(c, from, (size_t)g->n * sizeof *c);
            else
                cuda_store(c, from, (size_t)g->n);
        }
        for (int j = 0; j < g->n; j++) {
            float sum = g->alpha *
                        chain(a + (size_t)i * (size_t)g->lda, b + (size_t)j * (size_t)g->ldb, g->k);
            float first = (c ? g->beta * c[j] : 0) + (bias ? bias[j] : 0);
            if (!g->wide) first = bf16_round((double)first), sum = bf16_round((double)sum);
            row[j] = sum + first;
        }
        if (g->wide)
            cuda_upload((float *)g->d + at, row, (size_t)g->n * 4);
        else
            cuda_load((uint16_t *)g->d + at, row, (size_t)g->n);
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

/* ---- models and requests ---- */

enum { VOCAB = 70, NEW = 21, PROMPTS = 3, COPIES = 3, PROMPT_MAX = 64, END = 5 };
#include "tests/unit/model/sampler_support.h"

static void spread(const ParamSet *s, double by, uint64_t seed)
{
    Random r;
    random_init(&r, seed, 1);
    for (int i = 0; i < s->n; i++) {
        float *v = floats_at(num_at(&table, s->data, s->tensor[i].at), s->tensor[i].count);
        for (size_t j = 0; j < s->tensor[i].count; j++) v[j] += (float)(by * random_normal(&r));
        cuda_load(num_at(&table, s->data, s->tensor[i].at), v, s->tensor[i].count);
        free(v);
    }
}

static ModelConfig shape(const char *type)
{
    ModelConfig c = {.vocab = VOCAB,
                     .hidden = 64,
                     .ff = 72,
                     .layers = 2,
                     .heads = 6,
                     .kv_heads = 2,
                     .head_dim = 16,
                     .max_position = 256,
                     .rope_theta = 10000,
                     .norm_eps = 1e-6f,
                     .eos = {END},
                     .n_eos = 1,
                     .pad = -1};
    snprintf(c.model_type, sizeof c.model_type, "%s", type);
    c.qkv_bias = !strcmp(type, "qwen2");
    c.qk_norm = !strcmp(type, "qwen3");
    c.tied = strcmp(type, "llama") != 0;
    return c;
}

static Model *small(const char *type)
{
    ModelConfig c = shape(type);
    Error err;
    Model *m;
    if (model_create(&c, &table, 11, &m, &err)) fail_msg("%s", err.text);
    spread(&m->base, 0.1, 11);
    return m;
}

static const int prompt_len[PROMPTS] = {3, 32, 45}; /* less than a page, a page, more */

static void sample(Model *m, const Ask *a, int batch, int64_t cache, Result *out)
{
    SampleOptions opt = {
        .temperature = 1, .top_p = 1, .max_new = NEW, .batch = batch, .cache_tokens = cache};
    Error err;
    memset(out, 0, sizeof *out);
    if (model_sample(m, a->req, PROMPTS, &opt, keep, out, &err)) fail_msg("%s", err.text);
    assert_int_equal(out->done, PROMPTS * COPIES);
}

/* The recorded log-probabilities against a full pass over the same ids: the same sums in the same
 * order but for the last one, of the vocabulary. A rounding that is elsewhere makes 0.001 of it, a
 * wrong kernel a tenth and more. */
static void against_forward(Model *m, const Ask *a, const Result *r, double mean)
{
    double sum = 0, worst = 0;
    int n = 0;
    for (int i = 0; i < PROMPTS; i++)
        for (int c = 0; c < COPIES; c++) {
            const Kept *k = &r->sample[i][c];
            int len = a->req[i].prompt_len;
            int32_t all[64 + NEW];
            float logp[64 + NEW], *row = logp;
            Error err;
            memcpy(all, a->prompt[i], (size_t)len * sizeof *all);
            memcpy(all + len, k->ids, (size_t)k->n * sizeof *all);
            Sequence s = {all, len + k->n};
            if (model_logprobs(m, &s, 1, &row, &err)) fail_msg("%s", err.text);
            for (int t = 0; t < k->n; t++, n++) {
                double d = fabs((double)logp[len + t] - (double)k->logp[t]);
                sum += d;
                worst = d > worst ? d : worst;
            }
            assert_int_equal(k->stopped, k->ids[k->n - 1] == END);
        }
    printf("# %s%s: mean |dlogp| %.2g, worst %.2g, over %d tokens\n", m->c.model_type,
           m->lora.size ? " with an adapter" : "", sum / n, worst, n);
    assert_true(n > 60);
    if (!(sum / n < mean && worst < 10 * mean))
        fail_msg("%s: mean |dlogp| %g, worst %g over %d tokens", m->c.model_type, sum / n, worst,
                 n);
}

static int starts(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.memory = (size_t)1 << 30;
    engine_start("sm_90");
    engine.state.cu = &driver;
    return 0;
}

static int stops(void **state)
{
    (void)state;
    engine_stop();
    return 0;
}

static void decoding_equals_forward(void **state)
{
    (void)state;
    static const char *const types[] = {"qwen2", "qwen3", "llama"};
    for (int f = 0; f < (SANITIZED ? 1 : 3); f++) {
        Model *m = small(types[f]);
        Ask a;
        Result r;
        make_ask(&a, prompt_len);
        sample(m, &a, 9, 0, &r);
        against_forward(m, &a, &r, 1e-6);
        model_free(m);
    }
}

/* On all projections; on some parts of one. */
static void adapted(void **state)
{
    (void)state;
    static const unsigned targets[] = {LORA_ALL, LORA_ALL & ~LORA_K};
    for (int i = SANITIZED; i < 2; i++) {
        Model *m = small("qwen2");
        Ask a;
        Result plain, r;
        Error err;
        make_ask(&a, prompt_len);
        sample(m, &a, 9, 0, &plain);
        LoraOptions o = {.rank = 3, .alpha = 5, .targets = targets[i], .seed = 4};
        if (model_add_lora(m, &o, &err)) fail_msg("%s", err.text);
        spread(&m->lora, 0.1, 3);
        sample(m, &a, 9, 0, &r);
        against_forward(m, &a, &r, 1e-6);
        assert_true(memcmp(&plain, &r, sizeof r) != 0);
        model_free(m);
    }
}

/* Bit for bit the same whatever is decoded beside a row, however often rows are refilled, and where
 * pages are so few that rows wait; an error where one row does not fit. */
static void only_prompt_and_seed(void **state)
{
    (void)state;
    Model *m = small("llama");
    Ask a;
    Result one, other;
    make_ask(&a, prompt_len);
    sample(m, &a, 9, 0, &one);
    static const int batches[] = {2, 1, 4, 12};
    for (int i = 0; i < (SANITIZED ? 1 : 4); i++) {
        fake.graphs = 0;
        sample(m, &a, batches[i], 0, &other);
        assert_memory_equal(&one, &other, sizeof one);
        assert_in_range(fake.graphs, 1, 4); /* of the buckets, not of the steps */
    }
    int before = fake.launches;
    sample(m, &a, 9, 6 * 32, &other);
    assert_memory_equal(&one, &other, sizeof one);
    int waiting = fake.launches - before;
    before = fake.launches;
    sample(m, &a, 9, 0, &other);
    assert_true(waiting > fake.launches - before);
    SampleOptions opt = {
        .temperature = 1, .top_p = 1, .max_new = NEW, .batch = 9, .cache_tokens = 2 * 32};
    Error err;
    memset(&other, 0, sizeof other);
    assert_int_equal(model_sample(m, a.req, PROMPTS, &opt, keep, &other, &err), -1);
    if (!strstr(err.text, "45 tokens")) fail_msg("%s", err.text);
    assert_true(other.done > 0 &&
                other.done < PROMPTS * COPIES); /* those that fit were delivered */
    model_free(m);
}

/* Rows that find room beside each other, each with a prompt of its own of the plan's length. */
static int rows_together(Decoder *d, const DecoderPlan *plan)
{
    int32_t *ids = memory_array((size_t)plan->prompt, sizeof *ids);
    int rows = 0, rc = 1;
    Error err;
    while (rows < plan->rows && rc == 1) {
        rc = decoder_prefill(d, ids, plan->prompt, 1, &err);
        if (rc == 1) rc = decoder_attach(d, rows, &err);
        rows += rc == 1;
    }
    free(ids);
    return rows;
}

/* `quern-sample --plan`, byte by byte: what is taken, what is left, and the longest prompt that
 * lets all rows in. */
static void taken_as_planned(void **state)
{
    enum { ROWS = 3, PAGES = 12 };
    static const LoraOptions adapter = {
        .rank = 3, .alpha = 5, .targets = LORA_ALL & ~LORA_K, .seed = 4};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *type = i % 2 ? "qwen3" : "qwen2";
        const LoraOptions *lora = i > 1 ? &adapter : NULL;
        ModelConfig c = shape(type);
        SamplingPlan p;
        Error err;
        if (plan_sampling(&c, &table, lora, ROWS, NEW, &p, &err)) fail_msg("%s", err.text);
        assert_true(p.fits && p.prompt == c.max_position - NEW); /* with much memory */
        fake.memory = p.weights + 200000 + 2 * PAGES * 32 * p.token;
        if (plan_sampling(&c, &table, lora, ROWS, NEW, &p, &err)) fail_msg("%s", err.text);
        assert_true(p.fits && p.prompt < c.max_position - NEW && p.prompt > 1);
        for (int longer = 0; longer < 2; longer++) {
            DecoderPlan plan = {.rows = ROWS,
                                .prompt = p.prompt + longer,
                                .max_new = NEW,
                                .law = {.vocab = VOCAB, .temperature = 1, .top_p = 1}};
            DecoderMemory told;
            Decoder *d;
            Model *m = small(type);
            if (lora && model_add_lora(m, lora, &err)) fail_msg("%s", err.text);
            assert_int_equal(taken(), p.weights);
            decoder_memory(m, &plan, fake.memory - taken(), &told);
            if (decoder_create(m, &plan, &d, &err)) fail_msg("%s", err.text);
            printf("# %s%s: prompts of %d, %zu bytes, and %zu of %zu for %lld tokens\n", type,
                   lora ? " with an adapter" : "", plan.prompt, told.own, told.held, told.room,
                   (long long)told.tokens);
            assert_int_equal(taken(), p.weights + told.own + told.held);
            assert_int_equal(told.together, !longer);
            assert_int_equal(rows_together(d, &plan) == ROWS, !longer);
            if (!longer)
                assert_true(told.own == p.decoder && told.spare == p.spare && told.held == p.held);
            decoder_free(d);
            model_free(m);
            assert_int_equal(taken(), 0);
        }
        fake.memory = (size_t)1 << 30;
    }
}

/* What a decoder would refuse has no plan either. */
static void not_planned(void **state)
{
    (void)state;
    SamplingPlan p;
    Error err;
    Model *m = small("qwen2");
    ModelConfig c = m->c;
    model_free(m);
    c.ff += 4;
    assert_int_equal(plan_sampling(&c, &table, NULL, 2, 4, &p, &err), -1);
    assert_non_null(strstr(err.text, "multiples of 8"));
    assert_int_equal(taken(), 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decoding_equals_forward, starts, stops),
        cmocka_unit_test_setup_teardown(adapted, starts, stops),
        cmocka_unit_test_setup_teardown(only_prompt_and_seed, starts, stops),
        cmocka_unit_test_setup_teardown(taken_as_planned, starts, stops),
        cmocka_unit_test_setup_teardown(not_planned, starts, stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
