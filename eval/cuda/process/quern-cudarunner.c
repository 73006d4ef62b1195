/* quern-cudarunner DEVICE PARENT [trusted|library]: the process in which candidates run on a GPU, or
 * baselines with a third argument. The device "cuda:N" starts it, with a socket as descriptor 3
 * (eval/cuda/process/runner_process.c). It ends with its parent. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/flags.h"
#include "base/process.h"
#include "eval/cuda/context/executor.h"
#include "eval/cuda/context/protocol.h"
#include "eval/cuda/library/library.h"
#include "eval/cuda/library/library_workspace.h"
#include "eval/cuda/measure/stopwatch.h"
#include "eval/cuda/memory/space.h"
#include "eval/cuda/process/runner_process.h"

/* The runner process (quern-cudarunner): a CUDA context in which candidates run, or baselines. It
 * holds no expected output, no queue connection and no file of the evaluator. Calls of the runner
 * process. Every call and every descriptor in it is checked before it is used; the process ends when
 * its context is lost. */

typedef struct {
    int socket, ordinal;
    int libraries; /* launches may be library calls */
    int hold;      /* a descriptor that is closed once the context exists; -1: none */
} RunnerServer;

typedef struct {
    Executor executor;
    Stopwatch stopwatch;
    CuPtr base; /* where the buffers' addresses begin; 0 before set-up */
    uint64_t reserved;
    const unsigned char *mailbox;
} Server;

/* Answer with an error for which no launch is to blame. */
static void refuse(CudaAnswer *a, CuResult r, const char *text)
{
    executor_end(&a->end, END_HARNESS, r, 0, 0, text);
}

static void set_up(Server *s, const CudaCall *c, int fd, CudaAnswer *a)
{
    Error err;
    if (!s->mailbox && fd >= 0) {
        void *at = mmap(NULL, PROTOCOL_MAILBOX, PROT_READ, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED) s->mailbox = at;
    }
    if (!s->mailbox)
        refuse(a, CU_OK, "the mailbox cannot be mapped");
    else if (s->base)
        refuse(a, CU_OK, "set up twice");
    else if (space_reserve_at(s->executor.cu, c->at, c->bytes, &err))
        a->value = 1; /* another range may do */
    else {
        s->base = c->at;
        s->reserved = c->bytes;
    }
}

static void load_stopwatch(Server *s, CudaAnswer *a)
{
    Error err;
    if (stopwatch_load(&s->stopwatch, s->mailbox, &err)) refuse(a, CU_OK, err.text);
}

static void map(Server *s, const CudaCall *c, int fd, CudaAnswer *a)
{
    Error err;
    if (fd < 0 || c->at > s->reserved || c->bytes > s->reserved - c->at)
        refuse(a, CU_OK, "a mapping outside the range of the buffers");
    else if (space_import(s->executor.cu, s->executor.device, s->base + c->at, c->bytes, fd, &err))
        refuse(a, CU_OK, err.text);
}

static void unmap(Server *s, const CudaCall *c, CudaAnswer *a)
{
    CuResult r = c->at > s->reserved || c->bytes > s->reserved - c->at
                     ? CU_NOT_FOUND
                     : s->executor.cu->vm_unmap(s->base + c->at, c->bytes);
    if (r != CU_OK) refuse(a, r, "memory cannot be unmapped");
}

static void load(Server *s, CudaAnswer *a)
{
    uint32_t module = 0;
    CuResult r = executor_load(&s->executor, s->mailbox, &module);
    a->value = module;
    if (r == CU_OK) return;
    executor_end(&a->end, END_LAUNCH, r, 0, 0, "loading the module");
    executor_check_context(&s->executor, &a->end);
}

static void unload(Server *s, const CudaCall *c)
{
    stopwatch_drop_graphs(&s->stopwatch);
    executor_unload(&s->executor, (uint32_t)c->value);
}

static void find_kernel(Server *s, const CudaCall *c, CudaAnswer *a)
{
    Error err;
    uint32_t kernel = 0;
    if (executor_kernel(&s->executor, (uint32_t)c->value, c->name, &kernel, &a->u.kernel, &err))
        refuse(a, CU_OK, err.text);
    a->value = kernel;
}

static void count(Server *s, const LaunchList *l, CudaAnswer *a)
{
    Error err;
    int n = 0;
    if (stopwatch_counters(&s->stopwatch, l, a->u.counters.list, &n, &a->end, &err) < 0)
        refuse(a, CU_OK, err.text);
    a->u.counters.n = n;
}

/* Prepares the process for another candidate: resets all of its device memory but buffers and code. */
static void reset(Server *s, CudaAnswer *a)
{
    CuResult r = stopwatch_reset(&s->stopwatch);
    if (r == CU_OK) r = library_workspace_reset(s->executor.stream);
    if (r == CU_OK) r = executor_wait(&s->executor);
    if (r != CU_OK) refuse(a, r, "memory cannot be overwritten");
}

