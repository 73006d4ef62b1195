/* CUDA C++ through NVRTC, run by the simulator and compared with the host's arithmetic. */
#include <math.h>

#include "sim_support.h"

enum { N = 256 };

static Sim sim;

static int start(const char *source)
{
    const char *reason;
    char *ptx = cuda_to_ptx(source, &reason);
    if (!ptx) fail_msg("%s", reason);
    if (getenv("SIM_SHOW_PTX")) fputs(ptx, stderr);
    sim_start(&sim, ptx);
    free(ptx);
    return 0;
}

static float sample(int i)
{
    static const float edge[] = {0,      -0.0f, 1,      -1,          0.5f,   2,     1e-3f,
                                 -7.25f, 88.0f, -87.0f, 3.14159265f, 1e-20f, 65504, -12345.678f};
    unsigned x = (unsigned)i * 2654435761u;
    return i < 14 ? edge[i] : ((float)(x >> 8) / 8388608.0f - 1) * (i % 3 ? 4.0f : 40.0f);
}

static double ulps(float got, double want)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : 1e9;
    if ((double)got == want || (isinf(got) && fabs(want) > 3.4e38 && (got > 0) == (want > 0)))
        return 0;
    double unit = ldexp(1, ilogb(fabs(want) < 1.2e-38 ? 1.2e-38 : want) - 23);
    return fabs((double)got - want) / unit;
}

/* ---- fp32 functions ---- */

#define UNARY(X)                                                                                   \
    X(expf, exp, 2)                                                                                \
    X(exp2f, exp2, 2)                                                                              \
    X(exp10f, exp10_, 2)                                                                           \
    X(expm1f, expm1, 2)                                                                            \
    X(logf, log, 2) X(log2f, log2, 2) X(log10f, log10, 3) X(log1pf, log1p, 3) X(sqrtf, sqrt, 0.51) \
        X(rsqrtf, rsqrt_, 2) X(cbrtf, cbrt, 2) X(sinf, sin, 2) X(cosf, cos, 2) X(tanf, tan, 4)     \
            X(asinf, asin, 3) X(acosf, acos, 3) X(atanf, atan, 3) X(sinhf, sinh, 4)                \
                X(coshf, cosh, 3) X(tanhf, tanh, 3) X(erff, erf, 3) X(erfcf, erfc, 6)              \
                    X(floorf, floor, 0) X(ceilf, ceil, 0) X(truncf, trunc, 0) X(rintf, rint, 0)    \
                        X(roundf, round, 0) X(fabsf, fabs, 0)

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
    start(source);
    for (int i = 0; i < N; i++) x[i] = sample(i);
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

/* ---- fast intrinsics: absolute or relative bounds of the manual ---- */

