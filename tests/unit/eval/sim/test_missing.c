/* What launches leave out at the timed size: by kernel and buffer, with fixed buffers and grids, loops, data
 * that is kept on chip, and padding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/missing.h"

enum { MOST = 8 };
static SequenceWork small, now;
static DeviceLaunch launches[MOST];
static DeviceSample sample;
static double left_out[MOST];

/* The launches are of kernels "a", "b" and so on. */
static void begin(int n_small, int n_now)
{
    work_release(&small);
    work_release(&now);
    small = work_new(n_small), now = work_new(n_now);
    for (int i = 0; i < MOST; i++) {
        static char names[MOST][4];
        snprintf(names[i], sizeof names[i], "%c", 'a' + i);
        launches[i] = (DeviceLaunch){.kernel = names[i]};
        if (i < n_small) small.counts[i] = (SimCounts){.blocks = 64, .block = {256, 1, 1}};
        if (i < n_now) now.counts[i] = (SimCounts){.blocks = 64, .block = {256, 1, 1}};
        if (i < n_small)
            snprintf(small.counts[i].kernel, sizeof small.counts[i].kernel, "%s", names[i]);
        if (i < n_now) snprintf(now.counts[i].kernel, sizeof now.counts[i].kernel, "%s", names[i]);
    }
    sample = (DeviceSample){
        .growth = 100, .least_growth = 100, .flops_growth = 100, .tensor_growth = 100};
}

static void use(SequenceWork *w, int launch, const char *label, double size, double asked,
                double touched)
{
    LaunchUses *u = &w->uses[launch];
    u->of = memory_grow(u->of, (size_t)u->n + 1, sizeof *u->of);
    BufferUse *b = &u->of[u->n++];
    *b = (BufferUse){.size = size, .asked = asked, .touched = touched};
    snprintf(b->label, sizeof b->label, "%s", label);
    w->counts[launch].global_load_bytes += (uint64_t)asked;
}

/* x of 1e6 bytes grows to 1e8: the launches read it so often at both sizes. */
static void use_x(int launch, double passes_small, double passes_now)
{
    use(&small, launch, "input x", 1e6, 1e6 * passes_small, 1e6 * fmin(passes_small, 1));
    use(&now, launch, "input x", 1e8, 1e8 * passes_now, 1e8 * fmin(passes_now, 1));
}

static double factor(void)
{
    return missing_work(&small, &now, launches, &sample, left_out);
}

static void test_what_grows_with_the_tensors_is_enough(void **state)
{
    (void)state;
    begin(2, 2);
    use_x(0, 1, 1);
    use_x(1, 2, 2);
    assert_true(factor() == 1);
    assert_true(left_out[0] == 0 && left_out[1] == 0);
}

static void test_a_part_is_too_little(void **state)
{
    (void)state;
    begin(2, 2);
    use_x(0, 1, 1.0 / 16);
    use_x(1, 1, 1);
    assert_float_equal(factor(), 2 / (1 + 1.0 / 16), 1e-6);
    assert_float_equal(left_out[0], 1e8 * 15 / 16, 1);
    assert_true(left_out[1] == 0);
    begin(1, 1);
    use(&small, 0, "input x", 1e6, 1e6, 1e6);
    use(&now, 0, "output y", 1e8, 1e8, 1e8); /* another buffer does not stand for it */
    assert_true(factor() > 1e6);
    assert_float_equal(left_out[0], 1e8, 1);
}

/* The task needs 1e8 bytes and 1e9 flops. */
static double compared(double passes, double flops_small, double flops_now, int open)
{
    begin(1, 1);
    sample.own_bytes = 1e8, sample.own_flops = 1e9;
    use_x(0, 1, passes);
    small.counts[0].fp32_flops = (uint64_t)flops_small;
    now.counts[0].fp32_flops = (uint64_t)flops_now;
    return missing_compared(&small, &now, launches, &sample, open);
}

/* Where outputs are compared, what no kernel needs may be left out, but not most of the task. Integer work
 * counts no flops. */
