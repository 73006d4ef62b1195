/* The host side of the engine without a GPU. The device code compiles for every supported
 * architecture, has the kernels of kernels.h, and spills no registers. The cache returns the same
 * binaries, and damaged entries are compiled again. Over tests/fixtures/cuda/driver.c, which
 * replaces libcuda: device names, copies both ways, messages of failures, and the lock of the
 * GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/candidate/cubin.h"
#include "gpu/gpus.h"
#include "gpu/lock.h"
#include "gpu/nvrtc.h"
#include "model/core/halves.h"
#include "model/core/ranks.h"
#include "model/cpu/ops_cpu.h"
#include "model/cuda/cuda_state.h"
#include "model/cuda/sources.h"
#include "model/model_device.h"
#include "tests/unit/eval/engine/engine_ptx.h"
#include "tests/unit/gpu/fixtures.h"

/* The kernels are optimized for sm_90. There a stack of more than a few words is allowed only for
 * these kernels, whose loops do not touch it. Other architectures have a larger limit. */
static const struct {
    const char *kernel, *why;
} stacked[] = {
    {"product64", "128 registers a thread are what two blocks a multiprocessor leave"},
    {NULL, NULL},
};
enum { FEW_WORDS = 16, ELSEWHERE = 128 };

static char version[32], cache[2200], toolkit[2200];

static int may_have_stack(const char *kernel)
{
    for (int i = 0; stacked[i].kernel; i++)
        if (!strcmp(stacked[i].kernel, kernel)) return 1;
    return 0;
}

static void check_binaries(const char *arch, const CudaBinary *binaries)
{
    static const struct {
        const char *name;
        CudaSource source;
    } kernels[] = {
#define X(source, kernel) {#kernel, SOURCE_##source},
        CUDA_KERNELS(X)
#undef X
    };
    Cubin parsed[SOURCE_COUNT + 1];
    Error err;
    int max_registers = 0, bad = 0;
    const char *largest = "";
    for (int s = 0; s < SOURCE_COUNT; s++)
        if (cubin_parse(binaries[s].data, binaries[s].len, &parsed[s], &err))
            fail_msg("%s: %s", cuda_source_name((CudaSource)s), err.text);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const CubinKernel *k = cubin_find(&parsed[kernels[i].source], kernels[i].name);
        if (!k)
            fail_msg("%s has no kernel %s", cuda_source_name(kernels[i].source), kernels[i].name);
        if (k->registers > max_registers) max_registers = k->registers, largest = k->name;
        if (k->local_bytes) {
            printf("# %s: kernel %s has %u bytes of stack (%d registers)\n", arch, k->name,
                   k->local_bytes, k->registers);
            bad += !may_have_stack(k->name) &&
                   k->local_bytes > (strcmp(arch, "sm_90") ? ELSEWHERE : FEW_WORDS);
        }
        if (k->static_shared > 48 << 10)
            bad++, printf("# %s: kernel %s declares %u bytes of shared memory\n", arch, k->name,
                          k->static_shared);
    }
    printf("# %s: %zu kernels; the most registers are %d (%s)\n", arch,
           sizeof kernels / sizeof *kernels, max_registers, largest);
    for (int s = 0; s < SOURCE_COUNT; s++) cubin_release(&parsed[s]);
    assert_int_equal(bad, 0);
}

/* Puts what `from` has into `to`. Returns whether it had it. */
static int copy_entry(Cache *from, Cache *to, const char *key)
{
    Buffer b;
    buffer_init(&b, NVRTC_MAX_CUBIN);
    int found = from && cache_get(from, key, NVRTC_MAX_CUBIN, &b);
    if (found) cache_put(to, key, b.data, b.len);
    buffer_release(&b);
    return found;
}

/* Does what cuda_compile does, one source at a time, and keeps the PTX for the tests that execute
 * the kernels (engine_compile says which). Then cuda_compile finds the binaries in its cache. The binaries
 * are kept, too: the next `make test` compiles what changed. */
