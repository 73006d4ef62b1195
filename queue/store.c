/* The queue's handle and its calls. The library is loaded under the digest of its text, so a server
 * holds the libraries of several program versions side by side. */
#include "queue/store.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/memory.h"
#include "queue/limits.h"
#include "queue/queue_lua.h"

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
    snprintf(out, QUEUE_KEY_BYTES, "{%s}:%s%s%s", q->name, kind, rest ? ":" : "", rest ? rest : "");
}

void queue_function(const Queue *q, Command *c, QueueFunction name, const char *function,
                    int n_keys)
{
    snprintf(name, sizeof(QueueFunction), "%s_%s", q->library, function);
    *c = (Command){0};
    command_text(c, "FCALL");
    command_text(c, name);
    command_int(c, n_keys);
}

static void library_name(char out[32])
{
    Digest d;
    char hex[DIGEST_HEX];
    digest_of(queue_library, sizeof queue_library - 1, &d);
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
    Buffer code;
    buffer_init(&code, 64 * 1024);
    buffer_printf(&code, "#!lua name=%s\n", q->library);
    for (const char *p = queue_library, *hit; *p;
         p = hit ? hit + strlen("PREFIX") : p + strlen(p)) {
        hit = strstr(p, "PREFIX");
        buffer_append(&code, p, hit ? (size_t)(hit - p) : strlen(p));
        if (hit) buffer_puts(&code, q->library);
    }
    Command load = {0};
    command_text(&load, "FUNCTION");
    command_text(&load, "LOAD");
    command_bytes(&load, code.data, code.len);
    redisReply *r = NULL;
    int rc = connection_exchange(q->connection, &load, 1, &r, 0, EXCHANGE_RETRY, err);
    if (!rc && r->type == REDIS_REPLY_ERROR && !error_says(r, "already exists")) {
        const char *hint = error_says(r, "unknown command") ? "; Redis 7.0 or later is needed" : "";
        rc = error_set(err, ERROR_SERVER, "cannot load the queue's functions into %s: %s%s",
                       connection_name(q->connection), r->str, hint);
    }
    if (!rc) q->loaded = connection_generation(q->connection);
    connection_free_replies(&r, rc ? 0 : 1);
    buffer_release(&code);
    return rc;
}

static int lacks_library(redisReply **replies, int n)
{
    for (int i = 0; i < n; i++)
        if (error_says(replies[i], "Function not found")) return 1;
    return 0;
}

int queue_exchange(Queue *q, const Command *commands, int n, redisReply **replies, double block_s,
                   ExchangeMode mode, Error *err)
{
    for (int tries = 0;; tries++) {
        if (!q->loaded && load_library(q, err)) return -1;
        int rc = connection_exchange(q->connection, commands, n, replies, block_s, mode, err);
        if (rc) return rc;
        if (!lacks_library(replies, n) || tries == 2) break;
        connection_free_replies(replies, n);
        q->loaded = 0; /* the server was emptied or replaced */
    }
    for (int i = 0; i < n; i++) {
        const redisReply *r = replies[i];
        if (r->type != REDIS_REPLY_ERROR || reply_is_error(r, "NOGROUP") ||
            reply_is_error(r, "UNBLOCKED"))
            continue;
        ErrorCode code = error_says(r, "no such key") ? ERROR_NOT_FOUND : ERROR_SERVER;
        error_set(err, code, "the queue's server %s refuses %s: %s", connection_name(q->connection),
                  commands[i].argv[0], r->str);
        connection_free_replies(replies, n);
        return -1;
    }
    return 0;
}

int queue_call_int(Queue *q, const Command *c, long long *out, Error *err)
{
    redisReply *r = NULL;
    if (queue_exchange(q, c, 1, &r, 0, EXCHANGE_RETRY, err)) return -1;
    int ok = r->type == REDIS_REPLY_INTEGER;
    if (ok)
        *out = r->integer;
    else
        error_set(err, ERROR_SERVER, "the queue's server answered %s without a number", c->argv[1]);
    freeReplyObject(r);
    return ok ? 0 : -1;
}

/* Start queue_wait after the last key that has finished. */
static int find_outbox_end(Queue *q, Error *err)
{
    QueueKey out;
    queue_key(q, out, "out", NULL);
    Command c = {0};
    command_text(&c, "XREVRANGE");
    command_text(&c, out);
    command_text(&c, "+");
    command_text(&c, "-");
    command_text(&c, "COUNT");
    command_text(&c, "1");
    redisReply *r = NULL;
    if (queue_exchange(q, &c, 1, &r, 0, EXCHANGE_RETRY, err)) return -1;
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
        redisReply *r = NULL;
        QueueKey key;
        command_text(&get, "CONFIG");
        command_text(&get, "GET");
        command_text(&get, settings[i].name);
        if (connection_exchange(q->connection, &get, 1, &r, 0, EXCHANGE_ONCE, NULL)) return;
        const char *value = reply_text(reply_at(r, 1));
        int bad = *value && strcmp(value, settings[i].good) != 0;
        connection_free_replies(&r, 1);
        if (!bad) continue;
        queue_key(q, key, "warned", settings[i].name);
        command_text(&mark, "SET");
        command_text(&mark, key);
        command_text(&mark, "1");
        command_text(&mark, "NX");
        command_text(&mark, "EX");
        command_int(&mark, DAY_S);
        if (connection_exchange(q->connection, &mark, 1, &r, 0, EXCHANGE_ONCE, NULL)) return;
        if (r->type == REDIS_REPLY_STATUS) log_warn("%s", settings[i].sentence);
        connection_free_replies(&r, 1);
    }
}

static int open_checked(Queue *q, const char *url, const char *name, const char *version,
                        Error *err)
{
    if (!url || !*url) url = getenv("QUERN_REDIS");
    if (!url || !*url)
        return error_set(err, ERROR_USAGE,
                         "there is no queue: QUERN_REDIS names no server; put `quern-fleet "
                         "run --` in front of the "
                         "command to have a private one");
    if (!name || !*name) name = "quern";
    if (!queue_text_ok(name, NAME_MAX_BYTES) || strpbrk(name, "{}*?[]\\ "))
        return error_set(err, ERROR_USAGE,
                         "a queue's name is 1 to 64 printable characters without blanks and "
                         "{}*?[]\\, found '%s'",
                         name);
    snprintf(q->name, sizeof q->name, "%s.%s", name, version);
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
