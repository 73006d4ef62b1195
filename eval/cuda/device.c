/* The device "cuda:N": a GPU through the driver API. Candidates run in a runner process
 * (quern-cudarunner), which sees only the buffers; baselines run in a second one. Everything else
 * runs in the harness's context in this process. Every operation that gives the GPU work holds the
 * shared side of the GPU's lock until that work has ended. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/cuda/buffers.h"
#include "eval/cuda/cuda_device.h"
#include "eval/cuda/guards.h"
#include "eval/cuda/launches.h"
#include "eval/cuda/measure/light.h"
#include "eval/cuda/modules.h"
#include "gpu/gpus.h"

enum { LOCK_S = 600 };
static const uint64_t least_arena = (uint64_t)256 << 20;

/* ---- the timing lock ---- */

/* Make the harness's context current and take the shared side of the lock, waiting while another
 * process times. */
static int enter(Device *d, Error *err)
{
    trusted_enter(&d->trusted);
    if (lock_held(d->lock) != GPU_FREE) return 0;
    if (lock_shared(d->lock, LOCK_S, err)) return -1;
    d->sharing = 1;
    return 0;
}

/* Release the shared side unless work is still enqueued, or a process that was killed still ends. Returns
 * rc. */
static int leave(Device *d, int rc)
{
    if (d->sharing && !d->trusted.busy && cudarunner_reaped(&d->remotes[HOME_LIBRARY].runner)) {
        lock_release(d->lock);
        d->sharing = 0;
    }
    return rc;
}

static int cuda_lock(Device *d, double *idle_s, Error *err)
{
    trusted_enter(&d->trusted);
    if (trusted_settle(&d->trusted, err) || cudarunner_reap(&d->remotes[HOME_LIBRARY].runner, err))
        return -1;
    leave(d, 0);
    if (!idle_s) {
        lock_release(d->lock);
        return 0;
    }
    if (lock_exclusive(d->lock, LOCK_S, err)) return -1;
    *idle_s = lock_idle_s(d->lock);
    return 0;
}

/* ---- open and close ---- */

static void cuda_close(Device *d)
{
    if (!d) return;
    log_debug("device closes");
    /* A context takes long to destroy: all end at the same time. */
    for (int home = 0; home < HOMES; home++) cudarunner_kill_all(&d->remotes[home].runner);
    if (d->trusted.executor.context) trusted_enter(&d->trusted);
    modules_close(d);
    health_close(d->health);
    buffers_close(d);
    log_debug("buffers gone");
    trusted_close(&d->trusted);
    log_debug("context gone");
    for (int home = 0; home < HOMES; home++) cudarunner_close(&d->remotes[home].runner);
    log_debug("runner gone");
    lock_close(d->lock);
    free(d->cubin);
    free(d);
}

static void take_light(DeviceInfo *i, const Light *l)
{
    for (int k = 0; k < 4; k++) i->light_flops_per_s[k] = light_flops(l, (Dtype)k);
    i->light_tf32_flops_per_s = l->tf32_flops;
}

/* The speed of light, which no honest kernel exceeds: the greater of the chip's theoretical bound
 * and the measured ceiling. */
static int find_light(Device *d, const CudaDriver *cu, const Gpu *gpu, Error *err)
{
    Light bound, measured;
    DeviceInfo *i = &d->info;
    if (light_bounds(cu, gpu, &bound, err)) return -1;
    i->dram_bytes_per_s = bound.dram_bytes_per_s;
    i->flops_per_s = light_flops(&bound, DTYPE_F16);
    i->l2_bytes = bound.l2_bytes;
    take_light(i, &bound);
    if (!light_find(gpu, i->driver, &measured)) return 0;
    i->dram_bytes_per_s = fmax(i->dram_bytes_per_s, measured.dram_bytes_per_s);
    i->flops_per_s = fmax(i->flops_per_s, light_flops(&measured, DTYPE_F16));
    i->launch_us = measured.launch_us;
    i->light_bytes_per_s = measured.dram_bytes_per_s;
    d->stall_ns = (uint32_t)fmin(nearbyint(1e3 * measured.stall_period_us), PROTOCOL_MAX_WAIT_NS);
    take_light(i, &measured);
    return 0;
}

