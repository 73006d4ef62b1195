/* Samples of blocks: their counts against those of the whole launch, lazy contents, and launches
 * whose blocks wait for others. */
#include <math.h>

#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_support.h"

enum { N = 1 << 22, BLOCK = 256, BLOCKS = N / BLOCK };

static Sim sim;
static DevicePtr x, y;
static unsigned char comparable[2];

static const void *draw(void *of, int input, size_t from, void *dst, size_t bytes)
{
    (void)input;
    float *out = dst;
    for (size_t i = 0; i < bytes / 4; i++) out[i] = (float)((from / 4 + i) % 7) - 3;
    *(size_t *)of += bytes;
    return dst;
}

static DeviceLaunch launch(const char *kernel, uint32_t blocks)
{
    DeviceLaunch l = {.module = sim.m, .kernel = kernel, .block = {BLOCK, 1, 1}};
    l.grid[0] = blocks, l.grid[1] = l.grid[2] = 1;
    int n = N;
    memcpy(l.params, &x, 8);
    memcpy(l.params + 8, &y, 8);
    memcpy(l.params + 16, &n, 4);
    return l;
}

static double counter(const DeviceTiming *t, const char *name)
{
    for (int i = 0; i < t->n_counters; i++)
        if (!strcmp(t->counters[i].name, name)) return t->counters[i].value;
    fail_msg("no counter %s", name);
    return 0;
}

static void close_to(const DeviceTiming *a, const DeviceTiming *b, const char *name, double share)
{
    double want = counter(a, name), got = counter(b, name);
    if (got > want * (1 + share) || got < want * (1 - share))
        fail_msg("%s: %g from the sample, %g from all blocks", name, got, want);
}

