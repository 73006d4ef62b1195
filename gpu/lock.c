/* The lock of a GPU as two byte locks of one file. A process that wants the exclusive side holds
 * the entry byte while it waits, and every process that wants the shared side must pass through
 * it. */
#include "gpu/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

enum { ENTRY_BYTE = 0, HOLD_BYTE = 1 };
static const double shortest_s = 50e-6, longest_s = 1e-3;
/* Seconds for which a process that waits for the exclusive side lets no other process share the lock, and
 * those for which it does then: a candidate's run may take seconds, and checks need not wait for it. It does
 * so in this part of its time alone: each of several long works could begin before another one ends. */
static const double kept_s = 0.06, let_in_s = 0.06, lent_part = 0.05;
/* A shared hold as long as this is logged, as every exclusive one. */
static const double told_s = 0.1;

struct GpuLock {
    int fd;
    GpuHold held;
    double idle_s;          /* lock_idle_s */
    double waited_s, since; /* for the log */
    char path[PATH_MAX];
};

/* Some kernels refuse O_CREAT on another user's file in a sticky folder, so it is used only for a
 * new file. */
static int open_file(const char *path)
{
    for (int tries = 0; tries < 100; tries++) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 || errno != ENOENT) return fd;
        fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_CREAT | O_EXCL, 0666);
        if (fd >= 0) {
            if (!fchmod(fd, 0666)) return fd; /* fchmod, since the umask limits the mode of open */
            close(fd);
            return -1;
        }
        if (errno != EEXIST) return -1;
    }
    return -1;
}

int lock_open(const char *uuid, GpuLock **out, Error *err)
{
    const char *dir = getenv("QUERN_LOCK_DIR");
    struct stat st;
    if (!*uuid || strchr(uuid, '/'))
        return error_set(err, ERROR_INVALID, "a GPU's lock needs its uuid, found \"%s\"", uuid);
    GpuLock *l = memory_alloc(sizeof *l);
    l->idle_s = INFINITY;
    int n =
        snprintf(l->path, sizeof l->path, "%s/quern-gpu-%s.lock", dir && *dir ? dir : "/tmp", uuid);
    l->fd = n < (int)sizeof l->path ? open_file(l->path) : -1;
    if (n >= (int)sizeof l->path)
        error_set(err, ERROR_LIMIT, "QUERN_LOCK_DIR has %zu bytes", strlen(dir));
    else if (l->fd < 0)
        error_errno(err, "cannot open the GPU's lock %s", l->path);
    else if (fstat(l->fd, &st))
        error_errno(err, "cannot look at the GPU's lock %s", l->path);
    else if (!S_ISREG(st.st_mode))
        error_set(err, ERROR_IO, "the GPU's lock %s is no file", l->path);
    else {
        *out = l;
        return 0;
    }
    lock_close(l);
    return -1;
}

void lock_close(GpuLock *l)
{
    if (!l) return;
    if (l->fd >= 0) close(l->fd);
    free(l);
}

/* Returns 1 when the byte was locked, 0 when another process holds it, -1 on an error. */
static int try_byte(const GpuLock *l, int byte, int type, Error *err)
{
    struct flock f = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    while (fcntl(l->fd, F_OFD_SETLK, &f)) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EACCES) return 0;
        return error_errno(err, "cannot lock %s", l->path);
    }
    return 1;
}

static void free_byte(const GpuLock *l, int byte)
{
    try_byte(l, byte, F_UNLCK, NULL);
}

static int waited_too_long(const GpuLock *l, double wait_s, Error *err)
{
    char who[32] = "";
    int pid = 0;
    if (pread(l->fd, who, sizeof who - 1, 0) > 0) pid = atoi(who);
    if (pid > 0)
        return error_set(
            err, ERROR_DEVICE,
            "the GPU's lock %s was not free within %g s; the last to time was process %d", l->path,
            wait_s, pid);
    return error_set(err, ERROR_DEVICE, "the GPU's lock %s was not free within %g s", l->path,
                     wait_s);
}

/* Lock both bytes, or neither. A process that wants the exclusive side keeps the entry byte while
 * it waits for the shared holders, and at first lets others share now and then while one of them does not
 * end. */
