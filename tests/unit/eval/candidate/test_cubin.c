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

/* Makes an instruction wait for the scoreboard that the one before it sets. */
static void await(unsigned char *inst)
{
    const unsigned sets = (unsigned)(inst[-3] | inst[-2] << 8) >> 6 & 7;
    assert_true(sets < 6);
    inst[14] |= (unsigned char)(1U << sets << 4);
    inst[15] |= (unsigned char)(1U << sets >> 4);
}

/* Of the first 40 loads none waits for another; when the third waits for the second, it and those behind it
 * have the next turn. */
static void test_turns(void **state)
{
    (void)state;
    Buffer b;
    Cubin c;
    Error err;
    load("sm_90.cubin", &b);
    assert_int_equal(cubin_parse(b.data, b.len, &c, &err), 0);
    const CubinKernel *k = cubin_find(&c, "_Z14with_registersILi40EEvPKfPf");
    assert_int_equal(k->n_loads, 42);
    for (int i = 0; i < 40; i++) assert_int_equal(k->loads[i].turn, 0);
    assert_int_equal(k->loads[0].piece, k->loads[39].piece);
    assert_non_null(k->lines);
    const uint32_t third = k->loads[2].inst;
    assert_int_equal(third, k->loads[1].inst + 1);
    cubin_release(&c);
    unsigned char first[4] = {0x81, 0x79, 0x25, 0x20}, *p = NULL; /* LDG.E R37, [R32] */
    for (size_t i = 0; i + 3 * 16 < b.len && !p; i++)
        if (!memcmp(b.data + i, first, sizeof first)) p = (unsigned char *)b.data + i;
    assert_non_null(p);
    await(p + 2 * 16L);
    assert_int_equal(cubin_parse(b.data, b.len, &c, &err), 0);
    k = cubin_find(&c, "_Z14with_registersILi40EEvPKfPf");
    for (int i = 0; i < 40; i++) assert_int_equal(k->loads[i].turn, i >= 2);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_damaged)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
