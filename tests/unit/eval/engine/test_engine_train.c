/* The elementwise, sum, loss and optimizer kernels on the simulator, against double precision on
 * the same bf16 inputs. Where transformers rounds between two steps, the reference does too: only
 * the last rounding remains, 2^-8 of a number. */
#include "tests/unit/eval/engine/engine_numbers.h"

/* ---- pointwise ---- */

static void test_add(void **state)
{
    (void)state;
    engine_start("sm_90");
    static const size_t sizes[] = {1, 8, 31, 1000, 8192, 8192 * 2 + 8, 20003};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int off = 0; off < 4; off += 2) { /* off: not aligned */
            size_t n = sizes[s], all = n + (size_t)off;
            char *y = numbers(0, all, 3), *x = numbers(1, all, 3);
            cuda_add(y + 2 * off, x + 2 * off, n);
            engine_floats(y, got, all);
            for (size_t i = 0; i < all; i++)
                want[i] =
                    i < (size_t)off ? (double)host[0][i] : (double)host[0][i] + (double)host[1][i];
            rounded_from("add", all);
            engine_free(y), engine_free(x);
        }
    engine_stop();
}

static double sigmoid(double z)
{
    return 1 / (1 + exp(-z));
}

static void test_swiglu(void **state)
{
    (void)state;
    static const struct {
        int rows, ff;
    } shapes[] = {{1, 8}, {3, 64}, {2, 4864}, {5, 37}, {2, 2056}, {1, 1}};
    engine_start("sm_90");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int rows = shapes[s].rows, ff = shapes[s].ff;
        size_t n = (size_t)rows * (size_t)ff;
        void *in = numbers(0, 2 * n, 8), *dy = numbers(1, n, 1),
             *out = engine_new("act", NULL, n * 2);
        void *grad = engine_new("dgate_up", NULL, 2 * n * 2);
        cuda_swiglu(out, in, rows, ff);
        engine_floats(out, got, n);
        for (size_t i = 0; i < n; i++) {
            size_t at = i / (size_t)ff * 2 * (size_t)ff + i % (size_t)ff;
            double z = (double)host[0][at];
            want[i] = (double)bf16_round(z * sigmoid(z)) * (double)host[0][at + (size_t)ff];
        }
        rounded_from("swiglu", n);
        cuda_swiglu_grad(grad, dy, in, rows, ff);
        engine_floats(grad, got, 2 * n);
        for (size_t i = 0; i < n; i++) {
            size_t at = i / (size_t)ff * 2 * (size_t)ff + i % (size_t)ff;
            double z = (double)host[0][at], up = (double)host[0][at + (size_t)ff],
                   d = (double)host[1][i], g = sigmoid(z);
            want[at] = d * up * g * (1 + z * (1 - g));
            want[at + (size_t)ff] = d * z * g;
        }
        rounded_from("swiglu_grad", 2 * n);
        engine_free(in), engine_free(dy), engine_free(out), engine_free(grad);
    }
    float edge[] = {-100, 100, -88.5f, 88.5f, 0, -300, 300, 2, 1, 1, 1, 1, 1, 1, 1, 1};
    void *in = engine_bf16("edge", edge, 16), *out = engine_new("act", NULL, 16);
    cuda_swiglu(out, in, 1, 8);
    engine_floats(out, got, 8);
    for (int i = 0; i < 8; i++) {
        double z = (double)edge[i];
        assert_true(fabs((double)got[i] - z * sigmoid(z)) <= 0.004 * fabs(z));
    }
    engine_stop();
}

