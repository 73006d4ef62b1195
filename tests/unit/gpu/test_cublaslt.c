/* gpu/cublaslt.c over tests/fixtures/cuda/cublaslt.c, which computes what cuBLASLt's documentation
 * says: the row-major mapping with all transposes, leading dimensions and outputs; true alignments;
 * one query per shape, which skips an algorithm that does not run; k that is not split where the
 * order of sums matters; and the error when no algorithm runs. On a GPU test_products_cuda does
 * this with the real library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "gpu/cublaslt.h"
#include "tests/unit/gpu/fixtures.h"

static Cublaslt *lt;

static uint16_t narrow(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static float widen(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* n numbers, bf16 or float, `shift` bytes after an address that is aligned to 256. */
static void *numbers(Random *r, size_t n, int wide, size_t shift)
{
    char *base = aligned_alloc(256, (n * 4 + shift + 511) / 256 * 256);
    void *p = base + shift;
    for (size_t i = 0; i < n; i++) {
        float f = (float)random_normal(r);
        if (wide)
            memcpy((char *)p + 4 * i, &f, 4);
        else
            ((uint16_t *)p)[i] = narrow(f);
    }
    return p;
}

static void drop(void *p, size_t shift)
{
    free((char *)p - shift);
}

static float number(const void *p, int wide, size_t i)
{
    return wide ? ((const float *)p)[i] : widen(((const uint16_t *)p)[i]);
}

typedef struct {
    int m, n, k, ta, tb, pad, wide;
    float alpha, beta;
    int apart; /* c is not d */
    size_t shift;
} Case;

static void one(Case x)
{
    const int m = x.m, n = x.n, k = x.k, ta = x.ta, tb = x.tb, pad = x.pad, wide = x.wide;
    const size_t shift = x.shift;
    const float alpha = x.alpha, beta = x.beta;
    Random r;
    Error err;
    int lda = (ta ? m : k) + pad, ldb = (tb ? k : n) + pad, ldd = n + pad;
    random_init(&r, (uint64_t)(m * 10007 + n * 101 + k), 0);
    size_t nd = (size_t)ldd * (size_t)m, unit = wide ? 4 : 2;
    void *a = numbers(&r, (size_t)lda * (size_t)(ta ? k : m), 0, shift),
         *b = numbers(&r, (size_t)ldb * (size_t)(tb ? n : k), 0, shift);
    void *d = numbers(&r, nd, wide, 2 * shift), *c = numbers(&r, nd, wide, 2 * shift);
    void *before = malloc(nd * unit);
    memcpy(before, d, nd * unit);
    CublasltProduct p = {ta, tb,  m,   n, k, a, b, lda, ldb, alpha, beta, x.apart ? c : d,
                         d,  ldd, wide};
    if (cublaslt_product(lt, &p, NULL, NULL, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < ldd; j++) {
            size_t at = (size_t)i * (size_t)ldd + (size_t)j;
            double want = 0;
            for (int l = 0; l < k && j < n; l++)
                want += (double)number(a, 0, (size_t)(ta ? l * lda + i : i * lda + l)) *
                        (double)number(b, 0, (size_t)(tb ? j * ldb + l : l * ldb + j));
            want = (double)alpha * want +
                   (beta != 0 ? (double)beta * (double)number(x.apart ? c : before, wide, at) : 0);
            if (j >= n) want = (double)number(before, wide, at);
            double got = (double)number(d, wide, at), limit = j >= n ? 0
                                                              : wide ? 1e-4
                                                                     : 0.01 * (1 + fabs(want));
            if (!(fabs(got - want) <= limit))
                fail_msg("%d x %d x %d, ta %d, tb %d: [%d][%d] is %g, expected %g", m, n, k, ta, tb,
                         i, j, got, want);
        }
    drop(a, shift), drop(b, shift), drop(d, 2 * shift), drop(c, 2 * shift);
    free(before);
}

static void test_mapping(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int wide = 0; wide < 2; wide++) {
            one((Case){5, 7, 3, t & 1, t >> 1, 0, wide, 1, 0, 0, 0});
            one((Case){8, 16, 24, t & 1, t >> 1, 0, wide, 1, 1, 0, 0});
            one((Case){6, 9, 4, t & 1, t >> 1, 3, wide, 0.5f, 2, 1, 2});
            one((Case){1, 33, 17, t & 1, t >> 1, 8, wide, 1, wide, 0, 16});
        }
    one((Case){9, 12, 5, 0, 1, 0, 0, 2, 0.5f, 1, 0});
}