/* traffic: compare DRAM traffic and time, too. */
static void compare(const char *kernel, double share, int traffic)
{
    static DeviceTiming all, some;
    DeviceSample s = {.growth = 1,
                      .least_growth = 1,
                      .flops_growth = 1,
                      .compared = 1,
                      .outputs = &y,
                      .n_outputs = 1,
                      .comparable = comparable};
    DeviceLaunch l = launch(kernel, N / BLOCK);
    assert_int_equal(ops->poison(sim.d, y, &sim.err), 0);
    if (ops->prediction->predict(sim.d, &l, 1, &all, &sim.fault)) fail_msg("%s", sim.fault.message);
    assert_int_equal(ops->poison(sim.d, y, &sim.err), 0);
    if (ops->prediction->sample(sim.d, &l, 1, &s, &some, &sim.fault))
        fail_msg("%s", sim.fault.message);
    assert_int_equal(s.blocks, N / BLOCK);
    assert_in_range(s.sampled, 2, 96);
    assert_int_equal(comparable[0], 1);
    assert_int_equal(s.held, 0);
    static const char *const names[] = {"warp_instructions", "thread_instructions",
                                        "global_load_sectors", "global_store_sectors",
                                        "waits_per_warp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        close_to(&all, &some, names[i], share);
    if (!traffic) return;
    close_to(&all, &some, "dram_bytes", share);
    if (some.candidate_us[0] > all.candidate_us[0] * (1 + share) ||
        some.candidate_us[0] < all.candidate_us[0] * (1 - share))
        fail_msg("%g us from the sample, %g from all", some.candidate_us[0], all.candidate_us[0]);
}

static void test_counts_match_the_whole_launch(void **state)
{
    (void)state;
    compare("clamp", 1e-3, 1);
    compare("swap", 1e-3, 1); /* whole clusters */
    compare("ramp", 1e-3, 0); /* a pair of blocks has the mean of both */
}

/* Samples a launch after a small one of the same kernel. */
static void sample_alone(const char *kernel, uint32_t blocks, DeviceTiming *t)
{
    DeviceSample s = {
        .growth = blocks / 8.0, .outputs = &y, .n_outputs = 1, .comparable = comparable};
    DeviceLaunch small = launch(kernel, 8), l = launch(kernel, blocks);
    memset(t, 0, sizeof *t);
    if (ops->prediction->predict(sim.d, &small, 1, t, &sim.fault) ||
        ops->prediction->sample(sim.d, &l, 1, &s, t, &sim.fault))
        fail_msg("%s", sim.fault.message);
}

/* The rows are larger than the block's L1. Warps that run side by side load them once. */
static void test_warps_share_what_one_has_loaded(void **state)
{
    (void)state;
    static DeviceTiming t;
    sample_alone("shared_rows", N / BLOCK, &t);
    assert_true(counter(&t, "l1_hit_sectors") == counter(&t, "global_load_sectors") / 8 * 7);
}

/* A transpose of 4096 rows, larger than L2. Eight blocks read each sector, at almost the same time: it
 * comes from DRAM once. */
static void transpose(const char *kernel, uint32_t row)
{
    enum { COLUMNS = 8192, BYTES = 4096 * COLUMNS * 4 };
    static DeviceTiming t;
    size_t drawn = 0;
    DeviceSample s = {.growth = COLUMNS};
    DeviceLaunch small = launch(kernel, 16), l = small;
    DevicePtr in = sim_buffer(&sim, "in", NULL, BYTES), out = sim_buffer(&sim, "out", NULL, BYTES);
    l.grid[0] = row, l.grid[1] = 16 * COLUMNS / row;
    memcpy(l.params, &in, 8);
    memcpy(l.params + 8, &out, 8);
    assert_int_equal(ops->prediction->fill_lazily(sim.d, in, draw, &drawn, 0, &sim.err), 0);
    if (ops->prediction->predict(sim.d, &small, 1, &t, &sim.fault) ||
        ops->prediction->sample(sim.d, &l, 1, &s, &t, &sim.fault))
        fail_msg("%s", sim.fault.message);
    if (counter(&t, "dram_bytes") > 2.2 * BYTES)
        fail_msg("%g bytes, expected %d", counter(&t, "dram_bytes"), 2 * BYTES);
    assert_true(counter(&t, "l2_sectors") >= BYTES / 4); /* but a request for each thread */
    ops->free(sim.d, in);
    ops->free(sim.d, out);
}

static void test_neighbours_share_sectors(void **state)
{
    (void)state;
    transpose("columns", 16);
    transpose("strided", 16 * 8192); /* the blocks that share lie 16 apart */
}

/* The same launch has the same prediction to the last bit, also after other launches. */
static void test_a_prediction_repeats(void **state)
{
    (void)state;
    static const char *const kernels[] = {"clamp", "ramp", "shared_rows"};
    static DeviceTiming t[6];
    for (int i = 0; i < 6; i++) {
        sample_alone(kernels[i % 3], N / BLOCK - 5, &t[i]);
        if (i >= 3) assert_memory_equal(&t[i], &t[i - 3], sizeof *t);
    }
}

static void test_contents_are_drawn_where_they_are_read(void **state)
{
    (void)state;
    static DeviceTiming t;
    size_t drawn = 0, from = 0, end = 0;
    float got[256];
    DeviceSample s = {.growth = 1};
    assert_int_equal(ops->poison(sim.d, y, &sim.err), 0);
    DeviceLaunch l = launch("clamp", N / BLOCK);
    assert_int_equal(ops->prediction->predict(sim.d, &l, 1, &t, &sim.fault), 0);
    assert_int_equal(ops->prediction->fill_lazily(sim.d, x, draw, &drawn, 0, &sim.err), 0);
    assert_int_equal(ops->poison(sim.d, y, &sim.err), 0);
    assert_int_equal(ops->prediction->sample(sim.d, &l, 1, &s, &t, &sim.fault), 0);
    assert_in_range(drawn, 4096, N / 64);
    assert_true(ops->prediction->written(sim.d, y, SIZE_MAX, &from, &end));
    assert_int_equal(from, 0);
    size_t whole = end;
    assert_true(ops->prediction->written(sim.d, y, 64, &from, &end) && whole > 64 && end == 64);
    assert_false(ops->prediction->written(sim.d, y, 0, &from, &end));
    from = whole - sizeof got;
    sim_read(&sim, y + from, got, sizeof got);
    for (size_t i = 0; i < 256; i++) {
        float v = (float)((from / 4 + i) % 7) - 3;
        assert_true(got[i] == (v > 0 ? v : 0));
    }
    from = N * 4 - 4;
    assert_true(ops->prediction->written(sim.d, y, SIZE_MAX, &from, &end)); /* by the last block */
}

/* An operator's launch that is repeated is sampled three times: the rest have its counters. */
static void test_repeated_launches(void **state)
{
    (void)state;
    enum { TIMES = 40 };
    static DeviceTiming t;
    static DeviceLaunch l[TIMES];
    uint64_t sampled[2];
    for (int op = 0; op < 2; op++) {
        DeviceSample s = {.growth = 1};
        for (int i = 0; i < TIMES; i++) {
            l[i] = launch("clamp", 256);
            l[i].op_line = op ? 7 : 0;
            l[i].op = op ? "aten.gru.input" : NULL;
        }
        if (ops->prediction->predict(sim.d, l, TIMES, &t, &sim.fault))
            fail_msg("%s", sim.fault.message);
        if (ops->prediction->sample(sim.d, l, TIMES, &s, &t, &sim.fault))
            fail_msg("%s", sim.fault.message);
        assert_int_equal(counter(&t, "launches"), TIMES);
        assert_int_equal(counter(&t, "blocks"), TIMES * 256);
        sampled[op] = s.sampled;
    }
    assert_true(sampled[0] >= TIMES);
    assert_true(sampled[1] * TIMES < sampled[0] * 4);
}

/* The block that draws the last number from a counter sums up what all have written: it runs, too. */
static void test_the_last_block_sums_up(void **state)
{
    (void)state;
    static DeviceTiming all, some;
    DeviceSample s = {.growth = 1, .outputs = &y, .n_outputs = 1, .comparable = comparable};
    DeviceLaunch wide = launch("last", 1024);
    if (ops->prediction->predict(sim.d, &wide, 1, &all, &sim.fault))
        fail_msg("%s", sim.fault.message);
    assert_int_equal(ops->poison(sim.d, y, &sim.err), 0);
    if (ops->prediction->sample(sim.d, &wide, 1, &s, &some, &sim.fault))
        fail_msg("%s", sim.fault.message);
    assert_int_equal(s.scaled, 0);
    assert_int_equal(comparable[0], 0);
    assert_in_range(s.sampled, 9, 97);
    close_to(&all, &some, "thread_instructions", 0.02);
    close_to(&all, &some, "global_load_sectors", 0.02);
    assert_true(counter(&some, "blocks") == 1024);
}

/* The census leaves open what a block does, so that eight would have to run, and the limit is that of four:
 * two tell it. */
static void test_blocks_that_are_too_dear_in_all(void **state)
{
    (void)state;
    static DeviceTiming t;
    DeviceSample s = {.growth = 64, .outputs = &y, .n_outputs = 1, .comparable = comparable};
    DeviceLaunch small = launch("open_trips", 2), wide = launch("open_trips", 1024);
    if (ops->prediction->predict(sim.d, &small, 1, &t, &sim.fault))
        fail_msg("%s", sim.fault.message);
    ops->prediction->follow(sim.d, 0); /* what has run before does not count */
    sim_set_limit(sim.d, 90000000);
    int rc = ops->prediction->sample(sim.d, &wide, 1, &s, &t, &sim.fault);
    sim_set_limit(sim.d, 8000000000);
    if (rc) fail_msg("%s", sim.fault.message);
    assert_int_equal(s.scaled, 1);
    assert_int_equal(s.sampled, 2);
}

/* Eight dear blocks are alike and load nothing. Each of the other 120 has less than 1% of the work. */
static void test_many_small_kinds(void **state)
{
    (void)state;
    static DeviceTiming t;
    DeviceSample s = {.growth = 1, .outputs = &y, .n_outputs = 1, .comparable = comparable};
    DeviceLaunch small = launch("many_kinds", 2), l = launch("many_kinds", 128);
    double sectors = 0;
    for (int b = 0; b < 128; b++) sectors += b % 16 ? (2200.0 + b) * 8 * 4 : 0;
    memset(&t, 0, sizeof t);
    if (ops->prediction->predict(sim.d, &small, 1, &t, &sim.fault) ||
        ops->prediction->sample(sim.d, &l, 1, &s, &t, &sim.fault))
        fail_msg("%s", sim.fault.message);
    assert_in_range(s.sampled, 9, 16);
    double got = counter(&t, "global_load_sectors");
    if (fabs(got / sectors - 1) > 0.05) fail_msg("%g sectors of %g", got, sectors);
}

/* Samples a kernel with a share of the blocks that it needs, after a small launch on a quarter of the bytes.
 * Returns how much longer it is held. */
static double held(DeviceSample s, const char *kernel, double share)
{
    static DeviceTiming t, free_of_it;
    DeviceSample compared = {
        .growth = 1, .compared = 1, .outputs = &y, .n_outputs = 1, .comparable = comparable};
    static const float zeros[N / 4];
    DevicePtr small[2] = {sim_buffer(&sim, "input x", zeros, N),
                          sim_buffer(&sim, "output y", NULL, N)};
    DeviceLaunch l = launch(kernel, BLOCKS / 4),
                 wide = launch(kernel, (uint32_t)(BLOCKS * share + 0.5));
    int quarter = N / 4;
    memcpy(l.params, &small[0], 8);
    memcpy(l.params + 8, &small[1], 8);
    memcpy(l.params + 16, &quarter, 4);
    assert_int_equal(ops->prediction->predict(sim.d, &l, 1, &t, &sim.fault), 0);
    for (int i = 0; i < 2; i++) ops->free(sim.d, small[i]);
    assert_int_equal(ops->prediction->sample(sim.d, &wide, 1, &compared, &free_of_it, &sim.fault),
                     0);
    assert_int_equal(compared.held, 0);
    s.outputs = &y;
    s.n_outputs = 1;
    s.comparable = comparable;
    assert_int_equal(ops->prediction->sample(sim.d, &wide, 1, &s, &t, &sim.fault), 0);
    assert_int_equal(comparable[0], 1);
    double factor = t.candidate_us[0] / free_of_it.candidate_us[0];
    assert_int_equal(s.held, factor > 1);
    return factor;
}

/* Outputs that are not compared: a plan that leaves work out is as long as one that does not. */
static void test_work_left_out(void **state)
{
    (void)state;
    DeviceSample s = {.growth = 4, .least_growth = 4, .flops_growth = 4};
    assert_true(held(s, "clamp", 1) == 1);
    double half = held(s, "clamp", 0.5);
    assert_true(half > 1.6 && half < 2);
    s.tensor_growth = 4; /* under half of a launch's bytes: what is missing takes its time once */
    double rest = held(s, "clamp", 0.4);
    assert_true(rest > half * 1.1 && rest < 2.5);
    s.least_growth = 1;
    assert_true(held(s, "clamp", 0.4) > 1.5);
    s.least_growth = 4;
    assert_true(held(s, "clamp", 0.95) == 1); /* a twentieth: seen where the task needs the bytes */
    s.own_bytes = 8.0 * N;
    assert_true(held(s, "clamp", 1) == 1);
    assert_true(held(s, "clamp", 0.95) > 1.03);
    s = (DeviceSample){.growth = 16, .least_growth = 4, .flops_growth = 16, .own_flops = INFINITY};
    /* The bytes grow as they should, the flops do not. */
    assert_true(held(s, "shared_rows", 1) > 3.5);
    s.own_flops = 512.0 * N;
    assert_true(held(s, "shared_rows", 1) == 1);
}

/* An output that two launches write, or that depends on what a sample left out, is not complete. */
static void test_each_output_has_its_writer(void **state)
{
    (void)state;
    static DeviceTiming t;
    DevicePtr z = sim_buffer(&sim, "output z", NULL, (size_t)N * 4), outputs[] = {z, y};
    DeviceSample s = {.growth = 4, .outputs = outputs, .n_outputs = 2, .comparable = comparable};
    DeviceLaunch small = launch("clamp", BLOCKS / 4), to_y = launch("clamp", BLOCKS), to_z = to_y;
    memcpy(to_z.params + 8, &z, 8);
    DeviceLaunch l[3] = {to_z, to_y, to_z};
    assert_int_equal(ops->prediction->predict(sim.d, &small, 1, &t, &sim.fault), 0);
    assert_int_equal(ops->prediction->sample(sim.d, l, 2, &s, &t, &sim.fault), 0);
    assert_int_equal(comparable[0], 1);
    assert_int_equal(comparable[1], 1);
    assert_int_equal(ops->prediction->sample(sim.d, l, 3, &s, &t, &sim.fault), 0);
    assert_int_equal(comparable[0], 0);
    assert_int_equal(comparable[1], 1);
    l[2] = launch("strided", BLOCKS); /* its blocks read of all of y */
    memcpy(l[2].params, &y, 8);
    memcpy(l[2].params + 8, &z, 8);
    small = launch("strided", BLOCKS / 4);
    assert_int_equal(ops->prediction->predict(sim.d, &small, 1, &t, &sim.fault), 0);
    assert_int_equal(ops->poison(sim.d, y, &sim.err), 0);
    assert_int_equal(ops->prediction->sample(sim.d, l + 2, 1, &s, &t, &sim.fault), 0);
    assert_int_equal(comparable[0], 0);
}

static int set_up(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/sample_positions.cu"));
    float *data = calloc(N, 4);
    x = sim_buffer(&sim, "input x", data, (size_t)N * 4);
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
        cmocka_unit_test(test_counts_match_the_whole_launch),
        cmocka_unit_test(test_warps_share_what_one_has_loaded),
        cmocka_unit_test(test_neighbours_share_sectors),
        cmocka_unit_test(test_a_prediction_repeats),
        cmocka_unit_test(test_repeated_launches),
        cmocka_unit_test(test_the_last_block_sums_up),
        cmocka_unit_test(test_blocks_that_are_too_dear_in_all),
        cmocka_unit_test(test_many_small_kinds),
        cmocka_unit_test(test_work_left_out),
        cmocka_unit_test(test_each_output_has_its_writer),
        cmocka_unit_test(test_contents_are_drawn_where_they_are_read),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
