/* The headers of a source depend on the source and the folders alone, not on earlier requests.
 * Needs no compiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "eval/compile/headers.h"

enum { LARGE = 4 << 20, N_LARGE = 33 }; /* more bytes than headers.c keeps */

static char dir[] = "/tmp/quern-test-XXXXXX", cuda[4200], folder[4200];
static Error err;

static void put(const char *in, const char *name, const char *text, off_t bytes)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/%s", in, name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), &err), 0);
    if (bytes) assert_int_equal(truncate(path, bytes), 0);
}

static int set_up(void **state)
{
    (void)state;
    char name[40];
    if (!mkdtemp(dir)) return -1;
    snprintf(cuda, sizeof cuda, "%s/cuda", dir);
    snprintf(folder, sizeof folder, "%s/folder", dir);
    if (file_mkdirs(cuda, &err) || file_mkdirs(folder, &err)) return -1;
    put(cuda, "cuda_fp16.h", "#define HALF 1\n", 0);
    put(folder, "own.h", "#include \"beside.h\"\n", 0);
    put(folder, "beside.h", "#define BESIDE 1\n", 0);
    put(folder, "late.h", "#include \"late_too.h\"\n", 0);
    put(folder, "late_too.h", "#define LATE 1\n", 0);
    for (int i = 0; i < N_LARGE; i++) {
        snprintf(name, sizeof name, "large%d.h", i);
        put(folder, name, "", LARGE);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(dir, &err);
}

/* The number of headers of a source, without the prelude's. */
static int count(Headers *h, const char *source)
{
    const char *const *names, *const *texts;
    int none = headers_collect(h, "", 0, &names, &texts);
    return headers_collect(h, source, strlen(source), &names, &texts) - none;
}

/* Does the source get late.h, and with it late_too.h? */
static void takes_late(Headers *h, const char *source, int takes)
{
    char text[600];
    snprintf(text, sizeof text, "%s\n", source);
    if (count(h, text) != 2 * takes) fail_msg("%d headers for: %s", count(h, text), source);
}

/* An #include by a macro, with and without arguments, in the source and in a header. */
static void test_named_by_macro(void **state)
{
    (void)state;
    static const char *const good[] = {
        "#define WHERE(x) <x.h>\n#include WHERE(late)",
        "#define WHERE(x, y) <x.y>\n#include WHERE( late , h ) // a comment",
        "#define STR(x) #x\n#include STR(late.h)",
        "#define STR(x) #x\n#define LATER(x) STR(x)\n#define NAME late.h\n#include LATER(NAME)",
        "#define JOIN(x, y) x##y\n#define AT(x) <x.h>\n#include AT(JOIN(la, te))",
        "#define WHERE(x) \\\n  <x.h>\n#include WHERE(late)",
        "#define WHERE(x) /* where */ <x.h> // there\n#include WHERE (late)",
        ("#if 0\n#define WHERE(x) <other/x.h>\n#else\n#define WHERE(x) <x.h>\n#endif\n"
         "#include WHERE(late)"),
        "#define WHERE \"late.h\"\n#include WHERE",
        "#define FIRST(x) SECOND(x)\n#define SECOND(y) <y.h>\n#include FIRST(late)",
    };
    static const char *const bad[] = {
        "#include WHERE(late)",
        "#define WHERE(x) <x.h>\n#include WHERE",
        "#define WHERE(x) <x.h>\n#include WHERE(late",
        "#define WHERE(x) WHERE(x)\n#include WHERE(late)",
        "#define WHERE(x) <x.h> <x.h>\n#include WHERE(none)",
        "#define A(x) B(x x)\n#define B(x) A(x x)\n#include A(late late late late)",
    };
    Headers *h;
    assert_int_equal(headers_open(cuda, folder, "", &h, &err), 0);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        takes_late(h, good[i], 1);
        takes_late(h, "#include WHERE(late)", 0); /* the macro of another source */
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) takes_late(h, bad[i], 0);
    put(folder, "by_macro.h", "#define HDR(x) <x.h>\n#include HDR(late)\n", 0);
    put(folder, "by_users.h", "#include USERS\n", 0);
    assert_int_equal(count(h, "#include <by_macro.h>\n"), 3);
    assert_int_equal(count(h, "#include <by_macro.h>\n#include HDR(own)\n"), 5);
    assert_int_equal(count(h, "#define USERS <late.h>\n#include <by_users.h>\n"), 3);
    headers_close(h);
}

