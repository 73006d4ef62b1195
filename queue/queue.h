/* A job queue on Redis Streams. A job is an opaque body under a key, for one device class. Its
 * worker leases it, renews the lease and stores a result. A Lua library makes every change of state
 * and fences it by (consumer, delivery count): a worker that lost its lease changes nothing.
 *
 * All keys of a queue share the hash tag {NAME.VERSION}. Programs of two versions, whose jobs and
 * results differ, can therefore share one server.
 *
 * URL: redis://user:password@host:port/db or unix:PATH. Passwords are never printed. */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct Queue Queue;

/* Open a queue. url NULL: $QUERN_REDIS; name NULL: "quern". version: of the jobs and results.
 * Loads the Lua library when the server lacks it. All functions below reconnect with back-off for
 * up to 60 s after the connection is lost. $QUERN_QUEUE changes the limits (queue/connection.h). */
int queue_open(const char *url, const char *name, const char *version, Queue **out, Error *err);
void queue_close(Queue *q); /* NULL is allowed */
/* Lower the time that calls wait for a lost server. It is never raised. */
void queue_set_patience(Queue *q, double seconds);

enum {
    QUEUE_MAX_KEY = 128,
    QUEUE_MAX_DELIVERIES = 3,
    QUEUE_MAX_BODY = 1 << 20,
    QUEUE_MAX_CLASSES = 16
};

typedef enum { QUEUE_QUEUED, QUEUE_DUPLICATE, QUEUE_DONE, QUEUE_DEAD, QUEUE_ABSENT } QueueState;

/* ---- submitters ---- */

/* A job for the stream of a device class. key is the digest of its content. */
typedef struct {
    const char *device_class, *key;
    const void *body;
    size_t len;
    int urgent;      /* taken before all other jobs of its class */
    const char *kin; /* jobs of one kin are best taken by one worker; NULL: none */
} QueueNew;

/* Enqueue n jobs, in pipelines. states[n] become QUEUED, DUPLICATE when the job is queued already,
 * DONE when it is finished, or DEAD when it was buried (queue_retry revives it). Blocks, at most
 * 600 s, while a stream has as many jobs as it may (queue/connection.h). */
int queue_enqueue(Queue *q, const QueueNew *jobs, size_t n, QueueState *states, Error *err);

/* Remove a waiting job, as if it had never been enqueued. *gone is 1 when the job is not in the
 * queue now, 0 when a worker holds it or it is finished. */
int queue_withdraw(Queue *q, const char *key, int *gone, Error *err);

typedef struct {
    QueueState state;
    char *data; /* the result; NULL but for DONE and DEAD */
    size_t len;
} QueueResult;
/* Look up n keys, in pipelines. The caller releases out[n], also after an error. */
int queue_poll(Queue *q, const char *const *keys, size_t n, QueueResult *out, Error *err);
void queue_results_release(QueueResult *results, size_t n);

/* The result of a finished job is malformed: the job becomes dead, with this result instead, and
 * counts as malformed. Nothing happens when the job is not finished. */
int queue_refuse(Queue *q, const QueueNew *job, const void *result, size_t len, Error *err);

/* Wait at most timeout_s until a job has finished since the last call (at first: since queue_open).
 * Returns 1 when one has, 0 when none has or a stop signal came, -1 on an error. */
int queue_wait(Queue *q, double timeout_s, Error *err);

/* ---- workers ---- */

/* A leased job. */
typedef struct {
    char *stream, *id, *key, *consumer; /* owned; queue_job_release */
    Buffer body;
    int delivery; /* 1 on the first */
    int brief;    /* its result is kept for a minute: a later equal job may have another */
} QueueJob;

typedef struct {
    const char *name;
    const char *const *classes; /* earlier ones have strict priority */
    int n_classes;
    /* Make the result of a job that was delivered too often. -1 on failure. */
    int (*dead_result)(void *ctx, const QueueJob *job, Buffer *result);
    void *ctx;
    const char *kin; /* not NULL: a new job is taken only if the next one is of this kin */
} QueueConsumer;

/* Take the next job of the consumer's classes. Waits at most timeout_s (<= 2). Returns 1 with a job,
 * 0 with none (or paused, or a stop signal came), -1 on an error.
 *
 * A consumer holds at most one job: it completes, buries or hands it back before it takes the next.
 * Expired leases (30 s without renewal) are taken over first. An entry that is no job is discarded
 * and counted as malformed. A job that was delivered QUEUE_MAX_DELIVERIES times without a result is
 * buried here, with the result of `dead_result`, and not returned. */
