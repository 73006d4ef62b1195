/* Runs work in child processes, so that a kill or a thread there does not change the test. */
#ifndef TESTS_CHILDREN_H
#define TESTS_CHILDREN_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"

/* Runs work(ctx) in a child, whose exit status is the return value of work. Sends sig after delay
 * seconds, unless delay is 0. Returns the wait status. */
static inline int child(int (*work)(void *), void *ctx, double delay, int sig)
{
    fflush(stdout);
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before); /* until the child has its handler */
    pid_t pid = fork();
    if (pid == 0) stop_install();
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid == 0) {
        setenv("QUERN_LOG", "quiet", 1);
        setenv("QUERN_CPU", "threads=1", 1); /* the models are tiny; results do not depend on it */
        log_open("test");
        _exit(work(ctx));
    }
    int status = -1;
    for (double start = clock_seconds(); delay > 0 && clock_seconds() - start < delay;) {
        if (waitpid(pid, &status, WNOHANG) == pid) return status;
        clock_sleep(0.002);
    }
    if (delay > 0) kill(pid, sig);
    waitpid(pid, &status, 0);
    return status;
}

static inline void assert_equal_files(const char *a, const char *b)
{
    Buffer x, y;
    Error err;
    buffer_init(&x, 1 << 28);
    buffer_init(&y, 1 << 28);
    if (file_read(a, 1 << 28, &x, &err) || file_read(b, 1 << 28, &y, &err))
        fail_msg("%s", err.text);
    if (x.len != y.len || memcmp(x.data, y.data, x.len)) fail_msg("%s and %s differ", a, b);
    buffer_release(&x);
    buffer_release(&y);
}

#endif
