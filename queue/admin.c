/* Administration of a queue: status, devices out of service, retry, pause, purge. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/store.h"

int queue_status(Queue *q, QueueStatus *out, int max, int *n, Error *err)
{
    QueueKey classes, stat, prefix;
    QueueFunction name;
    Command c;
    queue_key(q, classes, "classes", NULL);
    queue_key(q, stat, "stat", NULL);
    queue_key(q, prefix, "", NULL);
    queue_function(q, &c, name, "status", 2);
    command_text(&c, classes);
    command_text(&c, stat);
    command_text(&c, prefix);
    redisReply *r = NULL;
    if (queue_exchange(q, &c, 1, &r, 0, EXCHANGE_RETRY, err)) return -1;
    *n = 0;
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements && *n < max; i++) {
        const redisReply *e = r->element[i];
        if (e->type != REDIS_REPLY_ARRAY || e->elements != 7) continue;
        QueueStatus *s = &out[(*n)++];
        snprintf(s->device_class, sizeof s->device_class, "%s", reply_text(e->element[0]));
        s->waiting = (long)e->element[1]->integer;
        s->leased = (long)e->element[2]->integer;
        s->done = (long)e->element[3]->integer;
        s->dead = (long)e->element[4]->integer;
        s->oldest_s = (double)e->element[5]->integer / 1000;
        s->malformed = (long)e->element[6]->integer;
    }
    freeReplyObject(r);
    return 0;
}

static int sick_command(Queue *q, const char *verb, const char *where, const char *value,
                        redisReply **r, Error *err)
{
    QueueKey sick;
    Command c = {0};
    queue_key(q, sick, "sick", NULL);
    command_text(&c, verb);
    command_text(&c, sick);
    if (where) command_text(&c, where);
    if (value) command_text(&c, value);
    return queue_exchange(q, &c, 1, r, 0, EXCHANGE_RETRY, err);
}

int queue_quarantine(Queue *q, const char *where, const char *device_class, const char *reason,
                     Error *err)
{
    char value[800];
    redisReply *r = NULL;
    snprintf(value, sizeof value, "%s\n%.3f\n%s", device_class, clock_unix(), reason);
    if (sick_command(q, "HSET", where, value, &r, err)) return -1;
    freeReplyObject(r);
    return 0;
}

static void read_sick(const char *where, const char *value, QueueSick *out)
{
    const char *time = strchr(value, '\n'), *reason = time ? strchr(time + 1, '\n') : NULL;
    snprintf(out->where, sizeof out->where, "%s", where);
    snprintf(out->device_class, sizeof out->device_class, "%.*s", reason ? (int)(time - value) : 0,
             value);
    snprintf(out->reason, sizeof out->reason, "%s", reason ? reason + 1 : value);
    out->at = reason ? strtod(time + 1, NULL) : 0;
}

int queue_serves(Queue *q, const char *where, double since, Error *err)
{
    redisReply *r = NULL;
    QueueSick s = {.at = since};
    if (sick_command(q, "HGET", where, NULL, &r, err)) return -1;
    if (r->type == REDIS_REPLY_STRING) read_sick(where, r->str, &s);
    freeReplyObject(r);
    if (s.at >= since) return 0;
    if (sick_command(q, "HDEL", where, NULL, &r, err)) return -1;
    freeReplyObject(r);
    return 0;
}

/* The text or the number that follows a field's name in a reply of XINFO. */
static const redisReply *info_field(const redisReply *r, const char *name)
{
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements; i += 2)
        if (!strcmp(reply_text(r->element[i]), name)) return r->element[i + 1];
    return NULL;
}

static int by_worker(const void *a, const void *b)
{
    return strcmp(((const QueueWorker *)a)->name, ((const QueueWorker *)b)->name);
}

/* A consumer reads two streams; "NAME+N" holds jobs that wait for NAME, and "-" is no one. */
static void add_worker(const redisReply *r, double within_s, QueueWorker *out, int max, int *n)
{
    const redisReply *name = info_field(r, "name"), *pending = info_field(r, "pending"),
                     *idle = info_field(r, "idle");
    if (!name || !pending || !idle) return;
    QueueWorker w = {.leased = (long)pending->integer, .idle_s = (double)idle->integer / 1000};
    snprintf(w.name, sizeof w.name, "%s", reply_text(name));
    if (!strcmp(w.name, "-") || strchr(w.name, '+') || w.idle_s > within_s) return;
    for (int i = 0; i < *n; i++) {
        if (strcmp(out[i].name, w.name)) continue;
        out[i].leased += w.leased;
        if (w.idle_s < out[i].idle_s) out[i].idle_s = w.idle_s;
        return;
    }
    if (*n < max) out[(*n)++] = w;
}

