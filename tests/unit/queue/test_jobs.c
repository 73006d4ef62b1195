/* The states of a job, against a private server. Each test has its own queue. Leases have the usual
 * 30 s and do not end on a busy machine. Tests of expired leases set the idle time. */
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
#include "queue/queue.h"
#include "queue/server.h"

static Server server;
static char dir[] = "/tmp/quern-test-XXXXXX";
static const char *const one_class[] = {"sim:a"};

static Queue *open_queue(const char *name)
{
    Error err = {0};
    Queue *q = NULL;
    if (queue_open(server.url, name, "6", &q, &err)) fail_msg("%s", err.text);
    return q;
}

static int dead_text(void *ctx, const QueueJob *job, Buffer *result)
{
    (void)ctx;
    (void)job;
    return buffer_puts(result, "given up");
}

static int take(Queue *q, const char *who, double wait_s, QueueJob *job)
{
    Error err = {0};
    const QueueConsumer consumer = {who, one_class, 1, dead_text, NULL};
    int rc = queue_take(q, &consumer, wait_s, job, &err);
    if (rc < 0) fail_msg("%s", err.text);
    return rc;
}

/* Take with a new handle: its first take always looks for expired leases and for handed-back jobs,
 * later takes only once a second. */
static int take_afresh(Queue **q, const char *name, const char *who, QueueJob *job)
{
    queue_close(*q);
    *q = open_queue(name);
    return take(*q, who, 0, job);
}

static int enqueue(Queue *q, const char *device_class, const char *key, const char *body,
                   size_t len)
{
    Error err;
    QueueState ignored;
    return queue_enqueue(q, &(QueueNew){device_class, key, body, len, 0}, 1, &ignored, &err);
}

static QueueState put(Queue *q, const char *key)
{
    Error err = {0};
    QueueState state = QUEUE_ABSENT;
    if (queue_enqueue(q, &(QueueNew){"sim:a", key, "body", 4, 0}, 1, &state, &err))
        fail_msg("%s", err.text);
    return state;
}

typedef struct {
    QueueState state;
    char result[64];
} Polled;

static Polled poll_one(Queue *q, const char *key)
{
    QueueResult r;
    Polled p;
    Error err = {0};
    if (queue_poll(q, &key, 1, &r, &err)) fail_msg("%s", err.text);
    p.state = r.state;
    snprintf(p.result, sizeof p.result, "%.*s", (int)r.len, r.data ? r.data : "");
    queue_results_release(&r, 1);
    return p;
}

static QueueStatus status_of(Queue *q)
{
    QueueStatus s[4] = {{{0}, 0, 0, 0, 0, 0}};
    Error err = {0};
    if (queue_status(q, s, 4, &err) < 0) fail_msg("%s", err.text);
    return s[0];
}

static long long raw_number(const char *text)
{
    redisContext *c = redisConnectUnix(server.socket);
    redisReply *r = redisCommand(c, text);
    if (!r) fail_msg("%s failed", text);
    long long n = r->integer;
    freeReplyObject(r);
    redisFree(c);
    return n;
}

static void raw_command(const char *text)
{
    raw_number(text);
}

static void fall_silent(const char *name, const QueueJob *job, const char *who)
{
    char text[256];
    snprintf(text, sizeof text,
             "XCLAIM {%s."
             "6"
             "}:s:sim:a workers %s 0 %s IDLE 31000 JUSTID",
             name, who, job->id);
    raw_command(text);
}

