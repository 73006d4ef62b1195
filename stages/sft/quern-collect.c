/* quern-collect: asks teachers for kernels and writes them as samples. */
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "eval/judge/seeds.h"
#include "eval/judge/verdict/verdict.h"
#include "stages/data/stage_config.h"
#include "stages/sft/collect.h"

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
    if (taskset_load(o->root, o->only, &tasks, &err) ||
        (o->baselines && artifact_spec_input(out, o->baselines, &err)) ||
        prompt_facts_load(1, o->device, o->baselines, facts, &err))
        log_die(&err);
    artifact_spec_input_digest(out, "tasks", tasks.digest);
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
    log_open("quern-collect");
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
    artifact_spec_init(&out, "samples", "quern-collect");
    config_from_flags(&out, flags);
    if (o.without && designs_read(o.without, &without, &out, &err)) log_die(&err);
    collect(&o, &teachers, &budget, &facts, &out);
    teachers_release(&teachers);
    designs_release(&without);
    prompt_facts_release(&facts);
    artifact_spec_release(&out);
    return log_close(0);
}
