/* The part of a kernel by which memory decides how long its blocks run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/sim/coverage/control.h"

static const char head[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)\n{\n"
    ".reg .pred %p<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<9>;\n.shared .b32 own[4];\n"
    "ld.param.u64 %rd1, [p];\nld.param.u64 %rd3, [q];\nld.param.u32 %r1, [n];\n"
    "cvta.to.global.u64 %rd2, %rd1;\ncvta.to.global.u64 %rd4, %rd3;\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r6, 0;\n";
static const char until_r7[] = "again:\nsetp.ge.s32 %p1, %r6, %r7;\n@%p1 bra done;\n"
                               "mul.lo.s32 %r20, %r6, 3;\nst.global.u32 [%rd4], %r20;\n"
                               "add.s32 %r6, %r6, 1;\nbra again;\n";
static const char tail[] = "done:\nret;\n}\n";

/* By block of code, and what the cut says of these. */
static uint8_t open[64];
static int is_settled;

/* Parameter 1 is stored to; the others are steady. Instructions of the part; -1: there is none. */
static int cut(const char *body, const char *loop, int *stores)
{
    PtxModule m;
    Control part;
    Error err;
    char text[4096];
    int n = -1;
    *stores = 0;
    snprintf(text, sizeof text, "%s%s%s%s", head, body, loop, tail);
    if (ptx_parse(text, strlen(text), &m, &err)) fail_msg("%s", err.text);
    if (!control_cut(&m, &m.functions[0], 5, open, &part)) {
        const PtxFunction *f = part.module.functions;
        n = f->n_insts;
        for (int i = 0; i < n; i++)
            *stores += !strcmp(f->insts[i].op, "st") + !strcmp(f->insts[i].op, "atom");
        assert_true(part.dilution >= 1);
        control_return(&part.module);
        ptx_release(&part.module);
    }
    is_settled = part.is_settled;
    ptx_release(&m);
    return n;
}

/* The first block ends in a branch that is not known beforehand. */
static int settles(const char *body, const char *loop)
{
    int stores;
    open[0] = 1;
    cut(body, loop, &stores);
    open[0] = 0;
    return is_settled;
}

/* Is more than the part open? */
static void test_what_is_settled(void **state)
{
    (void)state;
    static const char load[] = "ld.global.u32 %r8, [%rd2];\n",
                      test[] = "setp.eq.s32 %p2, %r8, 5;\n",
                      skip[] = "@%p2 bra on;\nadd.s32 %r9, %r1, 1;\non:\n",
                      leave[] = "@%p2 bra done;\n";
    char body[512];
    snprintf(body, sizeof body, "%s%s%smov.u32 %%r7, %%r1;\n", load, test, leave);
    assert_true(settles(body, until_r7)); /* it is in the part */
    snprintf(body, sizeof body, "%s%s%smov.u32 %%r7, %%r1;\n", load, test, skip);
    assert_true(settles(body, until_r7)); /* it is short */
    snprintf(body, sizeof body, "atom.global.add.u32 %%r8, [%%rd2], 1;\n%s%s", test, skip);
    assert_true(settles(body, ""));
    snprintf(body, sizeof body, "mov.u32 %%r8, %%clock;\n%s%smov.u32 %%r7, %%r1;\n", test, leave);
    assert_false(settles(body, until_r7)); /* a loop is behind it, and it is not in the part */
    snprintf(body, sizeof body, "atom.global.add.u32 %%r8, [%%rd2], 1;\n%s%s", test, leave);
    assert_false(settles(body, until_r7));
    open[1] = 1; /* of the loop */
    snprintf(body, sizeof body, "bra again;\nagain:\n%s%s%s", load, test, skip);
    cut(body, "setp.lt.s32 %p1, %r6, %r1;\nadd.s32 %r6, %r6, 1;\n@%p1 bra again;\n", &(int){0});
    assert_false(is_settled);
    open[1] = 0;
}

static void test_trips(void **state)
{
    (void)state;
    int stores;
    assert_int_equal(cut("ld.global.u32 %r7, [%rd2];\n", until_r7, &stores), 9);
    assert_int_equal(stores, 0);
    assert_int_equal(cut("mov.u32 %r7, %r1;\n", until_r7, &stores), -1);
    assert_int_equal(cut("ld.volatile.global.u32 %r7, [%rd2];\n", until_r7, &stores), 9);
    /* through the memory of the block */
    assert_int_equal(cut("ld.global.u32 %r8, [%rd2];\nst.shared.u32 [own], %r8;\nbar.sync 0;\n"
                         "ld.shared.u32 %r7, [own];\n",
                         until_r7, &stores),
                     12);
    assert_int_equal(stores, 1);
}

static void test_what_is_not_known(void **state)
{
    (void)state;
    int stores;
    assert_int_equal(cut("ld.global.u32 %r7, [%rd4];\n", until_r7, &stores), -1);
    assert_int_equal(cut("bra twice;\ntwice:\natom.global.add.u32 %r7, [%rd2], 1;\n"
                         "setp.lt.s32 %p2, %r7, 9;\n@%p2 bra twice;\n",
                         until_r7, &stores),
                     -1);
    /* a load stands for an atomic of one turn */
    assert_int_equal(cut("atom.global.add.u32 %r7, [%rd2], 1;\n", until_r7, &stores), 9);
    assert_int_equal(stores, 0);
    assert_false(is_settled);
}

/* Memory decides whether a loop runs whose trips it does not decide. A short branch is left out. */
static void test_branches(void **state)
{
    (void)state;
    int stores;
    static const char decides[] =
        "ld.global.u32 %r8, [%rd2];\nsetp.eq.s32 %p2, %r8, 5;\n@%p2 bra done;\n";
    char body[512];
    snprintf(body, sizeof body, "%smov.u32 %%r7, %%r1;\n", decides);
    assert_int_equal(cut(body, until_r7, &stores), 13);
    assert_int_equal(stores, 0);
    assert_int_equal(cut(decides, "st.global.u32 [%rd4], %r8;\n", &stores), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trips),
        cmocka_unit_test(test_what_is_settled),
        cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_branches),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
