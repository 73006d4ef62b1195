/* The worker's loop. A job that this process holds always ends in one call of queue_complete,
 * queue_bury, queue_give_up or queue_hand_back, or its lease was lost. */
#include "eval/serve/eval_worker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/stop.h"
#include "eval/serve/job.h"
#include "eval/serve/precompile.h"
#include "eval/serve/seal.h"
#include "queue/queue.h"

enum { DRAIN_S = 5, REAP_S = 2, VERDICT_MAX = QUEUE_MAX_BODY };

typedef struct {
    const EvalWorkerOptions *opt;
    Queue *queue;
    Runner runner;
    Precompile *precompile; /* NULL: the runner compiles each job */
    const char *classes[2];
    QueueConsumer consumer;
    char name[128];     /* the consumer's */
    double started;     /* clock_unix */
    double announce_at; /* clock_seconds */
    long judged;
} Worker;

/* How the watch over a job ended. */

typedef enum {
    JOB_JUDGED,
    JOB_RUNNER_DIED,
    JOB_TIMED_OUT,
    JOB_LEASE_LOST,
    JOB_STOPPED,
    JOB_QUEUE_FAILED
} JobEnd;

/* Make a verdict without an evaluation. It holds nothing of this process, so that a rerun makes the
 * same bytes. */
static int own_verdict(const QueueJob *job, const char *why, Buffer *out)
{
    Job j;
    Error err;
    if (job_decode(job->body.data, job->body.len, &j, &err)) j = (Job){.source = ""};
    if (job_encode_failure(&j, why, out, &err)) return -1;
    return seal_add(SEAL_VERDICT, out, &err);
}

static const char *const died_thrice = "the evaluator died each time it judged this candidate";

static int dead_result(void *ctx, const QueueJob *job, Buffer *result)
{
    (void)ctx;
    return own_verdict(job, died_thrice, result);
}

static void set_consumer(Worker *w)
{
    unsigned nonce = 0;
    char host[64] = "";
    w->consumer = (QueueConsumer){w->name, w->classes, 0, dead_result, NULL, NULL};
    if (w->opt->consumer) {
        snprintf(w->name, sizeof w->name, "%s", w->opt->consumer);
        return;
    }
    gethostname(host, sizeof host - 1);
    if (getrandom(&nonce, sizeof nonce, 0) < 0) nonce = 0;
    snprintf(w->name, sizeof w->name, "%s:%d:%08x", host, (int)getpid(), nonce);
}

/* "HOST DEVICE", the name under which the queue remembers a device out of service. */
static void name_place(const Worker *w, char out[128])
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(out, 128, "%s %.60s", host, w->opt->runner.device);
}

/* Record in the queue that the device is sick, as err says. The worker ends with this error. */
static int leave_service(Worker *w, Error *err)
{
    char where[128];
    Error failure;
    const char *device_class =
        w->runner.device_class[0] ? w->runner.device_class : w->opt->runner.device;
    name_place(w, where);
    if (w->queue && queue_quarantine(w->queue, where, device_class, err->text, &failure))
        log_warn("the queue does not learn that %s left service: %s", where, failure.text);
    err->code = ERROR_DEVICE_SICK;
    return -1;
}

static int start_runner(Worker *w, Error *err)
{
    int rc = runner_start(&w->runner, &w->opt->runner, err);
    if (rc) return rc;
    w->classes[0] = w->runner.device_class;
    w->classes[1] = w->runner.arch;
    /* Real devices also take jobs for their architecture. A simulator takes only its own class. */
    w->consumer.n_classes = !w->runner.predicted && w->runner.arch[0] ? 2 : 1;
    return 0;
}

/* Tell submitters that this device serves its class: a record needs a second device. */
static int announce(Worker *w, Error *err)
{
    double now = clock_seconds();
    if (!w->runner.uuid[0] || now < w->announce_at) return 0;
    w->announce_at = now + queue_renew_interval(w->queue);
    return queue_announce(w->queue, w->runner.device_class, w->runner.uuid, err);
}

/* Wait for the runner's answer to one job. Meanwhile renew the lease, watch the deadline and the
 * stop signal, and let precompilation work. */
