/* A set of bytes beside one flag for each byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "eval/sim/machine/ranges.h"

enum { BYTES = 1 << 16 };

static const uint64_t base = 0x7000000000ull;

static void expect_flags(Ranges *r, const unsigned char *has)
{
    uint64_t at = 0;
    ranges_join(r);
    for (int64_t i = 0; i < r->n; i++) {
        for (; at < r->of[i].lo - base; at++) assert_int_equal(has[at], 0);
        for (; at < r->of[i].hi - base; at++) assert_int_equal(has[at], 1);
        if (i) assert_true(r->of[i].lo > r->of[i - 1].hi);
    }
    for (; at < BYTES; at++) assert_int_equal(has[at], 0);
}

/* Of few ranges, which are compared, and of many, which are sorted by their digits. */
static void test_ranges_in_any_order(void **state)
{
    static unsigned char has[BYTES];
    static const int counts[] = {1, 20, 255, 256, 3000, 7000};
    Random random;
    (void)state;
    random_init(&random, 1, 1);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        Ranges r = {0};
        memset(has, 0, sizeof has);
        for (int i = 0; i < counts[k]; i++) {
            uint64_t lo = random_u64(&random) % (BYTES - 16), n = 1 + random_u64(&random) % 16;
            ranges_add(&r, base + lo, base + lo + n);
            memset(has + lo, 1, n);
        }
        expect_flags(&r, has);
        ranges_release(&r);
    }
}

/* Places that differ in their highest digits. */
static void test_ranges_far_apart(void **state)
{
    Ranges r = {0};
    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t lo = (i * 7919 % 400) << 50 | 64;
        ranges_add(&r, lo, lo + 4);
    }
    ranges_join(&r);
    assert_int_equal(r.n, 400);
    for (uint64_t i = 0; i < 400; i++) assert_true(r.of[i].lo == (i << 50 | 64));
    ranges_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_in_any_order),
        cmocka_unit_test(test_ranges_far_apart),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
