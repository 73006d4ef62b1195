/* Modules and launches in one CUDA context. Every wait polls, so that it ends when a GPU hangs. */
#include "eval/cuda/context/executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
    WAIT_S = 60, /* the longest wait; a runner is killed long before */
    SPIN_US = 1000,
    NAP_US = 20,
    SYNC_STRIDE = 64, /* sequences up to this length are waited for launch by launch, longer ones
                         after this many launches, so that a fault is assigned to a launch */
    FREE_SHARED = 48 << 10, /* bytes of shared memory of a block that need no attribute */
    PRINTF_BYTES = 64 << 10,
    HEAP_BYTES = 8 << 20
};

/* ---- open and close ---- */

int executor_open(Executor *e, const CudaDriver *cu, int ordinal, Error *err)
{
    memset(e, 0, sizeof *e);
    e->cu = cu;
    e->ordinal = ordinal;
    if (cuda_check(cu->device_get(&e->device, ordinal), "no such device", err) ||
        cuda_check(cu->device_attribute(&e->max_threads, CU_ATTRIBUTE_MAX_THREADS, e->device),
                   "the device's attributes", err) ||
        cuda_check(cu->context_create(&e->context, 0, e->device), "a context cannot be made",
                   err) ||
        cuda_check(cu->context_set_limit(CU_LIMIT_PRINTF, PRINTF_BYTES),
                   "the limit of printf's memory", err) ||
        cuda_check(cu->context_set_limit(CU_LIMIT_HEAP, HEAP_BYTES),
                   "the limit of the device's heap", err) ||
        cuda_check(cu->stream_create(&e->stream, CU_STREAM_NON_BLOCKING), "a stream cannot be made",
                   err))
        return -1;
    return 0;
}

void executor_close(Executor *e)
{
    if (!e->context) return;
    e->cu->context_set(e->context);
    for (uint32_t i = 0; i < e->n_modules; i++)
        if (e->modules[i]) executor_unload(e, i);
    if (e->stream) e->cu->stream_destroy(e->stream);
    e->cu->context_destroy(e->context);
    free(e->modules);
    free(e->kernels);
    memset(e, 0, sizeof *e);
}

/* ---- modules ---- */

CuResult executor_load(Executor *e, const void *cubin, uint32_t *module)
{
    uint32_t i = 0;
    CuModule m = NULL;
    CuResult r = e->cu->module_load(&m, cubin);
    if (r != CU_OK) return r;
    while (i < e->n_modules && e->modules[i]) i++;
    if (i == e->n_modules) {
        e->modules = memory_grow(e->modules, (size_t)i + 1, sizeof *e->modules);
        e->n_modules++;
    }
    e->modules[i] = m;
    *module = i;
    return CU_OK;
}

void executor_unload(Executor *e, uint32_t module)
{
    if (module >= e->n_modules || !e->modules[module]) return;
    for (uint32_t i = 0; i < e->n_kernels; i++)
        if (e->kernels[i].name && e->kernels[i].module == module) {
            free(e->kernels[i].name);
            e->kernels[i].name = NULL;
        }
    e->cu->module_unload(e->modules[module]);
    e->modules[module] = NULL;
}

static int read_params(Executor *e, CuFunction f, const char *name, KernelInfo *k, Error *err)
{
    for (;; k->n_params++) {
        size_t offset = 0, bytes = 0;
        if (e->cu->function_param(f, (size_t)k->n_params, &offset, &bytes) != CU_OK)
            return 0; /* there are no more parameters */
        if (k->n_params == KERNEL_MAX_PARAMS)
            return error_set(err, ERROR_LIMIT, "kernel %.200s has more than %d parameters", name,
                             KERNEL_MAX_PARAMS);
        if (offset > KERNEL_MAX_PARAM_BYTES || bytes > KERNEL_MAX_PARAM_BYTES - offset)
            return error_set(err, ERROR_LIMIT,
                             "the parameters of kernel %.200s take more than %d bytes", name,
                             KERNEL_MAX_PARAM_BYTES);
        k->params[k->n_params].offset = (uint32_t)offset;
        k->params[k->n_params].size = (uint32_t)bytes;
        k->params[k->n_params].is_pointer = -1;
        if (offset + bytes > k->param_bytes) k->param_bytes = (uint32_t)(offset + bytes);
    }
}

