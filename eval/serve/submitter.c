/* The submitter's loop: enqueue a window of jobs, poll their results, wait. Enqueueing is idempotent,
 * so any job may be enqueued again at any time. */
#include "eval/serve/submitter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "eval/serve/seal.h"

/* WINDOW: jobs in the queue at once. SILENCE_S: time without a result after which to warn. */
enum { WINDOW = 512, BATCH = 64, SILENCE_S = 30, ASK_PATIENCE_S = 300 };

struct Submitter {
    SubmitterHooks hooks;
    SubmitterOptions opt;
    Submission *jobs;
    long most, n, done;
    long outstanding; /* jobs in the queue without a verdict */
    long next;        /* every job before it is held, queued or done */
    long *slots;      /* hash table: key -> index + 1 */
    size_t n_slots;
    double heard;     /* when a job last finished */
    double submitted; /* when all open jobs were last enqueued again */
    int warned_silence, warned_lost;
};

Submitter *submitter_new(long most, const SubmitterHooks *hooks)
{
    Submitter *s = memory_alloc(sizeof *s);
    if (hooks) s->hooks = *hooks;
    s->most = most;
    s->jobs = memory_array((size_t)most, sizeof *s->jobs);
    s->n_slots = 2 * (size_t)most + 1;
    s->slots = memory_array(s->n_slots, sizeof *s->slots);
    return s;
}

void submitter_free(Submitter *s)
{
    if (!s) return;
    for (long i = 0; i < s->n; i++) free(s->jobs[i].verdict);
    free(s->jobs);
    free(s->slots);
    free(s);
}

static long *slot_of(const Submitter *s, const char *key)
{
    size_t at = random_hash(key, strlen(key)) % s->n_slots;
    while (s->slots[at] && strcmp(s->jobs[s->slots[at] - 1].key, key)) at = (at + 1) % s->n_slots;
    return &s->slots[at];
}

long submitter_add(Submitter *s, const Job *job, int held)
{
    char key[DIGEST_HEX];
    job_key(job, key);
    long *slot = slot_of(s, key);
    if (*slot) return *slot - 1;
    if (s->n == s->most) abort();
    Submission *one = &s->jobs[s->n++];
    one->job = *job;
    one->held = held;
    memcpy(one->key, key, sizeof key);
    *slot = s->n;
    return s->n - 1;
}

long submitter_count(const Submitter *s)
{
    return s->n;
}

long submitter_done(const Submitter *s)
{
    return s->done;
}

const Submission *submitter_at(const Submitter *s, long index)
{
    return &s->jobs[index];
}

/* ---- verdicts ---- */

/* An encoded record, and what it says. */
typedef struct {
    const void *data;
    size_t len;
    Verdict verdict;
} Answer;

static int answer_read(Answer *a, const void *data, size_t len, Error *err)
{
    a->data = data;
    a->len = len;
    return job_read_verdict(data, len, &a->verdict, err);
}

static int keep(Submitter *s, Submission *one, const Answer *a, Error *err)
{
    if (one->verdict) return 0;
    s->outstanding -= one->queued;
    one->queued = 0;
    one->verdict = memory_alloc(a->len);
    one->len = a->len;
    memcpy(one->verdict, a->data, a->len);
    s->done++;
    if (!s->hooks.on_verdict) return 0;
    return s->hooks.on_verdict(s->hooks.ctx, one - s->jobs, &a->verdict, err);
}

int submitter_restore(Submitter *s, const void *data, size_t len, Error *err)
{
    Answer a;
    if (answer_read(&a, data, len, err)) return -1;
    long at = *slot_of(s, a.verdict.key);
    int rc = at ? keep(s, &s->jobs[at - 1], &a, err)
                : error_set(err, ERROR_CORRUPT, "a verdict of another job, %.16s", a.verdict.key);
    verdict_release(&a.verdict);
    return rc;
}

/* Keep the verdict evaluator_error, and write it to out. */
static int fail(Submitter *s, Submission *one, const char *why, Buffer *out, Error *err)
{
    Answer a;
    if (job_encode_failure(&one->job, why, out, err) || answer_read(&a, out->data, out->len, err))
        return -1;
    int rc = keep(s, one, &a, err);
    verdict_release(&a.verdict);
    return rc;
}