static void test_a_part_of_the_task_where_outputs_are_compared(void **state)
{
    (void)state;
    assert_true(compared(1, 1e7, 1e9, 0) == 1);
    assert_true(compared(0.6, 1e7, 1.7e8, 0) == 1);
    assert_true(compared(0.1, 1e7, 1e9, 0) > 4.9);
    assert_true(compared(1, 1e7, 1e7, 0) > 14);
    assert_true(compared(1, 0, 0, 0) == 1);
    assert_true(compared(1, 1e4, 1e6, 0) == 1);
    assert_true(compared(1, 1e7, 8e8, 1) == 1);
    assert_true(compared(1, 1e7, 5e8, 1) > 1.3);
    assert_true(compared(0.6, 1e7, 1e9, 1) > 1.4);
}

/* Each block reads 4 KiB of partial sums, as many at both sizes: most of all bytes at the small one. */
static void test_a_fixed_buffer_does_not_grow(void **state)
{
    (void)state;
    begin(2, 2);
    use_x(0, 1, 1);
    use_x(1, 1, 1);
    use(&small, 1, "buffer sums", 4096, 32e6, 4096);
    use(&now, 1, "buffer sums", 4096, 32e6, 32e6);
    assert_true(factor() == 1);
    assert_true(left_out[0] == 0 && left_out[1] == 0);
}

/* A fixed grid of which each block reads all gains: 8 rows of 1 KiB grow to 800, and the gains to 4 KiB. */
static void test_a_fixed_grid_need_not_read_more(void **state)
{
    (void)state;
    begin(1, 1);
    use_x(0, 1, 1);
    use(&small, 0, "input gain", 1024, 65536 * 1024.0, 1024);
    use(&now, 0, "input gain", 4096, 65536 * 4096.0, 65536 * 4096.0);
    assert_true(factor() == 1);
    now.uses[0].of[1].asked = now.uses[0].of[1].touched =
        65536 * 1024.0; /* some blocks leave it out */
    assert_true(factor() == 1);
    assert_true(left_out[0] == 0);
    now.counts[0].blocks = 6400; /* with a grid that grows each block needs them */
    assert_true(factor() > 2);
}

/* To read the first part of a buffer again is not to read all of it. */
static void test_padding_does_not_count(void **state)
{
    (void)state;
    begin(2, 2);
    use(&small, 0, "input x", 1e6, 1e6, 1e6);
    use(&now, 0, "input x", 1e8, 1e8, 1e8 / 16);
    use_x(1, 1, 1);
    use(&small, 1, "buffer sums", 4096, 4096, 4096);
    use(&now, 1, "buffer sums", 4096, 1e9, 4096);
    assert_float_equal(factor(), 2 / (1 + 1.0 / 16), 1e-3);
    assert_float_equal(left_out[0], 1e8 * 15 / 16, 1);
}

/* Four launches of a kernel that read a quarter of x each, and n of them at the timed size. */
static void begin_loop(int n)
{
    begin(4, n);
    for (int i = 0; i < 4; i++) {
        strcpy(small.counts[i].kernel, "a");
        use(&small, i, "input x", 1e6, 1e6 / 4, 1e6 / 4);
    }
    for (int i = 0; i < n; i++) {
        strcpy(now.counts[i].kernel, "a");
        launches[i].kernel = "a";
        use(&now, i, "input x", 1e8, 1e8 / 4, 1e8 / 4);
    }
}

static void test_launches_left_out(void **state)
{
    (void)state;
    begin_loop(1);
    assert_float_equal(factor(), 4, 1e-6);
    now.uses[0].of[0].asked = now.uses[0].of[0].touched = 1e8;
    now.counts[0].global_load_bytes = (uint64_t)1e8;
    assert_true(factor() == 1);
}

/* A source launches it at the small size alone, by an empty loop at the timed one. */
static void test_a_kernel_of_the_small_size(void **state)
{
    (void)state;
    begin(2, 1);
    use_x(0, 1, 1);
    use(&small, 1, "input x", 1e6, 1e6, 1e6);
    assert_float_equal(factor(), 2, 1e-6);
    assert_float_equal(left_out[0], 1e8, 1);
}