static void answer_call(Server *s, const CudaCall *c, int fd, CudaAnswer *a)
{
    LaunchList l = {s->mailbox, c->bytes, (int)c->launches};
    *a = (CudaAnswer){.kind = c->kind, .sequence = c->sequence};
    if (!s->base && c->kind != CALL_SETUP) {
        refuse(a, CU_OK, "not set up");
        return;
    }
    switch ((CallKind)c->kind) {
    case CALL_SETUP: set_up(s, c, fd, a); break;
    case CALL_LOAD_STOPWATCH: load_stopwatch(s, a); break;
    case CALL_MAP: map(s, c, fd, a); break;
    case CALL_UNMAP: unmap(s, c, a); break;
    case CALL_LOAD: load(s, a); break;
    case CALL_UNLOAD: unload(s, c); break;
    case CALL_KERNEL: find_kernel(s, c, a); break;
    case CALL_RUN: executor_run(&s->executor, &l, &a->end); break;
    case CALL_CLOCK:
        stopwatch_clock(&s->stopwatch, &l, (ClockMode)c->mode,
                        (StallWait){c->period_ns, c->phase_ns}, &a->u.clock, &a->end);
        break;
    case CALL_COUNTERS: count(s, &l, a); break;
    case CALL_RESET: reset(s, a); break;
    case CALL_HELLO:
    case CALL_KINDS: break; /* protocol_check_call refuses them */
    }
}

static int open_device(Server *s, int ordinal, CudaAnswer *a, Error *err)
{
    double start = clock_seconds();
    const CudaDriver *cu = cuda_driver(err);
    a->u.opened.driver_s = clock_seconds() - start;
    start = clock_seconds();
    int rc = cu && !executor_open(&s->executor, cu, ordinal, err)
                 ? stopwatch_open(&s->stopwatch, &s->executor, err)
                 : -1;
    a->u.opened.context_s = clock_seconds() - start;
    return rc;
}

/* Answer the harness's calls on the socket until it closes (0), or until a launch has lost the
 * context (-1). */
static int runner_server_run(const RunnerServer *of, Error *err)
{
    static Server s;
    static CudaAnswer a;
    static CudaCall c;
    a = (CudaAnswer){.kind = CALL_HELLO};
    int socket = of->socket, fd = -1, rc = open_device(&s, of->ordinal, &a, err);
    if (of->hold >= 0) close(of->hold);
    if (of->libraries) s.executor.library = library_call;
    if (rc) refuse(&a, CU_OK, err->text);
    /* Only now, since the driver may have to start a privileged program that loads its module. */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (message_send(socket, &a, sizeof a, -1, err)) rc = -1;
    while (!rc) {
        /* While timing, the next call comes soon, usually after one call to the other runner. */
        if (a.kind == CALL_CLOCK) message_spin(socket, 2 * MESSAGE_SPIN_US * 1e-6);
        ssize_t n = message_receive(socket, &c, sizeof c, &fd);
        if (n <= 0) break;
        rc = protocol_check_call(&c, (size_t)n, err);
        if (!rc) {
            answer_call(&s, &c, fd, &a);
            rc = message_send(socket, &a, sizeof a, -1, err);
        }
        if (fd >= 0) close(fd);
        if (!rc && a.end.context_lost) rc = error_set(err, ERROR_DEVICE, "the context is lost");
    }
    /* Nothing is released: the end of the process frees all, and a call into a lost context might
     * not return. */
    return rc;
}

static int is_socket(int fd)
{
    int type;
    socklen_t n = sizeof type;
    return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) && type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
    Flag flags[] = {{.name = NULL}};
    FlagSpec spec = {.program = "quern-cudarunner",
                     .synopsis = "DEVICE PARENT [trusted|library]",
                     .about = "Started by Quern's evaluators, for the kernels that they judge, "
                              "with a socket as descriptor 3; not by hand.",
                     .flags = flags,
                     .min_words = 2,
                     .max_words = 3};
    const char *words[3];
    Error err = {0};
    /* Before the driver opens files of its own at that number. */
    int hold = fcntl(PROTOCOL_HOLD, F_GETFD) < 0 ? -1 : PROTOCOL_HOLD;
    int libraries = flags_parse(&spec, argc, argv, words) == 3;
    int known = !libraries || !strcmp(words[2], "trusted") || !strcmp(words[2], "library");
    if (!known || !is_socket(PROTOCOL_FD)) flags_usage_error(&spec, "it is not started by hand");
    process_die_with_parent();
    if (getppid() != atoi(words[1])) return 1;
    /* The parent handles the signals that ask to stop. */
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    /* A module is loaded completely, so that nothing is loaded between two events. Libraries are
     * too large for that, and what calls them has run before it is timed. The driver compiles nothing,
     * so its cache is off. */
    setenv("CUDA_MODULE_LOADING", libraries ? "LAZY" : "EAGER", 1);
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    const RunnerServer s = {PROTOCOL_FD, atoi(words[0]), libraries, hold};
    int rc = runner_server_run(&s, &err);
    _exit(rc ? 1 : 0);
}
