/* The kernels of a decoding step on the simulator, against direct computation in double
 * precision. */
#include "tests/unit/eval/engine/engine_support.h"

#include <math.h>

#include "model/cuda/decode/step_kernels.h"

static uint64_t seed;

static float *randoms(size_t n, float size)
{
    return engine_randoms(&seed, n, size);
}

static int setup(void **state)
{
    (void)state;
    seed = 7;
    engine_start("sm_90");
    return 0;
}

/* ---- attention ---- */

typedef struct {
    int dim, group, kv, bias, norm;
    int rows, pos[6];
} Heads;

typedef struct {
    /* keys, values: [rows][kv][longest][dim] */
    float *keys, *values, *parts, *bias, *norm, *cosines, *sines;
    int longest, layers, layer, pages, ld;
    int32_t table[6 * 96];
    KvRows rows;
    Pages store;
} Context;

enum { PLANES = 2 };

static void make_context(Context *c, const Heads *h)
{
    *c = (Context){.layers = 2, .layer = 1};
    for (int r = 0; r < h->rows; r++)
        if (h->pos[r] + 1 > c->longest) c->longest = h->pos[r] + 1;
    c->ld = (c->longest + KV_PAGE - 1) / KV_PAGE;
    for (int r = 0; r < h->rows; r++)
        for (int i = 0; i * KV_PAGE <= h->pos[r]; i++) c->table[r * c->ld + i] = c->pages++;
    for (int i = 0; i < c->pages / 2; i++) /* pages in mixed order */
        for (int j = 0; j < h->rows * c->ld; j++)
            if (c->table[j] == i)
                c->table[j] = c->pages - 1 - i;
            else if (c->table[j] == c->pages - 1 - i)
                c->table[j] = i;
    size_t each = (size_t)(h->rows * h->kv * c->longest * h->dim);
    c->keys = randoms(each, 1), c->values = randoms(each, 1);
    c->store = (Pages){.layers = c->layers, .kv_heads = h->kv, .dim = h->dim};
    c->rows = (KvRows){.pos = engine_new("pos", h->pos, (size_t)h->rows * 4), .ld = c->ld};
    c->rows.table = engine_new("table", c->table, (size_t)(h->rows * c->ld) * 4);
}

static size_t slot(const Context *c, const Heads *h, int r, int head, int t, int values)
{
    size_t page = (size_t)c->table[r * c->ld + t / KV_PAGE];
    return ((((page * (size_t)c->layers + (size_t)c->layer) * 2 + (size_t)values) * (size_t)h->kv +
             (size_t)head) *
                KV_PAGE +
            (size_t)(t % KV_PAGE)) *
           (size_t)h->dim;
}

/* Fill the pages with the tokens before the rows' new ones. All other places are undefined, except
 * where an idle row must not change them. */
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
                               ((size_t)(r * h->kv + k) * (size_t)c->longest + (size_t)t) *
                                   (size_t)h->dim,
                           (size_t)h->dim * sizeof *all);
    c->store.data = engine_bf16("pages", all, n);
    for (int r = 0; r < h->rows; r++)
        for (int k = 0; k < h->kv; k++)
            for (int t = 0; t < h->pos[r]; t++)
                for (int i = 0; i < h->dim; i++) {
                    size_t at = ((size_t)(r * h->kv + k) * (size_t)c->longest + (size_t)t) *
                                    (size_t)h->dim +
                                (size_t)i;
                    c->keys[at] = all[slot(c, h, r, k, t, 0) + (size_t)i];
                    c->values[at] = all[slot(c, h, r, k, t, 1) + (size_t)i];
                }
    free(all);
}

/* q, k or v of one head of a row, from the planes. */
static void fresh_head(const Context *c, const Heads *h, int r, int head, double *out)
{
    int all = h->group * h->kv + 2 * h->kv, d = h->dim, rotated = head < h->group * h->kv + h->kv;
    double v[256], squares = 0;
    for (int i = 0; i < d; i++) {
        size_t at = (size_t)((r * all + head) * d + i);
        v[i] = (double)c->parts[at] + (double)c->parts[(size_t)(h->rows * all * d) + at] +
               (h->bias ? (double)c->bias[head * d + i] : 0);
        squares += v[i] * v[i];
    }
    for (int i = 0; i < d && h->norm && rotated; i++)
        v[i] *= (double)c->norm[(head < h->group * h->kv ? 0 : d) + i] / sqrt(squares / d + 1e-6);
    for (int i = 0; i < d / 2; i++) {
        double cosine = rotated ? (double)c->cosines[h->pos[r] * (d / 2) + i] : 1,
               sine = rotated ? (double)c->sines[h->pos[r] * (d / 2) + i] : 0;
        out[i] = v[i] * cosine - v[d / 2 + i] * sine;
        out[d / 2 + i] = v[d / 2 + i] * cosine + v[i] * sine;
    }
}