static void test_a_loop_leaves_out_as_one_launch_does(void **state)
{
    (void)state;
    begin_loop(4);
    assert_true(factor() == 1);
    assert_true(left_out[0] == 0);
    for (int i = 0; i < 4; i++) now.uses[i].of[0].asked = now.uses[i].of[0].touched = 1e8 / 12;
    assert_float_equal(factor(), 3, 1e-6);
    assert_float_equal(left_out[0], 1e8 * 2 / 3, 1);
    assert_true(left_out[1] == 0);
    use(&now, 1, "input x", 1e8, 1e8 * 2 / 3, 1e8 * 2 / 3); /* one launch does the rest for all */
    assert_true(factor() == 1);
}

/* At the small size the inputs pass through a scratch buffer of fixed size, so that they are read once. */
static void test_copies_grow(void **state)
{
    (void)state;
    begin(1, 1);
    use_x(0, 1, 1);
    use(&small, 0, "buffer copy", 1e6, 2e6, 2e6);
    use(&now, 0, "buffer copy", 1e6, 0, 0);
    small.uses[0].of[1].scratch = now.uses[0].of[1].scratch = 1;
    assert_float_equal(factor(), 3, 1e-6);
    assert_float_equal(left_out[0], 2e8, 1);
    small.uses[0].of[1].asked = small.uses[0].of[1].touched = 1e5; /* partial results */
    assert_true(factor() == 1);
    assert_true(left_out[0] == 0);
}

/* Two passes at the small size: a block that keeps its part needs one, a long part needs both. */
static void test_what_fits_on_chip_is_read_once(void **state)
{
    (void)state;
    begin(1, 1);
    use_x(0, 2, 1);
    now.counts[0].blocks = 1000;
    assert_true(factor() == 1);
    now.counts[0].blocks = 100;
    assert_float_equal(factor(), 2, 1e-6);
}

/* Each block of a fixed grid reads all of x at the small size: once is too little then. */
static void test_one_pass_for_many(void **state)
{
    (void)state;
    begin(1, 1);
    use_x(0, 64, 1);
    assert_float_equal(factor(), 2, 1e-6);
    now.uses[0].of[0].asked *= 2;
    assert_true(factor() == 1);
}

/* A launch that cannot be sampled does what it did before, grown. One of an op line is not looked at. */
static void test_scaled_and_other_launches(void **state)
{
    (void)state;
    begin(2, 2);
    use(&small, 0, "input x", 1e6, 1e6, 1e6);
    use(&now, 0, "input x", 1e8, 0, 0);
    now.uses[0].scaled = 1;
    use_x(1, 1, 1);
    assert_true(factor() == 1);
    assert_true(left_out[0] == 0);
    begin(2, 2);
    use_x(0, 1, 0.1);
    use_x(1, 1, 1);
    small.counts[0].op_line = now.counts[0].op_line = launches[0].op_line = 3;
    assert_true(factor() == 1);
    assert_true(left_out[0] == 0);
}

static int release(void **state)
{
    (void)state;
    work_release(&small);
    work_release(&now);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_grows_with_the_tensors_is_enough),
        cmocka_unit_test(test_a_part_is_too_little),
        cmocka_unit_test(test_a_part_of_the_task_where_outputs_are_compared),
        cmocka_unit_test(test_a_fixed_buffer_does_not_grow),
        cmocka_unit_test(test_a_fixed_grid_need_not_read_more),
        cmocka_unit_test(test_padding_does_not_count),
        cmocka_unit_test(test_launches_left_out),
        cmocka_unit_test(test_a_kernel_of_the_small_size),
        cmocka_unit_test(test_a_loop_leaves_out_as_one_launch_does),
        cmocka_unit_test(test_copies_grow),
        cmocka_unit_test(test_what_fits_on_chip_is_read_once),
        cmocka_unit_test(test_one_pass_for_many),
        cmocka_unit_test(test_scaled_and_other_launches),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, release);
}
