/* Elements: rounding of the narrow types, draws that repeat, comparison. */
#include <float.h>
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tasks/task.h"
#include "tests/fixture_path.h"

static Task *relu(void)
{
    Task *t;
    Error err;
    if (task_load(fixture_path("tasks/relu"), &t, &err)) fail_msg("%s", err.text);
    return t;
}

static uint16_t round_to(Dtype d, double x)
{
    uint16_t h;
    dtype_from_double(d, &x, &h, 1);
    return h;
}

static void test_rounding_to_half(void **state)
{
    (void)state;
    assert_int_equal(round_to(DTYPE_F16, 1.0), 0x3c00);
    assert_int_equal(round_to(DTYPE_F16, -2.0), 0xc000);
    assert_int_equal(round_to(DTYPE_F16, 65504.0), 0x7bff);
    assert_int_equal(round_to(DTYPE_F16, 65519.0), 0x7bff);
    assert_int_equal(round_to(DTYPE_F16, 65520.0), 0x7c00);
    assert_int_equal(round_to(DTYPE_F16, 0x1p-24), 0x0001);
    assert_int_equal(round_to(DTYPE_F16, 0x1p-25), 0x0000);   /* tie to even */
    assert_int_equal(round_to(DTYPE_F16, 0x1.8p-24), 0x0002); /* tie to even, upwards */
    assert_int_equal(round_to(DTYPE_F16, 0x1p-14 - 0x1p-26),
                     0x0400); /* rounds up into the normal range */
    assert_int_equal(round_to(DTYPE_F16, 1.0 + 0x1p-11), 0x3c00);
    assert_int_equal(round_to(DTYPE_F16, 1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
    assert_int_equal(round_to(DTYPE_F16, 2.0 - 0x1p-12), 0x4000); /* carries into the exponent */
    assert_int_equal(round_to(DTYPE_F16, -0.0), 0x8000);
}

static void test_bfloat(void **state)
{
    (void)state;
    assert_int_equal(round_to(DTYPE_BF16, 1.0), 0x3f80);
    assert_int_equal(round_to(DTYPE_BF16, 1.0 + 0x1p-8), 0x3f80); /* tie to even */
    assert_int_equal(round_to(DTYPE_BF16, 1.0 + 0x1p-8 + 0x1p-40),
                     0x3f81); /* not a tie: one rounding only */
    assert_int_equal(round_to(DTYPE_BF16, 1.0 + 3 * 0x1p-8), 0x3f82);
    assert_int_equal(round_to(DTYPE_BF16, 1.0 + 3 * 0x1p-8 - 0x1p-40), 0x3f81);
    assert_int_equal(round_to(DTYPE_BF16, -INFINITY), 0xff80);
    assert_int_equal(round_to(DTYPE_BF16, 0.0), 0);
}

/* Every finite pattern comes back to itself. */
/* Floats of one byte: each is its own number, ties go to even numbers, and what is too large is infinity, or
 * NaN where there is none. */
static void test_float8(void **state)
{
    static const struct {
        Dtype d;
        double x, want;
    } known[] = {{DTYPE_E4M3, 448, 448},          {DTYPE_E4M3, 464, 448},
                 {DTYPE_E4M3, 465, NAN},          {DTYPE_E4M3, 0x1p-9, 0x1p-9},
                 {DTYPE_E4M3, 0x1p-10, 0},        {DTYPE_E4M3, 0x1.8p-9, 0x1p-8},
                 {DTYPE_E4M3, 1.0625, 1},         {DTYPE_E4M3, -1.1875, -1.25},
                 {DTYPE_E4M3, 0x1.fp-7, 0x1p-6}, /* the carry of the largest subnormal number */
                 {DTYPE_E5M2, 57344, 57344},      {DTYPE_E5M2, 61439, 57344},
                 {DTYPE_E5M2, -61440, -INFINITY}, {DTYPE_E5M2, 0x1p-16, 0x1p-16},
                 {DTYPE_E5M2, 1.125, 1},          {DTYPE_E5M2, 1.375, 1.5}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double got = dtype_rounded(known[i].d, known[i].x);
        assert_true(isnan(known[i].want) ? isnan(got) : got == known[i].want);
    }
    for (int d = DTYPE_E4M3; d <= DTYPE_E5M2; d++)
        for (int b = 0; b < 256; b++) {
            uint8_t byte = (uint8_t)b, again;
            double x;
            dtype_to_double((Dtype)d, &byte, &x, 1);
            dtype_from_double((Dtype)d, &x, &again, 1);
            assert_true(isnan(x) || again == byte);
        }
}

/* Integers of 8 and 16 bits wrap as a GPU's do; larger ones stop at their ends. */
static void test_small_integers(void **state)
{
    (void)state;
    assert_true(dtype_rounded(DTYPE_I8, 200) == -56 && dtype_rounded(DTYPE_I8, -129) == 127);
    assert_true(dtype_rounded(DTYPE_U8, -1) == 255 && dtype_rounded(DTYPE_U8, 256 + 7) == 7);
    assert_true(dtype_rounded(DTYPE_I16, 40000) == -25536 &&
                dtype_rounded(DTYPE_I32, 1e12) == 2147483647);
}

static void test_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        Dtype types[] = {DTYPE_F16, DTYPE_BF16};
        for (int i = 0; i < 2; i++) {
            uint16_t bits = (uint16_t)h;
            double x;
            dtype_to_double(types[i], &bits, &x, 1);
            if (isnan(x)) continue;
            assert_int_equal(round_to(types[i], x), bits);
        }
    }
}