static void test_a_job_is_queued_once(void **state)
{
    (void)state;
    Queue *q = open_queue("once");
    Error err;
    QueueJob job;
    assert_int_equal(put(q, "k"), QUEUE_QUEUED);
    assert_int_equal(put(q, "k"), QUEUE_DUPLICATE);
    assert_int_equal(take(q, "w1", 1, &job), 1);
    assert_string_equal(job.key, "k");
    assert_int_equal(job.body.len, 4);
    assert_int_equal(job.delivery, 1);
    assert_int_equal(put(q, "k"), QUEUE_DUPLICATE);
    assert_int_equal(poll_one(q, "k").state, QUEUE_QUEUED);
    assert_int_equal(queue_complete(q, &job, "right", 5, &err), 1);
    assert_int_equal(queue_wait(q, 20, &err), 1);
    assert_int_equal(put(q, "k"), QUEUE_DONE);
    assert_string_equal(poll_one(q, "k").result, "right");
    /* A call whose reply was lost is repeated. Another result is refused. */
    assert_int_equal(queue_complete(q, &job, "right", 5, &err), 1);
    assert_int_equal(queue_complete(q, &job, "wrong", 5, &err), 0);
    assert_string_equal(poll_one(q, "k").result, "right");
    assert_int_equal(status_of(q).done, 1);
    queue_job_release(&job);
    assert_int_equal(take(q, "w1", 0, &job), 0);
    assert_int_equal(poll_one(q, "other").state, QUEUE_ABSENT);
    queue_close(q);
}

/* Another evaluator may have another result for the same job soon. */
static void test_brief_results(void **state)
{
    (void)state;
    Queue *q = open_queue("brief");
    Error err;
    QueueJob job;
    static const char *const ttl[] = {"TTL {brief.6}:j:k0", "TTL {brief.6}:j:k1"};
    for (int brief = 0; brief < 2; brief++) {
        put(q, brief ? "k1" : "k0");
        assert_int_equal(take(q, "w1", 1, &job), 1);
        job.brief = brief;
        assert_int_equal(queue_complete(q, &job, "r", 1, &err), 1);
        queue_job_release(&job);
        long long left = raw_number(ttl[brief]);
        assert_int_equal(left > 50 && left <= 60, brief);
    }
    queue_close(q);
}

static void test_fence(void **state)
{
    (void)state;
    Queue *q = open_queue("fence");
    Error err;
    QueueJob old, now;
    put(q, "k");
    assert_int_equal(take(q, "zombie", 1, &old), 1);
    assert_int_equal(take_afresh(&q, "fence", "heir", &now), 0);
    fall_silent("fence", &old, "zombie");
    assert_int_equal(queue_renew(q, &old, &err), 1);             /* late, but not taken over */
    assert_int_equal(take_afresh(&q, "fence", "heir", &now), 0); /* renewed: not expired */
    fall_silent("fence", &old, "zombie");
    assert_int_equal(take_afresh(&q, "fence", "heir", &now), 1);
    assert_int_equal(now.delivery, 2);
    assert_int_equal(queue_renew(q, &old, &err), 0);
    assert_int_equal(queue_complete(q, &old, "late", 4, &err), 0);
    assert_int_equal(queue_hand_back(q, &old, &err), 0);
    assert_int_equal(queue_bury(q, &old, "late", 4, &err), 0);
    assert_int_equal(queue_renew(q, &now, &err), 1);
    assert_int_equal(queue_complete(q, &now, "first", 5, &err), 1);
    assert_string_equal(poll_one(q, "k").result, "first");
    queue_job_release(&old);
    queue_job_release(&now);
    queue_close(q);
}

