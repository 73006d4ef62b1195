/* The engine's CUDA kernels and their launchers on the simulator. A test program that includes this
 * file defines the functions of model/cuda/cuda_state.h, and the transfers of table.h that
 * launchers call, by means of the simulator. It calls cuda_rmsnorm() and the other launchers as the
 * engine does, with pointers of engine_new(), or launches a kernel by its name. Every fault of the
 * simulator (out of bounds, read before written, race, misaligned) fails the test. One test program
 * includes it once.
 *
 *    engine_start("sm_90");
 *    void *x = engine_bf16("x", values, n), *y = engine_new("y", NULL, n * 2);
 *    cuda_rmsnorm(y, x, ...);                                          launchers, or
 *    engine_launch("norm", "rmsnorm", (Dim3){2, 1, 1}, (Dim3){32, 1, 1}, 0,
 *                  (void *[]){&y, &x, ...});
 *    engine_floats(y, out, n);
 *    engine_stop();                                                    releases everything */
#ifndef TESTS_ENGINE_SUPPORT_H
#define TESTS_ENGINE_SUPPORT_H

#include "tests/unit/eval/sim/sim_support.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "gpu/nvrtc.h"
#include "model/cuda/cuda_state.h"
#include "model/cuda/table.h"
#include "tests/fixture_path.h"
#include "tests/unit/eval/engine/engine_ptx.h"

static struct {
    Sim sim;
    char arch[16];
    struct {
        char source[32];
        DeviceModule *m;
    } modules[32];
    int n_modules;
    void *scratch;
    CudaState state;
} engine;

/* arch: "sm_90" or "sm_80", the target of the compilation. The simulated GPU is an H100. */
static inline void engine_start(const char *arch)
{
    memset(&engine, 0, sizeof engine);
    snprintf(engine.arch, sizeof engine.arch, "%s", arch);
    if (ops->open("h100", &engine.sim.d, &engine.sim.err)) fail_msg("%s", engine.sim.err.text);
    const DeviceInfo *info = ops->info(engine.sim.d);
    engine.state = (CudaState){
        .sms = info->sm_count, .arch = atoi(arch + 3), .shared_max = info->max_shared_per_block};
    sim_set_limit(engine.sim.d, (int64_t)1 << 34);
}

static inline void engine_stop(void)
{
    if (ops->check_guards(engine.sim.d, &engine.sim.fault))
        fail_msg("%s", engine.sim.fault.message);
    ops->close(engine.sim.d);
    memset(&engine, 0, sizeof engine);
}

/* Setup and teardown of a cmocka test. */
static inline int engine_setup(void **state)
{
    (void)state;
    engine_start("sm_90");
    return 0;
}

static inline int engine_setup_sm_80(void **state)
{
    (void)state;
    engine_start("sm_80");
    return 0;
}

static inline int engine_teardown(void **state)
{
    (void)state;
    engine_stop();
    return 0;
}

/* Allocate exactly `bytes` of device memory, aligned to 256. data NULL: undefined, and reading it
 * before it is written is a fault. Faults name the label. */
static inline void *engine_new(const char *label, const void *data, size_t bytes)
{
    return (void *)(uintptr_t)sim_buffer(&engine.sim, label, data, bytes);
}

static inline void engine_free(void *p)
{
    ops->free(engine.sim.d, (DevicePtr)(uintptr_t)p);
}

static inline void engine_get(const void *p, void *data, size_t bytes)
{
    sim_read(&engine.sim, (DevicePtr)(uintptr_t)p, data, bytes);
}

/* ---- bf16 on the host ---- */

static inline uint16_t bf16_from(double v)
{
    float f = (float)v;
    uint32_t b;
    memcpy(&b, &f, 4);
    return (uint16_t)(f != f ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16);
}

static inline float bf16_to(uint16_t h)
{
    uint32_t b = (uint32_t)h << 16;
    float f;
    memcpy(&f, &b, 4);
    return f;
}

static inline float bf16_round(double v)
{
    return bf16_to(bf16_from(v));
}

/* Round n values to bf16, in the array too, so that the reference computes with the kernel's
 * inputs. */
static inline void *engine_bf16(const char *label, float *values, size_t n)
{
    uint16_t *h = memory_array(n, sizeof *h);
    for (size_t i = 0; i < n; i++) {
        h[i] = bf16_from((double)values[i]);
        values[i] = bf16_to(h[i]);
    }
    void *p = engine_new(label, h, n * sizeof *h);
    free(h);
    return p;
}

/* Read n bf16 numbers of device memory as floats. */
static inline void engine_floats(const void *p, float *out, size_t n)
{
    uint16_t *h = memory_array(n, sizeof *h);
    engine_get(p, h, n * sizeof *h);
    for (size_t i = 0; i < n; i++) out[i] = bf16_to(h[i]);
    free(h);
}

/* Uniform in [-1, 1), the same on every machine. */
static inline float engine_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / 8388608.0 - 1);
}

/* n uniform numbers in [-size, size), which the caller frees. */
static inline float *engine_randoms(uint64_t *state, size_t n, float size)
{
    float *v = memory_array(n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = size * engine_random(state);
    return v;
}

/* Returns |got - want| / |want| of two vectors. */
static inline double engine_distance(const float *got, const double *want, size_t n)
{
    double d = 0, w = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        w += want[i] * want[i];
    }
    return w > 0 ? __builtin_sqrt(d / w) : d > 0 ? 1e30 : 0;
}

/* ---- kernels ---- */

