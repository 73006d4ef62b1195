/* The submitter's side of the queue: enqueue, poll, wait. All commands here are idempotent, because
 * jobs are known by key, so a lost connection is followed by sending them again. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stop.h"
#include "queue/store.h"

enum { FULL_LIMIT_S = 600 }; /* limit of the wait for a full stream */

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
    Command *commands = memory_array(n, sizeof *commands);
    redisReply *replies[QUEUE_PIPELINE];
    for (size_t i = 0; i < n; i++) {
        queue_function(q, &commands[i], "enqueue");
        command_texts(&commands[i], jobs[i].urgent ? "u" : "s", jobs[i].device_class, jobs[i].key,
                      NULL);
        command_bytes(&commands[i], jobs[i].body, jobs[i].len);
        command_int(&commands[i], q->limit);
        const char *kin = jobs[i].kin;
        command_text(&commands[i], kin && queue_text_ok(kin, QUEUE_MAX_KEY) ? kin : "");
    }
    int failed = queue_exchange(q, &(Exchange){commands, replies, (int)n}, err);
    free(commands);
    if (failed) return -1;
    long done = 0;
    for (size_t i = 0; i < n; i++) {
        int rc = enqueue_state(replies[i], &states[i], err);
        if (rc < 0) done = -1;
        if (rc) break;
        done++;
    }
    connection_free_replies(replies, (int)n);
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

int queue_enqueue(Queue *q, const QueueNew *jobs, size_t n, QueueState *states, Error *err)
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

int queue_refuse(Queue *q, const QueueNew *job, const void *result, size_t len, Error *err)
{
    Command c;
    long long done;
    queue_function(q, &c, "refuse");
    command_texts(&c, job->device_class, job->key, NULL);
    command_bytes(&c, job->body, job->len);
    command_bytes(&c, result, len);
    return queue_call_int(q, &c, &done, err);
}

int queue_withdraw(Queue *q, const char *key, int *gone, Error *err)
{
    Command c;
    long long answer;
    queue_function(q, &c, "withdraw");
    command_text(&c, key);
    command_int(&c, queue_lease_ms(q));
    if (queue_call_int(q, &c, &answer, err)) return -1;
    *gone = answer == 1;
    return 0;
}

/* Read a job's fields st and res. */
static int read_result(const redisReply *r, QueueResult *out, Error *err)
{
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 2)
        return error_set(err, ERROR_SERVER,
                         "the queue's server answered HMGET with a reply of type %d", r->type);
    const char *state = reply_text(r->element[0]);
    const redisReply *result = r->element[1];
    out->state = !strcmp(state, "queued") ? QUEUE_QUEUED
                 : !strcmp(state, "done") ? QUEUE_DONE
                 : !strcmp(state, "dead") ? QUEUE_DEAD
                                          : QUEUE_ABSENT;
    if (out->state != QUEUE_DONE && out->state != QUEUE_DEAD) return 0;
    if (result->type != REDIS_REPLY_STRING)
        return error_set(err, ERROR_SERVER,
                         "a finished job has lost its result on the queue's server");
    out->len = (size_t)result->len;
    out->data = memory_alloc(out->len + 1);
    memcpy(out->data, result->str, out->len);
    return 0;
}

/* Look up at most QUEUE_PIPELINE keys. */
static int poll_batch(Queue *q, const char *const *keys, int n, QueueResult *out, Error *err)
{
    QueueKey names[QUEUE_PIPELINE];
    redisReply *replies[QUEUE_PIPELINE];
    Command *commands = memory_array((size_t)n, sizeof *commands);
    for (int i = 0; i < n; i++) {
        queue_key(q, names[i], "j", keys[i]);
        command_texts(&commands[i], "HMGET", names[i], "st", "res", NULL);
    }
    int failed = queue_exchange(q, &(Exchange){commands, replies, n}, err);
    free(commands);
    if (failed) return -1;
    for (int i = 0; i < n && !failed; i++) failed = read_result(replies[i], &out[i], err);
    connection_free_replies(replies, n);
    return failed;
}

int queue_poll(Queue *q, const char *const *keys, size_t n, QueueResult *out, Error *err)
{
    for (size_t i = 0; i < n; i++) out[i] = (QueueResult){.state = QUEUE_ABSENT};
    for (size_t at = 0; at < n; at += QUEUE_PIPELINE) {
        size_t batch = n - at < QUEUE_PIPELINE ? n - at : QUEUE_PIPELINE;
        if (poll_batch(q, keys + at, (int)batch, out + at, err)) return -1;
    }
    return 0;
}

void queue_results_release(QueueResult *results, size_t n)
{
    for (size_t i = 0; i < n; i++) free(results[i].data);
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
        command_texts(&c, "XREAD", "COUNT", "1000", "BLOCK", NULL);
        command_int(&c, (long long)(block * 1000) + 1);
        command_texts(&c, "STREAMS", out, q->out_last, NULL);
        redisReply *r = NULL;
        int rc = queue_exchange(q, &(Exchange){&c, &r, 1, EXCHANGE_READ, block}, err);
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
