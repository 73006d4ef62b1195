/* quern-collect: asks teachers for kernels and writes them as samples. */
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/judge/seeds.h"
#include "eval/judge/verdict/verdict.h"
#include "eval/serve/submitter.h"
#include "queue/queue.h"
#include "stages/data/batchlog.h"
#include "stages/data/stage_config.h"
#include "stages/teacher/teacher.h"

/* The collection of stage 1: for each task and teacher up to `trials` answers of the teacher's, until
 * `keep` distinct ones are correct (method, section 2). A wave asks for as many answers as are still
 * missing and has them judged; then the next wave begins. A journal keeps the answers for a resumed
 * run. Every answer is in the journal before the next one is taken, since endpoints cost money. */

typedef struct {
    const Teacher *teachers;
    int n_teachers; /* 0: an artifact without samples */
    const char *device, *output;
    uint64_t eval_seed;
} CollectOptions;

/* The answers of one teacher to one task. */
typedef struct {
    const Task *task;
    const Teacher *teacher;
    Record **answers; /* by trial; NULL: none yet */
    char **sources;   /* by trial */
    int trials, successes, ended;
} Slot;

typedef struct {
    const CollectOptions *o;
    Slot *slots;
    int n;
    BatchLog log;
    int in_row[TEACHERS_MAX];                         /* as LlmOptions has it */
    long asked[TEACHERS_MAX], answered[TEACHERS_MAX]; /* of each teacher; failures are no answers */
} Collection;

static void keep_source(Slot *s, int trial, const char *source, size_t len)
{
    s->sources[trial] = memory_strndup(source, len);
}

/* Reads the fields of an encoded record. *lost: the endpoint failed. */
static int read_answer(const void *data, size_t len, char **id, char **source, int *lost,
                       Record *copy, Error *err)
{
    msgpack_zone zone;
    View v;
    msgpack_zone_init(&zone, 8192);
    int rc = view_decode(data, len, "a collected sample", &zone, &v, err);
    if (!rc) {
        *id = view_strdup(&v, "id", err);
        *source = view_strdup(&v, "source", err);
        char *finish = view_strdup(&v, "finish", err);
        rc = *id && *source && finish ? 0 : -1;
        *lost = finish && !strcmp(finish, "error");
        free(finish);
        if (!rc && copy) record_copy(copy, &v);
    }
    msgpack_zone_destroy(&zone);
    return rc;
}

/* Puts a sample of the journal into its slot, which its id names. */
static int restore_answer(void *ctx, const void *record, size_t len, Error *err)
{
    Collection *c = ctx;
    char *id = NULL, *source = NULL, name[512];
    Record *copy = record_new();
    int lost, rc = read_answer(record, len, &id, &source, &lost, copy, err), placed = 0;
    for (int i = 0; !rc && i < c->n && !placed; i++) {
        Slot *s = &c->slots[i];
        teacher_sample_id(s->teacher, s->task, 0, name, sizeof name);
        size_t n = strlen(name) - 1;
        if (strncmp(id, name, n)) continue;
        long trial = strtol(id + n, NULL, 10);
        if (trial < 0 || trial >= s->teacher->trials || s->answers[trial]) continue;
        teacher_sample_id(s->teacher, s->task, (int)trial, name, sizeof name);
        if (strcmp(id, name)) continue; /* the slot of "dir:a/b", not of "dir:a" */
        s->answers[trial] = copy;
        c->asked[s->teacher - c->o->teachers]++;
        c->answered[s->teacher - c->o->teachers]++;
        keep_source(s, (int)trial, source, strlen(source));
        placed = 1;
    }
    if (!placed) record_free(copy);
    free(id);
    free(source);
    return rc;
}

static size_t answers_at_most(const Collection *c)
{
    size_t n = 0;
    for (int i = 0; i < c->n; i++) n += (size_t)c->slots[i].teacher->trials;
    return n;
}

typedef struct {
    Collection *c;
    Slot **slot_of; /* by request */
    TeacherRequest *req;
} Wave;

/* Stores an answer. A failed request is not in the journal, so that a resumed run asks again. */
static int on_answer(void *ctx, TeacherRequest *q, Error *err)
{
    Wave *w = ctx;
    Slot *s = w->slot_of[q - w->req];
    if (!q->record) {
        s->ended = 1;
        return 0;
    }
    Buffer b;
    char *id = NULL, *source = NULL;
    buffer_init(&b, 1 << 24);
    int lost = 0, rc = -(record_encode(q->record, &b, err) ||
                         read_answer(b.data, b.len, &id, &source, &lost, NULL, err));
    if (!rc) keep_source(s, q->trial, source, strlen(source));
    s->answers[q->trial] = q->record;
    w->c->asked[s->teacher - w->c->o->teachers]++;
    w->c->answered[s->teacher - w->c->o->teachers] += !rc && !lost;
    if (!rc && !lost)
        rc = -(batchlog_add(&w->c->log, q->record, err) || batchlog_commit(&w->c->log, err));
    buffer_release(&b);
    free(id);
    free(source);
    return rc;
}

