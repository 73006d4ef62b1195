/* The submitter's side of the queue: enqueue, poll, wait. All commands here are idempotent, because
 * jobs are known by key, so a lost connection is followed by sending them again. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stop.h"
#include "queue/store.h"

enum { FULL_LIMIT_S = 600 }; /* limit of the wait for a full stream */

typedef struct {
    QueueKey job, stream, classes;
    QueueFunction function;
    Command command;
} Enqueue;

static void enqueue_build(const Queue *q, const QueueNew *job, Enqueue *e)
{
    queue_key(q, e->job, "j", job->key);
    queue_key(q, e->stream, job->urgent ? "u" : "s", job->device_class);
    queue_key(q, e->classes, "classes", NULL);
    queue_function(q, &e->command, e->function, "enqueue", 3);
    command_text(&e->command, e->job);
    command_text(&e->command, e->stream);
    command_text(&e->command, e->classes);
    command_text(&e->command, job->key);
    command_bytes(&e->command, job->body, job->len);
    command_text(&e->command, job->device_class);
    command_int(&e->command, q->limit);
}

/* Read the reply to an enqueue. Returns 0, 1 when the stream is full, -1 on an error. */
static int enqueue_state(const redisReply *r, QueueState *state, Error *err)
{
    static const struct {
        const char *text;
        QueueState state;
    } table[] = {{"queued", QUEUE_QUEUED},
                 {"dup", QUEUE_DUPLICATE},
                 {"done", QUEUE_DONE},
                 {"dead", QUEUE_DEAD}};
    for (size_t i = 0; r->str && i < sizeof table / sizeof *table; i++) {
        if (strcmp(r->str, table[i].text)) continue;
        *state = table[i].state;
        return 0;
    }
    if (r->str && !strcmp(r->str, "full")) return 1;
    return error_set(err, ERROR_SERVER,
                     "the queue's server answered enqueue with a reply of type %d", r->type);
}

/* Send one pipeline of at most QUEUE_PIPELINE jobs, in order. Returns how many are enqueued before
 * the first that found its stream full, or -1. The rest may be sent again. */
static long enqueue_batch(Queue *q, const QueueNew *jobs, size_t n, QueueState *states, Error *err)
{
    Enqueue *e = memory_array(n, sizeof *e);
    Command *commands = memory_array(n, sizeof *commands);
    redisReply *replies[QUEUE_PIPELINE];
    for (size_t i = 0; i < n; i++) {
        enqueue_build(q, &jobs[i], &e[i]);
        commands[i] = e[i].command; /* its numbers point into e[i] */
    }
    long done = queue_exchange(q, commands, (int)n, replies, 0, EXCHANGE_RETRY, err) ? -1 : 0;
    if (!done) {
        for (size_t i = 0; i < n; i++) {
            int rc = enqueue_state(replies[i], &states[i], err);
            if (rc < 0) done = -1;
            if (rc) break;
            done++;
        }
        connection_free_replies(replies, (int)n);
    }
    free(commands);
    free(e);
    return done;
}

static int check_new(const QueueNew *job, Error *err)
{
    if (!queue_text_ok(job->key, QUEUE_MAX_KEY))
        return error_set(err, ERROR_INVALID, "a job's key is 1 to 128 printable characters");
    if (!queue_text_ok(job->device_class, 63))
        return error_set(err, ERROR_USAGE,
                         "a device class is 1 to 63 printable characters, found '%s'",
                         job->device_class);
    if (job->len > QUEUE_MAX_BODY)
        return error_set(err, ERROR_LIMIT, "job %s has %zu bytes; at most %d go through the queue",
                         job->key, job->len, QUEUE_MAX_BODY);
    return 0;
}

int queue_enqueue_many(Queue *q, const QueueNew *jobs, size_t n, QueueState *states, Error *err)
{
    for (size_t i = 0; i < n; i++)
        if (check_new(&jobs[i], err)) return -1;
    double full_since = 0;
    for (size_t at = 0; at < n;) {
        size_t batch = n - at < QUEUE_PIPELINE ? n - at : QUEUE_PIPELINE;
        long done = enqueue_batch(q, jobs + at, batch, states + at, err);
        if (done < 0) return -1;
        at += (size_t)done;
        if ((size_t)done == batch) continue;
        double now = clock_seconds();
        if (done || !full_since) full_since = now;
        if (stop_requested())
            return error_set(err, ERROR_STOPPED, "stopped while the queue was full");
        if (now - full_since > FULL_LIMIT_S)
            return error_set(err, ERROR_SERVER,
                             "the queue of %s holds %ld jobs and took none for %d s; are its "
                             "workers running?",
                             jobs[at].device_class, q->limit, FULL_LIMIT_S);
        clock_sleep(0.05);
    }
    return 0;
}