static void test_intrinsics(void **state)
{
    (void)state;
    start(
        "extern \"C\" __global__ void k(const float *x, float *y, int n) { int i = threadIdx.x; "
        "float v = x[i];\n"
        "y[i] = __expf(v); y[n+i] = __logf(fabsf(v)); y[2*n+i] = __sinf(v); y[3*n+i] = __cosf(v);\n"
        "y[4*n+i] = __fdividef(v, 3.0f); y[5*n+i] = __frcp_rn(v); y[6*n+i] = __fsqrt_rz(fabsf(v)); "
        "y[7*n+i] = __fadd_ru(v, 1e-9f);\n"
        "y[8*n+i] = __fmul_rd(v, 1.1f); y[9*n+i] = __saturatef(v); y[10*n+i] = __fmaf_rz(v, 1.7f, "
        "0.3f); y[11*n+i] = fminf(v, 0.25f);\n"
        "y[12*n+i] = copysignf(2.0f, v); y[13*n+i] = fmodf(v, 0.7f); y[14*n+i] = ldexpf(v, 3); "
        "y[15*n+i] = v / 3.0f; }\n");
    float x[N], y[16 * N];
    for (int i = 0; i < N; i++) x[i] = sample(i + 20) / 10;
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

/* ---- integers ---- */

static void test_integers(void **state)
{
    (void)state;
    start("extern \"C\" __global__ void k(const int *a, const int *b, long long *y, int n) { int i "
          "= threadIdx.x; int p = a[i], q = b[i];\n"
          "unsigned u = p, v = q; long long *o = y + i; int k = 0;\n"
          "#define P(e) o[n * k++] = (long long)(e);\n"
          "P(p / q) P(p % q) P(u / v) P(u % v) P(__mulhi(p, q)) P(__umulhi(u, v)) P((long long)p * "
          "q) P(__popc(p)) P(__clz(p)) P(__ffs(p))\n"
          "P(__brev(u)) P(__byte_perm(u, v, 0x6240)) P(__funnelshift_l(u, v, q & 63)) "
          "P(__funnelshift_rc(u, v, q & 63)) P(abs(p)) P(min(p, q)) P(max(u, v))\n"
          "P(__sad(p, q, 7)) P(__mul24(p, q)) P(__dp4a(p, q, 5)) P(__dp4a(u, v, 5u)) P((short)p) "
          "P((signed char)p) P((unsigned char)p) P(p >> (q & 31)) P(u >> (q & 31))\n"
          "P(p << (q & 31)) P(((long long)p * q) / 1000003) P(((unsigned long long)u * v) % "
          "1000003u) P(__mul64hi((long long)p << 20, (long long)q << 13)) P((p > q) ? 11 : 22)\n"
          "P(__popcll((long long)p * q)) P(__clzll((long long)p * q)) P(__ffsll((long long)p << "
          "9)) P((unsigned short)(p + q)) P((p ^ q) & ~(p | 15)) P(__hadd(p, q)) P(__rhadd(p, q)) "
          "P(__float_as_int((float)p)) P(__double2ll_rd(p / 7.0)) }\n");
    static int a[N], b[N];
    static int64_t y[40 * N];
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
        int p = a[i], q = b[i], k = 0;
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
        const int64_t want[] = {
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
        for (k = 0; k < 40; k++)
            if (y[k * N + i] != want[k])
                fail_msg("expression %d of (%d, %d): %lld, %lld expected", k, p, q,
                         (long long)y[k * N + i], (long long)want[k]);
    }
    sim_stop(&sim);
}

/* ---- fp64 ---- */

static void test_doubles(void **state)
{
    (void)state;
    start("extern \"C\" __global__ void k(const double *x, double *y, int n) { int i = "
          "threadIdx.x; double v = x[i];\n"
          "y[i] = exp(v); y[n+i] = log(fabs(v)); y[2*n+i] = sqrt(fabs(v)); y[3*n+i] = 1.0 / v; "
          "y[4*n+i] = v / 3.7; y[5*n+i] = sin(v);\n"
          "y[6*n+i] = pow(fabs(v), 1.3); y[7*n+i] = (double)(float)v; y[8*n+i] = (double)(long "
          "long)(v * 1e6); y[9*n+i] = fma(v, v, -v);\n"
          "y[10*n+i] = floor(v); y[11*n+i] = tanh(v); y[12*n+i] = erf(v); y[13*n+i] = fmin(v, "
          "0.5); y[14*n+i] = rsqrt(fabs(v)); y[15*n+i] = cbrt(v); }\n");
    static double x[N], y[16 * N];
    for (int i = 0; i < N; i++) x[i] = (double)sample(i + 20) * 0.7312345678901;
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

/* ---- halves ---- */

static const char *half_source =
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
    "template <class T> __device__ float wide(T v) { return (float)v; }\n"
    "extern \"C\" __global__ void k(const float *x, const float *z, float *y, int n) { int i = "
    "threadIdx.x; float v = x[i], u = z[i];\n"
    "__half a = __float2half(v), b = __float2half(u); __nv_bfloat16 c = __float2bfloat16(v), d = "
    "__float2bfloat16(u); int k = 0;\n"
    "#define P(e) y[n * k++ + i] = (float)(e);\n"
    "P(a) P(b) P(a + b) P(a * b) P(a - b) P(__hfma(a, b, a)) P(__hmax(a, b)) P(__hmin(a, b)) P(-a) "
    "P(__habs(a)) P(a < b) P(__half2int_rz(a))\n"
    "P(__int2half_rn(i * 37)) P(c) P(d) P(c + d) P(c * d) P(c - d) P(__hfma(c, d, c)) P(__hmax(c, "
    "d)) P(-c) P(c < d)\n"
    "__half2 p = __halves2half2(a, b), q = __halves2half2(b, a); __half2 r = __hadd2(p, q), s = "
    "__hfma2(p, q, r), t = __hmul2(p, p);\n"
    "P(__low2half(r)) P(__high2half(r)) P(__low2half(s)) P(__high2half(s)) P(__low2half(t)) "
    "P(__high2half(t))\n"
    "__nv_bfloat162 g = __floats2bfloat162_rn(v, u), h = __hadd2(g, g), w = __hfma2(g, h, g);\n"
    "P(__low2bfloat16(g)) P(__high2bfloat16(g)) P(__low2bfloat16(h)) P(__high2bfloat16(w)) "
    "P(hexp(a)) P(hsqrt(__habs(a))) P(__float2half_rz(v)) P(__float2bfloat16_rz(v))\n"
    "P(__half2float(__ushort_as_half((unsigned short)(i * 257)))) P(a / b) P(__hfma_relu(a, b, a)) "
    "P(__hadd_sat(a, b)) }\n";

static float as_f16(double v)
{
    return (float)(_Float16)v;
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

static void test_halves(void **state)
{
    (void)state;
    start(half_source);
    enum { K = 40 };
    static float x[N], z[N], y[K * N];
    for (int i = 0; i < N; i++) {
        x[i] = sample(i + 14);
        z[i] = sample(i * 7 + 200);
    }
    DevicePtr px = sim_buffer(&sim, "input x", x, sizeof x),
              pz = sim_buffer(&sim, "input z", z, sizeof z);
    DevicePtr py = sim_buffer(&sim, "output y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {N}}), 4, A(px), A(pz), A(py), A(N));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < N; i++) {
        double a = (double)as_f16((double)x[i]), b = (double)as_f16((double)z[i]),
               c = (double)as_bf16((double)x[i]), d = (double)as_bf16((double)z[i]);
        double r = (double)as_f16(a + b), fma_ab = (double)as_f16(a * b + a),
               h = (double)as_bf16(2 * c), h2 = (double)as_bf16(2 * d);
        uint16_t bits = (uint16_t)(i * 257);
        _Float16 f16;
        memcpy(&f16, &bits, 2);
        double sum = (double)as_f16(a + b);
        const double want[K] = {a,
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
                                fabsf(x[i]) < 6.2e-5f ? a : (double)toward_zero(x[i], 13),
                                (double)toward_zero(x[i], 16),
                                (double)(float)f16,
                                (double)as_f16(a / b),
                                fma_ab < 0 ? 0 : fma_ab,
                                sum < 0   ? 0
                                : sum > 1 ? 1
                                          : sum};
        for (int k = 0; k < K; k++) {
            double got = (double)y[k * N + i];
            int loose = k == 32 || k == 37; /* hexp, division: one unit */
            if (!(got == want[k] || (isnan(got) && isnan(want[k])) ||
                  (loose && fabs(got - want[k]) <= 0.001 * fabs(want[k]) + 6e-8)))
                fail_msg("half expression %d of (%.9g, %.9g): %.9g, %.9g expected", k, (double)x[i],
                         (double)z[i], got, want[k]);
        }
    }
    sim_stop(&sim);
}

/* ---- warps, atomics, functions, memory ---- */

static void test_warps(void **state)
{
    (void)state;
    start("extern \"C\" __global__ void k(int *y, int n) { int i = threadIdx.x, l = i & 31, k = 0; "
          "int v = i * 3 + 1;\n"
          "#define P(e) y[n * k++ + i] = (int)(e);\n"
          "P(__shfl_sync(~0u, v, 5)) P(__shfl_up_sync(~0u, v, 3)) P(__shfl_down_sync(~0u, v, 7)) "
          "P(__shfl_xor_sync(~0u, v, 9)) P(__shfl_sync(~0u, v, l / 2, 8))\n"
          "P(__shfl_down_sync(~0u, v, 3, 8)) P(__ballot_sync(~0u, l % 3 == 0)) P(__any_sync(~0u, l "
          "== 40)) P(__all_sync(~0u, l < 32)) P(__match_any_sync(~0u, l / 10))\n"
          "P(__reduce_add_sync(~0u, v)) P(__reduce_max_sync(~0u, -v)) P(__reduce_xor_sync(~0u, v)) "
          "P(__activemask())\n"
          "int q = 0; if (l < 16) { q = __shfl_xor_sync(0xffffu, v, 1); } else { q = "
          "__shfl_xor_sync(0xffff0000u, v, 2); } P(q)\n"
          "P(__popc(__ballot_sync(~0u, i & 1))) P(__syncthreads_count(i % 5 == 0)) "
          "P(__syncthreads_or(i == 77)) P(__syncthreads_and(i == 77))\n"
          "double dv = __shfl_xor_sync(~0u, (double)v, 4); P(dv) long long lv = "
          "__shfl_down_sync(~0u, (long long)v << 33, 1); P(lv >> 33) }\n");
    enum { K = 21 };
    static int y[K * N];
    DevicePtr py = sim_buffer(&sim, "output y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {N}}), 2, A(py), A(N));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < N; i++) {
        int l = i & 31, w = i & ~31, sum = 0, xors = 0, match = 0;
        uint32_t ballot = 0;
        for (int j = 0; j < 32; j++) {
            sum += (w + j) * 3 + 1;
            xors ^= (w + j) * 3 + 1;
            ballot |= (uint32_t)(j % 3 == 0) << j;
            match |= (int)((uint32_t)(j / 10 == l / 10) << j);
        }
#define V(lane) ((w + (lane)) * 3 + 1)
        const int want[K] = {V(5),
                             V(l < 3 ? l : l - 3),
                             V(l + 7 > 31 ? l : l + 7),
                             V(l ^ 9),
                             V((l & ~7) | ((l / 2) & 7)),
                             V((l & 7) + 3 > 7 ? l : l + 3),
                             (int)ballot,
                             0,
                             1,
                             match,
                             sum,
                             -V(0),
                             xors,
                             -1,
                             l < 16 ? V(l ^ 1) : V(l ^ 2),
                             16,
                             52,
                             1,
                             0,
                             V(l ^ 4),
                             V(l == 31 ? 31 : l + 1)};
        for (int k = 0; k < K; k++)
            if (y[k * N + i] != want[k])
                fail_msg("warp expression %d of thread %d: %d, %d expected", k, i, y[k * N + i],
                         want[k]);
    }
    sim_stop(&sim);
}

static void test_atomics(void **state)
{
    (void)state;
    start("#include <cuda_fp16.h>\n"
          "__device__ int counter = 5; __device__ float table[4] = {1.5f, 2.5f, 3.5f, 4.5f}; "
          "__constant__ int offsets[3] = {7, 11, 13};\n"
          "__device__ int *where = &counter; struct Pair { int a; float b; }; __device__ Pair "
          "pairs[2] = {{1, 2.0f}, {3, 4.0f}};\n"
          "extern \"C\" __global__ void k(int *y, float *f, double *d, unsigned long long *u, "
          "__half2 *h) { __shared__ int s[2]; int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
          "if (threadIdx.x < 2) s[threadIdx.x] = 0; __syncthreads();\n"
          "atomicAdd(&y[0], i); atomicMax(&y[1], i * 7 % 101); atomicMin(&y[2], -i); "
          "atomicOr(&y[3], 1 << (i & 31)); atomicAnd(&y[4], ~(1 << (i % 7)));\n"
          "atomicXor(&y[5], i); atomicInc((unsigned *)&y[6], 99); atomicCAS(&y[7], 0, i + 1); "
          "atomicExch(&y[8], 42); atomicSub(&y[9], 2); atomicDec((unsigned *)&y[10], 9);\n"
          "atomicAdd(f, 0.5f); atomicAdd(d, 0.25); atomicAdd(u, 1ull << 33); atomicAdd(&s[0], 1); "
          "atomicMax(&s[1], (int)threadIdx.x); atomicAdd(where, offsets[i % 3]);\n"
          "atomicAdd(h, __floats2half2_rn(1.0f, 0.5f)); atomicMax(u + 1, (unsigned long long)i);\n"
          "__syncthreads(); if (threadIdx.x == 0) { atomicAdd(&y[11], s[0]); atomicAdd(&y[12], "
          "s[1]); atomicAdd(&y[13], (int)(table[blockIdx.x & 3] * 2)); atomicAdd(&y[14], "
          "pairs[1].a); }\n"
          "if (i == 0) y[15] = 0; }\n"
          "extern \"C\" __global__ void after(int *y) { y[0] = counter; }\n");
    int y[16] = {0};
    float f = 0;
    double d = 0;
    uint64_t u[2] = {0, 0};
    uint32_t h = 0;
    y[4] = -1;
    DevicePtr py = sim_buffer(&sim, "y", y, sizeof y), pf = sim_buffer(&sim, "f", &f, 4),
              pd = sim_buffer(&sim, "d", &d, 8);
    DevicePtr pu = sim_buffer(&sim, "u", u, 16), ph = sim_buffer(&sim, "h", &h, 4);
    sim_run(&sim, ((Shape){.kernel = "k", .grid = {4}, .block = {64}}), 5, A(py), A(pf), A(pd),
            A(pu), A(ph));
    sim_read(&sim, py, y, sizeof y);
    sim_read(&sim, pf, &f, 4);
    sim_read(&sim, pd, &d, 8);
    sim_read(&sim, pu, u, 16);
    sim_read(&sim, ph, &h, 4);
    const int want[] = {32640, 100, -255, -1, ~127, 0, 56, 1, 42, -512, 4, 256, 252, 24, 12};
    for (int k = 0; k < 15; k++) {
        if (k == 7)
            assert_true(y[k] >= 1 && y[k] <= 256); /* whoever came first */
        else
            assert_int_equal(y[k], want[k]);
    }
    assert_true(f == 128 && d == 64 && u[0] == 256ull << 33 && u[1] == 255 &&
                h == (0x5800u << 16 | 0x5c00u));
    sim_run(&sim, ((Shape){.kernel = "after"}), 1, A(py));
    sim_read(&sim, py, y, 4);
    assert_int_equal(y[0], 5 + 86 * 7 + 85 * 11 + 85 * 13);
    sim_stop(&sim);
}

static void test_functions_and_memory(void **state)
{
    (void)state;
    start("#include <cuda_bf16.h>\n"
          "struct Big { int v[6]; double d; }; __device__ __noinline__ Big make(int a, double d) { "
          "Big b; for (int i = 0; i < 6; i++) b.v[i] = a + i; b.d = d * 2; return b; }\n"
          "__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
          "__device__ __noinline__ long long mix(signed char a, unsigned short b, float c, long "
          "long d) { return a + b + (long long)c + d; }\n"
          "template <int K> __device__ int poly(const int *v, int i) { int s = 0; for (int k = 0; "
          "k < K; k++) s = s * 3 + v[(i + k) & 15]; return s; }\n"
          "extern \"C\" __global__ void k(const int *x, int *y, int n, Big in, signed char tail) { "
          "extern __shared__ int dyn[]; __shared__ int fixed[64]; int i = threadIdx.x, k = 0;\n"
          "#define P(e) y[n * k++ + i] = (int)(e);\n"
          "dyn[i] = x[i]; fixed[i % 64] = n; __syncthreads(); int loc[16]; for (int j = 0; j < 16; "
          "j++) loc[(j * 5) & 15] = dyn[(i + j) % n];\n"
          "P(loc[i & 15]) P(poly<7>(loc, i)) P(fib(i & 7)) Big b = make(i, 1.5); P(b.v[i % 6]) "
          "P(b.d) P(mix((signed char)i, (unsigned short)(i * 1000), 2.5f, 1ll << 20))\n"
          "P(in.v[i % 6]) P(in.d) P(tail) int4 q = ((const int4 *)x)[i / 4]; P(q.x + q.y * 2 + q.z "
          "* 3 + q.w * 4) short2 s2 = ((const short2 *)x)[i]; P(s2.x - s2.y)\n"
          "uchar4 c4 = ((const uchar4 *)x)[i]; P(c4.x + c4.y + c4.z + c4.w) int t = fixed[63 - (i "
          "& 63)] - n; switch (i % 9) { case 0: t = 3; break; case 1: t = fib(3); break; case 2: t "
          "= x[0]; break; case 3: t = 9; break;\n"
          "case 4: t = i * i; break; case 5: t = 1; break; case 6: t = -1; break; case 7: t = 77; "
          "} P(t) int *gp = i & 1 ? &dyn[i] : (int *)&x[i]; P(*gp)\n"
          "int steps = 0; for (int v = i + 1; v != 1 && steps < 200; steps++) v = v & 1 ? 3 * v + "
          "1 : v / 2; P(steps) P(blockDim.x + gridDim.x * 1000)\n"
          "unsigned lo = i * 0x9e3779b9u, carry; asm volatile(\"{ .reg .pred p; add.cc.u32 %0, %1, "
          "%1; addc.u32 %0, 0, 0; }\" : \"=r\"(carry) : \"r\"(lo)); P(carry) }\n");
    enum { K = 17 };
    static int x[N], y[K * N];
    struct {
        int v[6];
        double d;
    } big = {{100, 200, 300, 400, 500, 600}, 12.0};
    for (int i = 0; i < N; i++) x[i] = i * i - 3 * i + 1000;
    DevicePtr px = sim_buffer(&sim, "input x", x, sizeof x),
              py = sim_buffer(&sim, "output y", NULL, sizeof y);
    DeviceLaunch l = {.module = sim.m,
                      .kernel = "k",
                      .grid = {1, 1, 1},
                      .block = {N, 1, 1},
                      .shared_bytes = N * 4};
    KernelInfo info;
    assert_int_equal(ops->kernel(sim.d, sim.m, "k", &info, &sim.err), 0);
    assert_int_equal(info.n_params, 5);
    assert_int_equal(info.params[3].size, 32);
    assert_int_equal(info.static_shared, 256);
    int n = N;
    memcpy(l.params + info.params[0].offset, &px, 8);
    memcpy(l.params + info.params[1].offset, &py, 8);
    memcpy(l.params + info.params[2].offset, &n, 4);
    memcpy(l.params + info.params[3].offset, &big, 32);
    l.params[info.params[4].offset] = (unsigned char)-9;
    if (ops->run(sim.d, &l, 1, &sim.fault, &sim.err)) fail_msg("%s", sim.fault.message);
    sim_read(&sim, py, y, sizeof y);
    static const int fib[] = {0, 1, 1, 2, 3, 5, 8, 13};
    for (int i = 0; i < N; i++) {
        int loc[16], poly = 0, steps = 0;
        for (int j = 0; j < 16; j++) loc[(j * 5) & 15] = x[(i + j) % N];
        for (int k = 0; k < 7; k++) poly = poly * 3 + loc[(i + k) & 15];
        for (int v = i + 1; v != 1 && steps < 200; steps++) v = v & 1 ? 3 * v + 1 : v / 2;
        const int *q = &x[i / 4 * 4];
        int cases[] = {3, 2, x[0], 9, i * i, 1, -1, 77, 0};
        uint32_t u = (uint32_t)x[i], lo = (uint32_t)i * 0x9e3779b9u;
        const int want[K] = {loc[i & 15],
                             poly,
                             fib[i & 7],
                             i + i % 6,
                             3,
                             (int8_t)i + (uint16_t)(i * 1000) + 2 + (1 << 20),
                             big.v[i % 6],
                             12,
                             -9,
                             q[0] + q[1] * 2 + q[2] * 3 + q[3] * 4,
                             (int16_t)u - (int16_t)(u >> 16),
                             (int)((u & 255) + (u >> 8 & 255) + (u >> 16 & 255) + (u >> 24)),
                             cases[i % 9],
                             x[i],
                             steps,
                             N + 1000,
                             (int)((uint64_t)lo * 2 >> 32)};
        for (int k = 0; k < K; k++)
            if (y[k * N + i] != want[k])
                fail_msg("expression %d of thread %d: %d, %d expected", k, i, y[k * N + i],
                         want[k]);
    }
    sim_stop(&sim);
}

/* ---- calls through pointers ---- */

static int pointed(int f, int a, int b)
{
    switch (f) {
    case 0: return a + b;
    case 1: return a - 2 * b;
    case 2: return a > 0 ? 1 + pointed(a & 3, a - 1, b) : 3;
    default: return a > 0 ? 2 * pointed(2, a - 1, b) : b;
    }
}

static void test_pointers(void **state)
{
    (void)state;
    start("typedef int (*Fn)(int, int); __device__ int add(int a, int b) { return a + b; } "
          "__device__ int sub(int a, int b) { return a - 2 * b; }\n"
          "__device__ int down(int, int); __device__ int twice(int a, int b) { return a > 0 ? 2 * "
          "down(a - 1, b) : b; }\n"
          "__device__ Fn table[4] = {add, sub, down, twice}; __device__ int down(int a, int b) { "
          "return a > 0 ? 1 + table[a & 3](a - 1, b) : 3; }\n"
          "struct Op { int k; __device__ virtual void into(int *at) const = 0; __device__ virtual "
          "int zero() const { return 0; } };\n"
          "struct Put : Op { __device__ void into(int *at) const override { *at = k; } }; struct "
          "More : Put { __device__ void into(int *at) const override { *at += k; } __device__ int "
          "zero() const override { return 9; } };\n"
          "extern \"C\" __global__ void k(int *y, Fn *bad) { int i = threadIdx.x; Put p; More m; "
          "p.k = i; m.k = 100; const Op *op = i % 3 ? (const Op *)&p : (const Op *)&m; y[i] = 7;\n"
          "op->into(&y[i]); int v = 0; for (int r = 0; r < i % 5; r++) v += table[(i + r) & 3](i % "
          "7, r + 1);\n"
          "y[64 + i] = v; y[128 + i] = __reduce_add_sync(0xffffffffu, table[i & 3](2, 1)); y[192 + "
          "i] = op->zero() + __popc(__activemask());\n"
          "if (bad) { Fn f = *bad; y[i] = f(1, 2); } }\n");
    static int y[256];
    uint64_t wild = 0x050000000008u;
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof y),
              pointer = sim_buffer(&sim, "pointer", &wild, 8);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {64}}), 2, A(py), A(0));
    sim_read(&sim, py, y, sizeof y);
    for (int i = 0; i < 64; i++) {
        int sum = 0, v = 0;
        for (int lane = 0; lane < 32; lane++) sum += pointed(lane & 3, 2, 1);
        for (int r = 0; r < i % 5; r++) v += pointed((i + r) & 3, i % 7, r + 1);
        assert_int_equal(y[i], i % 3 ? i : 107);
        assert_int_equal(y[64 + i], v);
        assert_int_equal(y[128 + i], sum);
        assert_int_equal(y[192 + i], (i % 3 ? 0 : 9) + 32);
    }
    assert_int_equal(sim_try(&sim, (Shape){.kernel = "k", .block = {64}}, 2, A(py), A(pointer)), 1);
    assert_int_equal(sim.fault.outcome, OUTCOME_LAUNCH_ERROR);
    assert_non_null(strstr(sim.fault.message, "leads to no function"));
    sim_stop(&sim);
}