static void test_rope(void **state)
{
    (void)state;
    static const struct {
        HeadShape s;
        int rows;
    } shapes[] = {{{2, 1, 64}, 5}, {{7, 1, 128}, 3}, {{14, 2, 64}, 2},
                  {{1, 1, 16}, 9}, {{3, 3, 8}, 4},   {{4, 2, 80}, 3},
                  {{5, 1, 20}, 3}, {{2, 1, 256}, 2}, {{6, 2, 24}, 4}};
    engine_start("sm_90");
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        HeadShape s = shapes[k].s;
        int rows = shapes[k].rows, ld = head_row(s), half = s.dim / 2, positions = 11;
        int32_t pos[16];
        for (int r = 0; r < rows; r++) pos[r] = (r * 7 + 3) % positions;
        void *qkv = numbers(0, (size_t)(rows * ld), 4),
             *at = engine_new("pos", pos, (size_t)rows * 4);
        void *cosines = floats(1, (size_t)(positions * half), 1),
             *sines = floats(2, (size_t)(positions * half), 1);
        for (int pass = 0; pass < 2; pass++) {
            float sign = pass ? -1.0f : 1.0f;
            cuda_rope(qkv, &(Rotation){at, cosines, sines, rows}, s, sign);
            engine_floats(qkv, got, (size_t)(rows * ld));
            for (int i = 0; i < rows * ld; i++) {
                int r = i / ld, h = i % ld / s.dim, j = i % s.dim, lower = j < half,
                    angle = pos[r] * half + j % half;
                double c = (double)host[1][angle], t = (double)host[2][angle] * (double)sign;
                double x = (double)host[0][i], other = (double)host[0][lower ? i + half : i - half];
                want[i] = h >= s.heads + s.kv_heads ? x
                          : lower                   ? x * c - other * t
                                                    : x * c + other * t;
            }
            for (int i = 0; i < rows * ld; i++)
                if (fabs((double)got[i] - want[i]) > HALF_STEP * fabs(want[i]) + 1e-6)
                    fail_msg("rope, heads of %d, pass %d: number %d is %g, %g expected", s.dim,
                             pass, i, (double)got[i], want[i]);
            memcpy(host[0], got, (size_t)(rows * ld) * 4);
        }
        engine_free(qkv), engine_free(at), engine_free(cosines), engine_free(sines);
    }
    engine_stop();
}

static void test_embed(void **state)
{
    (void)state;
    static const int widths[] = {8, 64, 896, 2056, 37};
    engine_start("sm_90");
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        int n = widths[k], ids[] = {4, 0, 6, 4, 3};
        void *table = numbers(0, (size_t)(7 * n), 1),
             *x = engine_new("x", NULL, (size_t)(5 * n) * 4);
        void *d = engine_new("ids", ids, sizeof ids);
        cuda_embed(x, table, d, 5, n);
        engine_get(x, got, (size_t)(5 * n) * 4);
        for (int i = 0; i < 5 * n; i++) want[i] = (double)host[0][ids[i / n] * n + i % n];
        close_to("embed", (size_t)(5 * n), 0);
        engine_free(table), engine_free(x), engine_free(d);
    }
    engine_stop();
}

/* ---- sums ---- */

static void test_bias_grad(void **state)
{
    (void)state;
    static const struct {
        int rows, n;
    } shapes[] = {{1, 8}, {3, 37}, {70, 264}, {200, 40}, {9000, 8}, {129, 257}};
    engine_start("sm_90");
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        int rows = shapes[k].rows, n = shapes[k].n;
        void *dy = numbers(0, (size_t)(rows * n), 1), *db = floats(1, (size_t)n, 1);
        cuda_bias_grad(db, dy, rows, n);
        engine_get(db, got, (size_t)n * 4);
        for (int i = 0; i < n; i++) want[i] = (double)host[1][i];
        for (int i = 0; i < rows * n; i++) want[i % n] += (double)host[0][i];
        for (int i = 0; i < n; i++)
            if (fabs((double)got[i] - want[i]) > 1e-6 * rows)
                fail_msg("bias_grad[%d] of %d rows: %g, %g expected", i, rows, (double)got[i],
                         want[i]);
        engine_free(dy), engine_free(db);
    }
    engine_stop();
}

