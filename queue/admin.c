/* Administration of a queue: status, devices out of service, retry, pause, purge. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sort.h"
#include "queue/store.h"

int queue_status(Queue *q, QueueStatus *out, int max, Error *err)
{
    Command c;
    int n = 0;
    redisReply *r = NULL;
    queue_function(q, &c, "status");
    if (queue_call(q, &c, &r, err)) return -1;
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements && n < max; i++) {
        const redisReply *e = r->element[i];
        if (e->type != REDIS_REPLY_ARRAY || e->elements != 7) continue;
        QueueStatus *s = &out[n++];
        snprintf(s->device_class, sizeof s->device_class, "%s", reply_text(e->element[0]));
        s->waiting = (long)e->element[1]->integer;
        s->leased = (long)e->element[2]->integer;
        s->done = (long)e->element[3]->integer;
        s->dead = (long)e->element[4]->integer;
        s->oldest_s = (double)e->element[5]->integer / 1000;
        s->malformed = (long)e->element[6]->integer;
    }
    freeReplyObject(r);
    return n;
}

int queue_quarantine(Queue *q, const char *where, const char *device_class, const char *reason,
                     Error *err)
{
    char value[800];
    QueueKey sick;
    Command c = {0};
    queue_key(q, sick, "sick", NULL);
    snprintf(value, sizeof value, "%s\n%.3f\n%s", device_class, clock_unix(), reason);
    command_texts(&c, "HSET", sick, where, value, NULL);
    return queue_do(q, &c, err);
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
    QueueSick s = {.at = since};
    QueueKey sick;
    Command get = {0}, remove = {0};
    redisReply *r = NULL;
    queue_key(q, sick, "sick", NULL);
    command_texts(&get, "HGET", sick, where, NULL);
    command_texts(&remove, "HDEL", sick, where, NULL);
    if (queue_call(q, &get, &r, err)) return -1;
    if (r->type == REDIS_REPLY_STRING) read_sick(where, r->str, &s);
    freeReplyObject(r);
    return s.at >= since ? 0 : queue_do(q, &remove, err);
}

/* The text or the number that follows a field's name in a reply of XINFO. */
static const redisReply *info_field(const redisReply *r, const char *name)
{
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements; i += 2)
        if (!strcmp(reply_text(r->element[i]), name)) return r->element[i + 1];
    return NULL;
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
                  Error *err)
{
    int n = 0;
    for (int urgent = 0; urgent < 2; urgent++) {
        QueueKey stream;
        Command c = {0};
        redisReply *r = NULL;
        Error none;
        queue_key(q, stream, urgent ? "u" : "s", device_class);
        command_texts(&c, "XINFO", "CONSUMERS", stream, QUEUE_GROUP, NULL);
        /* A stream that no worker has read yet is not there. */
        if (queue_call(q, &c, &r, &none)) {
            if (none.code == ERROR_NOT_FOUND) continue;
            return error_set(err, none.code, "%s", none.text);
        }
        for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
            add_worker(r->element[i], within_s, out, max, &n);
        freeReplyObject(r);
    }
    qsort(out, (size_t)n, sizeof *out, sort_by_name);
    return n;
}

int queue_quarantined(Queue *q, QueueSick *out, int max, Error *err)
{
    int n = 0;
    QueueKey sick;
    Command c = {0};
    redisReply *r = NULL;
    queue_key(q, sick, "sick", NULL);
    command_texts(&c, "HGETALL", sick, NULL);
    if (queue_call(q, &c, &r, err)) return -1;
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements && n < max; i += 2)
        read_sick(reply_text(r->element[i]), reply_text(r->element[i + 1]), &out[n++]);
    freeReplyObject(r);
    qsort(out, (size_t)n, sizeof *out, sort_by_name);
    return n;
}

int queue_retry(Queue *q, long *revived, Error *err)
{
    enum { BATCH = 100 }; /* jobs a call: a script blocks the server */
    *revived = 0;
    for (long long n = 1; n > 0; *revived += (long)n) {
        Command c;
        queue_function(q, &c, "retry");
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
    command_texts(&c, on ? "SET" : "DEL", pause, on ? "1" : NULL, NULL);
    return queue_do(q, &c, err);
}

/* Unlink one page of a SCAN. `cursor` receives the next cursor. */
static int purge_page(Queue *q, const char *pattern, char cursor[32], Error *err)
{
    Command scan = {0};
    redisReply *r = NULL;
    command_texts(&scan, "SCAN", cursor, "MATCH", pattern, "COUNT", "1000", NULL);
    if (queue_call(q, &scan, &r, err)) return -1;
    const redisReply *page = reply_at(r, 1);
    int failed = page->type != REDIS_REPLY_ARRAY || !*reply_text(reply_at(r, 0));
    if (failed)
        error_set(err, ERROR_SERVER,
                  "the queue's server answered SCAN with something else than a page");
    else
        snprintf(cursor, 32, "%s", r->element[0]->str);
    for (size_t at = 0; !failed && at < page->elements;) {
        Command unlink = {0};
        command_text(&unlink, "UNLINK");
        for (; at < page->elements && unlink.argc < COMMAND_MAX_ARGS; at++)
            command_bytes(&unlink, page->element[at]->str, page->element[at]->len);
        failed = queue_do(q, &unlink, err);
    }
    freeReplyObject(r);
    return failed ? -1 : 0;
}

int queue_purge(Queue *q, Error *err)
{
    char pattern[sizeof q->prefix + 1], cursor[32] = "0";
    snprintf(pattern, sizeof pattern, "%s*", q->prefix);
    do {
        if (purge_page(q, pattern, cursor, err)) return -1;
    } while (strcmp(cursor, "0"));
    return 0;
}