int queue_enqueue(Queue *q, const char *device_class, const char *key, const void *body, size_t len,
                  QueueState *state, Error *err)
{
    QueueNew job = {device_class, key, body, len, 0};
    return queue_enqueue_many(q, &job, 1, state, err);
}

int queue_refuse(Queue *q, const QueueNew *job, const void *result, size_t len, Error *err)
{
    QueueKey names, stat, dead;
    QueueFunction function;
    Command c;
    long long done = 0;
    queue_key(q, names, "j", job->key);
    queue_key(q, stat, "stat", NULL);
    queue_key(q, dead, "dead", NULL);
    queue_function(q, &c, function, "refuse", 3);
    command_text(&c, names);
    command_text(&c, stat);
    command_text(&c, dead);
    command_text(&c, job->device_class);
    command_text(&c, job->key);
    command_bytes(&c, job->body, job->len);
    command_bytes(&c, result, len);
    return queue_call_int(q, &c, &done, err);
}

int queue_withdraw(Queue *q, const char *key, int *gone, Error *err)
{
    QueueKey job;
    QueueFunction name;
    Command c;
    long long answer = 0;
    queue_key(q, job, "j", key);
    queue_function(q, &c, name, "withdraw", 1);
    command_text(&c, job);
    command_int(&c, (long long)(q->lease_s * 1000));
    if (queue_call_int(q, &c, &answer, err)) return -1;
    *gone = answer == 1;
    return 0;
}

static int hand_over(const redisReply *r, size_t index, QueueResult *callback, void *ctx,
                     Error *err)
{
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 2)
        return error_set(err, ERROR_SERVER,
                         "the queue's server answered HMGET with a reply of type %d", r->type);
    const redisReply *st = r->element[0], *res = r->element[1];
    QueueState state = QUEUE_ABSENT;
    if (st->str && !strcmp(st->str, "queued")) state = QUEUE_QUEUED;
    if (st->str && !strcmp(st->str, "done")) state = QUEUE_DONE;
    if (st->str && !strcmp(st->str, "dead")) state = QUEUE_DEAD;
    int finished = state == QUEUE_DONE || state == QUEUE_DEAD;
    if (finished && !res->str)
        return error_set(err, ERROR_SERVER,
                         "a finished job has lost its result on the queue's server");
    return callback(ctx, index, state, finished ? res->str : NULL, finished ? (size_t)res->len : 0,
                    err);
}

int queue_poll(Queue *q, const char *const *keys, size_t n, QueueResult *callback, void *ctx,
               Error *err)
{
    for (size_t at = 0; at < n; at += QUEUE_PIPELINE) {
        int batch = (int)(n - at < QUEUE_PIPELINE ? n - at : QUEUE_PIPELINE);
        QueueKey names[QUEUE_PIPELINE];
        Command *commands = memory_array((size_t)batch, sizeof *commands);
        redisReply *replies[QUEUE_PIPELINE];
        for (int i = 0; i < batch; i++) {
            queue_key(q, names[i], "j", keys[at + (size_t)i]);
            command_text(&commands[i], "HMGET");
            command_text(&commands[i], names[i]);
            command_text(&commands[i], "st");
            command_text(&commands[i], "res");
        }
        int rc = queue_exchange(q, commands, batch, replies, 0, EXCHANGE_RETRY, err);
        free(commands);
        if (rc) return -1;
        for (int i = 0; i < batch && !rc; i++)
            rc = hand_over(replies[i], at + (size_t)i, callback, ctx, err);
        connection_free_replies(replies, batch);
        if (rc) return -1;
    }
    return 0;
}

int queue_wait(Queue *q, double timeout_s, Error *err)
{
    double deadline = clock_seconds() + timeout_s;
    QueueKey out;
    queue_key(q, out, "out", NULL);
    for (;;) {
        double left = deadline - clock_seconds();
        if (left <= 0 || stop_requested()) return 0;
        double block = left < 2 ? left : 2;
        Command c = {0};
        command_text(&c, "XREAD");
        command_text(&c, "COUNT");
        command_text(&c, "1000");
        command_text(&c, "BLOCK");
        command_int(&c, (long long)(block * 1000) + 1);
        command_text(&c, "STREAMS");
        command_text(&c, out);
        command_text(&c, q->out_last);
        redisReply *r = NULL;
        int rc = queue_exchange(q, &c, 1, &r, block, EXCHANGE_READ, err);
        if (rc < 0) return -1;
        if (rc) continue;
        const redisReply *entries = reply_at(reply_at(r, 0), 1);
        const char *last = entries->elements
                               ? reply_text(reply_at(reply_at(entries, entries->elements - 1), 0))
                               : "";
        int woken = *last != 0;
        if (woken) snprintf(q->out_last, sizeof q->out_last, "%s", last);
        freeReplyObject(r);
        if (woken) return 1;
    }
}
