/* One connection to a Redis server: pipelines of commands with a deadline, and reconnection with
 * back-off. hiredis 0.14 loses its socket timeout on redisReconnect, kills the context on a timeout
 * and retries reads on EINTR; so a lost context is always thrown away and made anew (AUTH, SELECT,
 * name), and replies are awaited with poll, beside the stop signal. */
#ifndef QUEUE_CONNECTION_H
#define QUEUE_CONNECTION_H

#include <hiredis/hiredis.h>
#include <stddef.h>

#include "base/error.h"

typedef struct Connection Connection;

enum { COMMAND_MAX_ARGS = 96, COMMAND_MAX_NUMBERS = 8 };

/* Pointers, not copies: what they point to must live until the command was sent. */
typedef struct {
    int argc, n_numbers;
    const char *argv[COMMAND_MAX_ARGS];
    size_t len[COMMAND_MAX_ARGS];
    char numbers[COMMAND_MAX_NUMBERS][24];
} Command;

void command_text(Command *c, const char *s);
void command_bytes(Command *c, const void *data, size_t len);
void command_int(Command *c, long long v);

/* Tries for up to 20 s (QUERN_QUEUE_RETRY_S if less): a server that is just restarting is waited
 * for. */
int connection_open(const char *url, Connection **out, Error *err);
void connection_close(Connection *c);
void connection_set_patience(
    Connection *c, double seconds); /* with a lost server, from now on; never more than it was */
int connection_answers(const char *url, Error *err); /* one try: 1 it serves, 0 not (yet) */
const char *connection_name(const Connection *c);    /* the URL without its password */
unsigned connection_generation(const Connection *c); /* counts (re)connections */

typedef enum {
    EXCHANGE_RETRY, /* send again after a lost connection, for up to 60 s: idempotent commands */
    EXCHANGE_ONCE,  /* return 1 when the connection was lost: the caller asks what became of it */
    EXCHANGE_READ,  /* a blocking read: a stop signal ends it (returns 1), the connection is dropped
                     */
    EXCHANGE_TAKE /* a blocking read that hands out work: a stop signal unblocks it at the server */
} ExchangeMode;

/* Send n commands, read n replies (freed by connection_free_replies). block_s: how long the server
 * may block. 0 done, 1 see the mode, -1 error. Error replies are returned as replies. */
int connection_exchange(Connection *c, const Command *commands, int n, redisReply **replies,
                        double block_s, ExchangeMode mode, Error *err);
void connection_free_replies(redisReply **replies, int n);

/* A server may answer anything. The i-th element, a nil one when there is none; the text, "" of
 * what is none. */
const redisReply *reply_at(const redisReply *r, size_t i);
const char *reply_text(const redisReply *r);

#endif
