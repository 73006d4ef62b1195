/* Checks of calls and answers, and the encoding of launches in the mailbox. */
#include "eval/cuda/context/protocol.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A record: this head, then the parameters, padded to a multiple of 8 bytes. */
typedef struct {
    uint32_t kernel, library_args, cooperative, unused, grid[3], block[3], shared, param_bytes;
    char name[64];
} RecordHead;

static size_t padded(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static int check_kernel(const KernelInfo *k, Error *err)
{
    if (k->n_params < 0 || k->n_params > KERNEL_MAX_PARAMS ||
        k->param_bytes > KERNEL_MAX_PARAM_BYTES)
        return error_set(err, ERROR_CORRUPT, "the runner answers with %d parameters of %u bytes",
                         k->n_params, k->param_bytes);
    for (int i = 0; i < k->n_params; i++)
        if (k->params[i].offset > k->param_bytes ||
            k->params[i].size > k->param_bytes - k->params[i].offset)
            return error_set(err, ERROR_CORRUPT,
                             "the runner answers with a parameter outside the %u bytes of all",
                             k->param_bytes);
    if (k->registers < 0 || k->registers > 255 || k->max_threads < 0)
        return error_set(err, ERROR_CORRUPT, "the runner answers with %d registers, %d threads",
                         k->registers, k->max_threads);
    return 0;
}

static int check_numbers(const CudaCall *call, CudaAnswer *a, Error *err)
{
    if (call->kind == CALL_CLOCK) {
        const DeviceClock *c = &a->u.clock;
        if (!isfinite(c->us) || !isfinite(c->host_us) || !isfinite(c->flush_us) || c->us < 0 ||
            c->host_us < 0 || c->flush_us < 0)
            return error_set(err, ERROR_CORRUPT, "the runner answers with a time that is none");
    }
    if (call->kind == CALL_COUNTERS) {
        if (a->u.counters.n < 0 || a->u.counters.n > DEVICE_MAX_COUNTERS)
            return error_set(err, ERROR_CORRUPT, "the runner answers with %d counters",
                             a->u.counters.n);
        for (int i = 0; i < a->u.counters.n; i++)
            a->u.counters.list[i].name[sizeof a->u.counters.list[i].name - 1] = 0;
    }
    return call->kind == CALL_KERNEL ? check_kernel(&a->u.kernel, err) : 0;
}

int protocol_check(const CudaCall *call, CudaAnswer *a, size_t size, Error *err)
{
    if (size != sizeof *a)
        return error_set(err, ERROR_CORRUPT, "the runner answers with %zu bytes; %zu were expected",
                         size, sizeof *a);
    if (a->kind != call->kind || a->sequence != call->sequence)
        return error_set(err, ERROR_CORRUPT, "the runner answers call %u (%u) with %u (%u)",
                         call->kind, call->sequence, a->kind, a->sequence);
    a->end.text[sizeof a->end.text - 1] = 0;
    if (a->end.step > END_LIBRARY)
        return error_set(err, ERROR_CORRUPT, "the runner answers with step %u", a->end.step);
    if (a->end.step == END_OK) return check_numbers(call, a, err);
    int last = call->launches ? (int)call->launches - 1 : 0;
    if (a->end.first < 0 || a->end.first > a->end.last || a->end.last > last)
        return error_set(err, ERROR_CORRUPT, "the runner answers with launches %d to %d of %u",
                         a->end.first, a->end.last, call->launches);
    return 0;
}

int protocol_check_call(const CudaCall *call, size_t size, Error *err)
{
    if (size != sizeof *call || call->kind <= CALL_HELLO || call->kind >= CALL_KINDS)
        return error_set(err, ERROR_CORRUPT, "a call of %zu bytes, kind %u", size, call->kind);
    int in_mailbox = call->kind == CALL_LOAD_STOPWATCH || call->kind == CALL_LOAD ||
                     call->kind == CALL_RUN || call->kind == CALL_CLOCK ||
                     call->kind == CALL_COUNTERS;
    int waits = call->kind == CALL_CLOCK && call->period_ns;
    if (waits && (call->period_ns > PROTOCOL_MAX_WAIT_NS || call->phase_ns >= call->period_ns))
        return error_set(err, ERROR_CORRUPT, "a call that waits for %u of %u ns", call->phase_ns,
                         call->period_ns);
    if ((in_mailbox && call->bytes > PROTOCOL_MAILBOX) || call->launches > PROTOCOL_MAX_LAUNCHES ||
        call->mode > CLOCK_GRAPH || !memchr(call->name, 0, sizeof call->name))
        return error_set(err, ERROR_CORRUPT, "a call of kind %u with %llu bytes, %u launches",
                         call->kind, (unsigned long long)call->bytes, call->launches);
    return 0;
}

int launch_encode(const DeviceLaunch *l, uint32_t kernel, uint32_t param_bytes,
                  unsigned char *records, size_t room, size_t *used)
{
    RecordHead h = {.kernel = kernel,
                    .library_args = (uint32_t)l->library_args,
                    .cooperative = l->cooperative != 0,
                    .shared = l->shared_bytes,
                    .param_bytes = param_bytes};
    if (l->library_args > 0) {
        h.param_bytes = (uint32_t)l->library_args * 8;
        snprintf(h.name, sizeof h.name, "%s", l->kernel);
    }
    memcpy(h.grid, l->grid, sizeof h.grid);
    memcpy(h.block, l->block, sizeof h.block);
    if (h.param_bytes > KERNEL_MAX_PARAM_BYTES || sizeof h + padded(h.param_bytes) > room - *used)
        return -1;
    memcpy(records + *used, &h, sizeof h);
    memcpy(records + *used + sizeof h, l->params, padded(h.param_bytes));
    *used += sizeof h + padded(h.param_bytes);
    return 0;
}

int launch_decode(const unsigned char *records, size_t bytes, size_t *at, LaunchRecord *out)
{
    RecordHead h;
    if (*at > bytes || bytes - *at < sizeof h) return -1;
    memcpy(&h, records + *at, sizeof h);
    size_t left = bytes - *at - sizeof h;
    if (h.param_bytes > KERNEL_MAX_PARAM_BYTES || padded(h.param_bytes) > left ||
        !memchr(h.name, 0, sizeof h.name) || h.library_args > KERNEL_MAX_PARAM_BYTES / 8)
        return -1;
    *out = (LaunchRecord){.kernel = h.kernel,
                          .library_args = h.library_args,
                          .cooperative = h.cooperative,
                          .shared = h.shared,
                          .param_bytes = h.param_bytes,
                          .params = records + *at + sizeof h};
    memcpy(out->grid, h.grid, sizeof h.grid);
    memcpy(out->block, h.block, sizeof h.block);
    memcpy(out->name, h.name, sizeof h.name);
    *at += sizeof h + padded(h.param_bytes);
    return 0;
}
