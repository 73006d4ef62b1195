/* Tolerances are calibrated: for every task the largest error of honest float32 arithmetic (several
 * orders of summation, with and without FMA, exp by way of exp2) uses at most half of what is
 * allowed, and not so little that the rest would hide work left out; factors rounded to TF32 or
 * bfloat16 go well beyond it. Prints a table of the errors; docs/tasks.md has the
 * rule. tests/shell/derive.t runs it: drive_tolerances FOLDER, which has the same tasks as quern-derive
 * writes them of graphs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tasks/task.h"
#include "tests/fixture_path.h"

typedef enum { SEQUENTIAL, PAIRWISE, LANES_32, LANES_256, ORDERS } Order;
typedef enum { FULL, TF32, BFLOAT } Factors;

typedef struct {
    Order order;
    int fma;
    int other;       /* the other usual formula: exp2, variance in one pass, 1 / sqrt */
    Factors factors; /* what inputs are rounded to before anything else */
} Way;

typedef void Kernel(const int64_t *axis, float **in, float *out, const Way *way);

static TaskSet set, derived;

/* ---- honest arithmetic in float32 ---- */

static float narrow(float x, Factors to)
{
    uint32_t bits, cut = to == TF32 ? 13 : 16;
    if (to == FULL) return x;
    memcpy(&bits, &x, sizeof bits);
    bits += (1u << (cut - 1)) - 1 + (bits >> cut & 1);
    bits &= ~((1u << cut) - 1);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static float add_product(float sum, float a, float b, int fma)
{
    if (fma) return fmaf(a, b, sum);
    volatile float product = a * b; /* a rounding of its own, whatever the compiler contracts */
    return sum + product;
}

static float pairwise(const float *a, const float *b, int64_t n, int64_t step)
{
    if (n == 1) return b ? a[0] * b[0] : a[0];
    return pairwise(a, b, n / 2, step) +
           pairwise(a + n / 2, b ? b + n / 2 * step : NULL, n - n / 2, step);
}

/* The sum of a[i] * b[i * step], or of a[i] where b is NULL. */
static float sum(const float *a, const float *b, int64_t n, int64_t step, const Way *way)
{
    static const int lanes[ORDERS] = {1, 1, 32, 256}; /* powers of two: & takes the place of % */
    float lane[256] = {0};
    int width = lanes[way->order], mask = width - 1;
    if (way->order == PAIRWISE) return pairwise(a, b, n, step);
    for (int64_t i = 0; i < n; i++)
        lane[i & mask] =
            b ? add_product(lane[i & mask], a[i], b[i * step], way->fma) : lane[i & mask] + a[i];
    for (int half = width / 2; half; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

static float exponential(float x, const Way *way)
{
    return way->other ? exp2f(x * 1.44269504f) : expf(x);
}

static void do_relu(const int64_t *axis, float **in, float *out, const Way *way)
{
    (void)way;
    for (int64_t i = 0; i < axis[0]; i++) out[i] = fmaxf(in[0][i], 0);
}

static void do_gelu(const int64_t *axis, float **in, float *out, const Way *way)
{
    for (int64_t i = 0; i < axis[0]; i++) {
        float x = in[0][i], t = x * 0.70710678f;
        out[i] = way->other ? x * (0.5f + 0.5f * erff(t)) : 0.5f * x * (1 + erff(t));
    }
}

static void do_row_sum(const int64_t *axis, float **in, float *out, const Way *way)
{
    for (int64_t r = 0; r < axis[0]; r++) out[r] = sum(in[0] + r * axis[1], NULL, axis[1], 1, way);
}

static void do_transpose(const int64_t *axis, float **in, float *out, const Way *way)
{
    (void)way;
    for (int64_t r = 0; r < axis[0]; r++)
        for (int64_t c = 0; c < axis[1]; c++) out[c * axis[0] + r] = in[0][r * axis[1] + c];
}

static void do_diag(const int64_t *axis, float **in, float *out, const Way *way)
{
    (void)way;
    for (int64_t i = 0; i < axis[0] * axis[1]; i++) out[i] = in[0][i / axis[1]] * in[1][i];
}

static void softmax_row(const float *x, float *y, int64_t n, const Way *way)
{
    float max = x[0];
    for (int64_t c = 1; c < n; c++) max = fmaxf(max, x[c]);
    for (int64_t c = 0; c < n; c++) y[c] = exponential(x[c] - max, way);
    float total = sum(y, NULL, n, 1, way), inverse = 1 / total;
    for (int64_t c = 0; c < n; c++) y[c] = way->other ? y[c] * inverse : y[c] / total;
}

static void do_softmax(const int64_t *axis, float **in, float *out, const Way *way)
{
    for (int64_t r = 0; r < axis[0]; r++)
        softmax_row(in[0] + r * axis[1], out + r * axis[1], axis[1], way);
}

static void do_layernorm(const int64_t *axis, float **in, float *out, const Way *way)
{
    int64_t n = axis[1];
    for (int64_t r = 0; r < axis[0]; r++) {
        const float *x = in[0] + r * n;
        float *y = out + r * n, mean = sum(x, NULL, n, 1, way) / (float)n;
        for (int64_t c = 0; c < n; c++) y[c] = x[c] - mean;
        float var = way->other ? sum(x, x, n, 1, way) / (float)n - mean * mean
                               : sum(y, y, n, 1, way) / (float)n;
        for (int64_t c = 0; c < n; c++) {
            float unit = way->other ? y[c] * (1 / sqrtf(var + 1e-5f)) : y[c] / sqrtf(var + 1e-5f);
            out[r * n + c] = add_product(in[2][c], unit, in[1][c], way->fma);
        }
    }
}

static void do_rmsnorm(const int64_t *axis, float **in, float *out, const Way *way)
{
    int64_t n = axis[1];
    for (int64_t r = 0; r < axis[0]; r++) {
        float *y = out + r * n;
        for (int64_t c = 0; c < n; c++) y[c] = in[0][r * n + c] + in[1][r * n + c];
        float mean = sum(y, y, n, 1, way) / (float)n, root = sqrtf(mean + 1e-6f);
        for (int64_t c = 0; c < n; c++)
            y[c] = way->other ? y[c] * (1 / root) * in[2][c] : y[c] / root * in[2][c];
    }
}

static void do_matmul(const int64_t *axis, float **in, float *out, const Way *way)
{
    for (int64_t i = 0; i < axis[0]; i++)
        for (int64_t j = 0; j < axis[1]; j++)
            out[i * axis[1] + j] = sum(in[0] + i * axis[2], in[1] + j, axis[2], axis[1], way);
}

static void do_matmul_bias_relu(const int64_t *axis, float **in, float *out, const Way *way)
{
    do_matmul(axis, in, out, way);
    for (int64_t i = 0; i < axis[0] * axis[1]; i++) out[i] = fmaxf(out[i] + in[2][i % axis[1]], 0);
}

static void do_attention(const int64_t *axis, float **in, float *out, const Way *way)
{
    int64_t seq = axis[1], dim = axis[2];
    float *p = memory_array((size_t)seq, sizeof *p), scale = 1 / sqrtf((float)dim);
    for (int64_t i = 0; i < axis[0] * seq; i++) {
        const float *q = in[0] + i * dim, *k = in[1] + i / seq * seq * dim,
                    *v = in[2] + i / seq * seq * dim;
        for (int64_t j = 0; j <= i % seq; j++) p[j] = sum(q, k + j * dim, dim, 1, way) * scale;
        softmax_row(p, p, i % seq + 1, way);
        for (int64_t e = 0; e < dim; e++) out[i * dim + e] = sum(p, v + e, i % seq + 1, dim, way);
    }
    free(p);
}

/* ---- one case, one way ---- */

typedef struct {
    const char *name;
    Kernel *kernel;
    int sums;         /* has sums: orders matter, and narrow factors must show */
    int64_t large[4]; /* a workload with the depth of the one that a GPU times, 0: none */
} Model;

static const Model models[] = {
    {"relu", do_relu, 0, {0}},
    {"transpose", do_transpose, 0, {0}},
    {"diag_matmul", do_diag, 0, {0}},
    {"gelu", do_gelu, 0, {1 << 19}},
    {"row_sum", do_row_sum, 1, {256, 4096}},
    {"softmax", do_softmax, 1, {16, 4096}},
    {"layernorm", do_layernorm, 1, {16, 4096}},
    {"residual_rmsnorm", do_rmsnorm, 1, {16, 4096}},
    {"matmul", do_matmul, 1, {48, 48, 2048}},
    {"matmul_bias_relu", do_matmul_bias_relu, 1, {48, 48, 2048}},
    {"attention", do_attention, 1, {1, 256, 64}},
};

typedef struct {
    double honest[VARIANTS], tf32, bfloat; /* largest error, as a part of the tolerance */
    double error;                          /* largest of an honest result */
} Found;

typedef struct {
    Task *task;
    const Workload *w;
    Variant variant;
    double scale;
    Tolerance by;
    size_t in_n[TASK_MAX_TENSORS], n;
    float *in[TASK_MAX_TENSORS];
    double *want;
} Example;

static void example_init(Example *x, Task *t, const Workload *w, Variant v, double scale)
{
    Error err;
    double *wide[TASK_MAX_TENSORS];
    *x = (Example){.task = t, .w = w, .variant = v, .scale = scale};
    for (int i = 0; i < t->n_inputs; i++) {
        if (task_elements(t, w, &t->inputs[i], &x->in_n[i], &err)) fail_msg("%s", err.text);
        x->in[i] = memory_array(x->in_n[i], sizeof(float));
        wide[i] = memory_array(x->in_n[i], sizeof(double));
        if (task_draw(&(TaskCase){t, w, v, 5, scale}, i, x->in[i], &err)) fail_msg("%s", err.text);
        /* Small tensors are drawn on a grid of 2^-16, where many sums are exact: fill the
         * mantissas. */
        for (size_t j = 0; j < x->in_n[i] && v != VARIANT_INTEGERS && v != VARIANT_SPECIAL; j++)
            x->in[i][j] *= 0.9f;
        dtype_to_double(DTYPE_F32, x->in[i], wide[i], x->in_n[i]);
    }
    if (task_elements(t, w, &t->outputs[0], &x->n, &err) ||
        task_tolerance(&(TaskCase){t, w, v, 0, scale}, 0, &x->by, &err))
        fail_msg("%s", err.text);
    x->want = memory_array(x->n, sizeof(double));
    if (task_reference(t, w, (const double *const *)wide, &x->want, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < t->n_inputs; i++) free(wide[i]);
}

static void example_release(Example *x)
{
    for (int i = 0; i < x->task->n_inputs; i++) free(x->in[i]);
    free(x->want);
}

/* The largest error in tolerances; an allowance of nothing is met exactly or not at all. */
static double used(const Example *x, const float *got, double *error)
{
    double upper = 0;
    for (size_t i = 0; i < x->n; i++) {
        double d = fabs((double)got[i] - x->want[i]),
               limit = x->by.atol + x->by.rtol * fabs(x->want[i]);
        if ((double)got[i] == x->want[i] || (isnan(got[i]) && isnan(x->want[i]))) continue;
        if (isnan(d) || limit == 0) return INFINITY;
        if (d > *error) *error = d;
        if (d / limit > upper) upper = d / limit;
    }
    return upper;
}

static double run_way(const Example *x, const Model *m, Way way, double *error)
{
    float *in[TASK_MAX_TENSORS], *out = memory_array(x->n, sizeof *out);
    for (int i = 0; i < x->task->n_inputs; i++) {
        in[i] = memory_array(x->in_n[i], sizeof(float));
        for (size_t j = 0; j < x->in_n[i]; j++) in[i][j] = narrow(x->in[i][j], way.factors);
    }
    m->kernel(x->w->axis, in, out, &way);
    double part = used(x, out, error);
    for (int i = 0; i < x->task->n_inputs; i++) free(in[i]);
    free(out);
    return part;
}

static void measure(Task *t, const Model *m, const Workload *w, Variant v, double scale,
                    Found *found)
{
    Example x;
    double unused = 0;
    example_init(&x, t, w, v, scale);
    for (Order order = 0; order < (m->sums ? ORDERS : 1); order++)
        for (int style = 0; style < 4; style++) {
            double part = run_way(&x, m, (Way){order, style & 1, style >> 1, FULL},
                                  scale == 1.0 && v == VARIANT_DRAWN ? &found->error : &unused);
            if (part > found->honest[v]) found->honest[v] = part;
        }
    if (v == VARIANT_DRAWN) {
        double tf32 = run_way(&x, m, (Way){LANES_32, 1, 0, TF32}, &unused),
               bfloat = run_way(&x, m, (Way){LANES_32, 1, 0, BFLOAT}, &unused);
        if (tf32 > found->tf32) found->tf32 = tf32;
        if (bfloat > found->bfloat) found->bfloat = bfloat;
    }
    example_release(&x);
}

static void measure_task(Task *t, const Model *m, Found *found)
{
    static const double scales[] = {1.0, 8.0, 0.125};
    Workload large = {.role = ROLE_CHECK, .atol = task_workload(t, ROLE_TIME)->atol};
    memcpy(large.axis, m->large, sizeof m->large);
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        if (w->role != ROLE_CHECK) continue;
        for (int s = 0; s < 3; s++) measure(t, m, w, VARIANT_DRAWN, scales[s], found);
        for (Variant v = VARIANT_NEEDLES; v < VARIANTS; v++)
            if (task_has_variant(t, w, v)) measure(t, m, w, v, 1.0, found);
    }
    if (m->large[0]) measure(t, m, &large, VARIANT_DRAWN, 1.0, found);
    if (m->large[0]) measure(t, m, &large, VARIANT_NEEDLES, 1.0, found);
}

static void test_calibrated(void **state)
{
    (void)state;
    int bad = 0;
    print_message("# task | honest error at scale 1 | honest, part of the tolerance | needles | "
                  "special | integers | TF32 | bfloat16\n");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const Model *m = &models[i];
        Task *t = taskset_find(&set, m->name, strlen(m->name));
        Found f = {.error = 0};
        assert_non_null(t);
        measure_task(t, m, &f);
        print_message("# %s | %.2g | %.3f | %.3f | %.3f | %.3f | %.3g | %.3g\n", m->name, f.error,
                      f.honest[VARIANT_DRAWN], f.honest[VARIANT_NEEDLES], f.honest[VARIANT_SPECIAL],
                      f.honest[VARIANT_INTEGERS], f.tf32, f.bfloat);
        for (Variant v = 0; v < VARIANTS; v++) bad += !(f.honest[v] <= 0.5);
        if (m->sums)
            bad += !(f.honest[VARIANT_DRAWN] >= 1 / 30.0) + !(f.tf32 >= 4) + !(f.bfloat >= 30);
    }
    if (bad) fail_msg("%d tolerances are too loose or too tight: see the table", bad);
}

/* The tolerances that tasks/derive finds for the same tasks as graphs: its honest variants stand for
 * these kernels, so that none of them exceeds the tolerance, and narrow factors do. */
static void test_derived(void **state)
{
    (void)state;
    int bad = 0;
    print_message(
        "# derived | honest, part of the tolerance | needles | special | TF32 | bfloat16\n");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const Model *m = &models[i];
        Task *t = taskset_find(&derived, m->name, strlen(m->name));
        Found f = {.error = 0};
        assert_non_null(t);
        measure_task(t, m, &f);
        print_message("# %s | %.3f | %.3f | %.3f | %.3g | %.3g\n", m->name, f.honest[VARIANT_DRAWN],
                      f.honest[VARIANT_NEEDLES], f.honest[VARIANT_SPECIAL], f.tf32, f.bfloat);
        for (Variant v = 0; v < VARIANTS; v++) bad += !(f.honest[v] <= 1);
        if (m->sums) bad += !(f.tf32 >= 4) + !(f.bfloat >= 30);
    }
    if (bad) fail_msg("%d tolerances are too loose or too tight: see the table", bad);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calibrated),
                                       cmocka_unit_test(test_derived)};
    Error err;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (argc != 2 || taskset_load(fixture_path("tasks"), NULL, &set, &err) ||
        taskset_load(argv[1], NULL, &derived, &err))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    taskset_release(&set);
    taskset_release(&derived);
    return failed;
}
