/* One connection to a Redis server: pipelines of commands with a deadline, and reconnection with
 * back-off. hiredis 0.14 loses its socket timeout on redisReconnect, kills the context on a timeout
 * and retries reads on EINTR. Therefore a failed context is always replaced by a new one (AUTH,
 * SELECT, name), and replies are awaited with poll, together with the stop signal. */
#ifndef QUEUE_CONNECTION_H
#define QUEUE_CONNECTION_H

#include <hiredis/hiredis.h>
#include <stddef.h>

#include "base/error.h"

typedef struct Connection Connection;

enum { COMMAND_MAX_ARGS = 96, COMMAND_MAX_NUMBERS = 8 };

/* One command. It holds pointers, not copies: the arguments must live until it is sent. */
typedef struct {
    int argc, n_numbers;
    const char *argv[COMMAND_MAX_ARGS];
    size_t len[COMMAND_MAX_ARGS];
    char numbers[COMMAND_MAX_NUMBERS][24];
} Command;

void command_text(Command *c, const char *s);
void command_texts(Command *c, ...) __attribute__((sentinel)); /* const char *, the last one NULL */
void command_bytes(Command *c, const void *data, size_t len);
void command_int(Command *c, long long v);

/* Connect. Tries for up to 20 s (QUERN_QUEUE's retry if less), as the server may be restarting. */
int connection_open(const char *url, Connection **out, Error *err);
void connection_close(Connection *c);
/* Lower the time that exchanges wait for a lost server. It is never raised. */
void connection_set_patience(Connection *c, double seconds);
/* Try to connect once. Returns 1 when the server answers, or 0. */
int connection_answers(const char *url, Error *err);
const char *connection_name(const Connection *c);    /* the URL without its password */
unsigned connection_generation(const Connection *c); /* counts (re)connections */

typedef enum {
    /* Idempotent commands: send again after a lost connection, for up to 60 s. */
    EXCHANGE_RETRY,
    /* Return 1 when the connection was lost: the caller finds out what the server did. */
    EXCHANGE_ONCE,
    /* A blocking read: a stop signal ends it (returns 1) and drops the connection. */
    EXCHANGE_READ,
    /* A blocking read that leases a job: a stop signal unblocks it on the server. */
    EXCHANGE_TAKE
} ExchangeMode;

/* n commands and their replies. */
typedef struct {
    const Command *commands;
    redisReply **replies; /* output; freed by connection_free_replies */
    int n;
    ExchangeMode mode;
    double block_s; /* how long the server may block */
} Exchange;

/* Send the commands and read the replies. Returns 0 when done, 1 as the mode says, -1 on an error.
 * Error replies are returned as replies. */
int connection_exchange(Connection *c, const Exchange *x, Error *err);
/* Send one command once. Returns its reply, which the caller frees, or NULL. */
redisReply *connection_ask(Connection *c, const Command *command);
void connection_free_replies(redisReply **replies, int n);

/* Access to replies whose type is not known. reply_at returns the i-th element, or a nil reply.
 * reply_text returns the text, or "". */
const redisReply *reply_at(const redisReply *r, size_t i);
const char *reply_text(const redisReply *r);
/* Returns whether r is an error with this prefix, the first word of its text. */
int reply_is_error(const redisReply *r, const char *prefix);

/* ---- what $QUERN_QUEUE sets: "lease=30,retry=60,jobs=10000,results=604800", all of them or some ---- */

typedef struct {
    double lease_s;   /* of a job, 30 */
    double retry_s;   /* a lost server is tried again, 60 */
    double jobs;      /* that may wait on one stream, 10000 */
    double results_s; /* results are kept: 7 days, over unix: for ever, which is 0 */
} QueueLimits;

/* The limits for the server at the URL. */
int queue_limits_read(const char *url, QueueLimits *out, Error *err);

#endif
