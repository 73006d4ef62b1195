/* The runner's own side: it opens the evaluator and answers jobs until its socket ends. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "eval/compile/wire.h"
#include "eval/device/device.h"
#include "eval/judge/evaluator.h"
#include "eval/serve/job.h"
#include "eval/serve/runner.h"

enum { ANSWER_MAX = 4 << 20 };

typedef struct {
    int fd;
    const RunnerOptions *opt;
    Evaluator *evaluator;   /* NULL in a noop runner */
    char sick[RUNNER_SICK]; /* why the device must leave service, or "" */
    int brief;              /* the last job was timed at other sizes than its class times */
} Child;

static int send_record(int fd, const Record *r)
{
    Buffer b;
    Error err;
    buffer_init(&b, ANSWER_MAX);
    int failed = record_encode(r, &b, &err) || wire_write_frame(fd, b.data, b.len, &err);
    buffer_release(&b);
    return failed;
}

static _Noreturn void refuse(int fd, const Error *err)
{
    Record *r = record_new();
    record_text(r, "error", err->text);
    record_int(r, "code", err->code);
    send_record(fd, r);
    _exit(1);
}

static int open_evaluator(Child *c, uint64_t seed, Error *err)
{
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
    record_text(r, "uuid", info ? info->uuid : c->opt->uuid ? c->opt->uuid : "");
    int rc = send_record(c->fd, r);
    record_free(r);
    return rc;
}

static int failed(const Job *job, const char *why, Record *verdict)
{
    job_verdict(job, OUTCOME_EVALUATOR_ERROR, why, verdict);
    return 1;
}

/* An evaluator's error of this code takes its device out of service. */
static void note_sickness(Child *c, ErrorCode code, const char *message)
{
    if (code == ERROR_DEVICE_SICK) snprintf(c->sick, sizeof c->sick, "%s", message);
}

/* Judge one job. Returns whether another attempt may succeed: the evaluator failed, not the
 * candidate. */
static int judge(Child *c, const Job *job, Record *verdict)
{
    Error err = {0};
    if (strcmp(job->harness, VERDICT_HARNESS))
        return failed(job, "the job asks for another version of the harness", verdict);
    if (!c->evaluator && open_evaluator(c, job->seed, &err)) {
        note_sickness(c, err.code, err.text);
        return failed(job, err.text, verdict);
    }
    evaluator_reseed(c->evaluator, job->seed);
    evaluator_sanitize_all(c->evaluator, job->sanitize);
    Verdict v = {0};
    evaluator_run(c->evaluator, job->task, job->source, job->source_len, &v);
    int retry = v.outcome == OUTCOME_EVALUATOR_ERROR;
    c->brief = v.left_own;
    if (retry) note_sickness(c, v.error, v.message);
    if (!v.task_digest[0]) { /* it did not come to look at the task */
        failed(job, v.message, verdict);
    } else if (strcmp(v.task_digest, job->task_digest)) {
        retry = failed(job, "the evaluator has another version of the task than the submitter",
                       verdict);
    } else { /* the key is of the job's class, which may be an architecture */
        job_key(job, v.key);
        verdict_record(&v, job->task, verdict);
    }
    verdict_release(&v);
    return retry;
}

/* Read the rest of a job's frame: the compilation of a precompiled job. */
static void take_compiled(Child *c, WireCursor *cursor)
{
    const char *key, *reply;
    size_t key_len, len;
    char digits[DIGEST_HEX];
    if (!c->evaluator || wire_get(cursor, &key, &key_len) || wire_get(cursor, &reply, &len)) return;
    snprintf(digits, sizeof digits, "%.*s", (int)key_len, key);
    evaluator_offer(c->evaluator, digits, reply, len);
}

static int answer(Child *c, const Buffer *frame)
{
    Job job;
    Error err = {0};
    Record *verdict = record_new(), *r = record_new();
    int retry;
    WireCursor cursor = {frame->data, frame->data + frame->len};
    const char *body = "";
    size_t len = 0;
    if (wire_get(&cursor, &body, &len)) len = 0;
    take_compiled(c, &cursor);
    c->brief = 0;
    if (job_decode(body, len, &job, &err)) {
        job.source = "";
        retry = failed(&job, err.text, verdict);
    } else {
        retry =
            c->opt->noop ? runner_noop(c->opt, &job, verdict, c->sick) : judge(c, &job, verdict);
    }
    Buffer encoded;
    buffer_init(&encoded, ANSWER_MAX / 2);
    int unsent = record_encode(verdict, &encoded, &err);
    record_bool(r, "brief", c->brief);
    record_bool(r, "retry", retry);
    if (c->sick[0]) record_text(r, "sick", c->sick);
    record_bytes(r, "verdict", encoded.data, encoded.len);
    unsent = unsent || send_record(c->fd, r);
    buffer_release(&encoded);
    record_free(verdict);
    record_free(r);
    return unsent;
}

_Noreturn void runner_child(int fd, const RunnerOptions *opt)
{
    Child c = {.fd = fd, .opt = opt};
    Error err = {0};
    const char *arg;
    const DeviceOps *ops = opt->noop ? NULL : device_find(opt->device, &arg, &err);
    if (ops && ops->use_only) ops->use_only(arg);
    /* 0: a job brings its seed. Without a compiler it would fail every job that there is. */
    if (!opt->noop && (open_evaluator(&c, 0, &err) || !evaluator_compiler(c.evaluator, &err)))
        refuse(fd, &err);
    if (say_hello(&c)) _exit(1);
    Buffer frame;
    buffer_init(&frame, RUNNER_MAX_JOB);
    while (wire_read_frame(fd, RUNNER_MAX_JOB, 0, &frame, &err) == 1)
        if (answer(&c, &frame)) _exit(1);
    _exit(0);
}
