/* Attacks of a kernel on the simulator itself: addresses whose sums wrap, more of everything than
 * there is room for, and endless waits. A sanitizer finds errors here that a plain build may
 * survive. */
#include <malloc.h>

#include "tests/unit/eval/sim/sim_support.h"

/* Kernels of tests/fixtures/sim/hostile.ptx. */
#define KERNEL(part) sim_text("sim/hostile.ptx", "entry_p0", part)

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define REGISTERS                                                                          \
    ".reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .b32 %r<16>;\n.reg .f32 %f<8>;\n.reg .b64 " \
    "%rd<16>;\n"
#define ENTRY HEAD ".const .align 4 .u32 c[16];\n.visible .entry k(.param .u64 p0)\n{\n" REGISTERS
#define TAIL "ret;\n}\n"
/* %rd1 = p0, %r1 = tid.x, %rd2 = p0 + 4 * tid.x, %r2 = laneid */
#define POINTER                                                                                  \
    "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, " \
    "%rd1, %rd2;\nmov.u32 %r2, %laneid;\n"

static Sim sim;
static uint32_t words[4096]; /* the contents of p0 */
static int64_t limit;        /* of thread-instructions; 0: the default */
static size_t held;          /* bytes on the heap at the end of the launch */

/* Runs one block on `words`, which then hold its result. Returns 1 with a fault. */
static int try(const char *ptx, uint32_t threads)
{
    sim_start(&sim, ptx);
    if (limit) sim_set_limit(sim.d, limit);
    DevicePtr x = sim_buffer(&sim, "x", words, sizeof words);
    int r = sim_try(&sim, (Shape){.kernel = "k", .block = {threads}}, 1, A(x));
    if (!r) sim_read(&sim, x, words, sizeof words);
    struct mallinfo2 m = mallinfo2();
    held = m.uordblks + m.hblkhd;
    sim_stop(&sim);
    return r;
}

static void expect(int fault, Outcome outcome, const char *part)
{
    if (!fault || sim.fault.outcome != outcome || !strstr(sim.fault.message, part))
        fail_msg("%s with \"%s\" expected, found: %s: %s", outcome_name(outcome), part,
                 fault ? outcome_name(sim.fault.outcome) : "ok", fault ? sim.fault.message : "");
}

static void accept(int fault)
{
    if (fault) fail_msg("%s", sim.fault.message);
}

/* Offsets whose sum with a size wraps, in all lanes or in the last one. */
static void test_wild_offsets(void **state)
{
    (void)state;
    static const char *const accesses[] = {"st.local.u32 [%rd5], %r1;",
                                           "ld.local.u32 %r3, [%rd5];",
                                           "st.local.v4.u32 [%rd5], {%r1, %r1, %r1, %r1};",
                                           "st.shared.u32 [%rd5], %r1;",
                                           "ld.shared.u32 %r3, [%rd5];",
                                           "atom.shared.add.u32 %r3, [%rd5], 1;",
                                           "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%rd5];",
                                           "ld.const.u32 %r3, [%rd5];",
                                           "ld.param.u32 %r3, [%rd5];",
                                           "st.global.u32 [%rd5], %r1;",
                                           "ld.global.u32 %r3, [%rd5];",
                                           "atom.global.add.u32 %r3, [%rd5], 1;",
                                           "st.u32 [%rd5], %r1;"};
    static const char *const ends[][2] = {{"0x7ffffffffffffffc", "0x7ffffffffffffffc"},
                                          {"0x7ffffffffffffffc", "0x7ffffffffffffff0"},
                                          {"0x7ffffffffffffffc", "0x7fffffffe0000000"},
                                          {"0x8000000000000000", "0x7ffffffffffffff0"},
                                          {"0xfffffffffffffffc", "0xfffffffffffffffc"},
                                          {"0xfffffffffffffff0", "0"},
                                          {"0", "0xfffffffffffffff0"}};
    char ptx[4096];
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++)
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
            snprintf(ptx, sizeof ptx,
                     "%s.shared .align 16 .b8 s[64];\n.local .align 16 .b8 d[64];\n%s"
                     "mov.u64 %%rd3, %s;\nmov.u64 %%rd4, %s;\nst.shared.v4.u32 [s], {0, 0, 0, "
                     "0};\nst.local.v4.u32 [d], {0, 0, 0, 0};\n"
                     "setp.eq.u32 %%p1, %%r2, 31;\nselp.b64 %%rd5, %%rd3, %%rd4, %%p1;\n%s\n" TAIL,
                     ENTRY, POINTER, ends[k][0], ends[k][1], accesses[i]);
            expect(try(ptx, 32), OUTCOME_OUT_OF_BOUNDS, "thread (");
        }
}

/* Sums of sizes that wrap: an offset before the first parameter, rows of a frame, shared memory. */
static void test_wild_sizes(void **state)
{
    (void)state;
    expect(try(KERNEL("parameter_before"), 1), OUTCOME_UNSUPPORTED,
           "an offset beyond the parameters");
    expect(try(KERNEL("parameter_far"), 1), OUTCOME_UNSUPPORTED, "an offset beyond the parameters");
    expect(try(KERNEL("parameters_too_large"), 1), OUTCOME_UNSUPPORTED,
           "more than 4 MiB of parameters");
    size_t size = 65536;
    char *ptx = malloc(size), *p = ptx;
    p += sprintf(p, "%s", HEAD ".extern .shared .align 4 .b8 dyn[];\n.visible .entry other()\n{\n");
    for (int i = 0; i < 63; i++) p += sprintf(p, ".shared .align 1 .b8 s%d[67108864];\n", i);
    sprintf(p,
            ".shared .align 1 .b8 t[67108848];\nret;\n}\n.visible .entry k()\n{\n%sst.shared.u32 "
            "[dyn+1048576], %%r1;\n" TAIL,
            REGISTERS);
    sim_start(&sim, ptx);
    expect(sim_try(&sim, (Shape){.kernel = "k", .block = {1}, .shared = 15}, 0),
           OUTCOME_OUT_OF_BOUNDS, "of the block's shared memory");
    sim_stop(&sim);
    free(ptx);
}

