/* The resources read from cubins are those that the assembler prints with -v. A damaged cubin is
 * refused or read within its bytes (the address sanitizer checks this). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/candidate/cubin.h"
#include "tests/fixture_path.h"

static void load(const char *name, Buffer *b)
{
    Error err;
    buffer_init(b, 1 << 20);
    char *path = memory_printf("%s/%s", fixture_path("tests/fixtures/cubin"), name);
    if (file_read(path, 1 << 20, b, &err)) fail_msg("%s", err.text);
    free(path);
}

static void expect(const Cubin *c, const char *name, int registers, uint32_t shared, uint32_t local)
{
    const CubinKernel *k = cubin_find(c, name);
    assert_non_null(k);
    assert_int_equal(k->registers, registers);
    assert_int_equal(k->static_shared, shared);
    assert_int_equal(k->local_bytes, local);
}

static void test_values(void **state)
{
    (void)state;
    Buffer b;
    Cubin c;
    Error err;
    load("sm_80.cubin", &b);
    assert_int_equal(cubin_parse(b.data, b.len, &c, &err), 0);
    assert_int_equal(c.sm, 80);
    assert_int_equal(c.n, 4);
    expect(&c, "plain", 10, 0, 0);
    expect(&c, "with_shared", 12, 1200, 0);
    expect(&c, "with_local", 30, 0, 256);
    expect(&c, "_Z14with_registersILi40EEvPKfPf", 56, 0, 0);
    assert_null(cubin_find(&c, "with"));
    cubin_release(&c);
    buffer_release(&b);
    load("sm_90.cubin", &b); /* this file reserves 1 KiB of shared memory for the system */
    assert_int_equal(cubin_parse(b.data, b.len, &c, &err), 0);
    assert_int_equal(c.sm, 90);
    expect(&c, "plain", 10, 0, 0);
    expect(&c, "with_shared", 14, 1200, 0);
    expect(&c, "with_local", 31, 0, 256);
    const CubinKernel *k = cubin_find(&c, "with_local");
    assert_true(k->n_locals > 0 && k->locals[k->n_locals - 1].inst < k->n_insts);
    assert_non_null(k->lines);
    expect(&c, "_Z14with_registersILi40EEvPKfPf", 56, 0, 0);
    cubin_release(&c);
    buffer_release(&b);
}

static void test_refused(void **state)
{
    (void)state;
    Buffer b;
    Cubin c;
    Error err;
    assert_int_equal(cubin_parse("\177ELF", 4, &c, &err), -1);
    assert_non_null(strstr(err.text, "ELF header"));
    load("sm_90.cubin", &b);
    b.data[18] = 62; /* x86-64 */
    assert_int_equal(cubin_parse(b.data, b.len, &c, &err), -1);
    assert_non_null(strstr(err.text, "machine"));
    b.data[18] = (char)190;
    memset(b.data + 40, 0xff, 8); /* section headers outside the file */
    assert_int_equal(cubin_parse(b.data, b.len, &c, &err), -1);
    buffer_release(&b);
}

/* Every prefix, and a thousand files with damaged bytes, each in memory of exactly its size. */
static void test_damaged(void **state)
{
    (void)state;
    Buffer b;
    Cubin c;
    Error err;
    Random r;
    load("sm_90.cubin", &b);
    for (size_t len = 0; len < b.len; len += 97) {
        char *cut = memory_alloc(len);
        memcpy(cut, b.data, len);
        assert_int_equal(cubin_parse(cut, len, &c, &err),
                         -1); /* the section headers are near the end */
        free(cut);
        if (len > 13000) break;
    }
    random_init(&r, 1, 2);
    int refused = 0;
    for (int i = 0; i < 1000; i++) {
        char *copy = memory_alloc(b.len);
        memcpy(copy, b.data, b.len);
        for (int j = 0; j < 8; j++)
            copy[random_below(&r, j < 4 ? 64 : b.len)] = (char)random_u64(&r);
        if (cubin_parse(copy, b.len, &c, &err))
            refused++;
        else
            cubin_release(&c);
        free(copy);
    }
    assert_true(refused > 100);
    buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_damaged)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