/* Asks one teacher for the answers of this wave that the journal does not have. */
static int ask_wave(Collection *c, const Teacher *t, const int *upto, Error *err)
{
    size_t cap = answers_at_most(c), n = 0;
    Wave w = {c, memory_array(cap, sizeof *w.slot_of), memory_array(cap, sizeof *w.req)};
    for (int i = 0; i < c->n; i++)
        for (int k = c->slots[i].trials; c->slots[i].teacher == t && k < upto[i]; k++) {
            if (c->slots[i].answers[k]) continue;
            w.slot_of[n] = &c->slots[i];
            w.req[n++] = (TeacherRequest){c->slots[i].task, k, NULL};
        }
    Teacher counted = *t;
    counted.in_row = &c->in_row[t - c->o->teachers];
    const TeacherRequests all = {w.req, n, on_answer, &w};
    int rc = n ? teacher_ask(&counted, &all, err) : 0;
    free(w.slot_of);
    free(w.req);
    return rc;
}

static int is_repeat(const Slot *s, int trial)
{
    for (int k = 0; k < trial; k++)
        if (s->sources[k] && !strcmp(s->sources[k], s->sources[trial])) return 1;
    return 0;
}

static int judge_wave(Collection *c, Queue *q, const int *upto, Error *err)
{
    size_t cap = answers_at_most(c), n = 0;
    AskItem *items = memory_array(cap, sizeof *items);
    Slot **slot_of = memory_array(cap, sizeof *slot_of);
    for (int i = 0; i < c->n; i++) {
        Slot *s = &c->slots[i];
        for (; s->trials < upto[i]; s->trials++) {
            const char *source = s->sources[s->trials];
            if (!source || !*source || is_repeat(s, s->trials)) continue;
            slot_of[n] = s;
            items[n++] = (AskItem){s->task, source, OUTCOME_EVALUATOR_ERROR};
        }
        s->ended |= s->trials == s->teacher->trials;
    }
    int rc = submitter_ask(&(AskOptions){q, c->o->device, c->o->eval_seed}, items, n, err);
    for (size_t i = 0; !rc && i < n; i++) slot_of[i]->successes += items[i].outcome == OUTCOME_OK;
    free(items);
    free(slot_of);
    return rc;
}

static int waves(Collection *c, Queue *q, Error *err)
{
    int *upto = memory_array((size_t)c->n, sizeof *upto), rc = 0;
    long said = -1;
    for (int open = 1, wave = 1; !rc && open; wave++) {
        open = 0;
        long asked = 0, successes = 0;
        for (int i = 0; i < c->n; i++) {
            Slot *s = &c->slots[i];
            int more = s->ended ? 0 : s->teacher->keep - s->successes;
            upto[i] = s->trials + (more > 0 ? more : 0);
            if (upto[i] > s->teacher->trials) upto[i] = s->teacher->trials;
            asked += upto[i] - s->trials;
            successes += s->successes;
            open |= upto[i] > s->trials;
        }
        if (open && successes != said) /* the last answers of a task may take tens of waves */
            log_info("wave %d: %ld answer%s wanted, %ld correct so far", wave, asked,
                     asked == 1 ? "" : "s", successes);
        said = successes;
        for (int k = 0; !rc && open && k < c->o->n_teachers; k++)
            rc = ask_wave(c, &c->o->teachers[k], upto, err);
        if (!rc && open) rc = judge_wave(c, q, upto, err);
        if (!rc && stop_requested())
            rc = error_set(err, ERROR_STOPPED, "stopped; the same command continues");
    }
    free(upto);
    return rc;
}

/* Says for each endpoint how many requests there may still be, and their cost. */
static int estimate(const Collection *c, Error *err)
{
    for (int k = 0; k < c->o->n_teachers; k++) {
        const Teacher *t = &c->o->teachers[k];
        long requests = 0;
        double tokens = 0;
        for (int i = 0; i < c->n; i++) {
            const Slot *s = &c->slots[i];
            int left = s->teacher == t ? t->trials : 0;
            for (int trial = 0; trial < left; trial++) requests += !s->answers[trial];
            if (left) tokens += left * teacher_prompt_tokens(t, s->task);
        }
        if (teacher_is_endpoint(t) && t->budget &&
            budget_estimate(t->budget, t->name, &t->price, requests, tokens, t->max_tokens, err))
            return -1;
    }
    return 0;
}

