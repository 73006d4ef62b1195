/* The queue's handle and its calls. The library is loaded under the digest of its text, so a server
 * holds the libraries of several program versions side by side. */
#include "queue/store.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/embed.h"
#include "base/log.h"
#include "base/memory.h"
#include "queue/connection.h"

EMBED(queue_lua, "queue/queue.lua")

enum { DAY_S = 24 * 3600, NAME_MAX_BYTES = 64 };

int queue_text_ok(const char *s, size_t max)
{
    size_t n = strlen(s);
    if (!n || n > max) return 0;
    for (size_t i = 0; i < n; i++)
        if (!isprint((unsigned char)s[i])) return 0;
    return 1;
}

void queue_key(const Queue *q, QueueKey out, const char *kind, const char *rest)
{
    snprintf(out, QUEUE_KEY_BYTES, "%s%s%s%s", q->prefix, kind, rest ? ":" : "", rest ? rest : "");
}

void queue_function(const Queue *q, Command *c, const char *function)
{
    *c = (Command){0};
    command_texts(c, "FCALL", q->library, "1", q->prefix, function, NULL);
}

static void library_name(char out[32])
{
    Digest d;
    char hex[DIGEST_HEX];
    digest_of(queue_lua, strlen(queue_lua), &d);
    digest_hex(&d, hex);
    snprintf(out, 32, "quern_%.8s", hex);
}

/* Redis gives these errors the general prefix ERR: only the text tells them apart. */
static int error_says(const redisReply *r, const char *text)
{
    return reply_is_error(r, "ERR") && strstr(r->str, text);
}

static int load_library(Queue *q, Error *err)
{
    Command load = {0};
    redisReply *r = NULL;
    char *code =
        memory_printf("#!lua name=%s\nlocal library = '%s'\n%s", q->library, q->library, queue_lua);
    command_texts(&load, "FUNCTION", "LOAD", code, NULL);
    int failed = connection_exchange(q->connection, &(Exchange){&load, &r, 1}, err);
    free(code);
    if (failed) return -1;
    if (r->type == REDIS_REPLY_ERROR && !error_says(r, "already exists")) {
        const char *hint = error_says(r, "unknown command") ? "; Redis 7.0 or later is needed" : "";
        failed = error_set(err, ERROR_SERVER, "cannot load the queue's functions into %s: %s%s",
                           connection_name(q->connection), r->str, hint);
    }
    if (!failed) q->loaded = connection_generation(q->connection);
    freeReplyObject(r);
    return failed;
}

static int lacks_library(redisReply **replies, int n)
{
    for (int i = 0; i < n; i++)
        if (error_says(replies[i], "Function not found")) return 1;
    return 0;
}

int queue_exchange(Queue *q, const Exchange *x, Error *err)
{
    for (int tries = 0;; tries++) {
        if (!q->loaded && load_library(q, err)) return -1;
        int rc = connection_exchange(q->connection, x, err);
        if (rc) return rc;
        if (!lacks_library(x->replies, x->n) || tries == 2) break;
        connection_free_replies(x->replies, x->n);
        q->loaded = 0; /* the server was emptied or replaced */
    }
    for (int i = 0; i < x->n; i++) {
        const redisReply *r = x->replies[i];
        if (r->type != REDIS_REPLY_ERROR || reply_is_error(r, "NOGROUP") ||
            reply_is_error(r, "UNBLOCKED"))
            continue;
        ErrorCode code = error_says(r, "no such key") ? ERROR_NOT_FOUND : ERROR_SERVER;
        error_set(err, code, "the queue's server %s refuses %s: %s", connection_name(q->connection),
                  x->commands[i].argv[0], r->str);
        connection_free_replies(x->replies, x->n);
        return -1;
    }
    return 0;
}

int queue_call(Queue *q, const Command *c, redisReply **reply, Error *err)
{
    return queue_exchange(q, &(Exchange){c, reply, 1}, err);
}

int queue_do(Queue *q, const Command *c, Error *err)
{
    redisReply *r = NULL;
    if (queue_call(q, c, &r, err)) return -1;
    freeReplyObject(r);
    return 0;
}

