/* The harness's own device code, compiled by NVRTC and run by the simulator: guard zones,
 * comparison and digests, against the same computed by the host. */
#include <math.h>

#include "base/random.h"
#include "eval/cuda/context/harness.h"
#include "tasks/task.h"
#include "tests/unit/eval/sim/sim_support.h"

static Sim sim;

static int start(void)
{
    const char *reason;
    char *source = harness_source(), *ptx = cuda_to_ptx(source, &reason);
    free(source);
    if (!ptx) fail_msg("%s", reason);
    sim_start(&sim, ptx);
    free(ptx);
    return 0;
}

static uint64_t bits_of(double v)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    return u;
}

/* ---- zones ---- */

enum { SPAN = 4096 };

static void zones_case(const unsigned char *memory, const HarnessZone *offsets, int n,
                       HarnessZoneBad *bad)
{
    HarnessZone zones[4];
    DevicePtr p = sim_buffer(&sim, "memory", memory, SPAN);
    for (int i = 0; i < n; i++) zones[i] = (HarnessZone){p + offsets[i].start, p + offsets[i].end};
    memset(bad, 255, (size_t)n * sizeof *bad);
    DevicePtr pz = sim_buffer(&sim, "zones", zones, (size_t)n * sizeof *zones),
              pb = sim_buffer(&sim, "bad", bad, (size_t)n * sizeof *bad);
    sim_run(&sim, ((Shape){harness_names[HARNESS_ZONES], {2, (uint32_t)n}, {64}, 0}), 2, A(pz),
            A(pb));
    sim_read(&sim, pb, bad, (size_t)n * sizeof *bad);
    for (int i = 0; i < n; i++) {
        if (bad[i].lowest == ~0ull) continue;
        bad[i].lowest -= p;
        bad[i].highest = ~bad[i].highest - p;
    }
    ops->free(sim.d, p), ops->free(sim.d, pz), ops->free(sim.d, pb);
}

static void test_zones(void **state)
{
    (void)state;
    static const HarnessZone zones[] = {{0, 256}, {256 + 28, 2048}, {3001, 4096}};
    unsigned char memory[SPAN];
    HarnessZoneBad bad[3];
    start();
    memset(memory, 255, sizeof memory);
    memset(memory + 256, 0, 28); /* buffers may hold any value */
    memset(memory + 2048, 1, 3001 - 2048);
    zones_case(memory, zones, 3, bad);
    for (int i = 0; i < 3; i++) assert_int_equal(bad[i].lowest, ~0ull);
    memory[256 + 28] = 7; /* the byte after a buffer */
    memory[2047] = 254;   /* the byte before a buffer */
    memory[3500] = 0;
    zones_case(memory, zones, 3, bad);
    assert_int_equal(bad[0].lowest, ~0ull);
    assert_true(bad[1].lowest == 284 && bad[1].highest == 2047);
    assert_true(bad[2].lowest == 3500 && bad[2].highest == 3500);
    sim_stop(&sim);
}

/* ---- comparison ---- */

static int host_same(Dtype type, double got, double want, double atol, double rtol)
{
    double limit = atol + rtol * fabs(want);
    if (isnan(want)) return isnan(got);
    if (isinf(want) || isnan(got)) return got == want;
    if (isinf(got)) return got * want > 0 && fabs(want) + limit >= dtype_overflow(type);
    return fabs(got - want) <= limit;
}

static double host_excess(double got, double want, double atol, double rtol)
{
    double d = fabs(got - want), limit = atol + rtol * fabs(want);
    return isnan(d) || isinf(d) ? INFINITY : (double)(float)(d / limit);
}

/* Element 0 belongs to element `from` of what is kept, of which `period` elements repeat. */
typedef struct {
    size_t from, period;
} Spread;

