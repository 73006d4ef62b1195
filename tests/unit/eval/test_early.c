/* A result that begins with the PTX: it becomes what a whole compilation gives, and what comes in
 * between loses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eval/compile/early_names.h"

#include "compile_support.h"

static const char source[] =
    "template <typename T, int N> __global__ void scale(T *x) { *x *= N; }\n"
    "extern \"C\" __global__ void plain(float *y) { *y = 1; }\n"
    "__global__ void other(float *y) { *y = 2; }\n";
static const char *const names[] = {"scale<float, 256>", "plain", "other"};

static CompileRequest request(const char *text, int n)
{
    return (CompileRequest){"sm_90", text, strlen(text), n, names};
}

static void begin(const CompileRequest *r, CompileResult *out)
{
    Error err = {0};
    if (compiler_begin(compiler, r, out, &err)) fail_msg("%s", err.text);
}

static int finish(const CompileRequest *r, CompileResult *out)
{
    int same = -1;
    Error err = {0};
    if (compiler_finish(compiler, r, out, &same, &err)) fail_msg("%s", err.text);
    return same;
}

/* Skips the rest where this NVRTC does not tell the PTX early. */
static void expect_pending(const CompileResult *r)
{
    if (!r->ok) fail_msg("%s", r->message);
    if (!r->pending) {
        print_message("# %s does not tell early\n", compiler_version(compiler, NULL));
        skip();
    }
}

static void expect_equal(const CompileResult *a, const CompileResult *b)
{
    assert_true(a->ok && b->ok && !a->pending && !b->pending);
    assert_int_equal(a->ptx_len, b->ptx_len);
    assert_memory_equal(a->ptx, b->ptx, a->ptx_len);
    assert_int_equal(a->cubin_len, b->cubin_len);
    assert_memory_equal(a->cubin, b->cubin, a->cubin_len);
    assert_int_equal(a->n_lowered, b->n_lowered);
    for (int i = 0; i < a->n_lowered; i++) assert_string_equal(a->lowered[i], b->lowered[i]);
}

static void test_becomes_whole(void **state)
{
    (void)state;
    CompileResult early, whole;
    CompileRequest r = request(source, 3);
    compile(source, 3, names, &whole);
    begin(&r, &early);
    expect_pending(&early);
    assert_null(early.cubin);
    for (int i = 0; i < 3; i++) assert_string_equal(early.lowered[i], whole.lowered[i]);
    assert_int_equal(finish(&r, &early), 1);
    assert_true(compiler_is_done(compiler));
    expect_equal(&early, &whole);
    compile_result_release(&early);
    compile_result_release(&whole);
}

static void test_refused_by_the_assembler(void **state)
{
    (void)state;
    static const char bad[] = "extern \"C\" __global__ void k(float *x) {\n"
                              "  asm(\"mov.b32 %0, nothing;\" : \"=f\"(*x));\n}\n";
    CompileResult early, whole;
    CompileRequest r = request(bad, 0);
    begin(&r, &early);
    expect_pending(&early);
    assert_int_equal(finish(&r, &early), 0);
    compile(bad, 0, NULL, &whole);
    assert_false(early.ok || whole.ok);
    assert_string_equal(early.message, whole.message);
    compile_result_release(&early);
    compile_result_release(&whole);
}

static void test_another_in_between(void **state)
{
    (void)state;
    CompileResult early, whole;
    CompileRequest r = request(source, 3);
    begin(&r, &early);
    expect_pending(&early);
    compile(source_templates, 0, NULL, &whole);
    assert_true(whole.ok);
    compile_result_release(&whole);
    compile(source, 3, names, &whole);
    assert_int_equal(finish(&r, &early), 1);
    expect_equal(&early, &whole);
    compile_result_release(&early);
    compile_result_release(&whole);
}

/* The parts that were known came from another request. */
static void test_differs(void **state)
{
    (void)state;
    CompileResult early, plain;
    CompileRequest r = request(source, 3), other = request(source_templates, 0);
    begin(&r, &early);
    expect_pending(&early);
    early.ptx[early.ptx_len / 2] ^= 1;
    assert_int_equal(finish(&r, &early), 0);
    assert_true(early.ok);
    compile_result_release(&early);
    begin(&r, &early);
    compile("extern \"C\" __global__ void k() {}\n", 0, NULL, &plain);
    compile_result_release(&plain);
    assert_int_equal(finish(&other, &early), 0);
    assert_true(early.ok);
    compile_result_release(&early);
}

static void expect_name(const char *ptx, const char *name, const char *lowered)
{
    char *found = NULL;
    int rc = early_names(ptx, 1, &name, &found);
    if (!lowered) {
        assert_int_equal(rc, -1);
    } else {
        assert_int_equal(rc, 0);
        assert_string_equal(found, lowered);
    }
    free(found);
}

static void test_early_names(void **state)
{
    (void)state;
    static const char ptx[] = ".visible .entry plain(\n.param .u64 p)\n{ ret; }\n"
                              ".weak .entry _Z5scaleIfLi4EEvPT_(.param .u64 p)\n{ ret; }\n"
                              ".entry _Z3twoIfEvv()\n{ ret; }\n.entry _Z3twoIdEvv()\n{ ret; }\n"
                              ".entry _ZN2ns3setILi4EEEvPf(.param .u64 p)\n{ ret; }\n";
    expect_name(ptx, "plain", "plain");
    expect_name(ptx, "scale<float, 4>", "_Z5scaleIfLi4EEvPT_");
    expect_name(ptx, "::scale <float, (1 < 2) ? 4 : 2>", "_Z5scaleIfLi4EEvPT_");
    expect_name(ptx, "two<float>", NULL); /* two entries */
    expect_name(ptx, "ns::set<4>", NULL); /* not unmangled */
    expect_name(ptx, "missing", NULL);
    expect_name(ptx, "", NULL);
    expect_name(".entry", "x", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_becomes_whole),      cmocka_unit_test(test_refused_by_the_assembler),
        cmocka_unit_test(test_another_in_between), cmocka_unit_test(test_differs),
        cmocka_unit_test(test_early_names),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_compiler, close_compiler);
}
