/* RMSNorm and its gradient on the simulator, against double precision on the same inputs. Where
 * transformers rounds between two steps, the reference does too: only the last rounding remains,
 * 2^-8 of a number. */
#include "model/cuda/sums.h"
#include "tests/unit/eval/engine/engine_numbers.h"

/* groups 0: rows of the residual stream, which are float; else heads. */
typedef struct {
    int rows, groups, n, ld;
} NormShape;

static const NormShape norm_shapes[] = {
    {5, 0, 64, 64},    {3, 3, 64, 320},    {7, 5, 128, 1152},  {9, 2, 80, 168},
    {11, 3, 16, 64},   {70, 4, 8, 40},     {3, 0, 256, 256},   {5, 0, 896, 896},
    {21, 0, 320, 320}, {3, 0, 1024, 1024}, {3, 0, 1032, 1032}, {4, 0, 3584, 3584},
    {3, 1, 256, 264},  {2, 2, 320, 640},   {2, 0, 8200, 8200}, {2, 0, 12288, 12288},
    {3, 2, 37, 75},    {70, 0, 8, 8},      {3, 2, 38, 78},     {2, 0, 1001, 1001},
    {3, 2, 64, 131},   {3, 0, 38, 38},     {9, 0, 168, 168},   {2, 0, 16384, 16384},
    {1, 0, 8191, 8191}};
/* Where rows share a word, the simulator reports a race between adjacent accesses that read and
 * write it. */
#define ODD(k) ((norm_shapes[k].n | norm_shapes[k].ld) & 1)
enum { NORM_SHAPES = sizeof norm_shapes / sizeof *norm_shapes };
static const float EPS = 1e-3f;

/* x of the residual stream has floats that are not bf16 numbers. */
static void *norm_input(const NormShape *s, float size)
{
    size_t all = (size_t)s->rows * (size_t)s->ld;
    return s->groups ? numbers(0, all, size) : floats(0, all, size);
}

static int groups_of(const NormShape *s)
{
    return s->groups ? s->groups : 1;
}

static void norm_name(char (*what)[64], const char *op, const NormShape *s)
{
    snprintf(*what, sizeof *what, "%s of %d x %d x %d, rows %d apart", op, s->rows, s->groups, s->n,
             s->ld);
}

static double inverse_rms(const float *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return 1 / sqrt(sum / n + (double)EPS);
}

static void test_rmsnorm(void **state)
{
    (void)state;
    seed = 9740384467461837450u; /* operands without ties in the inner rounding */
    engine_start("sm_90");
    for (int k = 0; k < NORM_SHAPES; k++)
        for (int in_place = 0; in_place < (norm_shapes[k].groups && !ODD(k) ? 2 : 1); in_place++) {
            const NormShape *s = &norm_shapes[k];
            int rows = s->rows, groups = groups_of(s), n = s->n, ld = s->ld;
            size_t all = (size_t)rows * (size_t)ld;
            void *x = norm_input(s, k % 2 ? 0.05f : 5), *w = numbers(1, (size_t)n, 2), *y = x;
            if (!in_place) y = numbers(2, all, 1);
            (s->groups ? cuda_head_norm : cuda_rmsnorm)(y, &(Norm){x, w, rows, groups, n, ld, EPS});
            engine_floats(y, got, all);
            for (size_t i = 0; i < all; i++) want[i] = (double)host[in_place ? 0 : 2][i];
            for (int v = 0; v < rows * groups; v++) {
                size_t at = (size_t)(v / groups) * (size_t)ld + (size_t)(v % groups) * (size_t)n;
                double inverse = inverse_rms(host[0] + at, n);
                for (int i = 0; i < n; i++)
                    want[at + (size_t)i] =
                        (double)bf16_round((double)host[0][at + (size_t)i] * inverse) *
                        (double)host[1][i];
            }
            char what[64];
            norm_name(&what, "norm", s);
            rounded_from(what, all);
            engine_free(x), engine_free(w);
            if (!in_place) engine_free(y);
        }
    engine_stop();
}

