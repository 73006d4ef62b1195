/* Fourier transforms along the last dimension: direct sums, single elements beside whole rows, refusals, and
 * which kernels a length has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ops/op_element.h"
#include "ops/row/op_fft.h"
#include "tests/unit/ops/op_fixture.h"

static void open_case(FixtureCase *f, const char *name, const char *args)
{
    char text[300];
    snprintf(text, sizeof text, "{\"args\":[%s]}", args);
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    fixture_open(f, name, j);
    json_decref(j);
}

/* The sum of a row's n pairs times powers of a root of unity. */
static void direct(const double *x, int64_t n, int64_t k, int sign, double out[2])
{
    out[0] = out[1] = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = 2 * M_PI * (double)(i * k % n) / (double)n, c = cos(a), s = sign * sin(a);
        out[0] += x[2 * i] * c - x[2 * i + 1] * s;
        out[1] += x[2 * i] * s + x[2 * i + 1] * c;
    }
}

static void pairs_of_length(int64_t n, int forward)
{
    FixtureCase f;
    char args[160];
    snprintf(args, sizeof args, "{\"shape\":[2,%lld,2],\"seed\":3},0,%s", (long long)n,
             forward ? "true" : "false");
    open_case(&f, "aten._fft_c2c.pairs", args);
    for (int64_t r = 0; r < 2; r++)
        for (int64_t k = 0; k<n; k += n> 64 ? n / 16 : 1) {
            double want[2];
            const double *got = f.out[0] + (r * n + k) * 2;
            direct(f.in[0] + r * n * 2, n, k, forward ? -1 : 1, want);
            if (fabs(got[0] - want[0]) + fabs(got[1] - want[1]) > 1e-13 * (double)n)
                fail_msg("length %lld, element %lld: %g, %g; expected %g, %g", (long long)n,
                         (long long)k, got[0], got[1], want[0], want[1]);
        }
    fixture_close(&f);
}

static void sums(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 40; n++) pairs_of_length(n, n % 2);
    pairs_of_length(1009, 1);
    pairs_of_length(3000, 0);
    pairs_of_length(4096, 1);
}

/* A real row forth and back; the imaginary part of the first pair says nothing. */
static void halves(void **state)
{
    (void)state;
    static const double pairs[] = {3, 9, 1, -2};
    FixtureCase f;
    open_case(&f, "aten._fft_c2r.pairs", "{\"shape\":[2,2],\"seed\":1},2,3");
    memcpy(f.in[0], pairs, sizeof pairs);
    Error err;
    assert_int_equal(f.call.op->reference(&f.call, (const double *const *)f.in, f.out, &err), 0);
    const double want[] = {5. / 3, (2 + 2 * sqrt(3)) / 3, (2 - 2 * sqrt(3)) / 3};
    for (int i = 0; i < 3; i++) assert_true(fabs(f.out[0][i] - want[i]) < 1e-15 * 8);
    fixture_close(&f);
}

static void add_needed(void *of, int tensor, int64_t first, int64_t step, int64_t n)
{
    int64_t *seen = of;
    assert_int_equal(tensor, 0);
    assert_int_equal(step, 1);
    seen[0]++;
    seen[1] = first;
    seen[2] = n;
}

static void single_elements(void **state)
{
    (void)state;
    FixtureCase f;
    const int64_t at[] = {14, 17, 22}; /* rows of 14 numbers */
    int64_t seen[3] = {0};
    double y[3];
    open_case(&f, "aten._fft_r2c.pairs", "{\"shape\":[3,12],\"seed\":5},1,true");
    const OpElements *e = f.call.op->elements;
    const OpSome some = {0, 3, at};
    const OpNeeds needs = {seen, add_needed, NULL, NULL};
    e->needs(&f.call, &some, &needs);
    assert_true(seen[0] == 1 && seen[1] == 12 && seen[2] == 12);
    e->compute(&f.call, (const double *const *)f.in, &some, y);
    for (int i = 0; i < 3; i++) assert_true(y[i] == f.out[0][at[i]]);
    int64_t rows[2];
    e->rows(&f.call, 0, (const int64_t[]){13, 14}, 2, rows);
    assert_true(rows[0] == 0 && rows[1] == 1);
    fixture_close(&f);
}