static void fill_cache(const char *arch)
{
    Nvrtc *nvrtc;
    Error err;
    if (nvrtc_open(&nvrtc, &err)) fail_msg("%s", err.text);
    Cache *c = cache_open(cache, (size_t)1 << 30), *kept = kept_cache();
#pragma omp parallel for schedule(dynamic)
    for (int s = 0; s < SOURCE_COUNT; s++) {
        NvrtcOutput o;
        char key[DIGEST_HEX];
        int found;
        const char *text = cuda_source_text((CudaSource)s);
        cuda_source_key(nvrtc, arch, (CudaSource)s, key);
#pragma omp critical
        found = copy_entry(kept, c, key);
        if (found) continue;
        NvrtcOutcome outcome = cuda_compile_source(nvrtc, arch, (CudaSource)s, &o);
#pragma omp critical
        if (outcome == NVRTC_DONE) {
            cache_put(c, key, o.cubin, o.cubin_len);
            if (s != SOURCE_gemv || !strstr(o.ptx, "wgmma"))
                engine_keep_ptx(arch, text, strlen(text), o.ptx);
            if (kept) cache_put(kept, key, o.cubin, o.cubin_len);
        }
        nvrtc_output_release(&o);
    }
    if (kept) cache_close(kept);
    cache_close(c);
    nvrtc_close(nvrtc);
}

static void compiles(const char *arch)
{
    CudaBinary binaries[SOURCE_COUNT + 1];
    Error err;
    double start = clock_seconds();
    if (cuda_compile(arch, cache, binaries, &err)) fail_msg("%s", err.text);
    printf("# %s: binaries by %s in %.1f s\n", arch, version, clock_seconds() - start);
    check_binaries(arch, binaries);
    cuda_compile_release(binaries);
}

static void test_ampere(void **state)
{
    (void)state;
    fill_cache("sm_80");
    compiles("sm_80");
}

static void test_hopper(void **state)
{
    (void)state;
    fill_cache("sm_90");
    compiles("sm_90");
}

/* Of the sources that tell architectures apart. The others are the same for all. */
static void test_blackwell(void **state)
{
    static const CudaSource apart[] = {SOURCE_attention, SOURCE_gemv};
    (void)state;
    Nvrtc *nvrtc;
    Error err;
    if (strcmp(version, "NVRTC 12.8") < 0) {
        printf("# sm_100 is not compiled: %s does not know it\n", version);
        return;
    }
    if (nvrtc_open(&nvrtc, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++) {
        NvrtcOutput o;
        Cubin parsed;
        if (cuda_compile_source(nvrtc, "sm_100", apart[i], &o) != NVRTC_DONE)
            fail_msg("%s: %s", cuda_source_name(apart[i]), o.log);
        if (cubin_parse(o.cubin, o.cubin_len, &parsed, &err)) fail_msg("%s", err.text);
        assert_true(parsed.n > 0);
        for (int k = 0; k < parsed.n; k++) assert_true(parsed.kernels[k].local_bytes <= ELSEWHERE);
        cubin_release(&parsed);
        nvrtc_output_release(&o);
    }
    nvrtc_close(nvrtc);
}

static void test_unknown_arch(void **state)
{
    (void)state;
    CudaBinary binaries[SOURCE_COUNT + 1];
    Error err;
    assert_int_equal(cuda_compile("sm_12345", NULL, binaries, &err), -1);
    if (!strstr(err.text, "sm_12345")) fail_msg("%s", err.text);
    cuda_compile_release(binaries);
}

/* Changes one byte of the entry for sm_90 of a source that compiles in little time. */
static void damage_entry(void)
{
    Nvrtc *nvrtc;
    Error err;
    char key[DIGEST_HEX];
    if (nvrtc_open(&nvrtc, &err)) fail_msg("%s", err.text);
    cuda_source_key(nvrtc, "sm_90", SOURCE_fresh, key);
    nvrtc_close(nvrtc);
    char *path = memory_printf("%s/%.2s/%s", cache, key, key + 2);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, 1000, SEEK_SET), 0);
    int byte = fgetc(f);
    assert_int_equal(fseek(f, 1000, SEEK_SET), 0);
    fputc(byte ^ 1, f);
    assert_int_equal(fclose(f), 0);
    free(path);
}

/* Runs after test_hopper: the cache returns the stored binaries quickly, and one changed byte is
 * detected. */
static void test_cache(void **state)
{
    (void)state;
    CudaBinary first[SOURCE_COUNT + 1], again[SOURCE_COUNT + 1];
    Error err;
    double warm = 9;
    for (int i = 0; i < 5 && warm >= 1; i++) { /* on a busy machine it is tried again */
        double start = clock_seconds();
        if (i) cuda_compile_release(first);
        if (cuda_compile("sm_90", cache, first, &err)) fail_msg("%s", err.text);
        warm = clock_seconds() - start;
    }
    printf("# sm_90: from the cache in %.3f s\n", warm);
    assert_true(warm < 1);
    damage_entry();
    if (cuda_compile("sm_90", cache, again, &err)) fail_msg("%s", err.text);
    for (int s = 0; s < SOURCE_COUNT; s++) {
        assert_int_equal(first[s].len, again[s].len);
        assert_memory_equal(first[s].data, again[s].data, first[s].len);
    }
    cuda_compile_release(first);
    cuda_compile_release(again);
}