static JobEnd watch(Worker *w, const QueueJob *job, RunnerAnswer *answer, Error *err)
{
    double start = clock_seconds(), renew_at = start + queue_renew_interval(w->queue);
    double deadline = start + w->opt->deadline_s, stop_at = 0;
    for (;;) {
        double now = clock_seconds();
        if (stop_requested() && !stop_at) stop_at = now + DRAIN_S;
        double next = renew_at < deadline ? renew_at : deadline;
        if (stop_at && stop_at < next) next = stop_at;
        struct pollfd fds[2 + PRECOMPILE_MAX_COMPILERS] = {{w->runner.child.fd, POLLIN, 0},
                                                           {stop_at ? -1 : stop_fd(), POLLIN, 0}};
        double due = next;
        nfds_t n_fds =
            2 + (w->precompile ? (nfds_t)precompile_poll_fds(w->precompile, fds + 2, &due) : 0);
        if (due < next) next = due;
        int n = poll(fds, n_fds, next > now ? (int)((next - now) * 1000) + 1 : 0);
        if (n < 0 && errno != EINTR) {
            error_errno(err, "cannot wait for the runner");
            return JOB_QUEUE_FAILED;
        }
        /* Before the limits: an answer counts, however late this process reads it. */
        if (n > 0 && fds[0].revents)
            return runner_answer(&w->runner, answer, err) ? JOB_RUNNER_DIED : JOB_JUDGED;
        now = clock_seconds();
        if (now >= deadline) return JOB_TIMED_OUT;
        if (stop_at && now >= stop_at) return JOB_STOPPED;
        if (w->precompile && precompile_advance(w->precompile, err)) return JOB_QUEUE_FAILED;
        if (announce(w, err)) return JOB_QUEUE_FAILED;
        if (now < renew_at) continue;
        int held = queue_renew(w->queue, job, err);
        if (held <= 0) return held ? JOB_QUEUE_FAILED : JOB_LEASE_LOST;
        renew_at = clock_seconds() + queue_renew_interval(w->queue);
    }
}

/* The attempt failed. Give the job to another worker, or bury it with this verdict after the last
 * delivery. */
static int give_up_or_bury(Worker *w, const QueueJob *job, const Buffer *verdict, Error *err)
{
    if (job->delivery < QUEUE_MAX_DELIVERIES) return queue_give_up(w->queue, job, err);
    return queue_bury(w->queue, job, verdict->data, verdict->len, err);
}

/* End the job in the queue. Returns 1 when done, 0 when the lease was lost, -1 on an error. */
static int settle(Worker *w, const QueueJob *job, JobEnd end, RunnerAnswer *answer, Error *err)
{
    Buffer *verdict = &answer->verdict;
    QueueJob judged = *job;
    judged.brief = answer->brief;
    switch (end) {
    case JOB_JUDGED:
        if (answer->sick[0]) return queue_hand_back(w->queue, job, err);
        w->judged++;
        if (seal_add(SEAL_VERDICT, verdict, err)) return -1;
        if (answer->retry) return give_up_or_bury(w, job, verdict, err);
        return queue_complete(w->queue, &judged, verdict->data, verdict->len, err);
    case JOB_RUNNER_DIED:
        log_warn("job %.12s, delivery %d: %s", job->key, job->delivery, err->text);
        buffer_clear(verdict);
        if (own_verdict(job, died_thrice, verdict)) return -1;
        return give_up_or_bury(w, job, verdict, err);
    case JOB_TIMED_OUT: {
        char why[128];
        snprintf(why, sizeof why, "the evaluation took longer than %g s and was stopped",
                 w->opt->deadline_s);
        log_warn("job %.12s: %s", job->key, why);
        if (own_verdict(job, why, verdict)) return -1;
        return queue_bury(w->queue, job, verdict->data, verdict->len, err);
    }
    case JOB_STOPPED: return queue_hand_back(w->queue, job, err);
    case JOB_LEASE_LOST: return 0;
    case JOB_QUEUE_FAILED: break;
    }
    return -1;
}

/* An entry that is not what its stream and key say is not judged. It goes to other workers, whose
 * version may differ, and is buried after the last delivery. */
static int refuse_job(Worker *w, const QueueJob *job, const Error *why, Error *err)
{
    Buffer verdict;
    char text[700];
    buffer_init(&verdict, VERDICT_MAX);
    snprintf(text, sizeof text, "the job is malformed: %s", why->text);
    log_warn("job %.12s, delivery %d: %s", job->key, job->delivery, text);
    int rc = own_verdict(job, text, &verdict)
                 ? error_set(err, ERROR_INVALID, "the verdict of a malformed job cannot be written")
                 : give_up_or_bury(w, job, &verdict, err);
    buffer_release(&verdict);
    return rc < 0 ? -1 : 0;
}

