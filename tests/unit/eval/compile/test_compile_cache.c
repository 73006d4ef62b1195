/* Headers of named folders, and the cache of results with its keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

#include "tests/unit/eval/compile/compile_support.h"

/* Make a temporary folder of files from `name, text` pairs. A text of "@target" makes a symbolic
 * link. */
static void make_tree(char *dir, const char *const *pairs)
{
    Error err;
    char path[4300], *slash;
    assert_non_null(mkdtemp(dir));
    for (; *pairs; pairs += 2) {
        snprintf(path, sizeof path, "%s/%s", dir, pairs[0]);
        slash = strrchr(path, '/');
        *slash = 0;
        assert_int_equal(file_mkdirs(path, &err), 0);
        *slash = '/';
        if (*pairs[1] == '@')
            assert_int_equal(symlink(pairs[1] + 1, path), 0);
        else
            assert_int_equal(file_write_atomic(path, pairs[1], strlen(pairs[1]), &err), 0);
    }
}

/* A compiler with $QUERN_INCLUDE = "DIR/ONE:DIR/TWO"; two NULL: one folder. */
static Compiler *open_with_folders(const char *dir, const char *one, const char *two,
                                   const char *cache)
{
    char folders[9000];
    Compiler *c;
    Error err = {0};
    snprintf(folders, sizeof folders, "%s/%s%s%s%s%s", dir, one, two ? ":" : "", two ? dir : "",
             two ? "/" : "", two ? two : "");
    setenv("QUERN_INCLUDE", folders, 1);
    if (compiler_open(&(CompilerOptions){.cpu_s = 5, .cache_dir = cache}, &c, &err))
        fail_msg("%s", err.text);
    if (!compiler_version(c, &err)) fail_msg("%s", err.text);
    unsetenv("QUERN_INCLUDE");
    return c;
}

static const char *const tree[] = {
    "inc/lib/a.h",
    "#pragma once\n#include \"common.h\"\n#include \"../cuda_fp16.h\"\n#include \"deep/common.h\" "
    "// both\n",
    "inc/lib/common.h",
    "#pragma once\n#define COMMON 1\n",
    "inc/lib/deep/common.h",
    "#pragma once\n#include \"../common.h\"\n#define DEEP 2\n",
    "inc/cuda_fp16.h",
    "#define BESIDE 1\n",
    "inc/picked/by_macro.h",
    "#define PICKED 3\n",
    "inc/macro.h",
    "#define WHERE picked\n#define WHAT <WHERE/by_macro.h>\n#include WHAT\n",
    "inc/out.h",
    "@../secret.h",
    "inc/outside",
    "@..",
    "inc/in.h",
    "@lib/common.h",
    "inc/across.h",
    "@../more/second.h",
    "inc/climbs.h",
    "#include \"../secret.h\"\n",
    "more/second.h",
    "#define SECOND 4\n",
    "more/lib/common.h",
    "#error the first folder has one\n",
    "inclined.h",
    "#define SECRET 1\n",
    "secret.h",
    "#define SECRET 1\n",
    NULL};