static void test_embed_grad(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 2, 5, 5, 0, 2, 5, 6, 5, 5, 5, 5,
                                  5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    enum { ROWS = sizeof ids / sizeof *ids, VOCAB = 8 };
    static const int widths[] = {8, 64, 264, 896, 37};
    int32_t order[ROWS], run[VOCAB + 1] = {0}; /* a run for every id, so that some are empty */
    int n_order = 0;
    for (int id = 0; id < VOCAB; id++) {
        for (int r = 0; r < ROWS; r++)
            if (ids[r] == id) order[n_order++] = r;
        run[id + 1] = n_order;
    }
    engine_start("sm_90");
    BatchView b = {.rows = ROWS,
                   .ids = engine_new("ids", ids, sizeof ids),
                   .order = engine_new("order", order, sizeof order),
                   .run = engine_new("run", run, sizeof run),
                   .runs = VOCAB};
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        int n = widths[k];
        void *dx = numbers(0, (size_t)(ROWS * n), 1), *table = floats(1, (size_t)(VOCAB * n), 1);
        cuda_embed_grad(table, dx, &b, n);
        engine_get(table, got, (size_t)(VOCAB * n) * 4);
        for (int i = 0; i < VOCAB * n; i++) want[i] = (double)host[1][i];
        for (int i = 0; i < ROWS * n; i++) want[ids[i / n] * n + i % n] += (double)host[0][i];
        for (int i = 0; i < VOCAB * n; i++)
            if (fabs((double)got[i] - want[i]) > 4e-6)
                fail_msg("embed_grad[%d] of %d: %g, %g expected", i, n, (double)got[i], want[i]);
        engine_free(dx), engine_free(table);
    }
    engine_stop();
}

static void test_sum_squares(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 16384, 16385, 50000, MAX};
    engine_start("sm_90");
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int off = 0; off < 2; off++) {
            size_t n = sizes[k] - (sizes[k] == MAX ? (size_t)off : 0);
            char *x = floats(0, n + (size_t)off, 1e5f);
            double sum = 0, first = cuda_sum_squares((float *)(void *)(x + 4 * off), n);
            for (size_t i = 0; i < n; i++)
                sum += (double)host[0][i + (size_t)off] * (double)host[0][i + (size_t)off];
            if (fabs(first - sum) > 1e-6 * sum)
                fail_msg("sum_squares of %zu: %.12g, %.12g expected", n, first, sum);
            assert_true(first == cuda_sum_squares((float *)(void *)(x + 4 * off), n));
            engine_free(x);
        }
    engine_stop();
}

/* ---- loss ---- */

