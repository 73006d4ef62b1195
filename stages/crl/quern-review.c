/* quern-review: reviews the kernels of a round that beat the best of their task so far. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "eval/judge/seeds.h"
#include "eval/judge/verdict/verdict.h"
#include "llm/llm.h"
#include "stages/crl/review.h"
#include "stages/data/stage_config.h"

typedef struct {
    const char *samples, *verdicts, *pool, *hacks, *output, *only, *root, *judge, *device, *redis,
        *seed_file, *budget, *ledger, *price;
    int64_t eval_seed, max_new, concurrency;
    double near;
} Options;

static void review(const Options *o, ReviewOptions *r, const ArtifactSpec *out,
                   const TaskSet *tasks)
{
    Error err;
    Pool pool;
    Hacks hacks;
    SampleSet set;
    r->best = &pool;
    r->hacks = &hacks;
    if ((o->seed_file && seed_file_get(o->seed_file, &r->eval_seed, &err)) ||
        budget_open(r->budget, o->ledger, &err) || pool_load(o->pool, &pool, &err) ||
        hacks_load(o->hacks, &hacks, &err) || samples_load(o->samples, o->verdicts, &set, &err) ||
        queue_open(o->redis, NULL, VERDICT_HARNESS, &r->queue, &err) ||
        review_write(&set, tasks, r, o->output, out, &err))
        log_die(&err);
    queue_close(r->queue);
    samples_release(&set);
    hacks_release(&hacks);
    pool_release(&pool);
}

static void check_options(const Options *o, const FlagSpec *spec, ReviewOptions *r, Budget *budget)
{
    Error err;
    *r = (ReviewOptions){.judge = strcmp(o->judge, "none") ? o->judge : NULL,
                         .max_tokens = (int)o->max_new,
                         .concurrency = (int)o->concurrency,
                         .near = o->near,
                         .device = o->device,
                         .eval_seed = (uint64_t)o->eval_seed,
                         .budget = budget,
                         .price = budget_price_unknown};
    if (r->judge && (!llm_is_endpoint(r->judge) || !strchr(r->judge, ':')[1]))
        flags_usage_error(spec, "--judge expects openai:MODEL, anthropic:MODEL or none, found '%s'",
                          r->judge);
    if (budget_parse(o->budget, budget, &err) ||
        (o->price && *o->price && budget_price_parse(o->price, &r->price, &err)))
        flags_usage_error(spec, "%s", err.text);
}

int main(int argc, char **argv)
{
    Options o = {.judge = "none",
                 .device = "sim:h100",
                 .budget = "",
                 .eval_seed = 1,
                 .max_new = 8192,
                 .concurrency = 8,
                 .near = 0.6};
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &o.samples, "samples of a round", .aside = 1},
        {"verdicts", FLAG_TEXT, &o.verdicts, "their verdicts", .aside = 1},
        {"pool", FLAG_TEXT, &o.pool, "the pool before the round; left out: empty", .aside = 1},
        {"hacks", FLAG_TEXT, &o.hacks, "the memory of hacks; left out: empty", .aside = 1},
        {"output", FLAG_TEXT, &o.output, "reviews artifact to write", .aside = 1},
        TASK_FLAGS(o.only, o.root),
        {"judge", FLAG_TEXT, &o.judge, "openai:MODEL, anthropic:MODEL, or none"},
        {"max-new", FLAG_INT, &o.max_new, "tokens of its answer", 16, 131072, .aside = 1},
        {"concurrency", FLAG_INT, &o.concurrency, "requests to it at once", 1, 1024, .aside = 1},
        BUDGET_FLAGS(o.budget, o.ledger),
        {"price", FLAG_TEXT, &o.price, "$ for a million tokens of prompts and of answers",
         .aside = 1},
        {"near", FLAG_FLOAT, &o.near,
         "a kernel that is so much like a hack is judged again where no judge has a word", 0, 1},
        {"device", FLAG_TEXT, &o.device, "device class that judges"},
        {"redis", FLAG_TEXT, &o.redis, "the queue's server; default $QUERN_REDIS", .aside = 1},
        {"eval-seed", FLAG_INT, &o.eval_seed, "of the evaluators' inputs", 0, 1e15, .aside = 1},
        {"eval-seed-file", FLAG_TEXT, &o.seed_file, "holds that seed, as of quern-evaluate",
         .aside = 1},
        {0}};
    const FlagSpec spec = {"quern-review", "--samples FILE --verdicts FILE --output FILE",
                           "Review record kernels: similar hacks, a judge's word, a re-check.",
                           flags, .checkable = 1};
    flags_parse(&spec, argc, argv, (const char **)argv);
    ReviewOptions r;
    Budget budget;
    check_options(&o, &spec, &r, &budget);
    flags_checked();
    if (!o.samples || !o.verdicts || !o.output)
        flags_usage_error(&spec, "--samples, --verdicts and --output are needed");
    stop_install();
    Error err;
    ArtifactSpec out;
    TaskSet tasks;
    config_spec(&out, "reviews", &spec, NULL);
    const char *const inputs[] = {o.samples, o.verdicts, o.pool, o.hacks};
    if (config_inputs(&out, inputs, 4, &err) || config_tasks(&out, o.root, o.only, &tasks, &err))
        log_die(&err);
    if (artifact_same(&out, o.output)) return 0;
    review(&o, &r, &out, &tasks);
    taskset_release(&tasks);
    artifact_spec_release(&out);
    return log_close(0);
}
