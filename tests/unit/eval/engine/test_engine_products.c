/* The products of a decoding step on the simulator. Every sum is one chain of matrix instructions
 * along k. It equals, bit for bit, the sum of a kernel with nothing but the chain, for every division
 * into blocks. The chain kernel is compared with double precision. */
#include "tests/unit/eval/engine/engine_support.h"

#include <math.h>

#include "model/cuda/decode/step_kernels.h"
#include "tests/fixture_path.h"

static uint64_t seed;

static float *randoms(size_t n, float size)
{
    return engine_randoms(&seed, n, size);
}

/* ---- the chain kernel: one warp per 16 rows of x and 8 of w, with a load per number ---- */

static void add_chain(void)
{
    static char *ptx[2];
    const char *reason;
    int older = !strcmp(engine.arch, "sm_80");
    if (!ptx[older] && !(ptx[older] = cuda_to_ptx_for(fixture_text("sim/engine_chain.cu"),
                                                      engine.arch, NULL, &reason)))
        fail_msg("%s", reason);
    DeviceCode code = {.ptx = ptx[older], .ptx_len = strlen(ptx[older])};
    DeviceModule *m = NULL;
    if (ops->load(engine.sim.d, &code, 0, &m, &engine.sim.fault))
        fail_msg("the chain is not loaded");
    strcpy(engine.modules[engine.n_modules].source, "chain");
    engine.modules[engine.n_modules++].m = m;
}

/* Returns [rows][n], the product of `k` columns of x and w. */
static float *chain(const void *x, int ld_x, const void *w, int ld_w, int rows, int n, int k)
{
    float *y = memory_array((size_t)rows * (size_t)n, sizeof *y);
    void *out = engine_new("chain", NULL, (size_t)rows * (size_t)n * 4);
    Dim3 grid = {(unsigned)(rows + 15) / 16, (unsigned)(n + 7) / 8, 1};
    engine_launch("chain", "chain", grid, (Dim3){32, 1, 1}, 0,
                  (void *[]){&out, &x, &w, &rows, &n, &k, &ld_x, &ld_w});
    engine_get(out, y, (size_t)rows * (size_t)n * 4);
    engine_free(out);
    return y;
}

static int begins(const char *arch)
{
    seed = 7;
    engine_start(arch);
    add_chain();
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return begins("sm_90");
}

static int setup_sm_80(void **state)
{
    (void)state;
    return begins("sm_80");
}

/* ---- a product and its expected result ---- */

typedef struct {
    int rows, n, k, r, gated;
    float scale; /* 0: the sums are the result */
} Size;

typedef struct {
    Size s;
    Product p;
    void *want; /* the expected result, in host memory */
    size_t bytes;
} Case;

static void near_doubles(const float *got, const float *x, const float *w, int rows, int n, int k)
{
    double *want = memory_array((size_t)n, sizeof *want);
    for (int r = 0; r < rows; r++) {
        for (int j = 0; j < n; j++) {
            want[j] = 0;
            for (int i = 0; i < k; i++) want[j] += (double)x[r * k + i] * (double)w[j * k + i];
        }
        double d = engine_distance(got + r * n, want, (size_t)n);
        if (!(d < 1e-6))
            fail_msg("%d x %d x %d: row %d of the chain is off by %g", rows, n, k, r, d);
    }
    free(want);
}

/* bf16 silu(gate) up as in the full pass. */
static void *activations(const float *main, const float *adapter, int rows, int n)
{
    size_t all = (size_t)rows * (size_t)n;
    float *both = memory_array(2 * all, sizeof *both);
    for (size_t i = 0; i < 2 * all; i++)
        both[i] = bf16_round((double)main[i]) + (adapter ? bf16_round((double)adapter[i]) : 0);
    void *act = engine_new("act", NULL, all * 2), *gate_up = engine_bf16("gate_up", both, 2 * all),
         *got = memory_array(all, 2);
    cuda_swiglu(act, gate_up, rows, n);
    engine_get(act, got, all * 2);
    engine_free(act), engine_free(gate_up), free(both);
    return got;
}

