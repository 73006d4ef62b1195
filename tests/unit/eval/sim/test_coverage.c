/* What all blocks of a launch write, by the slice of its stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/sim/coverage/coverage.h"

enum { BYTES = 1 << 20 };

static const char head[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
                           ".reg .pred %p<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<9>;\n"
                           "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n"
                           "cvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r2, %ctaid.x;\n"
                           "mov.u32 %r3, %tid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %nctaid.x;\n";
static const char tail[] = "ret;\n}\n";
static const char put[] = "mul.wide.s32 %rd3, %r6, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"
                          "st.global.u32 [%rd4], %r3;\n";

typedef struct {
    uint64_t holes, first, ran;
    int known;
} Found;

/* What a kernel with this body writes or reads of BYTES, with n elements. */
static Found find_kind(SliceKind kind, const char *body, uint32_t grid, uint32_t block, uint32_t n)
{
    static DevMem mem;
    PtxModule m;
    Error err;
    uint64_t y;
    char text[4096];
    int64_t budget = 100000000;
    uint8_t wanted[1] = {1};
    Coverage c;
    Found f;
    snprintf(text, sizeof text, "%s%s%s", head, body, tail);
    if (ptx_parse(text, strlen(text), &m, &err)) fail_msg("%s", err.text);
    assert_int_equal(devmem_open(&mem, 16 << 20, &err), 0);
    assert_int_equal(devmem_new(&mem, BYTES, "y", &y, &err), 0);
    DeviceLaunch l = {.kernel = "k", .grid = {grid, 1, 1}, .block = {block, 1, 1}};
    memcpy(l.params, &y, sizeof y);
    memcpy(l.params + 8, &n, sizeof n);
    CoverageOf of = {&mem, &m, &m.functions[0], &l, wanted, 4, kind};
    coverage_find(&of, &budget, &c);
    f.holes = written_holes(&c.of[0], &f.first);
    f.ran = c.ran;
    f.known = !c.why[0];
    coverage_release(&c);
    devmem_close(&mem);
    ptx_release(&m);
    return f;
}

static Found find(const char *body, uint32_t grid, uint32_t block, uint32_t n)
{
    return find_kind(SLICE_STORES, body, grid, block, n);
}

static Found find_with_put(const char *before, uint32_t grid, uint32_t n)
{
    char body[2048];
    snprintf(body, sizeof body, "%s%sdone:\n", before, put);
    return find(body, grid, 256, n);
}

static void test_one_block_stands_for_all(void **state)
{
    (void)state;
    Found f = find_with_put(
        "mad.lo.s32 %r6, %r2, %r4, %r3;\nsetp.ge.s32 %p1, %r6, %r1;\n@%p1 bra done;\n",
        BYTES / 1024, BYTES / 4);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
    assert_int_equal(f.ran, 1);
}

static void test_the_tail_is_another_block(void **state)
{
    (void)state;
    Found f = find_with_put(
        "mad.lo.s32 %r6, %r2, %r4, %r3;\nsetp.ge.s32 %p1, %r6, %r1;\n@%p1 bra done;\n",
        4 * BYTES / 1024, BYTES / 4 - 100);
    assert_true(f.known);
    assert_int_equal(f.holes, 100);
    assert_int_equal(f.first, BYTES - 400);
    assert_int_equal(f.ran, 3);
}

static void test_small_grids_and_repeated_blocks(void **state)
{
    (void)state;
    assert_int_equal(find_with_put("mad.lo.s32 %r6, %r2, %r4, %r3;\n", 1000, 0).holes, 6144);
    Found f = find_with_put("and.b32 %r7, %r2, 511;\nmad.lo.s32 %r6, %r7, %r4, %r3;\n", 1024, 0);
    assert_int_equal(f.holes, BYTES / 8);
    assert_int_equal(f.first, BYTES / 2);
    assert_int_equal(f.ran, 2);
}

/* Rows and columns by a quotient and a remainder, and every 16th block at a place that is not linear. */
static void test_quotients(void **state)
{
    (void)state;
    Found f = find_with_put("mad.lo.s32 %r6, %r2, %r4, %r3;\ndiv.u32 %r7, %r6, %r1;\n"
                            "rem.u32 %r8, %r6, %r1;\nmad.lo.s32 %r6, %r7, %r1, %r8;\n",
                            1024, 512);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
    f = find_with_put("mul.lo.s32 %r7, %r2, -1640531535;\nshr.u32 %r7, %r7, 28;\n"
                      "setp.eq.s32 %p1, %r7, 5;\n@%p1 bra done;\nmad.lo.s32 %r6, %r2, %r4, %r3;\n",
                      1024, 0);
    assert_true(f.known);
    assert_in_range(f.holes, 256 * 32, 256 * 96);
}

/* for (i = block; i < all; i += grid) */
static void test_loops(void **state)
{
    (void)state;
    Found f =
        find("mad.lo.s32 %r6, %r2, %r4, %r3;\nmul.lo.s32 %r7, %r4, %r5;\n"
             "again:\nsetp.ge.s32 %p1, %r6, %r1;\n@%p1 bra done;\n"
             "mul.wide.s32 %rd3, %r6, 4;\nadd.s64 %rd4, %rd2, %rd3;\nst.global.u32 [%rd4], %r3;\n"
             "add.s32 %r6, %r6, %r7;\nbra again;\ndone:\n",
             132, 256, BYTES / 4);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
    assert_in_range(f.ran, 1, 4);
}

static void test_what_is_loaded_is_not_known(void **state)
{
    (void)state;
    Found f = find_with_put("ld.global.u32 %r6, [%rd2];\nsetp.eq.s32 %p1, %r6, 5;\n@%p1 bra done;\n"
                            "mad.lo.s32 %r6, %r2, %r4, %r3;\n",
                            1024, 0);
    assert_false(f.known);
    f = find_with_put("ld.global.u32 %r9, [%rd2];\nmad.lo.s32 %r6, %r2, %r4, %r3;\n", 1024, 0);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
}

/* cp.async reads as many bytes as its last operand says, and fills the others with zeros. */
static void test_copies_that_fill(void **state)
{
    (void)state;
    static const char copy[] = ".shared .align 16 .b8 s[4096];\nmad.lo.s32 %r6, %r2, %r4, %r3;\n"
                               "mul.wide.s32 %rd3, %r6, 16;\nadd.s64 %rd4, %rd2, %rd3;\n"
                               "mov.u32 %r7, s;\nsetp.lt.u32 %p1, %r3, 192;\n"
                               "selp.b32 %r8, 16, 0, %p1;\n"
                               "cp.async.cg.shared.global [%r7], [%rd4], 16, %r8;\n";
    Found f = find_kind(SLICE_LOADS, copy, BYTES / 16 / 256, 256, 0);
    assert_true(f.known);
    assert_int_equal(f.holes, BYTES / 4 / 4);
    assert_int_equal(f.first, 192 * 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_block_stands_for_all),
        cmocka_unit_test(test_the_tail_is_another_block),
        cmocka_unit_test(test_small_grids_and_repeated_blocks),
        cmocka_unit_test(test_quotients),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_what_is_loaded_is_not_known),
        cmocka_unit_test(test_copies_that_fill),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