/* ---- ranks over the replacements of libcuda and NCCL, in separate processes ---- */

static void need(int condition, const char *what)
{
    Error err;
    if (condition) return;
    error_set(&err, ERROR_INVALID, "%s is wrong in rank %d", what, ranks_rank());
    log_exit(3, &err);
}
#define TRY(call)                       \
    do {                                \
        Error err_;                     \
        if ((call)) log_exit(4, &err_); \
    } while (0)

static void collectives(int n)
{
    enum { N = 3000 };
    const Ops *ops;
    char device[16], expected[16];
    float x[N];
    Error err = {0};
    TRY(ranks_start(n, &err_));
    int rank = ranks_rank();
    TRY(ranks_device("cuda:0", device, &err_));
    snprintf(expected, sizeof expected, "cuda:%d", rank);
    need(!strcmp(device, expected), "the device");
    TRY(model_device(device, &ops, &err_));
    TRY(ranks_join(ops, &err_));
    float *p = ops->alloc(((size_t)4 << 20) + 4);
    size_t each = ranks_each(N - 500, 4);
    for (int i = 0; i < N; i++) x[i] = (float)(i + 10 * rank);
    ops->upload(p, x, sizeof x);
    TRY(ranks_all_reduce(p, N, &err_));
    ops->download(x, p, sizeof x);
    for (int i = 0; i < N; i++) need(x[i] == (float)(n * i + 5 * n * (n - 1)), "all_reduce");
    TRY(ranks_reduce_scatter(p, each, &err_));
    ops->download(x, p, sizeof x);
    for (size_t i = 0; i < each * (size_t)n; i++)
        need(x[i] == (i / each == (size_t)rank
                          ? (float)n * (float)((size_t)n * i + (size_t)(5 * n * (n - 1)))
                          : 0),
             "reduce_scatter");
    for (int i = 0; i < N; i++) x[i] = (float)rank;
    ops->upload(p, x, sizeof x);
    TRY(ranks_all_gather(p, each * 4, &err_));
    ops->download(x, p, sizeof x);
    for (size_t i = 0; i < each * (size_t)n; i++) need(x[i] == (float)(i / each), "all_gather");
    TRY(ops->status(&err_));
    TRY(ranks_all_reduce(
        p, (1 << 20) + 1,
        &err_)); /* more than the replacement accepts: reported by status, like any operation */
    need(ops->status(&err) &&
             strstr(err.text,
                    "NCCL's all-reduce: invalid argument (4): the stand-in takes 4 MiB at most"),
         "the failure");
    ops->release(p);
    TRY(ranks_finish(&err_));
}