static int describe(Device *d, const CudaDriver *cu, const Gpu *gpu, Error *err)
{
    DeviceInfo *i = &d->info;
    int optin = 0;
    snprintf(i->device_class, sizeof i->device_class, "%s", gpu->name);
    snprintf(i->name, sizeof i->name, "%s", gpu->name);
    snprintf(i->arch, sizeof i->arch, "%s", gpu->arch);
    snprintf(i->uuid, sizeof i->uuid, "%s", gpu->uuid);
    gpus_driver(cu, i->driver, sizeof i->driver);
    if (cuda_check(cu->device_attribute(&optin, CU_ATTRIBUTE_SHARED_OPTIN, gpu->device),
                   "the device's attributes", err))
        return -1;
    i->sm_count = d->trusted.sms;
    i->max_threads_per_block = d->trusted.executor.max_threads;
    i->max_shared_per_block = (size_t)optin;
    i->max_local_per_thread = d->trusted.shares.local;
    i->contents_bytes = d->trusted.shares.kept;
    i->total_bytes = d->trusted.total_bytes;
    return find_light(d, cu, gpu, err);
}

/* Reserve addresses for all that buffers may take; memory is mapped when it is needed. */
static int open_arena(Device *d, const CudaDriver *cu, Error *err)
{
    arena_init(&d->arena, d->trusted.shares.buffers);
    if (d->arena.limit < least_arena)
        return error_set(err, ERROR_MEMORY,
                         "too little of the GPU's memory is free: %llu MiB for buffers, of at "
                         "least %llu",
                         (unsigned long long)d->arena.limit >> 20,
                         (unsigned long long)least_arena >> 20);
    d->info.buffers_bytes = d->arena.limit;
    d->info.memory_bytes = d->trusted.shares.plan;
    return space_open(&d->space, cu, d->trusted.executor.device, d->arena.limit, err);
}

static int open_parts(Device *d, int ordinal, Harness *harness, Error *err)
{
    Gpu gpu;
    const void *cubin;
    size_t cubin_len = 0;
    const CudaDriver *cu = cuda_driver(err);
    if (!cu || gpus_get(cu, ordinal, &gpu, err)) return -1;
    log_debug("driver started");
    harness_arch(harness, gpu.arch);
    if (trusted_open(&d->trusted, cu, ordinal, err)) return -1;
    log_debug("context created");
    if (open_arena(d, cu, err) || describe(d, cu, &gpu, err) || lock_open(gpu.uuid, &d->lock, err))
        return -1;
    log_debug("addresses reserved");
    if (harness_cubin(harness, &cubin, &cubin_len, err) || trusted_load(&d->trusted, cubin, err))
        return -1;
    log_debug("harness's kernels loaded");
    d->cubin = memory_alloc(cubin_len);
    d->cubin_len = cubin_len;
    memcpy(d->cubin, cubin, cubin_len);
    return health_open(cu, &gpu, cubin, &d->health, err);
}

/* Use one channel: all work is in one stream, and each channel makes a context slower to create. A
 * value that the user has set stays. To be called before there are threads. */
