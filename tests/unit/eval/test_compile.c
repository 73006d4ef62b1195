/* Compiling: what comes out, what is refused and how it is said, that nothing outside is read, the
 * limits, the cache. Needs NVRTC and bin/quern-compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/compile/compile_client.h"
#include "eval/compile/sandbox.h"

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
    Error err = {0};
    CompileRequest r = {"sm_90", source, strlen(source), n_names, names};
    if (compiler_run(compiler, &r, out, &err)) fail_msg("%s", err.text);
}

static const char source_templates[] =
    "template <typename T, int N> __global__ void scale(const T *x, T *y) { y[threadIdx.x] = "
    "x[threadIdx.x] * N; }\n"
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

/* Sixteen million classes, which NVRTC does not refuse. */
static const char source_endless[] =
    "template <int A, int B> struct Q { typename Q<A - 1, B>::T a; typename Q<A - 1, B + (1 << "
    "A)>::T b; typedef Q T; };\n"
    "template <int B> struct Q<0, B> { typedef int T; };\n"
    "extern \"C\" __global__ void k(int *x) { *x = sizeof(Q<24, 0>); }\n";

/* Each ends in a verdict about the source, within the limits, and the compiler lives on. */
static void test_bombs(void **state)
{
    (void)state;
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

/* In a caged child that had mapped `before` bytes and may have `most` more: can it take `more`? */
static int takes_memory(size_t before, size_t most, size_t more)
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
        if (held == MAP_FAILED || sandbox_enter(s, fds[1], 5, most, &err)) _exit(1);
        void *taken = mmap(NULL, more, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        _exit(write(fds[1], taken == MAP_FAILED ? "n" : "y", 1) == 1 ? 0 : 1);
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

/* What a server has mapped depends on the machine's cores; what a child may add to it does not. */
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
    (void)takes_memory; /* the sanitizer's own addresses leave nothing to limit */
#endif
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

/* Headers of CUDA that are named by a macro, and CUB's whole one without what only a host can use.
 */
static void test_cub(void **state)
{
    (void)state;
    static const char *const headers[] = {"cub/block/block_reduce.cuh", "cub/cub.cuh"};
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

/* A folder to test in, with what it holds made by `name, text` pairs; a text of "@target" is a
 * symbolic link. */
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

/* A compiler with $QUERN_INCLUDE = "DIR/ONE:DIR/TWO"; NULL: no second. */
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

static void run_source(Compiler *c, const char *source, CompileResult *r)
{
    Error err = {0};
    if (compiler_run(c, &(CompileRequest){.arch = "sm_90", .source = source, .len = strlen(source)},
                     r, &err))
        fail_msg("%s", err.text);
}

static void expect_open_fails(Compiler *c, const char *source)
{
    CompileResult r;
    run_source(c, source, &r);
    assert_false(r.ok);
    if (!strstr(r.message, "open source file")) fail_msg("%s: %s", source, r.message);
    compile_result_release(&r);
}

static void expect_compiles(Compiler *c, const char *source, int cached)
{
    CompileResult r;
    run_source(c, source, &r);
    if (!r.ok) fail_msg("%s: %s", source, r.message);
    assert_int_equal(r.cached, cached);
    compile_result_release(&r);
}

/* The quern-compile processes that are children of `parent`: how many, and the last to start. */
static int children_of(pid_t parent, pid_t *newest)
{
    char command[100];
    long pid = 0;
    int n = 0;
    snprintf(command, sizeof command,
             "pgrep -c -P %ld quern-compile; pgrep -n -P %ld quern-compile", (long)parent,
             (long)parent);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    int fields = fscanf(f, "%d %ld", &n, &pid);
    pclose(f);
    *newest = (pid_t)pid;
    return fields == 2 ? n : 0;
}

/* The child that waits in a server: its only one, soon after a reply. */
static pid_t prefork_child_of(pid_t server)
{
    pid_t spare;
    for (double end = clock_seconds() + 10; clock_seconds() < end; clock_sleep(0.01))
        if (children_of(server, &spare) == 1) return spare;
    fail_msg("no child waits");
    return 0;
}

/* A compiler with its server. */
static Compiler *open_server(int cpu_s, pid_t *server)
{
    Compiler *c;
    Error err = {0};
    if (compiler_open(&(CompilerOptions){.cpu_s = cpu_s}, &c, &err) || !compiler_version(c, &err))
        fail_msg("%s", err.text);
    assert_true(children_of(getpid(), server) > 0);
    return c;
}

static int has_ended(pid_t pid)
{
    return kill(pid, 0) && errno == ESRCH;
}

/* Each compiles what it is given, and sees nothing of the one before: not its macros, nor its
 * errors. */
static void test_many_in_a_row(void **state)
{
    (void)state;
    char source[300], number[20];
    for (int i = 0; i < 30; i++) {
        CompileResult r;
        snprintf(number, sizeof number, "%d", 770000 + i);
        snprintf(source, sizeof source,
                 "%s#ifdef LEFT\n#error left\n#endif\n#define LEFT\n__global__ void k(int *x) { *x "
                 "= %s%s; }\n",
                 i % 5 == 3 ? "#include <cuda_fp16.h>\n" : "", number,
                 i % 5 == 1 ? " + undeclared" : "");
        if (i % 3 == 2) clock_sleep(0.05); /* else while the next child is getting ready */
        compile(source, 0, NULL, &r);
        if (i % 5 == 1) {
            assert_false(r.ok);
            assert_non_null(strstr(r.message, "undeclared"));
        } else {
            if (!r.ok) fail_msg("%d: %s", i, r.message);
            assert_non_null(strstr(r.ptx, number));
        }
        compile_result_release(&r);
    }
}

/* A child waits for a source without headers, serves that one, and another waits. It has nothing of
 * the server's open. */
static void test_prefork_serves_one(void **state)
{
    (void)state;
    pid_t server, spare, next;
    char command[200];
    Compiler *c = open_server(5, &server);
    spare = prefork_child_of(server);
    /* The request, /dev/null twice, the reply: soon after the fork. */
    snprintf(command, sizeof command,
             "for i in $(seq 500); do test \"$(ls /proc/%ld/fd | wc -l)\" = 4 && exit 0; sleep "
             "0.01; done; exit 1",
             (long)spare);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "ls -l /proc/%ld/fd | grep -c 'pipe:' | grep -qx 2",
             (long)spare);
    assert_int_equal(system(command), 0);
    expect_compiles(
        c, "#include <cuda_fp16.h>\n__global__ void k(__half *x) { *x = __float2half(1); }\n", 0);
    assert_int_equal(prefork_child_of(server), spare);
    char *large = memory_alloc(200001); /* more than a pipe holds */
    memset(large, '\n', 200000);
    memcpy(large, source_templates, sizeof source_templates - 1);
    expect_compiles(c, large, 0);
    free(large);
    assert_int_equal(prefork_child_of(server), spare);
    for (int i = 0; i < 3; i++, spare = next) {
        expect_compiles(c, source_templates, 0);
        next = prefork_child_of(server);
        assert_int_not_equal(next, spare);
        assert_true(has_ended(spare));
    }
    compiler_close(c);
}

/* In a child that waited compiling ends at the request's limit too, and the next one is right. */
static void test_limit_of_spare(void **state)
{
    (void)state;
    pid_t server, spare;
    CompileResult r;
    Compiler *c = open_server(1, &server);
    spare = prefork_child_of(server);
    double start = clock_seconds();
    run_source(c, source_endless, &r);
    double took = clock_seconds() - start;
    assert_false(r.ok);
    assert_string_equal(r.message, "compiling took more than 1 s of CPU time or too much output");
    assert_true(took > 0.9 && took < 20);
    compile_result_release(&r);
    assert_true(has_ended(spare));
    expect_compiles(c, source_templates, 0);
    compiler_close(c);
}

/* Killed while it waits, and with the request on its way: stopped, it does not read it before it is
 * killed. */
static void test_prefork_killed(void **state)
{
    (void)state;
    pid_t server, same, spare;
    char command[100];
    Compiler *c = open_server(5, &server);
    for (int i = 0; i < 8; i++) {
        spare = prefork_child_of(server);
        snprintf(command, sizeof command, "(sleep 0.2; kill -9 %ld) &", (long)spare);
        assert_int_equal(kill(spare, i % 2 ? SIGSTOP : SIGKILL), 0);
        if (i % 2) assert_int_equal(system(command), 0);
        expect_compiles(c, source_templates, 0);
        assert_true(has_ended(spare));
    }
    children_of(getpid(), &same);
    assert_int_equal(same, server);
    compiler_close(c);
}

/* Neither a server that is killed nor one whose input ends leaves a process. */
static void test_nothing_is_left(void **state)
{
    (void)state;
    pid_t server, newest;
    char command[5000], program[4096];
    Error err = {0};
    process_adopt(); /* what a server leaves becomes this process's child */
    int before = children_of(getpid(), &newest);
    Compiler *c = open_server(5, &server);
    prefork_child_of(server);
    compiler_close(c);
    process_reap(server, 10); /* the group: it ends by itself */
    assert_true(has_ended(-server));
    assert_int_equal(process_find_program("quern-compile", program, sizeof program, &err), 0);
    snprintf(command, sizeof command, "'%s' --serve </dev/null >/dev/null", program);
    assert_int_equal(system(command), 0);
    assert_int_equal(children_of(getpid(), &newest), before);
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

/* A result is kept under what the source took from the folders, and under nothing else about them.
 */
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

/* As many headers as a library of templates has, 500 of 12 KB: a tree of includes, each with a
 * "part.h" of its own. */
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
    /* Damage every entry: a miss, and the same result again. */
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
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_server_killed),
        cmocka_unit_test(test_many_in_a_row),
        cmocka_unit_test(test_prefork_serves_one),
        cmocka_unit_test(test_limit_of_spare),
        cmocka_unit_test(test_prefork_killed),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_cub),
        cmocka_unit_test(test_include_folders),
        cmocka_unit_test(test_cache_knows_folders),
        cmocka_unit_test(test_many_headers),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_that_cannot_be_written),
        cmocka_unit_test(test_cache_is_bounded),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_compiler, close_compiler);
}
