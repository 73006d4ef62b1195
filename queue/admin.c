/* What people do with a queue: look, revive, pause, empty. */
#include <stdio.h>
#include <string.h>

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
        if (e->type != REDIS_REPLY_ARRAY || e->elements != 6) continue;
        QueueStatus *s = &out[(*n)++];
        snprintf(s->device_class, sizeof s->device_class, "%s", e->element[0]->str);
        s->waiting = (long)e->element[1]->integer;
        s->leased = (long)e->element[2]->integer;
        s->done = (long)e->element[3]->integer;
        s->dead = (long)e->element[4]->integer;
        s->oldest_s = (double)e->element[5]->integer / 1000;
    }
    freeReplyObject(r);
    return 0;
}

int queue_retry(Queue *q, long *revived, Error *err)
{
    enum { BATCH = 100 }; /* keeps each script short */
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

/* Unlink one page of a SCAN; the next cursor goes into `cursor`. */
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
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 2) {
        freeReplyObject(r);
        return error_set(err, "the queue's server answered SCAN with something else than a page");
    }
    snprintf(cursor, 32, "%s", r->element[0]->str);
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
