/* Compiling: the code that comes out, the messages of refused sources, the limits, and that no file
 * outside is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "eval/compile/sandbox.h"

#include "tests/unit/eval/compile/compile_support.h"

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

/* Kernels with names of functions that CUDA's headers declare, as nvcc takes them. */
static void test_shared_names(void **state)
{
    (void)state;
    static const char source[] = "__global__ void norm(float *x) { x[0] = max(x[1], 0.0f); }\n"
                                 "namespace ops { __global__ void max(float *x) {} }\n"
                                 "template <int N> __global__ void abs(float *x) {}\n"
                                 "__global__ void y0(float *x) {}\n__global__ void y0(int *x) {}\n";
    const char *names[] = {"norm", "ops::max", "abs<3>", "::norm"}, *twice[] = {"norm", "y0"};
    CompileResult r;
    compile(source, 4, names, &r);
    if (!r.ok) fail_msg("%s", r.message);
    assert_string_equal(r.lowered[0], "_Z4normPf");
    assert_string_equal(r.lowered[1], "_ZN3ops3maxEPf");
    assert_string_equal(r.lowered[2], "_Z3absILi3EEvPf");
    assert_string_equal(r.lowered[3], "_Z4normPf");
    compile_result_release(&r);
    compile(source, 2, twice, &r);
    assert_false(r.ok);
    assert_int_equal(r.bad_name, 1);
    assert_non_null(strstr(r.message, "give each kernel a name of its own"));
    compile_result_release(&r);
}

/* Functions of std, and functions without __device__, as nvcc takes them. */
static void test_as_by_nvcc(void **state)
{
    (void)state;
    CompileResult r;
    compile("#include <limits>\n#include <utility>\n#include <algorithm>\n"
            "constexpr int up(int a, int b) { return (a + b - 1) / b; }\n"
            "struct Pair { float v[up(3, 2)]; constexpr int size() const { return 2; } };\n"
            "extern \"C\" __global__ void k(float *x) {\n"
            "  std::pair<float, float> p = {std::exp(x[0]), std::fabs(x[1])};\n"
            "  float most = std::numeric_limits<float>::max();\n"
            "  Pair q;\n  q.v[0] = std::min(std::max(p.first, p.second), most);\n"
            "  std::swap(q.v[0], x[2]);\n  x[3] = q.v[0] + q.size(); }\n",
            0, NULL, &r);
    if (!r.ok) fail_msg("%s", r.message);
    assert_null(strstr(r.ptx, "f64"));
    compile_result_release(&r);
    compile("constexpr int up(int a) { return a; }\n"
            "extern \"C\" __global__ void k(int *x) { x[0] = up(missing); }\n",
            0, NULL, &r);
    assert_false(r.ok);
    assert_int_equal(r.line, 2);
    compile_result_release(&r);
}

static void test_headers(void **state)
{
    (void)state;
    CompileResult r;
    compile(
        "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include "
        "<math.h>\n#include <cfloat>\n"
        "#include <mma.h>\n#include <cooperative_groups.h>\n#include "
        "\"math_constants.h\"\n#include <cuda/std/limits>\n"
        "extern \"C\" __global__ void k(__half *x, __nv_bfloat16 *b, uint32_t n) {\n"
        "  if (n) x[0] = __float2half(FLT_MAX), b[0] = __float2bfloat16(-INFINITY + CUDART_PI_F);\n"
        "  cooperative_groups::this_thread_block().sync(); }\n",
        0, NULL, &r);
    if (!r.ok) fail_msg("%s", r.message);
    compile_result_release(&r);
}

static void test_error_has_line(void **state)
{
    (void)state;
    CompileResult r;
    compile("extern \"C\" __global__ void k(float *x) {\n  int unused;\n  x[0] = undeclared;\n}\n",
            0, NULL, &r);
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
            "__global__ void two(float *y) {}\n__global__ void two(int y) {}\n__device__ void "
            "helper() {}\n"
            "extern \"C\" __global__ void plain(float *y) { *y = 1; }\n",
            2, names, &r);
    assert_false(r.ok);
    assert_int_equal(r.bad_name, 1);
    if (!strstr(r.message, why)) fail_msg("expected '%s' in: %s", why, r.message);
    compile_result_release(&r);
}

static void test_bad_names(void **state)
{
    (void)state;
    expect_bad_name("missing",
                    "'missing', but the source defines no __global__ function of that name");
    expect_bad_name("tmpl", "it is a template");
    expect_bad_name("two", "it is overloaded");
    expect_bad_name("helper", "it is not a __global__ function");
    expect_bad_name("tmpl<", "'tmpl<'");
}

