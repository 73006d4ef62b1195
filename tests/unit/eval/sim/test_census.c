/* The kinds of blocks of a launch, by the branches that they take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/sim/coverage/census.h"

static const char head[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
                           ".reg .pred %p<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<9>;\n"
                           "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n"
                           "cvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r2, %ctaid.x;\n"
                           "mov.u32 %r3, %tid.x;\nmov.u32 %r5, %nctaid.x;\nmov.u32 %r6, 0;\n";
static const char tail[] = "done:\nret;\n}\n";
static const char until_r7[] = "again:\nsetp.ge.s32 %p1, %r6, %r7;\n@%p1 bra done;\n"
                               "add.s32 %r6, %r6, 1;\nbra again;\n";

typedef struct {
    int n, open;
    uint64_t known, heaviest; /* heaviest: blocks of the kind with the largest cost */
    double most, sum;         /* costs: the largest, and of all blocks */
    double path;              /* the longest */
    int opens; /* kinds that memory decides other branches of than of the first one */
} Found;

static Found take(const char *body, uint32_t grid, uint32_t n, int64_t budget)
{
    PtxModule m;
    Error err;
    char text[4096];
    Census c;
    Found f = {0};
    snprintf(text, sizeof text, "%s%s%s", head, body, tail);
    if (ptx_parse(text, strlen(text), &m, &err)) fail_msg("%s", err.text);
    DeviceLaunch l = {.kernel = "k", .grid = {grid, 1, 1}, .block = {256, 1, 1}};
    memcpy(l.params + 8, &n, sizeof n);
    census_take(&m, &m.functions[0], &l, &(CensusLimit){.budget = budget, .seed = 7}, &c);
    f.n = c.n, f.open = c.open, f.known = c.known;
    for (int k = 0; k < c.n; k++) {
        if (c.kinds[k].cost > f.most) f.most = c.kinds[k].cost, f.heaviest = c.kinds[k].blocks;
        f.sum += c.kinds[k].cost * (double)c.kinds[k].blocks;
        if (c.kinds[k].path > f.path) f.path = c.kinds[k].path;
        f.opens += c.kinds[k].opens != c.kinds[0].opens;
    }
    if (c.known == grid)
        for (uint32_t b = 0; b < grid; b++) assert_in_range(census_kind(&c, b), 0, c.n - 1);
    census_release(&c);
    ptx_release(&m);
    return f;
}

static Found loop(const char *bound, uint32_t grid, uint32_t n)
{
    char body[2048];
    snprintf(body, sizeof body, "%s%s", bound, until_r7);
    return take(body, grid, n, 1000000);
}

/* One block has a longer way than the others: by the trips of one warp, or by memory. */
static void test_ways(void **state)
{
    (void)state;
#define FIFTH "setp.ne.s32 %p2, %r2, 5;\n@%p2 bra done;\n"
    Found all = loop("mov.u32 %r7, 100;\n", 40, 1),
          one = loop(FIFTH "setp.ge.s32 %p3, %r3, 32;\n@%p3 bra done;\nmov.u32 %r7, 100;\n", 40, 1),
          open = loop(FIFTH "ld.global.u32 %r7, [%rd2];\n", 40, 1);
    assert_int_equal(one.n, 2);
    assert_true(one.path >= all.path && one.most < all.most / 4);
    assert_int_equal(one.opens, 0);
    assert_int_equal(open.n, 2);
    assert_int_equal(open.opens, 1);
#undef FIFTH
}

static void test_blocks_of_one_kind(void **state)
{
    (void)state;
    Found f = loop("mov.u32 %r7, %r1;\n", 100000, 7);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.known, 100000);
    assert_true(f.most == 8 * (9 + 2 * 8 + 2 * 7));
}