/* ---- matrix instructions ---- */

static void test_matrices(void **state)
{
    (void)state;
    start("#include <cuda_fp16.h>\n#include <cuda_bf16.h>\ntypedef unsigned u;\n"
          "extern \"C\" __global__ void k(const __half *a, const __half *b, const float *c, float "
          "*y, __half *yh, const float *ta, const float *tb, float *yt, const signed char *ia, "
          "const signed char *ib, int *yi) {\n"
          "__shared__ __align__(16) __half sa[16][16], sb[16][8]; int l = threadIdx.x, g = l >> 2, "
          "t = l & 3;\n"
          "for (int i = l; i < 256; i += 32) sa[i / 16][i % 16] = a[i]; for (int i = l; i < 128; i "
          "+= 32) sb[i / 8][i % 8] = b[i]; __syncthreads();\n"
          "u A[4], B[2]; u pa = (u)__cvta_generic_to_shared(&sa[l & 15][(l >> 4) * 8]), pb = "
          "(u)__cvta_generic_to_shared(&sb[l & 15][0]);\n"
          "asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\" : "
          "\"=r\"(A[0]), \"=r\"(A[1]), \"=r\"(A[2]), \"=r\"(A[3]) : \"r\"(pa));\n"
          "asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\" : "
          "\"=r\"(B[0]), \"=r\"(B[1]) : \"r\"(pb));\n"
          "float C[4], D[4]; for (int i = 0; i < 4; i++) C[i] = c[(g + 8 * (i >> 1)) * 8 + 2 * t + "
          "(i & 1)];\n"
          "asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
          "{%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};\" : \"=f\"(D[0]), \"=f\"(D[1]), "
          "\"=f\"(D[2]), \"=f\"(D[3])\n"
          " : \"r\"(A[0]), \"r\"(A[1]), \"r\"(A[2]), \"r\"(A[3]), \"r\"(B[0]), \"r\"(B[1]), "
          "\"f\"(C[0]), \"f\"(C[1]), \"f\"(C[2]), \"f\"(C[3]));\n"
          "for (int i = 0; i < 4; i++) y[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = D[i];\n"
          "u H[2]; asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, "
          "{%2,%3}, {%4}, {%5,%5};\" : \"=r\"(H[0]), \"=r\"(H[1]) : \"r\"(A[0]), \"r\"(A[1]), "
          "\"r\"(B[0]), \"r\"(0));\n"
          "for (int i = 0; i < 2; i++) *(u *)&yh[(g + 8 * i) * 8 + 2 * t] = H[i];\n"
          "u TA[4], TB[2]; for (int i = 0; i < 4; i++) TA[i] = __float_as_uint(ta[(g + 8 * (i & "
          "1)) * 8 + t + 4 * (i >> 1)]); for (int i = 0; i < 2; i++) TB[i] = __float_as_uint(tb[(t "
          "+ 4 * i) * 8 + g]);\n"
          "asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
          "{%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};\" : \"=f\"(D[0]), \"=f\"(D[1]), "
          "\"=f\"(D[2]), \"=f\"(D[3])\n"
          " : \"r\"(TA[0]), \"r\"(TA[1]), \"r\"(TA[2]), \"r\"(TA[3]), \"r\"(TB[0]), \"r\"(TB[1]), "
          "\"f\"(0.0f));\n"
          "for (int i = 0; i < 4; i++) yt[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = D[i];\n"
          "u IA[4], IB[2]; for (int i = 0; i < 4; i++) IA[i] = *(const u *)&ia[(g + 8 * (i & 1)) * "
          "32 + 4 * t + 16 * (i >> 1)]; for (int i = 0; i < 2; i++) IB[i] = *(const u *)&ib[g * 32 "
          "+ 4 * t + 16 * i]; int I[4];\n"
          "asm volatile(\"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
          "{%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};\" : \"=r\"(I[0]), \"=r\"(I[1]), "
          "\"=r\"(I[2]), \"=r\"(I[3])\n"
          " : \"r\"(IA[0]), \"r\"(IA[1]), \"r\"(IA[2]), \"r\"(IA[3]), \"r\"(IB[0]), \"r\"(IB[1]), "
          "\"r\"(5)); for (int i = 0; i < 4; i++) yi[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = "
          "I[i]; }\n");
    static _Float16 a[256], b[128], yh[128];
    static float c[128], y[128], ta[128], tb[64], yt[128];
    static signed char ia[512], ib[256];
    static int yi[128];
    for (int i = 0; i < 512; i++) {
        if (i < 256)
            a[i] = (_Float16)((float)(i * 37 % 41) / 8 - 2),
            ib[i] = (signed char)(i * 91 % 251 - 120);
        if (i < 128)
            b[i] = (_Float16)((float)(i * 23 % 29) / 4 - 3), c[i] = (float)i,
            ta[i] = (float)(i * 13 % 17) / 4;
        if (i < 64) tb[i] = (float)(i * 11 % 19) - 9;
        ia[i] = (signed char)(i * 57 % 253 - 126);
    }
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
    for (int i = 0; i < 128; i++) {
        int row = i / 8, col = i % 8, isum = 5;
        float sum = c[i], half = 0, tsum = 0;
        for (int k = 0; k < 16; k++) {
            sum += (float)a[row * 16 + k] * (float)b[k * 8 + col];
            if (k < 8)
                half += (float)a[row * 16 + k] * (float)b[k * 8 + col],
                    tsum += ta[row * 8 + k] * tb[k * 8 + col];
        }
        for (int k = 0; k < 32; k++) isum += ia[row * 32 + k] * ib[col * 32 + k];
        assert_true(y[i] == sum && yh[i] == (_Float16)half &&
                    yt[i] == tsum); /* all exact in fp32 */
        assert_int_equal(yi[i], isum);
    }
    sim_stop(&sim);
}