static void test_ranks(void **state)
{
    (void)state;
    setenv("TEST_GPUS", "3", 1);
    for (int n = 2; n <= 4; n++) { /* 4: one more rank than GPUs */
        int status = -1;
        fflush(NULL);
        pid_t pid = fork();
        if (!pid) {
            log_open("ranks");
            setenv("CUDA_HOME", toolkit, 1); /* the folder of its NCCL */
            collectives(n);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (n < 4)
            assert_int_equal(WEXITSTATUS(status), 0);
        else
            assert_int_not_equal(WEXITSTATUS(status), 0);
    }
    unsetenv("TEST_GPUS");
}

/* ---- over the replacement of libcuda ---- */

static const Ops *gpu;

static void refused(const char *name, const char *want)
{
    const Ops *none;
    Error err = {0};
    assert_int_equal(model_device(name, &none, &err), -1);
    if (!strstr(err.text, want)) fail_msg("expected '%s' in: %s", want, err.text);
}

static void test_names(void **state)
{
    (void)state;
    Error err;
    const Ops *other;
    refused("gpu", "a device is cpu, cuda:N or auto, found \"gpu\"");
    refused("cuda:", "expected \"cuda:N\"");
    refused("cuda:-1", "expected \"cuda:N\"");
    refused("cuda:1x", "expected \"cuda:N\"");
    refused("cuda:99999999999999999999", "expected \"cuda:N\"");
    refused("cuda:7", "cuda:7: there is no such GPU");
    assert_int_equal(model_device("cpu", &other, &err), 0);
    assert_ptr_equal(other, ops_cpu());
    double start = clock_seconds();
    if (model_device("cuda:0", &gpu, &err)) fail_msg("%s", err.text);
    printf("# opened with a full cache in %.3f s\n", clock_seconds() - start);
    assert_string_equal(gpu->name, "cuda:0");
    assert_int_equal(gpu->num, 2);
    refused("cuda:1", "this process computes on cuda:0");
    if (model_device("cuda:0", &other, &err)) fail_msg("%s", err.text);
    assert_ptr_equal(other, gpu);
}

static void test_table(void **state)
{
    (void)state;
#define X(member) assert_true(gpu->member != NULL);
    /* clang-format off */
    X(alloc) X(release) X(copy) X(zero) X(upload) X(download) X(load) X(store) X(status)
    X(memory) X(gemm) X(bias_grad) X(add) X(rmsnorm) X(rmsnorm_grad) X(head_norm)
    X(head_norm_grad) X(rope) X(attention) X(attention_grad) X(swiglu) X(swiglu_grad) X(embed)
    X(embed_grad) X(cross_entropy) X(cross_entropy_grad) X(sum_squares) X(adamw)
    /* clang-format on */
#undef X
}

static void test_memory(void **state)
{
    (void)state;
    enum { N = 40000003 }; /* more than the pinned buffer */
    Error err;
    unsigned char *host = malloc(N), *back = malloc(N), *p = gpu->alloc(N);
    for (size_t i = 0; i < N; i++) host[i] = (unsigned char)(i * 2654435761u >> 13);
    gpu->download(back, p, N);
    for (size_t i = 0; i < N; i++) assert_int_equal(back[i], 0);
    gpu->upload(p, host, N);
    gpu->zero(p + 5, 100);
    gpu->copy(p + 1000, p, 500);
    gpu->download(back, p, N);
    memset(host + 5, 0, 100);
    memcpy(host + 1000, host, 500);
    assert_memory_equal(back, host, N);
    float *numbers = malloc(5000001 * sizeof(float)), *stored = malloc(5000001 * sizeof(float));
    for (size_t i = 0; i < 5000001; i++) numbers[i] = (float)(i % 7777) * 1.37f - 4000;
    gpu->load(p, numbers, 5000001);
    gpu->store(stored, p, 5000001);
    for (size_t i = 0; i < 5000001; i++)
        assert_true(stored[i] == bf16_to_float(float_to_bf16(numbers[i])));
    for (int i = 0; i < 1000; i++)
        gpu->upload(p + i * 3000, host + i, 2999); /* more than the buffer has slots */
    gpu->download(back, p, 3000000);
    for (int i = 0; i < 1000; i++) assert_memory_equal(back + i * 3000, host + i, 2999);
    gpu->release(p);
    gpu->release(NULL);
    if (gpu->status(&err)) fail_msg("%s", err.text);
    free(host), free(back), free(numbers), free(stored);
}

/* The first failure is kept, nothing runs after it, and `status` clears it. */
static void test_failures(void **state)
{
    (void)state;
    Error err = {0};
    float four = 4, got = 1;
    float *p = gpu->alloc(4);
    gpu->upload(p, &four, 4);
    assert_null(gpu->alloc((size_t)1 << 50));
    assert_null(gpu->alloc(16));
    cuda_launch((CudaKernel)0, (Dim3){1, 1, 1}, (Dim3){4096, 1, 1}, 0, NULL);
    gpu->download(&got, p, 4);
    assert_true(got == 0); /* not the previous contents */
    assert_int_equal(gpu->status(&err), -1);
    if (!strstr(err.text, "memory is full: 1073741824.0 MiB more are needed"))
        fail_msg("%s", err.text);
    if (gpu->status(&err)) fail_msg("%s", err.text);
    gpu->download(&got, p, 4);
    assert_true(got == 4);
    cuda_launch((CudaKernel)0, (Dim3){1, 1, 1}, (Dim3){4096, 1, 1}, 0, NULL);
    assert_int_equal(gpu->status(&err), -1);
    if (!strstr(err.text, "(1 x 1 x 1 blocks of 4096 x 1 x 1, 0 bytes) did not start"))
        fail_msg("%s", err.text);
    cuda_launch((CudaKernel)0, (Dim3){1, 1, 1}, (Dim3){32, 1, 1}, 300 << 10, NULL);
    assert_int_equal(gpu->status(&err), -1);
    if (!strstr(err.text, "may not have 307200 bytes of shared memory")) fail_msg("%s", err.text);
    cuda_launch((CudaKernel)0, (Dim3){0, 1, 1}, (Dim3){4096, 1, 1}, 0,
                NULL); /* an empty grid launches nothing */
    if (gpu->status(&err)) fail_msg("%s", err.text);
    gpu->release(p);
}

static void test_scratch(void **state)
{
    (void)state;
    Error err;
    char *first = cuda_scratch(1000), *same = cuda_scratch(1000000);
    assert_non_null(first);
    assert_ptr_equal(first, same);
    char *large = cuda_scratch(50000000);
    assert_non_null(large);
    memset(large, 1, 50000000); /* the memory of the replacement is host memory */
    assert_ptr_equal(cuda_scratch(7), large);
    if (gpu->status(&err)) fail_msg("%s", err.text);
}

/* Another process asks for the exclusive lock: it gets it between launches, and they wait until it
 * releases it. */
static void test_lock(void **state)
{
    (void)state;
    Error err;
    Gpu info;
    int status = -1, ready[2];
    char byte;
    assert_int_equal(gpus_get(cuda_driver(NULL), 0, &info, &err), 0);
    assert_int_equal(pipe(ready), 0);
    cuda_launch((CudaKernel)0, (Dim3){1, 1, 1}, (Dim3){32, 1, 1}, 0,
                NULL); /* from here on the lock is shared */
    pid_t pid = fork();
    if (!pid) {
        GpuLock *l;
        if (lock_open(info.uuid, &l, NULL) || write(ready[1], "", 1) != 1 ||
            lock_exclusive(l, 200, NULL))
            _exit(1);
        clock_sleep(0.2);
        lock_close(l);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    double start = clock_seconds(), longest = 0;
    while (!waitpid(pid, &status, WNOHANG) && clock_seconds() < start + 300) {
        double before = clock_seconds();
        cuda_launch((CudaKernel)0, (Dim3){1, 1, 1}, (Dim3){32, 1, 1}, 0, NULL);
        double elapsed = clock_seconds() - before;
        if (elapsed > longest) longest = elapsed;
    }
    assert_int_equal(status, 0);
    assert_true(longest > 0.15);
    GpuLock *l;
    assert_int_equal(lock_open(info.uuid, &l, &err), 0);
    assert_int_equal(lock_exclusive(l, 0.05, &err), -1); /* still shared here */
    if (gpu->status(&err)) fail_msg("%s", err.text);
    assert_int_equal(lock_exclusive(l, 0.05, &err), 0); /* released by the wait */
    lock_close(l);
    close(ready[0]), close(ready[1]);
}

/* The last test: the context is lost permanently. */
static void test_fault(void **state)
{
    (void)state;
    Error err = {0};
    cuda_launch(KERNEL_add, (Dim3){1, 1, 1}, (Dim3){32, 1, 1}, 0, NULL);
    cuda_launch(KERNEL_spread_bias, (Dim3){1, 1, 1}, (Dim3){32, 1, 1}, 0,
                NULL); /* $TEST_ANY_KERNEL */
    assert_int_equal(gpu->status(&err), -1);
    if (!strstr(
            err.text,
            "work on the GPU failed; the last kernels launched were add, spread_bias: ERROR_700"))
        fail_msg("%s", err.text);
}

static int start(void **state)
{
    (void)state;
    char here[2000], path[2100];
    if (!getcwd(here, sizeof here)) return -1;
    snprintf(cache, sizeof cache, "%s/cache", here);
    snprintf(path, sizeof path, "%s/libcuda.so.1", here);
    setenv("QUERN_LOCK_DIR", here, 1);
    setenv("QUERN_CACHE", cache, 1);
    setenv("TEST_ANY_KERNEL", "spread_bias", 1);
    snprintf(toolkit, sizeof toolkit, "%s/toolkit", here);
    char *lib64 = memory_printf("%s/lib64", toolkit);
    int rc = fixture_build("driver.c", here, "libcuda.so.1") ||
                     fixture_build("nccl.c", lib64, "libnccl.so.2")
                 ? -1
                 : 0;
    free(lib64);
    return rc || !dlopen(path, RTLD_NOW) ? -1
                                         : 0; /* from here on the loader finds it by its name */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hopper),    cmocka_unit_test(test_ampere),
        cmocka_unit_test(test_blackwell), cmocka_unit_test(test_unknown_arch),
        cmocka_unit_test(test_cache),     cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_table),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_failures),
        cmocka_unit_test(test_scratch),   cmocka_unit_test(test_lock),
        cmocka_unit_test(test_fault),
    };
    Nvrtc *nvrtc;
    Error err;
    if (nvrtc_open(&nvrtc, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    snprintf(version, sizeof version, "%s", nvrtc_version(nvrtc));
    nvrtc_close(nvrtc);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, start, NULL);
}
