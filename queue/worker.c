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

enum { STREAMS_MAX = 2 * QUEUE_MAX_CLASSES, BRIEF_S = 60, TURN_MS = 2000 };

/* The streams that a worker reads, the urgent ones first. */
typedef struct {
    int n;
    QueueKey names[STREAMS_MAX];
} Streams;

static void streams_of(const Queue *q, const QueueConsumer *c, Streams *s)
{
    int n = c->n_classes;
    s->n = 2 * n;
    for (int i = 0; i < n; i++) {
        queue_key(q, s->names[i], "u", c->classes[i]);
        queue_key(q, s->names[n + i], "s", c->classes[i]);
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
    free(job->consumer);
    buffer_release(&job->body);
    *job = (QueueJob){0};
}

/* The parts of an entry, as the server hands it out. */
typedef struct {
    const char *stream; /* NULL: none that was asked for */
    const redisReply *id, *key, *body;
    int delivery;
} Entry;

/* Returns 1 when the entry is no job: job then has neither key nor body. */
static int job_fill(QueueJob *job, const Entry *e, const char *consumer, Error *err)
{
    const char *key = reply_text(e->key);
    if (!e->stream || !*reply_text(e->id))
        return error_set(err, ERROR_SERVER,
                         "the queue's server handed out something that is no entry of a stream "
                         "that was asked for");
    job->stream = memory_strdup(e->stream);
    job->id = memory_strdup(e->id->str);
    job->consumer = memory_strdup(consumer);
    job->delivery = e->delivery;
    if (!queue_text_ok(key, QUEUE_MAX_KEY) || strlen(key) != e->key->len ||
        e->body->type != REDIS_REPLY_STRING || e->body->len > QUEUE_MAX_BODY)
        return 1;
    job->key = memory_strdup(key);
    buffer_init(&job->body, (size_t)e->body->len + 1);
    buffer_append(&job->body, e->body->str, (size_t)e->body->len);
    return 0;
}

/* The part of the stream's name after "{NAME.VERSION}:s:" or ":u:". */
const char *queue_job_class(const Queue *q, const QueueJob *job)
{
    return job->stream + strlen(q->prefix) + strlen("s:");
}

/* ---- a leased job ---- */

/* Start a call on a leased job. The caller adds the arguments behind these. */
static void leased_function(const Queue *q, Command *c, const char *function, const QueueJob *job)
{
    queue_function(q, c, function);
    command_texts(c, job->stream, job->id, job->consumer, NULL);
    command_int(c, job->delivery);
}

static int leased_call(Queue *q, const Command *c, Error *err)
{
    long long held = 0;
    return queue_call_int(q, c, &held, err) ? -1 : held == 1;
}

int queue_renew(Queue *q, const QueueJob *job, Error *err)
{
    Command c;
    leased_function(q, &c, "renew", job);
    return leased_call(q, &c, err);
}

int queue_begin(Queue *q, QueueJob *job, const char *name, Error *err)
{
    Command c;
    leased_function(q, &c, "renew", job);
    command_text(&c, name);
    int held = leased_call(q, &c, err);
    if (held > 0) {
        free(job->consumer);
        job->consumer = memory_strdup(name);
    }
    return held;
}

int queue_complete(Queue *q, const QueueJob *job, const void *result, size_t len, Error *err)
{
    Command c;
    const int brief = job->brief && (!q->result_ttl_s || q->result_ttl_s > BRIEF_S);
    leased_function(q, &c, "complete", job);
    command_text(&c, job->key);
    command_bytes(&c, result, len);
    command_int(&c, brief ? BRIEF_S : q->result_ttl_s);
    return leased_call(q, &c, err);
}

int queue_bury(Queue *q, const QueueJob *job, const void *result, size_t len, Error *err)
{
    Command c;
    leased_function(q, &c, "bury", job);
    command_text(&c, job->key);
    command_bytes(&c, result, len);
    return leased_call(q, &c, err);
}

static int put_back(Queue *q, const QueueJob *job, int counted, Error *err)
{
    Command c;
    leased_function(q, &c, "hand_back", job);
    command_int(&c, counted);
    return leased_call(q, &c, err);
}

int queue_hand_back(Queue *q, const QueueJob *job, Error *err)
{
    return put_back(q, job, 0, err);
}

int queue_give_up(Queue *q, const QueueJob *job, Error *err)
{
    return put_back(q, job, 1, err);
}

/* ---- take ---- */

typedef enum { TAKE_ERROR = -1, TAKE_NONE, TAKE_JOB, TAKE_PAUSED, TAKE_LOST } TakeResult;

/* Discard an entry that is no job. The next take goes on with another one. */
static TakeResult discard(Queue *q, QueueJob *job, Error *err)
{
    Command c;
    leased_function(q, &c, "discard", job);
    int held = leased_call(q, &c, err);
    if (held >= 0)
        log_warn("the queue of %s held an entry that is no job", queue_job_class(q, job));
    queue_job_release(job);
    return held < 0 ? TAKE_ERROR : TAKE_LOST;
}

/* A taker: a consumer and the streams that it reads. */
typedef struct {
    Queue *q;
    const QueueConsumer *consumer;
    Streams streams;
} Taker;

/* Take without blocking: first own deliveries whose reply was lost, then expired leases, then new
 * jobs. */
static TakeResult take_now(Taker *t, QueueJob *job, Error *err)
{
    Queue *q = t->q;
    const Streams *s = &t->streams;
    unsigned generation = connection_generation(q->connection);
    double now = clock_seconds();
    int scan = now >= q->next_scan, fresh = q->taken != generation;
    if (scan) q->next_scan = now + fmin(q->lease_s / 4, 1);
    Command c;
    queue_function(q, &c, "take");
    command_text(&c, t->consumer->name);
    command_int(&c, queue_lease_ms(q));
    command_texts(&c, scan || fresh ? "1" : "0", fresh ? "1" : "0",
                  t->consumer->kin ? t->consumer->kin : "", NULL);
    for (int i = 0; i < s->n; i++) command_text(&c, s->names[i]);
    redisReply *r = NULL;
    int rc = queue_exchange(q, &(Exchange){&c, &r, 1, EXCHANGE_ONCE}, err);
    if (rc) return rc < 0 ? TAKE_ERROR : TAKE_LOST;
    q->taken = generation;
    TakeResult result = TAKE_NONE;
    if (r->type == REDIS_REPLY_STRING) result = TAKE_PAUSED;
    if (r->type == REDIS_REPLY_ARRAY && r->elements == 5) {
        long long index = r->element[0]->integer;
        const Entry e = {index < 0 || index >= s->n ? NULL : s->names[index], r->element[1],
                         r->element[2], r->element[3], (int)r->element[4]->integer};
        rc = job_fill(job, &e, t->consumer->name, err);
        result = rc < 0 ? TAKE_ERROR : rc ? discard(q, job, err) : TAKE_JOB;
    }
    freeReplyObject(r);
    return result;
}

/* Read a stream's part of an XREADGROUP reply. Returns as job_fill. */
static int read_entry(const Taker *t, const redisReply *part, QueueJob *job, Error *err)
{
    static const redisReply nothing = {.type = REDIS_REPLY_NIL};
    const redisReply *e = reply_at(reply_at(part, 1), 0), *f = reply_at(e, 1);
    int is_job = f->type == REDIS_REPLY_ARRAY && f->elements == 4 &&
                 !strcmp(reply_text(reply_at(f, 0)), "key") &&
                 !strcmp(reply_text(reply_at(f, 2)), "body");
    const Entry entry = {asked_stream(&t->streams, reply_text(reply_at(part, 0))), reply_at(e, 0),
                         is_job ? reply_at(f, 1) : &nothing, reply_at(f, 3), 1};
    return job_fill(job, &entry, t->consumer->name, err);
}

/* Read an XREADGROUP reply. The first job goes to `job`. COUNT holds per stream, so there may be
 * more: hand them back. */
static TakeResult read_jobs(Taker *t, const redisReply *r, QueueJob *job, Error *err)
{
    TakeResult result = TAKE_NONE;
    if (r->type != REDIS_REPLY_ARRAY)
        return result; /* nil, or NOGROUP or UNBLOCKED: the stream was deleted */
    for (size_t i = 0; i < r->elements; i++) {
        QueueJob next = {0};
        int rc = read_entry(t, r->element[i], &next, err);
        if (rc < 0) return TAKE_ERROR;
        if (rc > 0) {
            if (discard(t->q, &next, err) == TAKE_ERROR) return TAKE_ERROR;
        } else if (result == TAKE_NONE) {
            *job = next;
            result = TAKE_JOB;
        } else {
            rc = queue_hand_back(t->q, &next, err);
            queue_job_release(&next);
            if (rc < 0) return TAKE_ERROR;
        }
    }
    return result;
}

/* Block for a new job. When a pause or a stop came meanwhile, hand it back. */
static TakeResult take_blocking(Taker *t, double wait_s, QueueJob *job, Error *err)
{
    Queue *q = t->q;
    const Streams *s = &t->streams;
    QueueKey pause;
    Command c[2] = {{0}, {0}};
    queue_key(q, pause, "pause", NULL);
    command_texts(&c[0], "XREADGROUP", "GROUP", QUEUE_GROUP, t->consumer->name, "COUNT", "1",
                  "BLOCK", NULL);
    command_int(&c[0], (long long)(wait_s * 1000) + 1);
    command_text(&c[0], "STREAMS");
    for (int i = 0; i < s->n; i++) command_text(&c[0], s->names[i]);
    for (int i = 0; i < s->n; i++) command_text(&c[0], ">");
    command_texts(&c[1], "EXISTS", pause, NULL);
    redisReply *r[2];
    int rc = queue_exchange(q, &(Exchange){c, r, 2, EXCHANGE_TAKE, wait_s}, err);
    if (rc) return rc < 0 ? TAKE_ERROR : TAKE_LOST;
    TakeResult result = read_jobs(t, r[0], job, err);
    int paused = r[1]->type == REDIS_REPLY_INTEGER && r[1]->integer;
    connection_free_replies(r, 2);
    if (result == TAKE_JOB && (paused || stop_requested())) {
        result = queue_hand_back(q, job, err) < 0 ? TAKE_ERROR : TAKE_NONE;
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

static int bury_exhausted(Taker *t, QueueJob *job, Error *err)
{
    Buffer result;
    buffer_init(&result, QUEUE_MAX_BODY);
    int rc = t->consumer->dead_result(t->consumer->ctx, job, &result)
                 ? error_set(err, ERROR_INVALID,
                             "job %s was given up and its result could not be made", job->key)
                 : queue_bury(t->q, job, result.data, result.len, err);
    buffer_release(&result);
    queue_job_release(job);
    return rc < 0 ? -1 : 0;
}

int queue_take(Queue *q, const QueueConsumer *c, double timeout_s, QueueJob *job, Error *err)
{
    if (c->n_classes < 1 || c->n_classes > QUEUE_MAX_CLASSES)
        return error_set(err, ERROR_INVALID, "a worker serves 1 to %d device classes",
                         QUEUE_MAX_CLASSES);
    double deadline = clock_seconds() + fmin(timeout_s, 2);
    Taker t = {.q = q, .consumer = c};
    streams_of(q, c, &t.streams);
    *job = (QueueJob){0};
    for (int blocked = 0;;) {
        TakeResult result = take_now(&t, job, err);
        double left = deadline - clock_seconds();
        if (result == TAKE_PAUSED) {
            sleep_until(deadline);
            return 0;
        }
        if (result == TAKE_NONE && !blocked && left > 0 && !stop_requested()) {
            result = take_blocking(&t, left, job, err);
            blocked = 1;
        }
        if (result == TAKE_ERROR) return -1;
        if (result == TAKE_JOB && job->delivery <= QUEUE_MAX_DELIVERIES) return 1;
        if (result == TAKE_JOB && bury_exhausted(&t, job, err)) return -1;
        if (stop_requested() || clock_seconds() >= deadline) return 0;
    }
}

int queue_turn(Queue *q, const QueueConsumer *c, int on, Error *err)
{
    Command command;
    long long mine = 0;
    queue_function(q, &command, "turn");
    command_texts(&command, c->classes[0], c->name, NULL);
    command_int(&command, on ? TURN_MS : 0);
    return queue_call_int(q, &command, &mine, err) ? -1 : mine == 1;
}

/* ---- devices and leases ---- */

int queue_announce(Queue *q, const char *device_class, const char *uuid, Error *err)
{
    Command c;
    long long added;
    queue_function(q, &c, "announce");
    command_texts(&c, device_class, uuid, NULL);
    command_int(&c, queue_lease_ms(q));
    return queue_call_int(q, &c, &added, err);
}

int queue_service(Queue *q, const char *device_class, const char *uuid, QueueService *out,
                  Error *err)
{
    Command c;
    redisReply *r = NULL;
    queue_function(q, &c, "others");
    command_texts(&c, device_class, uuid, NULL);
    if (queue_call(q, &c, &r, err)) return -1;
    int ok = r->type == REDIS_REPLY_ARRAY && r->elements == 2;
    if (ok)
        *out = (QueueService){(long)r->element[0]->integer, (double)r->element[1]->integer / 1000};
    freeReplyObject(r);
    if (ok) return 0;
    return error_set(err, ERROR_SERVER, "the queue's server does not say which devices serve %s",
                     device_class);
}

int queue_release(Queue *q, const char *consumer, int counted, long *n, Error *err)
{
    Command c;
    long long released;
    queue_function(q, &c, "release");
    command_text(&c, consumer ? consumer : "");
    command_int(&c, counted);
    if (queue_call_int(q, &c, &released, err)) return -1;
    *n = (long)released;
    return 0;
}
