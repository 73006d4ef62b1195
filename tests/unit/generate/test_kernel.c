/* Which kernels are one: texts that differ in the names of parameters alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "generate/kernel.h"

/* How many of the texts are kernels of their own. */
static int count(const char *const *text, int n)
{
    Buffer source;
    buffer_init(&source, 1 << 16);
    KernelText t = {.source = &source};
    int at[8] = {0};
    for (t.number = 1; t.number <= n; t.number++) {
        at[t.number] = kernel_put_source(&t, text[t.number - 1]);
        assert_in_range(at[t.number], 1, t.number);
        assert_int_equal(at[at[t.number]], at[t.number]);
    }
    int own = t.n_seen;
    for (int i = 0; i < own; i++) free(t.seen[i].text);
    free(t.seen);
    assert_null(strstr(source.data, "@"));
    buffer_release(&source);
    return own;
}

#define KERNEL(a, b, body) \
    "extern \"C\" __global__ void kernel_@(float *" a ", const float *" b ")\n{\n" body "}\n"
#define COUNT(...) \
    count((const char *[]){__VA_ARGS__}, sizeof(const char *[]){__VA_ARGS__} / sizeof(char *))

static void test_names_of_parameters_do_not_matter(void **state)
{
    (void)state;
    assert_int_equal(COUNT(KERNEL("y", "x", "y[0] = x[1];"), KERNEL("x", "y", "x[0] = y[1];"),
                           KERNEL("out", "in", "out[0] = in[1];")),
                     1);
    assert_int_equal(COUNT(KERNEL("y", "x", "y[0] = x[1];"), KERNEL("y", "x", "x[0] = y[1];")), 2);
    assert_int_equal(COUNT(KERNEL("y", "x", "y[0] = x[1];"), KERNEL("y", "x", "y[0] = x[2];")), 2);
    assert_int_equal(COUNT("void body_@(float *a) { a[0] = 1; }\n" KERNEL("a", "n", "body_@(a);"),
                           "void body_@(float *b) { b[0] = 1; }\n" KERNEL("b", "m", "body_@(b);")),
                     1);
}

static void test_members_and_locals_keep_their_names(void **state)
{
    (void)state;
    assert_int_equal(COUNT(KERNEL("o", "x", "o[threadIdx.x] = x[0];"),
                           KERNEL("o", "y", "o[threadIdx.y] = y[0];")),
                     2);
    assert_int_equal(COUNT(KERNEL("o", "x", "int p0 = 1; o[p0] = x[0];"),
                           KERNEL("o", "x", "int p1 = 1; o[p1] = x[0];")),
                     2);
    assert_int_equal(
        COUNT(KERNEL("a", "aa", "a[0] = aa[0] + a2;"), KERNEL("b", "bb", "b[0] = bb[0] + b2;")), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_of_parameters_do_not_matter),
                                       cmocka_unit_test(test_members_and_locals_keep_their_names)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