static size_t calls(char letter)
{
    Buffer b;
    size_t n = 0;
    buffer_init(&b, 1 << 20);
    if (!file_read("calls", 1 << 20, &b, NULL))
        for (size_t i = 0; i < b.len; i++) n += b.data[i] == letter;
    buffer_release(&b);
    return n;
}

static void test_once_a_shape(void **state)
{
    (void)state;
    unlink("calls");
    for (int i = 0; i < 5; i++) one((Case){11, 16, 24, 0, 1, 0, 0, 1, 0, 0, 0});
    assert_int_equal(calls('h'), 1);
    assert_int_equal(calls('x'), 1); /* the algorithm that does not run is tried once */
    assert_int_equal(calls('s'), 5);
    one((Case){11, 16, 24, 0, 1, 0, 0, 1, 0, 0, 2}); /* other alignments are another shape */
    assert_int_equal(calls('h'), 2);
    for (int m = 1; m <= 1100; m++)
        one((Case){m % 550 + 1, 1, m > 550 ? 1 : 2, 0, 1, 0, 0, 1, 0, 0,
                   0}); /* more shapes than the table holds */
    one((Case){11, 16, 24, 0, 1, 0, 0, 1, 0, 0, 0});
    assert_int_equal(calls('s'), 5 + 1 + 1100 + 1);
}

/* An algorithm that splits k is used only for unordered products, and so is a kernel without a
 * tile. */
static void test_ordered(void **state)
{
    (void)state;
    Error err;
    _Alignas(256) uint16_t x[256] = {0}, d[256];
    CublasltProduct p = {.m = 4,
                         .n = 8,
                         .k = 16,
                         .a = x,
                         .b = x,
                         .lda = 16,
                         .ldb = 8,
                         .alpha = 1,
                         .d = d,
                         .ldd = 8,
                         .ordered = 1};
    unlink("calls");
    for (int i = 0; i < 3; i++)
        if (cublaslt_product(lt, &p, NULL, NULL, &err)) fail_msg("%s", err.text);
    assert_int_equal(calls('h'), 1);
    assert_int_equal(calls('w'), 3);
    assert_int_equal(calls('s') + calls('f'), 0);
    p.ordered = 0;
    if (cublaslt_product(lt, &p, NULL, NULL, &err)) fail_msg("%s", err.text);
    assert_int_equal(calls('h'), 2);
    assert_int_equal(calls('s'), 1);
    p.ordered = 1;
    p.m = 3; /* a shape without an ordered algorithm */
    setenv("TEST_LT_TILELESS", "1", 1);
    if (cublaslt_product(lt, &p, NULL, NULL, &err)) fail_msg("%s", err.text);
    unsetenv("TEST_LT_TILELESS");
    assert_int_equal(calls('h'), 4);
    assert_int_equal(calls('s'), 2);
}

static void fails(const CublasltProduct *p, const char *want)
{
    Error err = {0};
    assert_int_equal(cublaslt_product(lt, p, NULL, NULL, &err), -1);
    if (!strstr(err.text, want)) fail_msg("expected '%s' in: %s", want, err.text);
}

static void test_failures(void **state)
{
    (void)state;
    Error err;
    _Alignas(256) uint16_t x[256] = {0};
    CublasltProduct p = {
        .m = 0, .n = 3, .k = 4, .a = x, .b = x, .lda = 4, .ldb = 3, .alpha = 1, .d = x, .ldd = 3};
    assert_int_equal(cublaslt_product(lt, &p, NULL, NULL, &err), 0); /* nothing to do */
    p.m = 2;
    p.lda = 3;
    fails(&p, "2 x 3 x 4");
    p.lda = 4;
    setenv("TEST_LT_NONE", "1", 1);
    fails(&p, "cuBLASLt has no algorithm");
    unsetenv("TEST_LT_NONE");
    assert_int_equal(cublaslt_product(lt, &p, NULL, NULL, &err), 0); /* a failure is not kept */
}

static int start(void **state)
{
    (void)state;
    Error err;
    char here[2000];
    if (!getcwd(here, sizeof here)) return -1;
    char *dir = memory_printf("%s/toolkit/lib64", here), *home = memory_printf("%s/toolkit", here);
    setenv("CUDA_HOME", home, 1);
    setenv("TEST_LT_CALLS", "calls", 1);
    int rc = fixture_build("cublaslt.c", dir, "libcublasLt.so.13");
    free(dir);
    free(home);
    if (!rc && cublaslt_open(&lt, &err)) {
        printf("# %s\n", err.text);
        rc = -1;
    }
    return rc;
}

static int stop(void **state)
{
    (void)state;
    cublaslt_close(lt);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapping),
        cmocka_unit_test(test_once_a_shape),
        cmocka_unit_test(test_ordered),
        cmocka_unit_test(test_failures),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, start, stop);
}