/* kept: as the harness keeps it. */
static void compare_case(Dtype dtype, size_t n, Spread s, const void *got, const double *kept,
                         double atol, double rtol)
{
    double *want = malloc(n * sizeof *want);
    for (size_t i = 0; i < n; i++) want[i] = kept[(i + s.from) % s.period];
    HarnessDifference d = {.first = ~0ull, .first_unwritten = ~0ull, .worst = ~0ull}, e = d;
    size_t size = dtype_size(dtype);
    double worst_by = -1, x;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = (const unsigned char *)got + i * size;
        static const unsigned char poison[4] = {255, 255, 255, 255};
        dtype_to_double(dtype, p, &x, 1);
        if (dtype != DTYPE_I32 && !memcmp(p, poison, size) && !e.unwritten++) e.first_unwritten = i;
        if (host_same(dtype, x, want[i], atol, rtol)) continue;
        if (!e.wrong++) e.first = i;
        double by = host_excess(x, want[i], atol, rtol);
        if (by > worst_by) worst_by = by, e.worst = i;
    }
    DevicePtr pg = sim_buffer(&sim, "got", got, n * size),
              pw = sim_buffer(&sim, "want", kept, s.period * sizeof *kept);
    DevicePtr pd = sim_buffer(&sim, "difference", &d, sizeof d);
    sim_run(&sim, ((Shape){harness_names[HARNESS_COMPARE], {3}, {64}, 0}), 9, A(pg), A(pw),
            A(s.from), A(s.period), A(dtype), A(n), bits_of(atol), bits_of(rtol), A(pd));
    sim_read(&sim, pd, &d, sizeof d);
    assert_int_equal(d.wrong, e.wrong);
    assert_int_equal(d.unwritten, e.unwritten);
    assert_int_equal(d.first, e.first);
    assert_int_equal(d.first_unwritten, e.first_unwritten);
    if (e.wrong)
        assert_int_equal(d.worst & UINT32_MAX, e.worst);
    else
        assert_int_equal(d.worst, ~0ull);
    ops->free(sim.d, pg), ops->free(sim.d, pw), ops->free(sim.d, pd);
    free(want);
}

static void test_compare(void **state)
{
    (void)state;
    enum { N = 777 };
    static double want[N], drawn[N];
    static unsigned char got[N * 4];
    Random r;
    random_init(&r, 9, 9);
    start();
    for (int dtype = DTYPE_F32; dtype <= DTYPE_I32; dtype++)
        for (int kind = 0; kind < 7; kind++) {
            const double max = dtype_overflow((Dtype)dtype);
            for (int i = 0; i < N; i++) {
                want[i] =
                    (double)(int)(random_below(&r, 200)) - 100 + (dtype == DTYPE_I32 ? 0 : 0.25);
                drawn[i] = want[i];
                if (kind >= 1 && !random_below(&r, 50))
                    drawn[i] += (double)random_below(&r, 90) + 1;
                if (kind == 2 && dtype != DTYPE_I32 && !random_below(&r, 40))
                    want[i] = NAN, drawn[i] = i % 2 ? NAN : 1;
                if (kind == 3 && dtype != DTYPE_I32 && !random_below(&r, 40))
                    want[i] = INFINITY, drawn[i] = i % 3 ? INFINITY : -INFINITY;
                if (kind == 5) drawn[i] = -want[i] - 1;
                if (kind == 6 && !isinf(max) && !random_below(&r, 9)) { /* beyond the type */
                    want[i] = max * (1 + ((double)random_below(&r, 9) - 4) * 4e-7);
                    drawn[i] = i % 5 ? i % 3 ? INFINITY : -INFINITY : i;
                }
            }
            dtype_from_double((Dtype)dtype, drawn, got, N);
            if (kind == 4)
                memset(got + 300 * dtype_size((Dtype)dtype), 255, 40 * dtype_size((Dtype)dtype));
            compare_case((Dtype)dtype, N, (Spread){0, N}, got, want, 1e-5, kind == 1 ? 1e-2 : 1e-6);
            compare_case((Dtype)dtype, N - 1, (Spread){0, N}, got, want, 1e-5, 1e-6);
            if (kind != 1) continue;
            compare_case((Dtype)dtype, N, (Spread){76, 192}, got, want, 1e-5, 1e-6);
            compare_case((Dtype)dtype, N, (Spread){333, N}, got, want, 1e-5, 1e-6);
            compare_case((Dtype)dtype, N, (Spread){77, 192}, got, want, 1e-5, 1e-6);
        }
    sim_stop(&sim);
}

/* Every float16 and bfloat16 has the value that the host gives it. */
static void test_elements(void **state)
{
    (void)state;
    enum { N = 65536 };
    uint16_t *all = malloc(N * sizeof *all);
    double *want = malloc(N * sizeof *want);
    start();
    for (int i = 0; i < N; i++) all[i] = (uint16_t)i;
    for (int dtype = DTYPE_F16; dtype <= DTYPE_BF16; dtype++) {
        dtype_to_double((Dtype)dtype, all, want, N);
        compare_case((Dtype)dtype, N, (Spread){0, N}, all, want, 0, 0);
    }
    free(all);
    free(want);
    sim_stop(&sim);
}

