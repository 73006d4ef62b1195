/* Compilers for the tests of eval/compile: one for a whole group of tests, and helpers that compile
 * a source and check the result. They need NVRTC and bin/quern-compile. Include after cmocka.h. */
#ifndef TESTS_UNIT_EVAL_COMPILE_SUPPORT_H
#define TESTS_UNIT_EVAL_COMPILE_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "eval/compile/compile_client.h"

static Compiler *compiler;

static inline int open_compiler_with(const CompilerOptions *o)
{
    Error err;
    if (!compiler_open(o, &compiler, &err)) return 0;
    fprintf(stderr, "%s\n", err.text);
    return -1;
}

static inline int open_compiler(void **state)
{
    (void)state;
    return open_compiler_with(&(CompilerOptions){.cpu_s = 5});
}

/* With a cache in the test's folder, so that what was compiled can be counted. */
static inline int open_counted_compiler(void **state)
{
    (void)state;
    return open_compiler_with(&(CompilerOptions){.cache_dir = "counted"});
}

static inline long compiled_so_far(void)
{
    long n = -1;
    FILE *f = popen("find counted -type f 2>/dev/null | wc -l", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &n), 1);
    pclose(f);
    return n;
}

static inline int close_compiler(void **state)
{
    (void)state;
    compiler_close(compiler);
    return 0;
}

static inline void compile(const char *source, int n_names, const char *const *names,
                           CompileResult *out)
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

/* Sixteen million classes: NVRTC does not refuse them, and never ends. */
static const char source_endless[] =
    "template <int A, int B> struct Q { typename Q<A - 1, B>::T a; typename Q<A - 1, B + (1 << "
    "A)>::T b; typedef Q T; };\n"
    "template <int B> struct Q<0, B> { typedef int T; };\n"
    "extern \"C\" __global__ void k(int *x) { *x = sizeof(Q<24, 0>); }\n";

static inline void run_source(Compiler *c, const char *source, CompileResult *r)
{
    Error err = {0};
    if (compiler_run(c, &(CompileRequest){.arch = "sm_90", .source = source, .len = strlen(source)},
                     r, &err))
        fail_msg("%s", err.text);
}

static inline void expect_open_fails(Compiler *c, const char *source)
{
    CompileResult r;
    run_source(c, source, &r);
    assert_false(r.ok);
    if (!strstr(r.message, "open source file")) fail_msg("%s: %s", source, r.message);
    compile_result_release(&r);
}

static inline void expect_compiles(Compiler *c, const char *source, int cached)
{
    CompileResult r;
    run_source(c, source, &r);
    if (!r.ok) fail_msg("%s: %s", source, r.message);
    assert_int_equal(r.cached, cached);
    compile_result_release(&r);
}

#endif
