#include "eval/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "eval/outcome.h"
#include "queue/job.h"
#include "queue/queue.h"

enum { DRAIN_S = 5, VERDICT_MAX = QUEUE_MAX_BODY };

typedef struct {
    const WorkerOptions *opt;
    Queue *queue;
    Runner runner;
    const char *classes[2];
    int n_classes;
    char consumer[128];
    long judged;
} Worker;

typedef enum { JUDGED, RUNNER_DIED, TOO_LATE, LEASE_LOST, STOPPED, QUEUE_FAILED } Course;

static void set_consumer(Worker *w)
{
    unsigned nonce = 0;
    char host[64] = "";
    if (w->opt->consumer) {
        snprintf(w->consumer, sizeof w->consumer, "%s", w->opt->consumer);
        return;
    }
    gethostname(host, sizeof host - 1);
    if (getrandom(&nonce, sizeof nonce, 0) < 0) nonce = 0;
    snprintf(w->consumer, sizeof w->consumer, "%s:%d:%08x", host, (int)getpid(), nonce);
}

static int start_runner(Worker *w, Error *err)
{
    int rc = runner_start(&w->runner, &w->opt->runner, err);
    if (rc) return rc;
    w->classes[0] = w->runner.device_class;
    w->classes[1] = w->runner.arch;
    /* a simulator speaks for its profile alone; real devices also take jobs for their architecture */
    w->n_classes = !w->runner.predicted && w->runner.arch[0] ? 2 : 1;
    return 0;
}

/* A verdict without an evaluation. Nothing in it tells of this run, so that a rerun's is the same. */
static int own_verdict(const QueueJob *job, const char *why, Buffer *out)
{
    Job j;
    Error err;
    if (job_decode(job->body.data, job->body.len, &j, &err)) j = (Job){.source = ""};
    Record *r = record_new();
    job_verdict(&j, outcome_name(OUTCOME_EVALUATOR_ERROR), why, r);
    int rc = record_encode(r, out, &err);
    record_free(r);
    return rc;
}

static const char *const died_thrice = "the evaluator died each time it judged this candidate";

static int dead_result(void *ctx, const QueueJob *job, Buffer *result)
{
    (void)ctx;
    return own_verdict(job, died_thrice, result);
}

/* Watch over one job: answer, lease, deadline and stop. */
static Course watch(Worker *w, const QueueJob *job, Answer *answer, Error *err)
{
    double start = clock_seconds(), renew_at = start + queue_renew_interval(w->queue);
    double deadline = start + w->opt->deadline_s, stop_at = 0;
    for (;;) {
        double now = clock_seconds();
        if (stop_requested() && !stop_at) stop_at = now + DRAIN_S;
        if (now >= deadline) return TOO_LATE;
        if (stop_at && now >= stop_at) return STOPPED;
        double next = renew_at < deadline ? renew_at : deadline;
        if (stop_at && stop_at < next) next = stop_at;
        struct pollfd fds[2] = {{w->runner.fd, POLLIN, 0}, {stop_at ? -1 : stop_fd(), POLLIN, 0}};
        int n = poll(fds, 2, next > now ? (int)((next - now) * 1000) + 1 : 0);
        if (n < 0 && errno != EINTR) {
            error_errno(err, "cannot wait for the runner");
            return QUEUE_FAILED;
        }
        if (n > 0 && fds[0].revents) return runner_answer(&w->runner, answer, err) ? RUNNER_DIED : JUDGED;
        if (clock_seconds() < renew_at) continue;
        int held = queue_renew(w->queue, job, w->consumer, err);
        if (held <= 0) return held ? QUEUE_FAILED : LEASE_LOST;
        renew_at = clock_seconds() + queue_renew_interval(w->queue);
    }
}

/* The attempt failed: others may try; after the last, the job is dead with this verdict. */
static int give_up_or_bury(Worker *w, const QueueJob *job, const Buffer *verdict, Error *err)
{
    if (job->delivery < QUEUE_MAX_DELIVERIES) return queue_give_up(w->queue, job, w->consumer, err);
    return queue_bury(w->queue, job, w->consumer, verdict->data, verdict->len, err);
}

/* What follows for the queue: 1 done, 0 the lease was lost, -1. */
static int settle(Worker *w, const QueueJob *job, Course course, Answer *answer, Error *err)
{
    Buffer *verdict = &answer->verdict;
    switch (course) {
    case JUDGED:
        w->judged++;
        if (answer->retry) return give_up_or_bury(w, job, verdict, err);
        return queue_complete(w->queue, job, w->consumer, verdict->data, verdict->len, err);
    case RUNNER_DIED:
        log_warn("job %.12s, delivery %d: %s", job->key, job->delivery, err->text);
        buffer_clear(verdict);
        if (own_verdict(job, died_thrice, verdict)) return -1;
        return give_up_or_bury(w, job, verdict, err);
    case TOO_LATE: {
        char why[128];
        snprintf(why, sizeof why, "the evaluation took longer than %g s and was stopped", w->opt->deadline_s);
        log_warn("job %.12s: %s", job->key, why);
        if (own_verdict(job, why, verdict)) return -1;
        return queue_bury(w->queue, job, w->consumer, verdict->data, verdict->len, err);
    }
    case STOPPED:
        return queue_hand_back(w->queue, job, w->consumer, err);
    case LEASE_LOST:
        return 0;
    case QUEUE_FAILED:
        break;
    }
    return -1;
}

static int serve_job(Worker *w, const QueueJob *job, Error *err)
{
    Answer answer = {0};
    buffer_init(&answer.verdict, VERDICT_MAX);
    Course course = RUNNER_DIED;
    if (!runner_send(&w->runner, job->body.data, job->body.len, err)) course = watch(w, job, &answer, err);
    if (course != JUDGED) runner_kill(&w->runner);
    int rc = settle(w, job, course, &answer, err);
    if (rc == 0) log_warn("job %.12s: its lease was lost; another evaluator has it", job->key);
    buffer_release(&answer.verdict);
    return rc < 0 ? -1 : 0;
}

static int serve(Worker *w, Error *err)
{
    while (!stop_requested()) {
        if (!w->runner.pid && start_runner(w, err)) return -1;
        QueueJob job;
        int rc = queue_take(w->queue, w->classes, w->n_classes, w->consumer, 1, dead_result, w, &job, err);
        if (rc < 0) return -1;
        if (rc == 0) continue;
        rc = serve_job(w, &job, err);
        queue_job_release(&job);
        if (rc) return -1;
        if (w->opt->once) break;
    }
    return 0;
}

int worker_run(const WorkerOptions *opt, Error *err)
{
    Worker w = {.opt = opt, .runner = {.fd = -1}};
    set_consumer(&w);
    int rc = start_runner(&w, err);
    if (!rc) rc = queue_open(opt->redis, opt->queue, &w.queue, err);
    if (!rc) {
        log_debug("serves %s as %s", w.classes[0], w.consumer);
        rc = serve(&w, err);
    }
    runner_kill(&w.runner);
    queue_close(w.queue);
    if (!rc) log_debug("judged %ld jobs", w.judged);
    return rc;
}