static void test_draws(void **state)
{
    (void)state;
    Task *t = relu();
    Workload w = {.role = ROLE_CHECK, .axis = {4096}};
    float a[4096], b[4096], c[4096];
    Error err;
    double sum = 0, squares = 0;
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, a, &err), 0);
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, b, &err), 0);
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 8, 1.0}, 0, c, &err), 0);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 4.0}, 0, b, &err), 0);
    int negative = 0, zero = 0, large = 0;
    for (int i = 0; i < 4096; i++) {
        assert_true(b[i] == a[i] * 4.0f);
        negative += a[i] < 0;
        zero += a[i] == 0;
        large += fabsf(a[i]) > 6;
    }
    assert_in_range(negative, 1700, 2200);
    assert_in_range(zero, 180, 340);
    assert_in_range(large, 100, 260);
    t->inputs[0].draw = DRAW_NORMAL;
    task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, a, &err);
    for (int i = 0; i < 4096; i++) sum += (double)a[i], squares += (double)a[i] * (double)a[i];
    assert_true(fabs(sum / 4096) < 0.06 && fabs(squares / 4096 - 1) < 0.1);
    t->inputs[0].draw = DRAW_INTEGER;
    t->inputs[0].dtype = DTYPE_I32;
    t->inputs[0].draw_low = -2;
    t->inputs[0].draw_high = 3;
    int32_t n[4096];
    int seen[6] = {0};
    task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 100.0}, 0, n, &err);
    for (int i = 0; i < 4096; i++) {
        assert_true(n[i] >= -2 && n[i] <= 3);
        seen[n[i] + 2]++;
    }
    for (int i = 0; i < 6; i++) assert_in_range(seen[i], 560, 800);
    t->inputs[0].draw_highest = memory_strdup("n / 1024 - 2");
    task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, n, &err);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < 4096; i++) {
        assert_true(n[i] >= -2 && n[i] <= 2);
        seen[n[i] + 2]++;
    }
    for (int i = 0; i < 5; i++) assert_in_range(seen[i], 680, 960);
    task_free(t);
}

/* Along one dimension no integer comes twice, and each line along it has an order of its own. */
static void test_distinct(void **state)
{
    (void)state;
    enum { LINES = 40, LENGTH = 37, RANGE = 50 };
    static const char *const shape[] = {"5", "n / 40", "8"};
    Task *t = relu();
    TaskTensor *x = &t->inputs[0];
    Workload w = {.role = ROLE_CHECK, .axis = {LINES * LENGTH}};
    int32_t v[LINES * LENGTH];
    Error err;
    free(x->shape[0]);
    for (x->rank = 0; x->rank < 3; x->rank++) x->shape[x->rank] = memory_strdup(shape[x->rank]);
    x->draw = DRAW_INTEGER, x->dtype = DTYPE_I32, x->distinct = 1;
    x->draw_low = 3, x->draw_high = RANGE + 2;
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, v, &err), 0);
    int used[RANGE] = {0}, moved = 0;
    for (int line = 0; line < LINES; line++) {
        int seen[RANGE] = {0};
        for (int i = 0; i < LENGTH; i++) {
            int32_t k = v[(line / 8 * LENGTH + i) * 8 + line % 8] - 3;
            assert_in_range(k, 0, RANGE - 1);
            assert_int_equal(seen[k]++, 0);
            used[k]++;
            moved += k != v[i * 8] - 3;
        }
    }
    for (int k = 0; k < RANGE; k++) assert_in_range(used[k], 15, LINES);
    assert_true(moved > LINES * LENGTH * 9 / 10);
    x->draw_high = LENGTH + 1;
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, v, &err), -1);
    assert_non_null(strstr(err.text, "37 distinct integers expected"));
    task_free(t);
}

