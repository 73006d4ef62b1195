/* The kernels of a decoding step on the simulator, against plain computation in double precision. */
#include "engine_support.h"

#include <math.h>

#include "model/cuda/decode.h"

static uint64_t seed;

static float *randoms(size_t n, float spread)
{
    float *v = memory_array(n, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = spread * engine_random(&seed);
    return v;
}

static int starts(void **state)
{
    (void)state;
    seed = 7;
    engine_start("sm_90");
    return 0;
}

static int starts_older(void **state)
{
    (void)state;
    seed = 7;
    engine_start("sm_80");
    return 0;
}

static int stops(void **state)
{
    (void)state;
    engine_stop();
    return 0;
}

/* ---- products ---- */

typedef struct {
    int rows, n, k, r, gated, rounds;
} Shape3;

typedef struct {
    float *x, *w, *low, *up;
} Operands;

/* Row `row` of low up^T + x w^T. */
static void product_row(const Shape3 *s, const Operands *o, int row, double *y)
{
    int n = s->gated ? 2 * s->n : s->n;
    for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int i = 0; i < s->r; i++) sum += (double)o->low[row * s->r + i] * (double)o->up[j * s->r + i];
        if (s->rounds) sum = (double)bf16_round(sum);
        for (int i = 0; i < s->k; i++) sum += (double)o->x[row * s->k + i] * (double)o->w[j * s->k + i];
        y[j] = sum;
    }
}

static void *product_out(const Shape3 *s, const Operands *o, int rows, int splits, size_t *bytes)
{
    int n = s->gated ? 2 * s->n : s->n;
    Product p = {.rows = rows, .n = s->n, .k = s->k, .r = s->r, .splits = splits, .gated = s->gated,
                 .rounds = s->rounds};
    *bytes = (size_t)rows * (size_t)s->n * (s->gated ? 2 : (size_t)splits * 4);
    p.out = engine_new("out", NULL, *bytes);
    p.x = engine_bf16("x", o->x, (size_t)rows * (size_t)s->k);
    p.w = engine_bf16("w", o->w, (size_t)n * (size_t)s->k);
    p.low = s->r ? engine_bf16("low", o->low, (size_t)rows * (size_t)s->r) : NULL;
    p.up = s->r ? engine_bf16("up", o->up, (size_t)n * (size_t)s->r) : NULL;
    cuda_product(&p);
    return p.out;
}

static void check_product(Shape3 s)
{
    int n = s.gated ? 2 * s.n : s.n, splits = s.gated ? 1 : cuda_product_splits(s.n, s.k);
    Operands o = {randoms((size_t)(s.rows * s.k), 1), randoms((size_t)n * (size_t)s.k, 0.2f),
                  randoms((size_t)(s.rows * s.r + 1), 1), randoms((size_t)n * (size_t)s.r + 1, 0.2f)};
    size_t bytes, count = (size_t)s.rows * (size_t)s.n;
    void *out = product_out(&s, &o, s.rows, splits, &bytes);
    float *got = memory_array(count * (size_t)splits, sizeof *got), *sum = memory_array(count, sizeof *sum);
    if (s.gated) engine_floats(out, sum, count);
    else {
        engine_get(out, got, bytes);
        for (size_t i = 0; i < count * (size_t)splits; i++) sum[i % count] += got[i];
    }
    double *want = memory_array((size_t)n, sizeof *want);
    for (int r = 0; r < s.rows; r++) {
        product_row(&s, &o, r, want);
        for (int j = 0; j < s.n && s.gated; j++) want[j] = want[j] / (1 + exp(-want[j])) * want[s.n + j];
        double d = engine_distance(sum + r * s.n, want, (size_t)s.n);
        if (!(d < (s.gated ? 1e-2 : 1e-6)))
            fail_msg("%d x %d x %d (adapter %d, gated %d), %d splits: row %d is off by %g", s.rows, s.n, s.k, s.r, s.gated,
                     splits, r, d);
    }
    free(got), free(sum), free(want), free(o.x), free(o.w), free(o.low), free(o.up);
}