/* Every shape, type and layout of wmma, on whole numbers: exact whatever a fragment's layout is. */
static void test_fragments(void **state)
{
    (void)state;
    start(
        "#include <mma.h>\nusing namespace nvcuda;\n"
        "template <class T> __device__ T of(int v) { return T(float(v)); } template <class L> "
        "struct by { enum { columns = 0 }; }; template <> struct by<wmma::col_major> { enum { "
        "columns = 1 }; };\n"
        "template <int M, int N, int K, class T, class P, class S, class LA, class LB, bool C> "
        "__device__ void one(float *y) {\n"
        "extern __shared__ __align__(32) char room[]; T *a = (T *)room, *b = (T *)(room + 5120); S "
        "*c = (S *)(room + 10240); const bool ca = by<LA>::columns, cb = by<LB>::columns;\n"
        "int l = threadIdx.x, da = ca ? 40 : 24, db = cb ? 24 : 40, dc = 40; __syncthreads();\n"
        "for (int e = l; e < M * K; e += 32) { int i = e / K, k = e % K; a[ca ? k * da + i : i * "
        "da + k] = of<T>((i * 7 + k * 3) % 11 - 5); }\n"
        "for (int e = l; e < N * K; e += 32) { int k = e / N, j = e % N; b[cb ? j * db + k : k * "
        "db + j] = of<T>((k * 5 + j * 2) % 7 - 3); }\n"
        "for (int e = l; e < M * N; e += 32) { int i = e / N, j = e % N; c[C ? j * dc + i : i * dc "
        "+ j] = of<S>(i - j); } __syncthreads();\n"
        "wmma::fragment<wmma::matrix_a, M, N, K, P, LA> fa; wmma::fragment<wmma::matrix_b, M, N, "
        "K, P, LB> fb; wmma::fragment<wmma::accumulator, M, N, K, S> fc; wmma::layout_t o = C ? "
        "wmma::mem_col_major : wmma::mem_row_major;\n"
        "wmma::load_matrix_sync(fa, a, da); wmma::load_matrix_sync(fb, b, db); "
        "wmma::load_matrix_sync(fc, c, dc, o); __syncthreads();\n"
        "for (int e = 0; e < fc.num_elements; e++) fc.x[e] = fc.x[e] + fc.x[e]; wmma::mma_sync(fc, "
        "fa, fb, fc); wmma::store_matrix_sync(c, fc, dc, o); __syncthreads();\n"
        "for (int e = l; e < M * N; e += 32) y[e] = (float)c[C ? e % N * dc + e / N : e / N * dc + "
        "e % N]; }\n"
        "template <int M, int N, int K, class T, class P, class S> __device__ void all(float *y) { "
        "typedef wmma::row_major R; typedef wmma::col_major L;\n"
        "one<M, N, K, T, P, S, R, R, false>(y); one<M, N, K, T, P, S, R, L, true>(y + 256); one<M, "
        "N, K, T, P, S, L, R, true>(y + 512); one<M, N, K, T, P, S, L, L, false>(y + 768); }\n"
        "template <class T, class S> __device__ void shapes(float *y) { all<16, 16, 16, T, T, "
        "S>(y); all<32, 8, 16, T, T, S>(y + 1024); all<8, 32, 16, T, T, S>(y + 2048); }\n"
        "extern \"C\" __global__ void k(float *y) { shapes<__half, float>(y); shapes<__half, "
        "__half>(y + 3072); shapes<__nv_bfloat16, float>(y + 6144);\n"
        "all<16, 16, 8, float, wmma::precision::tf32, float>(y + 9216); }\n");
    enum { TILES = 40 };
    static float y[TILES * 256];
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof y);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {32}, .shared = 15360}), 1, A(py));
    sim_read(&sim, py, y, sizeof y);
    for (int tile = 0; tile < TILES; tile++) {
        int columns = (int[]){16, 8, 32}[tile / 4 % 3], depth = 16;
        if (tile >= 36) columns = 16, depth = 8;
        for (int e = 0; e < 256; e++) {
            int i = e / columns, j = e % columns, want = 2 * (i - j);
            for (int k = 0; k < depth; k++)
                want += ((i * 7 + k * 3) % 11 - 5) * ((k * 5 + j * 2) % 7 - 3);
            if (y[tile * 256 + e] != (float)want)
                fail_msg("tile %d, row %d, column %d: %g, %d expected", tile, i, j,
                         (double)y[tile * 256 + e], want);
        }
    }
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions), cmocka_unit_test(test_intrinsics),
        cmocka_unit_test(test_integers),  cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_halves),    cmocka_unit_test(test_warps),
        cmocka_unit_test(test_atomics),   cmocka_unit_test(test_functions_and_memory),
        cmocka_unit_test(test_pointers),  cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_fragments),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
