/* Progress where stderr is a log: the bar goes to the terminal that is handed on, the log gets a line a
 * minute, and the file of the progress has what quern-status reads. One program draws at a time. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

static char dir[64];
static int master, slave;

static int setup(void **state)
{
    (void)state;
    char path[96];
    strcpy(dir, "/tmp/quern-log-XXXXXX");
    if (!mkdtemp(dir) || openpty(&master, &slave, NULL, NULL, NULL)) return -1;
    snprintf(path, sizeof path, "%d:%s/x.progress", slave, dir);
    setenv("QUERN_PROGRESS", path, 1);
    unsetenv("QUERN_LOG");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    Error err;
    close(master);
    close(slave);
    return file_remove_tree(dir, &err);
}

/* Reads what the terminal shows. The kernel passes bytes on some time after they are written: a mark that
 * follows them tells that all of them have come. */
static void read_terminal(char *shown, size_t size)
{
    static const char mark[] = "<end>";
    size_t n = 0;
    char *end = NULL;
    assert_int_equal(write(slave, mark, sizeof mark - 1), sizeof mark - 1);
    while (!end) {
        struct pollfd p = {.fd = master, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 60000), 1);
        ssize_t got = read(master, shown + n, size - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
        shown[n] = 0;
        end = strstr(shown, mark);
    }
    *end = 0;
}

/* Runs three steps of 0.2 s in a child whose stderr is a file. Puts what came to the terminal and to
 * that file into the buffers; returns the seconds that it took. */
static double run_child(char *shown, char *logged, size_t size)
{
    double start = clock_seconds(), elapsed;
    char path[96];
    snprintf(path, sizeof path, "%s/log", dir);
    pid_t child = fork();
    if (!child) {
        Progress p;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        log_open("quern-test");
        progress_start(&p, "walk", "steps", 0, 40);
        for (int i = 1; i <= 3; i++) {
            clock_sleep(0.2);
            progress_set(&p, 10 * i);
        }
        log_info("a line");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    elapsed = clock_seconds() - start;
    read_terminal(shown, size);
    Buffer b;
    Error err;
    buffer_init(&b, 4096);
    if (file_read(path, 4096, &b, &err)) fail_msg("%s", err.text);
    snprintf(logged, size, "%s", b.data);
    buffer_release(&b);
    return elapsed;
}

static void bar(void **state)
{
    (void)state;
    char shown[4096], logged[4096], path[96], what[16], unit[16];
    long done, total;
    double rate, left;
    double elapsed = run_child(shown, logged, sizeof shown);
    assert_non_null(strstr(shown, "\r\033[Kquern-test: walk 30/40 steps, "));
    assert_string_equal(shown + strlen(shown) - 4,
                        "\r\033[K"); /* gone before the line of the log */
    assert_string_equal(logged, "quern-test: a line\n");
    snprintf(path, sizeof path, "%s/x.progress", dir);
    FILE *f = fopen(path, "r");
    assert_int_equal(
        fscanf(f, "%15s %ld %ld %15s %lf %lf", what, &done, &total, unit, &rate, &left), 6);
    fclose(f);
    assert_string_equal(what, "walk");
    assert_string_equal(unit, "steps");
    assert_int_equal(done, 30);
    assert_int_equal(total, 40);
    assert_true(rate > 29 / elapsed && rate < 51 && left <= 10 / rate + 1);
}

static void one_at_a_time(void **state)
{
    (void)state;
    char shown[4096], logged[4096];
    int other = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
    run_child(shown, logged, sizeof shown);
    assert_string_equal(shown, "");
    assert_string_equal(logged, "quern-test: a line\n");
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bar), cmocka_unit_test(one_at_a_time)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