/* ---- bytes ---- */

static uint64_t same_case(const unsigned char *a, const unsigned char *b, Spread s, size_t n)
{
    uint64_t first = ~0ull;
    DevicePtr pa = sim_buffer(&sim, "a", a, n), pb = sim_buffer(&sim, "b", b, s.period),
              pf = sim_buffer(&sim, "first", &first, 8);
    sim_run(&sim, ((Shape){harness_names[HARNESS_SAME], {2}, {32}, 0}), 6, A(pa), A(pb), A(s.from),
            A(s.period), A(n), A(pf));
    sim_read(&sim, pf, &first, 8);
    ops->free(sim.d, pa), ops->free(sim.d, pb), ops->free(sim.d, pf);
    return first;
}

static void digest_case(const unsigned char *a, size_t n, uint64_t out[2])
{
    out[0] = n, out[1] = 0;
    DevicePtr pa = sim_buffer(&sim, "a", a, n), po = sim_buffer(&sim, "sums", out, 16);
    sim_run(&sim, ((Shape){harness_names[HARNESS_DIGEST], {2}, {32}, 0}), 3, A(pa), A(n), A(po));
    sim_read(&sim, po, out, 16);
    ops->free(sim.d, pa), ops->free(sim.d, po);
}

static void test_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 7, 8, 15, 16, 17, 1000, 1501, 3072};
    static unsigned char a[3072], b[3072];
    uint64_t was[2], now[2];
    Random r;
    random_init(&r, 5, 6);
    start();
    for (size_t i = 0; i < sizeof a; i++) a[i] = (unsigned char)random_u64(&r);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k], places[] = {0, n - 1, n / 2, random_below(&r, n)};
        memcpy(b, a, n);
        assert_int_equal(same_case(a, b, (Spread){0, n}, n), ~0ull);
        digest_case(a, n, was);
        digest_case(b, n, now);
        assert_memory_equal(was, now, sizeof was);
        for (int i = 0; i < 4; i++) {
            b[places[i]] ^= 0x10;
            assert_int_equal(same_case(a, b, (Spread){0, n}, n), places[i]);
            digest_case(b, n, now);
            assert_true(was[0] != now[0] && was[1] != now[1]);
            b[places[i]] ^= 0x10;
        }
    }
    for (size_t i = 0; i < 1024; i++)
        b[i] = a[(i + 1024 - 160) % 1024]; /* rotated: read from byte 160 on */
    assert_int_equal(same_case(a, b, (Spread){160, 1024}, 1024), ~0ull);
    b[40] ^= 1;
    assert_int_equal(same_case(a, b, (Spread){160, 1024}, 1024), 40 + 1024 - 160);
    unsigned char again[1100];
    for (size_t i = 0; i < sizeof again; i++) again[i] = b[(i + 16) % 320]; /* repeated */
    assert_int_equal(same_case(again, b, (Spread){16, 320}, sizeof again), ~0ull);
    again[1097] ^= 1;
    assert_int_equal(same_case(again, b, (Spread){16, 320}, sizeof again), 1097);
    /* Equal words at other indices, and other numbers of zeros, give other digests. */
    memcpy(b, a + 8, 8), memcpy(b + 8, a, 8);
    digest_case(a, 16, was);
    digest_case(b, 16, now);
    assert_true(was[0] != now[0] && was[1] != now[1]);
    memset(b, 0, sizeof b);
    digest_case(b, 64, was);
    digest_case(b, 65, now);
    assert_true(was[0] != now[0]);
    sim_stop(&sim);
}

/* ---- timing ---- */

/* The flush zeroes all words that it reads, for sizes that are a multiple of the stride and others.
 * It does not write behind them. */
