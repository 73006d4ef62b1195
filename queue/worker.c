/* The worker's side of the queue: take, renew, complete, bury, hand back. Every change of a leased
 * job names consumer and delivery, and the Lua library refuses it when the lease was lost. */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "queue/store.h"

enum { STREAMS_MAX = 2 * QUEUE_MAX_CLASSES };

/* The streams that a worker reads, the urgent ones first. */
typedef struct {
    int n;
    QueueKey names[STREAMS_MAX];
} Streams;

static void streams_of(const Queue *q, const char *const *classes, int n, Streams *s)
{
    s->n = 2 * n;
    for (int i = 0; i < n; i++) {
        queue_key(q, s->names[i], "u", classes[i]);
        queue_key(q, s->names[n + i], "s", classes[i]);
    }
}

/* The stream of that name among those asked for, or NULL. */
static const char *asked_stream(const Streams *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->names[i], name)) return s->names[i];
    return NULL;
}

void queue_job_release(QueueJob *job)
{
    free(job->stream);
    free(job->id);
    free(job->key);
    buffer_release(&job->body);
    *job = (QueueJob){0};
}

/* Returns 1 when the entry is no job: job then has its stream, id and delivery only. */
static int job_fill(QueueJob *job, const char *stream, const redisReply *id, const redisReply *key,
                    const redisReply *body, int delivery, Error *err)
{
    if (!stream || !*reply_text(id))
        return error_set(err, ERROR_SERVER,
                         "the queue's server handed out something that is no entry of a stream "
                         "that was asked for");
    job->stream = memory_strdup(stream);
    job->id = memory_strdup(id->str);
    job->delivery = delivery;
    if (!queue_text_ok(reply_text(key), QUEUE_MAX_KEY) || strlen(reply_text(key)) != key->len ||
        body->type != REDIS_REPLY_STRING || body->len > QUEUE_MAX_BODY)
        return 1;
    job->key = memory_strdup(key->str);
    buffer_init(&job->body, (size_t)body->len + 1);
    buffer_append(&job->body, body->str, (size_t)body->len);
    return 0;
}

/* The part of the stream's name after "{NAME.VERSION}:s:" or ":u:". */
const char *queue_job_class(const Queue *q, const QueueJob *job)
{
    return job->stream + strlen(q->name) + strlen("{}:s:");
}

typedef enum { TAKE_ERROR = -1, TAKE_NONE, TAKE_JOB, TAKE_PAUSED, TAKE_LOST } TakeResult;

/* Discard an entry that is no job. The next take goes on with another one. */
static TakeResult discard(Queue *q, QueueJob *job, const char *consumer, Error *err)
{
    QueueKey stat;
    QueueFunction name;
    Command c;
    long long held;
    queue_key(q, stat, "stat", NULL);
    queue_function(q, &c, name, "discard", 2);
    command_text(&c, job->stream);
    command_text(&c, stat);
    command_text(&c, job->id);
    command_text(&c, consumer);
    command_int(&c, job->delivery);
    command_text(&c, queue_job_class(q, job));
    int rc = queue_call_int(q, &c, &held, err);
    if (!rc) log_warn("the queue of %s held an entry that is no job", queue_job_class(q, job));
    queue_job_release(job);
    return rc ? TAKE_ERROR : TAKE_LOST;
}

/* Take without blocking: first own deliveries whose reply was lost, then expired leases, then new
 * jobs. */
