/* quern-queuebench: jobs a second through enqueue, lease and complete, without work between. It
 * starts a private server as quern-fleet does, which fsyncs every change. Workers are processes
 * that take and complete one job at a time. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

enum { MAX_WORKERS = 256, BODY_MAX = 65536, BATCH = 128, KEY_BYTES = 32 };

static const char *const classes[] = {"bench"};

static int dead_result(void *ctx, const QueueJob *job, Buffer *result)
{
    (void)ctx;
    (void)job;
    return buffer_puts(result, "dead");
}

/* A worker process: take and complete jobs until SIGTERM. */
static _Noreturn void work(const char *url, const char *name, int index)
{
    process_die_with_parent();
    stop_install();
    Error err = {0};
    Queue *q = NULL;
    char consumer_name[32], result[512];
    const QueueConsumer consumer = {consumer_name, classes, 1, dead_result, NULL};
    memset(result, 'r', sizeof result);
    snprintf(consumer_name, sizeof consumer_name, "worker-%d", index);
    if (queue_open(url, name, "bench", &q, &err)) log_die(&err);
    while (!stop_requested()) {
        QueueJob job;
        int rc = queue_take(q, &consumer, 1, &job, &err);
        if (rc > 0) rc = queue_complete(q, &job, result, sizeof result, &err);
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

static int measure(const char *url, int64_t jobs, int64_t workers, int64_t body_bytes, Error *err)
{
    char name[64];
    snprintf(name, sizeof name, "bench-%d", (int)getpid());
    Queue *q = NULL;
    if (queue_open(url, name, "bench", &q, err)) return -1;
    pid_t pids[MAX_WORKERS];
    for (int i = 0; i < workers; i++)
        if ((pids[i] = fork()) == 0) work(url, name, i);
    char *body = memory_alloc((size_t)body_bytes);
    memset(body, 'b', (size_t)body_bytes);
    clock_sleep(0.3); /* workers connect */
    double start = clock_seconds();
    int rc = enqueue_all(q, jobs, body, (size_t)body_bytes, err);
    double queued = clock_seconds();
    if (!rc) rc = wait_all(q, jobs, err);
    double end = clock_seconds();
    for (int i = 0; i < workers; i++) kill(pids[i], SIGTERM);
    for (int i = 0; i < workers; i++)
        while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR) continue;
    if (!rc) {
        printf("jobs %ld, workers %ld, body %ld bytes, fsync %s\n", (long)jobs, (long)workers,
               (long)body_bytes, "always");
        printf("enqueue                  %8.0f jobs/s (the workers running)\n",
               (double)jobs / (queued - start));
        printf("enqueue, lease, complete %8.0f jobs/s\n", (double)jobs / (end - start));
        rc = queue_purge(q, err);
    }
    free(body);
    queue_close(q);
    return rc;
}

int main(int argc, char **argv)
{
    int64_t jobs = 50000, workers = 16, body_bytes = 1024;
    const char *dir = NULL;
    const Flag flags[] = {{.name = "jobs",
                           .kind = FLAG_INT,
                           .target = &jobs,
                           .help = "how many jobs",
                           .min = 1,
                           .max = 1e8},
                          {.name = "workers",
                           .kind = FLAG_INT,
                           .target = &workers,
                           .help = "worker processes",
                           .min = 1,
                           .max = MAX_WORKERS},
                          {.name = "body",
                           .kind = FLAG_INT,
                           .target = &body_bytes,
                           .help = "bytes of a job",
                           .min = 1,
                           .max = BODY_MAX},
                          {.name = "dir",
                           .kind = FLAG_TEXT,
                           .target = &dir,
                           .help = "where the server keeps its file: the disk that is measured"},
                          {0}};
    const FlagSpec spec = {
        .program = "quern-queuebench",
        .synopsis = "[--jobs N] [--workers N] [--dir DIR]",
        .about = "Measures no-op jobs a second through enqueue, lease and complete, on a private "
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
                 measure(server.url, jobs, workers, body_bytes, &err);
    server_release(&server);
    if (!dir) file_remove_tree(made, NULL);
    if (failed) log_die(&err);
    return log_close(0);
}
