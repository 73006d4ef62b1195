/* One waiting child at a time, which reads its request from a pipe. */
#include "eval/compile/prefork.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "eval/compile/wire.h"

/* MAX_REQUEST: a pipe holds it whole, so the server never waits for a child that does not read. */
enum { MAX_REQUEST = 60 << 10, TAKE_TIMEOUT_MS = 10000 };
struct Prefork {
    PreforkWork *work;
    PreforkReady *ready;
    void *context;
    pid_t pid; /* of the waiting child; 0: none */
    int to, from;
};

Prefork *prefork_open(PreforkWork *work, PreforkReady *ready, void *context)
{
    Prefork *s = memory_alloc(sizeof *s);
    s->work = work;
    s->ready = ready;
    s->context = context;
    return s;
}

/* In the child: `in` becomes descriptor 0, `out` stays, 1 and 2 are /dev/null, all others are
 * closed. */
static int keep_files(int in, int out)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (out < 3 || null < 0 || dup2(in, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0) return -1;
    if (out > 3 && syscall(SYS_close_range, 3u, (unsigned)out - 1, 0u)) return -1;
    return syscall(SYS_close_range, (unsigned)out + 1, ~0u, 0u) ? -1 : 0;
}

static _Noreturn void child(const Prefork *s, int in, int out)
{
    Buffer request;
    struct timespec used;
    buffer_init(&request, MAX_REQUEST);
    process_die_with_parent(); /* when it died before this call, the input has ended */
    if (keep_files(in, out)) _exit(1);
    if (s->ready) s->ready(s->context);
    if (wire_read_frame(0, MAX_REQUEST, 0, &request, NULL) <= 0 || write(out, "", 1) != 1) _exit(1);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    s->work(s->context, &request, (double)used.tv_sec + 1e-9 * (double)used.tv_nsec, out);
    _exit(1);
}

static void close_both(int a, int b)
{
    close(a);
    close(b);
}

void prefork_fork(Prefork *s)
{
    int request[2], reply[2];
    if (s->pid || pipe2(request, O_CLOEXEC)) return;
    if (pipe2(reply, O_CLOEXEC)) {
        close_both(request[0], request[1]);
        return;
    }
    pid_t pid = fork();
    if (pid == 0) child(s, request[0], reply[1]);
    close_both(request[0], reply[1]);
    if (pid < 0) {
        close_both(request[1], reply[0]);
        return;
    }
    fcntl(request[1], F_SETFL, O_NONBLOCK);
    s->pid = pid;
    s->to = request[1];
    s->from = reply[0];
}

/* Wait for the byte by which the child confirms the request. A child that ends before it was killed
 * from outside, so the request is compiled by another child. */
static int said_taken(int fd)
{
    char byte;
    int ready;
    struct pollfd p = {fd, POLLIN, 0};
    do ready = poll(&p, 1, TAKE_TIMEOUT_MS);
    while (ready < 0 && errno == EINTR);
    return ready > 0 && read(fd, &byte, 1) == 1;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

pid_t prefork_take(Prefork *s, const Buffer *request, int *fd)
{
    if (!s->pid || request->len > MAX_REQUEST) return 0;
    pid_t pid = s->pid;
    int taken = !wire_write_frame(s->to, request->data, request->len, NULL) && said_taken(s->from);
    s->pid = 0;
    close(s->to);
    *fd = s->from;
    if (taken) return pid;
    close(s->from);
    end_child(pid);
    return 0;
}

void prefork_close(Prefork *s)
{
    if (s->pid) {
        close_both(s->to, s->from);
        end_child(s->pid);
    }
    free(s);
}
