#include "stages/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stop.h"
#include "queue/job.h"

enum { MAX_BODY = 1 << 20 };

typedef struct {
    JudgeItem *items;
    char *open;                    /* no verdict yet */
    size_t left;
} Waiting;

static int on_result(void *ctx, size_t i, QueueState state, const void *result, size_t len, Error *err)
{
    Waiting *w = ctx;
    if ((state != QUEUE_DONE && state != QUEUE_DEAD) || !w->open[i]) return 0;
    msgpack_zone zone;
    msgpack_zone_init(&zone, 4096);
    View v;
    int rc = view_decode(result, len, "a verdict from the queue", &zone, &v, err);
    char *name = rc ? NULL : view_strdup(&v, "outcome", err);
    if (!name || outcome_from_name(name, &w->items[i].outcome)) rc = -1;
    free(name);
    msgpack_zone_destroy(&zone);
    w->open[i] = 0;
    w->left--;
    return rc;
}

static int submit(Queue *q, const char *device, uint64_t seed, const JudgeItem *x, char key[DIGEST_HEX], Error *err)
{
    Job job = {.source = x->source, .source_len = x->len, .seed = seed};
    QueueState state;
    Buffer body;
    snprintf(job.task, sizeof job.task, "%s", x->task->name);
    snprintf(job.task_digest, sizeof job.task_digest, "%s", x->task->digest);
    snprintf(job.device, sizeof job.device, "%s", device);
    snprintf(job.harness, sizeof job.harness, "%s", JOB_HARNESS);
    job_key(&job, key);
    buffer_init(&body, MAX_BODY);
    int rc = job_encode(&job, &body, err) || queue_enqueue(q, device, key, body.data, body.len, &state, err) ? -1 : 0;
    buffer_release(&body);
    return rc;
}

static int wait_all(Queue *q, const char *const *keys, Waiting *w, size_t n, double patience_s, Error *err)
{
    double last = clock_seconds();
    while (w->left) {
        size_t before = w->left;
        if (queue_poll(q, keys, n, on_result, w, err)) return -1;
        if (w->left < before) last = clock_seconds();
        if (!w->left) return 0;
        if (stop_requested()) return error_set(err, "stopped with %zu candidates in evaluation; the same command continues", w->left);
        if (clock_seconds() - last > patience_s)
            return error_set(err, "no verdict for %.0f s, %zu candidates are waiting: is an evaluator running? (quern-fleet run)",
                             patience_s, w->left);
        if (queue_wait(q, 1.0, err) < 0) return -1;
    }
    return 0;
}

int judge_all(Queue *q, const char *device_class, uint64_t seed, JudgeItem *items, size_t n, double patience_s, Error *err)
{
    char(*key)[DIGEST_HEX] = memory_array(n, sizeof *key);
    const char **keys = memory_array(n, sizeof *keys);
    Waiting w = {items, memory_alloc(n), 0};
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        keys[i] = key[i];
        w.open[i] = 1;
        w.left++;
        rc = submit(q, device_class, seed, &items[i], key[i], err);
    }
    if (!rc) rc = wait_all(q, keys, &w, n, patience_s, err);
    free(w.open);
    free(keys);
    free(key);
    return rc;
}