static void products(void **state)
{
    (void)state;
    static const Shape3 shapes[] = {
        {1, 70, 72, 0, 0, 0},     {3, 33, 1032, 0, 0, 0}, {8, 200, 64, 64, 0, 0}, {9, 96, 520, 0, 0, 0},   {20, 132, 136, 0, 0, 0},
        {33, 40, 200, 128, 0, 1}, {70, 130, 72, 0, 0, 0}, {64, 8, 2096, 0, 0, 0}, {12, 68, 1032, 64, 0, 1}, {1, 40, 80, 0, 1, 0},
        {5, 24, 136, 64, 1, 1},   {17, 72, 64, 0, 1, 0},  {66, 20, 200, 0, 1, 0}};
    static const struct {
        int sms;
        size_t shared;             /* more or fewer chunks a step */
    } gpus[] = {{132, 232448}, {2, 232448}, {1, 101376}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int g = 0; g < 3; g++) {
            engine.state.sms = gpus[g].sms; /* on small ones a block is wider and takes several items */
            engine.state.shared_max = gpus[g].shared;
            check_product(shapes[i]);
        }
}

/* A row's bits are the same beside any number of others. */
static void product_rows_alone(void **state)
{
    (void)state;
    for (int gated = 0; gated < 2; gated++) {
        Shape3 s = {70, 72, 520, 64, gated, 1};
        int n = gated ? 2 * s.n : s.n, splits = gated ? 1 : cuda_product_splits(s.n, s.k);
        if (!gated) assert_true(splits > 1);
        Operands o = {randoms((size_t)(s.rows * s.k), 1), randoms((size_t)(n * s.k), 1), randoms((size_t)(s.rows * s.r), 1),
                      randoms((size_t)(n * s.r), 1)};
        size_t bytes, size = gated ? 2 : 4, row = (size_t)s.n * size;
        char *all = memory_alloc((size_t)s.rows * row * (size_t)splits),
             *some = memory_alloc((size_t)s.rows * row * (size_t)splits);
        void *out = product_out(&s, &o, s.rows, splits, &bytes);
        engine_get(out, all, bytes);
        static const int counts[] = {1, 2, 8, 9, 16, 17, 32, 40, 64};
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            engine.state.sms = c % 2 ? 1 : 132; /* nor does the GPU's size show */
            out = product_out(&s, &o, counts[c], splits, &bytes);
            engine_get(out, some, bytes);
            for (int p = 0; p < splits; p++)
                assert_memory_equal(some + (size_t)p * (size_t)counts[c] * row, all + (size_t)p * (size_t)s.rows * row,
                                    (size_t)counts[c] * row);
        }
        free(all), free(some), free(o.x), free(o.w), free(o.low), free(o.up);
    }
}

static void adapters(void **state)
{
    (void)state;
    enum { ROWS = 3, R = 64, RANK = 5, N = 12, SPLITS = 3 };
    float *parts = randoms(ROWS * R * SPLITS, 1), *b = randoms(N * RANK, 1), got[(N + 4) * R];
    float *zeros = memory_array((N + 4) * R, sizeof *zeros);
    void *low = engine_new("low", NULL, ROWS * R * 2), *up = engine_bf16("up", zeros, (N + 4) * R);
    cuda_adapter_low(low, engine_new("parts", parts, ROWS * R * SPLITS * 4), SPLITS, ROWS, R, 0.5f);
    engine_floats(low, got, ROWS * R);
    for (int i = 0; i < ROWS * R; i++) {
        double want = 0.5 * ((double)parts[i] + (double)parts[ROWS * R + i] + (double)parts[2 * ROWS * R + i]);
        assert_true(fabs((double)got[i] - want) <= fabs(want) / 200 + 1e-7);
    }
    cuda_adapter_up(up, engine_bf16("b", b, N * RANK), 3, N, RANK, R, 7);
    engine_floats(up, got, (N + 4) * R);
    for (int i = 0; i < (N + 4) * R; i++) {
        int j = i / R - 3, c = i % R - 7, in = j >= 0 && j < N && c >= 0 && c < RANK;
        assert_true(got[i] == (in ? b[j * RANK + c] : 0));
    }
    free(parts), free(b), free(zeros);
}

