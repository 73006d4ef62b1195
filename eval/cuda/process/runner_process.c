/* The runner process as a child: a socket pair, the mailbox in a memfd, and waits that end. */
#include "eval/cuda/process/runner_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"

enum { READY_S = 60, SEND_S = 10, END_S = 20, END_NAP_US = 200 };
extern char **environ;

/* ---- messages ---- */

int message_send(int socket, const void *data, size_t size, int fd, Error *err)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec part = {(void *)(uintptr_t)data, size};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        *h = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(h), &fd, sizeof fd);
    }
    ssize_t n;
    do n = sendmsg(socket, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : error_errno(err, "a message of %zu bytes cannot be sent", size);
}

ssize_t message_receive(int socket, void *data, size_t size, int *fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {data, size};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = fd ? control.bytes : NULL,
                       .msg_controllen = fd ? sizeof control.bytes : 0};
    ssize_t n;
    do n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (!fd) return n;
    struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    *fd = -1;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
        h->cmsg_len == CMSG_LEN(sizeof *fd))
        memcpy(fd, CMSG_DATA(h), sizeof *fd);
    return n;
}

/* ---- start and stop ---- */

/* hold: a descriptor for PROTOCOL_HOLD, or -1. */
static int spawn(const CudaRunner *r, const char *path, int socket, int hold, pid_t *pid,
                 Error *err)
{
    char ordinal[16], parent[16];
    snprintf(ordinal, sizeof ordinal, "%d", r->ordinal);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *argv[] = {(char *)(uintptr_t)path, ordinal, parent, (char *)(uintptr_t)r->role, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    /* The child inherits these alone: no queue connection or compiler's pipe. */
    int rc = posix_spawn_file_actions_adddup2(&files, socket, PROTOCOL_FD);
    if (!rc && hold >= 0) rc = posix_spawn_file_actions_adddup2(&files, hold, PROTOCOL_HOLD);
    if (!rc)
        rc = posix_spawn_file_actions_addclosefrom_np(&files, hold >= 0 ? PROTOCOL_HOLD + 1
                                                                        : PROTOCOL_FD + 1);
    for (int i = 0; i < 3 && !rc; i++)
        rc = posix_spawn_file_actions_addopen(&files, i, "/dev/null", O_RDWR, 0);
    if (!rc) rc = posix_spawn(pid, path, &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    if (!rc) return 0;
    errno = rc;
    return error_errno(err, "cannot start %s", path);
}

/* The descriptor at a number that the child's own do not take. */
static int high(int fd)
{
    if (fd > PROTOCOL_HOLD || fd < 0) return fd;
    int to = fcntl(fd, F_DUPFD_CLOEXEC, PROTOCOL_HOLD + 1);
    close(fd);
    return to;
}

/* A process and the socket to it. */
static int start(const CudaRunner *r, int hold, pid_t *pid, int *fd, Error *err)
{
    char path[4096];
    int fds[2];
    struct timeval limit = {SEND_S, 0};
    if (process_find_program("quern-cudarunner", path, sizeof path, err)) return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
        return error_errno(err, "cannot make a socket pair");
    fds[1] = high(fds[1]);
    hold = hold < 0 ? -1 : fcntl(hold, F_DUPFD_CLOEXEC, PROTOCOL_HOLD + 1);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    int rc = spawn(r, path, fds[1], hold, pid, err);
    close(fds[1]);
    if (hold >= 0) close(hold);
    if (rc) {
        close(fds[0]);
        return -1;
    }
    *fd = fds[0];
    return 0;
}

int cudarunner_start(CudaRunner *r, Error *err)
{
    if (r->spare) {
        r->pid = r->spare;
        r->fd = r->spare_fd;
        r->spare = 0;
    } else if (start(r, -1, &r->pid, &r->fd, err)) {
        r->pid = 0;
        return -1;
    }
    r->ready = 0;
    r->generation++;
    return 0;
}

int cudarunner_spare(CudaRunner *r, int hold, Error *err)
{
    if (r->spare) return 0;
    if (!start(r, hold, &r->spare, &r->spare_fd, err)) return 0;
    r->spare = 0;
    return -1;
}

int cudarunner_open(CudaRunner *r, int ordinal, const char *role, Error *err)
{
    *r = (CudaRunner){.ordinal = ordinal, .role = role, .fd = -1};
    r->mailbox_fd = memfd_create("quern-mailbox", MFD_CLOEXEC);
    if (r->mailbox_fd < 0 || ftruncate(r->mailbox_fd, PROTOCOL_MAILBOX)) {
        error_errno(err, "cannot make the runner's mailbox");
        cudarunner_close(r);
        return -1;
    }
    void *at = mmap(NULL, PROTOCOL_MAILBOX, PROT_READ | PROT_WRITE, MAP_SHARED, r->mailbox_fd, 0);
    if (at == MAP_FAILED) {
        error_errno(err, "cannot map the runner's mailbox");
        cudarunner_close(r);
        return -1;
    }
    r->mailbox = at;
    return 0;
}

const char *cudarunner_name(const CudaRunner *r)
{
    return !r->role                      ? "the runner"
           : !strcmp(r->role, "library") ? "the runner with libraries"
                                         : "the baselines' runner";
}

void cudarunner_kill(CudaRunner *r)
{
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
    r->ready = 0;
    if (r->pid) kill(r->pid, SIGKILL);
}

void cudarunner_kill_all(CudaRunner *r)
{
    cudarunner_kill(r);
    if (!r->spare) return;
    if (r->spare_fd >= 0) close(r->spare_fd);
    r->spare_fd = -1;
    kill(r->spare, SIGKILL);
}

/* Wait until a process that was killed has ended, and set *pid to 0. */
static int await_end(pid_t *pid, int *status, Error *err)
{
    double start = clock_seconds();
    while (*pid) {
        pid_t ended = waitpid(*pid, status, WNOHANG);
        if (ended == *pid || (ended < 0 && errno != EINTR)) break;
        if (clock_seconds() - start > END_S)
            return error_set(err, ERROR_DEVICE,
                             "the runner (process %d) does not end although it was killed: the GPU "
                             "or its driver hangs",
                             (int)*pid);
        clock_sleep(END_NAP_US * 1e-6);
    }
    *pid = 0;
    return 0;
}

int cudarunner_stop(CudaRunner *r, Error *err)
{
    cudarunner_kill(r);
    return await_end(&r->pid, &r->status, err);
}

int cudarunner_reaped(CudaRunner *r)
{
    int status;
    if (!r->ending || waitpid(r->ending, &status, WNOHANG) == 0) return !r->ending;
    log_debug("%s before has ended after %.0f ms", cudarunner_name(r),
              1e3 * (clock_seconds() - r->ending_since));
    r->ending = 0;
    return 1;
}

int cudarunner_reap(CudaRunner *r, Error *err)
{
    int status;
    if (cudarunner_reaped(r)) return 0;
    double start = clock_seconds();
    int rc = await_end(&r->ending, &status, err);
    log_debug("%s before has ended after %.0f ms, of which %.0f were waited for",
              cudarunner_name(r), 1e3 * (clock_seconds() - r->ending_since),
              1e3 * (clock_seconds() - start));
    return rc;
}

int cudarunner_next(CudaRunner *r, Error *err)
{
    if (cudarunner_reap(r, err)) return -1;
    cudarunner_kill(r);
    r->ending = r->pid;
    r->ending_since = clock_seconds();
    r->pid = 0;
    return cudarunner_start(r, err);
}

void cudarunner_poll(CudaRunner *r)
{
    if (!r->pid || waitpid(r->pid, &r->status, WNOHANG) == 0) return;
    r->pid = 0;
    cudarunner_stop(r, NULL);
}

void cudarunner_close(CudaRunner *r)
{
    cudarunner_kill_all(r);
    cudarunner_stop(r, NULL);
    cudarunner_reap(r, NULL);
    await_end(&r->spare, &r->status, NULL);
    if (r->mailbox) munmap(r->mailbox, PROTOCOL_MAILBOX);
    if (r->mailbox_fd >= 0) close(r->mailbox_fd);
    r->mailbox = NULL;
    r->mailbox_fd = -1;
}

/* ---- calls ---- */

int message_spin(int fd, double s)
{
    double end = clock_seconds() + s;
    struct pollfd p = {fd, POLLIN, 0};
    while (poll(&p, 1, 0) <= 0)
        if (clock_seconds() > end) return 0;
    return 1;
}

/* Returns 1 when fd is readable, 0 when the limit has passed. */
static int wait_readable(int fd, double limit_s)
{
    double end = clock_seconds() + limit_s;
    if (message_spin(fd, MESSAGE_SPIN_US * 1e-6)) return 1;
    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        double left = end - clock_seconds();
        int n = poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        if (n > 0) return 1;
        if (n < 0 && errno != EINTR) return 0;
        if (left <= 0) return 0;
    }
}

/* The process has ended, or closed its socket and will end. Its status tells a crash from an
 * exit. */
static RunnerReply wait_ended(CudaRunner *r, Error *err)
{
    double start = clock_seconds();
    while (r->pid && clock_seconds() - start < END_S) {
        pid_t ended = waitpid(r->pid, &r->status, WNOHANG);
        if (ended == r->pid || (ended < 0 && errno != EINTR))
            r->pid = 0;
        else
            clock_sleep(END_NAP_US * 1e-6);
    }
    return cudarunner_stop(r, err) ? RUNNER_BROKEN : RUNNER_ENDED;
}

static RunnerReply broken(CudaRunner *r)
{
    cudarunner_stop(r, NULL);
    return RUNNER_BROKEN;
}

static RunnerReply await(CudaRunner *r, const CudaCall *call, double limit_s, CudaAnswer *answer,
                         Error *err)
{
    if (!wait_readable(r->fd, limit_s))
        return cudarunner_stop(r, err) ? RUNNER_BROKEN : RUNNER_LATE;
    ssize_t n = message_receive(r->fd, answer, sizeof *answer, NULL);
    if (n <= 0) return wait_ended(r, err);
    return protocol_check(call, answer, (size_t)n, err) ? broken(r) : RUNNER_ANSWERED;
}

RunnerReply cudarunner_call(CudaRunner *r, CudaCall *call, int fd, double limit_s,
                            CudaAnswer *answer, Error *err)
{
    memset(answer, 0, sizeof *answer);
    if (!r->pid) {
        error_set(err, ERROR_DEVICE, "no runner process");
        return RUNNER_BROKEN;
    }
    call->sequence = ++r->sequence;
    if (message_send(r->fd, call, sizeof *call, fd, err))
        return errno == EPIPE || errno == ECONNRESET ? wait_ended(r, err) : broken(r);
    return await(r, call, limit_s, answer, err);
}

int cudarunner_wait(CudaRunner *r, Error *err)
{
    CudaAnswer a;
    CudaCall hello = {.kind = CALL_HELLO};
    if (r->ready) return 0;
    RunnerReply reply = await(r, &hello, READY_S, &a, err);
    if (reply == RUNNER_LATE)
        return error_set(err, ERROR_DEVICE, "quern-cudarunner was not ready after %d s", READY_S);
    if (reply == RUNNER_ENDED)
        return error_set(err, ERROR_DEVICE,
                         "quern-cudarunner ended before it was ready (wait status %d)", r->status);
    if (reply != RUNNER_ANSWERED) return error_prefix(err, "quern-cudarunner");
    if (a.end.step != END_OK) {
        cudarunner_stop(r, NULL);
        return error_set(err, ERROR_DEVICE, "quern-cudarunner: %s", a.end.text);
    }
    r->ready = 1;
    log_debug("%s ready: its driver took %.0f ms, its context %.0f ms", cudarunner_name(r),
              a.u.opened.driver_s * 1e3, a.u.opened.context_s * 1e3);
    return 0;
}