/* One shape: dx in its own array (0), added to (1), or in place of dy (2). */
static void rmsnorm_grad_case(int k, int how, int with_dw)
{
    const NormShape *s = &norm_shapes[k];
    int rows = s->rows, groups = groups_of(s), n = s->n, ld = s->ld, add = how == 1;
    size_t all = (size_t)rows * (size_t)ld;
    void *x = norm_input(s, 3), *w = numbers(1, (size_t)n, 2), *dy = numbers(2, all, 1),
         *dx = how == 2 ? dy : numbers(3, all, 1);
    const float *before = host[how == 2 ? 2 : 3];
    void *dw = floats(4, (size_t)n, 1);
    const Norm norm = {x, w, rows, groups, n, ld, EPS};
    if (s->groups)
        cuda_head_norm_grad(dx, with_dw ? dw : NULL, dy, &norm);
    else
        cuda_rmsnorm_grad(dx, add, with_dw ? dw : NULL, dy, &norm);
    engine_floats(dx, got, all);
    for (size_t i = 0; i < all; i++) want[i] = (double)before[i];
    double *sums = memory_array((size_t)n, sizeof *sums),
           *sizes = memory_array((size_t)n, sizeof *sizes);
    for (int v = 0; v < rows * groups; v++) {
        size_t at = (size_t)(v / groups) * (size_t)ld + (size_t)(v % groups) * (size_t)n;
        double r = inverse_rms(host[0] + at, n), mean = 0;
        for (int i = 0; i < n; i++) {
            double d = (double)host[2][at + (size_t)i], value = (double)host[0][at + (size_t)i];
            mean += d * (double)host[1][i] * value / n;
            sums[i] += d * value * r, sizes[i] += fabs(d * value * r);
        }
        for (int i = 0; i < n; i++) {
            size_t j = at + (size_t)i;
            double out =
                r * (double)host[2][j] * (double)host[1][i] - (double)host[0][j] * r * r * r * mean;
            want[j] = add ? (double)before[j] + out : out;
        }
    }
    char what[64];
    norm_name(&what, how == 2 ? "gradient in place" : add ? "gradient added" : "gradient", s);
    rounded_from(what, all);
    engine_get(dw, got, (size_t)n * 4);
    for (int i = 0; i < n; i++) {
        double expected = (double)host[4][i] + (with_dw ? sums[i] : 0);
        if (!(fabs((double)got[i] - expected) <= 2e-6 * (sizes[i] + 1) * with_dw))
            fail_msg("%s: dw[%d] is %g, %g expected", what, i, (double)got[i], expected);
    }
    free(sums), free(sizes);
    engine_free(x), engine_free(w), engine_free(dy), engine_free(dw);
    if (how != 2) engine_free(dx);
}

static void test_rmsnorm_grad(void **state)
{
    (void)state;
    engine_start("sm_90");
    for (int k = 0; k < NORM_SHAPES; k++)
        for (int how = 0; how < (ODD(k) ? 1 : 3); how++)
            if (how != 1 || !norm_shapes[k].groups) rmsnorm_grad_case(k, how, (k + how) % 3 != 0);
    engine_stop();
}

/* Blocks with several rounds, as large batches have, and fewer rounds in the last block. */
static void test_rmsnorm_grad_rounds(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int rows, groups, n, lanes, each, threads; /* lanes 0: one block per vector */
    } cases[] = {{"head_norm_grad_team", 50, 3, 8, 1, 64, 32},
                 {"head_norm_grad_team", 23, 5, 40, 8, 24, 64},
                 {"head_norm_grad_any", 11, 2, 38, 0, 5, 32},
                 {"rmsnorm_grad_team1", 150, 1, 8, 1, 64, 32},
                 {"rmsnorm_grad_team1", 115, 1, 40, 8, 24, 64},
                 {"rmsnorm_grad_team4", 31, 1, 264, 32, 12, 64},
                 {"rmsnorm_grad_team4", 21, 1, 896, 32, 8, 128},
                 {"rmsnorm_grad_block", 10, 1, 1032, 0, 4, 96},
                 {"rmsnorm_grad_block", 15, 1, 3584, 0, 7, 224},
                 {"rmsnorm_grad_any", 22, 1, 38, 0, 5, 32}};
    engine_start("sm_90");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int rows = cases[k].rows, groups = cases[k].groups, n = cases[k].n, ld = groups * n,
            lanes = cases[k].lanes, add = 0;
        unsigned count = (unsigned)(rows * groups), each = (unsigned)cases[k].each,
                 blocks = (count + each - 1) / each;
        size_t all = count * (size_t)n;
        void *x = strncmp(cases[k].kernel, "head", 4) ? floats(0, all, 3) : numbers(0, all, 3);
        void *w = numbers(1, (size_t)n, 2), *dy = numbers(2, all, 1),
             *dx = engine_new("dx", NULL, all * 2);
        void *dw = floats(4, (size_t)n, 1),
             *parts = engine_new("parts", NULL, (size_t)blocks * (size_t)n * 4);
        float eps = EPS;
        engine_launch("norm", cases[k].kernel, (Dim3){blocks, 1, 1},
                      (Dim3){(unsigned)cases[k].threads, 1, 1},
                      lanes ? (size_t)(cases[k].threads / lanes * n) * 4 : 0,
                      (void *[]){&dx, &add, &parts, &dy, &x, &w, &count, &each, &groups, &n, &ld,
                                 &eps, &lanes});
        cuda_sum_parts(dw, parts, blocks, n);
        engine_get(dw, got, (size_t)n * 4);
        for (int i = 0; i < n; i++) want[i] = (double)host[4][i];
        for (size_t at = 0; at < all; at += (size_t)n) {
            double r = inverse_rms(host[0] + at, n);
            for (int i = 0; i < n; i++)
                want[i] += (double)host[2][at + (size_t)i] * (double)host[0][at + (size_t)i] * r;
        }
        for (int i = 0; i < n; i++)
            if (fabs((double)got[i] - want[i]) > 4e-5)
                fail_msg("%s: dw[%d] of %d: %g, %g expected", cases[k].kernel, i, n, (double)got[i],
                         want[i]);
        engine_free(x), engine_free(w), engine_free(dy), engine_free(dx), engine_free(dw),
            engine_free(parts);
    }
    engine_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_rmsnorm_grad),
        cmocka_unit_test(test_rmsnorm_grad_rounds),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