/* Running sums of floats err as these do, and are in some elements alone where all take too long. */
static void running_sums(void **state)
{
    (void)state;
    static const int64_t products[] = {1 << 20, 3 * 512};
    for (int i = 0; i < 2; i++) {
        FixtureCase f;
        int changed = 0;
        double largest = 0, right[2 * 257];
        open_case(&f, "aten._fft_r2c.pairs", "{\"shape\":[512],\"seed\":5},1,true");
        memcpy(right, f.out[0], sizeof right);
        fft_direct(&f.call, f.in[0], f.out[0], products[i]);
        for (int k = 0; k < 2 * 257; k++) {
            changed += f.out[0][k] != right[k];
            largest = fmax(largest, fabs(f.out[0][k] - right[k]));
        }
        assert_true(largest > 1e-8 && largest < 1e-5);
        assert_true(i ? changed > 0 && changed <= 10 : changed > 500);
        fixture_close(&f);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *name, *args, *error;
    } calls[] = {
        {"_fft_c2c", "{\"shape\":[4,3],\"seed\":1},0,true", "expected a tensor of pairs"},
        {"_fft_c2r", "{\"shape\":[4,2],\"seed\":1},0,8", "a length of 8 has 5 pairs, found 4"},
        {"_fft_r2c", "{\"shape\":[4],\"seed\":1},3,true", "a normalization of 0, 1 or 2, found 3"},
        {"_fft_r2c", "{\"shape\":[4],\"seed\":1,\"dtype\":\"int64\"},0,true",
         "expected a floating-point type, found int64"},
        {"_fft_r2c", "{\"shape\":[4,0],\"seed\":1},0,true", "a length of 0"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char text[200], name[40];
        FixtureCase f;
        Error err;
        snprintf(text, sizeof text, "{\"args\":[%s]}", calls[i].args);
        snprintf(name, sizeof name, "aten.%s.pairs", calls[i].name);
        json_t *j = json_loads(text, 0, NULL);
        fixture_bind(&f, name, j);
        assert_int_not_equal(op_infer(&f.call, &err), 0);
        if (!strstr(err.text, calls[i].error)) fail_msg("%s: %s", calls[i].args, err.text);
        fixture_close(&f);
        json_decref(j);
    }
}

/* A row that fits lies in the shared memory of one launch; of a longer one each stage is a launch. */
static void launches(void **state)
{
    (void)state;
    static const struct {
        const char *args;
        int n, block[2];
        int64_t blocks;
    } cases[] = {
        {"{\"shape\":[40,64],\"seed\":1,\"dtype\":\"float32\"},0,true", 1, {64, 4}, 10},
        {"{\"shape\":[5,2048],\"seed\":1,\"dtype\":\"float32\"},0,true", 1, {256, 1}, 5},
        {"{\"shape\":[2,4096],\"seed\":1,\"dtype\":\"float32\"},0,true", 9, {128, 1}, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FixtureCase f;
        Buffer source;
        OpPlain plain = {.source = &source};
        Error err;
        buffer_init(&source, 1 << 16);
        open_case(&f, "aten._fft_r2c.pairs", cases[i].args);
        assert_int_equal(op_plain(&f.call, &plain, &err), 0);
        const OpLaunch *l = &plain.launch[0];
        assert_int_equal(plain.n, cases[i].n);
        if (l->block[0] != cases[i].block[0] || l->block[1] != cases[i].block[1] ||
            l->grid[0] != cases[i].blocks)
            fail_msg("%s: %lld blocks of %d x %d", cases[i].args, (long long)l->grid[0],
                     l->block[0], l->block[1]);
        free(plain.launch);
        buffer_release(&source);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums),
                                       cmocka_unit_test(halves),
                                       cmocka_unit_test(single_elements),
                                       cmocka_unit_test(running_sums),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(launches)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("fft", tests, NULL, NULL);
}
