/* The submitter's loop: enqueue a window of jobs, poll their results, journal each verdict, and
 * write the artifact in the order of the samples when all are there. A verdict is journalled before
 * it counts as done, so nothing is lost by a kill. */
#include "eval/serve/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "artifacts/journal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "eval/judge/seeds.h"
#include "eval/serve/advice.h"
#include "eval/serve/job.h"
#include "eval/serve/seal.h"
#include "eval/serve/second_device.h"
#include "queue/queue.h"
#include "tasks/task.h"

/* WINDOW: jobs in the queue at once. SILENCE_S: time without a result after which to warn. */
enum { WINDOW = 512, BATCH = 64, SILENCE_S = 30, MAX_NAMES = 64 * 1024, TASK_NAME_MAX = 63 };

static const double look_s = 0.5; /* interval of the checks for second devices */

typedef struct {
    View view;
    char *id, *task, *source; /* owned */
} Sample;

/* One distinct job. */
typedef struct {
    char key[DIGEST_HEX];
    Job job;       /* borrows the source of the first such sample */
    char *verdict; /* an encoded record, or NULL */
    size_t len;
    int queued;
    int refused;         /* results of the queue that were none of this job */
    int reject;          /* the last one is still there */
    long second;         /* index + 1 of the unit that confirms this one's record; 0: none */
    int is_second;       /* confirms a record */
    double absent_since; /* of a second: when its device was first found absent; 0: present */
} Unit;

typedef struct {
    const EvaluateOptions *opt;
    ArtifactReader *reader;
    TaskSet tasks;
    ArtifactSpec spec;
    Journal *journal;
    Queue *queue;
    Sample *samples;
    long n_samples;
    Unit *units;              /* in order of first use; second devices' units come last */
    long n_units, done, next; /* every unit before `next` is queued or done */
    long n_first;             /* units of the samples themselves */
    double *best;             /* best known score of each task */
    double next_look;         /* for second devices */
    long *unit_of;            /* index by (sample, device); -1: no code */
    long *slots;              /* hash table: key -> unit + 1 */
    size_t n_slots;
    double heard;       /* when a job last finished */
    double resubmitted; /* when all open jobs were last enqueued again */
    int warned_silence, warned_lost;
} Evaluate;

/* ---- the samples and their distinct jobs ---- */

