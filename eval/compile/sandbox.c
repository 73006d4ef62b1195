/* A seccomp filter of a few allowed calls, and resource limits. Everything else fails with EPERM.
 */
#include "eval/compile/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

struct Sandbox {
    scmp_filter_ctx filter;
};

/* The calls that a compiler needs to work in memory. */
static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(close),
    SCMP_SYS(lseek),
    SCMP_SYS(brk),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(getrusage),
    SCMP_SYS(times),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(getcwd),
    SCMP_SYS(getrandom),
    SCMP_SYS(sysinfo),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(sched_getaffinity),
};

/* Look-ups of files fail with ENOENT, as if the file were missing. */
static const int absent[] = {
    SCMP_SYS(open),     SCMP_SYS(openat),     SCMP_SYS(openat2),    SCMP_SYS(stat),
    SCMP_SYS(lstat),    SCMP_SYS(access),     SCMP_SYS(statx),      SCMP_SYS(faccessat),
    SCMP_SYS(readlink), SCMP_SYS(faccessat2), SCMP_SYS(readlinkat), SCMP_SYS(newfstatat),
    SCMP_SYS(creat),
};

/* Returns 0 or a negative error number. */
static int add_rules(scmp_filter_ctx filter)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if ((rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0))) return rc;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if ((rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), absent[i], 0))) return rc;
    if ((rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fstat), 0))) return rc;
    /* The process may read its own stack limit and raise it to the hard one. */
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, SCMP_A0(SCMP_CMP_EQ, 0),
                            SCMP_A1(SCMP_CMP_EQ, RLIMIT_STACK));
}

int sandbox_open(Sandbox **out, Error *err)
{
    Sandbox *s = memory_alloc(sizeof *s);
    s->filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int rc = s->filter ? add_rules(s->filter) : -ENOMEM;
    if (rc) {
        sandbox_close(s);
        return error_set(err, ERROR_IO, "cannot build the system-call filter: %s", strerror(-rc));
    }
    *out = s;
    return 0;
}

void sandbox_close(Sandbox *s)
{
    if (s->filter) seccomp_release(s->filter);
    free(s);
}

static int limit(int which, size_t value, size_t hard, Error *err)
{
    struct rlimit r = {value, hard};
    return setrlimit(which, &r) ? error_errno(err, "cannot set resource limit %d", which) : 0;
}

#ifndef __SANITIZE_ADDRESS__ /* the sanitizer reserves terabytes of addresses */
/* The bytes that this process has mapped. NVRTC's threads reserve addresses for each core, and a
 * child inherits them. */
static int mapped_bytes(size_t *out, Error *err)
{
    unsigned long pages;
    FILE *f = fopen("/proc/self/statm", "re");
    int found = f && fscanf(f, "%lu", &pages) == 1;
    if (f) fclose(f);
    if (!found)
        return error_set(err, ERROR_IO,
                         "cannot read from /proc/self/statm how much memory is mapped");
    *out = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
    return 0;
}
#endif

static int limit_memory(size_t bytes, Error *err)
{
#ifndef __SANITIZE_ADDRESS__
    size_t mapped = 0;
    return mapped_bytes(&mapped, err) || limit(RLIMIT_AS, mapped + bytes, mapped + bytes, err) ? -1
                                                                                               : 0;
#else
    (void)bytes, (void)err;
    return 0;
#endif
}

/* Make 0, 1 and 2 /dev/null, and close all others but keep_fd. */
static int close_files(int keep_fd, Error *err)
{
    int null = open("/dev/null", O_RDWR);
    if (null < 0) return error_errno(err, "cannot open /dev/null");
    for (int fd = 0; fd < 3; fd++)
        if (dup2(null, fd) < 0) return error_errno(err, "cannot replace descriptor %d", fd);
    long rc = 0;
    if (keep_fd > 3) rc = syscall(SYS_close_range, 3u, (unsigned)keep_fd - 1, 0u);
    if (!rc) rc = syscall(SYS_close_range, (unsigned)keep_fd + 1, ~0u, 0u);
    return rc ? error_errno(err, "cannot close descriptors") : 0;
}

int sandbox_enter(Sandbox *s, int keep_fd, int cpu_s, size_t memory_bytes, Error *err)
{
    if (keep_fd < 3)
        return error_set(err, ERROR_INVALID, "descriptor %d cannot be kept: 0 to 2 are replaced",
                         keep_fd);
    if (close_files(keep_fd, err)) return -1;
    if (limit_memory(memory_bytes, err)) return -1;
    if (limit(RLIMIT_FSIZE, 0, 0, err) || limit(RLIMIT_CORE, 0, 0, err)) return -1;
    if (limit(RLIMIT_CPU, (size_t)cpu_s, (size_t)cpu_s + 1, err)) return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return error_errno(err, "cannot give up new privileges");
    /* A failed assertion may abort its own process, whose pid is known only here. */
    int rc = seccomp_rule_add(s->filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 2,
                              SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()),
                              SCMP_A2(SCMP_CMP_EQ, SIGABRT));
    if (!rc) rc = seccomp_load(s->filter);
    return rc ? error_set(err, ERROR_IO, "cannot load the system-call filter: %s", strerror(-rc))
              : 0;
}