/* Tensors of a GPU's size: the same bytes on any number of threads, the same distribution as small
 * ones. */
static void test_large_draw(void **state)
{
    (void)state;
    Task *t = relu();
    Workload w = {.role = ROLE_TIME, .axis = {TASK_LARGE + 70001}};
    size_t n = (size_t)w.axis[0];
    float *one = malloc(n * sizeof *one), *many = malloc(n * sizeof *many);
    Error err;
    double squares = 0, zeros = 0;
    assert_true(one && many);
    for (Variant v = 0; v < VARIANTS; v++) {
        omp_set_num_threads(1);
        assert_int_equal(task_draw(&(TaskCase){t, &w, v, 7, 1.0}, 0, one, &err), 0);
        omp_set_num_threads(3);
        assert_int_equal(task_draw(&(TaskCase){t, &w, v, 7, 1.0}, 0, many, &err), 0);
        assert_memory_equal(one, many, n * sizeof *one);
        assert_int_equal(task_draw(&(TaskCase){t, &w, v, 8, 1.0}, 0, many, &err), 0);
        assert_memory_not_equal(one, many, n * sizeof *one);
    }
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, one, &err), 0);
    for (size_t i = 0; i < n; i++) zeros += one[i] == 0, squares += (double)one[i] * (double)one[i];
    assert_true(fabs(zeros / (double)n - 1.0 / 16) < 0.002);
    assert_true(fabs(squares / (double)n - (256 + 13) / 16.0) < 0.5);
    t->inputs[0].draw = DRAW_NORMAL;
    squares = 0;
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 2.0}, 0, one, &err), 0);
    for (size_t i = 0; i < n; i++) squares += (double)one[i] * (double)one[i];
    assert_true(fabs(squares / (double)n - 4) < 0.03);
    free(one);
    free(many);
    task_free(t);
}

/* A part of a large tensor has the bytes that it has in the whole one. */
static void test_parts(void **state)
{
    (void)state;
    Task *t = relu();
    Workload w = {.role = ROLE_TIME, .axis = {TASK_LARGE + 70001}};
    size_t n = (size_t)w.axis[0];
    float *all = malloc(n * sizeof *all), *some = malloc(n * sizeof *some);
    Error err;
    static const Draw draws[] = {DRAW_MIXED, DRAW_NORMAL, DRAW_UNIFORM, DRAW_POSITIVE};
    assert_true(all && some);
    for (size_t k = 0; k < sizeof draws / sizeof *draws; k++) {
        t->inputs[0].draw = draws[k];
        size_t part = task_part(t, 0), from[] = {0, 3 * part, TASK_LARGE + 65536 - part};
        assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, all, &err), 0);
        for (size_t i = 0; i < 3; i++) {
            size_t count = i == 1 ? 65536 : 2 * part, left = n - from[i];
            assert_int_equal(task_draw_part(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, from[i],
                                            count, some, &err),
                             0);
            assert_memory_equal(some, all + from[i], (count < left ? count : left) * sizeof *all);
        }
        assert_int_equal(
            task_draw_part(&(TaskCase){t, &w, VARIANT_DRAWN, 7, 1.0}, 0, 5, 9, some, &err), -1);
    }
    free(all);
    free(some);
    task_free(t);
}

/* What each variant is there for is in it. */
static void test_variants(void **state)
{
    (void)state;
    Task *t = relu();
    Workload w = {.role = ROLE_CHECK, .axis = {8192}};
    float x[8192];
    Error err;
    int large = 0, noise = 0, subnormal = 0, negative_zero = 0, infinite = 0, end = 0, odd_bits = 0;
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_NEEDLES, 3, 1.0}, 0, x, &err), 0);
    for (int i = 0; i < 8192; i++)
        large += fabsf(x[i]) >= 4 && fabsf(x[i]) <= 8, noise += fabsf(x[i]) < 0.4f;
    assert_in_range(large, 30, 100);
    assert_int_equal(large + noise, 8192);
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_SPECIAL, 3, 1.0}, 0, x, &err), 0);
    for (int i = 0; i < 8192; i++) {
        assert_false(isnan(x[i])); /* which relu does not declare */
        subnormal += x[i] != 0 && fabsf(x[i]) < FLT_MIN;
        negative_zero += x[i] == 0 && signbit(x[i]);
        infinite += isinf(x[i]) != 0;
        end += fabsf(x[i]) == FLT_MAX;
    }
    assert_true(subnormal > 400 && negative_zero > 100 && infinite > 200 && end > 200);
    assert_int_equal(task_draw(&(TaskCase){t, &w, VARIANT_INTEGERS, 3, 1.0}, 0, x, &err), 0);
    for (int i = 0; i < 8192; i++) {
        assert_true(x[i] == rintf(x[i]) && fabsf(x[i]) <= 0x1p24f);
        odd_bits += fabsf(x[i]) > 65536 && (int)x[i] % 2;
    }
    assert_true(odd_bits > 3000);
    free(t->exact);
    t->exact = NULL;
    assert_false(task_has_variant(t, &w, VARIANT_INTEGERS));
    task_free(t);
}