static int describe(Executor *e, CuFunction f, const char *name, KernelInfo *k, Error *err)
{
    int shared = 0, local = 0, threads = 0;
    memset(k, 0, sizeof *k);
    if (cuda_check(e->cu->function_attribute(&k->registers, CU_FUNCTION_REGISTERS, f),
                   "the kernel's registers", err) ||
        cuda_check(e->cu->function_attribute(&shared, CU_FUNCTION_SHARED, f),
                   "the kernel's shared memory", err) ||
        cuda_check(e->cu->function_attribute(&local, CU_FUNCTION_LOCAL, f),
                   "the kernel's local memory", err) ||
        cuda_check(e->cu->function_attribute(&threads, CU_FUNCTION_MAX_THREADS, f),
                   "the kernel's threads", err))
        return error_prefix(err, "kernel %.200s", name);
    k->static_shared = (size_t)shared;
    k->local_bytes = (size_t)local;
    k->max_threads = threads < e->max_threads ? threads : e->max_threads;
    return read_params(e, f, name, k, err);
}

int executor_kernel(Executor *e, uint32_t module, const char *name, uint32_t *kernel,
                    KernelInfo *out, Error *err)
{
    uint32_t i, slot = e->n_kernels;
    ExecutorKernel k = {.module = module};
    if (module >= e->n_modules || !e->modules[module])
        return error_set(err, ERROR_INVALID, "module %u is not loaded", module);
    for (i = 0; i < e->n_kernels; i++) {
        if (!e->kernels[i].name) slot = i;
        if (!e->kernels[i].name || e->kernels[i].module != module ||
            strcmp(e->kernels[i].name, name))
            continue;
        *kernel = i;
        *out = e->kernels[i].info;
        return 0;
    }
    CuResult r = e->cu->module_function(&k.function, e->modules[module], name);
    if (r == CU_NOT_FOUND)
        return error_set(err, ERROR_UNKNOWN_NAME, "no kernel %.400s in the module", name);
    if (cuda_check(r, "the kernel cannot be had", err) ||
        describe(e, k.function, name, &k.info, err))
        return -1;
    if (slot == e->n_kernels) {
        e->kernels = memory_grow(e->kernels, (size_t)slot + 1, sizeof *e->kernels);
        e->n_kernels++;
    }
    k.name = memory_strdup(name);
    e->kernels[slot] = k;
    *kernel = slot;
    *out = k.info;
    return 0;
}

/* ---- launches ---- */

int executor_end(LaunchEnd *end, EndStep step, CuResult r, int first, int last, const char *text)
{
    *end =
        (LaunchEnd){.step = step, .result = r, .first = first < last ? first : last, .last = last};
    snprintf(end->text, sizeof end->text, "%s", text);
    return 1;
}

void executor_check_context(Executor *e, LaunchEnd *end)
{
    end->context_lost = executor_wait(e) != CU_OK || e->cu->context_synchronize() != CU_OK;
}

CuResult executor_wait(Executor *e)
{
    double start = clock_seconds();
    for (;;) {
        CuResult r = e->cu->stream_query(e->stream);
        if (r != CU_NOT_READY) return r;
        double waited = clock_seconds() - start;
        if (waited > WAIT_S) return CU_LAUNCH_TIMEOUT;
        if (waited > SPIN_US * 1e-6) clock_sleep(NAP_US * 1e-6);
    }
}

/* A kernel that uses more than FREE_SHARED bytes must ask for them once, by an attribute. */
static CuResult allow_shared(Executor *e, ExecutorKernel *k, uint32_t bytes)
{
    if (bytes + k->info.static_shared <= FREE_SHARED || bytes <= k->dynamic_shared) return CU_OK;
    CuResult r = e->cu->function_set(k->function, CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes);
    if (r == CU_OK) k->dynamic_shared = bytes;
    return r;
}

/* A cooperative launch takes its parameters one by one. */
static CuResult launch_cooperative(Executor *e, const LaunchRecord *l)
{
    const ExecutorKernel *k = &e->kernels[l->kernel];
    CuLaunchAttribute together = {.id = CU_LAUNCH_COOPERATIVE, .value = {1}};
    CuLaunch config = {
        .shared = l->shared, .stream = e->stream, .attributes = &together, .n_attributes = 1};
    void *params[KERNEL_MAX_PARAMS + 1];
    memcpy(config.grid, l->grid, sizeof config.grid);
    memcpy(config.block, l->block, sizeof config.block);
    for (int i = 0; i < k->info.n_params; i++)
        params[i] = (void *)(uintptr_t)(l->params + k->info.params[i].offset);
    return e->cu->launch_with(&config, k->function, params, NULL);
}

