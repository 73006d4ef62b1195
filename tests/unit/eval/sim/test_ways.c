/* The blocks that go ways which a sample does not go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/sim/coverage/ways.h"

static const char head[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
                           ".reg .pred %p<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<9>;\n"
                           "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n"
                           "cvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r2, %ctaid.x;\n"
                           "mov.u32 %r3, %tid.x;\nmov.u32 %r5, %nctaid.x;\nmov.u32 %r6, %r2;\n";
static const char tail[] = "st.global.u32 [%rd2], %r7;\ndone:\nret;\n}\n";

static void find(const char *body, uint32_t grid, int64_t budget, Ways *out)
{
    PtxModule m;
    Error err;
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s", head, body, tail);
    if (ptx_parse(text, strlen(text), &m, &err)) fail_msg("%s", err.text);
    DeviceLaunch l = {.kernel = "k", .grid = {grid, 1, 1}, .block = {256, 1, 1}};
    ways_find(&m, &m.functions[0], &l, budget, 7, out);
    ptx_release(&m);
}

/* A value that is selected by the place of a block decides no branch. */
static void test_a_choice_without_a_branch(void **state)
{
    (void)state;
    const uint64_t before[] = {0, 100, 776}, both[] = {5, 800};
    uint64_t blocks[4];
    Ways w;
    find("setp.lt.s32 %p2, %r2, 777;\nselp.u32 %r7, 100, 10, %p2;\n", 1000, 1000000, &w);
    assert_int_equal(w.n_sets, 2);
    for (uint64_t seed = 0; seed < 20; seed++) {
        const WaysOf of = {before, 3, 0, seed};
        assert_int_equal(ways_choose(&w, &of, blocks, 4), 1);
        assert_in_range(blocks[0], 777, 999);
    }
    assert_int_equal(ways_choose(&w, &(WaysOf){both, 2, 0, 1}, blocks, 4), 0);
    /* of the last quarter, where one of both lies */
    assert_int_equal(ways_choose(&w, &(WaysOf){both, 2, 4, 1}, blocks, 4), 1);
    assert_int_equal(blocks[0], 776);
    ways_release(&w);
}

/* Rows by trips of a block: what a block does behind row 600 matters where another trip follows alone. */
static void test_an_order_of_outcomes(void **state)
{
    (void)state;
    const uint64_t ran[] = {0, 10, 63};
    uint64_t blocks[4];
    Ways w;
    find("again:\nsetp.lt.s32 %p2, %r6, 600;\nselp.u32 %r7, 0, %r7, %p2;\n"
         "add.s32 %r6, %r6, 64;\nsetp.lt.s32 %p1, %r6, 670;\n@%p1 bra again;\n",
         64, 1000000, &w);
    /* blocks from 24 on come to row 600 in their last trip; from 24 to 29 one more follows */
    assert_int_equal(ways_choose(&w, &(WaysOf){ran, 3, 0, 3}, blocks, 4), 1);
    assert_in_range(blocks[0], 24, 29);
    ways_release(&w);
}

static void test_without_a_budget(void **state)
{
    (void)state;
    uint64_t block = 0;
    Ways w;
    find("setp.lt.s32 %p2, %r2, 777;\nselp.u32 %r7, 100, 10, %p2;\n", 1000, 0, &w);
    assert_int_equal(w.n_boxes, 0);
    assert_int_equal(ways_choose(&w, &(WaysOf){&block, 1, 0, 1}, &block, 1), 0);
    ways_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_choice_without_a_branch),
        cmocka_unit_test(test_an_order_of_outcomes),
        cmocka_unit_test(test_without_a_budget),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