/* Enumerators that are macros, too, may be macros already. */
static void test_enumerators(void **state)
{
    (void)state;
    static const char source[] = "#include <classes.h>\n",
                      text[] =
                          "enum {\n  ZERO =\n# define ZERO 0\n   ZERO,\n  ONE=\n#define ONE 1\n"
                          "  ONE, TWO\n#define TWO 2\n};\n",
                      changed[] =
                          "enum {\n#undef ZERO\n  ZERO =\n# define ZERO 0\n   ZERO,\n#undef ONE\n"
                          "  ONE=\n#define ONE 1\n  ONE, TWO\n#define TWO 2\n};\n";
    const char *const *names, *const *texts;
    Headers *h;
    put(folder, "classes.h", text, 0);
    assert_int_equal(headers_open(cuda, folder, "", &h, &err), 0);
    int n = headers_collect(h, source, sizeof source - 1, &names, &texts);
    assert_string_equal(names[n - 1], "classes.h");
    assert_string_equal(texts[n - 1], changed);
    headers_close(h);
}

/* CUTLASS's headers are the last that are searched, and have a version. */
static void test_cutlass(void **state)
{
    (void)state;
    char own[4300], below[4400];
    Headers *h;
    snprintf(own, sizeof own, "%s/cutlass", dir);
    snprintf(below, sizeof below, "%s/cutlass", own);
    assert_int_equal(file_mkdirs(below, &err), 0);
    put(below, "version.h",
        "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 0 \n", 0);
    put(own, "own.h", "#include <late.h>\n", 0);
    put(below, "it.h", "#include \"cutlass/version.h\"\n", 0);
    assert_int_equal(headers_open(cuda, folder, own, &h, &err), 0);
    assert_string_equal(headers_cutlass(h), "CUTLASS 4.2.0");
    assert_int_equal(headers_named_folders(h), 1);
    assert_int_equal(count(h, "#include <own.h>\n"), 2); /* the user's */
    assert_false(headers_takes_cutlass(h));
    assert_int_equal(count(h, "#include <cutlass/it.h>\n"), 2);
    assert_true(headers_takes_cutlass(h));
    assert_string_equal(headers_taken(h), "");
    headers_close(h);
    assert_int_equal(headers_open(cuda, folder, below, &h, &err), 0);
    assert_string_equal(headers_cutlass(h), "");
    headers_close(h);
}

/* A source may use the whole room for headers, and so may the next one. */
static void test_room_is_a_sources_own(void **state)
{
    (void)state;
    Headers *h;
    Buffer all;
    char taken[DIGEST_HEX];
    static const char own[] = "#include <own.h>\n#include <cuda_fp16.h>\n";
    buffer_init(&all, 1 << 16);
    for (int i = 0; i < N_LARGE; i++) buffer_printf(&all, "#include <large%d.h>\n", i);
    assert_int_equal(headers_open(cuda, folder, "", &h, &err), 0);
    assert_int_equal(count(h, own), 3);
    snprintf(taken, sizeof taken, "%s", headers_taken(h));
    assert_int_equal(count(h, all.data), N_LARGE - 1); /* one more than there is room for */
    assert_int_equal(count(h, all.data), N_LARGE - 1);
    assert_int_equal(count(h, "#include <late.h>\n"), 2);
    assert_int_equal(count(h, own), 3);
    assert_string_equal(headers_taken(h), taken);
    headers_close(h);
    buffer_release(&all);
}

/* Missing CUDA headers are an error here, or every candidate that includes one would be blamed. */
static void test_no_cuda_headers(void **state)
{
    (void)state;
    Headers *h;
    assert_int_equal(headers_open(folder, "", "", &h, &err), -1);
    assert_non_null(strstr(err.text, "/folder/cuda_fp16.h"));
    assert_non_null(strstr(err.text, "CUDA_HOME"));
    assert_int_equal(headers_open("", "", "", &h, &err), -1);
    assert_non_null(strstr(err.text, "CUDA_HOME"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_by_macro), cmocka_unit_test(test_enumerators),
        cmocka_unit_test(test_cutlass), cmocka_unit_test(test_room_is_a_sources_own),
        cmocka_unit_test(test_no_cuda_headers)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