static void cross_entropy_case(int rows, int vocab, float spread)
{
    size_t all = (size_t)rows * (size_t)vocab;
    void *logits = floats(0, all, spread), *lse = engine_new("lse", NULL, (size_t)rows * 4);
    void *logp = engine_new("logp", NULL, (size_t)rows * 4);
    int32_t target[8];
    float weight[8] = {0.5f, -1.25f, 0, 2, 1e-3f, 1, 0, -3}, back[8];
    double sums[8];
    for (int r = 0; r < rows; r++) target[r] = r == 1 ? -1 : r == 3 ? vocab - 1 : r * 37 % vocab;
    void *ids = engine_new("target", target, (size_t)rows * 4),
         *weights = engine_new("weight", weight, (size_t)rows * 4);
    const Logits l = {logits, ids, rows, vocab};
    cuda_cross_entropy(logp, lse, &l);
    engine_get(lse, got, (size_t)rows * 4), engine_get(logp, back, (size_t)rows * 4);
    for (int r = 0; r < rows; r++) {
        const float *z = host[0] + (size_t)r * (size_t)vocab;
        double top = -1e300, sum = 0;
        for (int i = 0; i < vocab; i++) top = fmax(top, (double)z[i]);
        for (int i = 0; i < vocab; i++) sum += exp((double)z[i] - top);
        sums[r] = top + log(sum);
        double expected = target[r] < 0 ? 0 : (double)z[target[r]] - sums[r],
               bound = 3e-7 * ((double)spread + 20);
        if (!(fabs((double)got[r] - sums[r]) <= bound))
            fail_msg("lse of %d: %.9g, %.9g expected", vocab, (double)got[r], sums[r]);
        if (!(fabs((double)back[r] - expected) <= bound))
            fail_msg("logp of %d: %.9g, %.9g expected", vocab, (double)back[r], expected);
    }
    cuda_cross_entropy_grad(logits, lse, weights, &l);
    uint16_t *bits = memory_array(2 * all, 2);
    engine_get(logits, bits, 4 * all);
    for (int r = 0; r < rows; r++) {
        const float *z = host[0] + (size_t)r * (size_t)vocab;
        double w = target[r] < 0 ? 0 : (double)weight[r], zero = 0;
        for (int i = 0; i < vocab; i++) {
            want[i] = w * ((i == target[r]) - exp((double)z[i] - sums[r]));
            got[i] = bf16_to(bits[2 * (size_t)r * (size_t)vocab + (size_t)i]);
            zero += fabs((double)got[i]);
            if (!(fabs((double)got[i] - want[i]) <=
                  (HALF_STEP + 3e-6 * (double)spread) * fabs(want[i]) + 1e-30))
                fail_msg("cross_entropy_grad of %d, row %d: number %d is %g, %g expected", vocab, r,
                         i, (double)got[i], want[i]);
        }
        assert_true(vocab == 1 || (w != 0) == (zero > 0));
    }
    free(bits);
    engine_free(logits), engine_free(lse), engine_free(logp), engine_free(ids),
        engine_free(weights);
}

static void test_cross_entropy(void **state)
{
    (void)state;
    engine_start("sm_90");
    cross_entropy_case(8, 32, 4);
    cross_entropy_case(8, 260, 10);
    cross_entropy_case(5, 8192, 3);
    cross_entropy_case(4, 8196, 3);
    cross_entropy_case(3, 24580, 12);
    cross_entropy_case(1, 81920, 20); /* ten rounds of a block */
    cross_entropy_case(8, 1001, 10);  /* rows that are not aligned */
    cross_entropy_case(2, 9001, 50);
    cross_entropy_case(5, 260, 400); /* differences that must not overflow the exponential */
    cross_entropy_case(4, 4, 1);
    cross_entropy_case(4, 1, 1000);
    engine_stop();
}

/* ---- AdamW ---- */

static const AdamStep adam = {.lr = 0.01,
                              .beta1 = 0.9,
                              .beta2 = 0.99,
                              .eps = 1e-6,
                              .decay = 0.1,
                              .scale = 0.25,
                              .correct1 = 1 - 0.9 * 0.9,
                              .correct2 = 1 - 0.99 * 0.99,
                              .seed = 99};

/* AdamW of weight w, gradient g and moments; returns the new weight. */
static double adam_one(double w, double g, double *m, double *v)
{
    double d = g * adam.scale;
    *m = adam.beta1 * *m + (1 - adam.beta1) * d;
    *v = adam.beta2 * *v + (1 - adam.beta2) * d * d;
    return w - adam.lr * adam.decay * w -
           adam.lr * *m / adam.correct1 / (sqrt(*v / adam.correct2) + adam.eps);
}

