/* Which atomics count as merged: those whose address is the same in all lanes, whatever way these took. And
 * by which ones a warp may wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"

/* Before a body, %lane is the lane's number, %odd tells whether it is odd, %late whether the block is a late
 * one, and %rd0 a buffer; behind it, an atomic adds to the %at-th word. */
static const char head[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    ".func (.param .b32 out) other(.param .b32 in) { st.param.b32 [out], 0; ret; }\n"
    ".visible .entry k(.param .u64 to, .param .u32 count)\n{\n"
    ".reg .b32 %r<9>; .reg .b32 %lane, %at, %n; .reg .b64 %rd<9>; .reg .pred %p<9>, %odd, %late;\n"
    ".shared .align 4 .b32 words[64];\n"
    "ld.param.u64 %rd0, [to]; ld.param.u32 %n, [count]; mov.u32 %lane, %laneid;\n"
    "and.b32 %r0, %lane, 1; setp.ne.u32 %odd, %r0, 0;\n"
    "mov.u32 %r1, %ctaid.x; setp.gt.u32 %late, %r1, 9; mov.u32 %at, 0;\n";
static const char tail[] = "mul.wide.u32 %rd1, %at, 4; add.u64 %rd2, %rd0, %rd1;\n"
                           "red.global.add.u32 [%rd2], 1;\nL9: ret;\n}\n";

typedef struct {
    const char *name, *body;
    int merged; /* or ATOMIC_*: a warp may wait by it, or draw */
} Case;

static const Case cases[] = {
    {"a constant", "", 1},
    {"by block", "mov.u32 %at, %ctaid.x;", 1},
    {"by lane", "mov.u32 %at, %lane;", 0},
    {"by a branch", "@%odd bra L1; mov.u32 %at, 1; L1:", 0},
    {"by both ways of a branch",
     "@%odd bra L1; mov.u32 %at, 2; bra L2; L1: mov.u32 %at, 3; L2:", 0},
    {"by a branch that lanes take together", "@%late bra L1; mov.u32 %at, 1; L1:", 1},
    {"by a guard", "@%odd mov.u32 %at, 1;", 0},
    {"by a guard that is the same in all lanes", "@%late mov.u32 %at, 1;", 1},
    {"by a selection", "selp.u32 %at, 1, 2, %odd;", 0},
    {"by a copy behind a branch",
     "mov.u32 %r3, 7; @%odd bra L1; mov.u32 %r3, 8; L1: mov.u32 %at, %r3;", 0},
    {"in a branch alone", "@%odd bra L9; mov.u32 %at, 5;", 1},
    {"of a branch whose value nothing needs",
     "@%odd bra L1; mov.u32 %r3, 1; L1: mov.u32 %r3, 2; mov.u32 %at, %r3;", 1},
    {"by a branch with an exit", "@%odd bra L1; mov.u32 %at, 1; @%late bra L9; L1:", 0},
    {"by trips of a lane", "L1: add.u32 %at, %at, 1; setp.lt.u32 %p1, %at, %lane; @%p1 bra L1;", 0},
    {"by trips that one value ends",
     "L1: shl.b32 %r3, %lane, %at; add.u32 %at, %at, 1; setp.eq.u32 %p1, %r3, 64; @%p1 bra L2; "
     "setp.lt.u32 %p2, %at, 8; @%p2 bra L1; L2:",
     0},
    {"by trips of all lanes", "L1: add.u32 %at, %at, 1; setp.lt.u32 %p1, %at, %n; @%p1 bra L1;", 1},
    {"by trips of all lanes around a branch",
     "L1: @%odd bra L2; st.global.u32 [%rd0], 1; L2: add.u32 %at, %at, 1; setp.lt.u32 %p1, %at, "
     "%n; @%p1 bra L1;",
     1},
    {"behind a loop of lanes",
     "mov.u32 %r3, %lane; L1: add.u32 %r3, %r3, 32; setp.lt.u32 %p1, %r3, %n; @%p1 bra L1; mov.u32 "
     "%at, %r1;",
     1},
    {"by a shuffle", "shfl.sync.bfly.b32 %at, %lane, 1, 31, -1;", 0},
    {"by a match", "match.any.sync.b32 %at, %lane, -1;", 0},
    {"by a load", "ld.global.u32 %at, [%rd0];", 1},
    {"by a load of the lane's own",
     "mul.wide.u32 %rd3, %lane, 4; add.u64 %rd3, %rd3, %rd0; ld.global.u32 %at, [%rd3];", 0},
    {"by a load that other threads may change", "ld.volatile.global.u32 %at, [%rd0];", 0},
    {"by a load of an unknown space", "ld.u32 %at, [%rd0];", 0},
    {"by an atomic", "atom.global.add.u32 %at, [%rd0], 1;", 0},
    {"by what a call returns",
     "{ .param .b32 a; .param .b32 b; st.param.b32 [a], 0; call (b), other, (a); ld.param.b32 %at, "
     "[b]; }",
     0},
    {"by a table of jumps", "T: .branchtargets L1, L2; brx.idx %r0, T; L1: mov.u32 %at, 3; L2:", 0},
};

static void atomics_are_merged_by_address(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096];
        PtxModule m;
        Error err;
        int len = snprintf(text, sizeof text, "%s%s\n%s", head, cases[i].body, tail);
        if (ptx_parse(text, (size_t)len, &m, &err)) fail_msg("%s: %s", cases[i].name, err.text);
        const PtxFunction *k = ptx_find_function(&m, "k");
        uint8_t *merged = merged_find(k);
        for (int n = 0; n < k->n_insts; n++) assert_false(k->insts[n].bad);
        int last = k->n_insts - 1;
        while (strcmp(k->insts[last].op, "red")) last--;
        if ((merged[last] & ATOMIC_MERGED) != cases[i].merged)
            fail_msg("%s: merged %d", cases[i].name, merged[last] & ATOMIC_MERGED);
        free(merged);
        ptx_release(&m);
    }
}