static inline const char *engine_folder(const char *source)
{
    static const char *const of[][2] = {
#define X(folder, name) {#name, #folder},
        CUDA_SOURCES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!strcmp(of[i][0], source)) return of[i][1];
    fail_msg("%s is no source of the engine", source);
    return NULL;
}

/* With wgmma, as the engine. But gemv multiplies rows without a value, whose results it does not use: only
 * a module that follows values has no fault there. */
static inline char *engine_compile(const char *source, const Buffer *text)
{
    int plain = strcmp(engine.arch, "sm_90") || !strcmp(source, "gemv");
    const char *target = plain ? engine.arch : "sm_90a";
    const char *const folders[2] = {fixture_path("model/cuda"), fixture_path("model/cuda/decode")};
    const char *reason;
    char *ptx = engine_kept_ptx(engine.arch, text->data, text->len);
    if (ptx) return ptx;
    if (!(ptx = cuda_to_ptx_for((const char *)text->data, target, folders, &reason)))
        fail_msg("%s", reason);
    engine_keep_ptx(engine.arch, text->data, text->len, ptx);
    return ptx;
}

/* Returns the PTX of a source of model/cuda, compiled once per process. */
static inline const char *engine_ptx(const char *source)
{
    static struct {
        char key[48], *ptx;
    } done[64];
    static int n_done;
    char key[48], path[512];
    snprintf(key, sizeof key, "%s %s", source, engine.arch);
    for (int i = 0; i < n_done; i++)
        if (!strcmp(done[i].key, key)) return done[i].ptx;
    assert_in_range(n_done, 0, 63);
    Buffer text;
    Error err;
    snprintf(path, sizeof path, "%s/%s/%s.cu", fixture_path("model/cuda"), engine_folder(source),
             source);
    buffer_init(&text, (size_t)1 << 24);
    if (file_read(path, (size_t)1 << 24, &text, &err)) fail_msg("%s", err.text);
    char *ptx = engine_compile(source, &text);
    buffer_release(&text);
    memcpy(done[n_done].key, key, sizeof key);
    return done[n_done++].ptx = ptx;
}

static inline DeviceModule *engine_module(const char *source)
{
    for (int i = 0; i < engine.n_modules; i++)
        if (!strcmp(engine.modules[i].source, source)) return engine.modules[i].m;
    assert_in_range(engine.n_modules, 0, 31);
    const char *ptx = engine_ptx(source);
    DeviceCode code = {.ptx = ptx, .ptx_len = strlen(ptx)};
    DeviceModule *m = NULL;
    int r = ops->load(engine.sim.d, &code, 0, &m, &engine.sim.fault);
    if (r) fail_msg("%s.cu: %s", source, r > 0 ? engine.sim.fault.message : engine.sim.err.text);
    snprintf(engine.modules[engine.n_modules].source, sizeof engine.modules[0].source, "%s",
             source);
    engine.modules[engine.n_modules++].m = m;
    return m;
}

/* args: addresses of the arguments, as for cuLaunchKernel. */
static inline void engine_launch(const char *source, const char *kernel, Dim3 grid, Dim3 block,
                                 size_t shared, void **args)
{
    DeviceLaunch l = {.module = engine_module(source),
                      .kernel = kernel,
                      .shared_bytes = (uint32_t)shared,
                      .grid = {grid.x, grid.y, grid.z},
                      .block = {block.x, block.y, block.z}};
    KernelInfo info;
    if (ops->kernel(engine.sim.d, l.module, kernel, &info, &engine.sim.err))
        fail_msg("%s", engine.sim.err.text);
    for (int i = 0; i < info.n_params; i++)
        memcpy(l.params + info.params[i].offset, args[i], info.params[i].size);
    int r = ops->run(engine.sim.d, &l, 1, &engine.sim.fault);
    if (r) fail_msg("%s", r > 0 ? engine.sim.fault.message : engine.sim.err.text);
}

/* ---- model/cuda/cuda_state.h and the transfers of table.h, by the simulator ---- */

const CudaState *cuda_state(void)
{
    return &engine.state;
}

void cuda_launch(CudaKernel k, Dim3 grid, Dim3 block, size_t shared, void **args)
{
    static const char *const names[][2] = {
#define X(source, kernel) {#source, #kernel},
        CUDA_KERNELS(X)
#undef X
    };
    if (grid.x && grid.y && grid.z)
        engine_launch(names[k][0], names[k][1], grid, block, shared, args);
}

void *cuda_scratch(size_t bytes)
{
    if (engine.scratch) engine_free(engine.scratch);
    return engine.scratch = engine_new("scratch", NULL, bytes ? bytes : 1);
}

void cuda_fail(CuResult r, const char *what)
{
    fail_msg("%s failed: %d", what, r);
}
int cuda_failed(void)
{
    return 0;
}

void cuda_download(void *host, const void *from, size_t bytes)
{
    engine_get(from, host, bytes);
}

void cuda_upload(void *to, const void *host, size_t bytes)
{
    if (ops->write(engine.sim.d, (DevicePtr)(uintptr_t)to, host, bytes, &engine.sim.err))
        fail_msg("%s", engine.sim.err.text);
}

void cuda_zero(void *p, size_t bytes)
{
    void *zeros = memory_array(bytes + 1, 1);
    cuda_upload(p, zeros, bytes);
    free(zeros);
}

void cuda_copy(void *to, const void *from, size_t bytes)
{
    void *between = memory_array(bytes + 1, 1);
    engine_get(from, between, bytes);
    cuda_upload(to, between, bytes);
    free(between);
}

#endif