static void residuals(void **state)
{
    (void)state;
    static const int sizes[] = {8, 104, 4104};
    enum { ROWS = 3, SPLITS = 3 };
    for (int c = 0; c < 6; c++) {
        int n = sizes[c / 2], splits = c % 2 ? SPLITS : 0;
        size_t all = (size_t)(ROWS * n);
        float *x = randoms(all, 3), *w = randoms((size_t)n, 1), *parts = randoms(all * SPLITS, 1), *got = memory_array(all, 4);
        double *want = memory_array((size_t)n, sizeof *want);
        static const int32_t ids[ROWS] = {2, 0, 2};
        void *table = engine_bf16("table", x, all), *weight = engine_bf16("w", w, (size_t)n), *y = engine_new("y", NULL, all * 2);
        Residual r = {.x = engine_new("x", splits ? x : NULL, all * 4), .normed = y,
                      .parts = engine_new("parts", parts, all * SPLITS * 4), .splits = splits, .table = table,
                      .ids = engine_new("ids", ids, sizeof ids), .w = weight, .rows = ROWS, .n = n, .eps = 1e-5f};
        cuda_residual_norm(&r);
        float *after = memory_array(all, 4);
        engine_get(r.x, after, all * 4);
        engine_floats(y, got, all);
        for (int row = 0; row < ROWS; row++) {
            double squares = 0;
            for (int i = 0; i < n; i++) {
                double v = (double)x[(splits ? row : ids[row]) * n + i];
                for (int s = 0; s < splits; s++) v += (double)parts[(size_t)s * all + (size_t)(row * n + i)];
                want[i] = v;
                squares += v * v;
            }
            if (!(engine_distance(after + row * n, want, (size_t)n) < 1e-6)) fail_msg("sum of row %d of %d", row, n);
            for (int i = 0; i < n; i++) want[i] *= (double)w[i] / sqrt(squares / n + 1e-5);
            if (!(engine_distance(got + row * n, want, (size_t)n) < 6e-3)) fail_msg("norm of row %d of %d", row, n);
        }
        free(x), free(w), free(parts), free(got), free(want), free(after);
    }
}

/* ---- attention ---- */

typedef struct {
    int dim, group, kv, bias, norm;
    int rows, pos[6];
} Heads;

typedef struct {
    float *keys, *values, *parts, *bias, *norm, *cosines, *sines; /* keys, values: [rows][kv][longest][dim] */
    int longest, layers, layer, pages, ld;
    int32_t table[6 * 96];
    KvRows rows;
    Pages store;
} Context;

enum { SPLITS = 2 };

static void make_context(Context *c, const Heads *h)
{
    *c = (Context){.layers = 2, .layer = 1};
    for (int r = 0; r < h->rows; r++)
        if (h->pos[r] + 1 > c->longest) c->longest = h->pos[r] + 1;
    c->ld = (c->longest + KV_PAGE - 1) / KV_PAGE;
    for (int r = 0; r < h->rows; r++)
        for (int i = 0; i * KV_PAGE <= h->pos[r]; i++) c->table[r * c->ld + i] = c->pages++;
    for (int i = 0; i < c->pages / 2; i++) /* pages lie anywhere */
        for (int j = 0; j < h->rows * c->ld; j++)
            if (c->table[j] == i) c->table[j] = c->pages - 1 - i;
            else if (c->table[j] == c->pages - 1 - i) c->table[j] = i;
    size_t each = (size_t)(h->rows * h->kv * c->longest * h->dim);
    c->keys = randoms(each, 1), c->values = randoms(each, 1);
    c->store = (Pages){.layers = c->layers, .kv_heads = h->kv, .dim = h->dim};
    c->rows = (KvRows){.pos = engine_new("pos", h->pos, (size_t)h->rows * 4), .ld = c->ld};
    c->rows.table = engine_new("table", c->table, (size_t)(h->rows * c->ld) * 4);
}

static size_t slot(const Context *c, const Heads *h, int r, int head, int t, int values)
{
    size_t page = (size_t)c->table[r * c->ld + t / KV_PAGE];
    return ((((page * (size_t)c->layers + (size_t)c->layer) * 2 + (size_t)values) * (size_t)h->kv + (size_t)head) * KV_PAGE +
            (size_t)(t % KV_PAGE)) * (size_t)h->dim;
}