static TakeResult take_now(Queue *q, const Streams *s, const char *consumer, QueueJob *job,
                           Error *err)
{
    unsigned generation = connection_generation(q->connection);
    double now = clock_seconds();
    int scan = now >= q->next_scan, fresh = q->taken != generation;
    if (scan) q->next_scan = now + fmin(q->lease_s / 4, 1);
    QueueKey pause;
    QueueFunction name;
    Command c;
    queue_key(q, pause, "pause", NULL);
    queue_function(q, &c, name, "take", 1 + s->n);
    command_text(&c, pause);
    for (int i = 0; i < s->n; i++) command_text(&c, s->names[i]);
    command_text(&c, consumer);
    command_int(&c, (long long)(q->lease_s * 1000));
    command_text(&c, scan || fresh ? "1" : "0");
    command_text(&c, fresh ? "1" : "0");
    redisReply *r = NULL;
    int rc = queue_exchange(q, &c, 1, &r, 0, EXCHANGE_ONCE, err);
    if (rc) return rc < 0 ? TAKE_ERROR : TAKE_LOST;
    q->taken = generation;
    TakeResult result = TAKE_NONE;
    if (r->type == REDIS_REPLY_STRING) result = TAKE_PAUSED;
    if (r->type == REDIS_REPLY_ARRAY && r->elements == 5) {
        long long index = r->element[0]->integer;
        rc = job_fill(job, index < 0 || index >= s->n ? NULL : s->names[index], r->element[1],
                      r->element[2], r->element[3], (int)r->element[4]->integer, err);
        result = rc < 0 ? TAKE_ERROR : rc ? discard(q, job, consumer, err) : TAKE_JOB;
    }
    freeReplyObject(r);
    return result;
}

/* Read an XREADGROUP reply. The first job goes to `job`. COUNT holds per stream, so there may be
 * more: hand them back. */
static TakeResult read_jobs(Queue *q, const Streams *s, const redisReply *r, const char *consumer,
                            QueueJob *job, Error *err)
{
    TakeResult result = TAKE_NONE;
    if (r->type != REDIS_REPLY_ARRAY)
        return result; /* nil, or NOGROUP or UNBLOCKED: the stream was deleted */
    for (size_t i = 0; i < r->elements; i++) {
        const redisReply *e = reply_at(reply_at(reply_at(r, i), 1), 0), *f = reply_at(e, 1);
        int is_job = f->type == REDIS_REPLY_ARRAY && f->elements == 4 &&
                     !strcmp(reply_text(reply_at(f, 0)), "key") &&
                     !strcmp(reply_text(reply_at(f, 2)), "body");
        QueueJob next = {0};
        int rc =
            job_fill(&next, asked_stream(s, reply_text(reply_at(reply_at(r, i), 0))),
                     reply_at(e, 0), reply_at(f, is_job ? 1 : f->elements), reply_at(f, 3), 1, err);
        if (rc > 0) rc = discard(q, &next, consumer, err) == TAKE_ERROR ? -1 : 1;
        if (!rc && result == TAKE_JOB) rc = queue_hand_back(q, &next, consumer, err);
        if (!rc && result != TAKE_JOB) {
            *job = next;
            next = (QueueJob){0};
            result = TAKE_JOB;
        }
        queue_job_release(&next);
        if (rc < 0) return TAKE_ERROR;
    }
    return result;
}

/* Block for a new job. When a pause or a stop came meanwhile, hand it back. */
static TakeResult take_blocking(Queue *q, const Streams *s, const char *consumer, double wait_s,
                                QueueJob *job, Error *err)
{
    QueueKey pause;
    Command c[2] = {{0}, {0}};
    queue_key(q, pause, "pause", NULL);
    static const char *const words[] = {"XREADGROUP", "GROUP", QUEUE_GROUP};
    for (int i = 0; i < 3; i++) command_text(&c[0], words[i]);
    command_text(&c[0], consumer);
    command_text(&c[0], "COUNT");
    command_text(&c[0], "1");
    command_text(&c[0], "BLOCK");
    command_int(&c[0], (long long)(wait_s * 1000) + 1);
    command_text(&c[0], "STREAMS");
    for (int i = 0; i < s->n; i++) command_text(&c[0], s->names[i]);
    for (int i = 0; i < s->n; i++) command_text(&c[0], ">");
    command_text(&c[1], "EXISTS");
    command_text(&c[1], pause);
    redisReply *r[2];
    int rc = queue_exchange(q, c, 2, r, wait_s, EXCHANGE_TAKE, err);
    if (rc) return rc < 0 ? TAKE_ERROR : TAKE_LOST;
    TakeResult result = read_jobs(q, s, r[0], consumer, job, err);
    int paused = r[1]->type == REDIS_REPLY_INTEGER && r[1]->integer;
    connection_free_replies(r, 2);
    if (result == TAKE_JOB && (paused || stop_requested())) {
        result = queue_hand_back(q, job, consumer, err) < 0 ? TAKE_ERROR : TAKE_NONE;
        queue_job_release(job);
    }
    return result;
}

