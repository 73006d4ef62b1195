/* Compiling: what comes out, what is refused and how it is said, that nothing outside is read, the
 * limits, the cache. Needs NVRTC and bin/quern-compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "eval/cache.h"
#include "eval/compile.h"

static Compiler *compiler;

static int open_compiler(void **state)
{
    (void)state;
    Error err;
    if (!compiler_open(&(CompilerOptions){.cpu_s = 5}, &compiler, &err)) return 0;
    fprintf(stderr, "%s\n", err.text);
    return -1;
}

static int close_compiler(void **state)
{
    (void)state;
    compiler_close(compiler);
    return 0;
}

static void compile(const char *source, int n_names, const char *const *names, CompileResult *out)
{
    Error err = {""};
    CompileRequest r = {"sm_90", source, strlen(source), n_names, names};
    if (compiler_run(compiler, &r, out, &err)) fail_msg("%s", err.text);
}

static const char source_templates[] =
    "template <typename T, int N> __global__ void scale(const T *x, T *y) { y[threadIdx.x] = x[threadIdx.x] * N; }\n"
    "namespace ns { template <int N> __global__ void set(float *y) { *y = N; } }\n"
    "extern \"C\" __global__ void plain(float *y) { *y = 1; }\n";

static void test_names(void **state)
{
    (void)state;
    const char *names[] = {"scale<float, 256>", "ns::set<4>", "plain"};
    CompileResult r;
    compile(source_templates, 3, names, &r);
    assert_true(r.ok);
    assert_int_equal(r.n_lowered, 3);
    assert_string_equal(r.lowered[1], "_ZN2ns3setILi4EEEvPf");
    assert_string_equal(r.lowered[2], "plain");
    assert_non_null(strstr(r.ptx, r.lowered[0]));
    assert_non_null(strstr(r.ptx, ".loc"));
    assert_memory_equal(r.cubin, "\177ELF", 4);
    assert_true(r.cubin_len > 1000);
    compile_result_release(&r);
}

static void test_headers(void **state)
{
    (void)state;
    CompileResult r;
    compile("#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <math.h>\n#include <cfloat>\n"
            "#include <mma.h>\n#include <cooperative_groups.h>\n#include \"math_constants.h\"\n#include <cuda/std/limits>\n"
            "extern \"C\" __global__ void k(__half *x, __nv_bfloat16 *b, uint32_t n) {\n"
            "  if (n) x[0] = __float2half(FLT_MAX), b[0] = __float2bfloat16(-INFINITY + CUDART_PI_F);\n"
            "  cooperative_groups::this_thread_block().sync(); }\n", 0, NULL, &r);
    if (!r.ok) fail_msg("%s", r.message);
    compile_result_release(&r);
}

static void test_error_has_line(void **state)
{
    (void)state;
    CompileResult r;
    compile("extern \"C\" __global__ void k(float *x) {\n  int unused;\n  x[0] = undeclared;\n}\n", 0, NULL, &r);
    assert_false(r.ok);
    assert_int_equal(r.line, 3);
    assert_int_equal(r.bad_name, -1);
    assert_non_null(strstr(r.message, "undeclared"));
    assert_null(strstr(r.message, "warning"));
    compile_result_release(&r);
}

static void expect_bad_name(const char *name, const char *why)
{
    const char *names[] = {"plain", name};
    CompileResult r;
    compile("template <int N> __global__ void tmpl(float *y) { *y = N; }\n"
            "__global__ void two(float *y) {}\n__global__ void two(int y) {}\n__device__ void helper() {}\n"
            "extern \"C\" __global__ void plain(float *y) { *y = 1; }\n", 2, names, &r);
    assert_false(r.ok);
    assert_int_equal(r.bad_name, 1);
    if (!strstr(r.message, why)) fail_msg("expected '%s' in: %s", why, r.message);
    compile_result_release(&r);
}

static void test_bad_names(void **state)
{
    (void)state;
    expect_bad_name("missing", "'missing', but the source defines no __global__ function of that name");
    expect_bad_name("tmpl", "it is a template");
    expect_bad_name("two", "it is overloaded");
    expect_bad_name("helper", "it is not a __global__ function");
    expect_bad_name("tmpl<", "'tmpl<'");
}

/* Whatever the way in, the text of a file outside never reaches the log. */
static void test_nothing_outside_is_read(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "#include \"/etc/passwd\"\n",
        "#include \"../../../../../../../../etc/passwd\"\n",
        "#include <cuda/../../../../../../../etc/passwd>\n",
        "#define F \"/etc/passwd\"\n#include F\n",
        "#if __has_include(\"/etc/passwd\")\n#error root: it is there\n#endif\n#error absent\n",
        "extern \"C\" __global__ void k() { asm volatile(\".include \\\"/etc/passwd\\\"\"); }\n",
        "#pragma include_alias(\"cuda_fp16.h\", \"/etc/passwd\")\n#include \"/etc/passwd\"\n",
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        CompileResult r;
        compile(ways[i], 0, NULL, &r);
        assert_false(r.ok);
        if (strstr(r.message, "root:")) fail_msg("way %zu leaks: %s", i, r.message);
        compile_result_release(&r);
    }
}

