/* The lock of a GPU between processes: exclusive, shared, waiting, and released by a process that
 * ends. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "gpu/lock.h"

static char dir[] = "/tmp/quern-test-XXXXXX";
static const char uuid[] = "GPU-00000000-1111-2222-3333-444444444444";
static Error err;

static GpuLock *open_one(void)
{
    GpuLock *l;
    if (lock_open(uuid, &l, &err)) fail_msg("%s", err.text);
    return l;
}

/* A process that takes one side, reports it and keeps it until it is killed. */
static pid_t holder(int exclusive, int *ready)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        GpuLock *l;
        Error e;
        if (lock_open(uuid, &l, &e) ||
            (exclusive ? lock_exclusive(l, 300, &e) : lock_shared(l, 300, &e)))
            _exit(1);
        if (write(fds[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(fds[1]);
    *ready = fds[0];
    return pid;
}

static int says(int fd)
{
    char c;
    int n = (int)read(fd, &c, 1);
    close(fd);
    return n == 1;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_sides(void **state)
{
    (void)state;
    GpuLock *a = open_one(), *b = open_one(), *c = open_one();
    assert_int_equal(lock_shared(a, 0, &err), 0);
    assert_int_equal(lock_shared(b, 0, &err), 0);
    assert_int_equal(lock_held(a), GPU_SHARED);
    assert_int_equal(lock_exclusive(c, 0.02, &err), -1);
    assert_int_equal(lock_held(c), GPU_FREE);
    lock_release(a);
    assert_int_equal(lock_exclusive(c, 0.02, &err), -1);
    lock_release(b);
    assert_int_equal(lock_exclusive(c, 0, &err), 0);
    assert_int_equal(lock_held(c), GPU_EXCLUSIVE);
    assert_int_equal(lock_shared(a, 0.02, &err), -1);
    assert_int_equal(lock_exclusive(b, 0.02, &err), -1);
    lock_close(c); /* closing releases */
    assert_int_equal(lock_shared(a, 0, &err), 0);
    lock_close(a);
    lock_close(b);
}

/* Timings of any process show for how long the GPU was not timed. */
static void test_idle(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s/quern-gpu-%s.lock", dir, uuid);
    unlink(path);
    GpuLock *a = open_one(), *b = open_one();
    assert_int_equal(lock_exclusive(a, 0, &err), 0);
    assert_true(isinf(lock_idle_s(a)));
    clock_sleep(0.2);
    lock_release(a);
    assert_int_equal(lock_shared(a, 0, &err), 0); /* no timing */
    lock_release(a);
    clock_sleep(0.1);
    assert_int_equal(lock_exclusive(b, 0, &err), 0);
    assert_true(lock_idle_s(b) > 0.05);
    const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    lock_release(b); /* the end counts, not the beginning */
    assert_int_equal(lock_exclusive(a, 0, &err), 0);
    assert_true(lock_idle_s(a) < 1000);
    lock_close(a);
    lock_close(b);
}

/* A shared side of its own, until the last copy of the descriptor is closed; none while another times. */
static void test_descriptor(void **state)
{
    (void)state;
    GpuLock *a = open_one(), *b = open_one();
    assert_int_equal(lock_shared(a, 0, &err), 0);
    int fd = lock_shared_descriptor(a), copy = dup(fd);
    assert_true(fd >= 0);
    lock_release(a);
    close(fd);
    assert_int_equal(lock_exclusive(b, 0.02, &err), -1);
    assert_int_equal(lock_shared(a, 0, &err), 0);
    lock_release(a);
    close(copy);
    assert_int_equal(lock_exclusive(b, 0, &err), 0);
    assert_int_equal(lock_shared_descriptor(a), -1);
    assert_int_equal(lock_shared_descriptor(b), -1);
    lock_close(a);
    lock_close(b);
}

/* A shared holder sees another process that is or waits to be exclusive, not one that shares. */
static void test_contended(void **state)
{
    (void)state;
    GpuLock *a = open_one(), *b = open_one();
    int ready;
    assert_int_equal(lock_is_contended(a), 0);
    assert_int_equal(lock_shared(a, 0, &err), 0);
    assert_int_equal(lock_shared(b, 0, &err), 0);
    assert_int_equal(lock_is_contended(a), 0);
    lock_close(b);
    pid_t pid = holder(1, &ready);
    double end_s = clock_seconds() + 200;
    while (!lock_is_contended(a) && clock_seconds() < end_s) clock_sleep(0.001);
    assert_int_equal(lock_is_contended(a), 1); /* the other process waits */
    lock_release(a);
    assert_true(says(ready));
    assert_int_equal(lock_is_contended(a), 1); /* the other process holds it */
    end(pid);
    assert_int_equal(lock_is_contended(a), 0);
    lock_close(a);
}

static void test_nested(void **state)
{
    (void)state;
    GpuLock *a = open_one();
    assert_int_equal(lock_exclusive(a, 0, &err), 0);
    assert_int_equal(lock_exclusive(a, 0, &err), -1);
    assert_non_null(strstr(err.text, "held exclusively by this process already"));
    assert_int_equal(lock_shared(a, 0, &err), -1);
    lock_release(a);
    lock_release(a);
    assert_int_equal(lock_shared(a, 0, &err), 0);
    assert_int_equal(lock_exclusive(a, 0, &err), -1);
    assert_non_null(strstr(err.text, "held shared by this process already"));
    lock_close(a);
}

static void test_message(void **state)
{
    (void)state;
    int ready;
    char want[64];
    pid_t pid = holder(1, &ready);
    assert_true(says(ready));
    GpuLock *a = open_one();
    double start = clock_seconds();
    assert_int_equal(lock_shared(a, 0.1, &err), -1);
    double waited = clock_seconds() - start;
    assert_true(waited >= 0.1 && waited < 200);
    snprintf(want, sizeof want, "not free within 0.1 s; the last to time was process %d", (int)pid);
    assert_non_null(strstr(err.text, want));
    end(pid);
    lock_close(a);
}

static void test_death(void **state)
{
    (void)state;
    int ready;
    GpuLock *a = open_one();
    for (int alone = 0; alone < 2; alone++) {
        pid_t pid = holder(alone, &ready);
        assert_true(says(ready));
        assert_int_equal(lock_exclusive(a, 0.02, &err), -1);
        end(pid);
        assert_int_equal(lock_exclusive(a, 100, &err), 0);
        lock_release(a);
    }
    lock_close(a);
}

/* A process that waits for the exclusive side goes before processes that share later, but now and then while
 * one of the earlier ones does not end. */
static void test_no_starving(void **state)
{
    (void)state;
    int ready, later;
    pid_t sharer = holder(0, &ready);
    assert_true(says(ready));
    pid_t waiter = holder(1, &later);
    GpuLock *a = open_one();
    int kept_out = 0;
    for (int i = 0; i < 20000 && !kept_out; i++) { /* until the waiter has begun to wait */
        kept_out = lock_shared(a, 0, &err);
        lock_release(a);
        clock_sleep(0.01);
    }
    assert_true(kept_out);
    assert_int_equal(lock_shared(a, 30, &err), 0); /* the first one's work is long: others get in */
    end(sharer);
    lock_release(a);
    assert_true(says(later));
    assert_int_equal(lock_shared(a, 0.05, &err), -1);
    end(waiter);
    assert_int_equal(lock_shared(a, 100, &err), 0);
    lock_close(a);
}

/* A process that always shares the lock by one of two handles, while it is let in within a quarter of a
 * second. */
static pid_t overlapping(int *ready)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        GpuLock *l[2];
        Error e;
        alarm(100);
        if (lock_open(uuid, &l[0], &e) || lock_open(uuid, &l[1], &e) ||
            lock_shared(l[0], 100, &e) || write(fds[1], "x", 1) != 1)
            _exit(1);
        for (int i = 0;; i = !i) {
            if (lock_shared(l[!i], 0.25, &e)) {
                lock_release(l[i]);
                if (lock_shared(l[!i], 100, &e)) _exit(1);
            }
            clock_sleep(0.05);
            lock_release(l[i]);
        }
    }
    close(fds[1]);
    *ready = fds[0];
    return pid;
}

/* Works of which each begins before another one ends are let in at first alone. */
static void test_overlapping(void **state)
{
    (void)state;
    int ready;
    pid_t sharer = overlapping(&ready);
    assert_true(says(ready));
    GpuLock *a = open_one();
    int rc = lock_exclusive(a, 10, &err);
    end(sharer);
    assert_int_equal(rc, 0);
    lock_close(a);
}

static void test_file(void **state)
{
    (void)state;
    char path[200], target[200];
    struct stat st;
    GpuLock *a = open_one();
    lock_close(a);
    snprintf(path, sizeof path, "%s/quern-gpu-%s.lock", dir, uuid);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0666);
    snprintf(target, sizeof target, "%s/elsewhere", dir);
    snprintf(path, sizeof path, "%s/quern-gpu-linked.lock", dir);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(lock_open("linked", &a, &err), -1);
    assert_false(file_exists(target));
    snprintf(path, sizeof path, "%s/quern-gpu-fifo.lock", dir);
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_int_equal(lock_open("fifo", &a, &err), -1);
    assert_non_null(strstr(err.text, "is no file"));
    assert_int_equal(lock_open("../x", &a, &err), -1);
    assert_int_equal(lock_open("", &a, &err), -1);
}

static int set_up(void **state)
{
    (void)state;
    umask(077);
    return mkdtemp(dir) && !setenv("QUERN_LOCK_DIR", dir, 1) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(dir, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sides),       cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_idle),        cmocka_unit_test(test_contended),
        cmocka_unit_test(test_nested),      cmocka_unit_test(test_message),
        cmocka_unit_test(test_death),       cmocka_unit_test(test_no_starving),
        cmocka_unit_test(test_overlapping), cmocka_unit_test(test_file)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
