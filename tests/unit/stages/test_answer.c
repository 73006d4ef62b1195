/* The format of an answer: the code of a written answer is found again, and a truncated answer has
 * no code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stages/data/answer.h"

static void round_trip(void **state)
{
    (void)state;
    Buffer b;
    size_t n;
    buffer_init(&b, 1 << 16);
    answer_write(&b, "fast", "tiles", "//@ launch k<<<1, 32>>>(x)\nvoid k() {}");
    const char *code = answer_code(b.data, b.len, &n);
    assert_non_null(code);
    assert_int_equal(n, strlen("//@ launch k<<<1, 32>>>(x)\nvoid k() {}\n"));
    assert_memory_equal(code, "//@ launch", 10);
    buffer_release(&b);
}

static void check(const char *text, const char *expected)
{
    size_t n;
    const char *code = answer_code(text, strlen(text), &n);
    if (!expected) {
        assert_null(code);
        assert_int_equal(n, 0);
        return;
    }
    assert_non_null(code);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(code, expected, n);
}

static void odd_answers(void **state)
{
    (void)state;
    check("", NULL);
    check("no code at all", NULL);
    check("## Code Implementation\n```cuda\nint x;\n", NULL);
    check("```cuda\nint x;\n```", "int x;\n");
    check("```\na\n```\n## Code Implementation\n```cuda\nb\n```\n", "b\n");
    check("## Code Implementation\n```cuda\na\n```\ntext\n```cuda\nb\n```\n", "b\n");
    check("## Code Implementation\nnone\n", NULL);
    check("```cuda\nearly\n```\n## Code\nforgot the fence", "early\n");
    check("```", NULL);
    check("```\n```", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(odd_answers)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