int submitter_give_up(Submitter *s, long index, const char *why, Error *err)
{
    Buffer b;
    buffer_init(&b, QUEUE_MAX_BODY);
    int rc = fail(s, &s->jobs[index], why, &b, err);
    buffer_release(&b);
    return rc;
}

/* The queue's result is no verdict of its job: bury the job. */
static int bury(Submitter *s, Submission *one, const Error *why, Error *err)
{
    char text[700];
    Buffer body, verdict;
    snprintf(text, sizeof text, "the queue's result is malformed: %s", why->text);
    log_warn("job %.12s: %s", one->key, text);
    buffer_init(&body, QUEUE_MAX_BODY);
    buffer_init(&verdict, QUEUE_MAX_BODY);
    int rc = -1;
    if (!fail(s, one, text, &verdict, err) && !seal_add(SEAL_VERDICT, &verdict, err) &&
        !job_encode(&one->job, &body, err)) {
        QueueNew job = {one->job.device, one->key, body.data, body.len, 0, NULL};
        rc = queue_refuse(s->opt.queue, &job, verdict.data, verdict.len, err);
    }
    buffer_release(&body);
    buffer_release(&verdict);
    return rc;
}

/* The result of a finished job. *why: why it is no verdict of this job. */
static int is_verdict_of(const Submission *one, const QueueResult *r, Answer *a, Error *why)
{
    size_t len = r->len;
    if (seal_open(SEAL_VERDICT, r->data, &len, why) || answer_read(a, r->data, len, why)) return 0;
    if (!strcmp(a->verdict.key, one->key)) return 1;
    error_set(why, ERROR_CORRUPT, "a verdict of another job, %.16s", a->verdict.key);
    verdict_release(&a->verdict);
    return 0;
}

/* ---- the queue ---- */

static int enqueue(Submitter *s, const long *indices, size_t n, Error *err)
{
    QueueNew jobs[BATCH] = {{0}};
    QueueState states[BATCH];
    Buffer bodies[BATCH];
    int failed = 0;
    for (size_t i = 0; i < n; i++) {
        const Submission *one = &s->jobs[indices[i]];
        buffer_init(&bodies[i], QUEUE_MAX_BODY);
        failed |= job_encode(&one->job, &bodies[i], err);
        jobs[i] = (QueueNew){one->job.device, one->key,      bodies[i].data,
                             bodies[i].len,   s->opt.urgent, one->job.task};
    }
    failed = failed || queue_enqueue(s->opt.queue, jobs, n, states, err);
    for (size_t i = 0; i < n; i++) buffer_release(&bodies[i]);
    if (failed) return -1;
    for (size_t i = 0; i < n; i++) s->jobs[indices[i]].queued = 1;
    s->outstanding += (long)n;
    return 0;
}

int submitter_enqueue(Submitter *s, long index, Error *err)
{
    return s->jobs[index].queued ? 0 : enqueue(s, &index, 1, err);
}

/* Fill the window. */
static int submit(Submitter *s, Error *err)
{
    while (s->next < s->n && s->outstanding < WINDOW) {
        long indices[BATCH];
        size_t n = 0;
        for (; s->next < s->n && n < BATCH && s->outstanding + (long)n < WINDOW; s->next++) {
            const Submission *one = &s->jobs[s->next];
            if (!one->verdict && !one->queued && !one->held) indices[n++] = s->next;
        }
        if (n && enqueue(s, indices, n, err)) return -1;
    }
    return 0;
}

/* The server was emptied, or the result has expired. */
static void lost(Submitter *s, long index)
{
    Submission *one = &s->jobs[index];
    if (!one->queued) return;
    s->outstanding--;
    one->queued = 0;
    if (one->held) return;
    if (!s->warned_lost++) log_warn("the queue has lost jobs; putting them back");
    if (index < s->next) s->next = index;
}

static int take_result(Submitter *s, long index, const QueueResult *result, Error *err)
{
    Submission *one = &s->jobs[index];
    Answer a;
    Error why;
    if (result->state == QUEUE_ABSENT) lost(s, index);
    if (result->state != QUEUE_DONE && result->state != QUEUE_DEAD) return 0;
    s->heard = clock_seconds();
    if (!is_verdict_of(one, result, &a, &why)) return bury(s, one, &why, err);
    int rc = keep(s, one, &a, err);
    verdict_release(&a.verdict);
    return rc;
}

