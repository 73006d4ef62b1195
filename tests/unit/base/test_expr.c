/* Integer expressions: C's values, and errors that name the column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/expr.h"

static int lookup(void *ctx, const char *name, size_t len, int64_t *value)
{
    (void)ctx;
    if (len == 1 && *name == 'n') return (int)(*value = 1000) * 0;
    if (len == 4 && !memcmp(name, "rows", 4)) return (int)(*value = 7) * 0;
    return -1;
}

static int64_t value_of(const char *text)
{
    int64_t v = -12345;
    Error err;
    if (expr_eval(text, strlen(text), lookup, NULL, &v, &err)) fail_msg("%s", err.text);
    return v;
}

static void error_of(const char *text, const char *part)
{
    int64_t v;
    Error err;
    assert_int_equal(expr_eval(text, strlen(text), lookup, NULL, &v, &err), -1);
    if (!strstr(err.text, part)) fail_msg("\"%s\" does not say \"%s\"", err.text, part);
}

static void values(void **state)
{
    (void)state;
    assert_int_equal(value_of("1 + 2 * 3"), 7);
    assert_int_equal(value_of("(1 + 2) * 3 - -4"), 13);
    assert_int_equal(value_of("ceil_div(n, 256)"), 4);
    assert_int_equal(value_of("min(n, rows) + max(1, 2) + log2(1024)"), 19);
    assert_int_equal(value_of("n % 7 == 6 && rows < n ? 1 << 4 : 0x10 / 0"), 16);
    assert_int_equal(value_of("0 && 1 / 0"), 0);
    assert_int_equal(value_of("1 || unknown"), 1);
    assert_int_equal(value_of("~0 & 0xff ^ 1 | 256"), 0x1fe);
    assert_int_equal(value_of("!n + !0"), 1);
    assert_int_equal(value_of("3 >= 3 && 2 <= 1 || 5 != 5"), 0);
    assert_int_equal(value_of("-7 / 2"), -3);
    assert_int_equal(value_of(" 9223372036854775807 "), INT64_MAX);
}

static void errors(void **state)
{
    (void)state;
    error_of("", "found the end");
    error_of("1 +", "found the end");
    error_of("cols", "unknown name 'cols'");
    error_of("n / (rows - 7)", "division by zero");
    error_of("9223372036854775807 + 1", "overflow");
    error_of("99999999999999999999", "integer literal");
    error_of("1 << 63", "shift count");
    error_of("n n", "expected the end");
    error_of("ceil_div(n)", "two arguments");
    error_of("ceil_div(n, 0)", "b > 0");
    error_of("pow(2, 3)", "unknown function");
    error_of("(1", "expected ')'");
    error_of("1 ? 2", "expected ':'");
    error_of("2 $ 3", "column 3");
    char deep[300];
    memset(deep, '(', 200);
    strcpy(deep + 200, "1");
    error_of(deep, "nested too deeply");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(errors)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("expr", tests, NULL, NULL);
}
