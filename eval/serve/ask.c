#include "eval/serve/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/serve/job.h"

enum { MAX_BODY = 1 << 20 };

enum {
    JUDGED,
    OPEN,
    LOST
}; /* a candidate's verdict is there, not yet there, its job gone from the queue */

typedef struct {
    Queue *q;
    const char *device;
    uint64_t seed;
    AskItem *items;
    char (*keys)[DIGEST_HEX];
    char *state;
    size_t n, left;
    int warned;
} Waiting;

static int on_result(void *ctx, size_t i, QueueState state, const void *result, size_t len,
                     Error *err)
{
    Waiting *w = ctx;
    if (state == QUEUE_ABSENT && w->state[i]) w->state[i] = LOST;
    if ((state != QUEUE_DONE && state != QUEUE_DEAD) || !w->state[i]) return 0;
    msgpack_zone zone;
    msgpack_zone_init(&zone, 4096);
    View v;
    int rc = view_decode(result, len, "a verdict from the queue", &zone, &v, err);
    char *name = rc ? NULL : view_strdup(&v, "outcome", err);
    if (!name || outcome_from_name(name, &w->items[i].outcome)) rc = -1;
    free(name);
    msgpack_zone_destroy(&zone);
    w->state[i] = JUDGED;
    w->left--;
    return rc;
}

static int submit(Waiting *w, size_t i, Error *err)
{
    const AskItem *x = &w->items[i];
    Job job = {.source = x->source, .source_len = x->len, .seed = w->seed};
    QueueState state;
    Buffer body;
    snprintf(job.task, sizeof job.task, "%s", x->task->name);
    snprintf(job.task_digest, sizeof job.task_digest, "%s", x->task->digest);
    snprintf(job.device, sizeof job.device, "%s", w->device);
    snprintf(job.harness, sizeof job.harness, "%s", VERDICT_HARNESS);
    job_key(&job, w->keys[i]);
    w->state[i] = OPEN;
    buffer_init(&body, MAX_BODY);
    int rc = job_encode(&job, &body, err) ||
                     queue_enqueue(w->q, w->device, w->keys[i], body.data, body.len, &state, err)
                 ? -1
                 : 0;
    buffer_release(&body);
    return rc;
}

/* The server was emptied, or a result has expired. */
static int put_back(Waiting *w, Error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->state[i] != LOST) continue;
        if (!w->warned++) log_warn("the queue has lost jobs; putting them back");
        if (submit(w, i, err)) return -1;
    }
    return 0;
}

/* A job whose entry in the stream is gone waits for ever, and nothing tells it from one that waits
 * its turn: enqueued again, it is there or has its verdict. */
static int offer_again(Waiting *w, Error *err)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->state[i] == OPEN && submit(w, i, err)) return -1;
    return 0;
}

static int wait_all(Waiting *w, const char *const *keys, double patience_s, Error *err)
{
    double last = clock_seconds(), offered = last, lease_s = 3 * queue_renew_interval(w->q);
    while (w->left) {
        size_t before = w->left;
        if (queue_poll(w->q, keys, w->n, on_result, w, err) || put_back(w, err)) return -1;
        if (w->left < before) last = clock_seconds();
        if (!w->left) return 0;
        if (stop_requested())
            return error_set(
                err, ERROR_INVALID,
                "stopped with %zu candidates in evaluation; the same command continues", w->left);
        if (clock_seconds() - last > patience_s)
            return error_set(err, ERROR_INVALID,
                             "no verdict for %.0f s, %zu candidates are waiting: is an evaluator "
                             "running? (quern-fleet run)",
                             patience_s, w->left);
        double now = clock_seconds();
        if (now - last > lease_s && now - offered > lease_s) {
            if (offer_again(w, err)) return -1;
            offered = now;
        }
        if (queue_wait(w->q, 1.0, err) < 0) return -1;
    }
    return 0;
}

int ask_all(Queue *q, const char *device_class, uint64_t seed, AskItem *items, size_t n,
            double patience_s, Error *err)
{
    Waiting w = {
        q, device_class, seed, items, memory_array(n, sizeof *w.keys), memory_alloc(n), n, n, 0};
    const char **keys = memory_array(n, sizeof *keys);
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        keys[i] = w.keys[i];
        rc = submit(&w, i, err);
    }
    if (!rc) rc = wait_all(&w, keys, patience_s, err);
    free(w.state);
    free(w.keys);
    free(keys);
    return rc;
}
