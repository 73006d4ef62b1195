/* quern-collect: asks teachers for kernels and writes them as samples. */
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/judge/seeds.h"
#include "eval/judge/verdict.h"
#include "stages/data/stage_config.h"
#include "stages/sft/collect.h"

enum { MAX_TEACHERS = 16 };

/* Splits "template,openai:M" in place into teachers with the settings of `common`. Returns how
 * many, or -1. */
static int split_teachers(char *list, const Teacher *common, Teacher out[MAX_TEACHERS], Error *err)
{
    char *save = NULL;
    int n = 0;
    for (char *p = strtok_r(list, ", ", &save); p; p = strtok_r(NULL, ", ", &save)) {
        if (n == MAX_TEACHERS)
            return error_set(err, ERROR_USAGE, "at most %d teachers", MAX_TEACHERS);
        if (teacher_check(p, err)) return -1;
        out[n] = *common;
        out[n++].name = p;
    }
    return n ? n : error_set(err, ERROR_USAGE, "--teachers expects at least one");
}

int main(int argc, char **argv)
{
    const char *output = NULL, *only = NULL, *root = NULL, *names = "template",
               *device = "sim:h100", *redis = NULL, *seed_file = NULL, *baselines = NULL;
    int64_t trials = 20, keep = 2, seed = 1, eval_seed = 1, max_new = 4096, concurrency = 8;
    double mistakes = 0.15;
    int withhold = 0;
    const Flag flags[] = {
        {"output", FLAG_TEXT, &output, "samples artifact to write", .required = 1, .aside = 1},
        {"tasks", FLAG_TEXT, &only, "names, comma separated; all when left out", .aside = 1},
        {"task-root", FLAG_TEXT, &root, "folder of the tasks", .aside = 1},
        {"teachers", FLAG_TEXT, &names,
         "comma separated: template, openai:MODEL, anthropic:MODEL, dir:PATH"},
        {"trials", FLAG_INT, &trials, "answers at most for each task and teacher", 1, 100000},
        {"keep", FLAG_INT, &keep, "stop after so many distinct correct ones", 1, 100000},
        {"withhold", FLAG_BOOL, &withhold, "template: no fast designs for half of the train tasks"},
        {"mistakes", FLAG_FLOAT, &mistakes,
         "share of the template teacher's kernels with a beginner's mistake", 0, 1},
        {"max-new", FLAG_INT, &max_new, "tokens of an endpoint's answer", 16, 131072, .aside = 1},
        {"concurrency", FLAG_INT, &concurrency, "requests to an endpoint at once", 1, 1024,
         .aside = 1},
        {"device", FLAG_TEXT, &device, "device class that judges"},
        {"baselines", FLAG_TEXT, &baselines,
         "verdicts of the baselines, whose times an endpoint's prompts say", .aside = 1},
        {"redis", FLAG_TEXT, &redis, "the queue's server; default $QUERN_REDIS", .aside = 1},
        {"eval-seed", FLAG_INT, &eval_seed, "of the evaluators' inputs", 0, 1e15, .aside = 1},
        {"eval-seed-file", FLAG_TEXT, &seed_file, "holds that seed, as of quern-evaluate",
         .aside = 1},
        {"seed", FLAG_INT, &seed, "of the teachers", 0, 1e15},
        {0}};
    const FlagSpec spec = {
        "quern-collect", "--output FILE [--teachers LIST]",
        "Stage 1: collect kernels from teachers until enough of them are correct.", .flags = flags,
        .checkable = 1};
    flags_parse(&spec, argc, argv, (const char **)argv);
    log_open("quern-collect");
    stop_install();
    Error err;
    Teacher teachers[MAX_TEACHERS];
    uint64_t inputs = (uint64_t)eval_seed;
    PromptFacts facts;
    const Teacher common = {NULL,           mistakes, withhold, (int)max_new, (int)concurrency,
                            (uint64_t)seed, &facts};
    char *list = memory_strdup(names);
    int n = split_teachers(list, &common, teachers, &err);
    if (n < 0) flags_usage_error(&spec, "%s", err.text);
    flags_checked();
    ArtifactSpec out;
    TaskSet tasks;
    Queue *q;
    artifact_spec_init(&out, "samples", "quern-collect");
    config_from_flags(&out, flags);
    artifact_spec_config(&out, "max-tokens", "%lld", (long long)max_new);
    if (taskset_load(root, only, &tasks, &err) ||
        (baselines && artifact_spec_input(&out, baselines, &err)) ||
        prompt_facts_load(1, device, baselines, &facts, &err))
        log_die(&err);
    artifact_spec_input_digest(&out, "tasks", tasks.digest);
    for (int i = 0; i < n; i++)
        if (teacher_input(&teachers[i], &tasks, &out, &err)) log_die(&err);
    if (artifact_same(&out, output)) return 0;
    if (seed_file && seed_file_get(seed_file, &inputs, &err)) log_die(&err);
    const CollectOptions o = {teachers, n, (int)trials, (int)keep, device, output, inputs};
    if (queue_open(redis, NULL, VERDICT_HARNESS, &q, &err)) log_die(&err);
    if (collect_run(&tasks, q, &o, &out, &err)) log_die(&err);
    queue_close(q);
    taskset_release(&tasks);
    prompt_facts_release(&facts);
    artifact_spec_release(&out);
    free(list);
    return log_close(0);
}