/* brx.idx with a target for every lane, then with targets that are all the join itself. */
static void test_ways(void **state)
{
    (void)state;
    char ptx[16384], *p = ptx;
    p += sprintf(p, "%smov.u32 %%r3, 0;\nT: .branchtargets L0", ENTRY POINTER);
    for (int i = 1; i < 32; i++) p += sprintf(p, ", L%d", i);
    p += sprintf(p, ";\nbrx.idx %%r2, T;\n");
    for (int i = 0; i < 32; i++)
        p += sprintf(p, "L%d: add.u32 %%r3, %%r3, %d;\nbra D;\n", i, 100 + i);
    sprintf(p, "D: redux.sync.add.s32 %%r4, %%r3, -1;\nadd.u32 %%r4, %%r4, %%r3;\nst.global.u32 "
               "[%%rd2], %%r4;\n" TAIL);
    accept(try(ptx, 64));
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(words[i], 100 + i % 32 + 32 * 100 + 31 * 16);
    accept(try(KERNEL("ways_to_join"), 64));
    for (int i = 0; i < 64; i++) assert_int_equal(words[i], 5);
}

/* Two warps issue more copies than may be under way and wait late. All copies land. */
static void test_copies_in_flight(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 64; i++) words[i] = 1000 + i;
    accept(try(KERNEL("copies_in_flight"), 64));
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(words[i], 1001 + i);
    assert_true(held < 32 << 20);
}

/* Waits that look at many copies are charged to the budget: the kernel reaches the limit. */
static void test_copies_looked_at(void **state)
{
    (void)state;
    limit = 80 << 20; /* a check gets an eighth; the waits alone are 3 million instructions */
    expect(try(KERNEL("copies_looked_at"), 1), OUTCOME_TIMEOUT, "limit");
    limit = 0;
}

/* Lanes wait for each other at barriers in two places while another lane spins until they have met.
 */
static void test_spin_beside_sync(void **state)
{
    (void)state;
    accept(try(KERNEL("spin_beside_sync"), 32));
    for (int i = 0; i < 32; i++) assert_int_equal(words[i], 7);
}

/* Three nests of 31 ifs with a lane that spins in the innermost of each: more joins than a warp has
 * places for. */
static void test_nested_spins(void **state)
{
    (void)state;
    char ptx[32768], *p = ptx;
    p += sprintf(p,
                 "%s.shared .align 4 .b8 s[4];\n%sst.volatile.shared.u32 [s], 0;\nmov.u32 %%r3, "
                 "0;\nbar.warp.sync -1;\n",
                 ENTRY, POINTER);
    for (int s = 0; s < 3; s++) {
        for (int i = 0; i < 31 - s; i++)
            p += sprintf(p, "setp.le.u32 %%p1, %%r2, %d;\n@%%p1 bra X%d_%d;\n", i, s, i);
        p += sprintf(
            p,
            "S%d: ld.volatile.shared.u32 %%r4, [s];\nsetp.eq.u32 %%p2, %%r4, 0;\n@%%p2 bra S%d;\n",
            s, s);
        for (int i = 30 - s; i >= 0; i--) p += sprintf(p, "X%d_%d: add.u32 %%r3, %%r3, 1;\n", s, i);
        p += sprintf(p, "setp.eq.u32 %%p1, %%r2, %d;\n@%%p1 bra E;\nbar.warp.sync %u;\n", 31 - s,
                     (1u << (31 - s)) - 1);
    }
    sprintf(p, "st.volatile.shared.u32 [s], 1;\nE: st.global.u32 [%%rd2], %%r3;\n" TAIL);
    accept(try(ptx, 32));
    /* Each nest adds the ifs whose branch is not taken, and the last one. */
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t sum = 0;
        for (uint32_t s = 0; s < 3 && i <= 31 - s; s++) sum += i < 31 - s ? i + 1 : 31 - s;
        assert_int_equal(words[i], sum);
    }
}

/* A call through a pointer has a table of all functions: the size of all tables is bounded. */
static void test_many_pointers(void **state)
{
    (void)state;
    for (int n = 300; n <= 600; n += 300) { /* functions and calls */
        char *ptx = malloc((size_t)n * 200 + 1000), *p = ptx + sprintf(ptx, HEAD);
        for (int i = 0; i < n; i++) p += sprintf(p, ".func f%d()\n{\nret;\n}\n", i);
        p += sprintf(p, "%s", ".visible .entry k(.param .u64 p0)\n{\n" REGISTERS);
        for (int i = 0; i < n; i++)
            p += sprintf(p, "mov.u64 %%rd1, f%d;\ncall %%rd1, (), p%d;\n", i, i);
        sprintf(p, TAIL);
        int fault = try(ptx, 32);
        if (n == 300)
            accept(fault);
        else
            expect(fault, OUTCOME_UNSUPPORTED, "too many calls through pointers");
        free(ptx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wild_offsets),
        cmocka_unit_test(test_wild_sizes),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_copies_in_flight),
        cmocka_unit_test(test_copies_looked_at),
        cmocka_unit_test(test_spin_beside_sync),
        cmocka_unit_test(test_nested_spins),
        cmocka_unit_test(test_many_pointers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
