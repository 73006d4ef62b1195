/* Errors of single elements on a case's own inputs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tasks/derive/element_limits.h"
#include "tasks/derive/own_error.h"
#include "tests/fixture_path.h"
#include "tests/small_draft.h"

enum { TERMS = 1024 };

/* Every product of y = x @ w: a running sum, what is exact, and the magnitude of its terms. */
typedef struct {
    size_t n;
    double *got, *want, *terms;
} Product;

static Product product(const TaskCase *c)
{
    const int64_t *axis = c->workload->axis, rows = axis[0], cols = axis[2];
    Product p = {.n = (size_t)(rows * cols)};
    float *x = memory_array((size_t)(rows * TERMS), sizeof *x),
          *w = memory_array((size_t)(TERMS * cols), sizeof *w);
    p.got = memory_array(p.n, sizeof(double)), p.want = memory_array(p.n, sizeof(double));
    p.terms = memory_array(p.n, sizeof(double));
    assert_false(task_draw(c, 0, x, NULL) || task_draw(c, 1, w, NULL));
    for (size_t e = 0; e < p.n; e++) {
        float sum = 0;
        for (int64_t k = 0; k < TERMS; k++) {
            float a = x[(int64_t)e / cols * TERMS + k], b = w[k * cols + (int64_t)e % cols];
            sum = fmaf(a, b, sum);
            p.want[e] += (double)a * (double)b;
            p.terms[e] += fabs((double)a * (double)b);
        }
        p.got[e] = (double)sum;
    }
    free(x);
    free(w);
    return p;
}

static Task *product_task(Dtype type)
{
    static const char *const lines[] = {"y = aten.matmul(x, w)"};
    Small s = {.axes = {{"rows", NULL, 64}, {"terms", NULL, TERMS}, {"cols", NULL, 64}},
               .inputs = {tensor("x", type, "rows", "terms"), tensor("w", type, "terms", "cols")}};
    small(&s, lines, 1, 3, 2);
    return derived(&s.d);
}

/* An element whose terms are large may err more than others, and no more than they explain: the cheap product
 * by honest ways, the costly one alone. */
static void test_needles(void **state)
{
    (void)state;
    Task *t = product_task(DTYPE_F32);
    for (int64_t size = 48; size <= 128; size += 80) {
        const Workload w = {.role = ROLE_CHECK, .axis = {size, TERMS, size}};
        const TaskCase c = {t, &w, VARIANT_NEEDLES, 4711, 1};
        Product p = product(&c);
        size_t at[2] = {0, 0};
        double error[2];
        for (size_t e = 0; e < p.n; e++) {
            if (p.terms[e] > p.terms[at[0]]) at[0] = e;
            if (p.terms[e] < p.terms[at[1]]) at[1] = e;
        }
        const OwnElements of = {&c, NULL, 0, 2, at};
        assert_int_equal(own_error(&of, error, NULL), 0);
        assert_true(p.terms[at[0]] > 4 * p.terms[at[1]] && error[0] > 2 * error[1]);
        for (int k = 0; k < 2; k++) {
            assert_true(fabs(p.got[at[k]] - p.want[at[k]]) < error[k]);
            assert_true(error[k] < 2e-5 * p.terms[at[k]]); /* TF32's are over 1e-4 of the largest */
        }
        free(p.got);
        free(p.want);
        free(p.terms);
    }
    task_free(t);
}

/* Of half types, an element may move as its factors' roundings do, and no more. */
static void test_halves(void **state)
{
    (void)state;
    static const Dtype types[] = {DTYPE_F16, DTYPE_BF16};
    static const double units[] = {0x1p-11, 0x1p-8};
    for (int i = 0; i < 2; i++) {
        Task *t = product_task(types[i]);
        const Workload w = {.role = ROLE_CHECK, .axis = {48, TERMS, 48}};
        const TaskCase c = {t, &w, VARIANT_DRAWN, 4711, 1};
        const size_t at[2] = {0, 77};
        double error[2];
        assert_int_equal(own_error(&(OwnElements){&c, NULL, 0, 2, at}, error, NULL), 0);
        for (int k = 0; k < 2; k++) { /* TERMS normal products, each off by the unit */
            assert_true(error[k] > units[i] * sqrt(TERMS) / 2);
            assert_true(error[k] < units[i] * sqrt(TERMS) * 16);
        }
        task_free(t);
    }
}

/* The places of a row's two largest numbers. */
static void largest(const double *v, size_t n, double place[2])
{
    size_t first = 0, second = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[first]) first = i;
    for (size_t i = 0; i < n; i++)
        if (i != first && (second == first || v[i] > v[second])) second = i;
    if (second == first) second = first ? 0 : 1;
    place[0] = (double)first, place[1] = (double)second;
}

