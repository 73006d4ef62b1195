/* The interquartile mean of ratios, its interval against theory, and rounding towards 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "eval/judge/statistics.h"

static int close_to(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void test_median(void **state)
{
    (void)state;
    assert_true(close_to(statistics_median((double[]){3}, 1), 3));
    assert_true(close_to(statistics_median((double[]){5, 1, 9}, 3), 5));
    assert_true(close_to(statistics_median((double[]){5, 1, 9, 2}, 4), 3.5));
}

static void test_point(void **state)
{
    (void)state;
    Interval r;
    statistics_ratio(&(Pairs){(double[]){30}, (double[]){20}, 1}, 7, &r);
    assert_true(close_to(r.middle, 1.5) && close_to(r.low, 1.5) && close_to(r.high, 1.5));
}

/* The interval of n normal ratios holds the true ratio in about 95 of 100 experiments. Its width is
 * the theory's: the interquartile mean has 1.0926 times the mean's standard error. Equal seeds
 * give equal intervals. */
static void test_interval(void **state)
{
    (void)state;
    enum { N = 200, EXPERIMENTS = 300 };
    double a[N], b[N], width = 0, cheap = 0;
    const Pairs p = {a, b, N};
    int holds = 0;
    Random r;
    random_init(&r, 11, 0);
    for (int e = 0; e < EXPERIMENTS; e++) {
        Interval v, again;
        for (int i = 0; i < N; i++) {
            b[i] = 1 + random_uniform(&r);
            a[i] = b[i] * (1.2 + 0.02 * random_normal(&r));
        }
        statistics_ratio(&p, 3, &v);
        statistics_ratio(&p, 3, &again);
        assert_true(v.low == again.low && v.high == again.high);
        assert_true(v.low <= v.middle && v.middle <= v.high);
        holds += v.low <= 1.2 && 1.2 <= v.high;
        width += (v.high - v.low) / EXPERIMENTS;
        cheap += 2 * statistics_half_width(&p) / EXPERIMENTS;
    }
    double theory = 2 * 1.96 * 1.0926 * 0.02 / sqrt(N);
    assert_in_range(holds, 275, 297);
    assert_true(width > 0.85 * theory && width < 1.15 * theory);
    assert_true(cheap > 0.85 * theory && cheap < 1.15 * theory);
}

/* One outlier in ten samples changes neither the middle nor the interval much. */
static void test_outliers(void **state)
{
    (void)state;
    enum { N = 100 };
    double a[N], b[N];
    Interval v;
    for (int i = 0; i < N; i++) {
        b[i] = 10;
        a[i] = i % 10 ? 15 : 1500;
    }
    statistics_ratio(&(Pairs){a, b, N}, 3, &v);
    assert_true(close_to(v.middle, 1.5) && close_to(v.low, 1.5) && close_to(v.high, 1.5));
}

/* Of 1000 experiments of n normal ratios: how often the interval holds the true ratio. *cheap: by the
 * estimate of its width. */
static int count_held(int n, int *cheap)
{
    enum { MOST = 8, EXPERIMENTS = 1000 };
    double a[MOST], b[MOST];
    int holds = 0;
    Random r;
    random_init(&r, 12, 0);
    *cheap = 0;
    for (int e = 0; e < EXPERIMENTS; e++) {
        const Pairs p = {a, b, n};
        Interval v;
        for (int i = 0; i < n; i++) {
            b[i] = 1;
            a[i] = 1.2 + 0.02 * random_normal(&r);
        }
        statistics_ratio(&p, (uint64_t)e, &v);
        holds += v.low <= 1.2 && 1.2 <= v.high;
        *cheap += fabs(v.middle - 1.2) <= statistics_half_width(&p);
    }
    return holds;
}

/* With four or eight samples, too, the interval holds the true ratio in about 95 of 100 experiments. */
static void test_few_samples(void **state)
{
    (void)state;
    int cheap;
    assert_in_range(count_held(8, &cheap), 925, 998); /* rather too wide than too narrow */
    assert_in_range(cheap, 900, 990);
    assert_in_range(count_held(4, &cheap), 900, 990);
    assert_in_range(cheap, 935, 965);
}

static void draw_low(void *ctx, Random *r, double *out)
{
    ++*(int *)ctx;
    *out = 1 + random_normal(r) * 0.1;
}

/* An interval of resamples that lie 0.5 below the middle is moved onto it, from one set of draws. */
static void test_centred(void **state)
{
    (void)state;
    int draws = 0, again = 0;
    Interval v = {.middle = 1.5}, plain;
    statistics_centred(draw_low, &draws, 7, &v);
    statistics_resample(draw_low, &again, 7, 1, &plain);
    assert_int_equal(draws, again);
    assert_true(v.low > 1.28 && v.low < 1.33 && v.high > 1.67 && v.high < 1.72);
    assert_true(close_to(v.high - v.low, plain.high - plain.low));
}

static void test_rounding(void **state)
{
    (void)state;
    assert_true(close_to(statistics_towards_one(1.2349), 1.234));
    assert_true(close_to(statistics_towards_one(0.9871), 0.988));
    assert_true(close_to(statistics_towards_one(1.0), 1.0));
    assert_true(close_to(statistics_towards_one(1.0004), 1.0));
    assert_true(close_to(statistics_towards_one(0.9999), 1.0));
    assert_true(close_to(statistics_towards_one(1.23), 1.23));
    assert_true(close_to(statistics_towards_one(0.3), 0.3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median),      cmocka_unit_test(test_point),
        cmocka_unit_test(test_interval),    cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_few_samples), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_centred),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
