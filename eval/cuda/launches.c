/* Launch sequences of the device "cuda:N". Every call has a time limit: a candidate may be slow,
 * but its sequence always ends. */
#include "eval/cuda/launches.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "eval/cuda/launch_fault.h"
#include "eval/cuda/modules.h"
#include "eval/cuda/remote.h"
#include "eval/device/device.h"
#include "eval/device/tensor_map.h"
#include "eval/device/time_limit.h"
#include "gpu/driver.h"

/* Tensor maps of launches for the driver. Fixed: element strides of 1, no interleave, zeros outside of
 * the tensor, lines of 128 bytes to L2, as CUTLASS has it. */

static int encode_one(const CudaDriver *cu, const TensorMap *m, unsigned char *out, Error *err)
{
    static const unsigned steps[TENSOR_MAP_RANK] = {1, 1, 1, 1, 1};
    alignas(TENSOR_MAP_ALIGN) unsigned char encoded[TENSOR_MAP_BYTES];
    int swizzle = m->swizzle == 128  ? CU_SWIZZLE_128
                  : m->swizzle == 64 ? CU_SWIZZLE_64
                  : m->swizzle == 32 ? CU_SWIZZLE_32
                                     : CU_SWIZZLE_NONE;
    CuResult r =
        cu->tensor_map(encoded, m->type, m->rank, (void *)(uintptr_t)m->base, m->size, m->stride,
                       m->box, steps, CU_INTERLEAVE_NONE, swizzle, CU_PROMOTION_128, CU_FILL_ZEROS);
    if (!cuda_check(r, "the driver refuses a tensor map", err)) {
        memcpy(out, encoded, sizeof encoded);
        return 0;
    }
    if (r == CU_INVALID_VALUE || r == CU_NOT_SUPPORTED) err->code = ERROR_UNSUPPORTED;
    return -1;
}

/* Puts the driver's CUtensorMap in the place of each map among the launch's parameters. ERROR_UNSUPPORTED:
 * the driver or its GPU takes no such map. */
static int maps_encode(const CudaDriver *cu, DeviceLaunch *l, Error *err)
{
    for (int i = 0; i < l->n_maps; i++) {
        TensorMap m;
        memcpy(&m, l->params + l->map_at[i], sizeof m);
        if (encode_one(cu, &m, l->params + l->map_at[i], err)) return -1;
    }
    l->n_maps = 0;
    return 0;
}

/* Limits in seconds, beside those of eval/device/time_limit.h. */
static const double check_s = 3, counters_s = 120;
/* Times the limit, without the timing lock: other processes' work takes the GPU in turn. Most candidates
 * run there first. */
static const double beside_others = 2;
static const double trusted_s = 60; /* a library is opened at its first call */
/* Sequences longer than this many periods of the memory's stall meet about as many stalls at any
 * phase, so that they need not wait for one. */
static const double max_periods = 20;

/* Append a launch, whose tensor maps the driver encodes here, to the records. k: NULL for a library call. */
static int encode_launch(Device *d, const DeviceLaunch *l, const ModuleKernel *k,
                         unsigned char *records, size_t *used, Error *err)
{
    DeviceLaunch own;
    if (l->n_maps) {
        own = *l;
        if (maps_encode(d->trusted.executor.cu, &own, err)) return -1;
        l = &own;
    }
    return launch_encode(l, k ? k->kernel : 0, k ? k->info.param_bytes : 0, records,
                         PROTOCOL_MAILBOX, used)
               ? error_set(err, ERROR_LIMIT, "the launches take more than %d MiB",
                           PROTOCOL_MAILBOX >> 20)
               : 0;
}

/* Write the launches as records into the mailbox of their home; they take *used bytes. */
static int encode(Device *d, const DeviceLaunch *launches, int n, size_t *used, Error *err)
{
    const DeviceModule *home = launches[0].module;
    unsigned char *records = remote_of(d, home)->runner.mailbox;
    if (n > PROTOCOL_MAX_LAUNCHES)
        return error_set(err, ERROR_LIMIT, "%d launches in a sequence; %d are allowed", n,
                         PROTOCOL_MAX_LAUNCHES);
    for (int i = 0; i < n; i++) {
        const DeviceLaunch *l = &launches[i];
        const ModuleKernel *k = NULL;
        if (l->module->home != home->home || (l->library_args > 0 && home->home == HOME_CANDIDATE))
            return error_set(err, ERROR_INVALID, "launch %d of %d has another home than the first",
                             i + 1, n);
        if (l->library_args <= 0 && !(k = module_kernel(d, l->module, l->kernel, err))) return -1;
        if (encode_launch(d, l, k, records, used, err)) return -1;
    }
    return 0;
}

/* The fault of a module whose runner has ended: 1, or -1 when it ended by no launch. */
static int module_gone(Device *d, const DeviceModule *m, Fault *fault)
{
    const Remote *r = remote_of(d, m);
    if (m->generation != r->failed_generation)
        return error_set(&fault->error, ERROR_DEVICE, "the process that had the module is gone");
    *fault = r->failure;
    return 1;
}