/* Of the places of the largest product of each row the second one may be given where TF32 may make it the
 * largest, and not elsewhere. */
static void test_choice(void **state)
{
    (void)state;
    static const char *const lines[] = {"p = aten.matmul(x, w)", "i = aten.argmax(p, 1)",
                                        "y = aten.to.dtype(i, torch.int32)"};
    Small s = {.axes = {{"rows", NULL, 64}, {"terms", NULL, TERMS}, {"cols", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "terms"),
                          tensor("w", DTYPE_F32, "terms", "cols")}};
    small(&s, lines, 3, 3, 2);
    Task *t = derived(&s.d);
    const Workload w = {.role = ROLE_CHECK, .axis = {48, TERMS, 48}};
    int near = 0, far = 0;
    t->tf32 = 1;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        const TaskCase c = {t, &w, VARIANT_DRAWN, seed, 1};
        Product p = product(&c);
        for (size_t row = 0; row < 48; row++) {
            const double *v = p.want + row * 48;
            const size_t at[2] = {row, row};
            double got[2], gap;
            int within[2];
            largest(v, 48, got);
            gap = v[(size_t)got[0]] - v[(size_t)got[1]];
            if (gap > 0.02 && (gap < 1 || row > 1)) continue;
            const OwnElements of = {&c, NULL, 0, 2, at};
            assert_int_equal(own_choice(&of, got, within, NULL), 0);
            assert_true(within[0] && within[1] == (gap < 1));
            near += gap<1, far += gap> 1;
        }
        free(p.got);
        free(p.want);
        free(p.terms);
    }
    assert_true(near > 0 && far > 8);
    task_free(t);
}

/* A result in a half type that others read, too, is rounded for these in eager PyTorch: y = 64 * (h - x) of
 * h = x + z is off by 64 times what h is rounded by. */
static void test_read_output(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.add.Tensor(x, z)", "d = aten.sub.Tensor(h, x)",
                                        "y = aten.mul.Tensor(d, 64)"};
    enum { N = 64 * 32 };
    static double in[2][N], want[2][N];
    const double *const inputs[] = {in[0], in[1]}, *const wanted[] = {want[0], want[1]};
    Small s = {
        .axes = {{"rows", NULL, 64}, {"cols", NULL, 32}},
        .inputs = {tensor("x", DTYPE_F16, "rows", "cols"), tensor("z", DTYPE_F16, "rows", "cols")}};
    small(&s, lines, 3, 2, 2);
    const DraftTensor outputs[] = {{.name = "h", .dtype = DTYPES, .rank = -1}, s.output};
    s.d.outputs = outputs, s.d.n_outputs = 2;
    Task *t = derived(&s.d);
    const Workload w = {.role = ROLE_CHECK, .axis = {64, 32}};
    const TaskCase c = {t, &w, VARIANT_FAR, 4711, 1};
    ElementLimits *limit[2];
    for (int i = 0; i < N; i++) { /* a unit of x + z is 2^-6 */
        in[0][i] = 16 + (i % 97) * 0x1p-6, in[1][i] = (i % 53) * 0x1p-9;
        want[0][i] = in[0][i] + in[1][i], want[1][i] = 64 * in[1][i];
    }
    assert_int_equal(element_limits(&c, inputs, wanted, limit, NULL), 0);
    for (int i = 0; i < N; i++) {
        uint16_t h;
        double got;
        dtype_from_double(DTYPE_F16, &want[0][i], &h, 1);
        dtype_to_double(DTYPE_F16, &h, &got, 1);
        assert_true(64 * fabs(got - want[0][i]) <= (double)limit[1]->limit[i]);
        assert_true((double)limit[0]->limit[i] < 0x1p-6); /* of h: one rounding, no two */
    }
    element_limits_free(limit[0]);
    element_limits_free(limit[1]);
    task_free(t);
}

/* Without a graph nothing is known. */
static void test_unknown(void **state)
{
    (void)state;
    Error err;
    Task *t;
    const size_t at[1] = {0};
    double error;
    if (task_load(fixture_path("tasks/row_sum"), &t, &err)) fail_msg("%s", err.text);
    const TaskCase c = {t, task_largest_check(t), VARIANT_NEEDLES, 1, 1};
    assert_int_equal(own_error(&(OwnElements){&c, NULL, 0, 1, at}, &error, &err), 1);
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_needles), cmocka_unit_test(test_halves),
        cmocka_unit_test(test_choice),  cmocka_unit_test(test_read_output),
        cmocka_unit_test(test_unknown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
