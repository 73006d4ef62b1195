/* Functions of one float or double: against the host, within the bounds of the CUDA manual. */
#include <math.h>

#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_support.h"

enum { N = 256 };

static Sim sim;

/* The distance from the correct result in units of its last place. */
static double ulps(float got, double want)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : 1e9;
    if ((double)got == want || (isinf(got) && fabs(want) > 3.4e38 && (got > 0) == (want > 0)))
        return 0;
    double unit = ldexp(1, ilogb(fabs(want) < 1.2e-38 ? 1.2e-38 : want) - 23);
    return fabs((double)got - want) / unit;
}

/* X(device function, host function, bound in ulps) */
#define UNARY(X)         \
    X(expf, exp, 2)      \
    X(exp2f, exp2, 2)    \
    X(exp10f, exp10_, 2) \
    X(expm1f, expm1, 2)  \
    X(logf, log, 2)      \
    X(log2f, log2, 2)    \
    X(log10f, log10, 3)  \
    X(log1pf, log1p, 3)  \
    X(sqrtf, sqrt, 0.51) \
    X(rsqrtf, rsqrt_, 2) \
    X(cbrtf, cbrt, 2)    \
    X(sinf, sin, 2)      \
    X(cosf, cos, 2)      \
    X(tanf, tan, 4)      \
    X(asinf, asin, 3)    \
    X(acosf, acos, 3)    \
    X(atanf, atan, 3)    \
    X(sinhf, sinh, 4)    \
    X(coshf, cosh, 3)    \
    X(tanhf, tanh, 3)    \
    X(erff, erf, 3)      \
    X(erfcf, erfc, 6)    \
    X(floorf, floor, 0)  \
    X(ceilf, ceil, 0)    \
    X(truncf, trunc, 0)  \
    X(rintf, rint, 0)    \
    X(roundf, round, 0)  \
    X(fabsf, fabs, 0)

static double exp10_(double x)
{
    return pow(10, x);
}

static double rsqrt_(double x)
{
    return 1 / sqrt(x);
}

static void test_functions(void **state)
{
    (void)state;
    static const char *source =
#define X(fn, host, bound)                                                                    \
    "extern \"C\" __global__ void k_" #fn                                                     \
    "(const float *x, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = " #fn \
    "(x[i]); }\n"
        UNARY(X)
#undef X
        ;
    static const struct {
        const char *kernel;
        double (*host)(double);
        double bound;
    } table[] = {
#define X(fn, host, bound) {"k_" #fn, host, bound},
        UNARY(X)
#undef X
    };
    float x[N], y[N];
    sim_start_cuda(&sim, source);
    for (int i = 0; i < N; i++) x[i] = sim_sample(i);
    DevicePtr px = sim_buffer(&sim, "input x", x, sizeof x),
              py = sim_buffer(&sim, "output y", NULL, sizeof y);
    for (size_t t = 0; t < sizeof table / sizeof table[0]; t++) {
        sim_run(&sim, ((Shape){.kernel = table[t].kernel, .grid = {N / 64}, .block = {64}}), 2,
                A(px), A(py));
        sim_read(&sim, py, y, sizeof y);
        for (int i = 0; i < N; i++) {
            double want = table[t].host((double)x[i]);
            if (fabs(want) < 1.2e-38 && fabs(y[i]) < 1.2e-38) continue;
            if (ulps(y[i], want) > table[t].bound)
                fail_msg("%s(%.9g) = %.9g, %.9g expected: %.1f ulp", table[t].kernel, (double)x[i],
                         (double)y[i], want, ulps(y[i], want));
        }
    }
    sim_stop(&sim);
}

/* ---- fast intrinsics ---- */

static void test_intrinsics(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/fast_math.cu"));
    float x[N], y[16 * N];
    for (int i = 0; i < N; i++) x[i] = sim_sample(i + 20) / 10;
    DevicePtr px = sim_buffer(&sim, "input x", x, sizeof x),
              py = sim_buffer(&sim, "output y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {N}}), 3, A(px), A(py), A(N));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < N; i++) {
        double v = (double)x[i], a = fabs(v);
        assert_true(ulps(y[i], exp(v)) <= 2 + 1.16 * a + 2);
        assert_true(fabs((double)y[N + i] - log(a)) < 2e-6 * fmax(1, fabs(log(a))));
        assert_true(fabs((double)y[2 * N + i] - sin(v)) < 5e-7);
        assert_true(fabs((double)y[3 * N + i] - cos(v)) < 5e-7);
        assert_true(ulps(y[4 * N + i], v / 3) <= 2);
        assert_true(ulps(y[5 * N + i], 1 / v) <= 0.5000001);
        assert_true((double)y[6 * N + i] <= sqrt(a) && ulps(y[6 * N + i], sqrt(a)) < 1);
        assert_true((double)y[7 * N + i] >= v + (double)1e-9f &&
                    ulps(y[7 * N + i], v + (double)1e-9f) < 1);
        assert_true((double)y[8 * N + i] <= v * (double)1.1f &&
                    ulps(y[8 * N + i], v * (double)1.1f) < 1);
        assert_true((double)y[9 * N + i] == (v < 0 ? 0 : v > 1 ? 1 : v));
        double fma_exact = v * (double)1.7f + (double)0.3f;
        assert_true(fabs((double)y[10 * N + i]) <= fabs(fma_exact) &&
                    ulps(y[10 * N + i], fma_exact) < 1.001);
        assert_true(y[11 * N + i] == fminf(x[i], 0.25f));
        assert_true(y[12 * N + i] == copysignf(2.0f, x[i]));
        assert_true(y[13 * N + i] == fmodf(x[i], 0.7f));
        assert_true(y[14 * N + i] == ldexpf(x[i], 3));
        assert_true(y[15 * N + i] == x[i] / 3.0f);
    }
    sim_stop(&sim);
}

/* ---- fp64 ---- */

static void test_doubles(void **state)
{
    (void)state;
    sim_start_cuda(&sim, fixture_text("sim/double_math.cu"));
    static double x[N], y[16 * N];
    for (int i = 0; i < N; i++) x[i] = (double)sim_sample(i + 20) * 0.7312345678901;
    DevicePtr px = sim_buffer(&sim, "input x", x, sizeof x),
              py = sim_buffer(&sim, "output y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {N}}), 3, A(px), A(py), A(N));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < N; i++) {
        double v = x[i], a = fabs(v);
        const double want[] = {exp(v),        log(a),           sqrt(a),
                               1 / v,         v / 3.7,          sin(v),
                               pow(a, 1.3),   (double)(float)v, (double)(long long)(v * 1e6),
                               fma(v, v, -v), floor(v),         tanh(v),
                               erf(v),        fmin(v, 0.5),     1 / sqrt(a),
                               cbrt(v)};
        for (int k = 0; k < 16; k++) {
            double got = y[k * N + i], error = fabs(got - want[k]) / (fabs(want[k]) + 1e-300);
            int exact = k == 2 || k == 3 || k == 4 || (k >= 7 && k <= 10) || k == 13;
            if (exact ? got != want[k] : error > 8e-16)
                fail_msg("fp64 expression %d of %.17g: %.17g, %.17g expected", k, v, got, want[k]);
        }
    }
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_intrinsics),
        cmocka_unit_test(test_doubles),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
