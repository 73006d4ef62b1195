/* quern-evaluate: have every sample judged by the evaluators of one or more device classes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "artifacts/journal.h"
#include "base/error.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/stop.h"
#include "base/words.h"
#include "eval/candidate/answer.h"
#include "eval/judge/seeds.h"
#include "eval/serve/second_device.h"
#include "queue/url.h"
#include "tasks/task.h"

/* The submitter of samples: send the candidates of a `samples` artifact through the queue and write a
 * `verdicts` artifact. Equal candidates are one job. Verdicts are journalled as they come, so the same
 * call continues after an interruption. Samples become submissions, verdicts are journalled as they
 * come, and the artifact is written in the order of the samples when all are there. A verdict is
 * journalled before it counts as done, so nothing is lost by a kill. */

enum { EVALUATE_MAX_DEVICES = 16 };

typedef struct {
    const char *samples, *output;
    const char *best; /* a pool with the best known scores (eval/serve/second_device.h), or NULL */
    double second_wait_s; /* how long a record waits for a second device of its class */
    const char *devices[EVALUATE_MAX_DEVICES]; /* classes: one verdict a sample and class */
    int n_devices;
    uint64_t seed;
    int sanitize;              /* Job.sanitize, on devices that measure */
    const char *redis, *queue; /* as queue_open's */
    int urgent;                /* before all jobs that are not */
} EvaluateOptions;

/* PATIENCE_S: nothing may be finished for so long. */
enum { MAX_NAMES = 64 * 1024, TASK_NAME_MAX = 63, PATIENCE_S = 1800 };

typedef struct {
    View view;
    char *id, *task, *source; /* owned */
} Sample;