/* Integers: the largest sum stays exact, nothing is allowed where nothing is summed, and a bit lost
 * in a factor shows. */
static void test_integers(void **state)
{
    (void)state;
    Task *t;
    Error err;
    Tolerance by;
    if (task_load(fixture_path("tasks/matmul"), &t, &err)) fail_msg("%s", err.text);
    for (int64_t k = 1; k < 5000; k = 2 * k + 1) {
        Workload w = {.role = ROLE_CHECK, .axis = {64, 64, k}};
        float *a = malloc(64 * (size_t)k * sizeof *a), *b = malloc(64 * (size_t)k * sizeof *b),
              max_a = 0, max_b = 0;
        assert_true(a && b);
        if (!task_has_variant(t, &w, VARIANT_INTEGERS)) {
            assert_true(k > 4000);
        } else {
            assert_int_equal(
                task_draw(&(TaskCase){t, &w, VARIANT_INTEGERS, 9, 1.0}, 0, a, &err) |
                    task_draw(&(TaskCase){t, &w, VARIANT_INTEGERS, 9, 1.0}, 1, b, &err),
                0);
            for (int64_t i = 0; i < 64 * k; i++)
                max_a = fmaxf(max_a, fabsf(a[i])), max_b = fmaxf(max_b, fabsf(b[i]));
            assert_true((double)max_a * (double)max_b * (double)k < 0x1p24 &&
                        fmaxf(max_a, max_b) > 2048);
        }
        free(a);
        free(b);
    }
    Workload w = {.role = ROLE_CHECK, .axis = {3, 5, 100}};
    assert_int_equal(task_tolerance(&(TaskCase){t, &w, VARIANT_INTEGERS, 0, 1.0}, 0, &by, &err), 0);
    assert_true(by.atol == 0.25 && by.rtol == 0);
    task_free(t);
    t = relu();
    assert_int_equal(task_tolerance(&(TaskCase){t, &w, VARIANT_INTEGERS, 0, 1.0}, 0, &by, &err), 0);
    assert_true(by.atol == 0 && by.rtol == 0);
    assert_int_equal(task_tolerance(&(TaskCase){t, &w, VARIANT_SPECIAL, 0, 1.0}, 0, &by, &err), 0);
    assert_true(by.atol == 0x1p-149);
    task_free(t);
}

static int compare(const Task *t, const Workload *w, const float *got, const double *want,
                   double scale, Error *message)
{
    TaskComparison with = {.task = t, .workload = w};
    assert_int_equal(
        task_tolerance(&(TaskCase){t, w, VARIANT_DRAWN, 0, scale}, 0, &with.by, message), 0);
    return task_compare(&with, got, want, message);
}

static void test_compare(void **state)
{
    (void)state;
    Task *t = relu();
    Error message;
    Workload w = {.role = ROLE_CHECK, .axis = {4}};
    t->atol[DTYPE_F32] = 0.01;
    t->rtol[DTYPE_F32] = 0.1;
    double want[4] = {1.0, -10.0, 0.0, NAN};
    float got[4] = {1.1f, -10.9f, 0.005f, NAN};
    assert_int_equal(compare(t, &w, got, want, 1.0, &message), 0);
    got[1] = -12.0f;
    got[2] = 5.0f;
    assert_int_equal(compare(t, &w, got, want, 1.0, &message), 1);
    assert_non_null(strstr(message.text, "2 of 4 elements of y differ"));
    assert_non_null(strstr(message.text, "first y[1] is -12, expected -10"));
    assert_non_null(strstr(message.text, "worst y[2] is 5, expected 0"));
    got[1] = -10.0f;
    got[2] = NAN;
    assert_int_equal(compare(t, &w, got, want, 1.0, &message), 1);
    got[2] = 0.07f; /* scale 8 widens atol to 0.08, scale 1/8 narrows it */
    assert_int_equal(compare(t, &w, got, want, 8.0, &message), 0);
    got[2] = 0.005f;
    assert_int_equal(compare(t, &w, got, want, 0.125, &message), 1);
    want[3] = INFINITY;
    got[2] = 0;
    got[3] = -INFINITY;
    assert_int_equal(compare(t, &w, got, want, 1.0, &message), 1);
    got[3] = INFINITY;
    assert_int_equal(compare(t, &w, got, want, 1.0, &message), 0);
    want[3] = 1e39; /* too large for the type: eager PyTorch gives infinity, too */
    assert_int_equal(compare(t, &w, got, want, 1.0, &message), 0);
    want[3] = -1e39;
    assert_int_equal(compare(t, &w, got, want, 1.0, &message), 1);
    want[3] = 1e38;
    t->rtol[DTYPE_F32] = 0;
    got[0] = 1, got[1] = -10;
    assert_int_equal(compare(t, &w, got, want, 1.0, &message), 1);
    task_free(t);
}

