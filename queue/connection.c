/* A connection on hiredis. After any failure the context is dropped, so that a late reply is never
 * read as the reply to another command. */
#include "queue/connection.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/environment.h"
#include "base/memory.h"
#include "base/stop.h"
#include "queue/url.h"

/* REPLY_S: a server that does not reply for this long, beyond the block time, counts as lost.
 * STOPPING_S: limit of all retries after a stop signal. */
enum { REPLY_S = 10, CONNECT_S = 5, OPEN_S = 20, STOPPING_S = 5 };

struct Connection {
    QueueUrl url;
    redisContext *context; /* NULL: not connected */
    long long client_id;   /* for CLIENT UNBLOCK */
    unsigned generation;
    double retry_s;
    int refused; /* the server refused the greeting: a retry does not help */
};

void command_bytes(Command *c, const void *data, size_t len)
{
    if (c->argc == COMMAND_MAX_ARGS) abort();
    c->argv[c->argc] = data;
    c->len[c->argc++] = len;
}

void command_text(Command *c, const char *s)
{
    command_bytes(c, s, strlen(s));
}

void command_texts(Command *c, ...)
{
    va_list args;
    va_start(args, c);
    for (const char *s; (s = va_arg(args, const char *));) command_text(c, s);
    va_end(args);
}

void command_int(Command *c, long long v)
{
    if (c->n_numbers == COMMAND_MAX_NUMBERS) abort();
    char *s = c->numbers[c->n_numbers++];
    snprintf(s, sizeof c->numbers[0], "%lld", v);
    command_text(c, s);
}

void connection_free_replies(redisReply **replies, int n)
{
    for (int i = 0; i < n; i++) {
        if (replies[i]) freeReplyObject(replies[i]);
        replies[i] = NULL;
    }
}

const redisReply *reply_at(const redisReply *r, size_t i)
{
    static const redisReply nothing = {.type = REDIS_REPLY_NIL};
    return r->type == REDIS_REPLY_ARRAY && i < r->elements ? r->element[i] : &nothing;
}

const char *reply_text(const redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? r->str : "";
}

int reply_is_error(const redisReply *r, const char *prefix)
{
    size_t n = strlen(prefix);
    return r->type == REDIS_REPLY_ERROR && !strncmp(r->str, prefix, n) &&
           (!r->str[n] || r->str[n] == ' ');
}

static void drop(Connection *c)
{
    if (c->context) redisFree(c->context);
    c->context = NULL;
}

static int broken(Connection *c, Error *err)
{
    const char *why = c->context && c->context->err ? c->context->errstr : "the connection is gone";
    return error_set(err, ERROR_SERVER, "the queue's server %s: %s", c->url.shown, why);
}

/* End this connection's blocking read from a second connection. A stop then costs no wait, and the
 * server leases no job to a reader that has left. */
static void unblock(Connection *c)
{
    struct timeval limit = {1, 0};
    redisContext *x = c->url.unix_path ? redisConnectUnixWithTimeout(c->url.unix_path, limit)
                                       : redisConnectWithTimeout(c->url.host, c->url.port, limit);
    if (x && !x->err && redisSetTimeout(x, limit) == REDIS_OK) {
        redisReply *r = NULL;
        if (c->url.user)
            r = redisCommand(x, "AUTH %s %s", c->url.user, c->url.password);
        else if (c->url.password)
            r = redisCommand(x, "AUTH %s", c->url.password);
        if (r) freeReplyObject(r);
        r = redisCommand(x, "CLIENT UNBLOCK %lld", c->client_id);
        if (r) freeReplyObject(r);
    }
    if (x) redisFree(x);
}

/* Read the next reply, until the deadline. Returns 0, 1 on a stop (EXCHANGE_READ), -1 when lost. */
static int read_reply(Connection *c, double deadline, ExchangeMode mode, redisReply **out,
                      Error *err)
{
    int listen = mode == EXCHANGE_READ || mode == EXCHANGE_TAKE;
    for (;;) {
        void *reply = NULL;
        if (redisGetReplyFromReader(c->context, &reply) != REDIS_OK) return broken(c, err);
        if (reply) {
            *out = reply;
            return 0;
        }
        double left = deadline - clock_seconds();
        if (left <= 0)
            return error_set(err, ERROR_SERVER, "the queue's server %s does not answer",
                             c->url.shown);
        struct pollfd fds[2] = {{c->context->fd, POLLIN, 0}, {listen ? stop_fd() : -1, POLLIN, 0}};
        int n = poll(fds, 2, (int)(left * 1000) + 1);
        if (n < 0 && errno != EINTR) return error_errno(err, "cannot wait for the queue's server");
        if (n <= 0) continue;
        if (fds[0].revents && redisBufferRead(c->context) != REDIS_OK) return broken(c, err);
        if (!fds[0].revents && fds[1].revents) {
            if (mode == EXCHANGE_READ) return 1;
            unblock(c);
            listen = 0;
        }
    }
}