/* Poll all queued jobs, and the held ones, which an earlier run may have enqueued. */
static int collect(Submitter *s, Error *err)
{
    long indices[WINDOW];
    const char *keys[WINDOW] = {NULL};
    QueueResult results[WINDOW];
    size_t n = 0;
    for (long i = 0; i < s->n && n < WINDOW; i++) {
        const Submission *one = &s->jobs[i];
        if (one->verdict || !(one->queued || one->held)) continue;
        keys[n] = one->key;
        indices[n++] = i;
    }
    int failed = queue_poll(s->opt.queue, keys, n, results, err);
    for (size_t i = 0; i < n && !failed; i++) failed = take_result(s, indices[i], &results[i], err);
    queue_results_release(results, n);
    return failed;
}

/* Have all open jobs enqueued again. One in state queued may be on no stream: a stream was deleted by
 * hand, by a purge, or to make room. */
static void submit_again(Submitter *s)
{
    for (long i = 0; i < s->n; i++) s->jobs[i].queued = 0;
    s->outstanding = s->next = 0;
    s->submitted = clock_seconds();
}

/* Wait until a job finishes. Warn, and fail in the end, when none does. */
static int wait_for_results(Submitter *s, Error *err)
{
    const char *device = s->jobs[0].job.device;
    int woken = queue_wait(s->opt.queue, 1, err);
    if (woken < 0) return -1;
    if (woken) clock_sleep(0.005); /* collect several that finish together */
    double now = clock_seconds(), silence = now - s->heard,
           lease_s = 3 * queue_renew_interval(s->opt.queue);
    if (silence > lease_s && now - s->submitted > lease_s) submit_again(s);
    if (silence > SILENCE_S && !s->warned_silence++)
        log_warn("nothing was evaluated for %d s; is an evaluator (quern-evald --device %s) "
                 "running?",
                 SILENCE_S, device);
    if (silence > s->opt.patience_s)
        return error_set(err, ERROR_SERVER,
                         "nothing was evaluated for %.0f s (%ld of %ld done); is an evaluator "
                         "(quern-evald --device %s) running?",
                         silence, s->done, s->n, device);
    return 0;
}

int submitter_run(Submitter *s, const SubmitterOptions *opt, Error *err)
{
    if (seal_check_key(err)) return -1;
    s->opt = *opt;
    s->heard = clock_seconds();
    while (s->done < s->n) {
        long before = s->done;
        if (submit(s, err) || collect(s, err)) return -1;
        if (s->hooks.on_turn && s->hooks.on_turn(s->hooks.ctx, err)) return -1;
        if (stop_requested())
            return error_set(
                err, ERROR_STOPPED,
                "stopped with %ld of %ld candidates evaluated; the same command continues", s->done,
                s->n);
        if (s->done == before && wait_for_results(s, err)) return -1;
    }
    return 0;
}

/* ---- a few candidates ---- */

typedef struct {
    AskItem *items;
    long *index_of; /* by item */
    size_t n;
} Ask;

static int on_outcome(void *ctx, long index, const Verdict *v, Error *err)
{
    Ask *a = ctx;
    (void)err;
    for (size_t i = 0; i < a->n; i++)
        if (a->index_of[i] == index) a->items[i].outcome = v->outcome;
    return 0;
}

int submitter_ask(const AskOptions *opt, AskItem *items, size_t n, Error *err)
{
    Ask a = {items, memory_array(n, sizeof *a.index_of), n};
    Submitter *s = submitter_new((long)n, &(SubmitterHooks){.on_verdict = on_outcome, .ctx = &a});
    for (size_t i = 0; i < n; i++) {
        Job job;
        job_init(&job, items[i].task, opt->device_class, items[i].source, opt->seed);
        a.index_of[i] = submitter_add(s, &job, 0);
    }
    int rc = submitter_run(
        s, &(SubmitterOptions){.queue = opt->queue, .patience_s = ASK_PATIENCE_S}, err);
    submitter_free(s);
    free(a.index_of);
    return rc;
}
