/* The job queue on Redis Streams; a Lua function library does every state change, fenced by
 * (consumer, delivery count). All keys of a queue share the hash tag {NAME.VERSION}, so that
 * programs of two versions, whose jobs and results differ, can share one server.
 *
 * URL: redis://user:password@host:port/db  or  unix:PATH. Passwords are never printed. */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct Queue Queue;

/* url NULL: $QUERN_REDIS; name NULL: "quern". Loads the library when absent or of another version;
 * reconnects by itself with back-off for up to 60 s of a lost server. The environment sets, for
 * tests and large installations: QUERN_LEASE_S (30), QUERN_QUEUE_LIMIT (10000 jobs on one stream),
 * QUERN_RESULT_TTL_S (0, for ever, over unix:, else 7 days), QUERN_QUEUE_RETRY_S (60). */
int queue_open(const char *url, const char *name, const char *version, Queue **out, Error *err);
void queue_close(Queue *q);
void queue_set_patience(Queue *q,
                        double seconds); /* with a lost server, from now on, if that is less */

enum { QUEUE_MAX_DELIVERIES = 3, QUEUE_MAX_BODY = 1 << 20, QUEUE_MAX_CLASSES = 16 };

typedef enum { QUEUE_QUEUED, QUEUE_DUPLICATE, QUEUE_DONE, QUEUE_DEAD, QUEUE_ABSENT } QueueState;

/* ---- submitters ---- */
/* Put a job on the stream of a device class. key is its content digest: a job already queued is
 * DUPLICATE, one finished is DONE, one dead DEAD (retry revives it). Blocks (bounded) while the
 * stream is longer than the back-pressure limit. */
int queue_enqueue(Queue *q, const char *device_class, const char *key, const void *body, size_t len,
                  QueueState *state, Error *err);
/* The same for many, in pipelines. Urgent jobs are taken before all others of their class. */
typedef struct {
    const char *device_class, *key;
    const void *body;
    size_t len;
    int urgent;
} QueueNew;
int queue_enqueue_many(Queue *q, const QueueNew *jobs, size_t n, QueueState *states, Error *err);
/* A waiting job that nobody works on is taken out of the queue, as if it had never been there.
 * *gone: so it is; 0: it is being judged, or finished. */
int queue_withdraw(Queue *q, const char *key, int *gone, Error *err);
/* State of many keys in one pipeline; for DONE and DEAD the result is handed to the callback. */
typedef int QueueResult(void *ctx, size_t index, QueueState state, const void *result, size_t len,
                        Error *err);
int queue_poll(Queue *q, const char *const *keys, size_t n, QueueResult *callback, void *ctx,
               Error *err);
/* Wait up to timeout_s for something to finish since the last call (the first: since queue_open).
 * 1 something did, 0 not (or a stop signal came), -1 error. */
int queue_wait(Queue *q, double timeout_s, Error *err);

/* ---- workers ---- */
typedef struct {
    char *stream, *id, *key; /* owned; queue_job_release */
    Buffer body;
    int delivery; /* 1 on the first */
} QueueJob;

/* Next job of any of the classes, in their order (strict priority), waiting at most timeout_s (<=
 * 2): 1 a job, 0 none (or paused, or a stop signal), -1 error. A consumer holds at most one job: it
 * completes, buries or hands back before it takes again. Expired leases (30 s idle) are taken over
 * first; a job delivered three times without a result is buried here, with `dead_result` as its
 * result, and not handed out. */
typedef int QueueDeadResult(void *ctx, const QueueJob *job, Buffer *result);
int queue_take(Queue *q, const char *const *classes, int n, const char *consumer, double timeout_s,
               QueueDeadResult *dead_result, void *ctx, QueueJob *job, Error *err);
void queue_job_release(QueueJob *job);
/* 1 done, 0 the lease was lost (stop the work), -1 error. complete returns 1 also when the same
 * result is already stored. */
int queue_renew(Queue *q, const QueueJob *job, const char *consumer, Error *err);
/* A job that was taken ahead, under the name "CONSUMER+N", is begun: CONSUMER holds it from now on.
 * Leases under such a name count as no delivery when they end, since nothing was tried;
 * queue_release of CONSUMER frees them too. */
int queue_begin(Queue *q, const QueueJob *job, const char *waiting, const char *consumer,
                Error *err);
int queue_complete(Queue *q, const QueueJob *job, const char *consumer, const void *result,
                   size_t len, Error *err);
int queue_hand_back(Queue *q, const QueueJob *job, const char *consumer,
                    Error *err); /* drain: delivery not counted */
int queue_give_up(Queue *q, const QueueJob *job, const char *consumer,
                  Error *err); /* an attempt failed: counted */
/* No verdict can be had: dead, with this result. */
int queue_bury(Queue *q, const QueueJob *job, const char *consumer, const void *result, size_t len,
               Error *err);
double queue_renew_interval(const Queue *q); /* seconds: a third of the lease */
/* A device leaves service, until someone looks after it: `where` names host and device. What it
 * held, its worker hands back. A worker that began to serve the device at `since` (clock_unix)
 * takes back what was said of it before. */
int queue_quarantine(Queue *q, const char *where, const char *device_class, const char *reason,
                     Error *err);
int queue_serves(Queue *q, const char *where, double since, Error *err);
/* A device of that uuid serves the class; true for one lease, so it is said again every
 * queue_renew_interval. */
int queue_announce(Queue *q, const char *device_class, const char *uuid, Error *err);
/* How many devices beside that one serve the class, and for how long that one has, without a break.
 */
int queue_others(Queue *q, const char *device_class, const char *uuid, long *others,
                 double *served_s, Error *err);
/* All leases of a consumer (NULL: of all) whose end is certain, free at once; counted or not. For
 * who started the consumers. */
int queue_release(Queue *q, const char *consumer, int counted, long *n, Error *err);

/* ---- people ---- */
typedef struct {
    char device_class[64];
    long waiting, leased, dead, done;
    double oldest_s;
} QueueStatus;
int queue_status(Queue *q, QueueStatus *out, int max, int *n, Error *err);
typedef struct {
    char where[128], device_class[64], reason[600];
    double at; /* clock_unix */
} QueueSick;
int queue_quarantined(Queue *q, QueueSick *out, int max, int *n,
                      Error *err);                    /* devices out of service, by name */
int queue_retry(Queue *q, long *revived, Error *err); /* dead jobs back on their streams */
int queue_purge(Queue *q, Error *err);                /* everything under {NAME.HARNESS} */
int queue_pause(Queue *q, int on, Error *err);        /* workers take nothing while on */

#endif
