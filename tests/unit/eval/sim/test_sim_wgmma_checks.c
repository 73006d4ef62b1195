/* What the simulator finds in kernels with wgmma, and what it accepts. */
#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_checks.h"

#define FILL_ALL                                                                                \
    "for (u i = t; i < 1024; i += blockDim.x) a[i / 512][i % 512] = 0x3c003c00; for (u i = t; " \
    "i < 128; i += blockDim.x) b[i / 64][i % 64] = 0x3c003c00"

/* Runs the kernel with n = 0, and again where values can be followed, and leaves the fault in sim. */
static int run(const char *fill, const char *body, const char *shown, uint32_t threads)
{
    char text[8192];
    const char *reason;
    snprintf(text, sizeof text, "#define FILL %s\n#define BODY %s\n#define SHOWN %s\n%s", fill,
             body, shown, fixture_text("sim/wgmma_waits.cu"));
    char *ptx = cuda_to_ptx_for(text, "sm_90a", NULL, &reason);
    if (!ptx) fail_msg("%s", reason);
    sim_start(&sim, ptx);
    DevicePtr out = sim_buffer(&sim, "out", NULL, 4 * 4 * threads);
    int r = sim_try(&sim, shape(1, threads), 2, A(out), A(0));
    DeviceCode code = {.ptx = ptx, .ptx_len = strlen(ptx)};
    if (r && ops->prediction->follow(sim.d, 1)) {
        if (ops->load(sim.d, &code, 0, &sim.m, &sim.fault)) fail_msg("%s", sim.err.text);
        r = sim_try(&sim, shape(1, threads), 2, A(out), A(0));
    }
    free(ptx);
    if (!r && !strcmp(shown, "1")) {
        float d[512];
        int want = strstr(body, "TWICE") ? 32 : 16;
        sim_read(&sim, out, d, sizeof d);
        for (int i = 0; i < 512; i++)
            if (d[i] != (float)want) fail_msg("%s: %g", body, (double)d[i]);
    }
    return r;
}

static void good(const char *body)
{
    accept(run(FILL_ALL, body, "1", 128));
}

static void bad(const char *body, Outcome outcome, const char *part)
{
    int r = run(FILL_ALL, body, "1", 128);
    expect(r, outcome, 15, part);
}

#define USUAL "FENCE; MULTIPLY(at(a[0]), at(b[0]), 0); COMMIT; "
#define RACE "writes before wgmma.wait_group has waited for the product"

static void test_order(void **state)
{
    (void)state;
    good(USUAL "WAIT(0)");
    /* The second group may stay under way while the first one's memory is filled again. */
    good(USUAL "MULTIPLY(at(a[1]), at(b[1]), 1); COMMIT; WAIT(1); __syncthreads(); a[0][t] = 0; "
               "b[0][t % 64] = 1; WAIT(0); /* TWICE */");
    bad(USUAL "MULTIPLY(at(a[1]), at(b[1]), 1); COMMIT; WAIT(1); __syncthreads(); a[1][t] = 0; "
              "WAIT(0); /* TWICE */",
        OUTCOME_RACE, RACE);
    bad(USUAL "__syncthreads(); if (t == 0) b[0][0] = 0; __syncthreads(); WAIT(0)", OUTCOME_RACE,
        RACE);
    bad(USUAL "b[0][t % 64] = t; WAIT(0)", OUTCOME_RACE, "");
    /* Without a barrier behind the wait another warp may still multiply. */
    bad(USUAL "WAIT(0); if (t < 64) b[0][t] = 0", OUTCOME_RACE, "with no barrier between");
    /* The wait comes a barrier later than the product, the write a barrier earlier than its end. */
    bad(USUAL "__syncthreads(); WAIT(0); if (t == 0) a[0][63 * 8] = 7", OUTCOME_RACE,
        "with no barrier between");
    /* A write that changes nothing is none. */
    good(USUAL "__syncthreads(); b[0][t % 64] = 0x3c003c00; __syncthreads(); WAIT(0)");
    /* A product in no group is not waited for. */
    bad("FENCE; MULTIPLY(at(a[0]), at(b[0]), 0); WAIT(0); __syncthreads(); b[0][t % 64] = 0; "
        "COMMIT; "
        "WAIT(0)",
        OUTCOME_RACE, RACE);
}

