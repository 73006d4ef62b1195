/* Tolerances of products that follow each other: at the timed sizes, running sums in float32 are within
 * them, and factors in TF32 far beyond. */
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
#include "base/random.h"
#include "tasks/derive/derive.h"

enum { ROWS = 4, WIDTH = 2048, LAYERS = 3 };

static DraftTensor tensor(const char *name, const char *a, const char *b)
{
    return (DraftTensor){.name = name,
                         .dtype = DTYPE_F32,
                         .rank = 2,
                         .shape = {a, b},
                         .has_draw = 1,
                         .draw = DRAW_NORMAL,
                         .std = 1};
}

/* Layers of WIDTH numbers. */
static Task *derived(const char *const *lines, int n)
{
    DraftAxis axes[] = {{"rows", NULL, ROWS},
                        {"a", NULL, WIDTH},
                        {"b", NULL, WIDTH},
                        {"c", NULL, WIDTH},
                        {"d", NULL, WIDTH}};
    DraftTensor inputs[] = {tensor("x", "rows", "a"), tensor("u", "b", "a"), tensor("v", "c", "b"),
                            tensor("w", "d", "c")};
    DraftTensor output = {.name = "y", .dtype = DTYPES, .rank = -1};
    Draft d = {.name = "chain",
               .level = 2,
               .n_axes = 5,
               .axes = axes,
               .n_inputs = 4,
               .inputs = inputs,
               .n_outputs = 1,
               .outputs = &output,
               .n_lines = n,
               .lines = lines};
    Error err;
    char *text;
    Task *t;
    if (derive_task(&d, &text, &err) || task_parse("chain", text, &t, &err))
        fail_msg("%s", err.text);
    free(text);
    return t;
}

static float tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* The same values exactly, by running sums in float32, and with rounded factors. */
typedef struct {
    double *exact;
    float *running, *rounded;
} Values;

static void layer(const float *weights, const Values *x, const Values *y, int relu)
{
    for (int r = 0; r < ROWS; r++)
        for (int o = 0; o < WIDTH; o++) {
            const float *w = weights + (size_t)o * WIDTH;
            double exact = 0, coarse = 0;
            float sum = 0;
            for (int i = 0; i < WIDTH; i++) {
                exact += (double)w[i] * x->exact[r * WIDTH + i];
                coarse += (double)tf32(w[i]) * (double)tf32(x->rounded[r * WIDTH + i]);
                sum = fmaf(w[i], x->running[r * WIDTH + i], sum);
            }
            int at = r * WIDTH + o;
            y->exact[at] = relu ? fmax(exact, 0) : exact;
            y->running[at] = relu ? fmaxf(sum, 0) : sum;
            y->rounded[at] = (float)(relu ? fmax(coarse, 0) : coarse);
        }
}

/* The largest errors of running sums and of rounded factors. */
static void errors(double *running, double *rounded)
{
    enum { N = ROWS * WIDTH };
    Random r;
    Values x[2];
    float *w = memory_array((size_t)WIDTH * WIDTH, sizeof *w);
    random_init(&r, 3, 0);
    for (int k = 0; k < 2; k++) {
        x[k].exact = memory_array(N, sizeof(double));
        x[k].running = memory_array(N, sizeof(float));
        x[k].rounded = memory_array(N, sizeof(float));
    }
    for (int i = 0; i < N; i++)
        x[0].exact[i] = (double)(x[0].running[i] = x[0].rounded[i] = (float)random_normal(&r));
    for (int l = 0; l < LAYERS; l++) {
        int from = l % 2, to = !from;
        for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)random_normal(&r);
        layer(w, &x[from], &x[to], l < LAYERS - 1);
    }
    *running = *rounded = 0;
    const Values *last = &x[LAYERS % 2];
    for (int i = 0; i < N; i++) {
        *running = fmax(*running, fabs((double)last->running[i] - last->exact[i]));
        *rounded = fmax(*rounded, fabs((double)last->rounded[i] - last->exact[i]));
    }
    for (int k = 0; k < 2; k++) free(x[k].exact), free(x[k].running), free(x[k].rounded);
    free(w);
}

static void test_errors_are_carried(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.linear(x, u)", "g = aten.relu(h)",
                                        "i = aten.linear(g, v)", "j = aten.relu(i)",
                                        "y = aten.linear(j, w)"};
    double running, rounded;
    Task *t = derived(lines, 5);
    double atol = task_workload(t, ROLE_TIME)->atol[AT_SCALE_1];
    errors(&running, &rounded);
    print_message("# tolerance %.3g, running sums %.3g, TF32 %.3g\n", atol, running, rounded);
    assert_true(1.5 * running < atol);
    assert_true(rounded > 4 * atol);
    task_free(t);
}

