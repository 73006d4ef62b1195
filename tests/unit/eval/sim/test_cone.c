/* Elements of an output, with what all launches compute for them. */
#include <math.h>

#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_support.h"

enum { N = 1 << 20, BLOCKS = N / 256 };

static Sim sim;
static DevicePtr x, t, y;
static double used; /* thread-instructions of the last cone */
static double enough;
static int is_dear; /* the last cone */

static DeviceLaunch launch(const char *kernel, DevicePtr from, DevicePtr to)
{
    DeviceLaunch l = {.module = sim.m, .kernel = kernel, .block = {256, 1, 1}};
    int n = N;
    l.grid[0] = BLOCKS, l.grid[1] = l.grid[2] = 1;
    memcpy(l.params, &from, 8);
    memcpy(l.params + 8, &to, 8);
    memcpy(l.params + 16, &n, 4);
    return l;
}

static float input_at(size_t i)
{
    return (float)((i * 7 + 3) % 1000);
}

/* The cone of element `at` of y. Returns 1 where it is known; *got: the element. */
static int cone_of(const DeviceLaunch *l, int n, size_t at, float *got)
{
    static DeviceTiming out;
    unsigned char comparable[1];
    DeviceSample s = {.growth = 1, .outputs = &y, .n_outputs = 1, .comparable = comparable};
    const DeviceSpan span = {y, at * 4, 4};
    DeviceCone c = {.spans = &span, .n_spans = 1, .budget = 1e8, .enough = enough};
    assert_int_equal(ops->poison(sim.d, y, &sim.err), 0);
    assert_int_equal(ops->poison(sim.d, t, &sim.err), 0);
    if (ops->prediction->predict(sim.d, l, n, &out, &sim.fault)) fail_msg("%s", sim.fault.message);
    assert_int_equal(ops->poison(sim.d, y, &sim.err), 0);
    assert_int_equal(ops->poison(sim.d, t, &sim.err), 0);
    if (ops->prediction->sample(sim.d, l, n, &s, &out, &sim.fault))
        fail_msg("%s", sim.fault.message);
    if (ops->prediction->cone(sim.d, l, n, &c, &sim.fault)) fail_msg("%s", sim.fault.message);
    assert_int_equal(ops->read(sim.d, y + at * 4, got, 4, &sim.err), 0);
    used = c.used;
    is_dear = c.is_dear;
    return !c.why[0];
}

static void expect(const DeviceLaunch *l, int n, size_t at, double want)
{
    float got;
    assert_int_equal(cone_of(l, n, at, &got), 1);
    if (got != (float)want) fail_msg("y[%zu] is %g, expected %g", at, (double)got, want);
}

static void test_blocks_of_earlier_launches(void **state)
{
    (void)state;
    const DeviceLaunch l[] = {launch("twice", x, t), launch("mirrored", t, y)};
    expect(l, 2, 12345, 2 * input_at(N - 1 - 12345) + 1);
    size_t from = 0, end = 0;
    assert_int_equal(ops->prediction->written(sim.d, y, SIZE_MAX, &from, &end), 1);
    assert_int_equal(from, 12345 * 4);
    assert_int_equal(end, 12346 * 4); /* what the thread has stored, and no more */
}

static void test_more_than_is_enough(void **state)
{
    (void)state;
    const DeviceLaunch l[] = {launch("twice", x, t), launch("mirrored", t, y)};
    float got;
    expect(l, 2, 12345, 2 * input_at(N - 1 - 12345) + 1);
    assert_int_equal(is_dear, 0);
    double all = used;
    enough = all / 4;
    assert_int_equal(cone_of(l, 2, 12345, &got), 0);
    assert_int_equal(is_dear, 1);
    assert_true(used < all / 2);
    enough = 2 * all;
    expect(l, 2, 12345, 2 * input_at(N - 1 - 12345) + 1);
    assert_int_equal(is_dear, 0);
    enough = 0;
}

static void test_what_is_changed_in_place(void **state)
{
    (void)state;
    const DeviceLaunch l[] = {launch("twice", x, y), launch("more", x, y), launch("more", x, y)};
    expect(l, 3, N - 1, 4 * input_at(N - 1));
}

/* All blocks that add to the element run, and those that start it. */
static void test_sums_by_atomics(void **state)
{
    (void)state;
    double sum = 0;
    for (size_t i = 0; i < 8; i++) sum += 2 * input_at(777 * 8 + i);
    const DeviceLaunch l[] = {launch("twice", x, t), launch("zeros", x, y),
                              launch("add_parts", t, y)};
    expect(l, 3, 777, sum);
}

/* What is read depends on what is read before. */
static void test_addresses_that_follow_from_values(void **state)
{
    (void)state;
    const DeviceLaunch l[] = {launch("twice", x, t), launch("follow", t, y)};
    expect(l, 2, 5000, 2 * input_at((size_t)(2 * input_at(5000))));
}

static double cost_of(const char *kernel, double want)
{
    float got;
    const DeviceLaunch l[] = {launch("twice", x, t), launch(kernel, t, y)};
    assert_int_equal(cone_of(l, 2, 70000, &got), 1);
    if (got != (float)want) fail_msg("%s: %g, expected %g", kernel, (double)got, want);
    return used;
}