/* The pages with everything before the rows' new tokens; the rest is undefined but for what no row may mind. */
static void fill_pages(Context *c, const Heads *h)
{
    size_t n = page_nums(&c->store) * (size_t)c->pages;
    float *all = memory_array(n, sizeof *all);
    for (size_t i = 0; i < n; i++) all[i] = NAN;
    for (int r = 0; r < h->rows; r++)
        for (int k = 0; k < h->kv; k++)
            for (int t = 0; t < h->pos[r]; t++)
                for (int v = 0; v < 2; v++)
                    memcpy(all + slot(c, h, r, k, t, v),
                           (v ? c->values : c->keys) +
                               ((size_t)(r * h->kv + k) * (size_t)c->longest + (size_t)t) * (size_t)h->dim,
                           (size_t)h->dim * sizeof *all);
    c->store.data = engine_bf16("pages", all, n);
    for (int r = 0; r < h->rows; r++)
        for (int k = 0; k < h->kv; k++)
            for (int t = 0; t < h->pos[r]; t++)
                for (int i = 0; i < h->dim; i++) {
                    size_t at = ((size_t)(r * h->kv + k) * (size_t)c->longest + (size_t)t) * (size_t)h->dim + (size_t)i;
                    c->keys[at] = all[slot(c, h, r, k, t, 0) + (size_t)i];
                    c->values[at] = all[slot(c, h, r, k, t, 1) + (size_t)i];
                }
    free(all);
}

/* q, k or v of one head of a row, from the parts. */
static void fresh_head(const Context *c, const Heads *h, int r, int head, double *out)
{
    int all = h->group * h->kv + 2 * h->kv, d = h->dim, turned = head < h->group * h->kv + h->kv;
    double v[256], squares = 0;
    for (int i = 0; i < d; i++) {
        size_t at = (size_t)((r * all + head) * d + i);
        v[i] = (double)c->parts[at] + (double)c->parts[(size_t)(h->rows * all * d) + at] +
               (h->bias ? (double)c->bias[head * d + i] : 0);
        squares += v[i] * v[i];
    }
    for (int i = 0; i < d && h->norm && turned; i++)
        v[i] *= (double)c->norm[(head < h->group * h->kv ? 0 : d) + i] / sqrt(squares / d + 1e-6);
    for (int i = 0; i < d / 2; i++) {
        double cosine = turned ? (double)c->cosines[h->pos[r] * (d / 2) + i] : 1,
               sine = turned ? (double)c->sines[h->pos[r] * (d / 2) + i] : 0;
        out[i] = v[i] * cosine - v[d / 2 + i] * sine;
        out[d / 2 + i] = v[d / 2 + i] * cosine + v[i] * sine;
    }
}

static void run_fresh(Context *c, const Heads *h, void *q)
{
    int all = h->group * h->kv + 2 * h->kv, half = h->dim / 2;
    c->parts = randoms((size_t)(SPLITS * h->rows * all * h->dim), 1);
    c->bias = randoms((size_t)(all * h->dim), 1), c->norm = randoms((size_t)(2 * h->dim), 1);
    c->cosines = memory_array((size_t)(c->longest * half), 4), c->sines = memory_array((size_t)(c->longest * half), 4);
    for (int i = 0; i < c->longest * half; i++) {
        double angle = (double)(i / half) * pow(10000, -(double)(i % half) / half);
        c->cosines[i] = (float)cos(angle), c->sines[i] = (float)sin(angle);
    }
    Fresh f = {.q = q,
               .parts = engine_new("parts", c->parts, (size_t)(SPLITS * h->rows * all * h->dim) * 4),
               .splits = SPLITS,
               .rows = h->rows,
               .heads = h->group * h->kv,
               .layer = c->layer,
               .eps = 1e-6f};
    f.bias = h->bias ? engine_bf16("bias", c->bias, (size_t)(all * h->dim)) : NULL;
    f.q_norm = h->norm ? engine_bf16("q_norm", c->norm, (size_t)h->dim) : NULL;
    f.k_norm = h->norm ? engine_bf16("k_norm", c->norm + h->dim, (size_t)h->dim) : NULL;
    f.cosines = engine_new("cosines", c->cosines, (size_t)(c->longest * half) * 4);
    f.sines = engine_new("sines", c->sines, (size_t)(c->longest * half) * 4);
    cuda_fresh_heads(&f, &c->rows, &c->store);
}

