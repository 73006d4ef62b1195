#include "model/cuda/cuda_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/clock.h"
#include "gpu/gpus.h"
#include "gpu/lock.h"
#include "model/cuda/sources.h"

enum { RECENT = 4, SCRATCH_STEP = 2 << 20, PLAIN_SHARED = 48 << 10 };

/* An evaluator times for seconds, never for minutes; it is asked for every few milliseconds, which
 * costs one system call. */
static const double lock_wait_s = 900, lock_poll_s = 5e-3;

static const struct {
    const char *name;
    CudaSource source;
} kernels[] = {
#define X(source, kernel) {#kernel, SOURCE_##source},
    CUDA_KERNELS(X)
#undef X
        {NULL, 0}};

static struct {
    CudaState s;
    CuModule module[SOURCE_COUNT + 1];
    CuFunction function[KERNEL_COUNT + 1];
    size_t shared[KERNEL_COUNT + 1]; /* that a function was told it may have */
    CudaKernel recent[RECENT];       /* the last launches, for what a fault says */
    int launches;                    /* since the last wait, at most RECENT */
    int overlap;
    void *scratch;
    size_t scratch_bytes;
    GpuLock *lock;
    double polled;
    int failed;
    Error failure;
} cuda;

static _Thread_local int context_is_here;

const CudaState *cuda_state(void)
{
    return &cuda.s;
}

/* ---- failures ---- */

void cuda_fail_with(const Error *err)
{
    if (cuda.failed) return;
    cuda.failed = 1;
    error_set(&cuda.failure, ERROR_DEVICE, "%s", err->text);
}

void cuda_fail(CuResult r, const char *what)
{
    Error err;
    if (cuda_check(r, what, &err)) cuda_fail_with(&err);
}

int cuda_failed(void)
{
    return cuda.failed;
}

int cuda_take_failure(Error *err)
{
    if (!cuda.failed) return 0;
    cuda.failed = 0;
    error_set(err, ERROR_DEVICE, "%s: %s", "the GPU engine", cuda.failure.text);
    return 1;
}

/* Faults are told at the next wait: the last launches are all that is known. */
static void fail_with_launches(CuResult r)
{
    char what[400];
    int n = snprintf(what, sizeof what, "work on the GPU failed");
    for (int i = 0; i < cuda.launches; i++)
        n += snprintf(what + n, sizeof what - (size_t)n, "%s%s",
                      i ? ", " : "; the last kernels launched were ", kernels[cuda.recent[i]].name);
    cuda_fail(r, what);
}

/* ---- opening ---- */

static int attribute(const CudaDriver *cu, CuDevice d, int which, int *value, Error *err)
{
    return cuda_check(cu->device_attribute(value, which, d), "the GPU does not say what it has",
                      err);
}

static int load_kernels(const CudaDriver *cu, const CudaBinary *cubins, Error *err)
{
    char what[160];
    for (int s = 0; s < SOURCE_COUNT; s++) {
        snprintf(what, sizeof what, "the driver does not load %s", cuda_source_name((CudaSource)s));
        if (cuda_check(cu->module_load(&cuda.module[s], cubins[s].data), what, err)) return -1;
    }
    for (int k = 0; k < KERNEL_COUNT; k++) {
        snprintf(what, sizeof what, "%s has no kernel %s", cuda_source_name(kernels[k].source),
                 kernels[k].name);
        if (cuda_check(cu->module_function(&cuda.function[k], cuda.module[kernels[k].source],
                                           kernels[k].name),
                       what, err))
            return -1;
        cuda.shared[k] = PLAIN_SHARED;
    }
    return 0;
}

static int compile_and_load(const CudaDriver *cu, const char *arch, Error *err)
{
    char dir[4096];
    CudaBinary cubins[SOURCE_COUNT + 1] = {{NULL, 0}};
    int rc = cuda_compile(arch, cache_folder(dir, sizeof dir) ? NULL : dir, cubins, err);
    if (!rc) rc = load_kernels(cu, cubins, err);
    cuda_compile_release(cubins);
    return rc;
}