static int serve_job(Worker *w, const PrecompiledJob *next, Error *err)
{
    const QueueJob *job = &next->job;
    RunnerAnswer answer = {0};
    Job checked;
    Error why;
    if (job_check(w->queue, job, &checked, &why)) return refuse_job(w, job, &why, err);
    buffer_init(&answer.verdict, VERDICT_MAX);
    JobEnd end = JOB_RUNNER_DIED;
    if (!runner_send(&w->runner, &job->body, next->key, &next->compiled, err))
        end = watch(w, job, &answer, err);
    if (end != JOB_JUDGED) runner_kill(&w->runner.child);
    int rc = settle(w, job, end, &answer, err);
    if (rc == 0) log_warn("job %.12s: its lease was lost; another evaluator has it", job->key);
    buffer_release(&answer.verdict);
    if (rc < 0 || !answer.sick[0]) return rc < 0 ? -1 : 0;
    error_set(err, ERROR_DEVICE_SICK, "%s", answer.sick);
    return leave_service(w, err);
}

static int take_job(Worker *w, PrecompiledJob *next, Error *err)
{
    if (w->precompile) return precompile_next(w->precompile, 1, next, err);
    return job_take(w->queue, &w->consumer, w->runner.uuid, 1, &next->job, err);
}

/* Open precompilation where it helps: a simulator itself keeps the cores busy. */
static int open_precompile(Worker *w, Error *err)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set), n = w->opt->compilers;
    if (n < 0) n = w->runner.predicted ? 0 : cores > 4 ? 4 : cores;
    if (!n || w->opt->once || !w->runner.arch[0]) return 0;
    PrecompileOptions opt = {.queue = w->queue,
                             .consumer = &w->consumer,
                             .arch = w->runner.arch,
                             .uuid = w->runner.uuid,
                             .measures = !w->runner.predicted,
                             .compilers = n};
    return precompile_open(&opt, &w->precompile, err);
}

static int serve(Worker *w, Error *err)
{
    while (!stop_requested()) {
        if (!w->runner.child.pid && start_runner(w, err))
            return err->code == ERROR_DEVICE_SICK ? leave_service(w, err) : -1;
        if (announce(w, err)) return -1;
        PrecompiledJob next = {.key = ""};
        int rc = take_job(w, &next, err);
        if (rc < 0) return -1;
        if (rc == 0) continue;
        rc = serve_job(w, &next, err);
        precompiled_job_release(&next);
        if (rc) return rc;
        if (w->opt->once) break;
    }
    return 0;
}

/* Remove an older record that this device is out of service. */
static int serves_again(Worker *w, Error *err)
{
    char where[128];
    name_place(w, where);
    return queue_serves(w->queue, where, w->started, err);
}

/* Start the runner and open the queue. The runner may say that it cannot serve the device: a wrong
 * name keeps its code; otherwise a new start would not help, so the queue learns that the device
 * is sick. */
static int begin(Worker *w, Error *err)
{
    const EvalWorkerOptions *o = w->opt;
    Error ignored;
    int started = start_runner(w, err);
    if (!started) {
        if (queue_open(o->redis, o->queue, VERDICT_HARNESS, &w->queue, err)) return -1;
        if (serves_again(w, err)) return -1;
        return open_precompile(w, err);
    }
    if (started < 0 || error_exit_status(err->code) == EXIT_STATUS_USAGE) return -1;
    queue_open(o->redis, o->queue, VERDICT_HARNESS, &w->queue, &ignored); /* NULL: none */
    return leave_service(w, err);
}

int eval_worker_run(const EvalWorkerOptions *opt, Error *err)
{
    Worker w = {.opt = opt, .runner = {.child = {.fd = -1}}, .started = clock_unix()};
    set_consumer(&w);
    if (seal_check_key(err)) return -1;
    int failed = begin(&w, err);
    if (!failed) {
        log_debug("serves %s as %s", w.classes[0], w.name);
        process_notify("READY=1");
        failed = serve(&w, err);
        process_notify("STOPPING=1");
    }
    runner_kill(&w.runner.child);
    precompile_close(w.precompile);
    process_reap(0, REAP_S); /* grandchildren that became ours */
    queue_close(w.queue);
    if (failed) return -1;
    log_debug("judged %ld jobs", w.judged);
    return 0;
}