#define COPY(to)                                                                        \
    "asm volatile(\"cp.async.ca.shared.global [%0], [%1], 16; cp.async.wait_all;\" :: " \
    "\"r\"((u)__cvta_generic_to_shared(" to ")), \"l\"(copied) : \"memory\"); "

/* A copy that begins while a product reads may land before the product has read. */
static void test_copies(void **state)
{
    (void)state;
    const char *part = "which a product of warp 1 reads until wgmma.wait_group has waited";
    good(USUAL "if (t < 32) " COPY("a[1] + 4 * t") "WAIT(0)");
    good(USUAL "WAIT(0); __syncthreads(); " COPY("a[0] + 4 * t"));
    bad(USUAL "__syncthreads(); if (t == 0) " COPY("a[0] + 16 * 8 + 4") "WAIT(0)", OUTCOME_RACE,
        part);
    /* The product still runs when its own copy into the same place begins. */
    bad("if (t >= 0) " USUAL "if (t == 40) " COPY("b[0]") "WAIT(0)", OUTCOME_RACE, part);
}

/* ptxas inserts what is missing where registers depend on it. */
static void test_inserted(void **state)
{
    (void)state;
    good("FENCE; MULTIPLY(at(a[0]), at(b[0]), 0)");
    good("MULTIPLY(at(a[0]), at(b[0]), 0); COMMIT; WAIT(0)");
    good(USUAL "d[0] = d[0] * 2 - 16; d[1] += 0; d[2] += 0; d[3] += 0; __syncthreads(); "
               "b[0][t % 64] = 0; WAIT(0)");
    good("u r[4]; for (int i = 0; i < 4; i++) r[i] = 0x3c003c00; FENCE; REGISTERS(r, at(b[0])); "
         "COMMIT; for (int i = 0; i < 4; i++) r[i] += n + t; d[0] += n * r[0]; WAIT(0)");
    /* A loop that goes on with accumulators of a product under way. */
    good("for (int i = 0; i < 4; i++) d[i] = 0; for (int i = 0; i <= n; i++) { FENCE; "
         "MULTIPLY(at(a[i & "
         "1]), at(b[i & 1]), i); COMMIT; WAIT(1); } WAIT(0)");
}

static void test_memory(void **state)
{
    (void)state;
    bad("FENCE; MULTIPLY(at(a[0]) + 1024, at(b[0]), 0); COMMIT; WAIT(0)", OUTCOME_OUT_OF_BOUNDS,
        "multiplies 16 bytes at offset");
    bad("FENCE; MULTIPLY(at(a[0]) | 1ull << 45, at(b[0]), 0); COMMIT; WAIT(0)",
        OUTCOME_OUT_OF_BOUNDS, "of the block's shared memory, which has 4608 bytes");
    bad("FENCE; MULTIPLY(at(a[0]), at(b[0]) | 1ull << 49, 0); COMMIT; WAIT(0)", OUTCOME_UNSUPPORTED,
        "base offset");
    int r = run("for (u i = t; i < 512; i += 128) a[0][i] = 0; if (t < 60) b[0][t] = 0",
                USUAL "WAIT(0)", "1", 128);
    expect(r, OUTCOME_OUT_OF_BOUNDS, 15,
           "of shared memory that no thread of the block has written");
}

static void test_groups(void **state)
{
    (void)state;
    expect(run(FILL_ALL, USUAL "WAIT(0)", "0", 64), OUTCOME_LAUNCH_ERROR, 15,
           "in a warpgroup of fewer than 128 threads");
    accept(run(FILL_ALL, "if (t < 128) { " USUAL "WAIT(0); }", "0", 192));
    expect(run(FILL_ALL, "if (t >= 128) { " USUAL "WAIT(0); }", "0", 192), OUTCOME_LAUNCH_ERROR, 15,
           "in a warpgroup of fewer than 128 threads");
    expect(run(FILL_ALL, "if (t < 96) { " USUAL "WAIT(0); }", "0", 128), OUTCOME_RACE, 13,
           "and another warp of its warpgroup");
}

/* ---- values that are undefined ---- */

#define UNDEFINED "u v; if (n) v = __float_as_uint(out[0]); "