static void sleep_until(double deadline)
{
    double left = deadline - clock_seconds();
    struct pollfd f = {stop_fd(), POLLIN, 0};
    if (left > 0) poll(&f, 1, (int)(left * 1000) + 1);
}

static int bury_exhausted(Queue *q, QueueJob *job, const char *consumer,
                          QueueDeadResult *dead_result, void *ctx, Error *err)
{
    Buffer result;
    buffer_init(&result, QUEUE_MAX_BODY);
    int rc = dead_result(ctx, job, &result);
    if (rc)
        error_set(err, ERROR_INVALID, "job %s was given up and its result could not be made",
                  job->key);
    else
        rc = queue_bury(q, job, consumer, result.data, result.len, err) < 0 ? -1 : 0;
    buffer_release(&result);
    queue_job_release(job);
    return rc;
}

int queue_take(Queue *q, const char *const *classes, int n, const char *consumer, double timeout_s,
               QueueDeadResult *dead_result, void *ctx, QueueJob *job, Error *err)
{
    if (n < 1 || n > QUEUE_MAX_CLASSES)
        return error_set(err, ERROR_INVALID, "a worker serves 1 to %d device classes",
                         QUEUE_MAX_CLASSES);
    double deadline = clock_seconds() + fmin(timeout_s, 2);
    Streams streams;
    streams_of(q, classes, n, &streams);
    *job = (QueueJob){0};
    for (int blocked = 0;;) {
        TakeResult result = take_now(q, &streams, consumer, job, err);
        double left = deadline - clock_seconds();
        if (result == TAKE_PAUSED) {
            sleep_until(deadline);
            return 0;
        }
        if (result == TAKE_NONE && !blocked && left > 0 && !stop_requested()) {
            result = take_blocking(q, &streams, consumer, left, job, err);
            blocked = 1;
        }
        if (result == TAKE_ERROR) return -1;
        if (result == TAKE_JOB && job->delivery <= QUEUE_MAX_DELIVERIES) return 1;
        if (result == TAKE_JOB && bury_exhausted(q, job, consumer, dead_result, ctx, err))
            return -1;
        if (stop_requested() || clock_seconds() >= deadline) return 0;
    }
}

/* A call on a leased entry. The keys begin with the stream, the arguments with id, consumer and
 * delivery. */
typedef struct {
    QueueFunction function;
    QueueKey job, out, stat, dead;
    Command command;
} Leased;

static void leased_arguments(Leased *l, const QueueJob *job, const char *consumer)
{
    command_text(&l->command, job->id);
    command_text(&l->command, consumer);
    command_int(&l->command, job->delivery);
}

static int leased_call(Queue *q, Leased *l, Error *err)
{
    long long held = 0;
    return queue_call_int(q, &l->command, &held, err) ? -1 : held == 1;
}

/* other: the consumer that holds the lease from now on; NULL: the same one. */
static int renew(Queue *q, const QueueJob *job, const char *consumer, const char *other, Error *err)
{
    Leased l;
    queue_function(q, &l.command, l.function, "renew", 1);
    command_text(&l.command, job->stream);
    leased_arguments(&l, job, consumer);
    if (other) command_text(&l.command, other);
    return leased_call(q, &l, err);
}

int queue_renew(Queue *q, const QueueJob *job, const char *consumer, Error *err)
{
    return renew(q, job, consumer, NULL, err);
}

int queue_begin(Queue *q, const QueueJob *job, const char *waiting, const char *consumer,
                Error *err)
{
    return renew(q, job, waiting, consumer, err);
}

