/* One context, one stream and one kept failure per process. The shared lock of the GPU is held from
 * the first launch to the next wait. */
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

/* An evaluator measures for seconds, never for minutes. Polling the lock costs one system call. */
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
    size_t shared[KERNEL_COUNT + 1]; /* dynamic shared memory that each kernel may use */
    CudaKernel recent[RECENT];       /* the last launches, for messages about faults */
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
    cuda.failure = *err;
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
    error_set(err, cuda.failure.code, "the GPU engine: %s", cuda.failure.text);
    return 1;
}

/* A fault is reported by the next wait, so only the last launches can be named. */
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

/* The driver takes the nearest priority that it supports. NCCL chooses the number of its blocks
 * (NCCL_MAX_CTAS reduces it). A product with one block per SM waits for its last block, whether one
 * or twenty blocks are delayed; a short sum with many blocks therefore delays it less than a long
 * sum with few. */
enum { HIGHEST_PRIORITY = -100 };

static struct {
    CuStream stream;
    CuEvent event; /* of the stream that is waited for; a wait keeps the work recorded before it */
    int unsettled; /* `stream` has work that the engine's stream does not wait for */
} second;

int cuda_second_open(Error *err)
{
    const CudaDriver *cu = cuda.s.cu;
    if (cuda_begin()) return error_set(err, ERROR_DEVICE, "the GPU failed before the ranks met");
    CuResult r = cu->stream_create_first(&second.stream, CU_STREAM_NON_BLOCKING, HIGHEST_PRIORITY);
    if (cuda_check(r, "the GPU gives no second stream", err)) return -1;
    return cuda_check(cu->event_create(&second.event, CU_EVENT_NO_TIMING),
                      "the driver gives no event", err);
}

void cuda_second_close(void)
{
    cuda.s.cu->event_destroy(second.event);
    cuda.s.cu->stream_destroy(second.stream);
    second.stream = NULL;
}

static void follow(CuStream later, CuStream first)
{
    CUDA_TRY(cuda.s.cu->event_record(second.event, first),
             "one stream of the GPU cannot wait for another");
    CUDA_TRY(cuda.s.cu->stream_wait(later, second.event, 0),
             "one stream of the GPU cannot wait for another");
}

CuStream cuda_second_stream(void)
{
    if (cuda_begin()) return NULL;
    follow(second.stream, cuda.s.stream);
    second.unsettled = 1;
    return cuda_failed() ? NULL : second.stream;
}

void cuda_settle(void)
{
    if (!second.unsettled) return;
    follow(cuda.s.stream, second.stream);
    second.unsettled = 0;
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

/* Let another process have the GPU for itself. Not during the capture of a graph, which cannot
 * wait. */
static int yield_lock(void)
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
    return lock_is_contended(cuda.lock) ? yield_lock() : 0;
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

/* Allow a kernel more than 48 KiB of shared memory. */
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

/* The address changes only when the scratch grows, after a wait for the work that uses the old
 * one. */
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
