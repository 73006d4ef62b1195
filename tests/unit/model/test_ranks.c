/* Ranks on the CPU: the results of each collective in every rank, and the failure of a rank. Each
 * scenario is a separate process, since a process starts ranks once. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/core/ranks.h"
#include "model/model_device.h"

/* Run the scenario as the process of rank 0. Returns its exit status (or 128 plus the signal), with
 * stderr and stdout in `said`. */
static int scenario(void (*body)(void), Buffer *said)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        int fd = open("said", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(fd, 2);
        dup2(fd, 1);
        setenv("QUERN_LOG", "info", 1);
        log_open("test");
        body();
        fflush(NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    buffer_init(said, 1 << 16);
    Error err;
    if (file_read("said", 1 << 16, said, &err)) fail_msg("%s", err.text);
    buffer_append(said, "", 1);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void need(int condition, const char *what)
{
    Error err;
    if (condition) return;
    error_set(&err, ERROR_INVALID, "%s is wrong in rank %d", what, ranks_rank());
    log_exit(3, &err);
}
#define TRY(call)                       \
    do {                                \
        Error err_;                     \
        if ((call)) log_exit(4, &err_); \
    } while (0)

static void begin(int n)
{
    const Ops *ops;
    char device[16];
    TRY(ranks_start(n, &err_));
    TRY(ranks_device("cpu", device, &err_));
    need(!strcmp(device, "cpu"), "the device");
    TRY(model_device(device, &ops, &err_));
    TRY(ranks_join(ops, &err_));
}

/* ---- success ---- */

static void collectives(int n)
{
    enum { LARGE = 300007 };
    begin(n);
    int rank = ranks_rank(), size = ranks_size();
    need(size == n && rank >= 0 && rank < n, "the size");
    float *x = memory_array(LARGE, sizeof *x);
    for (int i = 0; i < LARGE; i++) x[i] = (float)(i % 1000) * (float)(rank + 1);
    TRY(ranks_all_reduce(x, LARGE, &err_));
    for (int i = 0; i < LARGE; i++)
        need(x[i] == (float)(i % 1000) * (float)(n * (n + 1) / 2), "all_reduce");

    size_t each = ranks_each(1000, 8);
    need(each % 8 == 0 && each * (size_t)n >= 1000 && each < 1000 / (size_t)n + 9, "ranks_each");
    for (size_t i = 0; i < each * (size_t)n; i++) x[i] = (float)i + (float)rank;
    TRY(ranks_reduce_scatter(x, each, &err_));
    for (size_t i = 0; i < each * (size_t)n; i++)
        need(x[i] ==
                 (i / each == (size_t)rank ? (float)n * (float)i + (float)(n * (n - 1) / 2) : 0),
             "reduce_scatter");

    uint16_t *half = memory_array(3 * (size_t)n, sizeof *half);
    for (int i = 0; i < 3; i++) half[3 * rank + i] = (uint16_t)(100 * rank + i);
    TRY(ranks_all_gather(half, 3 * sizeof *half, &err_));
    for (int i = 0; i < 3 * n; i++) need(half[i] == 100 * (i / 3) + i % 3, "all_gather");

    double sum[2] = {rank + 1, 0.1 * rank};
    TRY(ranks_host_sum(sum, 2, &err_));
    double tenths = 0;
    for (int r = 0; r < n; r++) tenths += 0.1 * r; /* in the order of ranks, bit for bit */
    need(sum[0] == n * (n + 1) / 2 && sum[1] == tenths, "host_sum");
    char word[8] = "";
    if (!rank) strcpy(word, "shared");
    TRY(ranks_host_share(word, sizeof word, &err_));
    need(!strcmp(word, "shared"), "host_share");
    printf("rank %d speaks\n", rank);
    log_info("rank %d tells", rank);
    free(x);
    free(half);
    TRY(ranks_finish(&err_));
    need(ranks_rank() == 0 && ranks_size() == 1, "rank 0 after the end");
    printf("done\n");
}

static void one(void)
{
    collectives(1);
}
static void two(void)
{
    collectives(2);
}
static void five(void)
{
    collectives(5);
}

static void test_collectives(void **state)
{
    (void)state;
    void (*const bodies[])(void) = {one, two, five};
    for (int i = 0; i < 3; i++) {
        Buffer said;
        int status = scenario(bodies[i], &said);
        if (status) fail_msg("%s", said.data);
        assert_non_null(strstr(said.data, "rank 0 speaks"));
        assert_non_null(strstr(said.data, "test: rank 0 tells"));
        assert_non_null(strstr(said.data, "done"));
        assert_null(strstr(said.data, "rank 1 speaks"));
        assert_null(strstr(said.data, "rank 1 tells"));
        buffer_release(&said);
    }
}

/* ---- failures ---- */

static void fails(void (*body)(void), int status, const char *want)
{
    Buffer said;
    double start = clock_seconds();
    int got = scenario(body, &said);
    if (got != status || !strstr(said.data, want))
        fail_msg("status %d, expected %d and '%s' in: %s", got, status, want, said.data);
    assert_true(clock_seconds() - start < 250);
    buffer_release(&said);
}

/* A rank is killed while the others wait in a sum that cannot end. */
static void killed(void)
{
    float x = 1;
    begin(3);
    if (ranks_rank() == 2) raise(SIGKILL);
    if (ranks_rank() == 0) pause(); /* as in a wait of the driver */
    TRY(ranks_all_reduce(&x, 1, &err_));
    clock_sleep(300);
}

static void errs(void)
{
    Error err;
    begin(2);
    if (ranks_rank() == 1) {
        error_set(&err, ERROR_INVALID, "no data for this one");
        log_exit(7, &err);
    }
    clock_sleep(300);
}

static void leader_dies(void)
{
    begin(3);
    if (ranks_rank() == 0) raise(SIGKILL);
    clock_sleep(300);
}

static void bad_end(void)
{
    Error err;
    begin(2);
    if (ranks_rank() == 1) {
        atexit((void (*)(void))abort);
        clock_sleep(0.1);
        exit(0);
    }
    if (!ranks_finish(&err)) _exit(9);
    log_exit(5, &err);
}

static void too_many(void)
{
    TRY(ranks_start(RANKS_MAX + 1, &err_));
}
static void twice(void)
{
    TRY(ranks_start(2, &err_));
    TRY(ranks_start(2, &err_));
}

static void test_failures(void **state)
{
    (void)state;
    fails(killed, 1, "rank 2 ended by signal 9 (Killed); the others cannot go on without it");
    fails(errs, 1, "rank 1: no data for this one");
    fails(errs, 1, "rank 1 ended with exit status 7");
    fails(bad_end, 1, "rank 1 ended by signal 6");
    fails(leader_dies, 128 + SIGKILL, "");
    fails(too_many, 4, "expected 1 to 16 ranks, found 17");
    fails(twice, 4, "the ranks are started already");
}

static void test_devices(void **state)
{
    (void)state;
    char out[16];
    Error err;
    assert_int_equal(ranks_device("cuda:3", out, &err), 0);
    assert_string_equal(out, "cuda:3");
    static const char *const bad[] = {"cuda:",   "cuda:x", "cuda:-1", "cuda:64",
                                      "cuda:1x", "gpu",    ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ranks_device(bad[i], out, &err), -1);
        assert_non_null(strstr(err.text, "cpu, cuda:N or auto"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_devices),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
