/* Integer expressions of CUDA C++, against the host. */
#include <math.h>

#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_support.h"

enum { N = 256 };

static Sim sim;

enum { EXPRESSIONS = 40 };

/* The results of the expressions for p and q. */
static void expected(int p, int q, int64_t want[EXPRESSIONS])
{
    unsigned u = (unsigned)p, v = (unsigned)q;
    int64_t prod = (int64_t)p * q;
    int64_t rev = 0, perm = 0;
    for (int j = 0; j < 32; j++) rev |= (int64_t)(u >> j & 1) << (31 - j);
    uint64_t both = (uint64_t)v << 32 | u;
    static const int sel[] = {0, 4, 2, 6};
    for (int j = 0; j < 4; j++) perm |= (int64_t)(both >> (8 * sel[j]) & 255) << (8 * j);
    int sh = q & 31, dots = 5;
    unsigned dotu = 5, cl = (unsigned)(q & 63) > 32 ? 32 : (unsigned)(q & 63);
    for (int j = 0; j < 4; j++) {
        dots += (int8_t)(u >> (8 * j)) * (int8_t)(v >> (8 * j));
        dotu += (u >> (8 * j) & 255) * (v >> (8 * j) & 255);
    }
    int m24 = (int)((unsigned)((int)(u << 8) >> 8) * (unsigned)((int)(v << 8) >> 8));
    float fp = (float)p;
    int fbits;
    memcpy(&fbits, &fp, 4);
    const int64_t results[] = {
        p / q,
        p % q,
        u / v,
        u % v,
        prod >> 32,
        (int64_t)((uint64_t)u * v >> 32),
        prod,
        __builtin_popcount(u),
        u ? __builtin_clz(u) : 32,
        __builtin_ffs(p),
        rev,
        perm,
        (uint32_t)(both << sh >> 32),
        (uint32_t)(both >> cl),
        abs(p),
        p < q ? p : q,
        u > v ? u : v,
        (uint32_t)(7 + (p > q ? u - v : v - u)),
        m24,
        dots,
        dotu,
        (int16_t)p,
        (int8_t)p,
        (uint8_t)p,
        p >> sh,
        u >> sh,
        (int)(u << sh),
        prod / 1000003,
        (int64_t)((uint64_t)u * v % 1000003u),
        (int64_t)((__int128)(int64_t)((uint64_t)p << 20) * (int64_t)((uint64_t)q << 13) >> 64),
        p > q ? 11 : 22,
        __builtin_popcountll((uint64_t)prod),
        prod ? __builtin_clzll((uint64_t)prod) : 64,
        __builtin_ffsll((long long)((uint64_t)p << 9)),
        (uint16_t)(p + (long)q),
        (p ^ q) & ~(p | 15),
        ((int64_t)p + q) >> 1,
        ((int64_t)p + q + 1) >> 1,
        fbits,
        (int64_t)floor(p / 7.0)};
    memcpy(want, results, sizeof results);
}

static void test_integers(void **state)
{
    (void)state;
    static int a[N], b[N];
    static int64_t y[EXPRESSIONS * N], want[EXPRESSIONS];
    sim_start_cuda(&sim, fixture_text("sim/integers.cu"));
    for (int i = 0; i < N; i++) {
        a[i] = (int)((unsigned)i * 2654435761u ^ (unsigned)i << 7) - (i == 3);
        b[i] = (int)((unsigned)(i + 5) * 2246822519u) >> (i % 29);
        if (!b[i]) b[i] = 3;
    }
    DevicePtr pa = sim_buffer(&sim, "input a", a, sizeof a),
              pb = sim_buffer(&sim, "input b", b, sizeof b);
    DevicePtr py = sim_buffer(&sim, "output y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {N}}), 4, A(pa), A(pb), A(py), A(N));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < N; i++) {
        expected(a[i], b[i], want);
        for (int k = 0; k < EXPRESSIONS; k++)
            if (y[k * N + i] != want[k])
                fail_msg("expression %d of (%d, %d): %lld, %lld expected", k, a[i], b[i],
                         (long long)y[k * N + i], (long long)want[k]);
    }
    sim_stop(&sim);
}

/* ---- pairs of halves, as Hopper's instructions for dynamic programming have them ---- */

enum { PAIRS = 14 };

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t max(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Expression k of two signed or unsigned halves, and a third. */
static uint16_t half_of(int k, uint16_t a, uint16_t b, uint16_t c)
{
    int16_t s = (int16_t)a, t = (int16_t)b, u = (int16_t)c, sum = (int16_t)(a + b);
    int32_t all[] = {a + b,
                     a - b,
                     max(s, t),
                     least(s, t),
                     max(a, b),
                     least(a, b),
                     max(sum, u),
                     max(max(sum, u), 0),
                     least((uint16_t)sum, c),
                     max(max(max(s, t), u), 0),
                     max(least(least(s, t), u), 0)};
    return (uint16_t)all[k];
}

static uint32_t pair_of(int k, uint32_t a, uint32_t b, uint32_t c)
{
    int32_t s = (int32_t)a, t = (int32_t)b, u = (int32_t)c;
    switch (k) {
    case 11: return (uint32_t)max(max(s, t), 0);
    case 12: return (uint32_t)max(least(least(s, t), u), 0);
    case 13: return (uint32_t)max(max((int32_t)(a + b), u), 0);
    default:
        return half_of(k, (uint16_t)a, (uint16_t)b, (uint16_t)c) |
               (uint32_t)half_of(k, (uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16))
                   << 16;
    }
}

static void test_pairs(void **state)
{
    (void)state;
    static uint32_t in[3][N], y[PAIRS * N];
    static const uint32_t edges[] = {0,           0x7fff8000u, 0x80007fffu,
                                     0xffffffffu, 0x0001ffffu, 0x80008000u};
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++)
            in[k][i] = i < 216 ? edges[i / (int[]){1, 6, 36}[k] % 6]
                               : (uint32_t)(i + 9 * k + 1) * 2654435761u;
    sim_start_cuda(&sim, fixture_text("sim/integer_pairs.cu"));
    DevicePtr p[3], py;
    for (int k = 0; k < 3; k++) p[k] = sim_buffer(&sim, "input", in[k], sizeof in[k]);
    py = sim_buffer(&sim, "output y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {N}}), 5, A(p[0]), A(p[1]), A(p[2]), A(py),
            A(N));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < PAIRS * N; i++) {
        uint32_t a = in[0][i % N], b = in[1][i % N], c = in[2][i % N],
                 want = pair_of(i / N, a, b, c);
        if (y[i] != want)
            fail_msg("expression %d of %x, %x and %x: %x, %x expected", i / N, a, b, c, y[i], want);
    }
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_pairs),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