static void follow(const char *extra, const char *body, const char *hidden)
{
    char fill[512], shown[128];
    snprintf(fill, sizeof fill, "%s; %s", FILL_ALL, extra);
    snprintf(shown, sizeof shown, "!(%s)", hidden);
    accept(run(fill, body, shown, 128));
    int r = run(fill, body, "2", 128);
    if (!r || sim.fault.outcome != OUTCOME_UNINITIALISED)
        fail_msg("no undefined value in %s: %s", hidden, r ? sim.fault.message : "no fault");
    sim_stop(&sim);
    /* The others are defined, so that hiding less is a fault. */
    snprintf(shown, sizeof shown, "!(%s && t != 6)", hidden);
    r = run(fill, body, shown, 128);
    if (!r || sim.fault.outcome != OUTCOME_UNINITIALISED)
        fail_msg("thread 6 is defined without %s", hidden);
    sim_stop(&sim);
}

static void test_undefined(void **state)
{
    (void)state;
    follow(UNDEFINED "__syncthreads(); if (t == 0) a[0][9 * 8 + 3] = v", USUAL "WAIT(0)",
           "t / 4 == 1 && i > 1");
    follow(UNDEFINED "__syncthreads(); if (t == 5) b[0][5 * 8] = v", USUAL "WAIT(0)",
           "t % 4 == 2 && i % 2");
    follow(UNDEFINED "u r[4] = {1, 1, 1, 1}; if (t == 7) r[1] = v",
           "FENCE; REGISTERS(r, at(b[0])); COMMIT; WAIT(0)", "t / 4 == 1 && i > 1");
    follow(UNDEFINED
           "for (u i = 0; i < 4; i++) d[i] = 0; if (t % 8 == 6) d[2] = __uint_as_float(v)",
           "FENCE; MULTIPLY(at(a[0]), at(b[0]), 1); COMMIT; WAIT(0)", "t % 8 == 6 && i == 2");
    accept(run(FILL_ALL, "if (n) d[0] = d[1] = 1; " USUAL "WAIT(0)", "1", 128));
    expect(run(FILL_ALL,
               "w v; if (n) v = (u)out[0]; FENCE; MULTIPLY(at(a[0]), v, 0); COMMIT; WAIT(0)", "1",
               128),
           OUTCOME_UNINITIALISED, 15, "uses it for an access to memory");
}

/* What nobody has written, or what races, is a fault only for the results that depend on it. */
static void test_followed(void **state)
{
    (void)state;
    const char *rows = "for (u i = t; i < 384; i += 128) a[0][i] = 0; if (t < 64) b[0][t] = 0",
               *columns = "for (u i = t; i < 512; i += 128) a[0][i] = 0; if (t < 60) b[0][t] = 0",
               *part = "of shared memory that no thread of the block has written, and line 16";
    accept(run(rows, USUAL "WAIT(0)", "t < 96", 128));
    expect(run(rows, USUAL "WAIT(0)", "t < 97", 128), OUTCOME_OUT_OF_BOUNDS, 15, part);
    accept(run(columns, USUAL "WAIT(0)", "!(t % 4 == 3 && i % 2)", 128));
    expect(run(columns, USUAL "WAIT(0)", "t % 4 != 3 || i != 3", 128), OUTCOME_OUT_OF_BOUNDS, 15,
           part);
    const char *race = "if (t == 96) a[0][2 * 8] = 1; " USUAL "WAIT(0)";
    accept(run(FILL_ALL, race, "t / 4 != 2 || i > 1", 128));
    expect(run(FILL_ALL, race, "t != 8 || i", 128), OUTCOME_RACE, 15,
           "which a thread of warp 3 writes with no barrier between, and line 16");
}

static void test_architecture(void **state)
{
    (void)state;
    int r;
    sim_start(&sim, ENTRY(P64(0)) "wgmma.commit_group.sync.aligned;\n" TAIL);
    DevicePtr p = sim_buffer(&sim, "p", NULL, 4);
    r = sim_try(&sim, shape(1, 128), 1, A(p));
    expect(r, OUTCOME_UNSUPPORTED, 0, "compute capability 9.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_inserted), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_groups),   cmocka_unit_test(test_undefined),
        cmocka_unit_test(test_followed), cmocka_unit_test(test_architecture),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
