/* What a job is: a msgpack map {device, harness, seed, source, task, task_digest}, named by the
 * digest of everything that decides its verdict. Equal candidates are one job. */
#ifndef QUEUE_JOB_H
#define QUEUE_JOB_H

#include "artifacts/record.h"
#include "base/digest.h"

#define JOB_HARNESS "1" /* part of every key: a new harness is a new verdict */

typedef struct {
    char task[64], task_digest[DIGEST_HEX], device[64], harness[32];
    const char *source;         /* borrowed; not NUL-terminated when decoded */
    size_t source_len;
    uint64_t seed;
} Job;

/* Digest of (source, task digest, device class, harness, seed). */
void job_key(const char *source, size_t len, const char *task_digest, const char *device_class, uint64_t seed,
             char out[DIGEST_HEX]);
int job_encode(const Job *job, Buffer *out, Error *err);
/* source points into data. */
int job_decode(const void *data, size_t len, Job *out, Error *err);

/* A verdict (kind `verdicts`, without id) that needed no evaluation, or none could be had. */
void job_verdict(const Job *job, const char *outcome, const char *message, Record *r);

#endif
