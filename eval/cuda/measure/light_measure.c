/* Kernels that do one thing as fast as they can, in many shapes: the best rate counts. Each run is
 * limited in time, so that a GPU that hangs does not hang this process. */
#include "eval/cuda/measure/light_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "eval/cuda/measure/light_code.h"
#include "eval/cuda/measure/stall.h"

enum {
    WARM = 2,
    REPEATS = 8,
    VECTOR = 16,
    RUN_LIMIT_S = 20,
    LAUNCHES = 300,
    MANY_L2 = 8,
    WATCHES = 3,
    LEAST_LOAD_NS = 100
};
static const size_t largest = (size_t)2 << 30, least = (size_t)64 << 20, watched = (size_t)1 << 30;
static const double clocks_up_s =
    0.3; /* of work before the first measurement, which raises the clocks */

typedef struct {
    const CudaDriver *cu;
    const Gpu *gpu;
    Compiler *compiler;
    CuStream stream;
    CuEvent start, end;
    CuPtr from, to;
    size_t bytes; /* of each buffer; a power of two */
    int sms;
    double l2_bytes;
    CuModule module; /* of the current source */
} Bench;

static void drop_code(Bench *b)
{
    if (b->module) b->cu->module_unload(b->module);
    b->module = NULL;
}

/* Compile and load a source, and find its kernels. */
static int load_code(Bench *b, const char *arch, const LightCode *l, CuFunction *functions,
                     Error *err)
{
    CompileRequest request = {arch, l->source, strlen(l->source), l->n, l->names};
    CompileResult code;
    drop_code(b);
    int rc = compiler_run(b->compiler, &request, &code, err);
    if (!rc && !code.ok)
        rc =
            error_set(err, ERROR_COMPILER, "the kernels that measure do not compile for %s: %.600s",
                      arch, code.message);
    if (!rc)
        rc = cuda_check(b->cu->module_load(&b->module, code.cubin),
                        "the kernels that measure do not load", err);
    for (int i = 0; i < l->n && !rc; i++)
        rc = cuda_check(b->cu->module_function(&functions[i], b->module, code.lowered[i]),
                        "a kernel that measures is not there", err);
    compile_result_release(&code);
    return rc;
}

/* Wait for the event `end`, with a limit. */
static int await(Bench *b, const char *what, Error *err)
{
    double limit = clock_seconds() + RUN_LIMIT_S;
    for (;;) {
        CuResult r = b->cu->event_query(b->end);
        if (r != CU_NOT_READY) return cuda_check(r, what, err);
        if (clock_seconds() > limit)
            return error_set(err, ERROR_DEVICE, "%s: not done within %d s", what, RUN_LIMIT_S);
    }
}

typedef struct {
    CuFunction function;
    unsigned grid, block;
    void **params;
} Work;

static int run_once(Bench *b, const Work *w, double *us, Error *err)
{
    static const char what[] = "a kernel that measures the speed of light";
    float ms = 0;
    if (cuda_check(b->cu->event_record(b->start, b->stream), what, err) ||
        cuda_check(b->cu->launch(w->function, w->grid, 1, 1, w->block, 1, 1, 0, b->stream,
                                 w->params, NULL),
                   what, err) ||
        cuda_check(b->cu->event_record(b->end, b->stream), what, err) || await(b, what, err) ||
        cuda_check(b->cu->event_elapsed(&ms, b->start, b->end), what, err))
        return -1;
    *us = 1e3 * ms;
    return 0;
}

/* Raise *best to `amount` / the least time of some runs, when that is more. */
static int improve(Bench *b, const Work *w, double amount, double *best, Error *err)
{
    double us, least_us = INFINITY;
    for (int i = 0; i < WARM + REPEATS; i++) {
        if (run_once(b, w, &us, err)) return -1;
        if (i >= WARM && us < least_us) least_us = us;
    }
    if (!(least_us > 0))
        return error_set(err, ERROR_DEVICE, "%s: a kernel took no time", b->gpu->name);
    double rate = amount / (least_us * 1e-6);
    if (rate > *best) *best = rate;
    return 0;
}

/* ---- memory ---- */

static const unsigned blocks[] = {256, 512, 1024};

static int fill_both(Bench *b, CuFunction fill, Error *err)
{
    double us;
    unsigned long long n = b->bytes / VECTOR;
    CuPtr p[] = {b->from, b->to};
    for (int i = 0; i < 2; i++) {
        void *params[] = {&p[i], &n};
        if (run_once(b, &(Work){fill, (unsigned)b->sms * 4, 512, params}, &us, err)) return -1;
    }
    return 0;
}

/* One kernel over buffers of some sizes, with one block per tile and with grids that fill the SMs
 * once or twice. */
