/* Attention, forward and backward, on the simulator against the definition in double precision:
 * packed sequences of unequal lengths, groups of query heads, all tile widths and dimensions padded
 * to them. */
#include <math.h>

#include "tests/unit/eval/engine/engine_support.h"

enum { MAX_SEQUENCES = 144 };

typedef struct {
    HeadShape s;
    int lengths[MAX_SEQUENCES]; /* up to the first 0 */
    float scale;                /* of the inputs */
    /* Multiprocessors that the launcher sees. With few, the heads of a group are not divided. */
    int sms;
    int backward;
} Case;

/* The operands as the kernels see them (bf16, widened), and the expected results. */
typedef struct {
    BatchView view;
    int32_t start[MAX_SEQUENCES + 1];
    float *qkv, *dout, *out, *lse, *dqkv;
    double *want_out, *want_lse, *want_dqkv;
    size_t row, wide, rows;
} Work;

static double dot(const float *a, const float *b, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += (double)a[i] * (double)b[i];
    return s;
}

/* exp(score - lse) of the keys up to this query. */
static double probabilities(const Work *w, HeadShape s, int first, int query, int head, double *p)
{
    int kv = head / (s.heads / s.kv_heads);
    double top = -INFINITY, sum = 0;
    const float *q = w->qkv + (size_t)(first + query) * w->row + head * s.dim;
    for (int j = 0; j <= query; j++) {
        p[j] = dot(q, w->qkv + (size_t)(first + j) * w->row + (s.heads + kv) * s.dim, s.dim) /
               sqrt(s.dim);
        if (p[j] > top) top = p[j];
    }
    for (int j = 0; j <= query; j++) sum += p[j] = exp(p[j] - top);
    for (int j = 0; j <= query; j++) p[j] /= sum;
    return top + log(sum);
}

static void expect_forward(Work *w, HeadShape s)
{
    double *p = memory_array((size_t)w->view.longest, sizeof *p);
    for (int i = 0; i < w->view.n; i++)
        for (int head = 0; head < s.heads; head++)
            for (int t = 0; t < w->start[i + 1] - w->start[i]; t++) {
                size_t at = (size_t)(w->start[i] + t);
                w->want_lse[at * (size_t)s.heads + (size_t)head] =
                    probabilities(w, s, w->start[i], t, head, p);
                double *o = w->want_out + at * w->wide + head * s.dim;
                int v_at = (s.heads + s.kv_heads + head / (s.heads / s.kv_heads)) * s.dim;
                for (int j = 0; j <= t; j++) {
                    const float *v = w->qkv + (size_t)(w->start[i] + j) * w->row + v_at;
                    for (int c = 0; c < s.dim; c++) o[c] += p[j] * (double)v[c];
                }
            }
    free(p);
}

/* Expected gradients from the output that the kernel gets, whose rounding is not the kernel's
 * error. */
static void expect_backward(Work *w, HeadShape s)
{
    double *p = memory_array((size_t)w->view.longest, sizeof *p), scale = 1 / sqrt(s.dim);
    for (int i = 0; i < w->view.n; i++)
        for (int head = 0; head < s.heads; head++)
            for (int t = 0; t < w->start[i + 1] - w->start[i]; t++) {
                size_t at = (size_t)(w->start[i] + t), first = (size_t)w->start[i];
                int kv = head / (s.heads / s.kv_heads), k_at = (s.heads + kv) * s.dim,
                    v_at = k_at + s.kv_heads * s.dim;
                const float *d_o = w->dout + at * w->wide + head * s.dim,
                            *q = w->qkv + at * w->row + head * s.dim;
                double delta = dot(d_o, w->out + at * w->wide + head * s.dim, s.dim);
                probabilities(w, s, w->start[i], t, head, p);
                for (size_t j = 0; j <= (size_t)t; j++) {
                    const float *row = w->qkv + (first + j) * w->row;
                    double ds = p[j] * (dot(d_o, row + v_at, s.dim) - delta) * scale,
                           *grad = w->want_dqkv + (first + j) * w->row;
                    for (int c = 0; c < s.dim; c++) {
                        w->want_dqkv[at * w->row + (size_t)(head * s.dim + c)] +=
                            ds * (double)row[k_at + c];
                        grad[k_at + c] += ds * (double)q[c];
                        grad[v_at + c] += p[j] * (double)d_o[c];
                    }
                }
            }
    free(p);
}

