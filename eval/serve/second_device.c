/* The rule for records, the merge of two verdicts, and the second jobs. */
#include "eval/serve/second_device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/words.h"

static const double record_score = 3, times_best = 2, agreement = 0.9;
static const double look_s = 0.5;                /* interval of the looks for second devices */
static const uint64_t other_inputs = 1ull << 60; /* larger than every seed of quern-evaluate */

static int best_of_item(const View *item, const TaskSet *tasks, double *best, Error *err)
{
    const char *name;
    size_t n;
    double score;
    if (view_text(item, "task", &name, &n, err) || view_float(item, "score", &score, err))
        return -1;
    for (int i = 0; i < tasks->n; i++)
        if (word_is(name, n, tasks->tasks[i]->name) && score > best[i]) best[i] = score;
    return 0;
}

int second_device_best_known(const char *pool, const TaskSet *tasks, double *best, Error *err)
{
    ArtifactReader *r;
    View v;
    int rc = 0, more = 0;
    for (int i = 0; i < tasks->n; i++) best[i] = 0;
    if (!pool) return 0;
    if (artifact_open(pool, "pool", &r, err)) return -1;
    while (!rc && (more = artifact_next(r, &v, err)) == 1) rc = best_of_item(&v, tasks, best, err);
    artifact_close(r);
    return rc || more < 0 ? -1 : 0;
}

/* The score that a record exceeds. The baseline counts as known, with score 1: a pool below 1 does
 * not lower the limit. */
static double record_limit(double best)
{
    if (best <= 0) return record_score;
    double twice = times_best * (best > 1 ? best : 1);
    return twice < record_score ? twice : record_score;
}

int second_device_job(const Job *first, const Verdict *v, double best, Job *out)
{
    if (v->outcome != OUTCOME_OK || v->predicted || v->score <= record_limit(best)) return 0;
    *out = *first;
    out->seed = first->seed ^ other_inputs;
    /* The GPU's own class, also when the first job asked for its architecture. */
    snprintf(out->device, sizeof out->device, "%s", v->device);
    snprintf(out->not_on, sizeof out->not_on, "%s", v->uuid);
    return 1;
}

/* ---- the merge of two verdicts ---- */

static void put_other(const Verdict *v, Record *r)
{
    Record *other = record_map(r, "other");
    record_text(other, "uuid", v->uuid);
    record_text(other, "outcome", outcome_name(v->outcome));
    record_float(other, "score", v->score);
    record_float(other, "speedup", v->speedup);
    record_float(other, "low", v->low);
    record_float(other, "high", v->high);
    record_float(other, "time_us", v->time_us);
    record_float(other, "baseline_us", v->baseline_us);
}

static void put_message(Record *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put_message(Record *r, const char *format, ...)
{
    char message[2400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    record_text(r, "message", message);
}

/* Write the fields of the merged verdict. Returns whether the others are the second's. */
static int merge(const Verdict *a, const Verdict *b, Record *r)
{
    if (b->outcome == OUTCOME_EVALUATOR_ERROR) { /* says nothing about the candidate */
        record_text(r, "confirmed", "alone");
        put_message(r, "unconfirmed: %s", b->message);
        return 0;
    }
    double low = a->score < b->score ? a->score : b->score,
           high = a->score < b->score ? b->score : a->score;
    int judged = b->outcome == OUTCOME_OK, agree = judged && low >= agreement * high;
    record_text(r, "key", a->key);
    record_text(r, "confirmed", agree ? "yes" : "no");
    if (!judged)
        put_message(r, "on a second device, with other inputs: %s", b->message);
    else if (!agree)
        put_message(r, "two devices of the class disagree: %.3f on %s, %.3f on %s", a->score,
                    a->uuid, b->score, b->uuid);
    put_other(b->score < a->score ? a : b, r);
    return b->score < a->score;
}

int second_device_merge(const View *first, const View *second, Record *r, Error *err)
{
    Verdict a, b;
    if (verdict_read(first, &a, err)) return -1;
    int failed = verdict_read(second, &b, err);
    if (!failed) {
        record_copy(r, merge(&a, &b, r) ? second : first);
        verdict_release(&b);
    }
    verdict_release(&a);
    return failed ? -1 : 0;
}

/* ---- the second jobs of a submitter ---- */

void second_devices_init(SecondDevices *s, long most)
{
    s->n_first = submitter_count(s->submitter);
    s->of = memory_array((size_t)most, sizeof *s->of);
}

void second_devices_release(SecondDevices *s)
{
    free(s->best);
    free(s->of);
}

void second_devices_verdict(SecondDevices *s, long index, const Verdict *v)
{
    const Job *first = &submitter_at(s->submitter, index)->job;
    Job job;
    int i = 0;
    if (index >= s->n_first) return;
    while (strcmp(s->tasks->tasks[i]->name, first->task)) i++; /* each sample's task is there */
    if (second_device_job(first, v, s->best[i], &job))
        s->of[index].job = submitter_add(s->submitter, &job, 1) + 1;
}

/* Without another device of the class wait for wait_s, unless the first device has served alone for
 * that long already. */
static int look(SecondDevices *s, long index, Error *err)
{
    const Submission *one = submitter_at(s->submitter, index);
    const Job *job = &one->job;
    double now = clock_seconds(), wait_s = job->not_on[0] ? s->wait_s : 0,
           *absent_since = &s->of[index].absent_since;
    QueueService service = {0};
    char why[128];
    int gone;
    if (wait_s > 0 && queue_service(s->queue, job->device, job->not_on, &service, err)) return -1;
    if (service.others) {
        *absent_since = 0;
        return submitter_enqueue(s->submitter, index, err);
    }
    if (!*absent_since) *absent_since = now;
    if (now - *absent_since < wait_s && service.served_s < wait_s) return 0;
    if (queue_withdraw(s->queue, one->key, &gone, err)) return -1;
    if (!gone) return 0;
    snprintf(why, sizeof why, "no other device of the class %s was there", job->device);
    return submitter_give_up(s->submitter, index, why, err);
}

int second_devices_look(SecondDevices *s, Error *err)
{
    if (clock_seconds() < s->next_look) return 0;
    for (long i = s->n_first; i < submitter_count(s->submitter); i++)
        if (!submitter_at(s->submitter, i)->verdict && look(s, i, err)) return -1;
    s->next_look = clock_seconds() + look_s;
    return 0;
}

const Submission *second_devices_of(const SecondDevices *s, long index)
{
    long job = s->of[index].job;
    return job ? submitter_at(s->submitter, job - 1) : NULL;
}