/* What was written for the new tokens is right; it then stands in the context as it was rounded. */
static void check_fresh(Context *c, const Heads *h, const float *q)
{
    size_t n = page_nums(&c->store) * (size_t)c->pages;
    float *all = memory_array(n, sizeof *all);
    double want[256];
    engine_floats(c->store.data, all, n);
    for (int r = 0; r < h->rows; r++)
        for (int head = 0; head < h->group * h->kv + 2 * h->kv && h->pos[r] >= 0; head++) {
            int kv = head - h->group * h->kv, values = kv >= h->kv;
            if (values) kv -= h->kv;
            const float *got = kv < 0 ? q + (size_t)(r * h->group * h->kv + head) * (size_t)h->dim
                                      : all + slot(c, h, r, kv, h->pos[r], values);
            fresh_head(c, h, r, head, want);
            if (!(engine_distance(got, want, (size_t)h->dim) < 8e-3)) fail_msg("dim %d: head %d of row %d", h->dim, head, r);
            if (kv >= 0)
                memcpy((values ? c->values : c->keys) +
                           ((size_t)(r * h->kv + kv) * (size_t)c->longest + (size_t)h->pos[r]) * (size_t)h->dim,
                       got, (size_t)h->dim * sizeof *got);
        }
    free(all);
}

static void check_attention(const Context *c, const Heads *h, const float *q, const float *out)
{
    double want[256], *p = memory_array((size_t)c->longest, sizeof *p);
    for (int r = 0; r < h->rows; r++)
        for (int head = 0; head < h->group * h->kv && h->pos[r] >= 0; head++) {
            size_t base = (size_t)(r * h->kv + head / h->group) * (size_t)c->longest * (size_t)h->dim,
                   at = (size_t)(r * h->group * h->kv + head) * (size_t)h->dim;
            double top = -INFINITY, sum = 0;
            memset(want, 0, sizeof want);
            for (int t = 0; t <= h->pos[r]; t++) {
                p[t] = 0;
                for (int i = 0; i < h->dim; i++)
                    p[t] += (double)q[at + (size_t)i] * (double)c->keys[base + (size_t)(t * h->dim + i)];
                p[t] /= sqrt(h->dim);
                top = p[t] > top ? p[t] : top;
            }
            for (int t = 0; t <= h->pos[r]; t++) sum += p[t] = exp(p[t] - top);
            for (int t = 0; t <= h->pos[r]; t++)
                for (int i = 0; i < h->dim; i++) want[i] += p[t] / sum * (double)c->values[base + (size_t)(t * h->dim + i)];
            double d = engine_distance(out + at, want, (size_t)h->dim);
            if (!(d < 6e-3))
                fail_msg("dim %d, group %d: head %d of row %d (%d tokens) is off by %g", h->dim, h->group, head, r,
                         h->pos[r] + 1, d);
        }
    free(p);
}

