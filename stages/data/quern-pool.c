/* quern-pool: adds the correct kernels of a set of samples to a pool. With --best it writes the
 * best kernel of every task as samples, to be judged once more and on other hardware. */
#include <stdio.h>
#include <string.h>

#include "base/exit_status.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/data/history.h"
#include "stages/data/pool.h"
#include "stages/data/samples.h"
#include "stages/data/stage_config.h"
#include "tasks/task.h"

static int write_sample(ArtifactWriter *w, const char *id, const Task *t, const char *source,
                        Error *err)
{
    Record *r = record_new();
    record_text(r, "id", id);
    record_text(r, "task", t->name);
    record_text(r, "split", t->heldout ? "heldout" : "train");
    record_text(r, "stage", "best");
    record_text(r, "producer", "pool");
    record_text(r, "group", t->name);
    record_int(r, "trial", 0);
    record_int(r, "seed", 0);
    record_text(r, "finish", "stop");
    record_text(r, "text", "");
    record_text(r, "prompt", "");
    record_text(r, "source", source);
    return artifact_put(w, r, err);
}

typedef struct {
    ArtifactWriter *w;
    const TaskSet *tasks;
    int set;
} Best;

/* Writes the best sample of each task in one set, of heldout tasks too: the pool has none of their
 * kernels. */
static int best_of_set(void *ctx, SampleSet *s, Error *err)
{
    Best *b = ctx;
    int rc = 0;
    b->set++;
    for (int i = 0; !rc && i < b->tasks->n; i++) {
        const Task *t = b->tasks->tasks[i];
        const Sample *best = NULL;
        for (long k = 0; k < s->n; k++) {
            const Sample *x = &s->items[k];
            if (x->outcome == OUTCOME_OK && !strcmp(x->task, t->name) &&
                (!best || x->score > best->score))
                best = x;
        }
        char id[300];
        snprintf(id, sizeof id, "best/%s/%d", t->name, b->set);
        if (best) rc = write_sample(b->w, id, t, best->source, err);
    }
    return rc;
}

/* Writes for each task its baseline as "baseline/<task>" and the best of the pool as "best/<task>",
 * then the best of each set as "best/<task>/<set>". A kernel under several ids is judged once. */
static int write_best(const Pool *p, const TaskSet *tasks, const char *sets, const char *path,
                      const ArtifactSpec *spec, Error *err)
{
    Best b = {.tasks = tasks};
    if (artifact_create(path, spec, &b.w, err)) return -1;
    int rc = 0;
    for (int i = 0; !rc && i < tasks->n; i++) {
        const Task *t = tasks->tasks[i];
        const PoolItem *best = pool_best(p, t->name);
        char id[300];
        snprintf(id, sizeof id, "baseline/%s", t->name);
        rc = write_sample(b.w, id, t, t->baseline_source, err);
        snprintf(id, sizeof id, "best/%s", t->name);
        if (!rc && best) rc = write_sample(b.w, id, t, best->source, err);
    }
    if (!rc) rc = history_each(sets, best_of_set, &b, err);
    return artifact_end(b.w, rc, err);
}

/* The program of --kernel: the source of the pool's best kernel of a task, as a file of its own. Its exit
 * status is 1 when the pool has no kernel that is faster than the baseline. */
static int print_best(const char *pool_path, const char *task, const char *output)
{
    Error err;
    Pool pool;
    if (pool_load(pool_path, &pool, &err)) log_die(&err);
    const PoolItem *best = pool_best(&pool, task);
    int status = EXIT_STATUS_FAILED;
    if (!best)
        log_warn("the pool has no correct kernel of %s", task);
    else if (best->score <= 1)
        log_warn("the best kernel of %s scores %.3f: none is faster than the baseline", task,
                 best->score);
    else if (file_write_atomic(output, best->source, strlen(best->source), &err))
        log_die(&err);
    else
        status = EXIT_STATUS_OK;
    pool_release(&pool);
    return status;
}

typedef struct {
    const char *pool_path, *samples, *verdicts, *reviews, *prompts, *output, *stage, *only, *root,
        *sets, *kernel;
    int64_t round;
    int best;
} Options;