/* The least magnitude that rounds to infinity, and the number below it, in each type. */
static void test_overflow(void **state)
{
    (void)state;
    for (int d = DTYPE_F32; d <= DTYPE_BF16; d++) {
        double max = dtype_overflow((Dtype)d), two[2] = {max, nextafter(max, 0)}, back[2];
        float kept[2];
        dtype_from_double((Dtype)d, two, kept, 2);
        dtype_to_double((Dtype)d, kept, back, 2);
        assert_true(isinf(back[0]) && isfinite(back[1]));
    }
    assert_true(isnan(dtype_rounded(DTYPE_E4M3, dtype_overflow(DTYPE_E4M3))));
    assert_true(isinf(dtype_overflow(DTYPE_I32)) && isinf(dtype_overflow(DTYPE_F64)));
}

/* atol counts the terms of the sum: matmul's grows with k, and with the square of the scale. */
static void test_tolerance(void **state)
{
    (void)state;
    Task *t;
    Error err;
    Tolerance by, twice;
    if (task_load(fixture_path("tasks/matmul"), &t, &err)) fail_msg("%s", err.text);
    Workload w = {.role = ROLE_CHECK, .axis = {3, 5, 100}};
    assert_int_equal(task_tolerance(&(TaskCase){t, &w, VARIANT_DRAWN, 0, 1.0}, 0, &by, &err), 0);
    assert_true(fabs(by.atol - 100 * t->atol[DTYPE_F32]) < 1e-12);
    w.axis[2] = 200;
    task_tolerance(&(TaskCase){t, &w, VARIANT_DRAWN, 0, 4.0}, 0, &twice, &err);
    assert_true(fabs(twice.atol / by.atol - 32) < 1e-9);
    task_free(t);
}

/* A multiple of the drift does not count, and one element does not count for more than eight units. */
static void test_mean_without_drift(void **state)
{
    enum { N = 64 };
    double drift[N], want[N];
    float got[N];
    const ElementLimits e = {.n = N, .drift = drift, .unit = 0x1p-10};
    (void)state;
    for (int i = 0; i < N; i++) drift[i] = (i % 3 + 1) * 0x1p-8, want[i] = i;
    for (int i = 0; i < N; i++) got[i] = (float)(want[i] + drift[i]);
    assert_true(task_mean_square(&e, DTYPE_F32, got, want) == 0);
    for (int i = 0; i < N; i++) got[i] = (float)(want[i] + drift[i] + (i % 2 ? 2 : -2) * e.unit);
    double mean = task_mean_square(&e, DTYPE_F32, got, want);
    assert_true(mean > 3.9 && mean <= 4);
    for (int i = 0; i < N; i++) got[i] = (float)(want[i] - drift[i]);
    assert_true(task_mean_square(&e, DTYPE_F32, got, want) > 16);
    for (int i = 0; i < N; i++) got[i] = (float)want[i];
    got[7] += 100;
    assert_true(task_mean_square(&e, DTYPE_F32, got, want) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounding_to_half),
                                       cmocka_unit_test(test_bfloat),
                                       cmocka_unit_test(test_float8),
                                       cmocka_unit_test(test_small_integers),
                                       cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_draws),
                                       cmocka_unit_test(test_distinct),
                                       cmocka_unit_test(test_large_draw),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_variants),
                                       cmocka_unit_test(test_integers),

                                       cmocka_unit_test(test_compare),
                                       cmocka_unit_test(test_mean_without_drift),
                                       cmocka_unit_test(test_overflow),
                                       cmocka_unit_test(test_tolerance)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
