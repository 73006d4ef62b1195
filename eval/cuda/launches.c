/* Launch sequences of the device "cuda:N": encoded once, executed where their module lives, ends
 * put into words. */
#include <stdio.h>
#include <string.h>

#include "eval/cuda/cuda_device.h"
#include "eval/cuda/fault.h"

static const double check_s = 3, clock_s = 10, first_clock_s = 2, least_clock_s = 0.5,
                    counters_s = 120, slower_than_baseline = 200;
static const double most_periods =
    20; /* of the memory's stall: of longer sequences it takes the same share each time */
static const double trusted_s = 60; /* a library is opened at its first call */

/* The list as records in its home's mailbox, of which they take *used bytes, or -1. */
static int encode(Device *d, const DeviceLaunch *launches, int n, size_t *used, Error *err)
{
    const DeviceModule *home = launches[0].module;
    unsigned char *records = remote_of(d, home)->runner.mailbox;
    if (n > PROTOCOL_MAX_LAUNCHES)
        return error_set(err, ERROR_DEVICE, "%d launches in a sequence; %d are allowed", n,
                         PROTOCOL_MAX_LAUNCHES);
    for (int i = 0; i < n; i++) {
        const DeviceLaunch *l = &launches[i];
        const ModuleKernel *k = NULL;
        if (l->module->trusted != home->trusted || (l->library_args > 0 && !home->trusted))
            return error_set(err, ERROR_DEVICE, "launch %d of %d has another home than the first",
                             i + 1, n);
        if (l->library_args <= 0 && !(k = module_kernel(d, l->module, l->kernel, err))) return -1;
        if (launch_encode(l, k ? k->kernel : 0, k ? k->info.param_bytes : 0, records,
                          PROTOCOL_MAILBOX, used))
            return error_set(err, ERROR_LIMIT, "%d launches take more than %d MiB", n,
                             PROTOCOL_MAILBOX >> 20);
    }
    return 0;
}

/* The module of a runner that is gone. */
static int gone(Device *d, const DeviceModule *m, DeviceFault *fault, Error *err)
{
    const Remote *r = remote_of(d, m);
    if (m->generation != r->died)
        return error_set(err, ERROR_DEVICE, "the process that had the module is gone");
    *fault = r->death;
    return 1;
}

static int ended(const LaunchEnd *end, const DeviceLaunch *launches, int n, DeviceFault *fault,
                 Error *err)
{
    if (end->step == END_OK) return 0;
    if (fault_explain(end, launches, n, fault)) return 1;
    Error why = {0};
    if (end->result != CU_OK) cuda_check(end->result, "the driver", &why);
    return error_set(err, ERROR_DEVICE, "the runner fails: %s%s%s", end->text,
                     *why.text ? ": " : "", why.text);
}

/* Every module is where its launches go: 0; 1 a candidate's is gone; -1. */
static int have_modules(Device *d, const DeviceLaunch *launches, int n, DeviceFault *fault,
                        Error *err)
{
    const DeviceModule *home = launches[0].module;
    if (!home->trusted) {
        if (!remote_has(d, home)) return gone(d, home, fault, err);
        if (remote_need(d, remote_of(d, home), err)) return -1;
        return remote_has(d, home) ? 0 : gone(d, home, fault, err);
    }
    for (int i = 0; i < n; i++)
        if (launches[i].module->trusted && module_present(d, launches[i].module, err)) return -1;
    return 0;
}

/* Ready to execute: 0, 1 the module is gone, -1. */
static int prepare(Device *d, const DeviceLaunch *launches, int n, CudaCall *call,
                   DeviceFault *fault, Error *err)
{
    size_t used = 0;
    if (n < 1) return error_set(err, ERROR_DEVICE, "a sequence of %d launches", n);
    int rc = have_modules(d, launches, n, fault, err);
    if (rc) return rc;
    if (encode(d, launches, n, &used, err)) return -1;
    call->bytes = used;
    call->launches = (uint32_t)n;
    /* Contents come from the harness's stream; another process's launches know nothing of it. */
    return trusted_settle(&d->trusted, err);
}

/* Have the home do it. limit_s: a candidate's. What is trusted fails by no candidate's doing. */
static int execute(Device *d, CudaCall call, double limit_s, const DeviceLaunch *launches, int n,
                   DeviceFault *fault, CudaAnswer *a, Error *err)
{
    int trusted = n > 0 && launches[0].module->trusted;
    if (trusted && limit_s < trusted_s) limit_s = trusted_s;
    int rc = prepare(d, launches, n, &call, fault, err);
    if (rc) return rc;
    Remote *r = remote_of(d, launches[0].module);
    rc = remote_ask(d, r, &call, -1, limit_s, launches, n, a, err);
    if (rc == 1) *fault = r->death;
    if (!rc) rc = ended(&a->end, launches, n, fault, err);
    return rc == 1 && trusted
               ? error_set(err, ERROR_DEVICE, "of the harness's own launches, %s", fault->message)
               : rc;
}

int launches_run(Device *d, const DeviceLaunch *launches, int n, DeviceFault *fault, Error *err)
{
    CudaAnswer a;
    return execute(d, (CudaCall){.kind = CALL_RUN}, check_s, launches, n, fault, &a, err);
}

/* A candidate may be as slow as it likes, but not without end: seconds. */
static double clock_limit(const Device *d)
{
    const Remote *r = &d->remotes[HOME_CANDIDATE];
    double s = d->baseline_us * 1e-6 * slower_than_baseline;
    double least = r->clocked == r->runner.generation
                       ? least_clock_s
                       : first_clock_s; /* a runner's first makes what a flush reads */
    return s <= 0 || s > clock_s ? clock_s : s < least ? least : s;
}

int launches_clock(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                   DeviceClock *out, DeviceFault *fault, Error *err)
{
    CudaAnswer a;
    CudaCall call = {.kind = CALL_CLOCK, .mode = mode};
    if (phase >= 0 && d->baseline_us < most_periods * 1e-3 * d->stall_ns)
        call.period_ns = d->stall_ns;
    if (call.period_ns) call.phase_ns = (uint32_t)(phase * call.period_ns);
    int rc = execute(d, call, clock_limit(d), launches, n, fault, &a, err);
    if (rc) return rc;
    Remote *r = remote_of(d, launches[0].module);
    r->clocked = r->runner.generation;
    *out = a.u.clock;
    if (launches[0].module->trusted) d->baseline_us = out->us;
    return 0;
}

int launches_count(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out,
                   DeviceFault *fault, Error *err)
{
    CudaAnswer a;
    int rc = execute(d, (CudaCall){.kind = CALL_COUNTERS}, counters_s, launches, n, fault, &a, err);
    if (rc) return rc;
    out->n_counters = a.u.counters.n;
    memcpy(out->counters, a.u.counters.list, sizeof out->counters);
    return 0;
}