static void run_fresh(Context *c, const Heads *h, void *q)
{
    int all = h->group * h->kv + 2 * h->kv, half = h->dim / 2;
    c->parts = randoms((size_t)(PLANES * h->rows * all * h->dim), 1);
    c->bias = randoms((size_t)(all * h->dim), 1), c->norm = randoms((size_t)(2 * h->dim), 1);
    c->cosines = memory_array((size_t)(c->longest * half), 4),
    c->sines = memory_array((size_t)(c->longest * half), 4);
    for (int i = 0; i < c->longest * half; i++) {
        double angle = (double)(i / half) * pow(10000, -(double)(i % half) / half);
        c->cosines[i] = (float)cos(angle), c->sines[i] = (float)sin(angle);
    }
    Fresh f = {.q = q,
               .parts =
                   engine_new("parts", c->parts, (size_t)(PLANES * h->rows * all * h->dim) * 4),
               .planes = PLANES,
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

/* Check what was written for the new tokens, and put it into the context as rounded. */
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
            if (!(engine_distance(got, want, (size_t)h->dim) < 8e-3))
                fail_msg("dim %d: head %d of row %d", h->dim, head, r);
            if (kv >= 0)
                memcpy((values ? c->values : c->keys) +
                           ((size_t)(r * h->kv + kv) * (size_t)c->longest + (size_t)h->pos[r]) *
                               (size_t)h->dim,
                       got, (size_t)h->dim * sizeof *got);
        }
    free(all);
}

static void check_attention(const Context *c, const Heads *h, const float *q, const float *out)
{
    double want[256], *p = memory_array((size_t)c->longest, sizeof *p);
    for (int r = 0; r < h->rows; r++)
        for (int head = 0; head < h->group * h->kv && h->pos[r] >= 0; head++) {
            size_t base =
                       (size_t)(r * h->kv + head / h->group) * (size_t)c->longest * (size_t)h->dim,
                   at = (size_t)(r * h->group * h->kv + head) * (size_t)h->dim;
            double top = -INFINITY, sum = 0;
            memset(want, 0, sizeof want);
            for (int t = 0; t <= h->pos[r]; t++) {
                p[t] = 0;
                for (int i = 0; i < h->dim; i++)
                    p[t] += (double)q[at + (size_t)i] *
                            (double)c->keys[base + (size_t)(t * h->dim + i)];
                p[t] /= sqrt(h->dim);
                top = p[t] > top ? p[t] : top;
            }
            for (int t = 0; t <= h->pos[r]; t++) sum += p[t] = exp(p[t] - top);
            for (int t = 0; t <= h->pos[r]; t++)
                for (int i = 0; i < h->dim; i++)
                    want[i] += p[t] / sum * (double)c->values[base + (size_t)(t * h->dim + i)];
            double d = engine_distance(out + at, want, (size_t)h->dim);
            if (!(d < 6e-3))
                fail_msg("dim %d, group %d: head %d of row %d (%d tokens) is off by %g", h->dim,
                         h->group, head, r, h->pos[r] + 1, d);
        }
    free(p);
}

