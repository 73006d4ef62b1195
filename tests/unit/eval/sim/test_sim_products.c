/* Products of 8-bit floats and of fragments of doubles, and what variables and special registers of
 * shared memory give them room. */
#include "tests/unit/eval/half_value.h"
#include "tests/unit/eval/sim/sim_checks.h"

#include "tests/fixture_path.h"
#include <math.h>

/* ---- mma of 8-bit floats ---- */

/* The value of the bits of an 8-bit float, which are no NaN and no infinity. */
static double fp8(int v, int fraction, int bias)
{
    int e = (v & 127) >> fraction, f = v & ((1 << fraction) - 1);
    double m = e ? ldexp(f + (1 << fraction), e - bias - fraction) : ldexp(f, 1 - bias - fraction);
    return v & 128 ? -m : m;
}

static double of_type(const char *type, int v)
{
    return !strcmp(type, "e4m3") ? fp8(v, 3, 7) : fp8(v, 2, 15);
}

static void start_bytes(const char *a_type, const char *b_type)
{
    char source[16384];
    snprintf(source, sizeof source, "#define TYPES \"%s.%s\"\n%s", a_type, b_type,
             fixture_text("sim/product_bytes.cu"));
    sim_start_cuda(&sim, source);
}

static void check_bytes(const char *a_type, const char *b_type)
{
    static uint8_t a[16][32], b[8][32];
    static float y[16][8];
    static uint16_t half[16][8];
    start_bytes(a_type, b_type);
    /* Exponents near 1, all fractions, both signs, and a number below the normal ones. */
    int middle_a = strcmp(a_type, "e4m3") ? 15 << 2 : 7 << 3,
        middle_b = strcmp(b_type, "e4m3") ? 15 << 2 : 7 << 3;
    for (int i = 0; i < 512; i++)
        a[i / 32][i % 32] = (uint8_t)((middle_a + i * 5 % 17 - 8) | (i & 1) << 7);
    for (int i = 0; i < 256; i++)
        b[i / 32][i % 32] = (uint8_t)((middle_b + i * 7 % 13 - 6) | (i & 4) << 5);
    a[0][0] = 3;
    DevicePtr pa = sim_buffer(&sim, "a", a, sizeof a), pb = sim_buffer(&sim, "b", b, sizeof b),
              py = sim_buffer(&sim, "y", NULL, sizeof y),
              ph = sim_buffer(&sim, "h", NULL, sizeof half);
    sim_run(&sim, shape(1, 32), 5, A(pa), A(pb), A(py), A(ph), A(1));
    assert_int_equal(sim_last_counts(sim.d)->tensor_flops, 2 * 2 * 16 * 8 * 32);
    assert_int_equal(sim_last_counts(sim.d)->by_class[INST_TENSOR], 2);
    sim_read(&sim, py, y, sizeof y);
    sim_read(&sim, ph, half, sizeof half);
    for (int row = 0; row < 16; row++)
        for (int c = 0; c < 8; c++) {
            double sum = 0;
            for (int k = 0; k < 32; k++)
                sum += of_type(a_type, a[row][k]) * of_type(b_type, b[c][k]);
            if ((double)y[row][c] != (double)(float)(sum + 1) || half[row][c] != half_of(sum))
                fail_msg("%s %s row %d column %d: %g and %g, %g expected", a_type, b_type, row, c,
                         (double)y[row][c], half_value(half[row][c]), sum);
        }
    sim_stop(&sim);
}

static void test_bytes(void **state)
{
    (void)state;
    check_bytes("e4m3", "e4m3");
    check_bytes("e5m2", "e5m2");
    check_bytes("e4m3", "e5m2");
    check_bytes("e5m2", "e4m3");
}

/* A factor without a value makes the product one. */
static void test_undefined_bytes(void **state)
{
    (void)state;
    uint8_t zeros[512] = {0};
    start_bytes("e4m3", "e4m3");
    DevicePtr pa = sim_buffer(&sim, "a", zeros, 512), pb = sim_buffer(&sim, "b", zeros, 256),
              py = sim_buffer(&sim, "y", NULL, 512), ph = sim_buffer(&sim, "h", NULL, 256);
    assert_int_equal(sim_try(&sim, shape(1, 32), 5, A(pa), A(pb), A(py), A(ph), A(1)), 0);
    assert_int_not_equal(sim_try(&sim, shape(1, 32), 5, A(pa), A(pb), A(py), A(ph), A(0)), 0);
    assert_int_equal(sim.fault.outcome, OUTCOME_UNINITIALISED);
    sim_stop(&sim);
}

/* ---- wmma of doubles ---- */

