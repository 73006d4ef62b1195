/* The timed workload made short: which tasks have one, how many positions, and its tolerance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/judge/contents/cases.h"
#include "eval/judge/contents/shortened.h"

static void close_to(double got, double want, double by)
{
    if (!(fabs(got - want) <= by)) fail_msg("%.17g, expected %.17g", got, want);
}

/* y = x @ w of so many rows; `y` is y's second dimension, `rule` a constraint. */
static Task *task_of(int64_t m, int64_t n, const char *y, const char *rule)
{
    Task *t;
    Error err;
    char *text = memory_printf(
        "{\"name\": \"short\", \"description\": \"d\", \"op_type\": \"mm\", \"level\": 1,"
        "\"tags\": [], \"split\": \"train\", \"axes\": {\"m\": {\"description\": \"d\"}, \"n\": "
        "{\"description\": \"d\"}},"
        "\"inputs\": {\"x\": {\"dtype\": \"float16\", \"shape\": [\"m\", \"n\"], \"draw\": "
        "\"normal\"},"
        "\"w\": {\"dtype\": \"float16\", \"shape\": [\"n\", \"%s\"], \"draw\": \"normal\"}},"
        "\"outputs\": {\"y\": {\"dtype\": \"float16\", \"shape\": [\"m\", \"%s\"]}},"
        "\"graph\": [\"y = aten.mm.default(x, w)\"],"
        "\"tolerance\": {\"float16\": {\"atol\": 0.01, \"rtol\": 0.001}}, \"turns\": \"m\","
        "\"constraints\": [\"%s\"], \"workloads\": ["
        "{\"role\": \"check\", \"axes\": {\"m\": 12, \"n\": 12}},"
        "{\"role\": \"time\", \"axes\": {\"m\": %lld, \"n\": %lld}, \"atol\": {\"y\": [0.5, 1, 1, "
        "1, 1]}},"
        "{\"role\": \"sim\", \"axes\": {\"m\": 12, \"n\": 12}}]}",
        y, y, rule, (long long)m, (long long)n);
    if (task_parse("short", text, &t, &err)) fail_msg("%s", err.text);
    free(text);
    return t;
}

/* The largest rounding error of n, in parts of a tolerance of a million: the mean of many draws. */
static double largest_of(int n, Random *r)
{
    double sum = 0;
    enum { DRAWS = 64 };
    for (int d = 0; d < DRAWS; d++) {
        double most = 0;
        for (int i = 0; i < n; i++) most = fmax(most, fabs(random_normal(r)));
        sum += most / DRAWS;
    }
    return sum;
}

/* The share is what the largest of normal errors is by the largest of more of them, within a tenth. */
static void test_share(void **state)
{
    (void)state;
    Random r;
    random_init(&r, 5, 0);
    double all = largest_of(1 << 17, &r);
    for (int n = 1 << 9; n < 1 << 17; n *= 4) {
        double share = shortened_share(n, 1 << 17), found = largest_of(n, &r) / all;
        if (share < found - 0.01 || share > found + 0.1)
            fail_msg("%d: %g, found %g", n, share, found);
    }
    close_to(shortened_share(1e6, 1e6), 1, 1e-9);
    close_to(shortened_share(1e6, 1e3), 1, 1e-9);
    close_to(shortened_share(1, 1e12), SHARE_LEAST, 0);
    assert_true(shortened_share(1e4, 1e6) < shortened_share(1e5, 1e6));
}

static int64_t of_turns(const Task *t, uint64_t seed)
{
    Shortening axis[SHORTENED_AXES];
    if (!shortened_axes(t, task_workload(t, ROLE_TIME), axis)) return 0;
    return shortened_positions(&axis[0], seed);
}

/* Many seeds: what is chosen is cheap, keeps to the constraints, has a factor of the timed length, and is
 * not always the same. */
static void test_positions(void **state)
{
    (void)state;
    Task *t = task_of(4096, 1024, "n", "m % 4 == 0");
    int64_t least = 1 << 20, most = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        int64_t n = of_turns(t, seed);
        assert_int_equal(n, of_turns(t, seed));
        assert_in_range(n, 4, 64);
        assert_int_equal(n % 4, 0);
        if (n < least) least = n;
        if (n > most) most = n;
    }
    assert_true(least < most);
    task_free(t);
}

static int64_t positions(int64_t m, int64_t n, const char *y, const char *rule)
{
    Task *t = task_of(m, n, y, rule);
    int64_t found = of_turns(t, 1);
    task_free(t);
    return found;
}

static void test_bounds(void **state)
{
    (void)state;
    assert_int_equal(positions(24, 60, "n", "1"), 24);       /* all of them */
    assert_int_equal(positions(4096, 1 << 14, "n", "1"), 0); /* one costs too much */
    assert_int_equal(positions(4096, 1024, "n", "m != 16"),
                     12); /* no factor of two is allowed else */
    assert_int_equal(positions(4095, 1024, "n", "m % 3 == 0") % 3, 0);
    assert_int_equal(positions(4096, 1024, "n", "m == 12 || m > 4000"), 12);
    assert_int_equal(positions(12, 1024, "m", "1"), 0); /* the axis is another dimension, too */
}

/* The tolerance is the timed one's by the share, and cases of the workload are drawn. */
static void test_workload(void **state)
{
    (void)state;
    Error err;
    Task *t = task_of(4096, 1024, "n", "1");
    const Workload *timed = task_workload(t, ROLE_TIME);
    Cases *c = cases_new(1 << 28, NULL, NULL);
    const Workload *w = cases_shortened(c, t, timed, 0, 1);
    assert_non_null(w);
    assert_ptr_equal(w, cases_shortened(c, t, timed, 0, 1));
    assert_int_equal(w->axis[0], of_turns(t, 1));
    assert_int_equal(w->axis[1], 1024);
    const Case *x = cases_get(c, t, w, VARIANT_DRAWN, 1, 1.0, &err);
    if (!x) fail_msg("%s", err.text);
    double n = (double)w->axis[0] * 1024;
    close_to(x->tolerance[0].atol, 0.5 * shortened_share(n, 4096.0 * 1024), 1e-12);
    close_to(x->tolerance[0].rtol, 0.001, 1e-12);
    assert_null(cases_shortened(c, t, timed, 1, 1));
    cases_shortened(c, t, timed, 0, 2); /* drops the case of the workload that it was */
    cases_free(c);
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_workload),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