static int stream(Bench *b, CuFunction f, int vectors, double per_byte, double *best, Error *err)
{
    for (size_t bytes = b->bytes; bytes >= b->bytes / 2 && (double)bytes >= MANY_L2 * b->l2_bytes;
         bytes /= 2)
        for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
            unsigned long long tiles = bytes / VECTOR / blocks[k] / (unsigned)vectors;
            void *params[] = {&b->from, &b->to, &tiles};
            for (int grid = 0; grid < 3; grid++) {
                unsigned resident = (unsigned)b->sms * (2048 / blocks[k]) * (unsigned)grid;
                Work w = {f, grid ? resident : (unsigned)tiles, blocks[k], params};
                if (improve(b, &w, per_byte * (double)bytes, best, err)) return -1;
            }
        }
    return 0;
}

static int launch_overhead(Bench *b, CuFunction nothing, double *least_us, Error *err)
{
    double us;
    *least_us = INFINITY;
    for (int i = 0; i < LAUNCHES; i++) {
        if (run_once(b, &(Work){nothing, 1, 32, NULL}, &us, err)) return -1;
        if (us < *least_us) *least_us = us;
    }
    return 0;
}

/* Load words that are far apart, from more memory than fits the L2: consecutive words would hide
 * most stalls. */
static int find_stalls(Bench *b, CuFunction f, double *stall_period_us, Error *err)
{
    double us;
    uint64_t *done = memory_array(STALL_LOADS, sizeof *done);
    unsigned words = (unsigned)((b->bytes < watched ? b->bytes : watched) / 4), jump = 0,
             loads = STALL_LOADS;
    void *params[] = {&b->from, &words, &jump, &loads, &b->to};
    int rc = 0;
    *stall_period_us = 0;
    for (int i = 0; i < WATCHES && !rc && !*stall_period_us; i++) {
        /* Other words each time, since the L2 holds those of the last time. */
        jump = words / 1000 * (618 - 100 * (unsigned)i) | 1;
        rc = run_once(b, &(Work){f, 1, 1, params}, &us, err) ||
             cuda_check(
                 b->cu->copy_to_host_async(done, b->to, STALL_LOADS * sizeof *done, b->stream),
                 "a copy of times", err) ||
             cuda_check(b->cu->event_record(b->end, b->stream), "a copy of times", err) ||
             await(b, "a copy of times", err);
        if (!rc && done[STALL_LOADS - 1] - done[0] < STALL_LOADS * LEAST_LOAD_NS)
            rc =
                error_set(err, ERROR_DEVICE,
                          "%d loads from far apart in memory are said to have taken %.1f us in all",
                          STALL_LOADS, 1e-3 * (double)(done[STALL_LOADS - 1] - done[0]));
        if (!rc) *stall_period_us = 1e-3 * stall_period(done, STALL_LOADS);
    }
    free(done);
    return rc ? -1 : 0;
}

static int memory(Bench *b, Light *out, Error *err)
{
    CuFunction f[LIGHT_N_MEMORY];
    double us = 0;
    if (load_code(b, b->gpu->arch, &light_memory, f, err) || fill_both(b, f[LIGHT_FILL], err))
        return -1;
    for (double end = clock_seconds() + clocks_up_s; clock_seconds() < end;)
        if (fill_both(b, f[LIGHT_FILL], err)) return -1;
    for (int wide = 0; wide < 2; wide++) {
        int vectors = wide ? 8 : 4;
        if (stream(b, f[LIGHT_READ4 + wide], vectors, 1, &out->dram_bytes_per_s, err) ||
            stream(b, f[LIGHT_COPY4 + wide], vectors, 2, &out->dram_bytes_per_s, err) ||
            stream(b, f[LIGHT_WRITE4 + wide], vectors, 1, &out->dram_bytes_per_s, err))
            return -1;
    }
    if (launch_overhead(b, f[LIGHT_NOTHING], &us, err)) return -1;
    out->launch_us = us;
    return find_stalls(b, f[LIGHT_WATCH], &out->stall_period_us, err);
}

/* ---- arithmetic ---- */

/* A kernel that repeats an operation. */
typedef struct {
    CuFunction f;
    unsigned block; /* threads */
    int most;       /* blocks per SM */
    void **params;
    double flops; /* of a block, all rounds */
} Loop;

/* Grids of 1 to l->most blocks per SM, long enough that the launch does not count. */
static int compute(Bench *b, const Loop *l, double *best, Error *err)
{
    for (int each = 1; each <= l->most; each *= 2) {
        Work w = {l->f, (unsigned)(b->sms * each), l->block, l->params};
        if (improve(b, &w, l->flops * w.grid, best, err)) return -1;
    }
    return 0;
}

static int arithmetic(Bench *b, Light *out, Error *err)
{
    CuFunction f;
    float a = 0.999f, c = 0.001f;
    int rounds = 4096;
    void *params[] = {&b->to, &a, &c, &rounds};
    static const double flops = 2.0 * 8 * 16;
    if (load_code(b, b->gpu->arch, &light_arithmetic, &f, err)) return -1;
    for (unsigned block = 256; block <= 1024; block *= 2) {
        const Loop l = {f, block, 8, params, flops * block * rounds};
        if (compute(b, &l, &out->fp32_flops, err)) return -1;
    }
    return 0;
}