/* Work of which an endpoint has answered nothing is not done: it may answer after a repair. */
static int check_answered(const Collection *c, Error *err)
{
    for (int k = 0; k < c->o->n_teachers; k++)
        if (teacher_is_endpoint(&c->o->teachers[k]) && c->asked[k] && !c->answered[k])
            return error_set(err, ERROR_SERVER,
                             "none of %ld requests to %s was answered; the same command asks again",
                             c->asked[k], c->o->teachers[k].name);
    return 0;
}

static int write_all(const Collection *c, const ArtifactSpec *spec, Error *err)
{
    ArtifactWriter *w;
    if (artifact_create(c->o->output, spec, &w, err)) return -1;
    int rc = 0;
    for (int i = 0; i < c->n; i++)
        for (int k = 0; !rc && k < c->slots[i].trials; k++)
            if (c->slots[i].answers[k]) rc = artifact_write(w, c->slots[i].answers[k], err);
    return artifact_end(w, rc, err);
}

static void make_slots(Collection *c, const TaskSet *tasks)
{
    c->slots = memory_array((size_t)tasks->n * (size_t)c->o->n_teachers, sizeof *c->slots);
    for (int i = 0; i < tasks->n; i++)
        for (int k = 0; k < c->o->n_teachers; k++) {
            if (tasks->tasks[i]->heldout) continue; /* never in a training example: not asked for */
            Slot *s = &c->slots[c->n++];
            s->task = tasks->tasks[i];
            s->teacher = &c->o->teachers[k];
            s->answers = memory_array((size_t)s->teacher->trials, sizeof *s->answers);
            s->sources = memory_array((size_t)s->teacher->trials, sizeof *s->sources);
        }
}

static void free_slots(Collection *c)
{
    for (int i = 0; i < c->n; i++) {
        for (int k = 0; k < c->slots[i].teacher->trials; k++) {
            if (c->slots[i].answers[k]) record_free(c->slots[i].answers[k]);
            free(c->slots[i].sources[k]);
        }
        free(c->slots[i].answers);
        free(c->slots[i].sources);
    }
    free(c->slots);
}

/* Collects answers for the train tasks and writes the samples artifact o->output. A requested stop
 * is ERROR_STOPPED. */
static int collect_run(const TaskSet *tasks, Queue *q, const CollectOptions *o,
                       const ArtifactSpec *spec, Error *err)
{
    Collection c = {.o = o};
    make_slots(&c, tasks);
    int rc = batchlog_open(&c.log, o->output, spec, restore_answer, &c, err);
    if (!rc) {
        rc = -(estimate(&c, err) || waves(&c, q, err) || check_answered(&c, err) ||
               write_all(&c, spec, err));
        if (rc)
            batchlog_keep(&c.log, NULL);
        else
            rc = batchlog_discard(&c.log, err);
    }
    long successes = 0, answers = 0;
    for (int i = 0; i < c.n; i++) {
        successes += c.slots[i].successes;
        for (int k = 0; k < c.slots[i].trials; k++)
            answers += c.slots[i].answers[k] != NULL; /* a teacher may have had no more */
    }
    if (!rc) log_info("%ld answers, %ld distinct correct ones", answers, successes);
    free_slots(&c);
    return rc;
}

typedef struct {
    const char *output, *only, *root, *names, *device, *redis, *seed_file, *baselines, *budget,
        *ledger, *without;
    int64_t trials, keep, seed, eval_seed, max_new, concurrency;
    double mistakes;
} Options;

static void collect(const Options *o, const Teachers *teachers, Budget *budget, PromptFacts *facts,
                    ArtifactSpec *out)
{
    Error err;
    TaskSet tasks;
    Queue *q = NULL;
    uint64_t inputs = (uint64_t)o->eval_seed;
    artifact_spec_config(out, "max-tokens", "%lld", (long long)o->max_new);
    if (config_inputs(out, &o->baselines, 1, &err) ||
        prompt_facts_load(1, o->device, o->baselines, facts, &err) ||
        config_tasks(out, o->root, o->only, &tasks, &err))
        log_die(&err);
    for (int i = 0; i < teachers->n && o->trials; i++)
        if (teacher_input(&teachers->items[i], &tasks, out, &err)) log_die(&err);
    if (artifact_same(out, o->output)) return;
    CollectOptions run = {teachers->items, o->trials ? teachers->n : 0, o->device, o->output, 0};
    if ((o->seed_file && seed_file_get(o->seed_file, &inputs, &err)) ||
        budget_open(budget, o->ledger, &err) ||
        (o->trials && queue_open(o->redis, NULL, VERDICT_HARNESS, &q, &err)))
        log_die(&err);
    run.eval_seed = inputs;
    if (collect_run(&tasks, q, &run, out, &err)) log_die(&err);
    if (q) queue_close(q);
    taskset_release(&tasks);
}

