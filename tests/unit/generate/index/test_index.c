/* Sums over loop axes: where a division parts the terms, and where it becomes a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "generate/index/index.h"

/* Three axes of sizes that each binding has. */
static Axes axes = {3, {{{4, 7, 11, 13}}, {{6, 5, 9, 2}}, {{32, 20, 17, 31}}}, {"i0", "i1", "i2"}};

static const char *size_name(void *of, Size s, Error *err)
{
    static char text[8][24];
    static int next;
    (void)of, (void)err;
    char *to = text[next++ % 8];
    snprintf(to, sizeof text[0], "n%lld", (long long)s.at[0]);
    return to;
}

static const IndexScope scope = {&axes, NULL, size_name};

/* i0 * (n1 * n2) + i1 * n2 + i2 */
static Index in_order(void)
{
    Index a = index_axis(0, size_times(axes.size[1], axes.size[2])),
          b = index_axis(1, axes.size[2]), c = index_axis(2, size_number(1));
    Error err;
    assert_int_equal(index_add(&a, &b, &err), 0);
    assert_int_equal(index_add(&a, &c, &err), 0);
    return a;
}

static void test_terms_part_at_the_divisor(void **state)
{
    (void)state;
    Index a = in_order(), over, rest, expected = index_axis(0, axes.size[1]),
          one = index_axis(1, size_number(1)), last = index_axis(2, size_number(1));
    Error err;
    assert_int_equal(index_divide(&scope, &a, axes.size[2], &over, &rest, &err), 0);
    assert_int_equal(index_add(&expected, &one, &err), 0);
    assert_true(index_same(&over, &expected));
    assert_true(index_same(&rest, &last));
}

static void test_a_constant_is_parted_too(void **state)
{
    (void)state;
    Index a = index_axis(0, axes.size[2]), over, rest;
    Error err;
    a.plus = size_plus(size_times(axes.size[2], size_number(3)), size_number(2));
    assert_int_equal(index_divide(&scope, &a, axes.size[2], &over, &rest, &err), 0);
    assert_true(size_is(over.plus, 3) && size_is(rest.plus, 2));
    assert_true(size_is(over.by[0], 1) && size_is(rest.by[0], 0));
}

static void test_other_divisions_are_texts(void **state)
{
    (void)state;
    Index a = in_order(), over, rest;
    Error err;
    assert_int_equal(index_divide(&scope, &a, size_number(5), &over, &rest, &err), 0);
    assert_string_equal(over.text, "(i0 * n192 + i1 * n32 + i2) / n5");
    assert_string_equal(rest.text, "(i0 * n192 + i1 * n32 + i2) % n5");
    assert_int_equal(index_axes(&over), 7);
    assert_int_equal(index_scale(&scope, &over, axes.size[2], &err), 0);
    assert_string_equal(over.text, "((i0 * n192 + i1 * n32 + i2) / n5) * n32");
}

/* Of i0 * n192 + i1 * n32 + i2 / 5, with i2 below 32, the quotient by 32 has no text. */
static void test_terms_that_part_stay_outside_of_a_text(void **state)
{
    (void)state;
    Index a = in_order(), fifth = index_axis(2, size_number(1)), over, rest;
    Error err;
    a.by[2] = size_number(0);
    assert_int_equal(index_divide(&scope, &fifth, size_number(5), &fifth, NULL, &err), 0);
    assert_int_equal(index_add(&a, &fifth, &err), 0);
    assert_int_equal(index_divide(&scope, &a, axes.size[2], &over, &rest, &err), 0);
    assert_string_equal(over.text, "");
    assert_string_equal(rest.text, "(i2) / n5");
}

static void test_a_text_that_is_too_long_is_refused(void **state)
{
    (void)state;
    Index a = in_order();
    Error err;
    int rc = 0;
    for (int i = 0; i < 200 && !rc; i++) {
        Index over;
        rc = index_divide(&scope, &a, size_number(5), &over, NULL, &err) ||
                     index_scale(&scope, &over, size_number(5), &err)
                 ? -1
                 : 0;
        a = over;
    }
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms_part_at_the_divisor),
        cmocka_unit_test(test_a_constant_is_parted_too),
        cmocka_unit_test(test_other_divisions_are_texts),
        cmocka_unit_test(test_terms_that_part_stay_outside_of_a_text),
        cmocka_unit_test(test_a_text_that_is_too_long_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