int queue_workers(Queue *q, const char *device_class, double within_s, QueueWorker *out, int max,
                  int *n, Error *err)
{
    *n = 0;
    for (int urgent = 0; urgent < 2; urgent++) {
        QueueKey stream;
        Command c = {0};
        redisReply *r = NULL;
        Error none;
        queue_key(q, stream, urgent ? "u" : "s", device_class);
        command_text(&c, "XINFO");
        command_text(&c, "CONSUMERS");
        command_text(&c, stream);
        command_text(&c, QUEUE_GROUP);
        /* A stream that no worker has read yet is not there. */
        if (queue_exchange(q, &c, 1, &r, 0, EXCHANGE_RETRY, &none)) {
            if (none.code == ERROR_NOT_FOUND) continue;
            return error_set(err, none.code, "%s", none.text);
        }
        for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
            add_worker(r->element[i], within_s, out, max, n);
        freeReplyObject(r);
    }
    qsort(out, (size_t)*n, sizeof *out, by_worker);
    return 0;
}

static int by_where(const void *a, const void *b)
{
    return strcmp(((const QueueSick *)a)->where, ((const QueueSick *)b)->where);
}

int queue_quarantined(Queue *q, QueueSick *out, int max, int *n, Error *err)
{
    redisReply *r = NULL;
    if (sick_command(q, "HGETALL", NULL, NULL, &r, err)) return -1;
    *n = 0;
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements && *n < max; i += 2)
        read_sick(reply_text(r->element[i]), reply_text(r->element[i + 1]), &out[(*n)++]);
    freeReplyObject(r);
    qsort(out, (size_t)*n, sizeof *out, by_where);
    return 0;
}

int queue_retry(Queue *q, long *revived, Error *err)
{
    enum { BATCH = 100 }; /* jobs a call: a script blocks the server */
    QueueKey dead, stat, prefix;
    queue_key(q, dead, "dead", NULL);
    queue_key(q, stat, "stat", NULL);
    queue_key(q, prefix, "", NULL);
    *revived = 0;
    for (long long n = 1; n > 0; *revived += (long)n) {
        QueueFunction name;
        Command c;
        queue_function(q, &c, name, "retry", 2);
        command_text(&c, dead);
        command_text(&c, stat);
        command_text(&c, prefix);
        command_int(&c, BATCH);
        if (queue_call_int(q, &c, &n, err)) return -1;
    }
    return 0;
}

int queue_pause(Queue *q, int on, Error *err)
{
    QueueKey pause;
    Command c = {0};
    queue_key(q, pause, "pause", NULL);
    command_text(&c, on ? "SET" : "DEL");
    command_text(&c, pause);
    if (on) command_text(&c, "1");
    redisReply *r = NULL;
    if (queue_exchange(q, &c, 1, &r, 0, EXCHANGE_RETRY, err)) return -1;
    freeReplyObject(r);
    return 0;
}

/* Unlink one page of a SCAN. `cursor` receives the next cursor. */
static int purge_page(Queue *q, const char *pattern, char cursor[32], Error *err)
{
    Command scan = {0};
    command_text(&scan, "SCAN");
    command_text(&scan, cursor);
    command_text(&scan, "MATCH");
    command_text(&scan, pattern);
    command_text(&scan, "COUNT");
    command_text(&scan, "1000");
    redisReply *r = NULL;
    if (queue_exchange(q, &scan, 1, &r, 0, EXCHANGE_RETRY, err)) return -1;
    if (reply_at(r, 1)->type != REDIS_REPLY_ARRAY || !*reply_text(reply_at(r, 0))) {
        freeReplyObject(r);
        return error_set(err, ERROR_SERVER,
                         "the queue's server answered SCAN with something else than a page");
    }
    snprintf(cursor, 32, "%s", reply_text(r->element[0]));
    const redisReply *page = r->element[1];
    int rc = 0;
    for (size_t at = 0; at < page->elements && !rc;) {
        Command unlink = {0};
        command_text(&unlink, "UNLINK");
        while (at < page->elements && unlink.argc < COMMAND_MAX_ARGS) {
            command_bytes(&unlink, page->element[at]->str, (size_t)page->element[at]->len);
            at++;
        }
        redisReply *gone = NULL;
        rc = queue_exchange(q, &unlink, 1, &gone, 0, EXCHANGE_RETRY, err);
        if (!rc) freeReplyObject(gone);
    }
    freeReplyObject(r);
    return rc;
}

int queue_purge(Queue *q, Error *err)
{
    QueueKey prefix;
    char pattern[QUEUE_KEY_BYTES + 1], cursor[32] = "0";
    queue_key(q, prefix, "", NULL);
    snprintf(pattern, sizeof pattern, "%s*", prefix);
    do {
        if (purge_page(q, pattern, cursor, err)) return -1;
    } while (strcmp(cursor, "0"));
    return 0;
}