/* What all teachers have in common. */
static Teacher common_teacher(const Options *o, Budget *budget, const PromptFacts *facts,
                              const Designs *without)
{
    return (Teacher){.mistakes = o->mistakes,
                     .without = without,
                     .trials = (int)o->trials,
                     .keep = (int)o->keep,
                     .max_tokens = (int)o->max_new,
                     .concurrency = (int)o->concurrency,
                     .price = budget_price_unknown,
                     .budget = budget,
                     .seed = (uint64_t)o->seed,
                     .facts = facts};
}

int main(int argc, char **argv)
{
    Options o = {.names = "generator",
                 .device = "sim:h100",
                 .budget = "",
                 .trials = 20,
                 .keep = 2,
                 .seed = 1,
                 .eval_seed = 1,
                 .max_new = 4096,
                 .concurrency = 8,
                 .mistakes = 0.15};
    const Flag flags[] = {
        {"output", FLAG_TEXT, &o.output, "samples artifact to write", .required = 1, .aside = 1},
        TASK_FLAGS(o.only, o.root),
        {"teachers", FLAG_TEXT, &o.names,
         "comma separated: generator, openai:MODEL, anthropic:MODEL, dir:PATH, "
         "file:PATH"},
        {"trials", FLAG_INT, &o.trials, "answers at most for each task and teacher; 0: no teacher",
         0, 100000},
        {"keep", FLAG_INT, &o.keep, "stop after so many distinct correct ones", 1, 100000},
        {"without", FLAG_TEXT, &o.without,
         "a file of genes that are not drawn: lines of a task, or *, and NAME=VALUE...",
         .aside = 1},
        {"mistakes", FLAG_FLOAT, &o.mistakes,
         "share of the generator's kernels with a beginner's mistake", 0, 1},
        {"max-new", FLAG_INT, &o.max_new, "tokens of an endpoint's answer", 16, 131072, .aside = 1},
        {"concurrency", FLAG_INT, &o.concurrency, "requests to an endpoint at once", 1, 1024,
         .aside = 1},
        BUDGET_FLAGS(o.budget, o.ledger),
        {"device", FLAG_TEXT, &o.device, "device class that judges"},
        {"baselines", FLAG_TEXT, &o.baselines,
         "verdicts of the baselines, whose times an endpoint's prompts say", .aside = 1},
        {"redis", FLAG_TEXT, &o.redis, "the queue's server; default $QUERN_REDIS", .aside = 1},
        {"eval-seed", FLAG_INT, &o.eval_seed, "of the evaluators' inputs", 0, 1e15, .aside = 1},
        {"eval-seed-file", FLAG_TEXT, &o.seed_file, "holds that seed, as of quern-evaluate",
         .aside = 1},
        {"seed", FLAG_INT, &o.seed, "of the teachers", 0, 1e15},
        {0}};
    const FlagSpec spec = {
        "quern-collect", "--output FILE [--teachers LIST]",
        "Stage 1: collect kernels from teachers until enough of them are correct.", .flags = flags,
        .checkable = 1};
    flags_parse(&spec, argc, argv, (const char **)argv);
    stop_install();
    Error err;
    Teachers teachers;
    Budget budget;
    PromptFacts facts = {0};
    Designs without = {0};
    ArtifactSpec out;
    const Teacher common = common_teacher(&o, &budget, &facts, &without);
    if (budget_parse(o.budget, &budget, &err) || teachers_read(o.names, &common, &teachers, &err))
        flags_usage_error(&spec, "%s", err.text);
    flags_checked();
    config_spec(&out, "samples", &spec, NULL);
    if (o.without && designs_read(o.without, &without, &out, &err)) log_die(&err);
    collect(&o, &teachers, &budget, &facts, &out);
    teachers_release(&teachers);
    designs_release(&without);
    prompt_facts_release(&facts);
    artifact_spec_release(&out);
    return log_close(0);
}
