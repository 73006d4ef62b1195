/* Products of doubles, stores of matrices, and memory whose contents are discarded. */
#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_checks.h"

/* ---- mma of doubles ---- */

static void check_product(int m, int k, const char *fragments)
{
    static double a[256], b[128], c[128], y[128];
    char source[16384];
    snprintf(source, sizeof source,
             "#define K %d\n#define NA %d\n#define NB %d\n#define NC %d\n#define SHAPE "
             "\"m%dn8k%d\"\n#define FRAGMENTS %s\n%s",
             k, m * k / 32, k / 4, m / 4, m, k, fragments,
             fixture_text("sim/fragment_products.cu"));
    sim_start_cuda(&sim, source);
    for (int i = 0; i < 256; i++) a[i] = i * 37 % 41 - 20.5;
    for (int i = 0; i < 128; i++) b[i] = i * 23 % 29 / 7.0, c[i] = i;
    DevicePtr pa = sim_buffer(&sim, "a", a, sizeof a), pb = sim_buffer(&sim, "b", b, sizeof b),
              pc = sim_buffer(&sim, "c", c, sizeof c), py = sim_buffer(&sim, "y", NULL, sizeof y);
    sim_run(&sim, shape(1, 32), 4, A(pa), A(pb), A(pc), A(py));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < m * 8; i++) {
        double sum = c[i];
        for (int j = 0; j < k; j++) sum += a[i / 8 * k + j] * b[j * 8 + i % 8];
        if (!(sum - y[i] < 1e-9 && y[i] - sum < 1e-9))
            fail_msg("%d: %g, %g expected", i, y[i], sum);
    }
    sim_stop(&sim);
}

#define C2 "\"+d\"(C[0]), \"+d\"(C[1])"
#define C4 C2 ", \"+d\"(C[2]), \"+d\"(C[3])"
#define D(x) "\"d\"(" #x ")"

static void test_products(void **state)
{
    (void)state;
    check_product(8, 4, "\"{%0,%1}, {%2}, {%3}, {%0,%1};\" : " C2 " : " D(A[0]) ", " D(B[0]));
    check_product(16, 4,
                  "\"{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\" : " C4
                  " : " D(A[0]) ", " D(A[1]) ", " D(B[0]));
    check_product(
        16, 16,
        "\"{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
        "{%0,%1,%2,%3};\" : " C4
        " : " D(A[0]) ", " D(A[1]) ", " D(A[2]) ", " D(A[3]) ", " D(A[4]) ", " D(A[5]) ", " D(
            A[6]) ", " D(A[7]) ", " D(B[0]) ", " D(B[1]) ", " D(B[2]) ", " D(B[3]));
}

/* ---- stmatrix ---- */

static void test_store_matrix(void **state)
{
    (void)state;
    static uint16_t x[256], y[256], z[256];
    for (int i = 0; i < 256; i++) x[i] = (uint16_t)(i * 259);
    sim_start_cuda(&sim, fixture_text("sim/fragment_stores.cu"));
    DevicePtr px = sim_buffer(&sim, "x", x, sizeof x), py = sim_buffer(&sim, "y", NULL, sizeof y),
              pz = sim_buffer(&sim, "z", NULL, sizeof z);
    sim_run(&sim, shape(1, 32), 3, A(px), A(py), A(pz));
    sim_read(&sim, py, y, sizeof y);
    sim_read(&sim, pz, z, sizeof z);
    assert_memory_equal(x, y, sizeof x);
    for (int i = 0; i < 256; i++) assert_int_equal(z[i], x[i / 64 * 64 + i % 8 * 8 + i / 8 % 8]);
    sim_stop(&sim);
}

#define STORE "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r4], {%r5, %r6, %r7, %r8};\n"

static void test_store_matrix_faults(void **state)
{
    (void)state;
    const char *start = "mov.u32 %r1, %tid.x;\nmov.u32 %r5, %r1;\nmov.u32 %r6, 0;\nmov.u32 %r7, "
                        "0;\nmov.u32 %r8, 0;\n";
    static const struct {
        const char *text, *part;
        Outcome outcome;
    } wrong[] = {
        {".shared .align 16 .b8 s[512];\nmov.u32 %r3, s;\nmad.lo.u32 %r4, %r1, 32, %r3;\n" LOC(5)
             STORE,
         "shared memory, which has 512", OUTCOME_OUT_OF_BOUNDS},
        {".shared .align 16 .b8 s[512];\nmov.u32 %r4, s;\n" LOC(5) STORE, "also stores another row",
         OUTCOME_RACE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s%s%s", ENTRY(P64(0)), start, wrong[i].text, TAIL);
        sim_start(&sim, text);
        DevicePtr y = sim_buffer(&sim, "y", NULL, 4);
        expect(sim_try(&sim, shape(1, 32), 1, A(y)), wrong[i].outcome, 5, wrong[i].part);
    }
}

/* ---- discard.L2 ---- */

#define DISCARD                                                                        \
    "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, 7;\nst.global.u32 [%rd1+128], %r1;\n" LOC( \
        5) "discard."                                                                  \
           "global.L2 [%rd1], 128;\n"

static void test_discard(void **state)
{
    (void)state;
    static uint32_t data[64];
    static const char *const texts[] = {
        ENTRY(P64(0)) DISCARD "ld.global.u32 %r2, [%rd1+128];\nst.global.u32 [%rd1], %r2;\n" TAIL,
        ENTRY(P64(0)) DISCARD LOC(6) "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1+128], "
                                     "%r2;\n" TAIL};
    for (int i = 0; i < 3; i++) {
        uint32_t got;
        sim_start(&sim, texts[i % 2]);
        DevicePtr y = sim_buffer(&sim, "y", data, sizeof data);
        if (i == 2) ops->protect(sim.d, y, 1, &sim.err);
        int fault = sim_try(&sim, shape(1, 1), 1, A(y));
        if (i == 1) expect(fault, OUTCOME_OUT_OF_BOUNDS, 6, "before anything was written");
        if (i == 2) expect(fault, OUTCOME_OUT_OF_BOUNDS, 0, "may only read");
        if (i) continue;
        sim_read(&sim, y, &got, 4);
        assert_int_equal(got, 7);
        accept(fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_store_matrix),
        cmocka_unit_test(test_store_matrix_faults), cmocka_unit_test(test_discard)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
