/* The child reads its own page tables. Pages of files are there when they were touched after the fork;
 * private ones are the child's own when it wrote to them. */
#include "eval/compile/prefault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"

#ifndef MADV_POPULATE_READ
enum { MADV_POPULATE_READ = 22, MADV_POPULATE_WRITE = 23 };
#endif

/* MAX_RANGES: a pipe holds them all, so that the child never waits. */
enum { PAGE = 4096, MAX_RANGES = 2048, MAX_PAGES = 16384, GAP = 3, CHUNK = 512 };
static const uint64_t MAX_MAPPING = 4ull << 30; /* bytes; a larger one is reserved, not used */
static const uint64_t present = 1ull << 63, exclusive = 1ull << 56;

typedef struct {
    uint64_t from;
    uint32_t pages, written;
} Range;

struct Prefault {
    Range *ranges;
    int n;
    pid_t pid; /* of the child that learns; 0: none */
    int fd;
};

Prefault *prefault_open(void)
{
    Prefault *p = memory_alloc(sizeof *p);
    p->ranges = memory_array(MAX_RANGES, sizeof *p->ranges);
    return p;
}

static void end_child(Prefault *p)
{
    if (!p->pid) return;
    close(p->fd);
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    p->pid = 0;
}

void prefault_close(Prefault *p)
{
    end_child(p);
    free(p->ranges);
    free(p);
}

/* ---- in the child that learns ---- */

typedef struct {
    Range *list;
    int n;
    uint32_t pages;
} Ranges;

static void add_page(Ranges *r, uint64_t at, uint32_t written)
{
    Range *last = r->n ? &r->list[r->n - 1] : NULL;
    uint64_t end = last ? last->from + (uint64_t)last->pages * PAGE : 0;
    if (last && last->written == written && at >= end && at - end <= GAP * PAGE) {
        uint32_t more = (uint32_t)((at - end) / PAGE) + 1;
        last->pages += more;
        r->pages += more;
    } else if (r->n < MAX_RANGES) {
        r->list[r->n++] = (Range){at, 1, written};
        r->pages++;
    }
}

static void add_mapping(Ranges *r, int fd, uint64_t from, uint64_t end, int writable)
{
    uint64_t entries[CHUNK], needed = writable ? present | exclusive : present;
    while (from < end && r->pages < MAX_PAGES) {
        uint64_t n = (end - from) / PAGE;
        if (n > CHUNK) n = CHUNK;
        if (pread(fd, entries, n * sizeof *entries, (off_t)(from / PAGE * sizeof *entries)) !=
            (ssize_t)(n * sizeof *entries))
            return;
        for (uint64_t i = 0; i < n; i++)
            if ((entries[i] & needed) == needed) add_page(r, from + i * PAGE, (uint32_t)writable);
        from += n * PAGE;
    }
}

/* Stacks and the kernel's own mappings are left out: their names begin with a bracket. */
static void find_ranges(Ranges *r)
{
    char line[4400], rights[8], name[64];
    unsigned long from, end;
    FILE *maps = fopen("/proc/self/maps", "re");
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    while (maps && fd >= 0 && fgets(line, sizeof line, maps)) {
        *name = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %63s", &from, &end, rights, name) < 3) continue;
        if (rights[0] != 'r' || rights[3] != 'p' || (*name == '[' && strcmp(name, "[heap]")))
            continue;
        if (end - from > MAX_MAPPING) continue;
        add_mapping(r, fd, from, end, rights[1] == 'w');
    }
    if (maps) fclose(maps);
    if (fd >= 0) close(fd);
}

static _Noreturn void learn(Range *list, void (*work)(void *of), void *of, int fd)
{
    Ranges r = {.list = list};
    process_die_with_parent();
    work(of);
    find_ranges(&r);
    size_t bytes = (size_t)r.n * sizeof *list;
    _exit(write(fd, list, bytes) == (ssize_t)bytes ? 0 : 1);
}

/* ---- in the server ---- */

void prefault_learn(Prefault *p, void (*work)(void *of), void *of)
{
    int fds[2];
    if (p->pid || pipe2(fds, O_CLOEXEC)) return;
    pid_t pid = fork();
    if (!pid) learn(p->ranges, work, of, fds[1]);
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return;
    }
    p->pid = pid;
    p->fd = fds[0];
}

void prefault_wait(Prefault *p, int in)
{
    struct pollfd f[2] = {{p->fd, POLLIN, 0}, {in, POLLIN, 0}};
    if (!p->pid || poll(f, 2, -1) <= 0 || !f[0].revents) return;
    ssize_t n = read(p->fd, p->ranges, MAX_RANGES * sizeof *p->ranges);
    p->n = n > 0 ? (int)((size_t)n / sizeof *p->ranges) : 0;
    end_child(p);
}

/* ---- in a child that waits ---- */

void prefault_touch(const Prefault *p)
{
    for (int i = 0; i < p->n; i++) {
        const Range *r = &p->ranges[i];
        int advice = r->written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
        if (madvise((void *)(uintptr_t)r->from, (size_t)r->pages * PAGE, advice) && errno == EINVAL)
            return; /* a kernel before 5.14 */
    }
}