typedef struct {
    const EvaluateOptions *opt;
    ArtifactReader *reader;
    TaskSet tasks;
    ArtifactSpec spec;
    Journal *journal;
    Queue *queue;
    Submitter *submitter;
    SecondDevices seconds;
    Sample *samples;
    long n_samples;
    long *job_of; /* submission by (sample, device); -1: no code */
    Progress progress;
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
    if (!rc) qsort(all, (size_t)e->n_samples, sizeof *all, sort_by_text);
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

static void add_job(Evaluate *e, long sample, int device)
{
    const Sample *s = &e->samples[sample];
    long *at = &e->job_of[sample * e->opt->n_devices + device];
    *at = -1;
    if (!*s->source) return;
    Job job;
    job_init(&job, taskset_find(&e->tasks, s->task, strlen(s->task)), e->opt->devices[device],
             s->source, e->opt->seed);
    job.sanitize = e->opt->sanitize && strncmp(job.device, "sim:", 4) != 0;
    *at = submitter_add(e->submitter, &job, 0);
}

static int on_verdict(void *ctx, long index, const Verdict *v, Error *err)
{
    Evaluate *e = ctx;
    const Submission *one = submitter_at(e->submitter, index);
    second_devices_verdict(&e->seconds, index, v);
    /* Without a journal it comes from the journal, which is being opened. */
    return e->journal ? journal_append(e->journal, one->verdict, one->len, err) : 0;
}

static int on_turn(void *ctx, Error *err)
{
    Evaluate *e = ctx;
    e->progress.total = submitter_count(e->submitter);
    progress_set(&e->progress, submitter_done(e->submitter));
    return second_devices_look(&e->seconds, err);
}

/* A sample has a job on each device, and each job may have a second one. */
static void add_jobs(Evaluate *e)
{
    long pairs = e->n_samples * e->opt->n_devices;
    e->submitter = submitter_new(
        2 * pairs, &(SubmitterHooks){.on_verdict = on_verdict, .on_turn = on_turn, .ctx = e});
    e->job_of = memory_array((size_t)pairs, sizeof *e->job_of);
    for (long i = 0; i < e->n_samples; i++)
        for (int d = 0; d < e->opt->n_devices; d++) add_job(e, i, d);
    e->seconds.submitter = e->submitter;
    e->seconds.tasks = &e->tasks;
    e->seconds.wait_s = e->opt->second_wait_s;
    second_devices_init(&e->seconds, 2 * pairs);
}

static int load_best(Evaluate *e, Error *err)
{
    e->seconds.best = memory_array((size_t)e->tasks.n + 1, sizeof *e->seconds.best);
    return second_device_best_known(e->opt->best, &e->tasks, e->seconds.best, err);
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

static int restore(void *ctx, const void *payload, size_t len, Error *err)
{
    Evaluate *e = ctx;
    return submitter_restore(e->submitter, payload, len, err);
}

static int evaluate_all(Evaluate *e, Error *err)
{
    const EvaluateOptions *o = e->opt;
    long done = submitter_done(e->submitter), n = submitter_count(e->submitter);
    progress_start(&e->progress, "evaluate", "candidates", done, n);
    if (done < n) {
        if (queue_open(o->redis, o->queue, VERDICT_HARNESS, &e->queue, err)) return -1;
        e->seconds.queue = e->queue;
        const SubmitterOptions opt = {e->queue, o->urgent, PATIENCE_S};
        if (submitter_run(e->submitter, &opt, err)) return -1;
    }
    progress_end(&e->progress);
    return 0;
}

/* ---- the artifact ---- */

/* Append the advice on the form of a sample's answer. Returns -1 when there is none, as for one of a
 * pool's best kernels, which has no text and no finish. */
static int advise(const View *sample, Buffer *out)
{
    const char *text, *finish;
    size_t n, f;
    Error err;
    if (view_text(sample, "text", &text, &n, &err) ||
        view_text(sample, "finish", &finish, &f, &err) || !n)
        return -1;
    return answer_advice(text, n, word_is(finish, f, "length"), out);
}

/* The verdict of a sample without code. */
static void write_no_code(Evaluate *e, const Sample *s, int device, Record *r)
{
    Job job;
    Buffer message;
    buffer_init(&message, 1 << 12);
    if (advise(&s->view, &message)) buffer_puts(&message, "the answer holds no code");
    job_init(&job, taskset_find(&e->tasks, s->task, strlen(s->task)), e->opt->devices[device], "",
             e->opt->seed);
    job_verdict(&job, OUTCOME_PLAN_ERROR, message.data, r);
    record_text(r, "confirmed", "");
    buffer_release(&message);
}

/* Write the message, if the verdict blames the plan or the compilation and the sample's answer has
 * another form than was asked for. */
static void write_advice(const Sample *s, const Verdict *v, Record *r)
{
    Buffer b;
    if (v->outcome != OUTCOME_PLAN_ERROR && v->outcome != OUTCOME_COMPILE_ERROR) return;
    buffer_init(&b, 1 << 14);
    buffer_printf(&b, "%s\n(", v->message);
    if (!advise(&s->view, &b) && !buffer_puts(&b, ")")) record_text(r, "message", b.data);
    buffer_release(&b);
}

static int decode(const Submission *one, msgpack_zone *zone, View *v, Error *err)
{
    return view_decode(one->verdict, one->len, "a verdict", zone, v, err);
}

/* The verdict of a job without a second one. */
static int write_verdict(const Sample *s, const View *record, Record *r, Error *err)
{
    Verdict v;
    if (verdict_read(record, &v, err)) return -1;
    write_advice(s, &v, r);
    verdict_release(&v);
    record_text(r, "confirmed", "");
    record_copy(r, record);
    return 0;
}

static int write_judged(Evaluate *e, const Sample *s, long index, Record *r, Error *err)
{
    View first, second;
    msgpack_zone zone;
    const Submission *other = second_devices_of(&e->seconds, index);
    if (!msgpack_zone_init(&zone, 4096)) return error_set(err, ERROR_MEMORY, "no memory");
    int failed =
        decode(submitter_at(e->submitter, index), &zone, &first, err) ||
        (other && decode(other, &zone, &second, err)) ||
        (other ? second_device_merge(&first, &second, r, err) : write_verdict(s, &first, r, err));
    msgpack_zone_destroy(&zone);
    return failed ? -1 : 0;
}

static int write_one(Evaluate *e, ArtifactWriter *w, long sample, int device, Error *err)
{
    long index = e->job_of[sample * e->opt->n_devices + device];
    const Sample *s = &e->samples[sample];
    Record *r = record_new();
    record_text(r, "id", s->id);
    if (index < 0) write_no_code(e, s, device, r);
    int failed = (index >= 0 && write_judged(e, s, index, r, err)) || artifact_write(w, r, err);
    record_free(r);
    return failed ? -1 : 0;
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
    free(e->samples);
    free(e->job_of);
    submitter_free(e->submitter);
    second_devices_release(&e->seconds);
    taskset_release(&e->tasks);
    artifact_spec_release(&e->spec);
    if (e->reader) artifact_close(e->reader);
}

static int evaluate_journalled(Evaluate *e, Error *err)
{
    Error ignored;
    if (journal_open(e->opt->output, &e->spec, restore, e, &e->journal, err)) return -1;
    if (!evaluate_all(e, err) && !write_all(e, err)) return journal_remove(e->journal, err);
    journal_close(e->journal, &ignored); /* kept for the next start */
    return -1;
}

/* Returns 0 when the output is written or holds the same already, -1 on an error. ERROR_STOPPED
 * after a stop signal. The journal is kept on every error. */
static int evaluate_run(const EvaluateOptions *opt, Error *err)
{
    Evaluate e = {.opt = opt};
    artifact_spec_init(&e.spec, "verdicts", "quern-evaluate");
    int failed =
        read_samples(&e, err) || load_tasks(&e, err) || load_best(&e, err) || make_spec(&e, err);
    if (!failed && !artifact_same(&e.spec, opt->output)) {
        add_jobs(&e);
        failed = evaluate_journalled(&e, err);
    }
    release(&e);
    return failed ? -1 : 0;
}

static void list_classes(const FlagSpec *spec, char *text, EvaluateOptions *opt)
{
    for (char *save = NULL, *d = strtok_r(text, ",", &save); d; d = strtok_r(NULL, ",", &save)) {
        if (opt->n_devices == EVALUATE_MAX_DEVICES)
            flags_usage_error(spec, "--device names more than %d classes", EVALUATE_MAX_DEVICES);
        opt->devices[opt->n_devices++] = d;
    }
    if (!opt->n_devices) flags_usage_error(spec, "--device names no class");
}

/* End with a usage error when a flag is given that has no effect on simulators. */
static void check_measured(const FlagSpec *spec, const EvaluateOptions *opt)
{
    int measured = 0;
    for (int i = 0; i < opt->n_devices; i++) measured |= strncmp(opt->devices[i], "sim:", 4) != 0;
    if (!measured && flags_given("second-wait"))
        flags_usage_error(spec, "--second-wait has no effect on simulators: only measured scores "
                                "need a second device");
}

/* End with a usage error unless one seed is given; read it. */
static void choose_seed(const FlagSpec *spec, const char *file, int64_t seed, int again,
                        EvaluateOptions *opt)
{
    Error err;
    if (file && flags_given("seed"))
        flags_usage_error(spec, "--seed and --seed-file cannot be given together");
    opt->seed = (uint64_t)seed;
    if (file && seed_file_get(file, &opt->seed, &err)) log_die(&err);
    if (again) opt->seed = seed_derive(opt->seed, "again", "");
    opt->sanitize = again;
}

/* devices: a copy of --device, cut at its commas; opt->devices points into it. */
static void parse(int argc, char **argv, EvaluateOptions *opt, char **devices)
{
    const char *classes = "sim:h100";
    int64_t seed = 1;
    const char *seed_file = NULL;
    int again = 0;
    const Flag flags[] = {
        {"output", FLAG_TEXT, &opt->output, "the verdicts artifact", .required = 1},
        {"device", FLAG_TEXT, &classes,
         "device classes, comma-separated; each sample gets a verdict of each"},
        {"seed", FLAG_INT, &seed, "of the inputs that the evaluators draw", 0, 9e15},
        {"seed-file", FLAG_TEXT, &seed_file,
         "holds the seed; made with a random one when there is no such file"},
        {"again", FLAG_BOOL, &again,
         "on other inputs: those of a seed that follows from the given one; a simulator checks "
         "what a "
         "GPU measures"},
        {"redis", FLAG_TEXT, &opt->redis, "the queue's server instead of QUERN_REDIS"},
        {"queue", FLAG_TEXT, &opt->queue, "the queue's name, if not quern"},
        {"urgent", FLAG_BOOL, &opt->urgent, "before all jobs that are not"},
        {"best", FLAG_TEXT, &opt->best,
         "a pool; a measured score above twice its best of the task needs a second device, "
         "as any above 3 does"},
        {"second-wait", FLAG_FLOAT, &opt->second_wait_s,
         "seconds for another device of the class to appear, else a record stays unconfirmed", 0,
         86400},
        {0}};
    const FlagSpec spec = {.program = "quern-evaluate",
                           .synopsis = "SAMPLES --output VERDICTS [--device CLASS,...]",
                           .about = "Sends each distinct candidate of SAMPLES through the queue "
                                    "and writes the verdicts in the order "
                                    "of the samples. Interrupted, the same command continues.",
                           .flags = flags,
                           .min_words = 1,
                           .max_words = 1};
    const char **words = (const char **)argv;
    flags_parse(&spec, argc, argv, words);
    queue_url_check_flag(&spec, opt->redis);
    opt->samples = words[0];
    choose_seed(&spec, seed_file, seed, again, opt);
    *devices = memory_strdup(classes);
    list_classes(&spec, *devices, opt);
    check_measured(&spec, opt);
}

int main(int argc, char **argv)
{
    EvaluateOptions opt = {.second_wait_s = 30};
    char *devices;
    Error err = {0};
    parse(argc, argv, &opt, &devices);
    log_open("quern-evaluate");
    stop_install();
    if (evaluate_run(&opt, &err)) log_die(&err);
    free(devices);
    return log_close(0);
}