static void make_case(Case *c, Size s)
{
    int n = s.gated ? 2 * s.n : s.n;
    size_t all = (size_t)s.rows * (size_t)n;
    float *x = randoms((size_t)(s.rows * s.k), 1), *w = randoms((size_t)n * (size_t)s.k, 0.2f),
          *low = randoms((size_t)(s.rows * s.r), 1), *up = randoms((size_t)n * (size_t)s.r, 0.2f);
    *c = (Case){
        .s = s,
        .p = {.rows = s.rows, .n = s.n, .k = s.k, .r = s.r, .gated = s.gated, .scale = s.scale}};
    c->p.x = engine_bf16("x", x, (size_t)s.rows * (size_t)s.k);
    c->p.w = engine_bf16("w", w, (size_t)n * (size_t)s.k);
    float *main = chain(c->p.x, s.k, c->p.w, s.k, s.rows, n, s.k), *adapter = NULL;
    near_doubles(main, x, w, s.rows, n, s.k);
    if (s.r) {
        c->p.low = engine_bf16("low", low, (size_t)s.rows * (size_t)s.r);
        c->p.up = engine_bf16("up", up, (size_t)n * (size_t)s.r);
        adapter = chain(c->p.low, s.r, c->p.up, s.r, s.rows, n, s.r);
        near_doubles(adapter, low, up, s.rows, n, s.r);
    }
    if (s.gated)
        c->want = activations(main, adapter, s.rows, s.n), c->bytes = all;
    else if (s.scale != 0) {
        uint16_t *want = c->want = memory_array(all, 2);
        for (size_t i = 0; i < all; i++) want[i] = bf16_from((double)(s.scale * main[i]));
        c->bytes = all * 2;
    } else {
        float *want = c->want = memory_array(2 * all, 4);
        if (s.r) memcpy(want, adapter, all * 4);
        memcpy(want + (s.r ? all : 0), main, all * 4);
        c->bytes = all * (s.r ? 8 : 4);
    }
    free(x), free(w), free(low), free(up), free(main), free(adapter);
}

static void free_case(Case *c)
{
    engine_free((void *)(uintptr_t)c->p.x), engine_free((void *)(uintptr_t)c->p.w);
    if (c->s.r) engine_free((void *)(uintptr_t)c->p.low), engine_free((void *)(uintptr_t)c->p.up);
    free(c->want);
}

/* Check the first `rows` rows of the case, as `launch` computes them. */
static void check(const Case *c, int rows, void (*launch)(const Product *p, const void *ctx),
                  const void *ctx, const char *what)
{
    const Size *s = &c->s;
    Product p = c->p;
    int to_out = s->gated || s->scale != 0, planes = to_out ? 1 : 1 + (s->r > 0);
    size_t plane = c->bytes / (size_t)planes, row = plane / (size_t)s->rows;
    p.rows = rows;
    void *out = engine_new("out", NULL, row * (size_t)(rows * planes)), *scratch = NULL;
    if (to_out)
        p.out = out;
    else
        p.sums = out;
    if (s->gated && s->r)
        p.sums = scratch = engine_new("scratch", NULL, (size_t)rows * 2 * (size_t)s->n * 4);
    launch(&p, ctx);
    char *got = memory_array((size_t)(rows * planes), row);
    engine_get(out, got, row * (size_t)(rows * planes));
    for (int i = 0; i < planes; i++)
        if (memcmp(got + (size_t)(i * rows) * row, (char *)c->want + (size_t)i * plane,
                   (size_t)rows * row))
            fail_msg("%d of %d x %d x %d (adapter %d, gated %d, scale %g), plane %d, %s: not the "
                     "chain's bits",
                     rows, s->rows, s->n, s->k, s->r, s->gated, (double)s->scale, i, what);
    free(got), engine_free(out);
    if (scratch) engine_free(scratch);
}

static void by_launcher(const Product *p, const void *ctx)
{
    (void)ctx;
    cuda_product(p);
}