static int send_all(Connection *c, const Exchange *x, Error *err)
{
    for (int i = 0; i < x->n; i++) {
        const Command *one = &x->commands[i];
        if (redisAppendCommandArgv(c->context, one->argc, (const char **)one->argv, one->len))
            return broken(c, err);
    }
    for (int done = 0; !done;)
        if (redisBufferWrite(c->context, &done) != REDIS_OK) return broken(c, err);
    return 0;
}

static int exchange_once(Connection *c, const Exchange *x, Error *err)
{
    for (int i = 0; i < x->n; i++) x->replies[i] = NULL;
    if (send_all(c, x, err)) return -1;
    double deadline = clock_seconds() + x->block_s + REPLY_S;
    for (int i = 0; i < x->n; i++) {
        int rc = read_reply(c, deadline, x->mode, &x->replies[i], err);
        if (!rc) continue;
        connection_free_replies(x->replies, x->n);
        return rc;
    }
    return 0;
}

/* An error that will pass: the server loads its file, is a replica, or runs a long script. */
static int is_transient(const redisReply *r)
{
    return reply_is_error(r, "LOADING") || reply_is_error(r, "READONLY") ||
           reply_is_error(r, "BUSY") || reply_is_error(r, "MASTERDOWN");
}

/* Send one command of the greeting. The text of an error reply never holds the password. */
static int greet(Connection *c, const Command *command, long long *value, Error *err)
{
    redisReply *r = NULL;
    if (exchange_once(c, &(Exchange){command, &r, 1, EXCHANGE_ONCE}, err)) return -1;
    int bad = r->type == REDIS_REPLY_ERROR;
    if (bad) {
        c->refused = !is_transient(r);
        error_set(err, ERROR_SERVER, "the queue's server %s refuses: %s", c->url.shown, r->str);
    } else if (value) {
        *value = r->integer;
    }
    freeReplyObject(r);
    return bad ? -1 : 0;
}

static int greet_all(Connection *c, Error *err)
{
    if (c->url.password) {
        Command auth = {0};
        command_text(&auth, "AUTH");
        if (c->url.user) command_text(&auth, c->url.user);
        command_text(&auth, c->url.password);
        if (greet(c, &auth, NULL, err)) return -1;
    }
    if (c->url.db) {
        Command select = {0};
        command_text(&select, "SELECT");
        command_int(&select, c->url.db);
        if (greet(c, &select, NULL, err)) return -1;
    }
    Command name = {0}, id = {0}, ping = {0};
    command_texts(&name, "CLIENT", "SETNAME", "quern", NULL);
    command_texts(&id, "CLIENT", "ID", NULL);
    command_text(&ping, "PING"); /* an error while the server loads */
    if (greet(c, &name, NULL, err) || greet(c, &id, &c->client_id, err)) return -1;
    return greet(c, &ping, NULL, err);
}

static int connect_once(Connection *c, Error *err)
{
    struct timeval connect_limit = {CONNECT_S, 0}, io_limit = {REPLY_S, 0};
    c->refused = 0;
    c->context = c->url.unix_path
                     ? redisConnectUnixWithTimeout(c->url.unix_path, connect_limit)
                     : redisConnectWithTimeout(c->url.host, c->url.port, connect_limit);
    int ok = c->context && !c->context->err && redisSetTimeout(c->context, io_limit) == REDIS_OK;
    if (!ok) broken(c, err);
    if (ok && !c->url.unix_path) redisEnableKeepAlive(c->context);
    if (ok && !greet_all(c, err)) {
        c->generation++;
        return 0;
    }
    drop(c);
    return -1;
}