static void test_include_folders(void **state)
{
    (void)state;
    char dir[] = "/tmp/quern-test-XXXXXX", path[4200];
    Error err = {0};
    make_tree(dir, tree);
    snprintf(path, sizeof path, "%s/inc/pipe.h", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    Compiler *c = open_with_folders(dir, "inc", "more", NULL);
    expect_compiles(c,
                    "#include <lib/a.h>\n#include \"lib/common.h\"\n#include <second.h>\n#include "
                    "<macro.h>\n#include <across.h>\n"
                    "#include <in.h>\n#include <cuda_fp16.h>\nstatic_assert(COMMON == 1 && DEEP == "
                    "2 && PICKED == 3 && SECOND == 4 "
                    "&& BESIDE, \"\");\n__global__ void k(__half *x) { *x = __float2half(1); }\n",
                    0);
    static const char *const outside[] = {
        "#include <out.h>\n",         "#include <outside/secret.h>\n",
        "#include \"../secret.h\"\n", "#include <lib/../../secret.h>\n",
        "#include <climbs.h>\n",      "#include <pipe.h>\n",
        "#include <lib>\n",           "#include <absent.h>\n",
        "#include <lined.h>\n"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) expect_open_fails(c, outside[i]);
    compiler_close(c);
    expect_open_fails(compiler, "#include <lib/common.h>\n");
    static const char *const wrong[] = {
        "include", "/absent-folder", "/dev/null", "/",
        "/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr:/usr"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("QUERN_INCLUDE", wrong[i], 1);
        assert_int_equal(compiler_open(&(CompilerOptions){.cpu_s = 5}, &c, &err), 0);
        assert_null(compiler_version(c, &err));
        if (!strstr(err.text, "QUERN_INCLUDE") ||
            !strstr(err.text, i < 4 ? wrong[i] : "at most 16"))
            fail_msg("%s", err.text);
        compiler_close(c);
    }
    unsetenv("QUERN_INCLUDE");
    assert_int_equal(file_remove_tree(dir, &err), 0);
}

/* The key of a cached result has the texts that the source takes from the folders, and not the
 * folders' names. */
static void test_cache_knows_folders(void **state)
{
    (void)state;
    static const char uses[] =
        "#include <lib/value.h>\n__global__ void k(int *x) { *x = VALUE; }\n";
    static const char plain[] = "#include <math.h>\n__global__ void k(float *x) { *x = NAN; }\n";
    static const char *const files[] = {
        "one/lib/value.h",     "#include \"number.h\"\n", "one/lib/number.h",
        "#define VALUE 111\n", "two/lib/value.h",         "#include \"number.h\"\n",
        "two/lib/number.h",    "#define VALUE 111\n",     NULL};
    char dir[] = "/tmp/quern-test-XXXXXX", cache[4200], path[4200];
    Error err = {0};
    CompileResult r;
    make_tree(dir, files);
    snprintf(cache, sizeof cache, "%s/cache", dir);
    Compiler *c = open_with_folders(dir, "one", NULL, cache);
    expect_compiles(c, uses, 0);
    expect_compiles(c, uses, 1);
    expect_compiles(c, plain, 0);
    compiler_close(c);
    c = open_with_folders(dir, "two", "one", cache); /* the same texts elsewhere */
    expect_compiles(c, uses, 1);
    compiler_close(c);
    snprintf(path, sizeof path, "%s/one/lib/number.h", dir);
    assert_int_equal(file_write_atomic(path, "#define VALUE 222\n", 18, &err), 0);
    c = open_with_folders(dir, "one", NULL, cache);
    run_source(c, uses, &r);
    assert_true(r.ok && !r.cached && strstr(r.ptx, "222"));
    compile_result_release(&r);
    compiler_close(c);
    assert_int_equal(compiler_open(&(CompilerOptions){.cpu_s = 5, .cache_dir = cache}, &c, &err),
                     0);
    expect_compiles(c, plain, 1);
    expect_open_fails(c, uses);
    compiler_close(c);
    assert_int_equal(file_remove_tree(dir, &err), 0);
}

/* A library of 500 headers of 12 KB, in a tree of includes, each with its own "part.h". */
static void test_many_headers(void **state)
{
    (void)state;
    static const char *const none[] = {"inc/big/top.h", "#pragma once\n#include \"0/part.h\"\n",
                                       NULL};
    enum { N = 500, LINES = 120 };
    char dir[] = "/tmp/quern-test-XXXXXX", path[4200], source[200];
    Error err = {0};
    Buffer text;
    make_tree(dir, none);
    buffer_init(&text, 1 << 20);
    for (int i = 0; i < N; i++) {
        buffer_clear(&text);
        buffer_printf(&text, "#pragma once\n#include <big/top.h>\n");
        for (int k = 4 * i + 1; k <= 4 * i + 4 && k < N; k++)
            buffer_printf(&text, "#include \"../%d/part.h\"\n", k);
        for (int k = 0; k < LINES; k++)
            buffer_printf(&text,
                          "template <typename T> __device__ T f_%d_%d(T x) { return x * T(%d) + "
                          "T(%d); } // one of many templates\n",
                          i, k, k, i);
        snprintf(path, sizeof path, "%s/inc/big/%d", dir, i);
        assert_int_equal(file_mkdirs(path, &err), 0);
        strcat(path, "/part.h");
        assert_int_equal(file_write_atomic(path, text.data, text.len, &err), 0);
    }
    buffer_release(&text);
    Compiler *c = open_with_folders(dir, "inc", NULL, NULL);
    snprintf(source, sizeof source,
             "#include <big/top.h>\n__global__ void k(float *x) { *x = f_%d_7(*x) + f_0_0(*x); }\n",
             N - 1);
    for (int i = 0; i < 2; i++) {
        double start = clock_seconds();
        expect_compiles(c, source, 0);
        print_message("%d headers, %s: %.2f s\n", N, i ? "again" : "read first",
                      clock_seconds() - start);
    }
    compiler_close(c);
    assert_int_equal(file_remove_tree(dir, &err), 0);
}

static void test_cache(void **state)
{
    (void)state;
    char dir[] = "/tmp/quern-test-XXXXXX", path[4200];
    assert_non_null(mkdtemp(dir));
    Compiler *c;
    Error err = {0};
    CompileResult first, second, bad;
    const char *name = "plain";
    CompileRequest r = {"sm_90", source_templates, strlen(source_templates), 1, &name};
    assert_int_equal(compiler_open(&(CompilerOptions){.cache_dir = dir}, &c, &err), 0);
    assert_int_equal(compiler_run(c, &r, &first, &err), 0);
    assert_false(first.cached);
    assert_int_equal(compiler_run(c, &r, &second, &err), 0);
    assert_true(second.cached);
    assert_string_equal(first.ptx, second.ptx);
    assert_int_equal(first.cubin_len, second.cubin_len);
    assert_memory_equal(first.cubin, second.cubin, first.cubin_len);
    compile_result_release(&second);
    r.arch = "sm_80";
    assert_int_equal(compiler_run(c, &r, &second, &err), 0);
    assert_false(second.cached);
    compile_result_release(&second);
    /* A damaged entry is a miss, and the result is the same. */
    snprintf(path, sizeof path,
             "find %s -type f -exec sh -c 'printf X | dd of={} bs=1 seek=300 conv=notrunc "
             "2>/dev/null' ';'",
             dir);
    assert_int_equal(system(path), 0);
    r.arch = "sm_90";
    assert_int_equal(compiler_run(c, &r, &bad, &err), 0);
    assert_false(bad.cached);
    assert_string_equal(first.ptx, bad.ptx);
    compile_result_release(&first);
    compile_result_release(&bad);
    compiler_close(c);
    assert_int_equal(file_remove_tree(dir, &err), 0);
}

/* Without a cache, a reply that others ask for is kept in memory. */
static void test_kept(void **state)
{
    (void)state;
    CompileResult out;
    Error err = {0};
    CompileRequest r = {.arch = "sm_90", .source = source_templates};
    r.len = strlen(source_templates);
    for (int i = 0; i < 4; i++) {
        r.keep = i > 1;
        assert_int_equal(compiler_run(compiler, &r, &out, &err), 0);
        assert_int_equal(out.cached, i > 2);
        compile_result_release(&out);
    }
}

static void test_cache_that_cannot_be_written(void **state)
{
    (void)state;
    Compiler *c;
    Error err = {0};
    CompileResult r;
    CompileRequest request = {"sm_90", source_templates, strlen(source_templates), 0, NULL};
    setenv("QUERN_LOG", "quiet", 1);
    assert_int_equal(compiler_open(&(CompilerOptions){.cache_dir = "/dev/null/cache"}, &c, &err),
                     0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(compiler_run(c, &request, &r, &err), 0);
        assert_true(r.ok && !r.cached);
        compile_result_release(&r);
    }
    compiler_close(c);
}

static void test_cache_is_bounded(void **state)
{
    (void)state;
    char dir[] = "/tmp/quern-test-XXXXXX", key[DIGEST_HEX], command[200];
    Digest d;
    Error err;
    assert_non_null(mkdtemp(dir));
    char *data = memory_alloc(10000);
    for (int round = 0; round < 3; round++) {
        Cache *c = cache_open(dir, 100000);
        for (int i = 0; i < 30; i++) {
            int n = round * 100 + i;
            digest_of(&n, sizeof n, &d);
            digest_hex(&d, key);
            cache_put(c, key, data, 10000);
        }
        cache_close(c);
    }
    /* The cache is trimmed at the first write of a process and at every 200th. */
    Cache *c = cache_open(dir, 100000);
    cache_put(c, key, data, 10000);
    cache_close(c);
    snprintf(command, sizeof command, "test $(find %s -type f | wc -l) -le 11", dir);
    assert_int_equal(system(command), 0);
    free(data);
    assert_int_equal(file_remove_tree(dir, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_include_folders),
        cmocka_unit_test(test_cache_knows_folders),
        cmocka_unit_test(test_many_headers),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_cache_that_cannot_be_written),
        cmocka_unit_test(test_cache_is_bounded),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_compiler, close_compiler);
}
