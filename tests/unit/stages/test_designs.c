/* Designs that a teacher does not draw: the file, and a task's list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tasks/designs.h"

static void put(const char *text)
{
    Error err;
    if (file_write_atomic("designs", text, strlen(text), &err)) fail_msg("%s", err.text);
}

static int has(const char *list, const char *family, const char *name, const char *value)
{
    return designs_has(list, family, name, value, strlen(value));
}

static void a_list_of_a_task(void **state)
{
    (void)state;
    Designs d;
    Error err;
    put("gelu vector=4 way=registers\n\n  relu\tmatmul/launches=1 vector=8\n");
    assert_int_equal(designs_read("designs", &d, NULL, &err), 0);
    assert_int_equal(d.n, 2);
    assert_null(designs_of(&d, "softmax"));
    assert_null(designs_of(NULL, "gelu"));
    const char *gelu = designs_of(&d, "gelu"), *relu = designs_of(&d, "relu");
    assert_true(has(gelu, "any", "vector", "4") && has(gelu, "any", "way", "registers"));
    assert_false(has(gelu, "any", "vector", "40") || has(gelu, "any", "vector", "8"));
    assert_true(has(relu, "matmul", "launches", "1") && has(relu, "matmul", "vector", "8"));
    assert_false(has(relu, "softmax", "launches", "1"));
    assert_false(has(NULL, "softmax", "launches", "1"));
    designs_release(&d);
    put("* vector=4");
    assert_int_equal(designs_read("designs", &d, NULL, &err), 0);
    assert_string_equal(designs_of(&d, "softmax"), "vector=4");
    designs_release(&d);
}

static void a_wrong_file(void **state)
{
    (void)state;
    static const char *const wrong[] = {"relu vector", "relu =4", "relu vector= way=x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Designs d;
        Error err;
        put(wrong[i]);
        assert_int_equal(designs_read("designs", &d, NULL, &err), -1);
        assert_non_null(strstr(err.text, "designs:1: expected NAME=VALUE"));
        designs_release(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_of_a_task),
                                       cmocka_unit_test(a_wrong_file)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