/* Wait before the next try. Returns -1 when limit_s has passed since `since`. */
static int back_off(const Connection *c, double since, int tries, double limit_s)
{
    double limit = stop_requested() && limit_s > STOPPING_S ? STOPPING_S : limit_s;
    if (c->refused || clock_seconds() - since > limit) return -1;
    clock_sleep(tries > 5 ? 0.5 : 0.01 * (1 << tries));
    return 0;
}

static int connect_within(Connection *c, double limit_s, Error *err)
{
    double since = clock_seconds();
    for (int tries = 0; connect_once(c, err); tries++)
        if (back_off(c, since, tries, limit_s)) return -1;
    return 0;
}

int connection_open(const char *url, Connection **out, Error *err)
{
    QueueLimits limits;
    if (queue_limits_read(url, &limits, err)) return -1;
    Connection *c = memory_alloc(sizeof *c);
    if (queue_url_parse(url, &c->url, err)) {
        free(c);
        return -1;
    }
    signal(SIGPIPE, SIG_IGN); /* hiredis uses write(2): a lost server must not end the process */
    c->retry_s = limits.retry_s;
    if (connect_within(c, c->retry_s < OPEN_S ? c->retry_s : OPEN_S, err)) {
        connection_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

void connection_set_patience(Connection *c, double seconds)
{
    if (seconds < c->retry_s) c->retry_s = seconds;
}

int connection_answers(const char *url, Error *err)
{
    Connection c = {0};
    if (queue_url_parse(url, &c.url, err)) return 0;
    int yes = !connect_once(&c, err);
    drop(&c);
    queue_url_release(&c.url);
    return yes;
}

void connection_close(Connection *c)
{
    if (!c) return;
    drop(c);
    queue_url_release(&c->url);
    free(c);
}

const char *connection_name(const Connection *c)
{
    return c->url.shown;
}

unsigned connection_generation(const Connection *c)
{
    return c->generation;
}

static int any_transient(redisReply **replies, int n)
{
    for (int i = 0; i < n; i++)
        if (is_transient(replies[i])) return 1;
    return 0;
}

/* One try. Returns 0 when done, 1 as the mode says, -1 when the commands may be sent again, -2 when
 * there is no connection for that. */
static int exchange(Connection *c, const Exchange *x, Error *err)
{
    if (!c->context && connect_once(c, err)) return -1;
    int rc = exchange_once(c, x, err), untouched = 0;
    if (!rc && !any_transient(x->replies, x->n)) return 0;
    if (!rc) {
        const redisReply *first = x->replies[0];
        untouched = is_transient(first); /* nothing was done: resend in every mode */
        error_set(err, ERROR_SERVER, "the queue's server %s says: %s", c->url.shown,
                  first->str ? first->str : "busy");
        connection_free_replies(x->replies, x->n);
    }
    drop(c);
    if (rc > 0) return 1;
    if (x->mode == EXCHANGE_RETRY || untouched) return -1;
    return connect_within(c, c->retry_s, err) ? -2 : 1;
}

int connection_exchange(Connection *c, const Exchange *x, Error *err)
{
    double since = 0;
    for (int tries = 0;; tries++) {
        int rc = exchange(c, x, err);
        if (rc != -1) return rc < 0 ? -1 : rc;
        if (!since) since = clock_seconds();
        if (back_off(c, since, tries, c->retry_s))
            return error_prefix(err, "gave up after %.0f s", clock_seconds() - since);
    }
}

redisReply *connection_ask(Connection *c, const Command *command)
{
    redisReply *reply = NULL;
    const Exchange x = {command, &reply, 1, EXCHANGE_ONCE};
    return connection_exchange(c, &x, NULL) ? NULL : reply;
}

int queue_limits_read(const char *url, QueueLimits *out, Error *err)
{
    static const double week_s = 7 * 24 * 3600;
    *out = (QueueLimits){30, 60, 10000, strncmp(url, "unix:", 5) ? week_s : 0};
    const EnvironmentNumber table[] = {{"lease", 0.05, 3600, &out->lease_s},
                                       {"retry", 0.001, 86400, &out->retry_s},
                                       {"jobs", 1, 1e9, &out->jobs},
                                       {"results", 0, 1e9, &out->results_s}};
    return environment_numbers("QUERN_QUEUE", table, sizeof table / sizeof *table, err);
}
