/* Parts of device code: where they begin and end, and their values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/part.h"

static const char file[] = "/* A file. */\n"
                           "\n"
                           "//@ first: with a comment\n"
                           "x = @a@;\n"
                           "\n"
                           "y = @a@ + @b_2@;\n"
                           "\n"
                           "//@ firsts\n"
                           "@p bra L; mail@\n"
                           "\n"
                           "//@ open\n"
                           "if (x) \\\n"
                           "\n"
                           "//@ last\n"
                           "end\n";

static void filled(Buffer *b, const char *part, const char *want)
{
    buffer_clear(b);
    part_fill(b, file, part, "b_2=%d;a=%s", 7, "f(1, 2) == 3");
    assert_string_equal(b->data, want);
}

static void parts(void **state)
{
    (void)state;
    Buffer b;
    buffer_init(&b, 4096);
    filled(&b, "first", "x = f(1, 2) == 3;\n\ny = f(1, 2) == 3 + 7;\n");
    filled(&b, "firsts", "@p bra L; mail@\n");
    filled(&b, "open", "if (x) ");
    buffer_clear(&b);
    part_put(&b, file, "last");
    assert_string_equal(b.data, "end\n");
    buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("part", tests, NULL, NULL);
}