/* One block of many takes a thousand times longer than the others, and has a kind of its own. */
static void test_a_heavy_block_is_found(void **state)
{
    (void)state;
    Found f = loop("setp.eq.s32 %p2, %r2, 777;\nselp.u32 %r7, 100000, 10, %p2;\n", 100000, 0);
    assert_int_equal(f.n, 2);
    assert_int_equal(f.known, 100000);
    assert_int_equal(f.heaviest, 1);
    assert_in_range(f.most, 8 * 4 * 100000, 8 * 4 * 100000 + 1000);
}

/* A loop of a thousand million trips costs as little as a short one. Buffers that alternate within it, and an
 * inner loop, do not matter. */
static void test_long_loops_are_not_run(void **state)
{
    (void)state;
    Found f = loop("mov.u32 %r7, 1000000000;\n", 64, 0);
    assert_int_equal(f.known, 64);
    assert_true(f.most == 8 * (9 + 2 * 1000000001.0 + 2 * 1000000000.0));
    f = take("mov.u32 %r8, 0;\n"
             "outer:\nsetp.ge.s32 %p1, %r6, 30000;\n@%p1 bra done;\nxor.b32 %r8, %r8, 1;\n"
             "mov.u32 %r9, 0;\nsetp.eq.s32 %p3, %r8, 1;\n@%p3 bra inner;\nmov.u32 %r9, 500;\n"
             "inner:\nadd.s32 %r9, %r9, 1;\nsetp.lt.s32 %p2, %r9, 1000;\n@%p2 bra inner;\n"
             "add.s32 %r6, %r6, 1;\nbra outer;\n",
             64, 0, 1000000);
    assert_int_equal(f.known, 64);
    assert_true(f.most ==
                8 * (9 + 2 * 30001.0 + 4 * 30000.0 + 15000 + 3 * 1500 * 15000.0 + 2 * 30000.0));
}

/* The work of a block grows with its place. */
static void test_every_block_may_be_a_kind(void **state)
{
    (void)state;
    Found f = loop("mov.u32 %r7, %r2;\n", 500, 0);
    assert_int_equal(f.known, 500);
    assert_int_equal(f.n, 500);
    assert_true(f.sum == 8 * (500 * (9.0 + 2) + 4 * 500 * 499 / 2));
}

/* What memory decides is passed over, and does not hide what follows. */
static void test_memory_decides(void **state)
{
    (void)state;
    Found f = take("ld.global.u32 %r8, [%rd2];\nsetp.eq.s32 %p1, %r8, 5;\n@%p1 bra on;\n"
                   "mov.u32 %r6, 3;\non:\nmov.u32 %r6, 0;\nmov.u32 %r7, %r1;\n"
                   "again:\nsetp.ge.s32 %p1, %r6, %r7;\n@%p1 bra done;\nadd.s32 %r6, %r6, 1;\n"
                   "bra again;\n",
                   1000, 50, 1000000);
    assert_int_equal(f.known, 1000);
    assert_int_equal(f.open, 1);
    assert_true(f.most == 8 * (8 + 3 + 2 + 2 * 51 + 2 * 50));
    f = loop("ld.global.u32 %r7, [%rd2];\n", 1000, 0);
    assert_int_equal(f.open, 1);
}

/* A census ends with its budget: the blocks that are left have no kind. */
static void test_the_budget(void **state)
{
    (void)state;
    Found f = take("mul.lo.s32 %r7, %r2, -1640531535;\nshr.u32 %r7, %r7, 20;\n"
                   "again:\nsetp.ge.s32 %p1, %r6, %r7;\n@%p1 bra done;\nadd.s32 %r6, %r6, 1;\n"
                   "bra again;\n",
                   1000, 0, 20000);
    assert_in_range(f.known, 1, 900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_blocks_of_one_kind),
        cmocka_unit_test(test_a_heavy_block_is_found),
        cmocka_unit_test(test_long_loops_are_not_run),
        cmocka_unit_test(test_every_block_may_be_a_kind),
        cmocka_unit_test(test_memory_decides),
        cmocka_unit_test(test_the_budget),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
