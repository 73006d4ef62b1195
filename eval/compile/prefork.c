/* One waiting child at a time. The pages that it copies are found in /proc/self/maps and pagemap.
 */
#include "eval/compile/prefork.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "eval/compile/wire.h"

#ifndef MADV_POPULATE_WRITE
/* Since Linux 5.14. An older kernel refuses it, and the pages are copied when they are written. */
#define MADV_POPULATE_WRITE 23
#endif

/* MAX_REQUEST: a pipe holds it whole, so the server never waits for a child that does not read. */
enum { MAX_REQUEST = 60 << 10, MAX_RANGES = 512, TAKE_TIMEOUT_MS = 10000 };
static const uintptr_t max_mapping = (uintptr_t)256 << 20;
static const uintptr_t copied_at_once = (uintptr_t)64 << 10; /* takes about 40 us */

typedef struct {
    uintptr_t start, end;
} PageRange;

struct Prefork {
    PreforkWork *work;
    void *context;
    PageRange ranges[MAX_RANGES]; /* of pages that compiling has written */
    int n_ranges;
    pid_t pid; /* of the waiting child; 0: none */
    int to, from;
};

/* Add the pages of a mapping that are private to this process: those that a child would copy. */
static void add_ranges(Prefork *s, int pagemap, uintptr_t at, uintptr_t end)
{
    uint64_t pages[512];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    PageRange *range = NULL;
    while (at < end) {
        size_t n = (end - at) / page < 512 ? (end - at) / page : 512;
        if (pread(pagemap, pages, n * sizeof *pages, (off_t)(at / page * sizeof *pages)) !=
            (ssize_t)(n * sizeof *pages))
            return;
        for (size_t i = 0; i < n; i++, at += page) {
            int own = pages[i] >> 63 && !(pages[i] >> 61 & 1); /* present and anonymous */
            if (!own) {
                range = NULL;
            } else if (range) {
                range->end += page;
            } else if (s->n_ranges < MAX_RANGES) {
                range = &s->ranges[s->n_ranges++];
                *range = (PageRange){at, at + page};
            }
        }
    }
}

/* Without /proc there are no ranges, and the child copies nothing in advance. */
static void find_ranges(Prefork *s)
{
    char line[4400], mode[5];
    uintptr_t start, end;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end, mode) != 3) continue;
        if (mode[1] == 'w' && mode[3] == 'p' && end - start <= max_mapping)
            add_ranges(s, pagemap, start, end);
    }
    if (maps) fclose(maps);
    if (pagemap >= 0) close(pagemap);
}

Prefork *prefork_open(PreforkWork *work, void *context)
{
    Prefork *s = memory_alloc(sizeof *s);
    s->work = work;
    s->context = context;
    find_ranges(s);
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

/* Copy the pages until a request comes. The rest is copied when it is written. */
static void copy_memory(const Prefork *s)
{
    struct pollfd request = {0, POLLIN, 0};
    for (int i = 0; i < s->n_ranges; i++) {
        for (uintptr_t at = s->ranges[i].start, end = s->ranges[i].end; at < end;
             at += copied_at_once) {
            if (poll(&request, 1, 0)) return;
            madvise((void *)at, end - at < copied_at_once ? end - at : copied_at_once,
                    MADV_POPULATE_WRITE);
        }
    }
}

static _Noreturn void child(const Prefork *s, int in, int out)
{
    Buffer request;
    struct timespec used;
    buffer_init(&request, MAX_REQUEST);
    process_die_with_parent(); /* when it died before this call, the input has ended */
    if (keep_files(in, out)) _exit(1);
    copy_memory(s);
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