/* No directive makes the text of a file outside reach the log. */
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

/* A source that takes endless time or memory is refused within the limits, and the compiler still
 * works after it. Endless time is a second here, spent twice; what ends by itself takes less. */
static void test_bombs(void **state)
{
    (void)state;
    Error err;
    Compiler *c;
    static const char *const bombs[] = {
        "template <int N> struct S { static const int v = S<N + 1>::v; };\n"
        "extern \"C\" __global__ void k(int *x) { *x = S<0>::v; }\n",
        "__host__ __device__ constexpr int f(int n) { int s = 0; for (int i = 0; i >= 0; i = (i + "
        "1) % 1000000) s ^= i; return s + n; }\n"
        "__device__ int a[f(3) + 1];\nextern \"C\" __global__ void k(int *x) { *x = a[0]; }\n",
        source_endless,
        "#include __FILE__\n",
        "__device__ int big[1 << 28] = {1};\nextern \"C\" __global__ void k(int *x) { *x = "
        "big[threadIdx.x]; }\n",
    };
    if (compiler_open(&(CompilerOptions){.cpu_s = 1}, &c, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        CompileResult r;
        double start = clock_seconds();
        run_source(c, bombs[i], &r);
        double elapsed = clock_seconds() - start;
        print_message("bomb %zu: %.2f s: %.100s\n", i, elapsed, r.ok ? "compiled" : r.message);
        assert_true(elapsed < 150); /* on a machine that may be busy */
        assert_false(r.ok);
        assert_true(r.message[0]);
        compile_result_release(&r);
    }
    CompileResult r;
    run_source(c, source_templates, &r);
    assert_true(r.ok);
    compile_result_release(&r);
    compiler_close(c);
}

/* 1: a caged child that had mapped `before` bytes, with a limit of `limit` more, can map `more`. */
static int takes_memory(size_t before, size_t limit, size_t more)
{
    Error err;
    Sandbox *s;
    int fds[2], status = 0;
    char said = 'x';
    assert_int_equal(sandbox_open(&s, &err), 0);
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        void *held =
            mmap(NULL, before, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (held == MAP_FAILED || sandbox_enter(s, fds[1], 5, limit, &err)) _exit(1);
        void *mapped = mmap(NULL, more, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        _exit(write(fds[1], mapped == MAP_FAILED ? "n" : "y", 1) == 1 ? 0 : 1);
    }
    close(fds[1]);
    ssize_t n = read(fds[0], &said, 1);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    sandbox_close(s);
    assert_int_equal(status, 0);
    assert_int_equal(n, 1);
    return said == 'y';
}

/* The limit counts only what a child maps itself: a server maps more on a machine of more cores. */
static void test_memory_limit(void **state)
{
    (void)state;
#ifndef __SANITIZE_ADDRESS__
    size_t mib = 1 << 20;
    assert_true(takes_memory(mib, 512 * mib, 400 * mib));
    assert_true(takes_memory(4096 * mib, 512 * mib, 400 * mib));
    assert_false(takes_memory(mib, 512 * mib, 600 * mib));
    assert_false(takes_memory(4096 * mib, 512 * mib, 600 * mib));
#else
    (void)takes_memory; /* the sanitizer reserves too many addresses for a limit */
#endif
}

/* CUDA headers that are named by a macro, in cub.cuh, whose host parts are left out. */
static void test_cub(void **state)
{
    (void)state;
    static const char *const headers[] = {"cub/cub.cuh"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char source[900];
        CompileResult r;
        snprintf(source, sizeof source,
                 "#include <%s>\nextern \"C\" __global__ void k(float *x) {\n"
                 "  using Reduce = cub::BlockReduce<float, 128>;\n  __shared__ typename "
                 "Reduce::TempStorage room;\n"
                 "  float s = Reduce(room).Sum(x[threadIdx.x]);\n  if (!threadIdx.x) x[0] = s; }\n",
                 headers[i]);
        double start = clock_seconds();
        compile(source, 0, NULL, &r);
        print_message("%s: %.2f s\n", headers[i], clock_seconds() - start);
        if (!r.ok) fail_msg("%s", r.message);
        compile_result_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_shared_names),
        cmocka_unit_test(test_as_by_nvcc),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_error_has_line),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_nothing_outside_is_read),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_cub),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_compiler, close_compiler);
}
