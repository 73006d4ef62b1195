/* Inside the queue module: the handle, the names of its keys, and calls of the Lua library. */
#ifndef QUEUE_STORE_H
#define QUEUE_STORE_H

#include "queue/connection.h"
#include "queue/queue.h"

#define QUEUE_GROUP "workers" /* also in library.h */

enum { QUEUE_KEY_BYTES = 256, QUEUE_PIPELINE = 128 };

typedef char QueueKey[QUEUE_KEY_BYTES];

struct Queue {
    Connection *connection;
    char name[80];    /* "NAME.HARNESS": no program meets the jobs of another harness */
    char library[32]; /* of functions: "quern_1f2e3d4c" */
    unsigned loaded,
        taken;         /* generation of the connection at the last library load; at the last take */
    char out_last[64]; /* id of the last outbox entry seen */
    double lease_s, next_scan;
    long limit;        /* back-pressure: jobs on one stream */
    long result_ttl_s; /* 0: results stay */
};

/* "{NAME.HARNESS}:kind:rest" or "{NAME.HARNESS}:kind" with rest NULL. */
void queue_key(const Queue *q, QueueKey out, const char *kind, const char *rest);

/* Start a call of a function with n_keys keys; the caller adds keys and arguments. `name` must live
 * as long as the command. */
typedef char QueueFunction[64];
void queue_function(const Queue *q, Command *c, QueueFunction name, const char *function,
                    int n_keys);

/* connection_exchange that loads the library when the server lacks it, and turns an error reply
 * into an error (except NOGROUP and UNBLOCKED, which blocking reads expect). */
int queue_exchange(Queue *q, const Command *commands, int n, redisReply **replies, double block_s,
                   ExchangeMode mode, Error *err);
/* One idempotent call with an integer reply. */
int queue_call_int(Queue *q, const Command *c, long long *out, Error *err);

int queue_text_ok(const char *s, size_t max); /* printable, no blank: names, classes, keys */

#endif