static void test_adamw(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 8, 37, 2048, 5000, 2048 * 3};
    engine_start("sm_90");
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k];
        void *p = engine_new("p", NULL, n * 2), *w = floats(0, n, 2), *g = floats(1, n, 4),
             *m = floats(2, n, 1), *v;
        for (size_t i = 0; i < n; i++) host[3][i] = (float)(i % 5) * 0.3f;
        v = engine_new("v", host[3], n * 4);
        cuda_adamw(&(AdamSlice){p, w, g, m, v, n}, &adam);
        double *ms = memory_array(n, sizeof *ms), *vs = memory_array(n, sizeof *vs);
        for (size_t i = 0; i < n; i++) {
            ms[i] = (double)host[2][i], vs[i] = (double)host[3][i];
            want[i] = adam_one((double)host[0][i], (double)host[1][i], &ms[i], &vs[i]);
        }
        engine_get(w, got, n * 4);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)got[i] - want[i]) <= 1e-6 * (1 + fabs(want[i])));
        engine_floats(p, host[5], n);
        for (size_t i = 0; i < n; i++) assert_true(host[5][i] == bf16_round((double)got[i]));
        engine_get(m, got, n * 4);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)got[i] - ms[i]) <= 1e-6 * (1 + fabs(ms[i])));
        engine_get(v, got, n * 4);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)got[i] - vs[i]) <= 1e-6 * (1 + fabs(vs[i])));
        engine_get(g, got, n * 4);
        for (size_t i = 0; i < n; i++) assert_true(got[i] == 0);
        free(ms), free(vs);
        engine_free(p), engine_free(w), engine_free(g), engine_free(m), engine_free(v);
    }
    engine_stop();
}

/* Returns whether x is between the bf16 number and an adjacent one, within the precision of
 * fp32. */
static int adjacent(float number, double x)
{
    uint16_t h = bf16_from((double)number);
    double step = fabs((double)bf16_to((uint16_t)(h + 1)) - (double)number);
    return fabs((double)number - x) < step * 1.001 + 2e-8;
}

/* A stochastically rounded number is one of the two nearest, and the mean is exact. */
static void test_adamw_lean(void **state)
{
    (void)state;
    static const size_t sizes[] = {5, 64, 8195, 20000};
    engine_start("sm_90");
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k];
        int constant = k == 3; /* the same numbers everywhere */
        for (size_t i = 0; i < n; i++)
            for (int j = 0; j < 4; j++)
                host[j][i] = constant ? (const float[]){1.7f, 0.33f, 0.21f, 0.05f}[j]
                                      : fabsf(engine_random(&seed)) + 0.01f;
        void *p = engine_bf16("p", host[0], n), *g = engine_new("g", host[1], n * 4);
        void *m = engine_bf16("m", host[2], n), *v = engine_bf16("v", host[3], n);
        AdamStep s = adam;
        s.lean = 1;
        cuda_adamw(&(AdamSlice){p, NULL, g, m, v, n}, &s);
        static float out[3][MAX];
        engine_floats(p, out[0], n), engine_floats(m, out[1], n), engine_floats(v, out[2], n);
        double mean[3] = {0}, exact[3] = {0}, steps[3] = {0};
        for (size_t i = 0; i < n; i++) {
            double a = (double)host[2][i], b = (double)host[3][i],
                   w = adam_one((double)host[0][i], (double)host[1][i], &a, &b);
            const double values[] = {w, a, b};
            for (int j = 0; j < 3; j++) {
                if (!adjacent(out[j][i], values[j]))
                    fail_msg("%g became %g, of %zu", values[j], (double)out[j][i], n);
                mean[j] += (double)out[j][i] / (double)n, exact[j] = values[j];
                steps[j] = ldexp(1, ilogb(values[j]) - 7);
            }
        }
        for (int j = 0; j < 3 && constant;
             j++) /* the standard error is a step / 2 / sqrt(n): allow four of it */
            if (fabs(mean[j] - exact[j]) > 2 * steps[j] / sqrt((double)n))
                fail_msg("the mean of %d is %g, %g expected", j, mean[j], exact[j]);
        engine_get(g, got, n * 4);
        for (size_t i = 0; i < n; i++) assert_true(got[i] == 0);
        engine_free(p), engine_free(g), engine_free(m), engine_free(v);
    }
    engine_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),         cmocka_unit_test(test_swiglu),
        cmocka_unit_test(test_rope),        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_bias_grad),   cmocka_unit_test(test_embed_grad),
        cmocka_unit_test(test_sum_squares), cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_adamw),       cmocka_unit_test(test_adamw_lean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
