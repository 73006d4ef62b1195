/* Races between blocks and between warps in global memory, and the orders that prevent them. */
#include "sim_checks.h"

static void test_global_races(void **state)
{
    (void)state;
    static uint32_t zeros[1024];
    DevicePtr x;
    /* blocks write different values to one word */
    sim_start(&sim, ENTRY(P64(0)) LOC(4) "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, "
                                         "%ctaid.x;\nst.global.u32 [%rd1+8], %r1;\n" TAIL);
    x = sim_buffer(&sim, "output y", zeros, 64);
    int r = sim_try(&sim, shape(2, 1), 1, A(x));
    expect(r, OUTCOME_RACE, 4,
           "writes output y at offset 8, which block 0 also writes in the same launch");

    /* the same value by two blocks is no race */
    sim_start(&sim, ENTRY(P64(0)) "ld.param.u64 %rd1, [p0];\nst.global.u32 [%rd1+8], 9;\n" TAIL);
    x = sim_buffer(&sim, "output y", zeros, 64);
    accept(sim_try(&sim, shape(2, 1), 1, A(x)));

    /* a block reads what another block writes */
    sim_start(&sim, ENTRY(P64(0))
                        LOC(6) "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 "
                               "%rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
                               "st.global.u32 [%rd3], 1;\nld.global.u32 %r2, [%rd3+-4];\n" TAIL);
    x = sim_buffer(&sim, "t", zeros, 64);
    r = sim_try(&sim, shape(4, 1), 1, A(x + 4));
    expect(r, OUTCOME_RACE, 6, "reads t at offset 4, which block 0 also writes");

    /* a block reads, a later one writes */
    sim_start(&sim,
              ENTRY(P64(0)) LOC(6) "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 "
                                   "%rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
                                   "ld.global.u32 %r2, [%rd3+4];\nst.global.u32 [%rd3], 1;\n" TAIL);
    x = sim_buffer(&sim, "t", zeros, 64);
    r = sim_try(&sim, shape(4, 1), 1, A(x));
    expect(r, OUTCOME_RACE, 6, "writes t at offset 4, which block 0 reads");

    /* halves of one word by two blocks do not conflict */
    sim_start(&sim, ENTRY(P64(0)) "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 "
                                  "%rd2, %r1, 2;\nadd.s64 %rd3, %rd1, %rd2;\n"
                                  "cvt.u16.u32 %h1, %r1;\nst.global.u16 [%rd3], %h1;\n" TAIL);
    x = sim_buffer(&sim, "t", zeros, 64);
    accept(sim_try(&sim, shape(8, 1), 1, A(x)));

    /* two warps of one block, without and with a barrier */
    sim_start(&sim, ENTRY(P64(0)) POINTER LOC(5) "st.global.u32 [%rd1], %r1;\nxor.b64 %rd3, %rd1, "
                                                 "128;\nld.global.u32 %r2, [%rd3];\n" TAIL);
    x = sim_buffer(&sim, "t", zeros, 256);
    r = sim_try(&sim, shape(1, 64), 1, A(x));
    expect(r, OUTCOME_RACE, 5,
           "thread (32,0,0): writes t at offset 128, which another warp of the block reads");
    sim_start(&sim, ENTRY(P64(0)) POINTER "st.global.u32 [%rd1], %r1;\nbar.sync 0;\nxor.b64 %rd3, "
                                          "%rd1, 128;\nld.global.u32 %r2, [%rd3];\n" TAIL);
    x = sim_buffer(&sim, "t", zeros, 256);
    accept(sim_try(&sim, shape(1, 64), 1, A(x)));
}

/* The last block to finish sums what all wrote: a fence and an atomic order it. */
#define LAST_BLOCK(fence)                                                                          \
    ENTRY(P64(0))                                                                                  \
    "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, " \
    "%rd1, %rd2;\n"                                                                                \
    "st.global.u32 [%rd3+16], %r1;\n" fence                                                        \
    "atom.global.inc.u32 %r2, [%rd1], 100;\nmov.u32 %r3, %nctaid.x;\nsub.u32 %r3, %r3, 1;\n"       \
    "setp.ne.u32 %p1, %r2, %r3;\n@%p1 ret;\n" LOC(                                                 \
        20) "ld.global.u32 %r4, [%rd1+16];\nld.global.u32 %r5, [%rd1+20];\nadd.u32 %r4, %r4, "     \
            "%r5;\n"                                                                               \
            "st.global.u32 [%rd1+4], %r4;\nst.global.u32 [%rd1], 0;\n" TAIL

static void test_ordered(void **state)
{
    (void)state;
    static uint32_t zeros[64];
    sim_start(&sim, LAST_BLOCK("membar.gl;\n"));
    DevicePtr x = sim_buffer(&sim, "t", zeros, 256);
    sim_run(&sim, shape(4, 1), 1, A(x));
    uint32_t sum[2];
    sim_read(&sim, x, sum, 8);
    assert_int_equal(sum[1], 0 + 1);
    sim_stop(&sim);
    sim_start(&sim, LAST_BLOCK(""));
    x = sim_buffer(&sim, "t", zeros, 256);
    int r = sim_try(&sim, shape(4, 1), 1, A(x));
    expect(r, OUTCOME_RACE, 20, "reads t at offset 16, which block 0 also writes");

    /* a lock between lanes of one warp: no deadlock */
    sim_start(&sim, ENTRY(P64(0)) "ld.param.u64 %rd1, [p0];\nT:\natom.global.cas.b32 %r2, [%rd1], "
                                  "0, 1;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra T;\n"
                                  "ld.volatile.global.u32 %r3, [%rd1+4];\nadd.u32 %r3, %r3, "
                                  "1;\nst.volatile.global.u32 [%rd1+4], %r3;\nmembar.gl;\n"
                                  "atom.global.exch.b32 %r4, [%rd1], 0;\n" TAIL);
    x = sim_buffer(&sim, "t", zeros, 256);
    sim_run(&sim, shape(2, 64), 1, A(x));
    sim_read(&sim, x, sum, 8);
    assert_int_equal(sum[1], 128);
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_global_races),
        cmocka_unit_test(test_ordered),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
