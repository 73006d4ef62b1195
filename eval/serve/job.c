/* Encoding of jobs, and verdicts as they go through the queue. What comes from the queue is checked
 * for its structure and schema; who may write to the server is trusted (docs/trust.md). */
#include "eval/serve/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "eval/judge/verdict/verdict_schema.h"
#include "eval/serve/seal.h"

void job_init(Job *job, const Task *task, const char *device_class, const char *source,
              uint64_t seed)
{
    *job = (Job){.source = source, .source_len = strlen(source), .seed = seed};
    snprintf(job->task, sizeof job->task, "%s", task->name);
    snprintf(job->task_digest, sizeof job->task_digest, "%s", task->digest);
    snprintf(job->device, sizeof job->device, "%s", device_class);
    snprintf(job->harness, sizeof job->harness, "%s", VERDICT_HARNESS);
}

void job_key(const Job *job, char out[DIGEST_HEX])
{
    VerdictKey key = {.source = job->source,
                      .source_len = job->source_len,
                      .task_digest = job->task_digest,
                      .device_class = job->device,
                      .not_on = job->not_on,
                      .seed = job->seed,
                      .sanitize = job->sanitize};
    verdict_key(&key, out);
}

int job_encode(const Job *job, Buffer *out, Error *err)
{
    Record *r = record_new();
    record_text(r, "device", job->device);
    record_text(r, "harness", job->harness);
    if (job->not_on[0]) record_text(r, "not_on", job->not_on);
    if (job->sanitize) record_bool(r, "sanitize", 1);
    record_int(r, "seed", (int64_t)job->seed);
    record_textn(r, "source", job->source, job->source_len);
    record_text(r, "task", job->task);
    record_text(r, "task_digest", job->task_digest);
    int failed = record_encode(r, out, err) || seal_add(SEAL_JOB, out, err);
    record_free(r);
    return failed ? -1 : 0;
}

static int read_fields(const View *v, void *job, Error *err)
{
    Job *out = job;
    int64_t seed;
    if (view_copy(v, "task", out->task, sizeof out->task, err) ||
        view_copy(v, "task_digest", out->task_digest, sizeof out->task_digest, err) ||
        view_copy(v, "device", out->device, sizeof out->device, err) ||
        view_copy(v, "harness", out->harness, sizeof out->harness, err) ||
        view_int(v, "seed", &seed, err) ||
        view_text(v, "source", &out->source, &out->source_len, err))
        return -1;
    out->seed = (uint64_t)seed;
    if (view_has(v, "sanitize") && view_bool(v, "sanitize", &out->sanitize, err)) return -1;
    if (!view_has(v, "not_on")) return 0;
    return view_copy(v, "not_on", out->not_on, sizeof out->not_on, err);
}

int job_decode(const void *data, size_t len, Job *out, Error *err)
{
    *out = (Job){0};
    if (seal_open(SEAL_JOB, data, &len, err)) return -1;
    return view_read(data, len, "a job", read_fields, out, err);
}

static int differs(const char *what, const char *expected, const char *found, Error *err)
{
    return error_set(err, ERROR_CORRUPT, "%s: expected '%.70s', found '%.70s'", what, expected,
                     found);
}

int job_check(const Queue *q, const QueueJob *entry, Job *out, Error *err)
{
    char key[DIGEST_HEX];
    if (job_decode(entry->body.data, entry->body.len, out, err)) return -1;
    if (strcmp(out->harness, VERDICT_HARNESS))
        return differs("a job's harness", VERDICT_HARNESS, out->harness, err);
    if (strcmp(out->device, queue_job_class(q, entry)))
        return differs("a job's device class", queue_job_class(q, entry), out->device, err);
    job_key(out, key);
    return strcmp(key, entry->key) ? differs("a job's key", key, entry->key, err) : 0;
}

int job_take(Queue *q, const QueueConsumer *c, const char *uuid, double timeout_s, QueueJob *job,
             Error *err)
{
    Job j;
    Error ignored;
    int rc = queue_take(q, c, timeout_s, job, err);
    if (rc <= 0 || !uuid[0] || job_decode(job->body.data, job->body.len, &j, &ignored) ||
        strcmp(j.not_on, uuid))
        return rc;
    rc = queue_hand_back(q, job, err);
    queue_job_release(job);
    return rc < 0 ? -1 : 0;
}

void job_verdict(const Job *job, Outcome outcome, const char *message, Record *r)
{
    char key[DIGEST_HEX], source_digest[DIGEST_HEX];
    Digest d;
    digest_of(job->source, job->source_len, &d);
    digest_hex(&d, source_digest);
    job_key(job, key);
    static const char *const zeros[] = {"score", "speedup", "low",
                                        "high",  "time_us", "baseline_us"};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) record_float(r, zeros[i], 0);
    record_text(r, "task", job->task);
    record_text(r, "key", key);
    record_text(r, "device", job->device);
    record_text(r, "outcome", outcome_name(outcome));
    record_text(r, "message", message);
    record_int(r, "line", 0);
    record_bool(r, "predicted", !strncmp(job->device, "sim:", 4));
    record_text(r, "source_digest", source_digest);
    record_text(r, "task_digest", job->task_digest);
    record_text(r, "harness", VERDICT_HARNESS);
    record_text(r, "compiler", "");
}

int job_encode_failure(const Job *job, const char *why, Buffer *out, Error *err)
{
    Record *r = record_new();
    job_verdict(job, OUTCOME_EVALUATOR_ERROR, why, r);
    int rc = record_encode(r, out, err);
    record_free(r);
    return rc;
}

static int is_field(const msgpack_object_str *name)
{
    for (int i = 0; i < verdict_n_fields; i++) {
        const VerdictField *f = &verdict_fields[i];
        if (f->place == VERDICT_RECORD && word_is(name->ptr, name->size, f->name)) return 1;
    }
    return 0;
}

static int check_fields(const View *v, Error *err)
{
    for (uint32_t i = 0; i < v->map->via.map.size; i++) {
        const msgpack_object_str *name = &v->map->via.map.ptr[i].key.via.str;
        if (!is_field(name))
            return error_set(err, ERROR_CORRUPT, "a verdict with the field '%.*s', which none has",
                             name->size < 40 ? (int)name->size : 40, name->ptr);
    }
    return 0;
}

static int read_verdict(const View *v, void *out, Error *err)
{
    return check_fields(v, err) || verdict_read(v, out, err) ? -1 : 0;
}

int job_read_verdict(const void *data, size_t len, Verdict *out, Error *err)
{
    return view_read(data, len, "a verdict", read_verdict, out, err);
}
