/* quern-prompt: makes prompts for tasks, with exemplars from a pool. */
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/crl/prompts.h"
#include "stages/data/stage_config.h"

/* Writes the prompts, unless the file has them. baselines and pool_path may be NULL. */
static int make(const TaskSet *tasks, const char *pool_path, const char *baselines,
                const char *style, const char *device, PromptOptions *o, const char *output,
                ArtifactSpec *out, Error *err)
{
    PromptFacts facts;
    Pool pool;
    if ((pool_path && artifact_spec_input(out, pool_path, err)) ||
        (baselines && artifact_spec_input(out, baselines, err)))
        return -1;
    artifact_spec_input_digest(out, "tasks", tasks->digest);
    if (o->wide.tasks) artifact_spec_input_digest(out, "wide", o->wide.tasks->digest);
    if (artifact_same(out, output)) return 0;
    if (prompt_facts_load(style[0] == 'f', device, baselines, &facts, err) ||
        pool_load(pool_path, &pool, err))
        return -1;
    o->facts = &facts;
    int rc = prompts_write(tasks, &pool, o, output, out, err);
    pool_release(&pool);
    prompt_facts_release(&facts);
    return rc;
}

int main(int argc, char **argv)
{
    const char *pool_path = NULL, *output = NULL, *only = NULL, *root = NULL, *style = "brief",
               *stage = "prompt", *rule = "bucket", *device = NULL, *baselines = NULL,
               *wide_only = NULL;
    int64_t wide_ask = 0, wide_groups = 1, wide_copies = 5;
    int64_t groups = 4, plain = 1, exemplars = 2, seed = 1, migrate = 2, reset = 4;
    double width = 0.25, temperature = 1.0, least = 0.5, apart = 1.0;
    int heldout = 0, only_heldout = 0;
    const Flag flags[] = {
        {"output", FLAG_TEXT, &output, "prompts artifact to write", .required = 1, .aside = 1},
        {"pool", FLAG_TEXT, &pool_path, "pool artifact; without it, no exemplars", .aside = 1},
        {"tasks", FLAG_TEXT, &only, "names, comma separated; all when left out", .aside = 1},
        {"task-root", FLAG_TEXT, &root, "folder of the tasks", .aside = 1},
        {"stage", FLAG_TEXT, &stage, "name in the prompts' ids"},
        {"groups", FLAG_INT, &groups, "prompts a task", 1, 10000},
        {"plain", FLAG_INT, &plain, "of them, without exemplars", 0, 10000},
        {"exemplars", FLAG_INT, &exemplars, "kernels that a contrastive prompt shows", 1,
         EXEMPLAR_MAX},
        {"rule", FLAG_TEXT, &rule, "how they are drawn", .choices = EXEMPLAR_RULES},
        {"bucket-width", FLAG_FLOAT, &width, "in log2 of the score", 0.01, 16},
        {"tau", FLAG_FLOAT, &temperature, "in standard deviations of the buckets' scores", 0.01,
         100},
        {"floor", FLAG_FLOAT, &least,
         "kernels below this share of the baseline's speed are not drawn", 0, 1},
        {"apart", FLAG_FLOAT, &apart,
         "least factor between the fastest and the slowest kernel shown; 1: any", 1, 1000,
         .aside = CONFIG_CHANGED},
        {"migrate", FLAG_INT, &migrate, "island: rounds between two migrations; 0: none", 0, 10000},
        {"reset", FLAG_INT, &reset, "island: rounds between two resets; 0: none", 0, 10000},
        {"heldout", FLAG_BOOL, &heldout, "heldout tasks too (plain), for a report"},
        {"heldout-only", FLAG_BOOL, &only_heldout, "heldout tasks alone (plain)",
         .aside = CONFIG_CHANGED},
        {"wide", FLAG_TEXT, &wide_only, "names of other tasks, comma separated", .aside = 1},
        {"wide-ask", FLAG_INT, &wide_ask, "of them, train tasks that are drawn and asked too", 0,
         100000, .aside = CONFIG_CHANGED},
        {"wide-groups", FLAG_INT, &wide_groups, "prompts of each, one of them without exemplars", 1,
         10000, .aside = CONFIG_CHANGED},
        {"wide-copies", FLAG_INT, &wide_copies, "samples of each of these prompts", 1,
         PROMPT_MAX_COPIES, .aside = CONFIG_CHANGED},
        {"style", FLAG_TEXT, &style, "of the prompts", .choices = "brief|full"},
        PROMPT_FACTS_FLAGS(device, baselines),
        {"seed", FLAG_INT, &seed, "of the draws", 0, 1e15},
        {0}};
    const FlagSpec spec = {"quern-prompt", "--output FILE [--pool FILE]",
                           "Make prompts: the task, its reference, scored exemplars from the pool.",
                           .flags = flags, .checkable = 1};
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    flags_parse(&spec, argc, argv, (const char **)argv);
    flags_checked();
    log_open("quern-prompt");
    stop_install();
    Error err;
    PromptOptions o = {stage,
                       (int)groups,
                       (int)plain,
                       (int)exemplars,
                       heldout || only_heldout,
                       only_heldout,
                       NULL,
                       {.width = width,
                        .temperature = temperature,
                        .floor = least,
                        .migrate = (int)migrate,
                        .reset = (int)reset,
                        .apart = apart},
                       (uint64_t)seed};
    if (!pool_path) o.plain = o.groups;
    exemplar_rule(rule, &o.draw.rule);
    ArtifactSpec out;
    config_spec(&out, "prompts", &spec, &defaults);
    TaskSet tasks, wide = {0};
    if (wide_only && wide_ask) {
        if (taskset_load(root, wide_only, &wide, &err)) log_die(&err);
        o.wide = (PromptWide){&wide, (int)wide_ask, (int)wide_groups, (int)wide_copies};
    }
    if (taskset_load(root, only, &tasks, &err) ||
        make(&tasks, pool_path, baselines, style, device, &o, output, &out, &err))
        log_die(&err);
    if (o.wide.tasks) taskset_release(&wide);
    taskset_release(&tasks);
    artifact_spec_release(&out);
    return log_close(0);
}