/* What bounds the size between two products carries no size on. */
static void test_bounded(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.linear(x, u)", "g = aten.tanh(h)",
                                        "i = aten.linear(g, v)", "j = aten.tanh(i)",
                                        "y = aten.linear(j, w)"};
    Task *t = derived(lines, 5);
    double atol = task_workload(t, ROLE_TIME)->atol[AT_SCALE_1];
    print_message("# tolerance %.3g\n", atol);
    assert_true(atol < 0.2);
    task_free(t);
}

/* ---- a gate between two products ---- */

enum { TOKENS = 64, INNER = 1024, NARROW = 256 };

static void fill(Random *r, float *x, int n, double size)
{
    for (int i = 0; i < n; i++) x[i] = (float)(size * (2 * random_uniform(r) - 1));
}

static DraftTensor weight(const char *name, const char *a, const char *b, double size)
{
    DraftTensor x = tensor(name, a, b);
    x.draw = DRAW_UNIFORM, x.low = -size, x.high = size;
    return x;
}

static Task *gated(void)
{
    static const char *const lines[] = {"h = aten.linear(x, u)", "a, g = aten.chunk(h, 2, -1)",
                                        "s = aten.gelu(g)", "m = aten.mul.Tensor(a, s)",
                                        "y = aten.linear(m, w)"};
    DraftAxis axes[] = {{"rows", NULL, TOKENS}, {"cols", NULL, NARROW}, {"features", NULL, NARROW}};
    DraftTensor inputs[] = {tensor("x", "rows", "cols"), weight("u", "2048", "cols", 0.0625),
                            weight("w", "features", "1024", 0.03125)};
    DraftTensor output = {.name = "y", .dtype = DTYPES, .rank = -1};
    Draft d = {.name = "gated",
               .level = 2,
               .n_axes = 3,
               .axes = axes,
               .n_inputs = 3,
               .inputs = inputs,
               .n_outputs = 1,
               .outputs = &output,
               .n_lines = 5,
               .lines = lines};
    Error err;
    char *text;
    Task *t;
    if (derive_task(&d, &text, &err) || task_parse("gated", text, &t, &err))
        fail_msg("%s", err.text);
    free(text);
    return t;
}

/* One row: y in double precision, and z by running sums in float32. */
static void gated_row(const float *x, const float *u, const float *w, double *y, double *z)
{
    double m[INNER], h[2];
    float n[INNER], k[2];
    for (int i = 0; i < INNER; i++) {
        for (int half = 0; half < 2; half++) {
            const float *of = u + (size_t)(half * INNER + i) * NARROW;
            h[half] = 0, k[half] = 0;
            for (int c = 0; c < NARROW; c++) {
                h[half] += (double)of[c] * (double)x[c];
                k[half] = fmaf(of[c], x[c], k[half]);
            }
        }
        m[i] = h[0] * 0.5 * h[1] * (1 + erf(h[1] * sqrt(0.5)));
        n[i] = k[0] * (0.5f * k[1] * (1 + erff(k[1] * 0.70710678f)));
    }
    for (int o = 0; o < NARROW; o++) {
        float sum = 0;
        y[o] = 0;
        for (int i = 0; i < INNER; i++) {
            y[o] += (double)w[o * INNER + i] * m[i];
            sum = fmaf(w[o * INNER + i], n[i], sum);
        }
        z[o] = (double)sum;
    }
}

/* Where the columns are few the terms behind the gate are small, though they are as many. */
static void test_gate(void **state)
{
    (void)state;
    Task *t = gated();
    Random r;
    int beyond = 0;
    double worst = 0, y[NARROW], z[NARROW], atol = task_workload(t, ROLE_TIME)->atol[AT_SCALE_1];
    float *u = memory_array(2 * INNER * NARROW, sizeof *u),
          *w = memory_array(INNER * NARROW, sizeof *w), x[NARROW];
    random_init(&r, 5, 0);
    fill(&r, u, 2 * INNER * NARROW, 0.0625);
    fill(&r, w, INNER * NARROW, 0.03125);
    for (int row = 0; row < 16; row++) {
        for (int c = 0; c < NARROW; c++) x[c] = (float)random_normal(&r);
        gated_row(x, u, w, y, z);
        for (int o = 0; o < NARROW; o++) {
            double error = fabs(z[o] - y[o]);
            beyond += error > atol + t->rtol[DTYPE_F32] * fabs(y[o]);
            worst = fmax(worst, error);
        }
    }
    print_message("# tolerance %.3g, running sums %.3g\n", atol, worst);
    assert_int_equal(beyond, 0);
    assert_true(atol < 16 * worst);
    free(u), free(w);
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors_are_carried),
                                       cmocka_unit_test(test_bounded), cmocka_unit_test(test_gate)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