int queue_call_int(Queue *q, const Command *c, long long *out, Error *err)
{
    redisReply *r = NULL;
    if (queue_call(q, c, &r, err)) return -1;
    int ok = r->type == REDIS_REPLY_INTEGER;
    if (ok) *out = r->integer;
    freeReplyObject(r);
    if (ok) return 0;
    return error_set(err, ERROR_SERVER, "the queue's server answered %s without a number",
                     c->argv[4]);
}

/* Start queue_wait after the last key that has finished. */
static int find_outbox_end(Queue *q, Error *err)
{
    QueueKey out;
    queue_key(q, out, "out", NULL);
    Command c = {0};
    redisReply *r = NULL;
    command_texts(&c, "XREVRANGE", out, "+", "-", "COUNT", "1", NULL);
    if (queue_call(q, &c, &r, err)) return -1;
    const char *id = reply_text(reply_at(reply_at(r, 0), 0));
    snprintf(q->out_last, sizeof q->out_last, "%s", *id ? id : "0-0");
    freeReplyObject(r);
    return 0;
}

/* A server of the network whose settings may lose jobs is reported once a day, to the first client.
 * One that hides its settings is believed. */
static void check_settings(Queue *q)
{
    static const struct {
        const char *name, *good, *sentence;
    } settings[] = {
        {"appendonly", "yes",
         "the Redis server forgets the queue when it ends: set `appendonly yes` and `appendfsync "
         "always`"},
        {"maxmemory-policy", "noeviction",
         "the Redis server may drop jobs when its memory is full: set `maxmemory-policy "
         "noeviction`"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        Command get = {0}, mark = {0};
        redisReply *r;
        QueueKey key;
        command_texts(&get, "CONFIG", "GET", settings[i].name, NULL);
        if (!(r = connection_ask(q->connection, &get))) return;
        const char *value = reply_text(reply_at(r, 1));
        int bad = *value && strcmp(value, settings[i].good) != 0;
        freeReplyObject(r);
        if (!bad) continue;
        queue_key(q, key, "warned", settings[i].name);
        command_texts(&mark, "SET", key, "1", "NX", "EX", NULL);
        command_int(&mark, DAY_S);
        if (!(r = connection_ask(q->connection, &mark))) return;
        if (r->type == REDIS_REPLY_STATUS) log_warn("%s", settings[i].sentence);
        freeReplyObject(r);
    }
}

static int open_checked(Queue *q, const char *url, const char *name, const char *version,
                        Error *err)
{
    if (!url || !*url) url = getenv("QUERN_REDIS");
    if (!url || !*url)
        return error_set(err, ERROR_USAGE,
                         "there is no queue: QUERN_REDIS names no server; put `quern-fleet run --` "
                         "in front of the command to have a private one");
    if (!name || !*name) name = "quern";
    if (!queue_text_ok(name, NAME_MAX_BYTES) || strpbrk(name, "{}*?[]\\ "))
        return error_set(err, ERROR_USAGE,
                         "a queue's name is 1 to 64 printable characters without blanks and "
                         "{}*?[]\\, found '%s'",
                         name);
    snprintf(q->prefix, sizeof q->prefix, "{%s.%s}:", name, version);
    QueueLimits limits;
    if (queue_limits_read(url, &limits, err)) return -1;
    q->lease_s = limits.lease_s;
    q->result_ttl_s = (long)limits.results_s;
    q->limit = (long)limits.jobs;
    library_name(q->library);
    if (connection_open(url, &q->connection, err)) return -1;
    if (strncmp(url, "unix:", 5) != 0) check_settings(q);
    return find_outbox_end(q, err);
}

int queue_open(const char *url, const char *name, const char *version, Queue **out, Error *err)
{
    Queue *q = memory_alloc(sizeof *q);
    if (open_checked(q, url, name, version, err)) {
        queue_close(q);
        return -1;
    }
    *out = q;
    return 0;
}

void queue_close(Queue *q)
{
    if (!q) return;
    connection_close(q->connection);
    free(q);
}

void queue_set_patience(Queue *q, double seconds)
{
    connection_set_patience(q->connection, seconds);
}

double queue_renew_interval(const Queue *q)
{
    return q->lease_s / 3;
}

long long queue_lease_ms(const Queue *q)
{
    return (long long)(q->lease_s * 1000);
}