/* Threads and warps that share nothing need what they read alone, not what the rest of the block reads. */
static void test_threads_of_a_block(void **state)
{
    (void)state;
    enum { BLOCK = 70000 / 256, THREAD = 70000 % 256 };
    double sum = 0;
    for (size_t i = THREAD / 32 * 32; i < THREAD / 32 * 32 + 32; i++)
        sum += 2 * input_at(i * (N / 256) + BLOCK);
    double want = 2 * input_at(THREAD * (N / 256) + BLOCK), thread = cost_of("spread", want),
           warp = cost_of("spread_sum", sum), block = cost_of("spread_shared", want);
    assert_true(thread < warp && warp - thread < (block - thread) / 6);
}

/* What many costly blocks read is found without running them: they run once. */
static void test_costly_blocks_run_once(void **state)
{
    (void)state;
    enum { FROM = 70000 % 256 * (N / 256) + 70000 / 256 };
    const DeviceLaunch l[] = {launch("twice", x, y), launch("deep", y, t),
                              launch("spread_shared", t, y)};
    expect(l, 3, 70000, 2 * input_at((FROM + 15 * 8) % N));
    if (used > 3e7) fail_msg("%g instructions, 2.2e7 where deep runs once", used);
}

/* The blocks that write the element are not known. */
/* An element that a launch stores where values say, and one that it does not store. */
static void test_places_that_follow_from_values(void **state)
{
    (void)state;
    DeviceLaunch l[] = {launch("twice", x, y), launch("twice", x, t), launch("place", t, y)};
    const int n = 250;
    memcpy(l[2].params + 16, &n, 4);
    l[2].grid[0] = 1;
    expect(l, 3, (size_t)(2 * input_at(5)), 6);
    expect(l, 3, (size_t)(2 * input_at(5)) + 1, 2 * input_at((size_t)(2 * input_at(5)) + 1));
}

/* The quotient of a sum and its number of terms, where there is more than one. */
static void test_stores_that_values_decide(void **state)
{
    (void)state;
    const DeviceLaunch l[] = {launch("zeros", x, t), launch("twice", x, y), launch("count", x, t),
                              launch("divide_above", t, y)};
    expect(l, 4, 12345, 2 * input_at(12345) / 4);
}

static void test_what_cannot_be_known(void **state)
{
    (void)state;
    float got;
    const DeviceLaunch l[] = {launch("twice", x, t), launch("scatter", t, y)};
    assert_int_equal(cone_of(l, 2, 5000, &got), 0);
}

/* The bytes that no launch reads of a tensor; -1: they are not known. */
static int64_t unread(const DeviceLaunch *l, int n, const char *label)
{
    DeviceUnread u = {.outputs = &y, .n_outputs = 1};
    ops->prediction->unread(sim.d, l, n, &u);
    for (int i = 0; i < u.n; i++)
        if (!strcmp(u.of[i].label, label)) return (int64_t)u.of[i].bytes;
    return -1;
}

/* Half of the blocks read half of what they should. Outputs, and what values decide, are not known; nor is a
 * tensor that an op line may read. */
static void test_what_is_not_read(void **state)
{
    (void)state;
    DeviceLaunch l[] = {launch("twice", x, t), launch("mirrored", t, y)};
    assert_int_equal(unread(l, 2, "input x"), 0);
    assert_int_equal(unread(l, 2, "buffer t"), 0);
    assert_int_equal(unread(l, 2, "output y"), -1);
    l[1].grid[0] = BLOCKS / 2;
    assert_int_equal(unread(l, 2, "buffer t"), N * 2);
    l[0].grid[0] = BLOCKS / 4;
    assert_int_equal(unread(l, 2, "input x"), N * 3);
    const DeviceLaunch by_values[] = {launch("twice", x, t), launch("follow", t, y)};
    assert_int_equal(unread(by_values, 2, "buffer t"), -1);
    l[0].op_line = 3;
    assert_int_equal(unread(l, 2, "input x"), -1);
    assert_int_equal(unread(l, 2, "buffer t"), N * 2);
}

static int set_up(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/cone.cu"));
    float *data = calloc(N, 4);
    for (size_t i = 0; i < N; i++) data[i] = input_at(i);
    x = sim_buffer(&sim, "input x", data, (size_t)N * 4);
    assert_int_equal(ops->protect(sim.d, x, 1, &sim.err), 0);
    t = sim_buffer(&sim, "buffer t", NULL, (size_t)N * 4);
    y = sim_buffer(&sim, "output y", NULL, (size_t)N * 4);
    free(data);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sim_stop(&sim);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_of_earlier_launches),
        cmocka_unit_test(test_more_than_is_enough),
        cmocka_unit_test(test_what_is_changed_in_place),
        cmocka_unit_test(test_sums_by_atomics),
        cmocka_unit_test(test_addresses_that_follow_from_values),
        cmocka_unit_test(test_places_that_follow_from_values),
        cmocka_unit_test(test_threads_of_a_block),
        cmocka_unit_test(test_costly_blocks_run_once),
        cmocka_unit_test(test_stores_that_values_decide),
        cmocka_unit_test(test_what_cannot_be_known),
        cmocka_unit_test(test_what_is_not_read),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