static void products(void **state)
{
    (void)state;
    static const Size sizes[] = {
        {1, 70, 72, 0, 0, 0},    {3, 33, 1032, 0, 0, 0},  {8, 200, 64, 64, 0, 0},
        {9, 96, 520, 0, 0, 0},   {20, 132, 136, 0, 0, 0}, {33, 40, 200, 48, 0, 0},
        {70, 130, 72, 0, 0, 0},  {64, 8, 1048, 0, 0, 0},  {12, 68, 328, 16, 0, 0},
        {1, 40, 80, 0, 1, 0},    {5, 24, 136, 80, 1, 0},  {17, 72, 64, 0, 1, 0},
        {66, 20, 200, 32, 1, 0}, {5, 48, 296, 0, 0, 2},   {40, 16, 520, 0, 0, 0.37f}};
    static const struct {
        int sms;
        size_t shared; /* more or fewer chunks per stage */
    } gpus[] = {{132, 232448}, {2, 232448}, {1, 101376}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Case c;
        make_case(&c, sizes[i]);
        for (int g = 0; g < 3; g++) {
            char what[40];
            engine.state.sms =
                gpus[g].sms; /* on small GPUs a block is wider and takes several items */
            engine.state.shared_max = gpus[g].shared;
            snprintf(what, sizeof what, "%d multiprocessors", gpus[g].sms);
            check(&c, sizes[i].rows, by_launcher, NULL, what);
        }
        free_case(&c);
    }
}

/* ---- all divisions ---- */

/* The layout in gemv.c, and the rows of x per block. */
typedef struct {
    int sides, tile, stages, deep, row_blocks, items;
} Division;

typedef struct {
    Division d;
    int rows_of_x, blocks, groups; /* groups 0: a narrow product */
} Cut;

static void by_cut(const Product *p, const void *ctx)
{
    const Cut *c = ctx;
    Division d = c->d;
    char kernel[16];
    int wide = d.sides * d.tile, outputs = p->gated ? 2 * p->n : p->n;
    unsigned threads = c->groups ? (unsigned)c->groups * 128 : c->rows_of_x < 64 ? 512 : 384;
    d.row_blocks = (p->rows + c->rows_of_x - 1) / c->rows_of_x;
    d.items = (outputs + wide - 1) / wide * d.row_blocks;
    snprintf(kernel, sizeof kernel, "%s%d", c->groups ? "product" : "chain", c->rows_of_x);
    engine_launch("gemv", kernel,
                  (Dim3){(unsigned)(c->blocks < d.items ? c->blocks : d.items), 1, 1},
                  (Dim3){threads, 1, 1}, (size_t)(d.stages * d.deep * (wide + c->rows_of_x) * 128),
                  (void *[]){(void *)(uintptr_t)p, &d});
}

static void cuts(void **state)
{
    (void)state;
    static const Size sizes[] = {
        {40, 72, 328, 24, 0, 0}, {40, 40, 200, 48, 1, 0}, {40, 48, 328, 0, 0, 0.5f}};
    static const Cut all[] = {{{1, 8, 4, 1, 0, 0}, 8, 3, 1},     {{2, 24, 5, 2, 0, 0}, 16, 132, 2},
                              {{1, 64, 8, 1, 0, 0}, 64, 1, 2},   {{3, 16, 6, 3, 0, 0}, 32, 2, 3},
                              {{1, 40, 7, 1, 0, 0}, 8, 5, 3},    {{3, 48, 4, 2, 0, 0}, 32, 132, 4},
                              {{1, 16, 4, 9, 0, 0}, 16, 7, 2},   {{4, 16, 8, 1, 0, 0}, 64, 2, 4},
                              {{1, 8, 4, 5, 0, 0}, 8, 3, 0},     {{1, 16, 5, 1, 0, 0}, 64, 7, 0},
                              {{1, 32, 4, 2, 0, 0}, 64, 132, 0}, {{1, 24, 4, 3, 0, 0}, 16, 2, 0},
                              {{1, 40, 8, 1, 0, 0}, 32, 5, 0},   {{1, 64, 4, 2, 0, 0}, 8, 132, 0}};
    static const int counts[] = {1, 40, 17, 8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Case c;
        make_case(&c, sizes[i]);
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
            const Division *d = &all[j].d;
            char what[120];
            if (sizes[i].gated && d->tile % 16) continue;
            snprintf(what, sizeof what, "%d sides of %d, %d rows of x, %d stages of %d", d->sides,
                     d->tile, all[j].rows_of_x, d->stages, d->deep);
            for (int k = 0; k < 2; k++)
                check(&c, counts[(j + (size_t)k) % 4], by_cut, &all[j], what);
        }
        free_case(&c);
    }
}

