/* Arithmetic of f16 and bf16, scalar and packed, against the host. */
#include <math.h>

#include "tests/fixture_path.h"
#include "tests/unit/eval/half_value.h"
#include "tests/unit/eval/sim/sim_support.h"

enum { N = 256 };

static Sim sim;

enum { EXPRESSIONS = 40 };

static float as_f16(double v)
{
    return (float)half_value(half_of(v));
}

static float as_bf16(double v)
{
    float f = (float)v;
    uint32_t b;
    memcpy(&b, &f, 4);
    b = (b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u;
    memcpy(&f, &b, 4);
    return f;
}

static float toward_zero(float v, int drop)
{
    uint32_t b;
    memcpy(&b, &v, 4);
    b &= ~0u << drop;
    memcpy(&v, &b, 4);
    return v;
}

/* The results of the expressions of thread i for v and u. */
static void expected(int i, float v, float u, double want[EXPRESSIONS])
{
    double a = (double)as_f16((double)v), b = (double)as_f16((double)u),
           c = (double)as_bf16((double)v), d = (double)as_bf16((double)u);
    double r = (double)as_f16(a + b), fma_ab = (double)as_f16(a * b + a),
           h = (double)as_bf16(2 * c), h2 = (double)as_bf16(2 * d);
    uint16_t bits = (uint16_t)(i * 257);
    double sum = (double)as_f16(a + b);
    const double results[EXPRESSIONS] = {a,
                                         b,
                                         r,
                                         (double)as_f16(a * b),
                                         (double)as_f16(a - b),
                                         fma_ab,
                                         fmax(a, b),
                                         fmin(a, b),
                                         -a,
                                         fabs(a),
                                         a < b,
                                         trunc(a),
                                         (double)as_f16(i * 37),
                                         c,
                                         d,
                                         (double)as_bf16(c + d),
                                         (double)as_bf16(c * d),
                                         (double)as_bf16(c - d),
                                         (double)as_bf16(fma(c, d, c)),
                                         fmax(c, d),
                                         -c,
                                         c < d,
                                         r,
                                         r,
                                         (double)as_f16(a * b + r),
                                         (double)as_f16(a * b + r),
                                         (double)as_f16(a * a),
                                         (double)as_f16(b * b),
                                         c,
                                         d,
                                         h,
                                         (double)as_bf16(d * h2 + d),
                                         (double)as_f16(exp(a)),
                                         (double)as_f16(sqrt(fabs(a))),
                                         fabsf(v) < 6.2e-5f ? a : (double)toward_zero(v, 13),
                                         (double)toward_zero(v, 16),
                                         half_value(bits),
                                         (double)as_f16(a / b),
                                         fma_ab < 0 ? 0 : fma_ab,
                                         sum < 0   ? 0
                                         : sum > 1 ? 1
                                                   : sum};
    memcpy(want, results, sizeof results);
}

static void test_halves(void **state)
{
    (void)state;
    double want[EXPRESSIONS];
    static float x[N], z[N], y[EXPRESSIONS * N];
    sim_start_cuda(&sim, fixture_text("sim/halves.cu"));
    for (int i = 0; i < N; i++) {
        x[i] = sim_sample(i + 14);
        z[i] = sim_sample(i * 7 + 200);
    }
    DevicePtr px = sim_buffer(&sim, "input x", x, sizeof x),
              pz = sim_buffer(&sim, "input z", z, sizeof z);
    DevicePtr py = sim_buffer(&sim, "output y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {N}}), 4, A(px), A(pz), A(py), A(N));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < N; i++) {
        expected(i, x[i], z[i], want);
        for (int k = 0; k < EXPRESSIONS; k++) {
            double got = (double)y[k * N + i];
            int loose = k == 32 || k == 37; /* hexp and division: within one unit */
            if (!(got == want[k] || (isnan(got) && isnan(want[k])) ||
                  (loose && fabs(got - want[k]) <= 0.001 * fabs(want[k]) + 6e-8)))
                fail_msg("half expression %d of (%.9g, %.9g): %.9g, %.9g expected", k, (double)x[i],
                         (double)z[i], got, want[k]);
        }
    }
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
