/* What a job is: a msgpack map {device, harness, not_on?, seed, source, task, task_digest}, named
 * by the digest of everything that decides its verdict. Equal candidates are one job. */
#ifndef EVAL_SERVE_JOB_H
#define EVAL_SERVE_JOB_H

#include "artifacts/record.h"
#include "base/digest.h"
#include "eval/judge/verdict.h"
#include "queue/queue.h"

typedef struct {
    char task[64], task_digest[DIGEST_HEX], device[64], harness[32];
    char not_on[48];    /* uuid of the device that must not judge it, or ""
                           (eval/serve/second_device.h) */
    const char *source; /* borrowed; not NUL-terminated when decoded */
    size_t source_len;
    uint64_t seed;
} Job;

/* As verdict_key. */
void job_key(const Job *job, char out[DIGEST_HEX]);
int job_encode(const Job *job, Buffer *out, Error *err);
/* source points into data. */
int job_decode(const void *data, size_t len, Job *out, Error *err);

/* queue_take for the device of that uuid ("": it has none). A job that must not run there goes back
 * at once, uncounted: 0 then, and since handed-back jobs are looked for once a second, another
 * device comes to take it. */
int job_take(Queue *q, const char *const *classes, int n, const char *consumer, const char *uuid,
             double timeout_s, QueueDeadResult *dead_result, void *ctx, QueueJob *job, Error *err);

/* A verdict (kind `verdicts`, without id) that needed no evaluation, or none could be had. */
void job_verdict(const Job *job, const char *outcome, const char *message, Record *r);

#endif
