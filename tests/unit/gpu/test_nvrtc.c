/* gpu/nvrtc.c: the outputs of each outcome with the real compiler (skipped where there is none),
 * and the errors with files that are not NVRTC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/nvrtc.h"
#include "gpu/open.h"
#include "tests/unit/gpu/fixtures.h"

static Nvrtc *nvrtc;

static const char source[] =
    "#include \"own.h\"\n"
    "template <int N> __global__ void many(float *x) { x[threadIdx.x] = N + OWN; }\n"
    "extern \"C\" __global__ void plain(float *x) { x[0] = VALUE; }\n";
static const char *const header_names[] = {"own.h"}, *const header_texts[] = {"#define OWN 3\n"};
static const char *const options[] = {"-std=c++17", "-DVALUE=5"};
static const char *const names[] = {"many<7>"};

static NvrtcJob job(void)
{
    return (NvrtcJob){.arch = "sm_90",
                      .name = "two.cu",
                      .source = source,
                      .n_headers = 1,
                      .header_names = header_names,
                      .header_texts = header_texts,
                      .n_options = 2,
                      .options = options,
                      .n_names = 1,
                      .names = names};
}

static void test_done(void **state)
{
    (void)state;
    NvrtcJob j = job();
    NvrtcOutput o;
    assert_int_equal(nvrtc_compile(nvrtc, &j, &o), NVRTC_DONE);
    assert_int_equal(o.n_lowered, 1);
    assert_string_equal(o.lowered[0], "_Z4manyILi7EEvPf");
    assert_non_null(strstr(o.ptx, ".entry plain("));
    assert_non_null(strstr(o.ptx, o.lowered[0]));
    assert_non_null(strstr(o.ptx, ".target sm_90a"));
    assert_int_equal(strlen(o.ptx), o.ptx_len);
    assert_true(o.cubin_len > 64);
    assert_memory_equal(o.cubin, "\177ELF", 4);
    nvrtc_output_release(&o);
}

static void test_refused(void **state)
{
    (void)state;
    NvrtcJob j = job();
    NvrtcOutput o;
    j.n_options = 1;
    assert_int_equal(nvrtc_compile(nvrtc, &j, &o), NVRTC_REFUSED);
    assert_non_null(strstr(o.log, "two.cu(3): error: identifier \"VALUE\" is undefined"));
    assert_null(o.cubin);
    nvrtc_output_release(&o);
    j = job();
    j.arch = "sm_1";
    assert_int_not_equal(nvrtc_compile(nvrtc, &j, &o), NVRTC_DONE);
    assert_true(*o.log);
    nvrtc_output_release(&o);
}

static void test_arch_option(void **state)
{
    (void)state;
    char out[64];
    nvrtc_arch_option("sm_80", out, sizeof out);
    assert_string_equal(out, "-arch=sm_80");
    nvrtc_arch_option("sm_90", out, sizeof out);
    assert_string_equal(out, "-arch=sm_90a");
    nvrtc_arch_option("sm_120a", out, sizeof out);
    assert_string_equal(out, "-arch=sm_120a");
}

static void *compile_ten(void *arg)
{
    NvrtcJob j = job();
    for (int i = 0; i < 5; i++) {
        NvrtcOutput o;
        *(int *)arg += nvrtc_compile(nvrtc, &j, &o) == NVRTC_DONE;
        nvrtc_output_release(&o);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[3];
    int done[3] = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compile_ten, &done[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) assert_int_equal(done[i], 5);
}

/* A file of the right name that is not the library, and one that is too old. */
static void test_other_libraries(void **state)
{
    (void)state;
    Nvrtc *n;
    Error err;
    void (*slot)(void);
    char here[2000];
    if (!getcwd(here, sizeof here)) fail();
    char *home = memory_printf("%s/old", here), *dir = memory_printf("%s/old/lib64", here),
         *broken = memory_printf("%s/libbroken.so", dir);
    assert_int_equal(fixture_build("cublaslt.c", dir, "libnvrtc.so.13"), 0);
    setenv("CUDA_HOME", home, 1);
    assert_int_equal(nvrtc_open(&n, &err), -1);
    assert_non_null(strstr(
        err.text, "libnvrtc.so.13 has no nvrtcVersion: expected NVRTC of CUDA 11.8 or later"));
    assert_int_equal(file_write_atomic(broken, "no library", 10, &err), 0);
    const char *const missing[] = {"nothing"};
    const OpenFunctions *functions = OPEN_FUNCTIONS(missing, &slot);
    const char *const none[] = {"libquern-none.so", NULL}, *const bad[] = {"libbroken.so", NULL},
                      *const old[] = {"libnvrtc.so.13", NULL};
    assert_int_equal(open_library(none, functions, &err), -1);
    assert_non_null(strstr(
        err.text, "no libquern-none.so in $CUDA_HOME, on the loader's path, in /usr/local/cuda"));
    assert_int_equal(open_library(bad, functions, &err), -1);
    assert_non_null(strstr(err.text, "libbroken.so"));
    assert_int_equal(open_library(old, functions, &err), -1);
    assert_non_null(strstr(err.text, "libnvrtc.so.13 has no nothing"));
    free(home), free(dir), free(broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_done),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_arch_option),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_other_libraries),
    };
    Error err;
    if (nvrtc_open(&nvrtc, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    nvrtc_close(nvrtc);
    return rc;
}