/* The bits of a row do not depend on the number of other rows. */
static void rows_alone(void **state)
{
    (void)state;
    Case c;
    make_case(&c, (Size){40, 72, 520, 24, 1, 0});
    static const int counts[] = {1, 2, 8, 9, 16, 17, 32, 33};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        engine.state.sms = i % 2 ? 3 : 132; /* nor on the number of multiprocessors */
        check(&c, counts[i], by_launcher, NULL, "as many rows");
    }
    free_case(&c);
}

/* ---- adapters ---- */

static void adapter_matrices(void **state)
{
    (void)state;
    enum { R = 64, RANK = 5, N = 12 };
    float *b = randoms(N * RANK, 1), got[(N + 4) * R],
          *zeros = memory_array((N + 4) * R, sizeof *zeros);
    void *up = engine_bf16("up", zeros, (N + 4) * R);
    cuda_adapter_up(up, engine_bf16("b", b, N * RANK), 3, N, RANK, R, 7);
    engine_floats(up, got, (N + 4) * R);
    for (int i = 0; i < (N + 4) * R; i++) {
        int j = i / R - 3, c = i % R - 7, in = j >= 0 && j < N && c >= 0 && c < RANK;
        assert_true(got[i] == (in ? b[j * RANK + c] : 0));
    }
    free(b), free(zeros);
}

/* Each of two adjacent parts equals its own product in the full pass, with its rank from column 0
 * on. */
static void adapter_parts(void **state)
{
    (void)state;
    enum { ROWS = 9, N = 24, K = 64 };
    static const int ranks[] = {4, 16, 20, 70};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        int rank = ranks[i], columns = (rank + 15) / 16 * 16, r = 2 * columns;
        float *low = randoms((size_t)(ROWS * r), 1), *b = randoms((size_t)(N * rank), 1),
              *zeros = randoms((size_t)(2 * N * r), 0);
        float *x = randoms(ROWS * K, 1), *w = randoms(2 * N * K, 1), got[2 * ROWS * 2 * N];
        void *up = engine_bf16("up", zeros, (size_t)(2 * N * r)),
             *part = engine_bf16("b", b, (size_t)(N * rank));
        cuda_adapter_up(up, part, 0, N, rank, r, 0);
        cuda_adapter_up(up, part, N, N, rank, r, columns);
        Product p = {.sums = engine_new("sums", NULL, sizeof got),
                     .x = engine_bf16("x", x, ROWS * K),
                     .w = engine_bf16("w", w, 2 * N * K),
                     .low = engine_bf16("low", low, (size_t)(ROWS * r)),
                     .up = up,
                     .rows = ROWS,
                     .n = 2 * N,
                     .k = K,
                     .r = r};
        cuda_product(&p);
        engine_get(p.sums, got, sizeof got);
        for (int side = 0; side < 2; side++) {
            float *want =
                chain((const uint16_t *)p.low + side * columns, r, part, rank, ROWS, N, rank);
            for (int row = 0; row < ROWS; row++)
                assert_memory_equal(got + row * 2 * N + side * N, want + row * N, N * sizeof *want);
            free(want);
        }
        free(low), free(b), free(zeros), free(x), free(w);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products, setup, engine_teardown),
        {"products_older", products, setup_sm_80, engine_teardown, NULL},
        cmocka_unit_test_setup_teardown(cuts, setup, engine_teardown),
        {"cuts_older", cuts, setup_sm_80, engine_teardown, NULL},
        cmocka_unit_test_setup_teardown(rows_alone, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(adapter_matrices, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(adapter_parts, setup, engine_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