int cuda_open(int ordinal, Error *err)
{
    const CudaDriver *cu = cuda_driver(err);
    CudaState s = {.cu = cu, .ordinal = ordinal};
    int shared = 0;
    Gpu gpu;
    if (!cu || gpus_get(cu, ordinal, &gpu, err)) return -1;
    s.device = gpu.device;
    s.arch = atoi(gpu.arch + strlen("sm_"));
    if (s.arch < 80)
        return error_set(err, ERROR_DEVICE, "cuda:%d is a %s (%s); the engine needs sm_80 or later",
                         ordinal, gpu.name, gpu.arch);
    if (attribute(cu, s.device, CU_ATTRIBUTE_SMS, &s.sms, err) ||
        attribute(cu, s.device, CU_ATTRIBUTE_SHARED_OPTIN, &shared, err))
        return -1;
    s.shared_max = (size_t)shared;
    if (cuda_check(cu->primary_retain(&s.context, s.device), "the GPU gives no context", err) ||
        cuda_check(cu->context_set(s.context), "the GPU gives no context", err) ||
        cuda_check(cu->stream_create(&s.stream, CU_STREAM_NON_BLOCKING), "the GPU gives no stream",
                   err) ||
        lock_open(gpu.uuid, &cuda.lock, err) || compile_and_load(cu, gpu.arch, err))
        return -1;
    cuda.s = s;
    context_is_here = 1;
    return 0;
}

/* ---- the second stream ---- */

/* The driver takes the nearest priority that it has. How many blocks NCCL has is its own choice
 * (NCCL_MAX_CTAS in the environment makes them fewer): a product cut for every SM waits for its
 * last block, whether one or twenty were kept from their places, so that a short sum costs it less
 * than a narrow one. */
enum { FOREMOST = -100 };

static struct {
    CuStream stream;
    CuEvent event; /* of whichever stream is waited for; a wait keeps what was recorded before it */
    int apart;     /* something in `stream` that the engine's does not wait for */
} beside;

int cuda_beside_open(Error *err)
{
    const CudaDriver *cu = cuda.s.cu;
    if (cuda_begin()) return error_set(err, ERROR_DEVICE, "the GPU failed before the ranks met");
    CuResult r = cu->stream_create_first(&beside.stream, CU_STREAM_NON_BLOCKING, FOREMOST);
    if (cuda_check(r, "the GPU gives no second stream", err)) return -1;
    return cuda_check(cu->event_create(&beside.event, CU_EVENT_NO_TIMING),
                      "the driver gives no event", err);
}

void cuda_beside_close(void)
{
    cuda.s.cu->event_destroy(beside.event);
    cuda.s.cu->stream_destroy(beside.stream);
    beside.stream = NULL;
}

static void follow(CuStream later, CuStream first)
{
    CUDA_TRY(cuda.s.cu->event_record(beside.event, first),
             "one stream of the GPU cannot wait for another");
    CUDA_TRY(cuda.s.cu->stream_wait(later, beside.event, 0),
             "one stream of the GPU cannot wait for another");
}

CuStream cuda_beside(void)
{
    if (cuda_begin()) return NULL;
    follow(beside.stream, cuda.s.stream);
    beside.apart = 1;
    return cuda_failed() ? NULL : beside.stream;
}

void cuda_settle(void)
{
    if (!beside.apart) return;
    follow(cuda.s.stream, beside.stream);
    beside.apart = 0;
}

/* ---- the lock, and waiting ---- */

static int take_lock(void)
{
    Error err;
    if (lock_shared(cuda.lock, lock_wait_s, &err)) {
        cuda_fail_with(&err);
        return -1;
    }
    cuda.polled = clock_seconds();
    return 0;
}