static void work_init(Work *w, const Case *c)
{
    uint64_t seed = 7;
    memset(w, 0, sizeof *w);
    for (; w->view.n < MAX_SEQUENCES && c->lengths[w->view.n]; w->view.n++) {
        int len = c->lengths[w->view.n];
        w->start[w->view.n + 1] = w->start[w->view.n] + len;
        if (len > w->view.longest) w->view.longest = len;
    }
    w->view.rows = w->start[w->view.n];
    w->rows = (size_t)w->view.rows;
    w->row = (size_t)head_row(c->s);
    w->wide = (size_t)(c->s.heads * c->s.dim);
    w->qkv = memory_array(w->rows * w->row, sizeof *w->qkv);
    w->dqkv = memory_array(w->rows * w->row, sizeof *w->dqkv);
    w->dout = memory_array(w->rows * w->wide, sizeof *w->dout);
    w->out = memory_array(w->rows * w->wide, sizeof *w->out);
    w->lse = memory_array(w->rows * (size_t)c->s.heads, sizeof *w->lse);
    w->want_out = memory_array(w->rows * w->wide, sizeof *w->want_out);
    w->want_lse = memory_array(w->rows * (size_t)c->s.heads, sizeof *w->want_lse);
    w->want_dqkv = memory_array(w->rows * w->row, sizeof *w->want_dqkv);
    for (size_t i = 0; i < w->rows * w->row; i++) w->qkv[i] = 2 * c->scale * engine_random(&seed);
    for (size_t i = 0; i < w->rows * w->wide; i++) w->dout[i] = engine_random(&seed);
}

static void work_release(Work *w)
{
    free(w->qkv), free(w->dqkv), free(w->dout), free(w->out), free(w->lse);
    free(w->want_out), free(w->want_lse), free(w->want_dqkv);
}

/* Vectors of dim numbers, `of` a row from column `from` on. */
typedef struct {
    size_t rows, ld;
    int from, of, dim;
} Vectors;

/* Check vectors. The error of each is within
 * `tolerance` of its length, or of the mean length if it is shorter. The error of all is within
 * half of the tolerance, and their cosine above 0.9998. */
static void close_vectors(const char *what, const float *got, const double *want, Vectors v,
                          double tolerance)
{
    const size_t rows = v.rows, ld = v.ld;
    const int from = v.from, of = v.of, dim = v.dim;
    double length = 0, error = 0, inner = 0, own = 0;
    for (size_t r = 0; r < rows; r++)
        for (int i = from; i < from + of * dim; i++) {
            double g = (double)got[r * ld + (size_t)i], x = want[r * ld + (size_t)i];
            assert_true(isfinite(g));
            length += x * x, own += g * g, inner += g * x, error += (g - x) * (g - x);
        }
    double mean = sqrt(length / (double)(rows * (size_t)of)), worst = 0;
    for (size_t r = 0; r < rows; r++)
        for (int h = 0; h < of; h++) {
            double e = 0, l = 0;
            for (int i = 0; i < dim; i++) {
                size_t at = r * ld + (size_t)(from + h * dim + i);
                e += ((double)got[at] - want[at]) * ((double)got[at] - want[at]);
                l += want[at] * want[at];
            }
            e = sqrt(e) / fmax(sqrt(l), mean);
            if (e > worst) worst = e;
            if (e > tolerance)
                fail_msg("%s: row %zu, head %d is off by %.3g of its length", what, r, h, e);
        }
    print_message("# %s: vectors within %.2e, all within %.2e\n", what, worst,
                  sqrt(error / length));
    assert_true(sqrt(error / length) < tolerance / 2);
    assert_true(inner > 0.9998 * sqrt(length * own));
}

