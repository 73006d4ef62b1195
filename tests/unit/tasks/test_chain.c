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

static void layer(float *weights, const double *x, const float *running, const float *rounded,
                  double *y, float *running_y, float *rounded_y, int relu)
{
    for (int r = 0; r < ROWS; r++)
        for (int o = 0; o < WIDTH; o++) {
            const float *w = weights + (size_t)o * WIDTH;
            double exact = 0, coarse = 0;
            float sum = 0;
            for (int i = 0; i < WIDTH; i++) {
                exact += (double)w[i] * x[r * WIDTH + i];
                coarse += (double)tf32(w[i]) * (double)tf32(rounded[r * WIDTH + i]);
                sum = fmaf(w[i], running[r * WIDTH + i], sum);
            }
            int at = r * WIDTH + o;
            y[at] = relu ? fmax(exact, 0) : exact;
            running_y[at] = relu ? fmaxf(sum, 0) : sum;
            rounded_y[at] = (float)(relu ? fmax(coarse, 0) : coarse);
        }
}

/* The largest errors of running sums and of rounded factors. */
static void errors(double *running, double *rounded)
{
    enum { N = ROWS * WIDTH };
    Random r;
    double *x[2];
    float *run[2], *coarse[2], *w = memory_array((size_t)WIDTH * WIDTH, sizeof *w);
    random_init(&r, 3, 0);
    for (int k = 0; k < 2; k++) {
        x[k] = memory_array(N, sizeof(double));
        run[k] = memory_array(N, sizeof(float));
        coarse[k] = memory_array(N, sizeof(float));
    }
    for (int i = 0; i < N; i++)
        x[0][i] = (double)(run[0][i] = coarse[0][i] = (float)random_normal(&r));
    for (int l = 0; l < LAYERS; l++) {
        int from = l % 2, to = !from;
        for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)random_normal(&r);
        layer(w, x[from], run[from], coarse[from], x[to], run[to], coarse[to], l < LAYERS - 1);
    }
    *running = *rounded = 0;
    for (int i = 0; i < N; i++) {
        *running = fmax(*running, fabs((double)run[LAYERS % 2][i] - x[LAYERS % 2][i]));
        *rounded = fmax(*rounded, fabs((double)coarse[LAYERS % 2][i] - x[LAYERS % 2][i]));
    }
    for (int k = 0; k < 2; k++) free(x[k]), free(run[k]), free(coarse[k]);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors_are_carried),
                                       cmocka_unit_test(test_bounded)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
