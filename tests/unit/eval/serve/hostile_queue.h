/* A private server, an evaluator on it, honest jobs, and raw entries, for the tests of hostile input. */
#ifndef TESTS_HOSTILE_QUEUE_H
#define TESTS_HOSTILE_QUEUE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/file.h"
#include "eval/serve/eval_worker.h"
#include "eval/serve/seal.h"
#include "eval/serve/submitter.h"
#include "queue/server.h"

#define CLASS "sim:h100"
#define STREAM "{hostile." VERDICT_HARNESS "}:s:" CLASS

static Server server;
static char dir[] = "/tmp/quern-test-XXXXXX";
static redisContext *redis;
static Queue *queue;
static pid_t evaluator;

static inline void start_evaluator(void)
{
    evaluator = fork();
    if (evaluator) return;
    EvalWorkerOptions opt = {.runner = {.device = CLASS, .noop = 1, .uuid = "U"},
                             .redis = server.url,
                             .queue = "hostile",
                             .deadline_s = 200};
    Error err;
    _exit(eval_worker_run(&opt, &err) ? 1 : 0);
}

static inline int set_up(void **state)
{
    Error err = {0};
    (void)state;
    setenv("QUERN_LOG", "quiet", 1);
    if (!mkdtemp(dir) || server_prepare(&server, dir, &err) || server_start(&server, &err))
        fail_msg("%s", err.text);
    redis = redisConnectUnix(server.socket);
    if (queue_open(server.url, "hostile", VERDICT_HARNESS, &queue, &err)) fail_msg("%s", err.text);
    start_evaluator();
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    kill(evaluator, SIGTERM);
    waitpid(evaluator, NULL, 0);
    queue_close(queue);
    redisFree(redis);
    server_release(&server);
    return file_remove_tree(dir, NULL);
}

static inline void raw(int argc, const char **argv, const size_t *len)
{
    redisReply *r = redisCommandArgv(redis, argc, argv, len);
    if (!r) fail_msg("redis: %s", redis->errstr);
    freeReplyObject(r);
}

/* ---- an honest job ---- */

static Task task = {.name = "relu"};

/* The evaluator's verdict on it is ok. Its source is valid until 16 more are made. */
static inline void honest(Job *job, int number)
{
    enum { SOURCES = 16 };
    static char sources[SOURCES][64];
    static int n;
    char *source = sources[n++ % SOURCES];
    snprintf(source, sizeof *sources, "// selftest: measured 0 U=2\n// honest %d", number);
    memset(task.digest, 'a', DIGEST_HEX - 1);
    job_init(job, &task, CLASS, source, 1);
}

typedef struct {
    QueueState state;
    int finished, accepted;
    Outcome outcome; /* when accepted */
} Poll;

/* A submitter takes these bytes for the verdict of this job. */
static inline int is_accepted(const Job *job, const void *data, size_t len, Outcome *outcome)
{
    char key[DIGEST_HEX];
    Verdict v;
    Error why;
    if (seal_open(SEAL_VERDICT, data, &len, &why) || job_read_verdict(data, len, &v, &why)) {
        assert_true(why.text[0]);
        return 0;
    }
    job_key(job, key);
    int same = !strcmp(v.key, key);
    *outcome = v.outcome;
    verdict_release(&v);
    return same;
}

static inline Poll result_of(const Job *job)
{
    char key[DIGEST_HEX];
    const char *keys[] = {key};
    QueueResult r;
    Poll p = {0};
    Error err;
    job_key(job, key);
    if (queue_poll(queue, keys, 1, &r, &err)) fail_msg("%s", err.text);
    p.state = r.state;
    p.finished = r.state == QUEUE_DONE || r.state == QUEUE_DEAD;
    p.accepted = p.finished && is_accepted(job, r.data, r.len, &p.outcome);
    queue_results_release(&r, 1);
    return p;
}

static inline Poll wait_for(const Job *job)
{
    Poll p = {0};
    for (double end = clock_seconds() + 300; !p.finished && clock_seconds() < end;) {
        p = result_of(job);
        if (!p.finished) clock_sleep(0.01);
    }
    assert_true(p.finished);
    return p;
}

/* Submits a job's candidate, and waits for the outcome. */
static inline Outcome ask(const Job *job)
{
    AskItem item = {.task = &task, .source = job->source};
    Error err;
    if (submitter_ask(&(AskOptions){queue, CLASS, 1}, &item, 1, &err)) fail_msg("%s", err.text);
    return item.outcome;
}

/* The evaluator is alive and answers an honest job. */
static inline void lives(int number)
{
    Job job;
    honest(&job, number);
    assert_int_equal(ask(&job), OUTCOME_OK);
    assert_true(result_of(&job).accepted);
    assert_int_equal(waitpid(evaluator, NULL, WNOHANG), 0);
}

/* ---- raw entries ---- */

static inline void add_entry(int n_fields, const char **fields, const size_t *len)
{
    const char *argv[16] = {"XADD", STREAM, "*"};
    size_t lens[16] = {4, strlen(STREAM), 1};
    for (int i = 0; i < n_fields; i++) {
        argv[3 + i] = fields[i];
        lens[3 + i] = len ? len[i] : strlen(fields[i]);
    }
    raw(3 + n_fields, argv, lens);
}

static inline long malformed(void)
{
    QueueStatus s[4];
    Error err;
    int n = queue_status(queue, s, 4, &err);
    if (n < 0) fail_msg("%s", err.text);
    return n ? s[0].malformed : 0;
}

static inline void put_body(const char *key, const void *body, size_t len)
{
    const char *fields[] = {"key", key, "body", body};
    add_entry(4, fields, (const size_t[]){3, strlen(key), 4, len});
}

#endif