static int take(GpuLock *l, int type, double wait_s, Error *err)
{
    double start = clock_seconds(), end = start + wait_s, pause = shortest_s, since = 0;
    const double lent = start + lent_part * wait_s;
    int entered = 0;
    for (;;) {
        int rc = entered ? 1 : try_byte(l, ENTRY_BYTE, type, err);
        if (rc > 0 && !entered) entered = 1, since = clock_seconds();
        if (entered) rc = try_byte(l, HOLD_BYTE, type, err);
        if (rc > 0) {
            l->since = clock_seconds();
            l->waited_s = l->since - start;
            return 0;
        }
        if (entered && (rc < 0 || type == F_RDLCK)) {
            free_byte(l, ENTRY_BYTE);
            entered = 0;
        }
        if (rc < 0) return -1;
        if (clock_seconds() >= end) {
            if (entered) free_byte(l, ENTRY_BYTE);
            return waited_too_long(l, wait_s, err);
        }
        const double now = clock_seconds();
        if (entered && now < lent && now - since > kept_s) {
            free_byte(l, ENTRY_BYTE);
            entered = 0;
            clock_sleep(let_in_s);
        }
        clock_sleep(pause);
        pause = pause * 2 < longest_s ? pause * 2 : longest_s;
    }
}

static int refuse_nesting(const GpuLock *l, Error *err)
{
    if (l->held == GPU_FREE) return 0;
    return error_set(err, ERROR_INVALID, "the GPU's lock %s is held %s by this process already",
                     l->path, l->held == GPU_EXCLUSIVE ? "exclusively" : "shared");
}

static double idle_since(const GpuLock *l)
{
    struct stat st;
    if (fstat(l->fd, &st) || !st.st_size) return INFINITY;
    double end = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
    return fmax(clock_unix() - end, 0);
}

double lock_idle_s(const GpuLock *l)
{
    return l->idle_s;
}

int lock_exclusive(GpuLock *l, double wait_s, Error *err)
{
    char who[32];
    if (refuse_nesting(l, err) || take(l, F_WRLCK, wait_s, err)) return -1;
    l->held = GPU_EXCLUSIVE;
    l->idle_s = idle_since(l);
    int n = snprintf(who, sizeof who, "%-11d\n", (int)getpid());
    if (pwrite(l->fd, who, (size_t)n, 0) == n) return 0;
    error_errno(err, "cannot write %s", l->path);
    lock_release(l);
    return -1;
}

int lock_shared(GpuLock *l, double wait_s, Error *err)
{
    if (refuse_nesting(l, err) || take(l, F_RDLCK, wait_s, err)) return -1;
    free_byte(l, ENTRY_BYTE);
    l->held = GPU_SHARED;
    return 0;
}

int lock_shared_descriptor(const GpuLock *l)
{
    GpuLock own = {.fd = open_file(l->path)};
    if (own.fd < 0) return -1;
    int entered = try_byte(&own, ENTRY_BYTE, F_RDLCK, NULL) > 0;
    int held = entered && try_byte(&own, HOLD_BYTE, F_RDLCK, NULL) > 0;
    if (entered) free_byte(&own, ENTRY_BYTE);
    if (held) return own.fd;
    close(own.fd);
    return -1;
}

void lock_release(GpuLock *l)
{
    if (l->held == GPU_FREE) return;
    double held_s = clock_seconds() - l->since;
    if (l->held == GPU_EXCLUSIVE || held_s > told_s)
        log_debug("the GPU's lock: waited %.1f ms, held it %s for %.1f ms", l->waited_s * 1e3,
                  l->held == GPU_EXCLUSIVE ? "alone" : "beside others", held_s * 1e3);
    if (l->held == GPU_EXCLUSIVE)
        (void)futimens(l->fd, NULL); /* else the GPU seems idle since it began */
    free_byte(l, HOLD_BYTE);
    if (l->held == GPU_EXCLUSIVE) free_byte(l, ENTRY_BYTE);
    l->held = GPU_FREE;
}

GpuHold lock_held(const GpuLock *l)
{
    return l->held;
}

int lock_is_contended(const GpuLock *l)
{
    struct flock f = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = ENTRY_BYTE, .l_len = 1};
    while (fcntl(l->fd, F_OFD_GETLK, &f))
        if (errno != EINTR) return 0;
    return f.l_type != F_UNLCK;
}
