/* Encoding of jobs, checks of what comes from the queue, and verdicts of jobs that were not
 * evaluated. A byte from the queue is believed only after job_check or job_check_verdict. */
#include "eval/serve/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/verdict/verdict_schema.h"
#include "eval/serve/seal.h"

void job_init(Job *job, const Task *task, const char *device_class, const char *source, size_t len,
              uint64_t seed)
{
    *job = (Job){.source = source, .source_len = len, .seed = seed};
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
    int rc = record_encode(r, out, err);
    record_free(r);
    return rc || seal_add(SEAL_JOB, out, err) ? -1 : 0;
}

static int copy_text(const View *v, const char *key, char *out, size_t size, Error *err)
{
    const char *s;
    size_t n;
    if (view_text(v, key, &s, &n, err)) return -1;
    if (n >= size || memchr(s, 0, n))
        return error_set(err, ERROR_LIMIT, "%s: %s expects at most %zu bytes of text", v->where,
                         key, size - 1);
    memcpy(out, s, n);
    out[n] = 0;
    return 0;
}

int job_decode(const void *data, size_t len, Job *out, Error *err)
{
    msgpack_zone zone;
    View v;
    int64_t seed = 0;
    *out = (Job){0};
    if (seal_open(SEAL_JOB, data, &len, err)) return -1;
    if (!msgpack_zone_init(&zone, 4096))
        return error_set(err, ERROR_MEMORY, "no memory to read a job");
    int rc = view_decode(data, len, "a job", &zone, &v, err);
    if (!rc)
        rc = copy_text(&v, "task", out->task, sizeof out->task, err) ||
             copy_text(&v, "task_digest", out->task_digest, sizeof out->task_digest, err) ||
             copy_text(&v, "device", out->device, sizeof out->device, err) ||
             copy_text(&v, "harness", out->harness, sizeof out->harness, err) ||
             view_int(&v, "seed", &seed, err) ||
             (view_has(&v, "sanitize") && view_bool(&v, "sanitize", &out->sanitize, err)) ||
             (view_has(&v, "not_on") &&
              copy_text(&v, "not_on", out->not_on, sizeof out->not_on, err)) ||
             view_text(&v, "source", &out->source, &out->source_len, err);
    out->seed = (uint64_t)seed;
    msgpack_zone_destroy(&zone);
    return rc ? -1 : 0;
}

/* ---- what comes from the queue ---- */

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

static int check_number(const char *name, double value, Error *err)
{
    if (isfinite(value) && value >= 0) return 0;
    return error_set(err, ERROR_CORRUPT,
                     "a verdict's %s: expected a number of at least 0, found %g", name, value);
}

/* A prediction's factor is 1 or more, or 0 where it is not known; a measurement has none. */
static int check_factors(const Verdict *v, Error *err)
{
    static const double limit = 100;
    if (check_number("occupancy", v->occupancy, err) ||
        check_number("error factor", v->error_factor, err))
        return -1;
    double e = v->error_factor;
    if (v->occupancy > 1 || (e != 0 && (e < 1 || e > limit || !v->predicted)))
        return error_set(err, ERROR_CORRUPT,
                         "a verdict, predicted %d, with occupancy %g and error factor %g",
                         v->predicted, v->occupancy, v->error_factor);
    return 0;
}

/* A prediction's speedup is the quotient of its times, and a win names its second seed. */
static int check_prediction(const Verdict *v, Error *err)
{
    static const double rounding = 1e-9;
    double quotient = v->baseline_us / v->time_us;
    if (fabs(v->speedup - quotient) > rounding * quotient)
        return error_set(err, ERROR_CORRUPT, "a verdict's predicted speedup %g, of times %g and %g",
                         v->speedup, v->baseline_us, v->time_us);
    if (v->low > 1 && !v->second_seed)
        return error_set(err, ERROR_CORRUPT, "a verdict of a win %g without a second seed", v->low);
    return 0;
}

static int check_numbers(const Verdict *v, Error *err)
{
    static const double rounding = 0.001; /* score is low, rounded towards 1 */
    int ok = v->outcome == OUTCOME_OK;
    if (check_number("score", v->score, err) || check_number("speedup", v->speedup, err) ||
        check_number("low", v->low, err) || check_number("high", v->high, err) ||
        check_number("time_us", v->time_us, err) ||
        check_number("baseline_us", v->baseline_us, err) ||
        check_number("light_us", v->light_us, err) || check_factors(v, err))
        return -1;
    if (v->score > 0 && v->time_us > 0 && v->baseline_us > 0 ? !ok : ok)
        return error_set(err, ERROR_CORRUPT, "a verdict %s with score %g and times of %g and %g us",
                         outcome_name(v->outcome), v->score, v->time_us, v->baseline_us);
    if (ok && (v->low > v->speedup || v->speedup > v->high))
        return error_set(err, ERROR_CORRUPT, "a verdict's interval %g to %g without its speedup %g",
                         v->low, v->high, v->speedup);
    if (ok && fabs(v->score - v->low) > rounding * 1.001)
        return error_set(err, ERROR_CORRUPT, "a verdict's score %g, whose interval begins at %g",
                         v->score, v->low);
    if (ok && v->predicted && check_prediction(v, err)) return -1;
    const DeviceTiming *t = v->timing;
    for (int i = 0; t && i < t->n_counters; i++)
        if (check_number(t->counters[i].name, t->counters[i].value, err)) return -1;
    for (int i = 0; t && i < t->n_baseline_counters; i++)
        if (check_number(t->baseline_counters[i].name, t->baseline_counters[i].value, err))
            return -1;
    for (int i = 0; t && i < t->n; i++)
        if (check_number("sample", t->candidate_us[i], err) ||
            check_number("sample", t->baseline_us[i], err))
            return -1;
    return 0;
}

