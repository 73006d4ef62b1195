/* Buffers, digests, random numbers, numbers of the environment, atomic
 * files and child processes. */
#include <errno.h>
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/process.h"
#include "base/random.h"
#include "base/stop.h"

static void buffer_bound(void **state)
{
    (void)state;
    Buffer b;
    buffer_init(&b, 10);
    assert_int_equal(buffer_puts(&b, "12345"), 0);
    assert_int_equal(buffer_printf(&b, "%s", "123456"), -1);
    assert_int_equal(b.len, 5);
    assert_true(b.full);
    assert_int_equal(buffer_append(&b, "67890", 5), 0);
    assert_string_equal(b.data, "1234567890");
    assert_int_equal(buffer_append(&b, "x", SIZE_MAX), -1);
    buffer_release(&b);
}

static void known_digests(void **state)
{
    (void)state;
    Digest d;
    char hex[DIGEST_HEX];
    digest_of("abc", 3, &d);
    digest_hex(&d, hex);
    assert_string_equal(
        hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); /* FIPS 180-4 */
    assert_int_equal(digest_crc32c(0, "123456789", 9), 0xe3069283u);              /* RFC 3720 */
    assert_int_equal(digest_crc32c(digest_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
}

static void random_law(void **state)
{
    (void)state;
    Random a, b;
    random_init(&a, 1, 2);
    random_init(&b, 1, 2);
    assert_true(random_u64(&a) == random_u64(&b));
    random_init(&b, 1, 3);
    assert_true(random_u64(&a) != random_u64(&b));
    double mean = 0, square = 0;
    int counts[7] = {0};
    enum { N = 70000 };
    for (int i = 0; i < N; i++) {
        double x = random_normal(&a);
        mean += x / N;
        square += x * x / N;
        counts[random_below(&a, 7)]++;
    }
    assert_true(fabs(mean) < 0.02 && fabs(square - 1) < 0.03);
    for (int i = 0; i < 7; i++) assert_true(abs(counts[i] - N / 7) < 400);
}

static void atomic_file(void **state)
{
    (void)state;
    Error err;
    Buffer b;
    buffer_init(&b, 100);
    assert_int_equal(file_mkdirs("a/b/c", &err), 0);
    assert_int_equal(file_write_atomic("a/b/c/f", "one", 3, &err), 0);
    pid_t pid = fork(); /* a full disk: the old content stays */
    if (pid == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){4, 4});
        _exit(file_write_atomic("a/b/c/f", "longer", 6, &err) == -1 ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(file_read("a/b/c/f", 100, &b, &err), 0);
    assert_string_equal(b.data, "one");
    Buffer small;
    buffer_init(&small, 2);
    assert_int_equal(file_read("a/b/c/f", 2, &small, &err), -1);
    assert_int_equal(file_read("absent", 100, &b, &err), -1);
    assert_non_null(strstr(err.text, "absent"));
    assert_int_equal(file_remove_tree("a", &err), 0);
    assert_false(file_exists("a"));
    buffer_release(&b);
    buffer_release(&small);
    /* /dev/stdout leads to a file where output is redirected, and is no name of it. */
    assert_int_equal(file_write_atomic("redirected", "one", 3, &err), 0);
    int fd = open("redirected", O_RDONLY);
    char open_file[64];
    struct stat st;
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    assert_int_equal(symlink(open_file, "stdout"), 0);
    assert_int_equal(file_write_atomic("stdout", "two", 3, &err), -1);
    assert_int_equal(lstat("stdout", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    close(fd);
    assert_int_equal(unlink("stdout") || unlink("redirected"), 0);
}

/* Reads from a pipe into which a child writes "part" after `delay_us`, `parts` times. early: the child has
 * opened it before the read begins. Returns what file_read does. */
static int read_from_writer(int early, useconds_t delay_us, int parts, Buffer *b)
{
    Error err;
    int opened[2], status;
    char said;
    assert_int_equal(pipe(opened), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = early ? open("pipe", O_RDWR) : -1;
        if (write(opened[1], "x", 1) != 1) _exit(1);
        for (int i = 0; i < parts; i++) {
            usleep(delay_us);
            if (fd < 0) fd = open("pipe", O_RDWR);
            if (write(fd, "part", 4) != 4) _exit(1);
        }
        _exit(0);
    }
    close(opened[1]);
    assert_int_equal(read(opened[0], &said, 1), 1);
    close(opened[0]);
    int rc = file_read("pipe", 100, b, &err);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return rc;
}

/* Nobody writes: one sentence. Somebody writes late, and in two parts: all of it. Somebody opens it late:
 * that, too, unless a busy machine stops the writer for longer than the patience, and then it is tried
 * again. */
static void pipes(void **state)
{
    (void)state;
    Error err;
    Buffer b;
    buffer_init(&b, 100);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    alarm(400);
    assert_int_equal(file_read("pipe", 100, &b, &err), -1);
    assert_non_null(strstr(err.text, "cannot read pipe"));
    assert_int_equal(read_from_writer(1, 1300000, 2, &b), 0);
    assert_string_equal(b.data, "partpart");
    int tries = 1;
    while (read_from_writer(0, 100000, 1, &b) && tries < 20) tries++;
    assert_true(tries < 20);
    assert_string_equal(b.data, "part");
    alarm(0);
    assert_int_equal(unlink("pipe"), 0);
    buffer_release(&b);
}

static void child_process(void **state)
{
    (void)state;
    Error err;
    Buffer out, errout;
    ProcessResult r;
    buffer_init(&out, 1000);
    buffer_init(&errout, 1000);
    const char *cat[] = {"sh", "-c", "cat; echo oops >&2; exit 3", NULL};
    ProcessOptions o = {.timeout_s = 60, .input = "hello", .input_len = 5};
    assert_int_equal(process_run(cat, &o, &out, &errout, &r, &err), 0);
    assert_string_equal(out.data, "hello");
    assert_string_equal(errout.data, "oops\n");
    assert_int_equal(r.exit_code, 3);
    const char *hang[] = {"sh", "-c", "sleep 500 & sleep 500", NULL}; /* the grandchild goes too */
    double start = clock_seconds();
    o = (ProcessOptions){.timeout_s = 0.2};
    assert_int_equal(process_run(hang, &o, &out, NULL, &r, &err), 0);
    assert_true(r.timed_out && r.signal == SIGKILL && clock_seconds() - start < 400);
    o.timeout_s = 400; /* the others end by themselves, also on a busy machine */
    const char *flood[] = {"yes", NULL};
    assert_int_equal(process_run(flood, &o, &out, NULL, &r, &err), 0);
    assert_true(r.output_full && out.len <= 1000);
    const char *absent[] = {"/nonexistent/program", NULL};
    assert_int_equal(process_run(absent, &o, &out, &errout, &r, &err), 0);
    assert_int_equal(r.exit_code, 127);
    buffer_release(&out);
    buffer_release(&errout);
}

/* Closed outputs are no end: the deadline holds until the child has ended. Where the child says nothing
 * before its deadline, since the machine is busy, it has a longer one. */
static void child_without_outputs(void **state)
{
    (void)state;
    Error err;
    ProcessResult r;
    Buffer out;
    buffer_init(&out, 1000);
    const char *hang[] = {"sh", "-c", "echo said; exec >&- 2>&-; sleep 500", NULL},
               *busy[] = {"sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4", NULL};
    double start = clock_seconds();
    for (ProcessOptions o = {.timeout_s = 1}; !out.len && o.timeout_s < 100; o.timeout_s *= 4) {
        assert_int_equal(process_run(hang, &o, &out, NULL, &r, &err), 0);
        assert_true(r.timed_out && r.signal == SIGKILL && r.exit_code == -1);
    }
    assert_true(clock_seconds() - start < 400);
    assert_string_equal(out.data, "said\n");
    assert_int_equal(process_run(busy, &(ProcessOptions){.timeout_s = 400}, &out, NULL, &r, &err),
                     0);
    assert_true(!r.timed_out && r.exit_code == 4);
    buffer_release(&out);
}

/* The caller is told to stop while its child runs, with its outputs open or closed: the child goes,
 * and its child. */
static void child_of_the_stopped(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "sleep 500 & echo $! >grandchild; sleep 500",
        "exec >&- 2>&-; sleep 500 & echo $! >grandchild; sleep 500"};
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t caller = fork(); /* the flag stays set */
        if (caller == 0) {
            Error err;
            ProcessResult r;
            const char *argv[] = {"sh", "-c", scripts[i], NULL};
            stop_install();
            process_adopt(); /* so that the grandchild can be waited for */
            if (process_run(argv, &(ProcessOptions){.timeout_s = 450}, NULL, NULL, &r, &err) != -1)
                _exit(1);
            while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
            } /* it was killed: else this takes 500 s */
            _exit(!strcmp(err.text, "sh was killed: stopped by signal 15") && !r.timed_out ? 0 : 2);
        }
        double start = clock_seconds();
        while (access("grandchild", F_OK) && clock_seconds() - start < 200) clock_sleep(0.01);
        assert_int_equal(kill(caller, SIGTERM), 0);
        assert_int_equal(waitpid(caller, &status, 0), caller);
        assert_int_equal(status, 0);
        assert_true(clock_seconds() - start < 400);
        assert_int_equal(unlink("grandchild"), 0);
    }
}

/* What a killed child leaves is reaped here, by its group or as any other; what lives on is not
 * waited for without end. */
static void reaping(void **state)
{
    (void)state;
    for (int by_group = 0; by_group < 2; by_group++) {
        pid_t pid = fork();
        if (!pid) {
            process_adopt();
            pid_t child = fork();
            if (!child) {
                setpgid(0, 0);
                if (fork()) pause();
                process_die_with_parent();
                pause();
            }
            while (getpgid(child) != child) usleep(1000);
            process_reap(child, 0.05); /* alive */
            usleep(20000);
            kill(-child, SIGKILL);
            if (!by_group) kill(child, SIGKILL);
            process_reap(by_group ? child : 0, 200);
            _exit(waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void environment(void **state)
{
    (void)state;
    double a = 1, b = 2;
    const EnvironmentNumber table[] = {{"a", 0, 10, &a}, {"bee", -1, 1, &b}};
    static const char *const wrong[] = {"a",    "a=",   "a=x", "a=11",
                                        "a=-1", "be=0", "c=1", "a=1;bee=0"};
    Error err;
    unsetenv("QUERN_X");
    assert_int_equal(environment_numbers("QUERN_X", table, 2, &err), 0);
    setenv("QUERN_X", "", 1);
    assert_int_equal(environment_numbers("QUERN_X", table, 2, &err), 0);
    assert_true(a == 1 && b == 2);
    setenv("QUERN_X", "bee=-0.5,a=10", 1);
    assert_int_equal(environment_numbers("QUERN_X", table, 2, &err), 0);
    assert_true(a == 10 && b == -0.5);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("QUERN_X", wrong[i], 1);
        assert_int_equal(environment_numbers("QUERN_X", table, 2, &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
    }
    setenv("QUERN_X", "c=1", 1);
    environment_numbers("QUERN_X", table, 2, &err);
    assert_string_equal(err.text, "QUERN_X: expected some of a=N,bee=N, found 'c=1'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_bound),         cmocka_unit_test(known_digests),
        cmocka_unit_test(random_law),           cmocka_unit_test(environment),
        cmocka_unit_test(atomic_file),          cmocka_unit_test(pipes),
        cmocka_unit_test(child_process),        cmocka_unit_test(child_without_outputs),
        cmocka_unit_test(child_of_the_stopped), cmocka_unit_test(reaping)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