/* Each ends in a verdict about the source, within the limits, and the compiler lives on. */
static void test_bombs(void **state)
{
    (void)state;
    static const char *const bombs[] = {
        "template <int N> struct S { static const int v = S<N + 1>::v; };\n"
        "extern \"C\" __global__ void k(int *x) { *x = S<0>::v; }\n",
        "__host__ __device__ constexpr int f(int n) { int s = 0; for (int i = 0; i >= 0; i = (i + 1) % 1000000) s ^= i; return s + n; }\n"
        "__device__ int a[f(3) + 1];\nextern \"C\" __global__ void k(int *x) { *x = a[0]; }\n",
        "template <int N> struct P { static constexpr long v = P<N - 1>::v + P<N - 2>::v * 3; };\n"
        "template <> struct P<0> { static constexpr long v = 1; }; template <> struct P<1> { static constexpr long v = 1; };\n"
        "template <int A, int B> struct Q { typename Q<A - 1, B>::T a; typename Q<A - 1, B + (1 << A)>::T b; typedef Q T; };\n"
        "template <int B> struct Q<0, B> { typedef int T; };\n"
        "extern \"C\" __global__ void k(int *x) { *x = sizeof(Q<24, 0>); }\n",
        "#include __FILE__\n",
        "__device__ int big[1 << 28] = {1};\nextern \"C\" __global__ void k(int *x) { *x = big[threadIdx.x]; }\n",
    };
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        CompileResult r;
        double start = clock_seconds();
        compile(bombs[i], 0, NULL, &r);
        double took = clock_seconds() - start;
        print_message("bomb %zu: %.2f s: %.100s\n", i, took, r.ok ? "compiled" : r.message);
        assert_true(took < 60); /* 5 s of CPU, on a machine that may be busy */
        assert_false(r.ok);
        assert_true(r.message[0]);
        compile_result_release(&r);
    }
    CompileResult r;
    compile(source_templates, 0, NULL, &r);
    assert_true(r.ok);
    compile_result_release(&r);
}

/* A server killed between two requests is started again, and the request does not notice. */
static void test_server_killed(void **state)
{
    (void)state;
    char command[200];
    CompileResult r;
    snprintf(command, sizeof command, "kill -9 $(pgrep -P %ld quern-compile)", (long)getpid());
    assert_int_equal(system(command), 0);
    compile(source_templates, 0, NULL, &r);
    assert_true(r.ok);
    compile_result_release(&r);
}

static void test_cache_that_cannot_be_written(void **state)
{
    (void)state;
    Compiler *c;
    Error err = {""};
    CompileResult r;
    CompileRequest request = {"sm_90", source_templates, strlen(source_templates), 0, NULL};
    setenv("QUERN_LOG", "quiet", 1);
    assert_int_equal(compiler_open(&(CompilerOptions){.cache_dir = "/dev/null/cache"}, &c, &err), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(compiler_run(c, &request, &r, &err), 0);
        assert_true(r.ok && !r.cached);
        compile_result_release(&r);
    }
    compiler_close(c);
}

static void test_cache(void **state)
{
    (void)state;
    char dir[] = "/tmp/quern-test-XXXXXX", path[4200];
    assert_non_null(mkdtemp(dir));
    Compiler *c;
    Error err = {""};
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
    /* Damage every entry: a miss, and the same result again. */
    snprintf(path, sizeof path, "find %s -type f -exec sh -c 'printf X | dd of={} bs=1 seek=300 conv=notrunc 2>/dev/null' ';'", dir);
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
    /* Trimmed at the first write of a process and every 200: never more than one burst over. */
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
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_error_has_line),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_nothing_outside_is_read),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_server_killed),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_that_cannot_be_written),
        cmocka_unit_test(test_cache_is_bounded),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_compiler, close_compiler);
}