static void attention(void **state)
{
    (void)state;
    static const Heads cases[] = {
        {64, 7, 2, 1, 0, 5, {0, 31, -1, 32, 70}}, {128, 2, 1, 0, 1, 4, {63, 64, 65, 130}}, {16, 1, 3, 0, 0, 3, {5, 95, 96}},
        {80, 8, 1, 1, 1, 2, {40, 127}},           {256, 16, 1, 0, 0, 1, {66}},             {16, 2, 1, 0, 0, 2, {2200, 2047}},
        {24, 3, 1, 0, 0, 1, {33}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Heads *h = &cases[i];
        Context c;
        make_context(&c, h);
        fill_pages(&c, h);
        size_t wide = (size_t)(h->rows * h->group * h->kv * h->dim);
        float *q = memory_array(wide, 4), *out = memory_array(wide, 4), *zero = memory_array(wide, 4);
        void *dq = engine_bf16("q", zero, wide), *dout = engine_bf16("out", zero, wide); /* an idle row's are not written */
        run_fresh(&c, h, dq);
        engine_floats(dq, q, wide);
        check_fresh(&c, h, q);
        size_t scratch = cuda_attend_scratch(h->rows, h->group * h->kv, h->dim);
        cuda_attend(dout, dq, engine_new("scratch", NULL, scratch * 4), &c.rows, &c.store, h->rows, h->group * h->kv, c.layer,
                    c.longest + 100);
        engine_floats(dout, out, wide);
        check_attention(&c, h, q, out);
        free(q), free(out), free(zero), free(c.keys), free(c.values), free(c.parts), free(c.bias), free(c.norm),
            free(c.cosines), free(c.sines);
    }
}

static void prompts(void **state)
{
    (void)state;
    enum { LEN = 70, HEADS = 4, KV = 2, DIM = 24, LAYERS = 3, ROW = (HEADS + 2 * KV) * DIM };
    static const int32_t table[3] = {2, 0, 1};
    Pages p = {.layers = LAYERS, .kv_heads = KV, .dim = DIM};
    size_t n = 3 * page_nums(&p);
    float *qkv = randoms(LEN * ROW, 1), *all = memory_array(n, 4);
    p.data = engine_bf16("pages", all, n);
    cuda_store_prompt(&p, engine_bf16("qkv", qkv, LEN * ROW), engine_new("table", table, sizeof table), LEN, HEADS, 1);
    engine_floats(p.data, all, n);
    double sum = 0, kept = 0;
    for (size_t i = 0; i < n; i++) sum += fabs((double)all[i]);
    for (int t = 0; t < LEN; t++)
        for (int i = 0; i < 2 * KV * DIM; i++) {
            size_t head = (size_t)(i / DIM),
                   at = ((((size_t)table[t / KV_PAGE] * LAYERS + 1) * 2 * KV + head) * KV_PAGE + (size_t)(t % KV_PAGE)) * DIM +
                        (size_t)(i % DIM);
            float want = qkv[t * ROW + HEADS * DIM + i];
            assert_true(all[at] == want);
            kept += fabs((double)want);
        }
    assert_true(fabs(sum - kept) < 1e-6 * sum); /* and nothing else */
    free(qkv), free(all);
}

/* ---- drawing ---- */

typedef struct {
    int id;
    double p;
} Sorted;

static int by_p(const void *a, const void *b)
{
    const Sorted *x = a, *y = b;
    return x->p != y->p ? (x->p < y->p) - (x->p > y->p) : (x->id > y->id) - (x->id < y->id);
}

/* p: the law that tokens are drawn from, in place; returns by how much the cut may be off: the mass at its edge. */
static void law_of(const DrawRows *law, const float *z, const uint32_t *banned, double *p)
{
    Sorted *s = memory_array((size_t)law->vocab, sizeof *s);
    double top = -INFINITY, total = 0, mass = 0, most;
    int n = 0, keep = 0;
    for (int i = 0; i < law->vocab; i++)
        if (!(banned[i / 32] >> (i % 32) & 1) && (double)z[i] > top) top = (double)z[i];
    for (int i = 0; i < law->vocab; i++) {
        p[i] = 0;
        if (!(banned[i / 32] >> (i % 32) & 1)) s[n++] = (Sorted){i, exp(((double)z[i] - top) * (double)law->inverse)};
    }
    qsort(s, (size_t)n, sizeof *s, by_p);
    if (law->top_k && law->top_k < n) n = law->top_k;
    for (int i = 0; i < n; i++) total += s[i].p;
    most = s[0].p;
    while (keep < n && (!keep || mass < (double)law->top_p * total) && s[keep].p >= (double)law->min_p * most) mass += s[keep++].p;
    for (int i = 0; i < keep; i++) p[s[i].id] = s[i].p / mass;
    free(s);
}

enum { DRAWS = 24 };

static void check_draws(DrawRows law, const float *z, const uint32_t *banned)
{
    double *p = memory_array((size_t)law.vocab, sizeof *p), u[DRAWS], sum = 0, top = -INFINITY;
    int32_t ids[DRAWS], best = -1;
    float logp[DRAWS];
    law_of(&law, z, banned, p);
    for (int i = 0; i < DRAWS; i++) u[i] = i == DRAWS - 1 ? 1 - 0x1p-53 : i ? fmod(i * 0.6180339887498949, 1) : 0;
    for (int i = 0; i < law.vocab; i++) {
        top = (double)z[i] > top ? (double)z[i] : top;
        if (p[i] > 0 && (best < 0 || p[i] > p[best])) best = i;
    }
    for (int i = 0; i < law.vocab; i++) sum += exp(((double)z[i] - top) * (double)law.inverse);
    law.logits = engine_new("logits", z, (size_t)law.vocab * 4);
    law.banned = engine_new("banned", banned, (size_t)((law.vocab + 31) / 32) * 4);
    law.cut = engine_new("cut", NULL, DRAWS * 8);
    void *d_ids = engine_new("ids", NULL, sizeof ids), *d_logp = engine_new("logp", NULL, sizeof logp);
    void *scratch = engine_new("scratch", NULL, cuda_draw_scratch(DRAWS, law.vocab));
    cuda_draw(d_ids, d_logp, &law, engine_new("u", u, sizeof u), scratch, DRAWS);
    engine_get(d_ids, ids, sizeof ids);
    engine_get(d_logp, logp, sizeof logp);
    for (int i = 0; i < DRAWS; i++) {
        assert_in_range(ids[i], 0, law.vocab - 1);
        double before = 0;
        for (int j = 0; j < ids[i]; j++) before += p[j];
        int right = law.greedy ? ids[i] == best : p[ids[i]] > 0 && u[i] > before - 1e-6 && u[i] < before + p[ids[i]] + 1e-6;
        double want = ((double)z[ids[i]] - top) * (double)law.inverse - log(sum);
        if (!right || !(fabs((double)logp[i] - want) < 2e-5))
            fail_msg("vocab %d, top_k %d, top_p %g, min_p %g: u %.9g drew %d (p %g, %g before it), logp %g, %g expected",
                     law.vocab, law.top_k, (double)law.top_p, (double)law.min_p, u[i], ids[i], p[ids[i]], before,
                     (double)logp[i], want);
    }
    free(p);
}

static void draws(void **state)
{
    (void)state;
    static const int vocabs[] = {70, 4096, 9000};
    for (int v = 0; v < 3; v++)
        for (int kind = 0; kind < 2; kind++) {
            int vocab = vocabs[v];
            float *z = randoms((size_t)vocab, 6);
            uint32_t banned[9000 / 32 + 1] = {0};
            if (kind) /* ties, and ids that may not be drawn: the likeliest two among them */
                for (int i = 0; i < vocab; i++) z[i] = rintf(z[i]);
            if (kind) z[5] = 9, z[68] = 9, banned[0] |= 1u << 5, banned[2] |= 1u << 4, banned[0] |= 0xff00u;
            DrawRows law = {.vocab = vocab, .inverse = 1, .top_p = 1};
            DrawRows greedy = law, warm = law, nucleus = law, few = law, least = law, mixed = law, one = law;
            greedy.greedy = 1;
            warm.inverse = 1 / 1.7f;
            nucleus.top_p = 0.8f;
            few.top_k = 13;
            least.min_p = 0.11f; /* between ties: e^-2 is 0.135, e^-3 0.05 */
            mixed.top_k = 30, mixed.top_p = 0.7f, mixed.min_p = 0.03f, mixed.inverse = 1.3f;
            one.top_k = 1;
            const DrawRows laws[] = {law, greedy, warm, nucleus, few, least, mixed, one};
            for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) check_draws(laws[i], z, banned);
            free(z);
        }
}