/* Layouts: 1 by columns. In memory the rows of a are 6 apart or its columns 9, those of b 9 or 6. */
static void check_doubles(int a_columns, int b_columns)
{
    char source[16384];
    static double a[64], b[64], y[64];
    snprintf(source, sizeof source,
             "#define LA %s\n#define LB %s\n#define DA %d\n#define DB %d\n%s",
             a_columns ? "col_major" : "row_major", b_columns ? "col_major" : "row_major",
             a_columns ? 9 : 6, b_columns ? 6 : 9, fixture_text("sim/product_doubles.cu"));
    sim_start_cuda(&sim, source);
    for (int i = 0; i < 64; i++) a[i] = i * 37 % 41 / 8.0, b[i] = i * 23 % 29 - 14;
    a[63] = 1;
    DevicePtr pa = sim_buffer(&sim, "a", a, sizeof a), pb = sim_buffer(&sim, "b", b, sizeof b),
              py = sim_buffer(&sim, "y", NULL, sizeof y);
    sim_run(&sim, shape(1, 32), 4, A(pa), A(pb), A(py), A(1));
    assert_int_equal(sim_last_counts(sim.d)->tensor_flops, 2 * 8 * 8 * 4);
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            double sum = 2 * (i - j);
            for (int k = 0; k < 4; k++)
                sum += a[a_columns ? k * 9 + i : i * 6 + k] * b[b_columns ? j * 6 + k : k * 9 + j];
            if (y[i * 8 + j] != sum)
                fail_msg("row %d column %d: %g, %g expected", i, j, y[i * 8 + j], sum);
        }
    assert_int_not_equal(sim_try(&sim, shape(1, 32), 4, A(pa), A(pb), A(py), A(0)), 0);
    assert_int_equal(sim.fault.outcome, OUTCOME_UNINITIALISED);
    sim_stop(&sim);
}

static void test_doubles(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) check_doubles(i & 1, i >> 1);
}

/* ---- shared memory ---- */

/* A variable that is aligned to more than the system's part lies behind that part: an exclusive or of its
 * address changes halves as on a GPU. */
static void test_aligned(void **state)
{
    (void)state;
    unsigned y[3];
    sim_start_cuda(&sim, fixture_text("sim/swizzled_base.cu"));
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof y);
    sim_run(&sim, shape(1, 32), 1, A(py));
    sim_read(&sim, py, y, sizeof y);
    assert_true(y[0] == 1024 && y[1] == 7 && y[2] == 5);
    sim_stop(&sim);
}

/* The system's part of a block's shared memory counts in one of the sizes. */
static void test_sizes(void **state)
{
    (void)state;
    unsigned y[2];
    sim_start_cuda(&sim, "extern \"C\" __global__ void k(unsigned *y) { __shared__ unsigned s[64]; "
                         "s[threadIdx.x] = threadIdx.x; __syncthreads(); unsigned t, a;\n"
                         "asm(\"mov.u32 %0, %%total_smem_size;\" : \"=r\"(t)); asm(\"mov.u32 %0, "
                         "%%aggr_smem_size;\" : \"=r\"(a)); y[0] = t + s[0]; y[1] = a; }\n");
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof y);
    sim_run(&sim, shape(1, 32), 1, A(py));
    sim_read(&sim, py, y, sizeof y);
    assert_int_equal(y[0], 256);
    assert_int_equal(y[1], 256 + 1024);
    sim_stop(&sim);
}

/* ---- clusters ---- */

static int run_cluster(const char *dims, const char *sync, int rank, unsigned *y)
{
    char source[16384];
    snprintf(source, sizeof source, "#define DIMS %s\n#define SYNC %s\n%s", dims, sync,
             fixture_text("sim/product_cluster.cu"));
    sim_start_cuda(&sim, source);
    DevicePtr py = sim_buffer(&sim, "y", NULL, 512);
    int r = sim_try(&sim, shape(2, 64), 2, A(py), A(rank));
    if (!r) sim_read(&sim, py, y, 512);
    return r;
}

static void refuse_cluster(const char *dims, const char *sync, int rank, Outcome outcome,
                           const char *part)
{
    unsigned y[128];
    int r = run_cluster(dims, sync, rank, y);
    expect(r, outcome, sim.fault.line, part);
}

static void test_cluster_of_one(void **state)
{
    (void)state;
    unsigned y[128];
    for (int i = 0; i < 2; i++) {
        accept(run_cluster(i ? "__cluster_dims__(1, 1, 1)" : "", "WAIT", 0, y));
        for (unsigned t = 0; t < 64; t++) {
            unsigned want = 1100 + 63 - (t + 32) % 64;
            assert_true(y[t] == want && y[64 + t] == want);
        }
    }
    refuse_cluster("", "(void)0", 0, OUTCOME_RACE, "shared memory");
    refuse_cluster("", "WAIT", 1, OUTCOME_OUT_OF_BOUNDS, "block 1 of a cluster of one block");
    refuse_cluster("__cluster_dims__(2, 1, 1)", "WAIT", 1, OUTCOME_RACE,
                   "block 0 of the cluster writes");
}

/* ---- cp.async ---- */

/* With a predicate in the place of the size, lanes whose source is ignored store zeros and read nothing. A
 * hint may follow. */
static void test_ignored_source(void **state)
{
    (void)state;
    float x[16], y[64];
    sim_start_cuda(&sim, fixture_text("sim/async_hints.cu"));
    for (int i = 0; i < 16; i++) x[i] = (float)(i + 1);
    DevicePtr px = sim_buffer(&sim, "x", x, sizeof x), py = sim_buffer(&sim, "y", NULL, sizeof y);
    sim_run(&sim, shape(1, 32), 3, A(px), A(py), A(16));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < 32; i++)
        assert_true(y[i] == (i < 16 ? x[i] : 0) && y[i + 32] == (i < 16 ? x[i] : 5));
    assert_int_not_equal(sim_try(&sim, shape(1, 32), 3, A(px), A(py), A(17)), 0);
    assert_int_equal(sim.fault.outcome, OUTCOME_OUT_OF_BOUNDS);
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),          cmocka_unit_test(test_undefined_bytes),
        cmocka_unit_test(test_doubles),        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_ignored_source),
        cmocka_unit_test(test_cluster_of_one),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