static void test_flush(void **state)
{
    (void)state;
    enum { MAX = 64 * 11 };
    static unsigned char memory[MAX * 16 + 16];
    start();
    for (int words = 1; words <= MAX; words += words < 600 ? 149 : 26) {
        for (size_t i = 0; i < sizeof memory; i++) memory[i] = (unsigned char)(i % 7 == 3 ? i : 0);
        DevicePtr p = sim_buffer(&sim, "memory", memory, sizeof memory);
        int passes = 1 + words % 2;
        sim_run(&sim, ((Shape){harness_names[HARNESS_FLUSH], {2}, {64}, 1024}), 4, A(p), A(words),
                A(256), A(passes));
        sim_read(&sim, p, memory, sizeof memory);
        for (size_t i = 0; i < sizeof memory; i++)
            assert_int_equal(memory[i],
                             i < (size_t)words * 16 || i % 7 != 3 ? 0 : (unsigned char)i);
        ops->free(sim.d, p);
    }
    sim_stop(&sim);
}

/* The wait ends at its phase, or after its number of reads. */
static void test_wait(void **state)
{
    (void)state;
    uint64_t period = 1000, phase = 10;
    uint32_t turns = 1000;
    start();
    sim_run(&sim, ((Shape){harness_names[HARNESS_WAIT], {1}, {1}, 0}), 3, A(period), A(phase),
            A(turns));
    sim_stop(&sim);
}

/* ---- drawn inputs ---- */

enum { DRAWN = TASK_STREAM + 1000 };

/* As the host draws them, bit for bit: a large tensor's first stream and a part of the next. */
static void draws_alike(const TaskTensor *x, Variant variant, unsigned special, double scale)
{
    static float want[DRAWN], got[DRAWN];
    Error err;
    Task t = {.n_inputs = 1, .inputs = (TaskTensor *)(uintptr_t)x, .special = special};
    Workload w = {.axis = {0}};
    const TaskCase c = {&t, &w, variant, 77, scale};
    TaskStreams s;
    assert_int_equal(task_draw_streams(&c, 0, DRAWN, &s), 0); /* a small tensor is one stream */
    assert_int_equal(task_draw_streams(&c, 0, TASK_LARGE + 1, &s), 1);
    if (task_draw_part(&c, 0, 0, DRAWN, want, &err)) fail_msg("%s", err.text);
    HarnessNumbers m = harness_numbers(&s);
    m.n = DRAWN;
    uint64_t numbers[HARNESS_HEAD + 8] = {0};
    memcpy(numbers, &m, sizeof m);
    memcpy(numbers + HARNESS_HEAD, s.state, 8 * sizeof *numbers);
    memset(got, 0, sizeof got);
    DevicePtr pn = sim_buffer(&sim, "numbers", numbers, sizeof numbers),
              po = sim_buffer(&sim, "out", got, sizeof got);
    const char *name = harness_names[s.by_index ? HARNESS_DRAW_BY_INDEX : HARNESS_DRAW];
    sim_run(&sim, ((Shape){name, {s.by_index ? 4 : 1}, {s.by_index ? 256 : 32}, 0}), 2, A(pn),
            A(po));
    sim_read(&sim, po, got, sizeof got);
    assert_memory_equal(got, want, sizeof got);
    ops->free(sim.d, pn), ops->free(sim.d, po);
    free(s.state);
}

static void test_drawn(void **state)
{
    (void)state;
    static char elements[] = "1048577";
    static const Draw draws[] = {DRAW_NORMAL, DRAW_MIXED, DRAW_UNIFORM, DRAW_POSITIVE};
    static const unsigned special[] = {0, SPECIAL_LARGE | SPECIAL_NAN, SPECIAL_INF,
                                       SPECIAL_LARGE | SPECIAL_INF | SPECIAL_NAN};
    TaskTensor x = {.name = "x",
                    .dtype = DTYPE_F32,
                    .rank = 1,
                    .shape = {elements},
                    .mean = 0.3,
                    .std = 1.7,
                    .low = -0.00552427,
                    .high = 0.7,
                    .distinct = -1};
    start();
    ops->prediction->announce(sim.d, 1e9);
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        x.draw = draws[i];
        draws_alike(&x, VARIANT_DRAWN, 0, i % 2 ? 1 : 0.125);
        if (x.draw == DRAW_NORMAL || x.draw == DRAW_POSITIVE)
            draws_alike(&x, VARIANT_NEEDLES, 0, 1);
    }
    x.draw = DRAW_NORMAL;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        draws_alike(&x, VARIANT_SPECIAL, special[i], 1);
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zones),    cmocka_unit_test(test_compare),
        cmocka_unit_test(test_elements), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_wait),     cmocka_unit_test(test_flush),
        cmocka_unit_test(test_drawn)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
