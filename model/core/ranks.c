/* The ranks: child processes connected to rank 0 by socket pairs. Rank 0 adds in the order of the
 * ranks, so that sums do not depend on timing. */
#include "model/core/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "gpu/gpus.h"

/* Timeout of an exchange: a step takes seconds, a checkpoint or an evaluation minutes. */
static const double wait_s = 3600;

static struct {
    int rank, size;      /* size 0: not started */
    int up;              /* in a child: the socket to rank 0 */
    int down[RANKS_MAX]; /* in rank 0: the sockets to the others */
    pid_t child[RANKS_MAX];
    pthread_t watcher;
    atomic_int finishing;
    const Collectives *collectives; /* of the device, or NULL */
} group = {.up = -1};

int ranks_rank(void)
{
    return group.rank;
}
int ranks_size(void)
{
    return group.size ? group.size : 1;
}

/* ---- sockets between rank 0 and each of the others ---- */

/* Send or receive all of the bytes. Returns -1 when the other side is gone or silent. */
static int transfer(int fd, void *data, size_t bytes, int out, Error *err)
{
    double end = clock_seconds() + wait_s;
    for (size_t done = 0; done < bytes;) {
        struct pollfd p = {.fd = fd, .events = (short)(out ? POLLOUT : POLLIN)};
        double left = end - clock_seconds();
        int ready = left > 0 ? poll(&p, 1, (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (!ready) return error_set(err, ERROR_CHILD, "a rank did not answer within %g s", wait_s);
        ssize_t n = out ? send(fd, (char *)data + done, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : recv(fd, (char *)data + done, bytes - done, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) return error_errno(err, "a rank cannot be reached");
        if (!n) return error_set(err, ERROR_CHILD, "a rank has ended");
        done += (size_t)n;
    }
    return 0;
}

/* In rank 0 the watcher reports a rank that has ended, since it knows how, and ends this process.
 * Wait for it. */
static int wait_if_lost(int rc)
{
    if (rc && !group.rank && !atomic_load(&group.finishing)) clock_sleep(5);
    return rc;
}

static int put(int fd, const void *data, size_t bytes, Error *err)
{
    return wait_if_lost(transfer(fd, (void *)(uintptr_t)data, bytes, 1, err));
}

static int get(int fd, void *data, size_t bytes, Error *err)
{
    return wait_if_lost(transfer(fd, data, bytes, 0, err));
}

/* ---- start ---- */

/* Describe how a child ended. Returns 1 when it failed. */
static int describe_end(int rank, char *out, size_t size)
{
    int status = 0;
    pid_t got = 0;
    for (int i = 0; i < 100 && !got; i++) { /* the socket closes shortly before the process ends */
        got = waitpid(group.child[rank], &status, WNOHANG);
        if (!got) clock_sleep(0.01);
    }
    if (got == group.child[rank]) group.child[rank] = 0;
    if (got == 0)
        snprintf(out, size, "rank %d left the others", rank);
    else if (WIFSIGNALED(status))
        snprintf(out, size, "rank %d ended by signal %d (%s)", rank, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "rank %d ended with exit status %d", rank, WEXITSTATUS(status));
    return got == 0 || status != 0;
}

/* In rank 0: detect a rank that ends while the others still wait for it. They may wait within the
 * driver, where nothing else would end them. */
static void *watch(void *unused)
{
    struct pollfd p[RANKS_MAX];
    char what[160];
    (void)unused;
    for (int r = 1; r < group.size; r++)
        p[r - 1] = (struct pollfd){.fd = group.down[r], .events = POLLRDHUP};
    for (;;) {
        int n = poll(p, (nfds_t)group.size - 1, 1000);
        if (atomic_load(&group.finishing)) return NULL;
        for (int r = 1; r < group.size && n > 0; r++) {
            if (!(p[r - 1].revents & (POLLRDHUP | POLLHUP | POLLERR))) continue;
            /* Let rank 0 print its own, more precise sentence first. */
            clock_sleep(0.2);
            describe_end(r, what, sizeof what);
            log_warn("%s; the others cannot go on without it", what);
            _exit(1); /* skip the driver's destructors, which would wait for the lost rank */
        }
    }
}

static void become_child(int rank, int fd)
{
    static char name[16];
    pid_t parent = getppid();
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    process_die_with_parent();
    setpgid(0, 0); /* Ctrl-C goes to rank 0 */
    if (getppid() != parent || parent == 1) _exit(1);
    for (int r = 1; r < rank; r++) close(group.down[r]);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    close(nowhere);
    group.rank = rank;
    group.up = fd;
    snprintf(name, sizeof name, "rank %d", rank);
    setenv("QUERN_LOG", "quiet", 1);
    log_open(name); /* warnings and errors only, with the name of the rank */
}

int ranks_start(int n, Error *err)
{
    if (n < 1 || n > RANKS_MAX)
        return error_set(err, ERROR_USAGE, "expected 1 to %d ranks, found %d", RANKS_MAX, n);
    if (group.size) return error_set(err, ERROR_INVALID, "the ranks are started already");
    fflush(NULL);
    if (n == 1) return 0;
    group.size = n;
    for (int r = 1; r < n; r++) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
            return error_errno(err, "cannot make a socket for rank %d", r);
        pid_t pid = fork();
        if (pid < 0) return error_errno(err, "cannot make a process for rank %d", r);
        if (!pid) {
            close(fds[0]);
            become_child(r, fds[1]);
            return 0;
        }
        close(fds[1]);
        group.down[r] = fds[0];
        group.child[r] = pid;
    }
    if (pthread_create(&group.watcher, NULL, watch, NULL))
        return error_set(err, ERROR_IO, "cannot watch the ranks");
    return 0;
}

int ranks_device(const char *name, char out[16], Error *err)
{
    Gpu gpu;
    char *end = NULL;
    int gpus = strcmp(name, "auto") ? 0 : gpus_list(&gpu, 1, err);
    long first = strncmp(name, "cuda:", 5) ? 0 : strtol(name + 5, &end, 10);
    if (gpus < 0) return -1;
    if (end ? *end || end == name + 5 || first < 0 || first >= GPUS_MAX
            : strcmp(name, "cpu") && strcmp(name, "auto"))
        return error_set(err, ERROR_UNKNOWN_NAME, "a device is cpu, cuda:N or auto, found \"%s\"",
                         name);
    if (end || gpus)
        snprintf(out, 16, "cuda:%ld", first + group.rank);
    else
        snprintf(out, 16, "cpu");
    return 0;
}

int ranks_join(const Ops *ops, Error *err)
{
    unsigned char id[COLLECTIVE_ID_BYTES] = {0};
    const Collectives *of = ops->collectives;
    if (!group.size) return 0;
    if (of && !group.rank && of->new_id(id, err)) return -1;
    if (ranks_host_share(id, sizeof id, err)) return -1;
    if (of && of->join(id, group.rank, group.size, err)) return -1;
    group.collectives = of;
    return 0;
}

/* ---- the end ---- */

/* A child reports that it is done and waits for the release by rank 0, so that no rank ends while
 * another needs it. */
static _Noreturn void finish_child(void)
{
    char byte = 0;
    Error err;
    if (put(group.up, &byte, 1, &err) || get(group.up, &byte, 1, &err)) log_die(&err);
    if (group.collectives) group.collectives->leave();
    fflush(NULL);
    _exit(0);
}

int ranks_finish(Error *err)
{
    char byte, what[160];
    int rc = 0;
    if (!group.size) return 0;
    if (group.rank) finish_child();
    for (int r = 1; r < group.size; r++)
        if (get(group.down[r], &byte, 1, err)) return error_prefix(err, "rank %d", r);
    atomic_store(&group.finishing, 1);
    for (int r = 1; r < group.size && !rc; r++) rc = put(group.down[r], &byte, 1, err);
    if (group.collectives && !rc) group.collectives->leave();
    pthread_join(group.watcher, NULL); /* the first rank to end wakes it */
    for (int r = 1; r < group.size && !rc; r++) {
        double end = clock_seconds() + 60;
        while (recv(group.down[r], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN &&
               clock_seconds() < end)
            clock_sleep(0.005);
        if (describe_end(r, what, sizeof what)) rc = error_set(err, ERROR_CHILD, "%s", what);
        close(group.down[r]);
    }
    group.size = 0;
    group.collectives = NULL;
    return rc;
}

/* ---- host memory ---- */

int ranks_host_sum(double *x, int n, Error *err)
{
    if (!group.size || n < 1) return 0;
    size_t bytes = (size_t)n * sizeof *x;
    if (group.rank) return -(put(group.up, x, bytes, err) || get(group.up, x, bytes, err));
    double *other = memory_alloc(bytes);
    int rc = 0;
    for (int r = 1; r < group.size && !rc; r++) {
        rc = get(group.down[r], other, bytes, err);
        for (int i = 0; i < n && !rc; i++) x[i] += other[i];
    }
    for (int r = 1; r < group.size && !rc; r++) rc = put(group.down[r], x, bytes, err);
    free(other);
    return rc;
}

int ranks_host_share(void *p, size_t bytes, Error *err)
{
    int rc = 0;
    if (!group.size) return 0;
    if (group.rank) return get(group.up, p, bytes, err);
    for (int r = 1; r < group.size && !rc; r++) rc = put(group.down[r], p, bytes, err);
    return rc;
}

/* ---- device memory: NCCL on GPUs, through rank 0 on the CPU ---- */

size_t ranks_each(size_t n, size_t align)
{
    size_t size = (size_t)ranks_size(), each = (n + size - 1) / size;
    return (each + align - 1) / align * align;
}

/* Compute the sum of all ranks in rank 0. */
static int gather_sum(float *x, size_t n, Error *err)
{
    if (group.rank) return put(group.up, x, n * sizeof *x, err);
    float *other = memory_array(n + 1, sizeof *other);
    int rc = 0;
    for (int r = 1; r < group.size && !rc; r++) {
        rc = get(group.down[r], other, n * sizeof *x, err);
        for (size_t i = 0; i < n && !rc; i++) x[i] += other[i];
    }
    free(other);
    return rc;
}

int ranks_all_reduce(float *x, size_t n, Error *err)
{
    if (!group.size || !n) return 0;
    if (!group.collectives)
        return -(gather_sum(x, n, err) || ranks_host_share(x, n * sizeof *x, err));
    group.collectives->all_reduce(x, n);
    return 0;
}

int ranks_reduce_scatter(float *x, size_t each, Error *err)
{
    if (!group.size || !each) return 0;
    if (group.collectives) {
        group.collectives->reduce_scatter(x, each);
        return 0;
    }
    size_t mine = each * (size_t)group.rank, rest = each * (size_t)(group.size - 1 - group.rank);
    if (ranks_all_reduce(x, each * (size_t)group.size, err)) return -1;
    memset(x, 0, mine * sizeof *x);
    memset(x + mine + each, 0, rest * sizeof *x);
    return 0;
}

int ranks_all_gather(void *p, size_t bytes, Error *err)
{
    int rc = 0;
    if (!group.size || !bytes) return 0;
    if (group.collectives) {
        group.collectives->all_gather(p, bytes);
        return 0;
    }
    if (group.rank) rc = put(group.up, (char *)p + (size_t)group.rank * bytes, bytes, err);
    for (int r = 1; r < group.size && !group.rank && !rc; r++)
        rc = get(group.down[r], (char *)p + (size_t)r * bytes, bytes, err);
    return rc ? rc : ranks_host_share(p, bytes * (size_t)group.size, err);
}

void ranks_settle(void)
{
    if (group.collectives) group.collectives->settle();
}