/* The parameter of a function that is not a kernel may differ. */
static void a_parameter_of_a_call_varies(void **state)
{
    (void)state;
    static const char text[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                               ".func f(.param .b64 to)\n{\n.reg .b64 %rd<2>;\n"
                               "ld.param.u64 %rd0, [to];\nred.global.add.u32 [%rd0], 1;\nret;\n}\n";
    PtxModule m;
    Error err;
    if (ptx_parse(text, sizeof text - 1, &m, &err)) fail_msg("%s", err.text);
    uint8_t *merged = merged_find(ptx_find_function(&m, "f"));
    assert_false(merged[1] & ATOMIC_MERGED);
    free(merged);
    ptx_release(&m);
}

enum {
    DECIDES = ATOMIC_DECIDES,
    DRAWS = ATOMIC_DECIDES | ATOMIC_ENDS,
    WAITS = ATOMIC_DECIDES | ATOMIC_ENDS | ATOMIC_WAITS
};

static const Case loops[] = {
    {"until another one has added",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; setp.lt.u32 %p1, %r3, 9; @%p1 bra L1;", WAITS},
    {"until a sum of floats is not zero",
     "L1: atom.global.add.f32 %r3, [%rd0], 0f00000000; and.b32 %r4, %r3, 7; setp.eq.u32 %p1, %r4, "
     "0; "
     "@!%p1 bra L2; st.global.u32 [%rd0+8], %r1; bra L1; L2: mov.u32 %at, %r3;",
     WAITS},
    {"and works on what it draws",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; setp.ge.u32 %p1, %r3, %n; @%p1 bra L2; mul.wide.u32 "
     "%rd3, %r3, 4; add.u64 %rd3, %rd3, %rd0; ld.global.u32 %r4, [%rd3]; bra L1; L2:",
     DRAWS},
    {"and passes on what it draws",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; st.shared.u32 [words], %r3; bar.sync 0; "
     "ld.shared.u32 "
     "%r4, [words]; setp.lt.u32 %p1, %r4, %n; mul.wide.u32 %rd3, %r4, 4; add.u64 %rd3, %rd3, %rd0; "
     "st.global.u32 [%rd3], %r0; @%p1 bra L1;",
     DRAWS},
    {"and keeps what it has found at one place",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; st.global.u32 [%rd0+8], %r3; setp.lt.u32 %p1, %r3, "
     "9; @%p1 bra L1;",
     WAITS},
    {"and passes on what it draws by global memory",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; st.global.u32 [%rd0+8], %r3; bar.sync 0; "
     "ld.global.u32 %r4, [%rd0+8]; setp.lt.u32 %p1, %r4, %n; mul.wide.u32 %rd3, %r4, 4; add.u64 "
     "%rd3, %rd3, %rd0; st.global.u32 [%rd3], %r0; @%p1 bra L1;",
     DRAWS},
    {"and says whether all go on",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; st.shared.u32 [words], %r3; bar.sync 0; "
     "ld.shared.u32 "
     "%r4, [words]; setp.lt.u32 %p1, %r4, %n; @%p1 bra L1;",
     WAITS},
    {"whose first look is before it",
     "atom.global.add.u32 %r3, [%rd0], 1; setp.ge.u32 %p1, %r3, 9; @%p1 bra L2; L1: "
     "atom.global.add.u32 %r3, [%rd0], 1; setp.lt.u32 %p1, %r3, 9; @%p1 bra L1; L2:",
     WAITS},
    {"and swaps what it has found",
     "mov.u32 %r4, 0; L1: add.u32 %r5, %r4, 1; mov.u32 %r6, %r4; atom.global.cas.b32 %r4, [%rd0], "
     "%r4, %r5; setp.ne.u32 %p1, %r4, %r6; @%p1 bra L1;",
     0},
    {"at other addresses",
     "L1: add.u64 %rd0, %rd0, 4; atom.global.add.u32 %r3, [%rd0], 1; setp.lt.u32 %p1, %r3, 9; @%p1 "
     "bra "
     "L1;",
     DRAWS},
    {"as often as another value says",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 9; @%p1 "
     "bra "
     "L1;",
     0},
    {"in a loop that looks twice",
     "L1: mov.u32 %r4, 0; L2: atom.global.add.u32 %r3, [%rd0], 1; add.u32 %r4, %r4, 1; setp.lt.u32 "
     "%p1, %r4, 2; @%p1 bra L2; setp.lt.u32 %p2, %r3, 9; @%p2 bra L1;",
     DRAWS},
    {"and adds up tiles that another value counts",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; setp.lt.u32 %p1, %r3, 9; @%p1 bra L2; "
     "st.global.u32 [%rd0+8], %r5; L2: add.u64 %rd0, %rd0, 4; add.u32 %r4, %r4, 1; setp.lt.u32 "
     "%p2, "
     "%r4, 9; @%p2 bra L1;",
     DECIDES},
    {"at other addresses until a branch has told another value",
     "L1: atom.global.add.u32 %r3, [%rd0], 1; setp.lt.u32 %p1, %r3, 9; @%p1 bra L2; "
     "mov.u32 %r4, 1; L2: add.u64 %rd0, %rd0, 4; setp.eq.u32 %p2, %r4, 0; @%p2 bra L1;",
     DRAWS},
    {"once", "atom.global.add.u32 %r3, [%rd0], 1; setp.lt.u32 %p1, %r3, 9; @%p1 bra L9;", 0},
};

static void a_loop_that_an_atomic_ends_waits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        char text[4096];
        PtxModule m;
        Error err;
        int len = snprintf(text, sizeof text, "%s%s\n%s", head, loops[i].body, tail), at = 0;
        if (ptx_parse(text, (size_t)len, &m, &err)) fail_msg("%s: %s", loops[i].name, err.text);
        const PtxFunction *k = ptx_find_function(&m, "k");
        uint8_t *of = memory_alloc((size_t)k->n_insts + 1);
        spins_find(&m, k, of);
        while (strcmp(k->insts[at].op, "atom")) at++;
        if ((of[at] & WAITS) != loops[i].merged) fail_msg("%s: %d", loops[i].name, of[at]);
        free(of);
        ptx_release(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(atomics_are_merged_by_address),
                                       cmocka_unit_test(a_parameter_of_a_call_varies),
                                       cmocka_unit_test(a_loop_that_an_atomic_ends_waits)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