/* Refuses a field that no verdict from the queue has. */
static int check_names(const View *v, VerdictPlace place, Error *err)
{
    for (uint32_t i = 0; i < v->map->via.map.size; i++) {
        const msgpack_object_str *name = &v->map->via.map.ptr[i].key.via.str;
        int known = 0;
        for (int k = 0; !known && k < verdict_n_fields; k++) {
            const VerdictField *f = &verdict_fields[k];
            known = f->place == place && strlen(f->name) == name->size &&
                    !memcmp(f->name, name->ptr, name->size);
        }
        if (!known)
            return error_set(err, ERROR_CORRUPT, "a verdict with the field '%.*s', which none has",
                             name->size < 40 ? (int)name->size : 40, name->ptr);
    }
    return 0;
}

/* A score names the seed of its inputs: without it nobody could judge again. */
static int check_fields(const Job *job, const View *record, const Verdict *v, Error *err)
{
    View detail;
    int has_detail = view_has(record, "detail"), has_seed = 0;
    if (check_names(record, VERDICT_RECORD, err)) return -1;
    if (has_detail) {
        if (view_map(record, "detail", &detail, err) || check_names(&detail, VERDICT_DETAIL, err))
            return -1;
        has_seed = view_has(&detail, "seed");
    }
    if (has_seed ? v->seed == job->seed : v->outcome != OUTCOME_OK) return 0;
    return error_set(err, ERROR_CORRUPT, "a verdict's seed: expected %llu, found %llu",
                     (unsigned long long)job->seed, (unsigned long long)v->seed);
}

/* An architecture is a class of several devices, all of them real. */
static int of_class(const char *device, const char *class)
{
    if (!strncmp(class, "sm_", 3)) return device[0] && strncmp(device, "sim:", 4);
    return !strcmp(device, class);
}

static int check_identity(const Job *job, const View *record, const Verdict *v, Error *err)
{
    static const char *const submitters[] = {"id", "confirmed", "other"};
    char key[DIGEST_HEX], source_digest[DIGEST_HEX], task[sizeof job->task], harness[32];
    Digest d;
    digest_of(job->source, job->source_len, &d);
    digest_hex(&d, source_digest);
    job_key(job, key);
    if (copy_text(record, "task", task, sizeof task, err) ||
        copy_text(record, "harness", harness, sizeof harness, err))
        return -1;
    for (size_t i = 0; i < sizeof submitters / sizeof *submitters; i++)
        if (view_has(record, submitters[i]))
            return error_set(err, ERROR_CORRUPT, "a verdict with the submitter's field %s",
                             submitters[i]);
    if (strcmp(v->key, key)) return differs("a verdict's key", key, v->key, err);
    if (strcmp(task, job->task)) return differs("a verdict's task", job->task, task, err);
    if (strcmp(harness, VERDICT_HARNESS))
        return differs("a verdict's harness", VERDICT_HARNESS, harness, err);
    if (!of_class(v->device, job->device))
        return differs("a verdict's device", job->device, v->device, err);
    if (strcmp(v->task_digest, job->task_digest))
        return differs("a verdict's task digest", job->task_digest, v->task_digest, err);
    if (strcmp(v->source_digest, source_digest))
        return differs("a verdict's source digest", source_digest, v->source_digest, err);
    if (v->predicted != !strncmp(v->device, "sim:", 4))
        return error_set(err, ERROR_CORRUPT, "a verdict of %.60s that says predicted %d", v->device,
                         v->predicted);
    return 0;
}

int job_check_verdict(const Job *job, const void *data, size_t *len, Error *err)
{
    msgpack_zone zone;
    View record;
    Verdict *v;
    if (seal_open(SEAL_VERDICT, data, len, err)) return -1;
    if (!msgpack_zone_init(&zone, 4096)) return error_set(err, ERROR_MEMORY, "no memory");
    v = memory_alloc(sizeof *v);
    int rc =
        view_decode(data, *len, "a verdict", &zone, &record, err) || verdict_read(&record, v, err);
    if (!rc) {
        rc = check_fields(job, &record, v, err) || check_identity(job, &record, v, err) ||
             check_numbers(v, err);
        verdict_release(v);
    }
    free(v);
    msgpack_zone_destroy(&zone);
    if (rc) err->code = ERROR_CORRUPT;
    return rc ? -1 : 0;
}

int job_take(Queue *q, const char *const *classes, int n, const char *consumer, const char *uuid,
             double timeout_s, QueueDeadResult *dead_result, void *ctx, QueueJob *job, Error *err)
{
    Job j;
    Error ignored;
    int rc = queue_take(q, classes, n, consumer, timeout_s, dead_result, ctx, job, err);
    if (rc <= 0 || !uuid[0] || job_decode(job->body.data, job->body.len, &j, &ignored) ||
        strcmp(j.not_on, uuid))
        return rc;
    rc = queue_hand_back(q, job, consumer, err);
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
