/* The rule for records and the merge of two verdicts. */
#include "eval/serve/second_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"

static const double record_score = 3, times_best = 2, agreement = 0.9;
static const uint64_t other_inputs = 1ull << 60; /* larger than every seed of quern-evaluate */

static int best_of_item(const View *item, const TaskSet *tasks, double *best, Error *err)
{
    const char *name;
    size_t n;
    double score;
    if (view_text(item, "task", &name, &n, err) || view_float(item, "score", &score, err))
        return -1;
    for (int i = 0; i < tasks->n; i++)
        if (strlen(tasks->tasks[i]->name) == n && !memcmp(tasks->tasks[i]->name, name, n) &&
            score > best[i])
            best[i] = score;
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

static int has_outcome(const View *v, Outcome outcome)
{
    const char *s, *name = outcome_name(outcome);
    size_t n;
    return !view_text(v, "outcome", &s, &n, NULL) && n == strlen(name) && !memcmp(s, name, n);
}

static void copy_text(const View *v, const char *key, char *out, size_t size)
{
    const char *s = "";
    size_t n = 0;
    if (view_text(v, key, &s, &n, NULL)) n = 0;
    snprintf(out, size, "%.*s", (int)n, s);
}

static void copy_uuid(const View *verdict, char *out, size_t size)
{
    View detail;
    out[0] = 0;
    if (view_has(verdict, "detail") && !view_map(verdict, "detail", &detail, NULL) &&
        view_has(&detail, "uuid"))
        copy_text(&detail, "uuid", out, size);
}

/* The score that a record exceeds. The baseline counts as known, with score 1: a pool below 1 does
 * not lower the limit. */
static double record_limit(double best)
{
    if (best <= 0) return record_score;
    double twice = times_best * (best > 1 ? best : 1);
    return twice < record_score ? twice : record_score;
}

int second_device_job(const Job *first, const View *verdict, double best, Job *out)
{
    int predicted = 1;
    double score = 0;
    if (!has_outcome(verdict, OUTCOME_OK) || view_bool(verdict, "predicted", &predicted, NULL) ||
        predicted || view_float(verdict, "score", &score, NULL) || score <= record_limit(best))
        return 0;
    *out = *first;
    out->seed = first->seed ^ other_inputs;
    /* The GPU's own class, also when the first job asked for its architecture. */
    copy_text(verdict, "device", out->device, sizeof out->device);
    copy_uuid(verdict, out->not_on, sizeof out->not_on);
    return 1;
}

void second_device_absent(const Job *second, Record *r)
{
    char why[128];
    snprintf(why, sizeof why, "no other device of the class %s was there", second->device);
    job_verdict(second, OUTCOME_EVALUATOR_ERROR, why, r);
}

static int put_other(const View *v, Record *r, Error *err)
{
    static const char *const numbers[] = {"score", "speedup", "low",
                                          "high",  "time_us", "baseline_us"};
    Record *other = record_map(r, "other");
    char uuid[48], outcome[32];
    copy_uuid(v, uuid, sizeof uuid);
    copy_text(v, "outcome", outcome, sizeof outcome);
    record_text(other, "uuid", uuid);
    record_text(other, "outcome", outcome);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double x;
        if (view_float(v, numbers[i], &x, err)) return -1;
        record_float(other, numbers[i], x);
    }
    return 0;
}

static void put_message(Record *r, const char *format, const char *text)
{
    char message[2200];
    snprintf(message, sizeof message, format, text);
    record_text(r, "message", message);
}

int second_device_merge(const View *first, const View *second, Record *r, Error *err)
{
    double a, b;
    char text[2048], uuid[2][48];
    if (view_float(first, "score", &a, err) || view_float(second, "score", &b, err)) return -1;
    copy_text(second, "message", text, sizeof text);
    if (has_outcome(second, OUTCOME_EVALUATOR_ERROR)) { /* says nothing about the candidate */
        record_text(r, "confirmed", "alone");
        put_message(r, "unconfirmed: %s", text);
        record_copy(r, first);
        return 0;
    }
    int judged = has_outcome(second, OUTCOME_OK),
        agree = judged && (a < b ? a : b) >= agreement * (a < b ? b : a);
    const View *lower = b < a ? second : first;
    copy_text(first, "key", text, sizeof text);
    record_text(r, "key", text);
    record_text(r, "confirmed", agree ? "yes" : "no");
    copy_uuid(first, uuid[0], sizeof uuid[0]);
    copy_uuid(second, uuid[1], sizeof uuid[1]);
    if (judged && !agree) {
        snprintf(text, sizeof text, "%.3f on %s, %.3f on %s", a, uuid[0], b, uuid[1]);
        put_message(r, "two devices of the class disagree: %s", text);
    } else if (!judged) {
        copy_text(second, "message", text, sizeof text);
        put_message(r, "on a second device, with other inputs: %s", text);
    }
    if (put_other(lower == first ? second : first, r, err)) return -1;
    record_copy(r, lower);
    return 0;
}
