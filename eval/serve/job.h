/* A job: one candidate to judge. Its body is a msgpack map {device, harness, not_on?, sanitize?,
 * seed, source, task, task_digest}. Its key is the digest of everything that decides the verdict, so equal
 * candidates are one job. */
#ifndef EVAL_SERVE_JOB_H
#define EVAL_SERVE_JOB_H

#include "artifacts/record.h"
#include "base/digest.h"
#include "eval/device/outcome.h"
#include "eval/judge/verdict/verdict.h"
#include "queue/queue.h"
#include "tasks/task.h"

typedef struct {
    char task[64], task_digest[DIGEST_HEX], device[64], harness[32];
    char not_on[48];    /* uuid of a device that must not judge it (second_device.h), or "" */
    const char *source; /* borrowed; not NUL-terminated when decoded */
    size_t source_len;
    uint64_t seed;
    int sanitize; /* the simulator checks it even when it is no win (eval/judge/sanitizer.h) */
} Job;

/* Fill a job for the current harness. It borrows the source. */
void job_init(Job *job, const Task *task, const char *device_class, const char *source,
              uint64_t seed);
void job_key(const Job *job, char out[DIGEST_HEX]); /* verdict_key of the job */
/* With QUERN_KEY the body is sealed (eval/serve/seal.h), and one with another seal is refused. */
int job_encode(const Job *job, Buffer *out, Error *err);
/* out->source points into data. */
int job_decode(const void *data, size_t len, Job *out, Error *err);

/* Check that a leased entry is a job of its class and key, for this harness. *out as job_decode.
 * ERROR_CORRUPT with a sentence that says what was expected and found. */
int job_check(const Queue *q, const QueueJob *entry, Job *out, Error *err);

/* queue_take for the device with this uuid ("": it has none). A job that must not run there is
 * handed back at once without a counted delivery, and the result is 0. Workers look for handed-back
 * jobs once a second, so another device takes it. */
int job_take(Queue *q, const QueueConsumer *c, const char *uuid, double timeout_s, QueueJob *job,
             Error *err);

/* Write a verdict (kind `verdicts`, without id) for a job that was not evaluated. */
void job_verdict(const Job *job, Outcome outcome, const char *message, Record *r);
/* The same with evaluator_error, encoded and appended to out. */
int job_encode_failure(const Job *job, const char *why, Buffer *out, Error *err);
/* Read an encoded verdict by its schema, as verdict_read. A field that none has is refused. */
int job_read_verdict(const void *data, size_t len, Verdict *out, Error *err);

#endif
