/* Matrix instructions: mma and ldmatrix against sums of the host, and every form of wmma. */
#include "tests/fixture_path.h"
#include "tests/unit/eval/half_value.h"
#include "tests/unit/eval/sim/sim_support.h"

static Sim sim;

/* ---- mma, ldmatrix ---- */

static uint16_t a[256], b[128], yh[128];
static float c[128], y[128], ta[128], tb[64], yt[128];
static signed char ia[512], ib[256];
static int yi[128];

static void fill(void)
{
    for (int i = 0; i < 512; i++) {
        if (i < 256)
            a[i] = half_of((i * 37 % 41) / 8.0 - 2), ib[i] = (signed char)(i * 91 % 251 - 120);
        if (i < 128)
            b[i] = half_of((i * 23 % 29) / 4.0 - 3), c[i] = (float)i,
            ta[i] = (float)(i * 13 % 17) / 4;
        if (i < 64) tb[i] = (float)(i * 11 % 19) - 9;
        ia[i] = (signed char)(i * 57 % 253 - 126);
    }
}

/* Compares with sums of the host. All values are exact in fp32. */
static void check_products(void)
{
    for (int i = 0; i < 128; i++) {
        int row = i / 8, col = i % 8, isum = 5;
        float sum = c[i], half = 0, tsum = 0;
        for (int k = 0; k < 16; k++) {
            float product = (float)(half_value(a[row * 16 + k]) * half_value(b[k * 8 + col]));
            sum += product;
            if (k < 8) half += product, tsum += ta[row * 8 + k] * tb[k * 8 + col];
        }
        for (int k = 0; k < 32; k++) isum += ia[row * 32 + k] * ib[col * 32 + k];
        assert_true(y[i] == sum && yh[i] == half_of((double)half) && yt[i] == tsum);
        assert_int_equal(yi[i], isum);
    }
}

static void test_matrices(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/matrix_mma.cu"));
    fill();
    DevicePtr p[11] = {
        sim_buffer(&sim, "a", a, sizeof a),      sim_buffer(&sim, "b", b, sizeof b),
        sim_buffer(&sim, "c", c, sizeof c),      sim_buffer(&sim, "y", NULL, sizeof y),
        sim_buffer(&sim, "yh", NULL, sizeof yh), sim_buffer(&sim, "ta", ta, sizeof ta),
        sim_buffer(&sim, "tb", tb, sizeof tb),   sim_buffer(&sim, "yt", NULL, sizeof yt),
        sim_buffer(&sim, "ia", ia, sizeof ia),   sim_buffer(&sim, "ib", ib, sizeof ib),
        sim_buffer(&sim, "yi", NULL, sizeof yi)};
    sim_run(&sim, ((Shape){.kernel = "k", .block = {32}}), 11, A(p[0]), A(p[1]), A(p[2]), A(p[3]),
            A(p[4]), A(p[5]), A(p[6]), A(p[7]), A(p[8]), A(p[9]), A(p[10]));
    assert_int_equal(sim_last_counts(sim.d)->tensor_flops, 2 * 16 * 8 * (16 + 8 + 8 + 32));
    assert_int_equal(sim_last_counts(sim.d)->by_class[INST_TENSOR], 4);
    sim_read(&sim, p[3], y, sizeof y);
    sim_read(&sim, p[4], yh, sizeof yh);
    sim_read(&sim, p[7], yt, sizeof yt);
    sim_read(&sim, p[10], yi, sizeof yi);
    check_products();
    sim_stop(&sim);
}

/* ---- wmma ---- */

/* Every shape, type and layout, on whole numbers: the results are exact whatever the layout of a
 * fragment is. */
static void test_fragments(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/matrix_wmma.cu"));
    enum { BYTES = 48, TF32 = 60, TILES = 64 }; /* BYTES: the first without signs */
    static float results[TILES * 256];
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof results);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {32}, .shared = 15360}), 1, A(py));
    sim_read(&sim, py, results, sizeof results);
    for (int tile = 0; tile < TILES; tile++) {
        int columns = (int[]){16, 8, 32}[tile / 4 % 3], depth = 16;
        int more = tile >= BYTES && tile < TF32 ? 130 : 0;
        if (tile >= TF32) columns = 16, depth = 8;
        for (int e = 0; e < 256; e++) {
            int i = e / columns, j = e % columns, want = 2 * (i - j);
            for (int k = 0; k < depth; k++)
                want += ((i * 7 + k * 3) % 11 - 5 + more) * ((k * 5 + j * 2) % 7 - 3 + more);
            if (results[tile * 256 + e] != (float)want)
                fail_msg("tile %d, row %d, column %d: %g, %d expected", tile, i, j,
                         (double)results[tile * 256 + e], want);
        }
    }
    sim_stop(&sim);
}

/* Sums of bytes wrap around, and with satfinite they end at the limits. */
static void test_saturation(void **state)
{
    (void)state;
    static int32_t sums[2][256];
    sim_start_cuda(&sim, fixture_text("sim/matrix_signed.cu"));
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof sums);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {32}}), 1, A(py));
    assert_int_equal(sim_last_counts(sim.d)->tensor_flops, 2 * 2 * 16 * 16 * 16);
    sim_read(&sim, py, sums, sizeof sums);
    for (int i = 0; i < 256; i++) {
        assert_int_equal(sums[0][i], (int32_t)(2147483000u + 16u * 127u * 127u));
        assert_int_equal(sums[1][i], INT32_MAX);
    }
    sim_stop(&sim);
}

static void judge_bytes(const char *layout, int threads, int ordered, int n, Outcome outcome)
{
    char source[16384];
    snprintf(source, sizeof source, "#define LAYOUT wmma::%s\n#define ORDERED %d\n%s", layout,
             ordered, fixture_text("sim/matrix_bytes.cu"));
    sim_start_cuda(&sim, source);
    signed char x[64];
    memset(x, 1, sizeof x);
    DevicePtr px = sim_buffer(&sim, "x", x, sizeof x), py = sim_buffer(&sim, "y", NULL, 1024);
    Shape block = {.kernel = "k", .block = {(uint32_t)threads}};
    int r = sim_try(&sim, block, 3, A(px), A(py), A(n));
    if ((r ? sim.fault.outcome : OUTCOME_OK) != outcome)
        fail_msg("%s, %d threads: %d %s", layout, threads, r, sim.fault.message);
    sim_stop(&sim);
}

/* A matrix of bytes has its undefined elements and its races seen, in both layouts. */
static void test_checked_bytes(void **state)
{
    (void)state;
    static const char *const layouts[] = {"row_major", "col_major"};
    for (int i = 0; i < 2; i++) {
        judge_bytes(layouts[i], 32, 1, 1, OUTCOME_OK);
        judge_bytes(layouts[i], 32, 1, 0, OUTCOME_UNINITIALISED);
        judge_bytes(layouts[i], 64, 1, 1, OUTCOME_OK);
        judge_bytes(layouts[i], 64, 0, 1, OUTCOME_RACE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_checked_bytes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