static int finish(Queue *q, const char *function, const QueueJob *job, const char *consumer,
                  const void *result, size_t len, Error *err)
{
    int bury = !strcmp(function, "bury");
    Leased l;
    queue_key(q, l.job, "j", job->key);
    queue_key(q, l.out, "out", NULL);
    queue_key(q, l.stat, "stat", NULL);
    queue_key(q, l.dead, "dead", NULL);
    queue_function(q, &l.command, l.function, function, bury ? 5 : 4);
    command_text(&l.command, job->stream);
    command_text(&l.command, l.job);
    command_text(&l.command, l.out);
    command_text(&l.command, l.stat);
    if (bury) command_text(&l.command, l.dead);
    leased_arguments(&l, job, consumer);
    command_text(&l.command, queue_job_class(q, job));
    command_text(&l.command, job->key);
    command_bytes(&l.command, result, len);
    command_int(&l.command, q->result_ttl_s);
    return leased_call(q, &l, err);
}

int queue_complete(Queue *q, const QueueJob *job, const char *consumer, const void *result,
                   size_t len, Error *err)
{
    return finish(q, "complete", job, consumer, result, len, err);
}

int queue_bury(Queue *q, const QueueJob *job, const char *consumer, const void *result, size_t len,
               Error *err)
{
    return finish(q, "bury", job, consumer, result, len, err);
}

static int put_back(Queue *q, const QueueJob *job, const char *consumer, int counted, Error *err)
{
    Leased l;
    queue_function(q, &l.command, l.function, "hand_back", 1);
    command_text(&l.command, job->stream);
    leased_arguments(&l, job, consumer);
    command_int(&l.command, counted);
    return leased_call(q, &l, err);
}

int queue_hand_back(Queue *q, const QueueJob *job, const char *consumer, Error *err)
{
    return put_back(q, job, consumer, 0, err);
}

int queue_give_up(Queue *q, const QueueJob *job, const char *consumer, Error *err)
{
    return put_back(q, job, consumer, 1, err);
}

int queue_announce(Queue *q, const char *device_class, const char *uuid, Error *err)
{
    QueueKey devices;
    QueueFunction name;
    Command c;
    long long added;
    queue_key(q, devices, "d", device_class);
    queue_function(q, &c, name, "announce", 1);
    command_text(&c, devices);
    command_text(&c, uuid);
    command_int(&c, (long long)(q->lease_s * 1000));
    return queue_call_int(q, &c, &added, err);
}

int queue_others(Queue *q, const char *device_class, const char *uuid, long *others,
                 double *served_s, Error *err)
{
    QueueKey devices;
    QueueFunction name;
    Command c;
    redisReply *r = NULL;
    queue_key(q, devices, "d", device_class);
    queue_function(q, &c, name, "others", 1);
    command_text(&c, devices);
    command_text(&c, uuid);
    if (queue_exchange(q, &c, 1, &r, 0, EXCHANGE_RETRY, err)) return -1;
    int ok = r->type == REDIS_REPLY_ARRAY && r->elements == 2;
    *others = ok ? (long)r->element[0]->integer : 0;
    *served_s = ok ? (double)r->element[1]->integer / 1000 : 0;
    freeReplyObject(r);
    return ok ? 0
              : error_set(err, ERROR_SERVER,
                          "the queue's server does not say which devices serve %s", device_class);
}

int queue_release(Queue *q, const char *consumer, int counted, long *n, Error *err)
{
    QueueKey classes;
    char prefix[QUEUE_KEY_BYTES];
    QueueFunction name;
    Command c;
    long long released = 0;
    queue_key(q, classes, "classes", NULL);
    queue_key(q, prefix, "", NULL);
    queue_function(q, &c, name, "release", 1);
    command_text(&c, classes);
    command_text(&c, prefix);
    command_text(&c, consumer ? consumer : "");
    command_int(&c, counted);
    if (queue_call_int(q, &c, &released, err)) return -1;
    *n = (long)released;
    return 0;
}
