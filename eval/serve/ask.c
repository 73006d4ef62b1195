/* Submission of a few candidates and the wait for their outcomes. Enqueueing is idempotent, so any
 * job may be submitted again at any time. */
#include "eval/serve/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/serve/job.h"
#include "eval/serve/seal.h"

typedef enum {
    CANDIDATE_JUDGED,
    CANDIDATE_OPEN,   /* no verdict yet */
    CANDIDATE_LOST,   /* its job is gone from the queue */
    CANDIDATE_REFUSED /* its result is none of its job */
} CandidateState;

typedef struct {
    Queue *q;
    const char *device;
    uint64_t seed;
    AskItem *items;
    char (*keys)[DIGEST_HEX];
    CandidateState *state;
    int *refused; /* results, by candidate */
    size_t n, left;
    int warned;
} Ask;

static int read_outcome(const void *result, size_t len, Outcome *out, Error *err)
{
    msgpack_zone zone;
    View v;
    if (!msgpack_zone_init(&zone, 4096)) return error_set(err, ERROR_MEMORY, "no memory");
    int rc = view_decode(result, len, "a verdict from the queue", &zone, &v, err);
    char *name = rc ? NULL : view_strdup(&v, "outcome", err);
    msgpack_zone_destroy(&zone);
    if (!name) return -1;
    if (outcome_from_name(name, out))
        rc = error_set(err, ERROR_CORRUPT,
                       "a verdict from the queue has an unknown outcome, '%.40s'", name);
    free(name);
    return rc;
}

static int on_result(void *ctx, size_t i, QueueState state, const void *result, size_t len,
                     Error *err)
{
    Ask *w = ctx;
    if (state == QUEUE_ABSENT && w->state[i] == CANDIDATE_OPEN) w->state[i] = CANDIDATE_LOST;
    if ((state != QUEUE_DONE && state != QUEUE_DEAD) || w->state[i] == CANDIDATE_JUDGED) return 0;
    Job job;
    Error why;
    job_init(&job, w->items[i].task, w->device, w->items[i].source, w->items[i].len, w->seed);
    if (job_check_verdict(&job, result, &len, &why)) {
        log_warn("the queue's result of job %.16s is refused: %s", w->keys[i], why.text);
        w->state[i] = CANDIDATE_REFUSED;
        return 0;
    }
    w->state[i] = CANDIDATE_JUDGED;
    w->left--;
    return read_outcome(result, len, &w->items[i].outcome, err);
}

/* Have refused results forgotten and their jobs enqueued again, but not for ever. */
static int reject_results(Ask *w, Error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        int gone;
        if (w->state[i] != CANDIDATE_REFUSED) continue;
        if (queue_reject(w->q, w->device, w->keys[i], &gone, err)) return -1;
        w->state[i] = CANDIDATE_LOST;
        if (++w->refused[i] < QUEUE_MAX_DELIVERIES) continue;
        w->items[i].outcome = OUTCOME_EVALUATOR_ERROR;
        w->state[i] = CANDIDATE_JUDGED;
        w->left--;
    }
    return 0;
}

static int submit(Ask *w, size_t i, Error *err)
{
    const AskItem *x = &w->items[i];
    Job job;
    QueueState state;
    Buffer body;
    job_init(&job, x->task, w->device, x->source, x->len, w->seed);
    job_key(&job, w->keys[i]);
    w->state[i] = CANDIDATE_OPEN;
    buffer_init(&body, QUEUE_MAX_BODY);
    int rc = job_encode(&job, &body, err) ||
                     queue_enqueue(w->q, w->device, w->keys[i], body.data, body.len, &state, err)
                 ? -1
                 : 0;
    buffer_release(&body);
    return rc;
}

/* Submit lost jobs again: the server was emptied, or a result has expired. */
static int put_back(Ask *w, Error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->state[i] != CANDIDATE_LOST) continue;
        if (!w->warned++) log_warn("the queue has lost jobs; putting them back");
        if (submit(w, i, err)) return -1;
    }
    return 0;
}

/* Submit all open jobs again. A job whose entry in the stream was deleted looks like a waiting one;
 * enqueueing it puts it back. */
static int submit_again(Ask *w, Error *err)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->state[i] == CANDIDATE_OPEN && submit(w, i, err)) return -1;
    return 0;
}

static int wait_all(Ask *w, const char *const *keys, double patience_s, Error *err)
{
    double last = clock_seconds(), submitted = last, lease_s = 3 * queue_renew_interval(w->q);
    while (w->left) {
        size_t before = w->left;
        if (queue_poll(w->q, keys, w->n, on_result, w, err) || reject_results(w, err) ||
            put_back(w, err))
            return -1;
        if (w->left < before) last = clock_seconds();
        if (!w->left) return 0;
        if (stop_requested())
            return error_set(
                err, ERROR_STOPPED,
                "stopped with %zu candidates in evaluation; the same command continues", w->left);
        if (clock_seconds() - last > patience_s)
            return error_set(err, ERROR_SERVER,
                             "no verdict for %.0f s, %zu candidates are waiting: is an evaluator "
                             "running? (quern-fleet run)",
                             patience_s, w->left);
        double now = clock_seconds();
        if (now - last > lease_s && now - submitted > lease_s) {
            if (submit_again(w, err)) return -1;
            submitted = now;
        }
        if (queue_wait(w->q, 1.0, err) < 0) return -1;
    }
    return 0;
}

int ask_all(Queue *q, const char *device_class, uint64_t seed, AskItem *items, size_t n,
            double patience_s, Error *err)
{
    Ask w = {.q = q, .device = device_class, .seed = seed, .items = items, .n = n, .left = n};
    if (seal_check_key(err)) return -1;
    w.keys = memory_array(n, sizeof *w.keys);
    w.state = memory_array(n, sizeof *w.state);
    w.refused = memory_array(n, sizeof *w.refused);
    const char **keys = memory_array(n, sizeof *keys);
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        keys[i] = w.keys[i];
        rc = submit(&w, i, err);
    }
    if (!rc) rc = wait_all(&w, keys, patience_s, err);
    free(w.state);
    free(w.refused);
    free(w.keys);
    free(keys);
    return rc;
}