int queue_take(Queue *q, const QueueConsumer *c, double timeout_s, QueueJob *job, Error *err);
void queue_job_release(QueueJob *job);
const char *queue_job_class(const Queue *q, const QueueJob *job); /* the class of its stream */

/* Begin, or with on 0 end, the consumer's turn to take several jobs one after the other. Returns 1 when it
 * is its turn, 0 when it is another's, -1 on an error. A turn ends by itself after two seconds. */
int queue_turn(Queue *q, const QueueConsumer *c, int on, Error *err);

/* The functions on a leased job return 1 when done, 0 when the consumer's lease was lost (then stop
 * the work), -1 on an error. */

/* Extend the lease. Call it every queue_renew_interval. */
int queue_renew(Queue *q, const QueueJob *job, Error *err);
double queue_renew_interval(const Queue *q); /* seconds: a third of the lease */

/* Move a job that a consumer "NAME+N" took early to the consumer NAME. A lease under such a name does
 * not count as a delivery when it ends, because no work was tried. queue_release of NAME frees these
 * leases too. */
int queue_begin(Queue *q, QueueJob *job, const char *name, Error *err);

/* Store the result and end the job. Also returns 1 when the same result is stored already. */
int queue_complete(Queue *q, const QueueJob *job, const void *result, size_t len, Error *err);
/* Return the job to its old place in the stream. The delivery is not counted. */
int queue_hand_back(Queue *q, const QueueJob *job, Error *err);
/* Return the job after a failed attempt. The delivery is counted. */
int queue_give_up(Queue *q, const QueueJob *job, Error *err);
/* End the job as dead, with this result. */
int queue_bury(Queue *q, const QueueJob *job, const void *result, size_t len, Error *err);

/* Record that a device left service. `where` names host and device. */
int queue_quarantine(Queue *q, const char *where, const char *device_class, const char *reason,
                     Error *err);
/* Remove the record of `where` when it is older than `since` (clock_unix), the time at which a
 * worker began to serve that device. */
int queue_serves(Queue *q, const char *where, double since, Error *err);
/* Record that the device with this uuid serves the class. The record holds for one lease: repeat it
 * every queue_renew_interval. */
int queue_announce(Queue *q, const char *device_class, const char *uuid, Error *err);
typedef struct {
    long others;     /* devices that serve the class, without one */
    double served_s; /* for which that one has served it without a break */
} QueueService;
/* Who serves the class beside the device with this uuid. */
int queue_service(Queue *q, const char *device_class, const char *uuid, QueueService *out,
                  Error *err);
/* Free all leases of a consumer at once (NULL: of all consumers). The caller knows that the
 * consumer has ended. counted: whether the deliveries count. *n: how many were freed. */
int queue_release(Queue *q, const char *consumer, int counted, long *n, Error *err);

/* ---- administration ---- */

typedef struct {
    char device_class[64];
    long waiting, leased, dead, done;
    long malformed;  /* entries that were no jobs, and results that were malformed */
    double oldest_s; /* age of the oldest entry */
} QueueStatus;
/* One element a class, sorted by name. This list and the next two: at most max; returns how many, or
 * -1. */
int queue_status(Queue *q, QueueStatus *out, int max, Error *err);

typedef struct {
    char name[128]; /* the consumer's: "HOST:..." */
    long leased;
    double idle_s; /* since it last asked or renewed */
} QueueWorker;
/* The consumers of a class that have asked within `within_s` seconds, sorted by name. */
int queue_workers(Queue *q, const char *device_class, double within_s, QueueWorker *out, int max,
                  Error *err);

typedef struct {
    char where[128], device_class[64], reason[600];
    double at; /* clock_unix */
} QueueSick;
/* The devices out of service, sorted by name. */
int queue_quarantined(Queue *q, QueueSick *out, int max, Error *err);

int queue_retry(Queue *q, long *revived, Error *err); /* put dead jobs back on their streams */
int queue_purge(Queue *q, Error *err);                /* delete everything under {NAME.VERSION} */
int queue_pause(Queue *q, int on, Error *err);        /* workers take nothing while on */

#endif