static void limit_channels(void)
{
    static const char *const names[] = {"CUDA_DEVICE_MAX_CONNECTIONS",
                                        "CUDA_DEVICE_MAX_COPY_CONNECTIONS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!getenv(names[i])) setenv(names[i], "1", 1);
}

/* The N of "cuda:N"; -1: not a number of a GPU. */
static int ordinal_of(const char *arg)
{
    char *end;
    long ordinal = strtol(arg, &end, 10);
    return *end || *arg < '0' || *arg > '9' || ordinal >= GPUS_MAX ? -1 : (int)ordinal;
}

static void cuda_use_only(const char *arg)
{
    gpus_use_only(ordinal_of(arg));
}

/* Three things start concurrently: the runners, each with its driver and context; the compiler of
 * the harness's kernels, unless the cache has them; and the driver and context of this process.
 * Three contexts at once take twice the time of one, which is less than one after another. */
static int cuda_open(const char *arg, Device **out, Error *err)
{
    static const char *const roles[HOMES] = {NULL, "trusted", "library"};
    Harness *harness = NULL;
    int number = ordinal_of(arg), ordinal = gpus_driver_ordinal(number);
    if (number < 0)
        return error_set(err, ERROR_UNKNOWN_NAME,
                         "device cuda:%s: expected the number of a GPU, from cuda:0 on", arg);
    if (ordinal < 0)
        return error_set(err, ERROR_INVALID, "device cuda:%s: this process has opened another GPU",
                         arg);
    limit_channels();
    Device *d = memory_alloc(sizeof *d);
    random_init(&d->copy_choice, (uint64_t)number, random_hash("copies", 6));
    for (int home = 0; home < HOMES; home++)
        d->remotes[home].runner = (CudaRunner){.fd = -1, .mailbox_fd = -1};
    int rc = 0;
    for (int home = 0; home < HOMES && !rc; home++)
        rc = cudarunner_open(&d->remotes[home].runner, ordinal, roles[home], err);
    for (int home = 0; home < HOMES && !rc; home++)
        if (home != HOME_LIBRARY) rc = cudarunner_start(&d->remotes[home].runner, err);
    log_debug("runner started");
    if (!rc) rc = harness_begin(arg, &harness, err);
    if (!rc) rc = open_parts(d, ordinal, harness, err);
    harness_end(harness);
    log_debug("canary loaded");
    if (rc) {
        cuda_close(d);
        return error_prefix(err, "device cuda:%s", arg);
    }
    *out = d;
    return 0;
}

static const DeviceInfo *cuda_info(Device *d)
{
    return &d->info;
}

/* ---- modules and buffers ---- */

static int cuda_load(Device *d, const DeviceCode *code, int home, DeviceModule **out, Fault *fault)
{
    if (enter(d, &fault->error)) return -1;
    return leave(d, module_load(d, code, home, out, fault));
}

static void cuda_unload(Device *d, DeviceModule *m)
{
    trusted_enter(&d->trusted);
    module_unload(d, m);
    leave(d, 0);
}

static int cuda_kernel(Device *d, DeviceModule *m, const char *lowered, KernelInfo *out, Error *err)
{
    trusted_enter(&d->trusted);
    if (m->trusted && module_present(d, m, err)) return -1;
    const ModuleKernel *k = module_kernel(d, m, lowered, err);
    if (!k) return -1;
    *out = k->info;
    return 0;
}

static int cuda_alloc(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err)
{
    if (enter(d, err)) return -1;
    return leave(d, buffers_alloc(d, bytes, label, out, err));
}

static int cuda_reserve(Device *d, const size_t *bytes, int n, Error *err)
{
    if (enter(d, err)) return -1;
    return leave(d, buffers_reserve(d, bytes, n, err));
}

static void cuda_free(Device *d, DevicePtr p)
{
    Error ignored; /* it frees without the lock too */
    enter(d, &ignored);
    buffers_free(d, p);
    leave(d, 0);
}

static int cuda_write(Device *d, DevicePtr p, const void *src, size_t bytes, Error *err)
{
    if (buffers_hold(d, p, bytes, err) || enter(d, err)) return -1;
    return leave(d, trusted_write(&d->trusted, p, src, bytes, err));
}

static int cuda_read(Device *d, DevicePtr p, void *dst, size_t bytes, Error *err)
{
    if (buffers_hold(d, p, bytes, err) || enter(d, err)) return -1;
    return leave(d, trusted_read(&d->trusted, p, dst, bytes, err));
}

static const ArenaBuffer *buffer_at(Device *d, DevicePtr p, Error *err)
{
    const ArenaBuffer *b = arena_at(&d->arena, p - d->space.base);
    if (!b) error_set(err, ERROR_INVALID, "no buffer starts at 0x%llx", (unsigned long long)p);
    return b;
}

static int cuda_poison(Device *d, DevicePtr p, Error *err)
{
    const ArenaBuffer *b = buffer_at(d, p, err);
    if (!b || enter(d, err)) return -1;
    return leave(d, trusted_poison(&d->trusted, p, b->bytes, err));
}

/* A GPU cannot make memory read-only for the kernels of one process: the caller compares the inputs
 * after every run instead. */
static int cuda_protect(Device *d, DevicePtr p, int read_only, Error *err)
{
    (void)read_only;
    return buffer_at(d, p, err) ? 0 : -1;
}

static int cuda_check_guards(Device *d, Fault *fault)
{
    if (enter(d, &fault->error)) return -1;
    return leave(d, guards_check(d, fault));
}

/* ---- launches ---- */

static int cuda_run(Device *d, const DeviceLaunch *launches, int n, Fault *fault)
{
    if (enter(d, &fault->error)) return -1;
    return leave(d, launches_run(d, launches, n, fault));
}

static int cuda_time(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                     DeviceClock *out, Fault *fault)
{
    if (enter(d, &fault->error)) return -1;
    return leave(d, launches_clock(d, launches, n, mode, phase, out, fault));
}

static int cuda_counters(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out,
                         Fault *fault)
{
    if (enter(d, &fault->error)) return -1;
    return leave(d, launches_count(d, launches, n, out, fault));
}

/* ---- contents on the harness's side ---- */

static int cuda_keep(Device *d, const void *src, size_t bytes, DeviceGolden **out, Error *err)
{
    if (enter(d, err)) return -1;
    int rc = trusted_golden(&d->trusted, src, bytes, out, err);
    /* Wait, since the host may now draw the next contents for so long that others can time. */
    if (!rc && trusted_settle(&d->trusted, err)) rc = -1;
    return leave(d, rc);
}

static int cuda_draw(Device *d, const DeviceDraw *what, DeviceGolden **out, Error *err)
{
    if (enter(d, err)) return -1;
    return leave(d, trusted_draw(&d->trusted, what, out, err));
}

static int cuda_keep_of(Device *d, DevicePtr p, size_t bytes, DeviceGolden **out, Error *err)
{
    if (buffers_hold(d, p, bytes, err) || enter(d, err)) return -1;
    int rc = trusted_golden_of(&d->trusted, p, bytes, out, err);
    if (!rc && trusted_settle(&d->trusted, err)) rc = -1;
    return leave(d, rc);
}

static void cuda_golden_free(Device *d, DeviceGolden *g)
{
    trusted_enter(&d->trusted);
    trusted_golden_free(&d->trusted, g);
    leave(d, 0);
}

/* Does its buffer hold what is expected? */
static int holds(Device *d, const DeviceExpected *x, Error *err)
{
    size_t bytes = x->n ? x->n : x->golden->bytes;
    if (x->dtype >= 0 && __builtin_mul_overflow(x->n, dtype_size((Dtype)x->dtype), &bytes))
        return error_set(err, ERROR_LIMIT, "%zu elements are too many", x->n);
    return buffers_hold(d, x->p, bytes, err);
}

static int cuda_fill(Device *d, const DeviceExpected *x, Error *err)
{
    if (holds(d, x, err) || enter(d, err)) return -1;
    return leave(d, trusted_fill(&d->trusted, x, err));
}

static int cuda_same(Device *d, const DeviceExpected *x, size_t *first, Error *err)
{
    if (holds(d, x, err) || enter(d, err)) return -1;
    return leave(d, trusted_same(&d->trusted, x, first, err));
}

static int cuda_compare(Device *d, const DeviceExpected *with, DeviceDifference *out, Error *err)
{
    if (holds(d, with, err) || enter(d, err)) return -1;
    return leave(d, trusted_compare(&d->trusted, with, out, err));
}

static int cuda_expect(Device *d, const DeviceExpected *list, int n, int guards, Error *err)
{
    for (int i = 0; i < n; i++)
        if (holds(d, &list[i], err)) return -1;
    if (enter(d, err)) return -1;
    return leave(d, guards_expect(d, list, n, guards, err));
}

static int cuda_digest(Device *d, DevicePtr p, size_t bytes, uint64_t out[2], Error *err)
{
    if (buffers_hold(d, p, bytes, err) || enter(d, err)) return -1;
    return leave(d, trusted_digest(&d->trusted, p, bytes, out, err));
}

/* ---- state of the GPU ---- */

static int cuda_telemetry(Device *d, DeviceTelemetry *out, Error *err)
{
    (void)err;
    nvml_telemetry(health_nvml(d->health), out);
    return 0;
}

static int cuda_canary(Device *d, Error *err)
{
    if (enter(d, err)) return -1;
    /* An error here is ignored: the canary fails too, and its message says more. */
    trusted_settle(&d->trusted, NULL);
    return leave(d, health_check(d->health, err));
}

static void cuda_next(Device *d)
{
    d->remotes[HOME_LIBRARY].ended = 1;
}

static int cuda_shared(Device *d)
{
    const Remote *r = &d->remotes[HOME_LIBRARY];
    return r->runner.pid && r->first_generation == r->runner.generation && r->served > 1;
}

static int cuda_renew(Device *d, int now, Error *err)
{
    d->remotes[HOME_LIBRARY].suspect = 1;
    if (!now) return 0;
    if (enter(d, err)) return -1;
    return leave(d, modules_renew(d, err));
}

static const DeviceClockOps clock_ops = {
    .reserve = cuda_reserve,
    .time = cuda_time,
    .telemetry = cuda_telemetry,
    .lock = cuda_lock,
    .canary = cuda_canary,
    .next = cuda_next,
    .shared = cuda_shared,
    .renew = cuda_renew,
    .counters = cuda_counters,
};

static const DeviceGoldenOps golden_ops = {
    .keep = cuda_keep,
    .draw = cuda_draw,
    .keep_of = cuda_keep_of,
    .free = cuda_golden_free,
    .fill = cuda_fill,
    .same = cuda_same,
    .compare = cuda_compare,
    .expect = cuda_expect,
    .digest = cuda_digest,
};

const DeviceOps cuda_device_ops = {
    .prefix = "cuda",
    .form = "cuda:N",
    .meaning = "a GPU",
    .example = "cuda:0",
    .use_only = cuda_use_only,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .load = cuda_load,
    .unload = cuda_unload,
    .kernel = cuda_kernel,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .write = cuda_write,
    .read = cuda_read,
    .poison = cuda_poison,
    .protect = cuda_protect,
    .check_guards = cuda_check_guards,
    .run = cuda_run,
    .clock = &clock_ops,
    .golden = &golden_ops,
};

__attribute__((constructor)) static void register_backend(void)
{
    device_register(&cuda_device_ops);
}
