/* The text that NVRTC gets: without #line directives and bytes 0xFF, of the same length and lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eval/compile/compile_client.h"
#include "eval/compile/source_text.h"

static const char *const texts[][2] = {
    {"#line 70 \"x.h\"\nint a;\n", "              \nint a;\n"},
    {"a\n  # line 5\nb", "a\n          \nb"},
    {"# 5 \"x.h\" 3\n", "           \n"},
    {"%: line 5\n", "         \n"},
    {"%:li\\\nne 5\n", "     \n    \n"},
    {"/* x */ # /* y */ line 5 // z\n", "/* x */   /* y */        // z\n"},
    {"/* x\n*/ #line 5 /* y\n*/ a\n", "/* x\n*/         /* y\n*/  \n"},
    {"// \\\n#line 5\n", "// \\\n#line 5\n"},
    {"/*\n#line 5\n*/", "/*\n#line 5\n*/"},
    {"char *s = \"/*\";\n#line 5\n", "char *s = \"/*\";\n       \n"},
    {"char c = '\"';\n#line 5\n", "char c = '\"';\n       \n"},
    {"int x = 1'000'000;\n#line 5\n", "int x = 1'000'000;\n       \n"},
    {"#lines 5\n#pragma line\n#define line 5\n", "#lines 5\n#pragma line\n#define line 5\n"},
    {"f(a #line 5\n)", "f(a #line 5\n)"},
    {"// \xff \xfe\n", "// ? \xfe\n"},
    {"#line", "     "},
    {"\"\\", "\"\\"},
    {"#\\\n", "#\\\n"},
    {"", ""},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = strdup(texts[i][0]);
        source_text_prepare(text, strlen(text));
        assert_string_equal(text, texts[i][1]);
        free(text);
    }
}

/* Compiles a source. Returns the line of its first error, or 0. */
static int error_line(const char *source)
{
    Error err;
    Compiler *c;
    CompileResult r;
    if (compiler_open(&(CompilerOptions){0}, &c, &err)) fail_msg("%s", err.text);
    CompileRequest request = {.arch = "sm_90", .source = source, .len = strlen(source)};
    if (compiler_run(c, &request, &r, &err)) fail_msg("%s", err.text);
    int line = r.ok ? 0 : r.line;
    if (!r.ok && !line) fail_msg("%s", r.message);
    compile_result_release(&r);
    compiler_close(c);
    return line;
}

static void test_compiled(void **state)
{
    (void)state;
    assert_int_equal(error_line("\n#line 70 \"x.h\"\n__global__ void k(float *x) { oops; }\n"), 3);
    assert_int_equal(error_line("// \xff\n__global__ void k(float *x) { x[0] = 1; }\n"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_compiled)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