/* Kernels for fp16, bf16 and tf32, in this order. */
typedef struct {
    const char *arch;
    const LightCode *code;
    unsigned block; /* threads */
    int rounds;
    double flops16, flops32; /* of a block in a round, with 16 bits and with tf32 */
} TensorKernels;

static int tensor(Bench *b, const TensorKernels *k, Light *out, Error *err)
{
    CuFunction f[3];
    unsigned seed = 1;
    int rounds = k->rounds;
    void *params[] = {&b->to, &seed, &rounds};
    if (load_code(b, k->arch, k->code, f, err)) return -1;
    for (int i = 0; i < 3; i++) {
        int tf32 = i == 2;
        const Loop l = {f[i], k->block, 8, params, (tf32 ? k->flops32 : k->flops16) * rounds};
        if (compute(b, &l, tf32 ? &out->tf32_flops : &out->tensor16_flops, err)) return -1;
    }
    return 0;
}

/* The flops are those of a product, times the accumulators and the warps or groups. */
static int tensors(Bench *b, int arch, Light *out, Error *err)
{
    const TensorKernels warp = {b->gpu->arch, &light_warp,    256,
                                1024,         8 * 8 * 4096.0, 8 * 8 * 2048.0},
                        group = {"sm_90",
                                 &light_group,
                                 128,
                                 512,
                                 16 * 2 * 64 * 128 * 16.0,
                                 16 * 2 * 64 * 128 * 8.0};
    if (arch >= 80 && tensor(b, &warp, out, err)) return -1;
    return arch == 90 ? tensor(b, &group, out, err) : 0;
}

/* ---- all of it ---- */

static int prepare(Bench *b, const Light *bounds, Error *err)
{
    size_t free_bytes = 0, total = 0;
    if (cuda_check(b->cu->memory_info(&free_bytes, &total),
                   "a GPU does not say how much memory is free", err))
        return -1;
    for (b->bytes = largest; b->bytes > free_bytes / 4; b->bytes /= 2) continue;
    b->l2_bytes = bounds->l2_bytes;
    if (b->bytes < least || (double)b->bytes < MANY_L2 * b->l2_bytes)
        return error_set(err, ERROR_MEMORY,
                         "%s has %zu MiB of memory free, too few to measure its speed",
                         b->gpu->name, free_bytes >> 20);
    return cuda_check(b->cu->memory_alloc(&b->from, b->bytes), "no memory to measure with", err) ||
                   cuda_check(b->cu->memory_alloc(&b->to, b->bytes), "no memory to measure with",
                              err) ||
                   cuda_check(b->cu->stream_create(&b->stream, CU_STREAM_NON_BLOCKING),
                              "no stream to measure with", err) ||
                   cuda_check(b->cu->event_create(&b->start, 0), "no event to measure with", err) ||
                   cuda_check(b->cu->event_create(&b->end, 0), "no event to measure with", err)
               ? -1
               : 0;
}

static void clean_up(Bench *b)
{
    drop_code(b);
    if (b->end) b->cu->event_destroy(b->end);
    if (b->start) b->cu->event_destroy(b->start);
    if (b->stream) b->cu->stream_destroy(b->stream);
    if (b->to) b->cu->memory_free(b->to);
    if (b->from) b->cu->memory_free(b->from);
}

int light_measure(const CudaDriver *cu, const Gpu *gpu, Compiler *compiler, Light *out, Error *err)
{
    Bench b = {.cu = cu, .gpu = gpu, .compiler = compiler};
    Light bounds;
    int major = 0, minor = 0;
    if (light_bounds(cu, gpu, &bounds, err) ||
        cuda_check(cu->device_attribute(&b.sms, CU_ATTRIBUTE_SMS, gpu->device),
                   "a GPU does not say an attribute", err) ||
        cuda_check(cu->device_attribute(&major, CU_ATTRIBUTE_MAJOR, gpu->device),
                   "a GPU does not say an attribute", err) ||
        cuda_check(cu->device_attribute(&minor, CU_ATTRIBUTE_MINOR, gpu->device),
                   "a GPU does not say an attribute", err))
        return -1;
    *out = (Light){.l2_bytes = bounds.l2_bytes};
    memcpy(out->uuid, bounds.uuid, sizeof out->uuid);
    memcpy(out->device, bounds.device, sizeof out->device);
    memcpy(out->driver, bounds.driver, sizeof out->driver);
    int rc = prepare(&b, &bounds, err) || memory(&b, out, err) || arithmetic(&b, out, err) ||
             tensors(&b, 10 * major + minor, out, err);
    clean_up(&b);
    return rc ? -1 : 0;
}