static void test_three_deliveries(void **state)
{
    (void)state;
    Queue *q = open_queue("three");
    Error err;
    QueueJob job;
    put(q, "k");
    assert_int_equal(take(q, "w", 1, &job), 1);
    assert_int_equal(queue_hand_back(q, &job, &err), 1); /* not counted */
    queue_job_release(&job);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(take_afresh(&q, "three", "w", &job), 1);
        assert_int_equal(job.delivery, i);
        assert_int_equal(queue_give_up(q, &job, &err), 1);
        queue_job_release(&job);
    }
    assert_int_equal(take_afresh(&q, "three", "w", &job), 0);
    Polled p = poll_one(q, "k");
    assert_int_equal(p.state, QUEUE_DEAD);
    assert_string_equal(p.result, "given up");
    assert_int_equal(put(q, "k"), QUEUE_DEAD);
    assert_int_equal(status_of(q).dead, 1);
    long n = 0;
    assert_int_equal(queue_retry(q, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(status_of(q).dead, 0);
    assert_int_equal(take(q, "w", 1, &job), 1);
    assert_int_equal(job.delivery, 1);
    assert_memory_equal(job.body.data, "body", 4);
    assert_int_equal(queue_complete(q, &job, "ok", 2, &err), 1);
    assert_int_equal(poll_one(q, "k").state, QUEUE_DONE);
    queue_job_release(&job);
    queue_close(q);
}

/* A job under NAME+N was not tried: neither the end of its lease nor the end of its holder counts
 * as a delivery, until queue_begin. */
static void test_begun_jobs(void **state)
{
    (void)state;
    Queue *q = open_queue("begin");
    Error err;
    QueueJob job, late, early;
    long n = 0;
    put(q, "k");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(take_afresh(&q, "begin", "w+0", &job), 1);
        assert_int_equal(job.delivery, 1);
        queue_job_release(&job);
        assert_int_equal(queue_release(q, "w", 1, &n, &err), 0); /* as after the death of w */
        assert_int_equal(n, 1);
    }
    assert_int_equal(queue_release(q, "w+0", 1, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_int_equal(take_afresh(&q, "begin", "w+1", &job), 1);
    fall_silent("begin", &job, "w+1");
    assert_int_equal(take_afresh(&q, "begin", "v+0", &late), 1);
    assert_int_equal(late.delivery, 1);
    assert_int_equal(queue_begin(q, &job, "w", &err), 0);
    early = late;
    early.consumer = strdup("v+0");
    assert_int_equal(queue_begin(q, &late, "v", &err), 1);
    assert_int_equal(queue_renew(q, &early, &err), 0);
    assert_int_equal(queue_begin(q, &early, "v", &err), 1); /* repeated after a lost reply */
    assert_int_equal(queue_renew(q, &late, &err), 1);
    free(early.consumer);
    assert_int_equal(queue_release(q, "v", 1, &n, &err), 0);
    assert_int_equal(n, 1);
    queue_job_release(&job);
    queue_job_release(&late);
    assert_int_equal(take_afresh(&q, "begin", "w+0", &job), 1);
    assert_int_equal(job.delivery, 2); /* one queue_begin counted */
    assert_int_equal(queue_begin(q, &job, "w", &err), 1);
    assert_int_equal(queue_complete(q, &job, "ok", 2, &err), 1);
    queue_job_release(&job);
    queue_close(q);
}

static void test_order_and_pause(void **state)
{
    (void)state;
    Queue *q = open_queue("order");
    Error err;
    QueueJob job;
    QueueState states[3];
    QueueNew jobs[] = {
        {"sim:a", "slow", "x", 1, 0}, {"sim:b", "other", "x", 1, 0}, {"sim:a", "soon", "x", 1, 1}};
    assert_int_equal(queue_enqueue(q, jobs, 3, states, &err), 0);
    assert_int_equal(queue_pause(q, 1, &err), 0);
    assert_int_equal(take(q, "w", 0.1, &job), 0);
    assert_int_equal(queue_pause(q, 0, &err), 0);
    const char *classes[] = {"sim:b", "sim:a"}, *want[] = {"soon", "other", "slow"};
    const QueueConsumer both = {"w", classes, 2, dead_text, NULL};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(queue_take(q, &both, 1, &job, &err), 1);
        assert_string_equal(job.key, want[i]);
        assert_int_equal(queue_complete(q, &job, "r", 1, &err), 1);
        queue_job_release(&job);
    }
    assert_int_equal(queue_purge(q, &err), 0);
    assert_int_equal(poll_one(q, "slow").state, QUEUE_ABSENT);
    queue_close(q);
}

static int take_kin(Queue *q, const char *kin, char key[8])
{
    Error err = {0};
    QueueJob job;
    const QueueConsumer consumer = {"w", one_class, 1, dead_text, NULL, kin};
    int rc = queue_take(q, &consumer, 0, &job, &err);
    if (rc < 0) fail_msg("%s", err.text);
    snprintf(key, 8, "%s", rc ? job.key : "");
    if (rc) assert_int_equal(queue_complete(q, &job, "r", 1, &err), 1);
    if (rc) queue_job_release(&job);
    return rc;
}

/* A worker may take jobs until those of one kin end, and leaves the next one where it is. */
static void test_kin(void **state)
{
    (void)state;
    Queue *q = open_queue("kin");
    Error err = {0};
    char key[8];
    QueueState states[4];
    const QueueNew jobs[] = {{"sim:a", "k1", "b", 1, 0, "x"},
                             {"sim:a", "k2", "b", 1, 0, "x"},
                             {"sim:a", "k3", "b", 1, 0, "y"},
                             {"sim:a", "k4", "b", 1, 0, NULL}};
    assert_int_equal(take_kin(q, "x", key), 0);
    assert_int_equal(queue_enqueue(q, jobs, 4, states, &err), 0);
    assert_int_equal(take_kin(q, "y", key), 0);
    assert_int_equal(take_kin(q, "x", key), 1);
    assert_int_equal(take_kin(q, "x", key), 1);
    assert_string_equal(key, "k2");
    assert_int_equal(take_kin(q, "x", key), 0);
    assert_int_equal(take_kin(q, NULL, key), 1);
    assert_string_equal(key, "k3");
    assert_int_equal(take_kin(q, "y", key), 0); /* it has no kin */
    assert_int_equal(take_kin(q, NULL, key), 1);
    assert_string_equal(key, "k4");
    queue_close(q);
}

/* Of the workers of a class one at a time takes several jobs. */
static void test_turns(void **state)
{
    (void)state;
    Queue *q = open_queue("turns");
    Error err = {0};
    const QueueConsumer a = {"a", one_class, 1, dead_text, NULL, NULL},
                        b = {"b", one_class, 1, dead_text, NULL, NULL};
    assert_int_equal(queue_turn(q, &a, 1, &err), 1);
    assert_int_equal(queue_turn(q, &a, 1, &err), 1); /* the first reply was lost */
    assert_int_equal(queue_turn(q, &b, 1, &err), 0);
    assert_int_equal(queue_turn(q, &b, 0, &err), 1); /* it has none to end */
    assert_int_equal(queue_turn(q, &b, 1, &err), 0);
    assert_int_equal(queue_turn(q, &a, 0, &err), 1);
    assert_int_equal(queue_turn(q, &b, 1, &err), 1);
    queue_close(q);
}

/* A job whose delivery was lost with the connection is found again. */
static void test_lost_reply(void **state)
{
    (void)state;
    Queue *q = open_queue("lost");
    QueueJob job;
    Error err;
    assert_int_equal(take(q, "w", 0, &job), 0);
    put(q, "k");
    raw_command("XREADGROUP GROUP workers w COUNT 1 STREAMS {lost.6}:s:sim:a >"); /* w's delivery */
    assert_int_equal(take(q, "w", 0, &job), 0);
    raw_command("CLIENT KILL TYPE normal SKIPME yes");
    int rc = 0;
    for (int i = 0; i < 3 && !rc; i++) rc = take(q, "w", 0, &job);
    assert_int_equal(rc, 1);
    assert_int_equal(job.delivery, 1); /* the same delivery */
    assert_int_equal(queue_complete(q, &job, "r", 1, &err), 1);
    queue_job_release(&job);
    queue_close(q);
}

static void test_flushall(void **state)
{
    (void)state;
    Queue *q = open_queue("flush");
    QueueJob job;
    Error err;
    put(q, "k");
    assert_int_equal(take(q, "w", 1, &job), 1);
    raw_command("FLUSHALL");
    assert_int_equal(queue_renew(q, &job, &err), 0);
    assert_int_equal(queue_complete(q, &job, "r", 1, &err), 0);
    queue_job_release(&job);
    assert_int_equal(poll_one(q, "k").state, QUEUE_ABSENT);
    assert_int_equal(take(q, "w", 0.1, &job), 0);
    raw_command("FUNCTION FLUSH");
    assert_int_equal(put(q, "k"), QUEUE_QUEUED);
    raw_command("DEL {flush.6}:s:sim:a"); /* the entry alone: the job is still in state queued */
    assert_int_equal(put(q, "k"), QUEUE_QUEUED);
    assert_int_equal(take(q, "w", 1, &job), 1);
    assert_int_equal(queue_complete(q, &job, "r", 1, &err), 1);
    queue_job_release(&job);
    queue_close(q);
}

static void test_server_killed(void **state)
{
    (void)state;
    Queue *q = open_queue("killed");
    QueueJob job;
    Error err = {0};
    long n = 0;
    put(q, "a");
    put(q, "b");
    assert_int_equal(take(q, "w", 1, &job), 1);
    assert_int_equal(queue_complete(q, &job, "r", 1, &err), 1);
    queue_job_release(&job);
    assert_int_equal(take(q, "w", 1, &job), 1);
    queue_job_release(&job);
    kill(server.pid, SIGKILL);
    server_stop(&server); /* reap it */
    if (server_start(&server, &err)) fail_msg("%s", err.text);
    assert_int_equal(poll_one(q, "a").state, QUEUE_DONE);
    assert_int_equal(poll_one(q, "b").state, QUEUE_QUEUED);
    assert_int_equal(status_of(q).leased, 1);
    assert_int_equal(queue_release(q, NULL, 0, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(status_of(q).waiting, 1);
    assert_int_equal(take(q, "w2", 1, &job), 1);
    assert_int_equal(job.delivery, 1);
    assert_int_equal(queue_complete(q, &job, "r", 1, &err), 1);
    queue_job_release(&job);
    queue_close(q);
}

/* A server that answers but refuses all changes: each call fails after its time limit. */
static void test_replica(void **state)
{
    (void)state;
    setenv("QUERN_QUEUE", "retry=0.3", 1);
    Queue *q = open_queue("replica");
    unsetenv("QUERN_QUEUE");
    QueueJob job;
    Error err = {0};
    put(q, "k");
    raw_command("REPLICAOF 127.0.0.1 1");
    assert_int_equal(
        queue_take(q, &(QueueConsumer){"w", one_class, 1, dead_text, NULL}, 0, &job, &err), -1);
    assert_non_null(strstr(err.text, "READONLY"));
    raw_command("REPLICAOF NO ONE");
    assert_int_equal(take(q, "w", 0, &job), 1);
    assert_int_equal(queue_complete(q, &job, "r", 1, &err), 1);
    queue_job_release(&job);
    queue_close(q);
}

static void test_limits(void **state)
{
    (void)state;
    setenv("QUERN_QUEUE", "jobs=3", 1);
    Queue *q = open_queue("limits");
    unsetenv("QUERN_QUEUE");
    Error err;
    for (int i = 0; i < 3; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(put(q, key), QUEUE_QUEUED);
    }
    assert_int_equal(put(q, "k0"), QUEUE_DUPLICATE); /* needs no place */
    pid_t pid = fork();
    if (pid == 0) { /* make room while the parent waits */
        QueueJob job;
        Queue *mine = open_queue("limits");
        clock_sleep(0.2);
        int ok = take(mine, "w", 1, &job) == 1 && queue_complete(mine, &job, "r", 1, &err) == 1;
        _exit(!ok);
    }
    int status = -1;
    assert_int_equal(put(q, "k4"), QUEUE_QUEUED);
    assert_int_equal(status_of(q).waiting, 3); /* the put waited until one was done */
    assert_int_equal(status_of(q).done, 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    char *big = calloc(1, QUEUE_MAX_BODY + 1);
    assert_int_equal(enqueue(q, "sim:a", "big", big, QUEUE_MAX_BODY + 1), -1);
    free(big);
    assert_int_equal(enqueue(q, "sim a\n", "k", "x", 1), -1);
    assert_int_equal(enqueue(q, "sim:a", "", "x", 1), -1);
    queue_close(q);
}

/* Devices out of service: listed once each, in order, with the last reason. */
static void test_quarantine(void **state)
{
    (void)state;
    Error err = {0};
    QueueSick sick[4];
    Queue *q = open_queue("sick");
    assert_int_equal(queue_quarantined(q, sick, 4, &err), 0);
    assert_int_equal(queue_quarantine(q, "b cuda:1", "NVIDIA H200", "Xid 79", &err), 0);
    assert_int_equal(queue_quarantine(q, "a cuda:0", "NVIDIA H200", "Xid 48", &err), 0);
    assert_int_equal(queue_quarantine(q, "a cuda:0", "NVIDIA L40", "it hangs", &err), 0);
    assert_int_equal(queue_quarantined(q, sick, 4, &err), 2);
    assert_string_equal(sick[0].where, "a cuda:0");
    assert_string_equal(sick[0].device_class, "NVIDIA L40");
    assert_string_equal(sick[0].reason, "it hangs");
    assert_string_equal(sick[1].where, "b cuda:1");
    assert_int_equal(queue_quarantined(q, sick, 1, &err), 1);
    assert_true(sick[0].at > clock_unix() - 60 && sick[0].at <= clock_unix());
    /* A worker that started earlier does not remove the record. */
    assert_int_equal(queue_serves(q, "a cuda:0", sick[0].at, &err), 0);
    assert_int_equal(queue_quarantined(q, sick, 4, &err), 2);
    assert_int_equal(queue_serves(q, "a cuda:0", clock_unix() + 1, &err), 0);
    assert_int_equal(queue_serves(q, "a cuda:0", clock_unix() + 1, &err), 0);
    assert_int_equal(queue_quarantined(q, sick, 4, &err), 1);
    assert_int_equal(queue_purge(q, &err), 0);
    assert_int_equal(queue_quarantined(q, sick, 4, &err), 0);
    queue_close(q);
}

static long long data_bytes(void)
{
    char command[200];
    long long n = -1;
    snprintf(command, sizeof command, "cat %s/appendonlydir/* | wc -c", dir);
    FILE *f = popen(command, "r");
    if (!f || fscanf(f, "%lld", &n) != 1) fail_msg("cannot measure the data");
    pclose(f);
    return n;
}

/* What was deleted takes no space after a compaction, and a waiting job is still there. */
static void test_compact(void **state)
{
    (void)state;
    enum { JOBS = 600, BODY = 1000 };
    Error err = {0};
    QueueJob job;
    char key[32], body[BODY];
    int gone;
    memset(body, 'x', sizeof body);
    Queue *q = open_queue("compact");
    for (int i = 0; i < JOBS; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(enqueue(q, "sim:a", key, body, sizeof body), 0);
        if (i) assert_int_equal(queue_withdraw(q, key, &gone, &err), 0);
    }
    assert_true(data_bytes() > JOBS * BODY);
    server_compact(&server);
    server_stop(&server); /* Redis removes the old file beside its other work */
    assert_true(data_bytes() < JOBS * BODY / 8);
    if (server_start(&server, &err)) fail_msg("%s", err.text);
    assert_int_equal(take(q, "w", 2, &job), 1);
    assert_string_equal(job.key, "0");
    assert_int_equal(job.body.len, BODY);
    queue_job_release(&job);
    queue_purge(q, &err);
    queue_close(q);
}

static int start_server(void **state)
{
    (void)state;
    Error err = {0};
    if (!mkdtemp(dir) || server_prepare(&server, dir, &err) || server_start(&server, &err)) {
        print_error("%s\n", err.text);
        return -1;
    }
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    server_release(&server);
    return file_remove_tree(dir, NULL);
}

int main(void)
{
    if (system("redis-server --version >/dev/null 2>&1")) {
        puts("1..0 # SKIP no redis-server in PATH");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_is_queued_once),
        cmocka_unit_test(test_brief_results),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_three_deliveries),
        cmocka_unit_test(test_begun_jobs),
        cmocka_unit_test(test_order_and_pause),
        cmocka_unit_test(test_kin),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_lost_reply),
        cmocka_unit_test(test_flushall),
        cmocka_unit_test(test_server_killed),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_quarantine),
        cmocka_unit_test(test_compact),
        cmocka_unit_test(test_replica),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