static int read_samples(Evaluate *e, Error *err)
{
    if (artifact_open(e->opt->samples, "samples", &e->reader, err)) return -1;
    long count = artifact_count(e->reader);
    e->samples = memory_array((size_t)count, sizeof *e->samples);
    View v;
    int rc;
    while ((rc = artifact_next(e->reader, &v, err)) == 1) {
        Sample *s = &e->samples[e->n_samples++];
        s->view = v;
        if (!(s->id = view_strdup(&v, "id", err)) || !(s->task = view_strdup(&v, "task", err)) ||
            !(s->source = view_strdup(&v, "source", err)))
            return -1;
    }
    return rc;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct task names of the samples, sorted, separated by commas. */
static int task_names(const Evaluate *e, Buffer *names, Error *err)
{
    const char **all = memory_array((size_t)e->n_samples + 1, sizeof *all);
    int rc = 0;
    for (long i = 0; i < e->n_samples && !rc; i++) {
        all[i] = e->samples[i].task;
        if (!*all[i] || strlen(all[i]) > TASK_NAME_MAX || strpbrk(all[i], ",/*?[\\"))
            rc = error_set(err, ERROR_CORRUPT, "%s: '%.80s' is no task's name",
                           e->samples[i].view.where, all[i]);
    }
    if (!rc) qsort(all, (size_t)e->n_samples, sizeof *all, compare_names);
    for (long i = 0; i < e->n_samples && !rc; i++)
        if (!i || strcmp(all[i], all[i - 1]))
            buffer_printf(names, "%s%s", names->len ? "," : "", all[i]);
    free(all);
    return rc;
}

/* Load only the tasks that occur, so that a fault in another task does not matter. */
static int load_tasks(Evaluate *e, Error *err)
{
    Buffer names;
    buffer_init(&names, MAX_NAMES);
    int rc = task_names(e, &names, err);
    if (!rc && names.len) rc = taskset_load(NULL, names.data, &e->tasks, err);
    for (long i = 0; i < e->n_samples && !rc; i++) /* "all" and a set have the form of a name */
        if (!taskset_find(&e->tasks, e->samples[i].task, strlen(e->samples[i].task)))
            rc = error_set(err, ERROR_CORRUPT, "%s: '%.80s' is no task's name",
                           e->samples[i].view.where, e->samples[i].task);
    buffer_release(&names);
    return rc;
}

static int load_best(Evaluate *e, Error *err)
{
    e->best = memory_array((size_t)e->tasks.n + 1, sizeof *e->best);
    return second_device_best_known(e->opt->best, &e->tasks, e->best, err);
}

static long *slot_of(Evaluate *e, const char *key)
{
    size_t at = random_hash(key, strlen(key)) % e->n_slots;
    while (e->slots[at] && strcmp(e->units[e->slots[at] - 1].key, key)) at = (at + 1) % e->n_slots;
    return &e->slots[at];
}

/* Find or make the unit of a job. Returns its index + 1. */
static long unit_of_job(Evaluate *e, const Job *job, int is_second)
{
    char key[DIGEST_HEX];
    job_key(job, key);
    long *slot = slot_of(e, key);
    if (!*slot) {
        Unit *u = &e->units[e->n_units++];
        u->job = *job;
        u->is_second = is_second;
        memcpy(u->key, key, sizeof key);
        *slot = e->n_units;
    }
    return *slot;
}

static void add_unit(Evaluate *e, long sample, int device)
{
    const Sample *s = &e->samples[sample];
    long *unit = &e->unit_of[sample * e->opt->n_devices + device];
    *unit = -1;
    if (!*s->source) return;
    Job job;
    job_init(&job, taskset_find(&e->tasks, s->task, strlen(s->task)), e->opt->devices[device],
             s->source, strlen(s->source), e->opt->seed);
    job.sanitize = e->opt->sanitize && strncmp(job.device, "sim:", 4) != 0;
    *unit = unit_of_job(e, &job, 0) - 1;
}

static void find_units(Evaluate *e)
{
    size_t pairs = (size_t)e->n_samples * (size_t)e->opt->n_devices;
    e->n_slots = 4 * pairs + 1;
    e->slots = memory_array(e->n_slots, sizeof *e->slots);
    e->units = memory_array(2 * pairs, sizeof *e->units);
    e->unit_of = memory_array(pairs, sizeof *e->unit_of);
    for (long i = 0; i < e->n_samples; i++)
        for (int d = 0; d < e->opt->n_devices; d++) add_unit(e, i, d);
    e->n_first = e->n_units;
}

static int make_spec(Evaluate *e, Error *err)
{
    Buffer devices;
    buffer_init(&devices, 4096);
    for (int d = 0; d < e->opt->n_devices; d++)
        buffer_printf(&devices, "%s%s", d ? "," : "", e->opt->devices[d]);
    artifact_spec_config(&e->spec, "device", "%s", devices.data);
    artifact_spec_config(&e->spec, "harness", "%s", VERDICT_HARNESS);
    /* The report shows this; the seed itself is in the verdicts alone. */
    artifact_spec_config(&e->spec, "seed_digest", "%llu",
                         (unsigned long long)seed_derive(e->opt->seed, "header", ""));
    buffer_release(&devices);
    if (artifact_spec_input(&e->spec, e->opt->samples, err)) return -1;
    if (e->opt->best && artifact_spec_input(&e->spec, e->opt->best, err)) return -1;
    if (e->tasks.n) artifact_spec_input_digest(&e->spec, "tasks", e->tasks.digest);
    return 0;
}

/* ---- verdicts as they come ---- */

/* Make the unit of the second device when the verdict is a record. */
static int add_second(Evaluate *e, Unit *u, Error *err)
{
    msgpack_zone zone;
    View v;
    Job job;
    int i = 0;
    if (u->is_second) return 0;
    while (strcmp(e->tasks.tasks[i]->name, u->job.task)) i++; /* each sample's task is there */
    if (!msgpack_zone_init(&zone, 4096)) return error_set(err, ERROR_MEMORY, "no memory");
    int rc = view_decode(u->verdict, u->len, "a verdict", &zone, &v, err);
    if (!rc && second_device_job(&u->job, &v, e->best[i], &job))
        u->second = unit_of_job(e, &job, 1);
    msgpack_zone_destroy(&zone);
    return rc;
}

static int keep_verdict(Evaluate *e, Unit *u, const void *data, size_t len, Error *err)
{
    if (u->verdict) return 0;
    u->verdict = memory_alloc(len);
    u->len = len;
    memcpy(u->verdict, data, len);
    e->done++;
    return add_second(e, u, err);
}

/* Check that the data are a verdict of *unit. With *unit NULL, find it by the verdict's key. */
static int check_verdict(Evaluate *e, const void *data, size_t len, Unit **unit, Error *err)
{
    msgpack_zone zone;
    View v;
    if (!msgpack_zone_init(&zone, 4096)) return error_set(err, ERROR_MEMORY, "no memory");
    char *key =
        view_decode(data, len, "a verdict", &zone, &v, err) ? NULL : view_strdup(&v, "key", err);
    msgpack_zone_destroy(&zone);
    if (!key) return -1;
    long at = *slot_of(e, key);
    Unit *u = at ? &e->units[at - 1] : NULL;
    int rc = u && (!*unit || *unit == u)
                 ? 0
                 : error_set(err, ERROR_CORRUPT, "a verdict of another job, %.16s", key);
    *unit = u;
    free(key);
    return rc;
}

static int replay(void *ctx, const void *payload, size_t len, Error *err)
{
    Unit *u = NULL;
    if (check_verdict(ctx, payload, len, &u, err)) return -1;
    return keep_verdict(ctx, u, payload, len, err);
}

typedef struct {
    Evaluate *e;
    Unit *units[WINDOW];
} Polled;

static int take_result(void *ctx, size_t index, QueueState state, const void *result, size_t len,
                       Error *err)
{
    Polled *p = ctx;
    Evaluate *e = p->e;
    Unit *u = p->units[index];
    if (state == QUEUE_ABSENT && u->is_second) {
        u->queued = 0;
        return 0;
    }
    if (state == QUEUE_ABSENT) { /* the server was emptied, or the result has expired */
        if (!e->warned_lost++) log_warn("the queue has lost jobs; putting them back");
        u->queued = 0;
        if (u - e->units < e->next) e->next = u - e->units;
        return 0;
    }
    if (state != QUEUE_DONE && state != QUEUE_DEAD) return 0;
    e->heard = clock_seconds();
    if (job_check_verdict(&u->job, result, &len, err)) {
        log_warn("the queue's result of job %.16s is refused: %s", u->key, err->text);
        u->reject = 1;
        return 0;
    }
    return keep_verdict(e, u, result, len, err) || journal_append(e->journal, result, len, err) ? -1
                                                                                                : 0;
}

/* ---- through the queue ---- */

static int submit(Evaluate *e, long *outstanding, Error *err)
{
    while (e->next < e->n_first && *outstanding < WINDOW) {
        QueueNew jobs[BATCH];
        QueueState states[BATCH];
        Buffer bodies[BATCH];
        size_t n = 0;
        int rc = 0;
        for (; e->next < e->n_first && n < BATCH && *outstanding + (long)n < WINDOW; e->next++) {
            Unit *u = &e->units[e->next];
            if (u->verdict || u->queued) continue;
            buffer_init(&bodies[n], QUEUE_MAX_BODY);
            rc = rc ? rc : job_encode(&u->job, &bodies[n], err);
            jobs[n] =
                (QueueNew){u->job.device, u->key, bodies[n].data, bodies[n].len, e->opt->urgent};
            u->queued = 1;
            n++;
        }
        if (!rc && n) rc = queue_enqueue_many(e->queue, jobs, n, states, err);
        for (size_t i = 0; i < n; i++) buffer_release(&bodies[i]);
        if (rc) return -1;
        *outstanding += (long)n;
    }
    return 0;
}

/* Keep the verdict that stands for a job whose results were refused too often. */
static int give_up_refused(Evaluate *e, Unit *u, Error *err)
{
    Record *r = record_new();
    Buffer b;
    buffer_init(&b, QUEUE_MAX_BODY);
    job_verdict(&u->job, OUTCOME_EVALUATOR_ERROR,
                "the queue gave results that are none of this job", r);
    int rc = record_encode(r, &b, err) || keep_verdict(e, u, b.data, b.len, err) ||
                     journal_append(e->journal, b.data, b.len, err)
                 ? -1
                 : 0;
    buffer_release(&b);
    record_free(r);
    return rc;
}

/* Have refused results forgotten and their jobs enqueued again. */
static int reject_results(Evaluate *e, Polled *p, size_t n, Error *err)
{
    for (size_t i = 0; i < n; i++) {
        Unit *u = p->units[i];
        int gone;
        if (!u->reject) continue;
        u->reject = 0;
        if (queue_reject(e->queue, u->job.device, u->key, &gone, err)) return -1;
        if (++u->refused >= QUEUE_MAX_DELIVERIES) {
            if (give_up_refused(e, u, err)) return -1;
            continue;
        }
        u->queued = 0;
        if (u - e->units < e->next) e->next = u - e->units;
    }
    return 0;
}

/* Poll all queued jobs, and all second verdicts, which an earlier start may have had. *outstanding:
 * how many queued jobs have no verdict yet. */
static int collect(Evaluate *e, long *outstanding, Error *err)
{
    Polled p = {.e = e};
    const char *keys[WINDOW];
    size_t n = 0;
    for (long i = 0; i < e->n_units && n < WINDOW; i++)
        if ((e->units[i].queued || e->units[i].is_second) && !e->units[i].verdict) {
            keys[n] = e->units[i].key;
            p.units[n++] = &e->units[i];
        }
    if (queue_poll(e->queue, keys, n, take_result, &p, err) || reject_results(e, &p, n, err))
        return -1;
    *outstanding = 0;
    for (size_t i = 0; i < n; i++) *outstanding += p.units[i]->queued && !p.units[i]->verdict;
    return 0;
}

static int enqueue_second(Evaluate *e, Unit *u, Error *err)
{
    Buffer body;
    QueueState state;
    buffer_init(&body, QUEUE_MAX_BODY);
    int rc = job_encode(&u->job, &body, err);
    QueueNew job = {u->job.device, u->key, body.data, body.len, e->opt->urgent};
    if (!rc) rc = queue_enqueue_many(e->queue, &job, 1, &state, err);
    u->queued = !rc;
    buffer_release(&body);
    return rc;
}

/* Keep the verdict that stands for an absent second device. */
static int give_up_second(Evaluate *e, Unit *u, Error *err)
{
    Record *r = record_new();
    Buffer b;
    buffer_init(&b, QUEUE_MAX_BODY);
    second_device_absent(&u->job, r);
    int rc = record_encode(r, &b, err) || keep_verdict(e, u, b.data, b.len, err) ||
                     journal_append(e->journal, b.data, b.len, err)
                 ? -1
                 : 0;
    buffer_release(&b);
    record_free(r);
    return rc;
}

/* Keep the job of a second device in the queue while another device serves its class. Without one,
 * wait for second_wait_s, unless the first device has served alone for that long already. */
static int check_second(Evaluate *e, Unit *u, Error *err)
{
    long others = 0;
    double served_s = 0, now = clock_seconds(),
           wait_s = u->job.not_on[0] ? e->opt->second_wait_s : 0;
    int gone;
    if (wait_s > 0 && queue_others(e->queue, u->job.device, u->job.not_on, &others, &served_s, err))
        return -1;
    if (others) {
        u->absent_since = 0;
        return u->queued ? 0 : enqueue_second(e, u, err);
    }
    if (!u->absent_since) u->absent_since = now;
    if (now - u->absent_since < wait_s && served_s < wait_s) return 0;
    if (queue_withdraw(e->queue, u->key, &gone, err)) return -1;
    return gone ? give_up_second(e, u, err) : 0;
}

static int check_seconds(Evaluate *e, Error *err)
{
    if (clock_seconds() < e->next_look) return 0;
    for (long i = e->n_first; i < e->n_units; i++)
        if (!e->units[i].verdict && check_second(e, &e->units[i], err)) return -1;
    e->next_look = clock_seconds() + look_s;
    return 0;
}

/* Mark all open jobs for another enqueue. A job in state queued may be on no stream: a stream was
 * deleted by hand, by a purge, or to make room. Enqueueing puts it back. */
static void submit_again(Evaluate *e)
{
    for (long i = 0; i < e->n_units; i++)
        if (!e->units[i].verdict) e->units[i].queued = 0;
    e->next = 0;
    e->resubmitted = clock_seconds();
}

/* Wait until a job finishes. Warn, and fail in the end, when none does. */
static int wait_for_results(Evaluate *e, Error *err)
{
    int rc = queue_wait(e->queue, 1, err);
    if (rc < 0) return -1;
    if (rc) clock_sleep(0.005); /* collect several that finish together */
    double silence = clock_seconds() - e->heard, lease_s = 3 * queue_renew_interval(e->queue);
    if (silence > lease_s && clock_seconds() - e->resubmitted > lease_s) submit_again(e);
    if (silence > SILENCE_S && !e->warned_silence++)
        log_warn(
            "nothing was evaluated for %d s; is an evaluator (quern-evald --device %s) running?",
            SILENCE_S, e->opt->devices[0]);
    if (silence > e->opt->patience_s)
        return error_set(err, ERROR_SERVER,
                         "nothing was evaluated for %.0f s (%ld of %ld done); is an evaluator "
                         "(quern-evald --device %s) "
                         "running?",
                         silence, e->done, e->n_units, e->opt->devices[0]);
    return 0;
}

static int evaluate_all(Evaluate *e, Error *err)
{
    Progress progress;
    if (seal_check_key(err)) return -1;
    progress_start(&progress, "evaluate", "candidates", e->done, e->n_units);
    if (e->done < e->n_units &&
        queue_open(e->opt->redis, e->opt->queue, VERDICT_HARNESS, &e->queue, err))
        return -1;
    e->heard = clock_seconds();
    for (long outstanding = 0; e->done < e->n_units;) {
        long before = e->done;
        if (submit(e, &outstanding, err) || collect(e, &outstanding, err) || check_seconds(e, err))
            return -1;
        progress.total = e->n_units;
        progress_set(&progress, e->done);
        if (stop_requested())
            return error_set(
                err, ERROR_STOPPED,
                "stopped with %ld of %ld candidates evaluated; the same command continues", e->done,
                e->n_units);
        if (e->done == before && wait_for_results(e, err)) return -1;
    }
    progress_end(&progress);
    return 0;
}

/* ---- the artifact ---- */

static int final_verdict(Evaluate *e, const Sample *s, const Unit *u, msgpack_zone *zone, Record *r,
                         Error *err)
{
    View first, second;
    if (view_decode(u->verdict, u->len, "a verdict", zone, &first, err)) return -1;
    if (!u->second) advice_add(&s->view, &first, r);
    if (!u->second) {
        record_text(r, "confirmed", "");
        record_copy(r, &first);
        return 0;
    }
    const Unit *other = &e->units[u->second - 1];
    if (view_decode(other->verdict, other->len, "a second device's verdict", zone, &second, err))
        return -1;
    return second_device_merge(&first, &second, r, err);
}

static int write_one(Evaluate *e, ArtifactWriter *w, long sample, int device, Error *err)
{
    long unit = e->unit_of[sample * e->opt->n_devices + device];
    const Sample *s = &e->samples[sample];
    Record *r = record_new();
    msgpack_zone zone;
    int rc = 0;
    record_text(r, "id", s->id);
    if (unit < 0) {
        Job job;
        Buffer advice;
        buffer_init(&advice, 1 << 12);
        advice_without_code(&s->view, &advice);
        job_init(&job, taskset_find(&e->tasks, s->task, strlen(s->task)), e->opt->devices[device],
                 "", 0, e->opt->seed);
        job_verdict(&job, OUTCOME_PLAN_ERROR, advice.data, r);
        record_text(r, "confirmed", "");
        buffer_release(&advice);
    } else if (!msgpack_zone_init(&zone, 4096)) {
        rc = error_set(err, ERROR_MEMORY, "no memory");
    } else {
        rc = final_verdict(e, s, &e->units[unit], &zone, r, err);
        msgpack_zone_destroy(&zone);
    }
    if (!rc) rc = artifact_write(w, r, err);
    record_free(r);
    return rc;
}

static int write_all(Evaluate *e, Error *err)
{
    ArtifactWriter *w = NULL;
    if (artifact_create(e->opt->output, &e->spec, &w, err)) return -1;
    for (long i = 0; i < e->n_samples; i++)
        for (int d = 0; d < e->opt->n_devices; d++)
            if (write_one(e, w, i, d, err)) {
                artifact_abandon(w);
                return -1;
            }
    return artifact_finish(w, err);
}

static void release(Evaluate *e)
{
    queue_close(e->queue);
    for (long i = 0; i < e->n_samples; i++) {
        free(e->samples[i].id);
        free(e->samples[i].task);
        free(e->samples[i].source);
    }
    for (long i = 0; i < e->n_units; i++) free(e->units[i].verdict);
    free(e->samples);
    free(e->units);
    free(e->unit_of);
    free(e->slots);
    free(e->best);
    taskset_release(&e->tasks);
    artifact_spec_release(&e->spec);
    if (e->reader) artifact_close(e->reader);
}

static int evaluate_journalled(Evaluate *e, Error *err)
{
    if (journal_open(e->opt->output, &e->spec, replay, e, &e->journal, err)) return -1;
    int rc = evaluate_all(e, err);
    if (!rc) rc = write_all(e, err);
    Error close_err;
    if (rc)
        journal_close(e->journal, &close_err); /* kept for the next start */
    else
        rc = journal_remove(e->journal, err);
    return rc;
}

int evaluate_run(const EvaluateOptions *opt, Error *err)
{
    Evaluate e = {.opt = opt};
    artifact_spec_init(&e.spec, "verdicts", "quern-evaluate");
    int rc =
        read_samples(&e, err) || load_tasks(&e, err) || load_best(&e, err) || make_spec(&e, err)
            ? -1
            : 0;
    if (!rc && !artifact_same(&e.spec, opt->output)) {
        find_units(&e);
        rc = evaluate_journalled(&e, err);
    }
    release(&e);
    return rc;
}