static void run(const Case *c)
{
    Work w;
    HeadShape s = c->s;
    work_init(&w, c);
    int sms = engine.state.sms;
    if (c->sms) engine.state.sms = c->sms;
    void *qkv = engine_bf16("qkv", w.qkv, w.rows * w.row),
         *out = engine_new("out", NULL, w.rows * w.wide * 2);
    float *lse = engine_new("lse", NULL, w.rows * (size_t)s.heads * sizeof *lse);
    w.view.start = engine_new("start", w.start, (size_t)(w.view.n + 1) * sizeof *w.start);
    print_message("# %s, dim %d, %d/%d heads, %d rows, scale %g\n", engine.arch, s.dim, s.heads,
                  s.kv_heads, w.view.rows, (double)c->scale);
    cuda_attention(out, lse, qkv, &w.view, s);
    engine_floats(out, w.out, w.rows * w.wide);
    engine_get(lse, w.lse, w.rows * (size_t)s.heads * sizeof *lse);
    expect_forward(&w, s);
    close_vectors("out", w.out, w.want_out, (Vectors){w.rows, w.wide, 0, s.heads, s.dim}, 8e-3);
    for (size_t i = 0; i < w.rows * (size_t)s.heads; i++)
        if (!(fabs((double)w.lse[i] - w.want_lse[i]) <
              2.5e-5 + 2e-6 * fabs(w.want_lse[i]))) /* scores are within 2^-15 ln 2 */
            fail_msg("lse %zu is %.9g, not %.9g", i, (double)w.lse[i], w.want_lse[i]);
    if (c->backward) {
        void *dout = engine_bf16("dout", w.dout, w.rows * w.wide),
             *dqkv = engine_new("dqkv", NULL, w.rows * w.row * 2);
        cuda_attention_grad(dqkv, dout, &(Attended){qkv, out, lse}, &w.view, s);
        engine_floats(dqkv, w.dqkv, w.rows * w.row);
        expect_backward(&w, s);
        close_vectors("dq", w.dqkv, w.want_dqkv, (Vectors){w.rows, w.row, 0, s.heads, s.dim}, 1e-2);
        close_vectors("dk", w.dqkv, w.want_dqkv,
                      (Vectors){w.rows, w.row, s.heads * s.dim, s.kv_heads, s.dim}, 1e-2);
        close_vectors("dv", w.dqkv, w.want_dqkv,
                      (Vectors){w.rows, w.row, (s.heads + s.kv_heads) * s.dim, s.kv_heads, s.dim},
                      1e-2);
    }
    engine.state.sms = sms;
    work_release(&w);
}

static void test_dim_64(void **state)
{
    (void)state;
    run(&(Case){{2, 1, 64}, {1, 5, 64, 65, 130}, 1, 0, 1});
}

static void test_dim_128(void **state)
{
    (void)state;
    run(&(Case){{7, 1, 128}, {1, 70}, 1, 1, 1}); /* one block has all heads of the group */
    run(&(Case){{2, 2, 128}, {129, 3}, 1, 0, 1});
}

static void test_scores_that_grow(void **state)
{
    (void)state;
    run(&(Case){{2, 1, 128}, {260, 30}, 8, 0, 1}); /* three tiles of keys */
    run(&(Case){{1, 1, 16}, {150}, 8, 0, 1});
}

static void test_padded_dims(void **state)
{
    (void)state;
    run(&(Case){{2, 1, 80}, {5, 66}, 1, 0, 1});
    run(&(Case){{7, 1, 16}, {130, 1, 65}, 1, 0, 1});
    run(&(Case){{1, 1, 256}, {66}, 1, 0, 1});
}

/* One long sequence among short ones: blocks are then ordered by sequence. Also with more sequences
 * than a block has threads. */
static void test_unequal_lengths(void **state)
{
    (void)state;
    Case many = {{1, 1, 16}, {0}, 1, 0, 1};
    for (int i = 0; i < MAX_SEQUENCES; i++) many.lengths[i] = i == 135 ? 300 : 1 + i % 2;
    run(&many);
    run(&(Case){{2, 1, 16}, {3, 1, 2, 1, 1, 520, 1, 4, 1, 1, 127, 1, 1, 9, 1}, 1, 0, 1});
}

static void test_ampere(void **state)
{
    (void)state;
    engine_stop();
    engine_start("sm_80");
    run(&(Case){{2, 1, 128}, {40, 66}, 1, 0, 1});
}

static int start(void **state)
{
    (void)state;
    engine_start("sm_90");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    engine_stop();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dim_64),           cmocka_unit_test(test_dim_128),
        cmocka_unit_test(test_scores_that_grow), cmocka_unit_test(test_padded_dims),
        cmocka_unit_test(test_unequal_lengths),  cmocka_unit_test(test_ampere),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, start, stop);
}