/* Adds the samples, with what their prompts showed where the prompts are given. Returns how many. */
static long add_samples(const Options *o, const SampleSet *set, Pool *pool)
{
    Error err;
    PromptSet prompts;
    long first = pool->n, added = pool_add(pool, set, o->stage, o->round);
    if (!o->prompts) return added;
    if (promptset_load(o->prompts, &prompts, &err)) log_die(&err);
    pool_note_parents(pool, first, set, &prompts);
    promptset_release(&prompts);
    return added;
}

/* The program of the pool and of --best. */
static void make_pool(const Options *o, ArtifactSpec *out)
{
    Error err;
    TaskSet tasks = {0};
    Pool pool;
    SampleSet set = {0};
    const char *const inputs[] = {o->pool_path, o->samples, o->verdicts, o->reviews, o->prompts};
    if (config_inputs(out, inputs, 5, &err) || history_inputs(o->sets, out, &err) ||
        (o->best && config_tasks(out, o->root, o->only, &tasks, &err)))
        log_die(&err);
    if (artifact_same(out, o->output)) return;
    if (pool_load(o->pool_path, &pool, &err) ||
        (o->samples && samples_load(o->samples, o->verdicts, &set, &err)) ||
        reviews_apply(o->reviews, &set, &err))
        log_die(&err);
    long added = add_samples(o, &set, &pool);
    if (o->best ? write_best(&pool, &tasks, o->sets, o->output, out, &err)
                : pool_write(&pool, o->output, out, &err))
        log_die(&err);
    if (o->samples) log_info("%ld new kernels, %ld in the pool", added, pool.n);
    samples_release(&set);
    pool_release(&pool);
    taskset_release(&tasks);
}

int main(int argc, char **argv)
{
    Options o = {.stage = ""};
    const Flag flags[] = {
        {"pool", FLAG_TEXT, &o.pool_path, "the pool so far; left out: empty", .aside = 1},
        {"samples", FLAG_TEXT, &o.samples, "samples to add", .aside = 1},
        {"verdicts", FLAG_TEXT, &o.verdicts, "their verdicts", .aside = 1},
        {"reviews", FLAG_TEXT, &o.reviews, "of the samples: what they withhold is not added",
         .aside = 1},
        {"prompts", FLAG_TEXT, &o.prompts,
         "of the samples: what they showed is noted with each new kernel", .aside = 1},
        {"output", FLAG_TEXT, &o.output, "pool (with --best: samples) to write", .required = 1,
         .aside = 1},
        {"stage", FLAG_TEXT, &o.stage, "that the samples come from"},
        {"round", FLAG_INT, &o.round, "of that stage", 0, 1e6},
        {"best", FLAG_BOOL, &o.best,
         "write the best kernel of every task, and its baseline, as samples"},
        {"kernel", FLAG_TEXT, &o.kernel,
         "write the source of this task's best kernel, if it is faster than the baseline; exit "
         "status 1 if none is",
         .aside = 1},
        {"sets", FLAG_TEXT, &o.sets,
         "with --best: the best of each of these, too: SAMPLES:VERDICTS,...", .aside = 1},
        TASK_FLAGS(o.only, o.root),
        {0}};
    const FlagSpec spec = {
        "quern-pool",
        "--output FILE [--pool FILE] [--samples FILE --verdicts FILE | --best | --kernel "
        "TASK]",
        "Keep every correct kernel with its score, once each.", flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    if (!o.samples != !o.verdicts) flags_usage_error(&spec, "--samples and --verdicts go together");
    if (o.prompts && !o.samples) flags_usage_error(&spec, "--prompts goes with --samples");
    if (o.sets && !o.best) flags_usage_error(&spec, "--sets goes with --best");
    if (o.kernel && (o.best || o.samples))
        flags_usage_error(&spec, "--kernel goes with --pool alone");
    stop_install();
    if (o.kernel) return log_close(print_best(o.pool_path, o.kernel, o.output));
    ArtifactSpec out;
    config_spec(&out, o.best ? "samples" : "pool", &spec, NULL);
    make_pool(&o, &out);
    artifact_spec_release(&out);
    return log_close(0);
}
