/* Words of program text: at both kinds of end, and beside other characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/words.h"

static void test_length(void **state)
{
    (void)state;
    static const char text[] = "ab_9-9x";
    assert_int_equal(word_length(text, NULL), 4);
    assert_int_equal(word_length(text, text + 2), 2);
    assert_int_equal(word_length(text, text), 0);
    assert_int_equal(word_length(text + 4, NULL), 0);
    assert_int_equal(word_length("\xe4", NULL), 0);
    assert_int_equal(word_length(text + 5, NULL), 2);
    assert_int_equal(word_name_length(text + 5, NULL), 0);
    assert_int_equal(word_name_length(text, text + 3), 3);
    assert_int_equal(word_step(text + 4, NULL), 1);
    assert_int_equal(word_step(text + 5, NULL), 2);
}

static void test_next_word(void **state)
{
    (void)state;
    static const char text[] = " a, b1;\0 c";
    size_t n;
    const char *p = word_next(text, NULL, &n);
    assert_ptr_equal(p, text + 1);
    assert_int_equal(n, 1);
    p = word_next(p + n, NULL, &n);
    assert_ptr_equal(p, text + 4);
    assert_int_equal(n, 2);
    assert_null(word_next(text + 6, NULL, &n));
    assert_ptr_equal(word_next(text + 6, text + sizeof text, &n), text + 9);
    assert_null(word_next(text, text + 1, &n));
}

static void test_whole_words(void **state)
{
    (void)state;
    assert_true(word_is_name("_a1", 4));
    assert_false(word_is_name("_a1", 3));
    assert_false(word_is_name("1a", 9));
    assert_false(word_is_name("a b", 9));
    assert_false(word_is_name("", 9));
    assert_true(word_in("ceil_div(rows, 4)", "rows"));
    assert_false(word_in("2 * rows_in + my_rows", "rows"));
    assert_true(word_is("rows", 3, "row"));
    assert_false(word_is("rows", 4, "row"));
}

static void choices(void **state)
{
    (void)state;
    static const char *const words[] = {"none", "token", "token-mask"};
    size_t n;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(word_choice("none|token|token-mask", words[i]), i);
        const char *at = word_chosen("none|token|token-mask", i, &n);
        assert_true(word_is(at, n, words[i]));
    }
    assert_int_equal(word_choice("none|token", "tok"), -1);
    assert_int_equal(word_choice("none|token", "none|token"), -1);
    assert_int_equal(word_choice("none|token", ""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(choices), cmocka_unit_test(test_length),
                                       cmocka_unit_test(test_next_word),
                                       cmocka_unit_test(test_whole_words)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