/* More likely ids than fit the pool, and a top_k beyond what lies near the likeliest. */
static void wide_draws(void **state)
{
    (void)state;
    enum { VOCAB = 9000 };
    float *flat = randoms(VOCAB, 0.5f), *steep = randoms(VOCAB, 30);
    uint32_t banned[VOCAB / 32 + 1] = {0};
    check_draws((DrawRows){.vocab = VOCAB, .inverse = 1, .top_p = 0.6f, .top_k = 7000}, flat, banned);
    for (int i = 0; i < VOCAB; i++) flat[i] = 1;
    check_draws((DrawRows){.vocab = VOCAB, .inverse = 1, .top_p = 0.5f}, flat, banned);
    check_draws((DrawRows){.vocab = VOCAB, .inverse = 1, .top_p = 1, .top_k = 4000}, steep, banned);
    free(flat), free(steep);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(products, starts, stops),
                                       {"products_older", products, starts_older, stops, NULL},
                                       cmocka_unit_test_setup_teardown(product_rows_alone, starts, stops),
                                       cmocka_unit_test_setup_teardown(adapters, starts, stops),
                                       cmocka_unit_test_setup_teardown(residuals, starts, stops),
                                       cmocka_unit_test_setup_teardown(attention, starts, stops),
                                       cmocka_unit_test_setup_teardown(prompts, starts, stops),
                                       cmocka_unit_test_setup_teardown(draws, starts, stops),
                                       cmocka_unit_test_setup_teardown(wide_draws, starts, stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
