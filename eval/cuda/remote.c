/* The runner processes of the device "cuda:N". A runner that ended is replaced at once, while the
 * harness goes on; its failure is kept for the modules that went with it. */
#include "eval/cuda/remote.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eval/cuda/guards.h"
#include "eval/cuda/launch_fault.h"

enum { SETUP_S = 30 };
/* Memory that is free where a spare process gets a context: several times what that takes. */
static const size_t spare_bytes = (size_t)2 << 30;

Remote *remote_of(Device *d, const DeviceModule *m)
{
    return &d->remotes[m->home];
}

static const char *name_of(const Remote *r)
{
    return cudarunner_name(&r->runner);
}

/* Keep the fault for the modules that ended with this process. */
static void remember_failure(Remote *r, const Fault *failure)
{
    r->failed_generation = r->runner.generation;
    r->failure = *failure;
}

/* Start another process, without waiting for it. */
static void replace(Device *d, Remote *r)
{
    Error ignored; /* remote_need tries again and reports it */
    guards_poison(d);
    if (!cudarunner_stop(&r->runner, &ignored)) cudarunner_start(&r->runner, &ignored);
}

int remote_has(Device *d, const DeviceModule *m)
{
    const CudaRunner *runner = &remote_of(d, m)->runner;
    return !m->empty && runner->ready && m->generation == runner->generation;
}

/* No kernel sends SIGKILL: another process sent it, or the machine ran out of memory. */
static int killed_from_outside(const Remote *r)
{
    return WIFSIGNALED(r->runner.status) && WTERMSIG(r->runner.status) == SIGKILL;
}

int remote_ask(Device *d, Remote *r, RemoteCall *ask, CudaAnswer *answer, Error *err)
{
    Fault failure;
    CudaCall *call = &ask->call;
    int n = ask->n;
    memset(&failure, 0, sizeof failure);
    RunnerReply reply =
        cudarunner_call(&r->runner, call, ask->fd ? ask->fd : -1, ask->limit_s, answer, err);
    if (reply == RUNNER_ANSWERED && !answer->end.context_lost) return 0;
    if (reply == RUNNER_ANSWERED) {
        /* The context is lost: the answer is valid, but the process must be replaced. */
        if (!n || !launch_fault_explain(&answer->end, ask->launches, n, &failure)) n = 0;
    } else if (n && reply == RUNNER_LATE) {
        launch_fault_timeout(ask->launches, n, ask->limit_s, &failure);
    } else if (n && reply == RUNNER_ENDED && !killed_from_outside(r)) {
        launch_fault_exit(ask->launches, n, r->runner.status, &failure);
    } else {
        n = 0;
        if (reply == RUNNER_LATE)
            error_set(err, ERROR_DEVICE, "%s did not answer call %u within %.3g s", name_of(r),
                      call->kind, ask->limit_s);
        if (reply == RUNNER_ENDED)
            error_set(err, ERROR_DEVICE, "%s ended at call %u (wait status %d)", name_of(r),
                      call->kind, r->runner.status);
    }
    if (n) remember_failure(r, &failure);
    replace(d, r);
    if (n) return 1;
    return reply == RUNNER_ANSWERED ? 0 : -1;
}

/* Reserve another range of addresses. That is possible until another runner has taken this one,
 * for then pointers into it exist. */
static int move_range(Device *d, const Remote *r, Error *err)
{
    for (int home = 0; home < HOMES; home++)
        if (&d->remotes[home] != r && d->remotes[home].setup_generation)
            return error_set(
                err, ERROR_DEVICE,
                "%s cannot have the buffers' range of addresses, which another runner has",
                name_of(r));
    return space_move(&d->space, err);
}

int remote_stopwatch(Device *d, Remote *r, Error *err)
{
    CudaAnswer a;
    memcpy(r->runner.mailbox, d->cubin, d->cubin_len);
    CudaCall call = {.kind = CALL_LOAD_STOPWATCH, .bytes = d->cubin_len};
    RunnerReply reply = cudarunner_call(&r->runner, &call, -1, SETUP_S, &a, err);
    if (reply != RUNNER_ANSWERED)
        return reply == RUNNER_BROKEN
                   ? -1
                   : error_set(err, ERROR_DEVICE, "%s does not take the harness's kernels",
                               name_of(r));
    if (a.end.step != END_OK)
        return error_set(err, ERROR_DEVICE, "%s cannot be set up: %s", name_of(r), a.end.text);
    return 0;
}

