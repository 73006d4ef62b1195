/* Internal to the queue module: the handle, the names of its keys, and calls of the Lua library. */
#ifndef QUEUE_STORE_H
#define QUEUE_STORE_H

#include "queue/connection.h"
#include "queue/queue.h"

#define QUEUE_GROUP "workers" /* equals GROUP of queue/queue.lua */

enum { QUEUE_KEY_BYTES = 256, QUEUE_PIPELINE = 128 };

typedef char QueueKey[QUEUE_KEY_BYTES];

struct Queue {
    Connection *connection;
    char prefix[88]; /* of all keys, "{NAME.VERSION}:": programs of two versions never share jobs */
    char library[32];  /* name of the Lua library and of its function: "quern_1f2e3d4c" */
    unsigned loaded;   /* the connection's generation at the last library load; 0: not loaded */
    unsigned taken;    /* the connection's generation at the last take */
    char out_last[64]; /* id of the last entry read from the stream of finished keys */
    double lease_s, next_scan;
    long limit;        /* of jobs on one stream */
    long result_ttl_s; /* 0: results stay */
};

/* Write "{NAME.VERSION}:kind:rest", or "{NAME.VERSION}:kind" with rest NULL. */
void queue_key(const Queue *q, QueueKey out, const char *kind, const char *rest);

/* Start a call of a Lua function. The caller adds the arguments behind q. */
void queue_function(const Queue *q, Command *c, const char *function);

/* connection_exchange with two additions. It loads the library when the server lacks it. It turns
 * an error reply into an error, except NOGROUP and UNBLOCKED, which blocking reads expect: NOT_FOUND
 * for a key that is not there, else SERVER. */
int queue_exchange(Queue *q, const Exchange *x, Error *err);
/* Send one idempotent command, with one reply that the caller frees. */
int queue_call(Queue *q, const Command *c, redisReply **reply, Error *err);
/* The same with a reply that is not looked at. */
int queue_do(Queue *q, const Command *c, Error *err);
/* The same for a Lua function whose reply is an integer. */
int queue_call_int(Queue *q, const Command *c, long long *out, Error *err);
/* The lease in milliseconds. */
long long queue_lease_ms(const Queue *q);

/* Returns whether s has 1 to max bytes, all printable: a name, class or key. */
int queue_text_ok(const char *s, size_t max);

#endif