static int explain_end(const LaunchEnd *end, const DeviceLaunch *launches, int n, Fault *fault)
{
    if (end->step == END_OK) return 0;
    if (launch_fault_explain(end, launches, n, fault)) return 1;
    Error why = {0};
    if (end->result != CU_OK) cuda_check(end->result, "the driver", &why);
    return error_set(&fault->error, ERROR_DEVICE, "the runner fails: %s%s%s", end->text,
                     *why.text ? ": " : "", why.text);
}

/* Returns 0 when every module is loaded where its launches run, 1 with *fault when a candidate's is
 * not, -1 on an error. */
static int have_modules(Device *d, const DeviceLaunch *launches, int n, Fault *fault)
{
    const DeviceModule *home = launches[0].module;
    for (int again = 0; again < 2 && !home->trusted; again++) {
        for (int i = 0; i < n; i++)
            if (!launches[i].module->empty && !remote_has(d, launches[i].module))
                return module_gone(d, launches[i].module, fault);
        if (again) return 0;
        if (remote_need(d, remote_of(d, home), &fault->error)) return -1;
    }
    for (int i = 0; i < n; i++)
        if (launches[i].module->trusted && module_present(d, launches[i].module, &fault->error))
            return -1;
    return 0;
}

/* The plan's map is one that this driver or GPU does not take. */
static int refuse_map(const DeviceLaunch *launches, Fault *fault)
{
    char why[sizeof fault->error.text];
    snprintf(why, sizeof why, "%s", fault->error.text);
    return launches[0].module->trusted ? -1
                                       : fault_set(fault, OUTCOME_LAUNCH_ERROR, 0, "%.900s", why);
}

/* Fill the call and the mailbox. Returns 0, 1 with *fault when the module is gone, or -1. */
static int prepare(Device *d, const DeviceLaunch *launches, int n, CudaCall *call, Fault *fault)
{
    size_t used = 0;
    if (n < 1) return error_set(&fault->error, ERROR_INVALID, "a sequence of %d launches", n);
    int rc = have_modules(d, launches, n, fault);
    if (rc) return rc;
    if (encode(d, launches, n, &used, &fault->error))
        return fault->error.code == ERROR_UNSUPPORTED ? refuse_map(launches, fault) : -1;
    call->bytes = used;
    call->launches = (uint32_t)n;
    /* The buffers are filled in the harness's stream, which another process cannot wait for. */
    return trusted_settle(&d->trusted, &fault->error);
}

/* Make the call in the modules' home. limit_s holds for a candidate; trusted launches get more
 * time, and their failure is an error, never a fault. */
static int execute(Device *d, CudaCall call, double limit_s, const DeviceLaunch *launches, int n,
                   Fault *fault, CudaAnswer *a)
{
    int trusted = n > 0 && launches[0].module->trusted;
    int rc = prepare(d, launches, n, &call, fault);
    if (rc) return rc;
    Remote *r = remote_of(d, launches[0].module);
    int cold =
        launches[0].module->home == HOME_LIBRARY && r->warm_generation != r->runner.generation;
    /* A library chooses what it calls at the first call of a shape. */
    if (launches[0].module->home == HOME_LIBRARY) limit_s += TIME_LIMIT_LIBRARY_S;
    if ((trusted || cold) && limit_s < trusted_s) limit_s = trusted_s;
    r->warm_generation = r->runner.generation;
    RemoteCall ask = {.call = call, .limit_s = limit_s, .launches = launches, .n = n};
    rc = remote_ask(d, r, &ask, a, &fault->error);
    if (rc == 1) *fault = r->failure;
    if (!rc) rc = explain_end(&a->end, launches, n, fault);
    return rc == 1 && trusted ? error_set(&fault->error, ERROR_DEVICE,
                                          "of the harness's own launches, %s", fault->message)
                              : rc;
}

int launches_run(Device *d, const DeviceLaunch *launches, int n, Fault *fault)
{
    CudaAnswer a;
    return execute(d, (CudaCall){.kind = CALL_RUN}, check_s, launches, n, fault, &a);
}

/* The time limit of a timed sequence, in seconds. */
static double clock_limit(const Device *d)
{
    double s = time_limit_s(d->baseline_us, time_limit_least_s);
    return lock_held(d->lock) == GPU_EXCLUSIVE ? s : beside_others * s;
}

int launches_clock(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                   DeviceClock *out, Fault *fault)
{
    CudaAnswer a;
    CudaCall call = {.kind = CALL_CLOCK, .mode = mode};
    if (phase >= 0 && d->baseline_us < max_periods * 1e-3 * d->stall_ns)
        call.period_ns = d->stall_ns;
    if (call.period_ns) call.phase_ns = (uint32_t)(phase * call.period_ns);
    int rc = execute(d, call, clock_limit(d), launches, n, fault, &a);
    if (rc) return rc;
    *out = a.u.clock;
    if (launches[0].module->trusted) d->baseline_us = out->us;
    return 0;
}

int launches_count(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out, Fault *fault)
{
    CudaAnswer a;
    int rc = execute(d, (CudaCall){.kind = CALL_COUNTERS}, counters_s, launches, n, fault, &a);
    if (rc) return rc;
    out->n_counters = a.u.counters.n;
    memcpy(out->counters, a.u.counters.list, sizeof out->counters);
    return 0;
}