static CuResult launch_kernel(Executor *e, const LaunchRecord *l)
{
    ExecutorKernel *k = &e->kernels[l->kernel];
    size_t bytes = l->param_bytes;
    /* The parameters as one packed buffer: CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE. */
    void *extra[] = {(void *)1, (void *)(uintptr_t)l->params, (void *)2, &bytes, NULL};
    CuResult r = allow_shared(e, k, l->shared);
    if (r != CU_OK) return r;
    if (l->cooperative) return launch_cooperative(e, l);
    return e->cu->launch(k->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
                         l->block[2], l->shared, e->stream, NULL, bytes ? extra : NULL);
}

/* A call that the library refuses for its sizes is a fault of the plan that asks for it. All else that
 * goes wrong there is a failure of the library or of the device. */
static EndStep library_step(const Error *why)
{
    return why->code == ERROR_INVALID || why->code == ERROR_LIMIT || why->code == ERROR_UNSUPPORTED
               ? END_LIBRARY
               : END_HARNESS;
}

static int launch_one(Executor *e, const LaunchRecord *l, int since, int i, LaunchEnd *end)
{
    Error why;
    if (l->library_args) {
        if (!e->library)
            return executor_end(end, END_HARNESS, CU_OK, i, i,
                                "a library call outside the harness");
        if (!e->library(l->name, (const uint64_t *)(const void *)l->params, (int)l->library_args,
                        e->stream, &why))
            return 0;
        /* A library meets the error of an earlier kernel too. */
        CuResult r = since < i ? executor_wait(e) : CU_OK;
        if (r != CU_OK) return executor_end(end, END_RUN, r, since, i - 1, "running");
        return executor_end(end, library_step(&why), CU_OK, i, i, why.text);
    }
    if (l->kernel >= e->n_kernels || !e->kernels[l->kernel].name ||
        l->param_bytes != e->kernels[l->kernel].info.param_bytes)
        return executor_end(end, END_HARNESS, CU_OK, i, i,
                            "a launch of a kernel that is not loaded");
    CuResult r = launch_kernel(e, l);
    if (r == CU_OK) return 0;
    /* The driver may report the error of an earlier kernel at this launch. */
    int earlier = r >= CU_ILLEGAL_ADDRESS && r != CU_LAUNCH_RESOURCES && since < i;
    return executor_end(end, earlier ? END_RUN : END_LAUNCH, r, earlier ? since : i,
                        earlier ? i - 1 : i, "launching");
}

/* Launch all, and wait after every `stride` launches (0: never). */
static int launch_all(Executor *e, const LaunchList *l, int stride, LaunchEnd *end)
{
    LaunchRecord record;
    size_t at = 0;
    int since = 0;
    for (int i = 0; i < l->n; i++) {
        if (launch_decode(l->records, l->bytes, &at, &record))
            return executor_end(end, END_HARNESS, CU_OK, i, i, "a torn list of launches");
        if (launch_one(e, &record, since, i, end)) return 1;
        if (!stride || (i + 1) % stride) continue;
        CuResult r = executor_wait(e);
        if (r != CU_OK) return executor_end(end, END_RUN, r, since, i, "running");
        since = i + 1;
    }
    return 0;
}

int executor_enqueue(Executor *e, const LaunchList *l, LaunchEnd *end)
{
    return launch_all(e, l, 0, end);
}

int executor_run(Executor *e, const LaunchList *l, LaunchEnd *end)
{
    int stride = l->n <= SYNC_STRIDE ? 1 : SYNC_STRIDE;
    memset(end, 0, sizeof *end);
    int stopped = launch_all(e, l, stride, end);
    if (!stopped) {
        CuResult r = executor_wait(e);
        int first = l->n ? (l->n - 1) / stride * stride : 0;
        if (r != CU_OK)
            stopped = executor_end(end, END_RUN, r, first, l->n ? l->n - 1 : 0, "running");
    }
    if (stopped) executor_check_context(e, end);
    return stopped;
}
