/* The shares of a GPU's memory: together they fit, and the bound of local memory is known for some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eval/device/memory_shares.h"

static void test_fit(void **state)
{
    (void)state;
    static const uint64_t threads[] = {1024, 40 << 10, 132 << 11};
    MemoryShares s;
    for (uint64_t bytes = 0; bytes < (uint64_t)1 << 40; bytes += bytes / 3 + 1000)
        for (int i = 0; i < 3; i++) {
            memory_shares(bytes, threads[i], &s);
            uint64_t local = s.local * threads[i];
            assert_true(s.buffers <= bytes / 2 && s.contents <= s.buffers);
            /* As much as the local memory stays for what has no share. */
            assert_true(s.buffers + s.contents + 2 * local <= bytes);
            assert_true(s.local <= 512 << 10);
        }
}

static void test_shares_of_known_devices(void **state)
{
    (void)state;
    MemoryShares s;
    memory_shares((uint64_t)80 << 30, 132 * 2048, &s);
    assert_int_equal(s.contents, (uint64_t)24 << 30);
    assert_int_equal(s.local, 47662); /* (80 - 32 - 24) / 2 GiB */
    memory_shares((uint64_t)16 << 30, 40 * 1024, &s);
    assert_int_equal(s.contents, s.buffers);
    assert_int_equal(s.local, 41943); /* a tenth of 16 GiB */
    memory_shares((uint64_t)80 << 30, 1024, &s);
    assert_int_equal(s.local, 512 << 10);
    memory_shares(0, 0, &s);
    assert_int_equal(s.local, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fit),
                                       cmocka_unit_test(test_shares_of_known_devices)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
