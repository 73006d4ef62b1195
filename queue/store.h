/* Internal to the queue module: the handle, the names of its keys, and calls of the Lua library. */
#ifndef QUEUE_STORE_H
#define QUEUE_STORE_H

#include "queue/connection.h"
#include "queue/queue.h"

#define QUEUE_GROUP "workers" /* equals GROUP of queue/queue_lua.h */

enum { QUEUE_KEY_BYTES = 256, QUEUE_PIPELINE = 128 };

typedef char QueueKey[QUEUE_KEY_BYTES];

struct Queue {
    Connection *connection;
    char name[80];     /* "NAME.VERSION": programs of two versions never share jobs */
    char library[32];  /* name of the Lua library: "quern_1f2e3d4c" */
    unsigned loaded;   /* the connection's generation at the last library load; 0: not loaded */
    unsigned taken;    /* the connection's generation at the last take */
    char out_last[64]; /* id of the last entry read from the stream of finished keys */
    double lease_s, next_scan;
    long limit;        /* of jobs on one stream */
    long result_ttl_s; /* 0: results stay */
};

/* Write "{NAME.VERSION}:kind:rest", or "{NAME.VERSION}:kind" with rest NULL. */
void queue_key(const Queue *q, QueueKey out, const char *kind, const char *rest);

typedef char QueueFunction[64];
/* Start a call of a Lua function with n_keys keys. The caller adds keys and arguments. `name` must
 * live as long as the command. */
void queue_function(const Queue *q, Command *c, QueueFunction name, const char *function,
                    int n_keys);

/* connection_exchange with two additions. It loads the library when the server lacks it. It turns
 * an error reply into an error, except NOGROUP and UNBLOCKED, which blocking reads expect: NOT_FOUND
 * for a key that is not there, else SERVER. */
int queue_exchange(Queue *q, const Command *commands, int n, redisReply **replies, double block_s,
                   ExchangeMode mode, Error *err);
/* Send one idempotent command whose reply is an integer. */
int queue_call_int(Queue *q, const Command *c, long long *out, Error *err);

/* Returns whether s has 1 to max bytes, all printable: a name, class or key. */
int queue_text_ok(const char *s, size_t max);

#endif