static void attention(void **state)
{
    (void)state;
    static const Heads cases[] = {{64, 7, 2, 1, 0, 5, {0, 31, -1, 32, 70}},
                                  {128, 2, 1, 0, 1, 4, {63, 64, 65, 130}},
                                  {16, 1, 3, 0, 0, 3, {5, 95, 96}},
                                  {80, 8, 1, 1, 1, 2, {40, 127}},
                                  {256, 16, 1, 0, 0, 1, {66}},
                                  {16, 2, 1, 0, 0, 2, {2200, 2047}},
                                  {24, 3, 1, 0, 0, 1, {33}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Heads *h = &cases[i];
        Context c;
        make_context(&c, h);
        fill_pages(&c, h);
        size_t wide = (size_t)(h->rows * h->group * h->kv * h->dim);
        float *q = memory_array(wide, 4), *out = memory_array(wide, 4),
              *zero = memory_array(wide, 4);
        void *dq = engine_bf16("q", zero, wide),
             *dout = engine_bf16("out", zero, wide); /* an idle row's output is not written */
        run_fresh(&c, h, dq);
        engine_floats(dq, q, wide);
        check_fresh(&c, h, q);
        size_t scratch = cuda_attend_scratch(h->rows, h->group * h->kv, c.longest + 100);
        cuda_attend(dout, dq, engine_new("scratch", NULL, scratch * 4), &c.rows, &c.store, h->rows,
                    h->group * h->kv, c.layer, c.longest + 100);
        engine_floats(dout, out, wide);
        check_attention(&c, h, q, out);
        free(q), free(out), free(zero), free(c.keys), free(c.values), free(c.parts), free(c.bias),
            free(c.norm), free(c.cosines), free(c.sines);
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
    cuda_store_prompt(&p, engine_bf16("qkv", qkv, LEN * ROW),
                      engine_new("table", table, sizeof table), LEN, HEADS, 1);
    engine_floats(p.data, all, n);
    double sum = 0, kept = 0;
    for (size_t i = 0; i < n; i++) sum += fabs((double)all[i]);
    for (int t = 0; t < LEN; t++)
        for (int i = 0; i < 2 * KV * DIM; i++) {
            size_t head = (size_t)(i / DIM),
                   at = ((((size_t)table[t / KV_PAGE] * LAYERS + 1) * 2 * KV + head) * KV_PAGE +
                         (size_t)(t % KV_PAGE)) *
                            DIM +
                        (size_t)(i % DIM);
            float want = qkv[t * ROW + HEADS * DIM + i];
            assert_true(all[at] == want);
            kept += fabs((double)want);
        }
    assert_true(fabs(sum - kept) < 1e-6 * sum); /* and nothing else was written */
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

/* Replace p by the distribution that tokens are drawn from. Returns by how much the cut may be off:
 * the mass at its edge. */
static void law_of(const DrawRows *law, const float *z, const uint32_t *banned, double *p)
{
    Sorted *s = memory_array((size_t)law->vocab, sizeof *s);
    double top = -INFINITY, total = 0, mass = 0, max_p;
    int n = 0, keep = 0;
    for (int i = 0; i < law->vocab; i++)
        if (!(banned[i / 32] >> (i % 32) & 1) && (double)z[i] > top) top = (double)z[i];
    for (int i = 0; i < law->vocab; i++) {
        p[i] = 0;
        if (!(banned[i / 32] >> (i % 32) & 1))
            s[n++] = (Sorted){i, exp(((double)z[i] - top) * (double)law->inverse)};
    }
    qsort(s, (size_t)n, sizeof *s, by_p);
    if (law->top_k && law->top_k < n) n = law->top_k;
    for (int i = 0; i < n; i++) total += s[i].p;
    max_p = s[0].p;
    while (keep < n && (!keep || mass < (double)law->top_p * total) &&
           s[keep].p >= (double)law->min_p * max_p)
        mass += s[keep++].p;
    for (int i = 0; i < keep; i++) p[s[i].id] = s[i].p / mass;
    free(s);
}

enum { DRAWS = 24, CHUNK = 4096 /* of draw.cu */ };

/* The numbers that draw: the least, the greatest, and between them those beside the first id of each
 * chunk, and others. Rows of the same logits cost the same sums again, so a wide vocabulary has few. */
static int choose_u(const DrawRows *law, const double *p, double u[DRAWS])
{
    int n = 0, rows = law->vocab >= CHUNK ? DRAWS / 3 : DRAWS;
    double before = 0;
    u[n++] = 0, u[n++] = 1 - 0x1p-53;
    for (int i = 0; i < law->vocab && n + 2 <= rows; i++) {
        if (i && i % CHUNK == 0 && before > 1e-3 && before < 1 - 1e-3)
            u[n++] = before - 1e-5, u[n++] = before + 1e-5;
        before += p[i];
    }
    for (int i = 1; n < rows; i++) u[n++] = fmod(i * 0.6180339887498949, 1);
    return rows;
}

static void check_draws(DrawRows law, const float *z, const uint32_t *banned)
{
    double *p = memory_array((size_t)law.vocab, sizeof *p), u[DRAWS], sum = 0, top = -INFINITY;
    int32_t ids[DRAWS], best = -1;
    float logp[DRAWS];
    law_of(&law, z, banned, p);
    int rows = choose_u(&law, p, u);
    for (int i = 0; i < law.vocab; i++) {
        top = (double)z[i] > top ? (double)z[i] : top;
        if (p[i] > 0 && (best < 0 || p[i] > p[best])) best = i;
    }
    for (int i = 0; i < law.vocab; i++) sum += exp(((double)z[i] - top) * (double)law.inverse);
    law.logits = engine_new("logits", z, (size_t)law.vocab * 4);
    law.banned = engine_new("banned", banned, (size_t)((law.vocab + 31) / 32) * 4);
    law.cut = engine_new("cut", NULL, (size_t)rows * 8);
    size_t bytes = (size_t)rows * 4;
    void *d_ids = engine_new("ids", NULL, bytes), *d_logp = engine_new("logp", NULL, bytes);
    void *scratch = engine_new("scratch", NULL, cuda_draw_scratch(rows, law.vocab));
    cuda_draw(d_ids, d_logp, &law, engine_new("u", u, 2 * bytes), scratch, rows);
    engine_get(d_ids, ids, bytes);
    engine_get(d_logp, logp, bytes);
    for (int i = 0; i < rows; i++) {
        assert_in_range(ids[i], 0, law.vocab - 1);
        double before = 0;
        for (int j = 0; j < ids[i]; j++) before += p[j];
        int right = law.greedy
                        ? ids[i] == best
                        : p[ids[i]] > 0 && u[i] > before - 1e-6 && u[i] < before + p[ids[i]] + 1e-6;
        double want = ((double)z[ids[i]] - top) * (double)law.inverse - log(sum);
        if (!right || !(fabs((double)logp[i] - want) < 2e-5))
            fail_msg("vocab %d, top_k %d, top_p %g, min_p %g: u %.9g drew %d (p %g, %g before it), "
                     "logp %g, %g expected",
                     law.vocab, law.top_k, (double)law.top_p, (double)law.min_p, u[i], ids[i],
                     p[ids[i]], before, (double)logp[i], want);
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
            if (kind) /* ties, and banned ids: among them the two most probable */
                for (int i = 0; i < vocab; i++) z[i] = rintf(z[i]);
            if (kind)
                z[5] = 9, z[68] = 9, banned[0] |= 1u << 5, banned[2] |= 1u << 4,
                banned[0] |= 0xff00u;
            DrawRows law = {.vocab = vocab, .inverse = 1, .top_p = 1};
            DrawRows greedy = law, warm = law, nucleus = law, few = law, cutoff = law, mixed = law,
                     one = law;
            greedy.greedy = 1;
            warm.inverse = 1 / 1.7f;
            nucleus.top_p = 0.8f;
            few.top_k = 13;
            cutoff.min_p = 0.11f; /* between ties: e^-2 is 0.135, e^-3 is 0.05 */
            mixed.top_k = 30, mixed.top_p = 0.7f, mixed.min_p = 0.03f, mixed.inverse = 1.3f;
            one.top_k = 1;
            const DrawRows laws[] = {law, greedy, warm, nucleus, few, cutoff, mixed, one};
            for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) check_draws(laws[i], z, banned);
            free(z);
        }
}

/* More probable ids than fit the pool, and a top_k beyond the ids near the most probable one. */
static void wide_draws(void **state)
{
    (void)state;
    enum { VOCAB = 9000 };
    float *flat = randoms(VOCAB, 0.5f), *steep = randoms(VOCAB, 30);
    uint32_t banned[VOCAB / 32 + 1] = {0};
    check_draws((DrawRows){.vocab = VOCAB, .inverse = 1, .top_p = 0.6f, .top_k = 7000}, flat,
                banned);
    for (int i = 0; i < VOCAB; i++) flat[i] = 1;
    check_draws((DrawRows){.vocab = VOCAB, .inverse = 1, .top_p = 0.5f}, flat, banned);
    check_draws((DrawRows){.vocab = VOCAB, .inverse = 1, .top_p = 1, .top_k = 4000}, steep, banned);
    free(flat), free(steep);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(attention, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(prompts, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(draws, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(wide_draws, setup, engine_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
