/* quern-queuebench: jobs a second through enqueue, lease and complete. It starts a private server as
 * quern-fleet does, which fsyncs every change. Workers are processes that take and complete one job at a
 * time, as evaluators do that answer from a table: without work between, or after --each milliseconds. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/stop.h"
#include "queue/queue.h"
#include "queue/server.h"

enum { MAX_WORKERS = 1024, BODY_MAX = 65536, BATCH = 128, KEY_BYTES = 32, STEPS = 160 };

static const char *const classes[] = {"bench"};

/* What is measured. The defaults are sizes of long jobs: samples of a smoke run have 1 KB, its verdicts 0.8
 * to 3.4 KB (2026-11-29). */
typedef struct {
    int64_t jobs, workers, body_bytes, result_bytes, each_ms;
} Load;

/* Shared by all processes: counts of the times that leases took, in steps of 10%, from 10 us on. */
typedef struct {
    _Atomic long n[STEPS];
} Leases;

static const double first_step_s = 1e-5, step_factor = 1.1;

static void note_lease(Leases *l, double s)
{
    double step = s > first_step_s ? log(s / first_step_s) / log(step_factor) : 0;
    l->n[step < STEPS - 1 ? (int)step : STEPS - 1]++;
}

/* The time that `share` of the leases took at most. */
static double lease_quantile(const Leases *l, double share)
{
    long all = 0, sum = 0;
    for (int i = 0; i < STEPS; i++) all += l->n[i];
    for (int i = 0; i < STEPS; i++) {
        sum += l->n[i];
        if ((double)sum >= share * (double)all) return first_step_s * pow(step_factor, i + 1);
    }
    return NAN;
}

static int dead_result(void *ctx, const QueueJob *job, Buffer *result)
{
    (void)ctx;
    (void)job;
    return buffer_puts(result, "dead");
}

/* A worker process: take and complete jobs until SIGTERM. A lease's time counts where a job was there. */
static _Noreturn void work(const char *url, const char *name, int index, const Load *load,
                           Leases *leases)
{
    process_die_with_parent();
    stop_install();
    Error err = {0};
    Queue *q = NULL;
    char consumer_name[32], *result = memory_alloc((size_t)load->result_bytes);
    const QueueConsumer consumer = {consumer_name, classes, 1, dead_result, NULL};
    memset(result, 'r', (size_t)load->result_bytes);
    snprintf(consumer_name, sizeof consumer_name, "worker-%d", index);
    if (queue_open(url, name, "bench", &q, &err)) log_die(&err);
    while (!stop_requested()) {
        QueueJob job;
        double start = clock_seconds();
        int rc = queue_take(q, &consumer, 1, &job, &err);
        if (rc > 0) {
            note_lease(leases, clock_seconds() - start);
            if (load->each_ms) clock_sleep((double)load->each_ms / 1e3);
            rc = queue_complete(q, &job, result, (size_t)load->result_bytes, &err);
        }
        queue_job_release(&job);
        if (rc < 0) log_die(&err);
    }
    queue_close(q);
    _exit(0);
}

static int enqueue_all(Queue *q, long jobs, const char *body, size_t body_len, Error *err)
{
    char keys[BATCH][KEY_BYTES];
    QueueNew batch[BATCH];
    QueueState states[BATCH];
    for (long at = 0; at < jobs;) {
        int n = 0;
        for (; n < BATCH && at < jobs; n++, at++) {
            snprintf(keys[n], KEY_BYTES, "job-%ld", at);
            batch[n] = (QueueNew){classes[0], keys[n], body, body_len, 0};
        }
        if (queue_enqueue(q, batch, (size_t)n, states, err)) return -1;
        if (stop_requested()) return error_set(err, ERROR_STOPPED, "stopped");
    }
    return 0;
}

/* Wait until all jobs are done. The count tells whether each was completed exactly once. */
static int wait_all(Queue *q, long jobs, Error *err)
{
    for (;;) {
        QueueStatus s = {.done = 0};
        if (queue_status(q, &s, 1, err) < 0) return -1;
        if (s.done == jobs && s.waiting + s.leased == 0) return 0;
        if (s.done > jobs)
            return error_set(err, ERROR_INVALID, "%ld jobs gave %ld results", jobs, s.done);
        if (stop_requested())
            return error_set(err, ERROR_STOPPED, "stopped after %ld of %ld jobs", s.done, jobs);
        clock_sleep(0.01);
    }
}

/* Bytes of memory that the server uses, -1 where it does not say. */
static double used_memory(const char *url)
{
    redisContext *c = redisConnectUnix(url + strlen("unix:"));
    redisReply *r = c && !c->err ? redisCommand(c, "INFO memory") : NULL;
    const char *at = r && r->type == REDIS_REPLY_STRING ? strstr(r->str, "used_memory:") : NULL;
    double bytes = at ? atof(at + strlen("used_memory:")) : -1;
    if (r) freeReplyObject(r);
    if (c) redisFree(c);
    return bytes;
}

