/* The runner's own side: opens the evaluator, answers job after job until its socket ends.
 *
 * The noop runner tests queue and supervision without a compiler: it answers every job with the
 * fixed verdict evaluator_error "noop", after what the source's first line asks for:
 *   // selftest: sleep SECONDS    // selftest: crash    // selftest: hang    // selftest: fail */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "eval/evaluator.h"
#include "eval/runner.h"
#include "eval/wire.h"
#include "queue/job.h"

enum { ANSWER_MAX = 4 << 20 };

typedef struct {
    int fd;
    const RunnerOptions *opt;
    Evaluator *evaluator;  /* NULL in a noop runner */
    uint64_t seed;         /* what it was opened with */
} Child;

static int send_record(int fd, const Record *r)
{
    Buffer b;
    Error err;
    buffer_init(&b, ANSWER_MAX);
    int rc = record_encode(r, &b, &err) || wire_write_frame(fd, b.data, b.len, &err);
    buffer_release(&b);
    return rc ? -1 : 0;
}

static _Noreturn void refuse(int fd, const Error *err)
{
    Record *r = record_new();
    record_text(r, "error", err->text);
    send_record(fd, r);
    _exit(1);
}

static int open_evaluator(Child *c, uint64_t seed, Error *err)
{
    if (c->evaluator) evaluator_close(c->evaluator);
    c->evaluator = NULL;
    c->seed = seed;
    EvaluatorOptions opt = {.device = c->opt->device, .seed = seed};
    return evaluator_open(&opt, &c->evaluator, err);
}

static int say_hello(Child *c)
{
    Record *r = record_new();
    const DeviceInfo *info = c->evaluator ? evaluator_device(c->evaluator) : NULL;
    record_text(r, "class", info ? info->device_class : c->opt->device);
    record_text(r, "arch", info ? info->arch : "");
    record_bool(r, "predicted", info ? info->predicted : 1);
    int rc = send_record(c->fd, r);
    record_free(r);
    return rc;
}

static int failed(const Job *job, const char *why, Record *verdict)
{
    job_verdict(job, outcome_name(OUTCOME_EVALUATOR_ERROR), why, verdict);
    return 1;
}

/* Returns whether another attempt may do better: the evaluator failed, not the candidate. */
static int judge(Child *c, const Job *job, Record *verdict)
{
    Error err = {0};
    if (strcmp(job->harness, JOB_HARNESS)) return failed(job, "the job asks for another version of the harness", verdict);
    if (job->seed != c->seed || !c->evaluator)
        if (open_evaluator(c, job->seed, &err)) return failed(job, err.text, verdict);
    Verdict *v = calloc(1, sizeof *v);
    if (!v) return failed(job, "no memory", verdict);
    evaluator_run(c->evaluator, job->task, job->source, job->source_len, v);
    int retry = v->outcome == OUTCOME_EVALUATOR_ERROR;
    if (!v->task_digest[0]) { /* it did not come to look at the task */
        failed(job, v->message, verdict);
    } else if (strcmp(v->task_digest, job->task_digest)) {
        retry = failed(job, "the evaluator has another version of the task than the submitter", verdict);
    } else { /* under the class that was asked for, which may be the architecture's */
        job_key(job->source, job->source_len, job->task_digest, job->device, job->seed, v->key);
        verdict_record(v, job->task, verdict);
    }
    verdict_release(v);
    free(v);
    return retry;
}

static int judge_nothing(const Job *job, Record *verdict)
{
    char line[64];
    const char *end = memchr(job->source, '\n', job->source_len);
    size_t n = end ? (size_t)(end - job->source) : job->source_len;
    snprintf(line, sizeof line, "%.*s", (int)n, job->source);
    double seconds = 0;
    if (sscanf(line, "// selftest: sleep %lf", &seconds) == 1) clock_sleep(seconds);
    if (!strcmp(line, "// selftest: crash")) raise(SIGSEGV);
    while (!strcmp(line, "// selftest: hang")) pause();
    job_verdict(job, outcome_name(OUTCOME_EVALUATOR_ERROR), "noop", verdict);
    return !strcmp(line, "// selftest: fail");
}

static int answer(Child *c, const Buffer *body)
{
    Job job;
    Error err = {0};
    Record *verdict = record_new(), *r = record_new();
    int retry;
    if (job_decode(body->data, body->len, &job, &err)) {
        job.source = "";
        retry = failed(&job, err.text, verdict);
    } else {
        retry = c->opt->noop ? judge_nothing(&job, verdict) : judge(c, &job, verdict);
    }
    Buffer encoded;
    buffer_init(&encoded, ANSWER_MAX / 2);
    int rc = record_encode(verdict, &encoded, &err);
    record_bool(r, "retry", retry);
    record_bytes(r, "verdict", encoded.data, encoded.len);
    if (!rc) rc = send_record(c->fd, r);
    buffer_release(&encoded);
    record_free(verdict);
    record_free(r);
    return rc;
}

_Noreturn void runner_child(int fd, const RunnerOptions *opt)
{
    Child c = {.fd = fd, .opt = opt};
    Error err = {0};
    if (!opt->noop && open_evaluator(&c, 1, &err)) refuse(fd, &err); /* 1: the default seed of quern-evaluate */
    if (say_hello(&c)) _exit(1);
    Buffer body;
    buffer_init(&body, ANSWER_MAX);
    while (wire_read_frame(fd, ANSWER_MAX, 0, &body, &err) == 1)
        if (answer(&c, &body)) _exit(1);
    _exit(0);
}
