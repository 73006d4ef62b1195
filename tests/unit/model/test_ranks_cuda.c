/* Ranks on the GPUs of this machine, up to 4: the results of each collective of model/core/ranks.h
 * over NCCL, and their speed. Skipped with fewer than two GPUs. Rank 0 prints TAP; another rank
 * that detects an error ends with a sentence, and the test with it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "gpu/gpus.h"
#include "model/core/ranks.h"
#include "model/model_device.h"

enum { MAX = 4, N = 1000003, LARGE = 64 << 20 };

static const Ops *ops;
static int tests;

/* A separate process asks the driver, which does not survive fork. */
static int count_gpus(void)
{
    int status = 0;
    pid_t pid = fork();
    if (!pid) {
        Gpu gpus[MAX];
        int n = gpus_list(gpus, MAX, NULL);
        _exit(n < 0 ? 0 : n);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static void die(const char *what)
{
    Error err;
    error_set(&err, ERROR_INVALID, "%s is wrong in rank %d", what, ranks_rank());
    log_exit(3, &err);
}
#define TRY(call)                       \
    do {                                \
        Error err_;                     \
        if ((call)) log_exit(4, &err_); \
    } while (0)

static void passed(const char *what)
{
    double all = 1;
    TRY(ranks_host_sum(&all, 1, &err_)); /* every rank has come here */
    TRY(ops->status(&err_));
    if (!ranks_rank()) printf("ok %d - %s on %d GPUs\n", ++tests, what, ranks_size());
    fflush(stdout);
}

static void test_sums(int n, float *x, float *host)
{
    int rank = ranks_rank();
    for (int i = 0; i < N; i++) host[i] = (float)(i % 1000) * (float)(rank + 1);
    ops->upload(x, host, N * sizeof *host);
    TRY(ranks_all_reduce(x, N, &err_));
    ops->download(host, x, N * sizeof *host);
    for (int i = 0; i < N; i++)
        if (host[i] != (float)(i % 1000) * (float)(n * (n + 1) / 2)) die("all_reduce");
    passed("all_reduce");

    size_t each = ranks_each(N, 128);
    for (size_t i = 0; i < each * (size_t)n; i++) host[i] = (float)(i % 5000) + (float)rank;
    ops->upload(x, host, each * (size_t)n * sizeof *host);
    TRY(ranks_reduce_scatter(x, each, &err_));
    ops->download(host, x, each * (size_t)n * sizeof *host);
    for (size_t i = 0; i < each * (size_t)n; i++) {
        float sum = (float)n * (float)(i % 5000) + (float)(n * (n - 1) / 2);
        if (host[i] != (i / each == (size_t)rank ? sum : 0)) die("reduce_scatter");
    }
    passed("reduce_scatter");
}

/* Each of many pieces is written before it is summed, the next one is written during that sum, and
 * after ranks_settle operations, not the host, read all of them. */
static void test_beside(int n, float *x, float *host)
{
    enum { PIECES = 16 };
    size_t each = (size_t)LARGE / PIECES / 2 / (size_t)n, piece = each * (size_t)n,
           all = piece * PIECES;
    float *copy = x + LARGE / 2, *whole = memory_array(piece, sizeof *whole);
    for (int round = 0; round < 3; round++) {
        float value = (float)(ranks_rank() + 1 + round);
        for (size_t i = 0; i < piece; i++) whole[i] = value;
        ops->zero(x, all * sizeof *x);
        ops->upload(copy, whole, piece * sizeof *x);
        for (size_t at = all; at > 0; at -= piece) {
            ops->copy(x + at - piece, copy, piece * sizeof *x);
            TRY(ranks_reduce_scatter(x + at - piece, each, &err_));
        }
        ranks_settle();
        for (size_t at = 0; at < all; at += piece) {
            ops->copy(copy + at, x + at, piece * sizeof *x);
            TRY(ranks_all_gather(copy + at, each * sizeof *x, &err_));
        }
        ranks_settle();
        ops->copy(x, copy, all * sizeof *x);
        for (size_t at = 0; at < all; at += N) {
            size_t count = all - at < N ? all - at : N;
            ops->download(host, x + at, count * sizeof *x);
            for (size_t i = 0; i < count; i++)
                if (host[i] != (float)(n * (n + 1) / 2 + n * round)) die("what runs beside");
        }
    }
    free(whole);
    passed("sums and copies beside other work, in order");
}

static void test_copies(int n, float *x, float *host)
{
    size_t each = ranks_each(N, 128), bytes = each * sizeof *host;
    int rank = ranks_rank();
    for (size_t i = 0; i < each; i++) host[i] = (float)rank * 10000 + (float)(i % 9999);
    ops->zero(x, bytes * (size_t)n);
    ops->upload(x + (size_t)rank * each, host, bytes);
    TRY(ranks_all_gather(x, bytes, &err_));
    ops->download(host, x, bytes * (size_t)n);
    for (size_t i = 0; i < each * (size_t)n; i++)
        if (host[i] != (float)(i / each) * 10000 + (float)(i % each % 9999)) die("all_gather");
    passed("all_gather");
}

/* Inexact sums have the same bits in all ranks and again. */
static void test_same_bits(float *x, float *host)
{
    double sum[2] = {0, 0};
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < N; i++) host[i] = sinf((float)i * (float)(ranks_rank() + 1));
        ops->upload(x, host, N * sizeof *host);
        TRY(ranks_all_reduce(x, N, &err_));
        ops->download(host, x, N * sizeof *host);
        for (int i = 0; i < N; i++) sum[again] += (double)host[i] * (i % 77);
    }
    double first = sum[0];
    TRY(ranks_host_share(&first, sizeof first, &err_));
    if (sum[0] != sum[1] || sum[0] != first) die("a sum's repetition");
    passed("the same sum twice, to the bit");
}

static void measure(int n, float *x)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather"};
    for (int kind = 0; kind < 3; kind++) {
        double start = 0;
        for (int i = 0; i < 25; i++) {
            if (i == 5) {
                TRY(ops->status(&err_));
                start = clock_seconds();
            }
            if (kind == 0)
                TRY(ranks_all_reduce(x, LARGE, &err_));
            else if (kind == 1)
                TRY(ranks_reduce_scatter(x, LARGE / (size_t)n, &err_));
            else
                TRY(ranks_all_gather(x, LARGE / (size_t)n * sizeof *x, &err_));
        }
        TRY(ops->status(&err_));
        double s = (clock_seconds() - start) / 20;
        if (!ranks_rank())
            printf("# %s of %d MiB: %.2f ms, %.0f GB/s\n", names[kind], LARGE >> 18, s * 1e3,
                   (double)LARGE * 4 / s * 1e-9);
    }
}

int main(void)
{
    char device[16];
    int n = count_gpus();
    if (n < 2) {
        printf("1..0 # SKIP fewer than two GPUs\n");
        return 0;
    }
    if (n == 3) n = 2;
    log_open("test_ranks_cuda");
    TRY(ranks_start(n, &err_));
    TRY(ranks_device("cuda:0", device, &err_));
    TRY(model_device(device, &ops, &err_));
    TRY(ranks_join(ops, &err_));
    float *host = memory_array(N + 128 * MAX, sizeof *host),
          *x = ops->alloc((size_t)LARGE * sizeof *x);
    test_sums(n, x, host);
    test_copies(n, x, host);
    test_same_bits(x, host);
    test_beside(n, x, host);
    ops->zero(x, (size_t)LARGE * sizeof *x);
    measure(n, x);
    ops->release(x);
    free(host);
    TRY(ranks_finish(&err_));
    printf("1..%d\n", tests);
    return 0;
}