static int set_up(Device *d, Remote *r, Error *err)
{
    CudaAnswer a;
    for (;;) {
        CudaCall call = {.kind = CALL_SETUP, .at = d->space.base, .bytes = d->space.reserved};
        RunnerReply reply =
            cudarunner_call(&r->runner, &call, r->runner.mailbox_fd, SETUP_S, &a, err);
        if (reply != RUNNER_ANSWERED)
            return reply == RUNNER_BROKEN
                       ? -1
                       : error_set(err, ERROR_DEVICE, "%s does not take its set-up", name_of(r));
        if (a.end.step != END_OK)
            return error_set(err, ERROR_DEVICE, "%s cannot be set up: %s", name_of(r), a.end.text);
        if (!a.value) break;
        if (move_range(d, r, err)) return -1;
    }
    if (remote_stopwatch(d, r, err)) return -1;
    r->setup_generation = r->runner.generation;
    return 0;
}

static int map_extents(Device *d, Remote *r, Error *err)
{
    CudaAnswer a;
    for (int i = 0; i < d->arena.n_extents; i++) {
        int fd;
        if (r->mapped_generation[i] == r->runner.generation) continue;
        if (space_export(&d->space, i, &fd, err)) return -1;
        RemoteCall ask = {.call = {.kind = CALL_MAP,
                                   .at = d->arena.extents[i].at,
                                   .bytes = d->arena.extents[i].bytes},
                          .limit_s = SETUP_S,
                          .fd = fd};
        int rc = remote_ask(d, r, &ask, &a, err);
        close(fd);
        if (rc) return -1;
        if (a.end.step != END_OK)
            return error_set(err, ERROR_IO, "%s cannot map the buffers: %s", name_of(r),
                             a.end.text);
        r->mapped_generation[i] = r->runner.generation;
    }
    return 0;
}

/* Where candidates with op lines follow one another, the next process makes its context while the last
 * candidate of this one is judged. It shares the GPU's lock until it has one, so that nothing is timed
 * meanwhile. */
static void keep_spare(Device *d, Remote *r)
{
    Error ignored; /* without a spare process the next candidate waits for its own */
    size_t free_bytes = 0, total;
    if (!r->follows || r->served < REMOTE_CANDIDATES || r->runner.spare || r->runner.ending) return;
    trusted_enter(&d->trusted);
    if (d->trusted.executor.cu->memory_info(&free_bytes, &total) != CU_OK ||
        free_bytes < spare_bytes)
        return;
    int hold = lock_shared_descriptor(d->lock);
    if (hold < 0) return;
    cudarunner_spare(&r->runner, hold, &ignored);
    close(hold);
}

int remote_need(Device *d, Remote *r, Error *err)
{
    cudarunner_poll(&r->runner);
    /* A process that was killed between two calls is replaced without an error. */
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!r->runner.pid && cudarunner_start(&r->runner, err)) return -1;
        if (!cudarunner_wait(&r->runner, err) &&
            (r->setup_generation == r->runner.generation || !set_up(d, r, err)) &&
            !map_extents(d, r, err)) {
            keep_spare(d, r);
            return 0;
        }
        if (cudarunner_stop(&r->runner, err)) return -1;
    }
    return -1;
}

void remote_name(Remote *r, uint64_t image)
{
    if (r->first_generation != r->runner.generation) r->served = 0;
    r->first_generation = r->runner.generation;
    r->first_image = image;
    r->suspect = r->ended = 0;
    r->served++;
}

static int unmap_from(Device *d, Remote *r, int extents, Error *err)
{
    CudaAnswer a;
    for (int i = d->arena.n_extents - extents; i < d->arena.n_extents; i++) {
        unsigned had = r->mapped_generation[i];
        r->mapped_generation[i] = 0; /* the next extent at this index is other memory */
        if (!r->runner.pid || had != r->runner.generation) continue;
        RemoteCall ask = {.call = {.kind = CALL_UNMAP,
                                   .at = d->arena.extents[i].at,
                                   .bytes = d->arena.extents[i].bytes},
                          .limit_s = SETUP_S};
        if (remote_ask(d, r, &ask, &a, err)) return -1;
        if (a.end.step != END_OK) {
            replace(d, r); /* a process must not keep memory that another buffer gets */
            return 0;
        }
    }
    return 0;
}

int remote_unmap(Device *d, int extents, Error *err)
{
    for (int home = 0; home < HOMES; home++)
        if (unmap_from(d, &d->remotes[home], extents, err)) return -1;
    return 0;
}
