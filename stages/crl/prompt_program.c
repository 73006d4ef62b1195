/* The flags of quern-prompt, and what it does. */
#include "stages/crl/prompt_program.h"

#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/data/stage_config.h"

enum { MAX_FLAGS = 40 };

/* What main's flags fill. */
typedef struct {
    const char *pool, *output, *only, *root, *stage, *device, *baselines;
    int64_t groups, plain, exemplars, seed;
    double temperature, least, apart;
    int heldout, only_heldout, full, rule;
} Flags;

static const Flags unset = {.stage = "prompt",
                            .groups = 4,
                            .plain = 1,
                            .exemplars = 2,
                            .seed = 1,
                            .temperature = 1,
                            .least = 0.5,
                            .apart = 1};

/* Writes the prompts, unless the file has them. */
static int make(const TaskSet *tasks, const Flags *f, const PromptVariant *v, PromptOptions *o,
                ArtifactSpec *out, Error *err)
{
    PromptFacts facts;
    Pool pool;
    if ((f->pool && artifact_spec_input(out, f->pool, err)) ||
        (f->baselines && artifact_spec_input(out, f->baselines, err)))
        return -1;
    artifact_spec_input_digest(out, "tasks", tasks->digest);
    if (v && v->open(v->ctx, f->root, tasks, out, err)) return -1;
    if (artifact_same(out, f->output)) return 0;
    if (prompt_facts_load(f->full, f->device, f->baselines, &facts, err) ||
        pool_load(f->pool, &pool, err))
        return -1;
    o->facts = &facts;
    int rc = prompts_write(tasks, &pool, o, f->output, out, err);
    pool_release(&pool);
    prompt_facts_release(&facts);
    return rc;
}

static PromptOptions options_of(const Flags *f)
{
    PromptOptions o = {.stage = f->stage,
                       .groups = (int)f->groups,
                       .plain = (int)(f->pool ? f->plain : f->groups),
                       .exemplars = (int)f->exemplars,
                       .heldout = f->heldout || f->only_heldout,
                       .only_heldout = f->only_heldout,
                       .draw = {.rule = (ExemplarRule)f->rule,
                                .temperature = f->temperature,
                                .floor = f->least,
                                .migrate = 2,
                                .reset = 4,
                                .apart = f->apart},
                       .seed = (uint64_t)f->seed};
    return o;
}

/* The variant's flags go behind those that are there. */
static void add_flags(Flag *flags, const Flag *more)
{
    while (flags->name) flags++;
    for (; more->name; more++) *flags++ = *more;
}

int prompt_program(int argc, char **argv, const PromptVariant *v)
{
    Flags f = unset;
    Flag flags[MAX_FLAGS] = {
        {"output", FLAG_TEXT, &f.output, "prompts artifact to write", .required = 1, .aside = 1},
        {"pool", FLAG_TEXT, &f.pool, "pool artifact; without it, no exemplars", .aside = 1},
        TASK_FLAGS(f.only, f.root),
        {"stage", FLAG_TEXT, &f.stage, "name in the prompts' ids"},
        {"groups", FLAG_INT, &f.groups, "prompts a task", 1, 10000},
        {"plain", FLAG_INT, &f.plain, "of them, without exemplars", 0, 10000},
        {"exemplars", FLAG_INT, &f.exemplars, "kernels that a contrastive prompt shows", 1,
         EXEMPLAR_MAX},
        {"rule", FLAG_CHOICE, &f.rule, "how they are drawn", .choices = EXEMPLAR_RULES},
        {"tau", FLAG_FLOAT, &f.temperature, "in standard deviations of the buckets' scores", 0.01,
         100},
        {"floor", FLAG_FLOAT, &f.least,
         "kernels below this share of the baseline's speed are not drawn", 0, 1},
        {"apart", FLAG_FLOAT, &f.apart,
         "least factor between the fastest and the slowest kernel shown; 1: any", 1, 1000,
         .aside = CONFIG_CHANGED},
        {"heldout", FLAG_BOOL, &f.heldout, "heldout tasks too (plain), for a report"},
        {"heldout-only", FLAG_BOOL, &f.only_heldout, "heldout tasks alone (plain)",
         .aside = CONFIG_CHANGED},
        PROMPT_FACTS_FLAGS(f.full, f.device, f.baselines),
        {"seed", FLAG_INT, &f.seed, "of the draws", 0, 1e15},
        {0}};
    const FlagSpec spec = {v ? v->program : "quern-prompt", "--output FILE [--pool FILE]",
                           v ? v->about
                             : "Make prompts: the task, its reference, scored exemplars from the "
                               "pool.",
                           .flags = flags, .checkable = 1};
    if (v) add_flags(flags, v->flags);
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    flags_parse(&spec, argc, argv, (const char **)argv);
    flags_checked();
    stop_install();
    Error err;
    PromptOptions o = options_of(&f);
    ArtifactSpec out;
    config_spec(&out, "prompts", &spec, &defaults);
    TaskSet tasks;
    if (v) o.more = v->write, o.ctx = v->ctx;
    if (taskset_load(f.root, f.only, &tasks, &err) || make(&tasks, &f, v, &o, &out, &err))
        log_die(&err);
    taskset_release(&tasks);
    artifact_spec_release(&out);
    return log_close(0);
}