static void start_workers(const char *url, const char *name, const Load *load, Leases *leases,
                          pid_t *pids)
{
    for (int i = 0; i < load->workers; i++)
        if ((pids[i] = fork()) == 0) work(url, name, i, load, leases);
    clock_sleep(0.3 + 0.005 * (double)load->workers); /* workers connect */
}

static void end_workers(const Load *load, const pid_t *pids)
{
    for (int i = 0; i < load->workers; i++) kill(pids[i], SIGTERM);
    for (int i = 0; i < load->workers; i++)
        while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR) continue;
}

static int measure(const char *url, const Load *load, Error *err)
{
    char name[64];
    snprintf(name, sizeof name, "bench-%d", (int)getpid());
    Queue *q = NULL;
    pid_t pids[MAX_WORKERS];
    Leases *leases =
        mmap(NULL, sizeof *leases, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (leases == MAP_FAILED) return error_errno(err, "cannot map memory for the workers");
    if (queue_open(url, name, "bench", &q, err)) return -1;
    char *body = memory_alloc((size_t)load->body_bytes);
    memset(body, 'b', (size_t)load->body_bytes);
    double memory = used_memory(url);
    start_workers(url, name, load, leases, pids);
    double start = clock_seconds();
    int rc = enqueue_all(q, load->jobs, body, (size_t)load->body_bytes, err);
    double queued = clock_seconds();
    if (!rc) rc = wait_all(q, load->jobs, err);
    double end = clock_seconds();
    end_workers(load, pids);
    if (!rc) {
        printf(
            "jobs %ld, workers %ld, %ld ms each, body %ld bytes, result %ld bytes, fsync always\n",
            (long)load->jobs, (long)load->workers, (long)load->each_ms, (long)load->body_bytes,
            (long)load->result_bytes);
        printf("enqueue                  %8.0f jobs/s (the workers running)\n",
               (double)load->jobs / (queued - start));
        printf("enqueue, lease, complete %8.0f jobs/s\n", (double)load->jobs / (end - start));
        printf("lease                    %8.2f ms in the median, %.2f ms for 99 of 100\n",
               1e3 * lease_quantile(leases, 0.5), 1e3 * lease_quantile(leases, 0.99));
        printf("memory of the server     %8.0f bytes a finished job\n",
               (used_memory(url) - memory) / (double)load->jobs);
        rc = queue_purge(q, err);
    }
    free(body);
    queue_close(q);
    munmap(leases, sizeof *leases);
    return rc;
}

int main(int argc, char **argv)
{
    Load load = {.jobs = 50000, .workers = 16, .body_bytes = 4096, .result_bytes = 3072};
    const char *dir = NULL;
    const Flag flags[] = {{.name = "jobs",
                           .kind = FLAG_INT,
                           .target = &load.jobs,
                           .help = "how many jobs",
                           .min = 1,
                           .max = 1e8},
                          {.name = "workers",
                           .kind = FLAG_INT,
                           .target = &load.workers,
                           .help = "worker processes",
                           .min = 1,
                           .max = MAX_WORKERS},
                          {.name = "body",
                           .kind = FLAG_INT,
                           .target = &load.body_bytes,
                           .help = "bytes of a job",
                           .min = 1,
                           .max = BODY_MAX},
                          {.name = "result",
                           .kind = FLAG_INT,
                           .target = &load.result_bytes,
                           .help = "bytes of a result",
                           .min = 1,
                           .max = BODY_MAX},
                          {.name = "each",
                           .kind = FLAG_INT,
                           .target = &load.each_ms,
                           .help = "milliseconds between a lease and its result",
                           .min = 0,
                           .max = 60000},
                          {.name = "dir",
                           .kind = FLAG_TEXT,
                           .target = &dir,
                           .help = "where the server keeps its file: the disk that is measured"},
                          {0}};
    const FlagSpec spec = {
        .program = "quern-queuebench",
        .synopsis = "[--jobs N] [--workers N] [--each MS] [--dir DIR]",
        .about = "Measures jobs a second through enqueue, lease and complete, on a private "
                 "redis-server with appendfsync always.",
        .flags = flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    log_open("quern-queuebench");
    stop_install();
    Error err = {0};
    Server server;
    char made[64] = "/tmp/quern-bench-XXXXXX";
    if (!dir && !mkdtemp(made)) {
        error_errno(&err, "cannot make a directory in /tmp");
        log_die(&err);
    }
    int failed = server_prepare(&server, dir ? dir : made, &err) || server_start(&server, &err) ||
                 measure(server.url, &load, &err);
    server_release(&server);
    if (!dir) file_remove_tree(made, NULL);
    if (failed) log_die(&err);
    return log_close(0);
}