static int synchronize(void)
{
    cuda_settle();
    CuResult r = cuda.s.cu->stream_synchronize(cuda.s.stream);
    if (r) fail_with_launches(r);
    cuda.launches = 0;
    return r ? -1 : 0;
}

/* Another process wants the GPU for itself: let it. Not while a graph is captured, which cannot
 * wait. */
static int give_way(void)
{
    int capturing = 0;
    if (cuda.s.cu->capture_status(cuda.s.stream, &capturing) || capturing) return 0;
    int rc = synchronize();
    lock_release(cuda.lock);
    return rc ? rc : take_lock();
}

int cuda_begin(void)
{
    if (cuda.failed) return -1;
    if (!context_is_here) {
        CUDA_TRY(cuda.s.cu->context_set(cuda.s.context),
                 "the GPU's context is not to be had in this thread");
        context_is_here = 1;
    }
    if (lock_held(cuda.lock) == GPU_FREE) return take_lock();
    double now = clock_seconds();
    if (now - cuda.polled < lock_poll_s) return 0;
    cuda.polled = now;
    return lock_is_contended(cuda.lock) ? give_way() : 0;
}

int cuda_wait(void)
{
    int rc = cuda.failed ? -1 : 0;
    if (lock_held(cuda.lock) == GPU_FREE) return rc; /* nothing was launched */
    if (synchronize()) rc = -1;
    lock_release(cuda.lock);
    return rc;
}

/* ---- launching ---- */

/* Above 48 KiB a kernel must be told what it may ask for. */
static int allow_shared(CudaKernel k, size_t shared)
{
    char what[200];
    if (shared <= cuda.shared[k]) return 0;
    snprintf(what, sizeof what, "kernel %s may not have %zu bytes of shared memory",
             kernels[k].name, shared);
    CUDA_TRY(cuda.s.cu->function_set(cuda.function[k], CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)shared),
             what);
    if (cuda.failed) return -1;
    cuda.shared[k] = shared;
    return 0;
}

void cuda_overlap(int on)
{
    cuda.overlap = on && cuda.s.arch >= 90;
}

void cuda_launch(CudaKernel k, Dim3 grid, Dim3 block, size_t shared, void **args)
{
    char what[200];
    CuLaunchAttribute early = {.id = CU_LAUNCH_PROGRAMMATIC, .value = {1}};
    CuLaunch launch = {{grid.x, grid.y, grid.z},
                       {block.x, block.y, block.z},
                       (unsigned)shared,
                       cuda.s.stream,
                       &early,
                       cuda.overlap ? 1 : 0};
    if (!grid.x || !grid.y || !grid.z || cuda_begin() || allow_shared(k, shared)) return;
    CuResult r = cuda.s.cu->launch_with(&launch, cuda.function[k], args, NULL);
    if (r) {
        snprintf(what, sizeof what,
                 "kernel %s (%u x %u x %u blocks of %u x %u x %u, %zu bytes) did not start",
                 kernels[k].name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
        cuda_fail(r, what);
        return;
    }
    if (cuda.launches == RECENT)
        memmove(cuda.recent, cuda.recent + 1, (RECENT - 1) * sizeof *cuda.recent);
    else
        cuda.launches++;
    cuda.recent[cuda.launches - 1] = k;
}

/* Only growing moves it: what was launched with the old address is waited for. */
void *cuda_scratch(size_t bytes)
{
    if (cuda.failed) return NULL;
    if (bytes <= cuda.scratch_bytes && cuda.scratch) return cuda.scratch;
    size_t rounded = (bytes + SCRATCH_STEP) / SCRATCH_STEP * SCRATCH_STEP;
    if (cuda_begin() || synchronize()) return NULL;
    cuda_device_free(cuda.scratch);
    cuda.scratch_bytes = 0;
    cuda.scratch = cuda_device_alloc(rounded);
    if (cuda.scratch) cuda.scratch_bytes = rounded;
    return cuda.scratch;
}
