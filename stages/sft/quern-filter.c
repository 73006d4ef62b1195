/* quern-filter: makes the dataset of stage 1 from samples and their verdicts. */
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/data/stage_config.h"
#include "stages/sft/dataset.h"

int main(int argc, char **argv)
{
    const char *samples = NULL, *verdicts = NULL, *output = NULL, *only = NULL, *root = NULL,
               *device = NULL, *baselines = NULL;
    int64_t seed = 1;
    double contrastive = 1, drills = 0, corrections = 0;
    int empty = 0, full = 0;
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &samples, "samples artifact", .required = 1, .aside = 1},
        {"verdicts", FLAG_TEXT, &verdicts, "their verdicts", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "dataset artifact to write", .required = 1, .aside = 1},
        TASK_FLAGS(only, root),
        PROMPT_FACTS_FLAGS(full, device, baselines),
        {"contrastive", FLAG_FLOAT, &contrastive, "contrastive examples a kernel, on average", 0,
         64},
        {"drills", FLAG_FLOAT, &drills, "comparisons of two scores alone a kernel, on average", 0,
         64},
        {"corrections", FLAG_FLOAT, &corrections,
         "kernels with their verdicts, and better ones, a kernel, on average", 0, 64,
         .aside = CONFIG_CHANGED},
        {"empty", FLAG_BOOL, &empty, "no correct sample is no error", .aside = 1},
        {"seed", FLAG_INT, &seed, "of the exemplars' draw", 0, 1e15},
        {0}};
    const FlagSpec spec = {
        "quern-filter", "--samples FILE --verdicts FILE --output FILE",
        "Keep what ran and was correct, once each, and make training examples of it.", flags,
        .checkable = 1};
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    flags_parse(&spec, argc, argv, (const char **)argv);
    flags_checked();
    stop_install();
    Error err;
    ArtifactSpec out;
    config_spec(&out, "dataset", &spec, &defaults);
    TaskSet tasks;
    SampleSet set;
    if (taskset_load(root, only, &tasks, &err) ||
        config_inputs(&out, (const char *[]){samples, verdicts, baselines}, 3, &err))
        log_die(&err);
    artifact_spec_input_digest(&out, "tasks", tasks.digest);
    if (artifact_same(&out, output)) return 0;
    long kept;
    PromptFacts facts;
    const DatasetOptions o = {contrastive, drills, &facts, (uint64_t)seed, empty, corrections};
    if (prompt_facts_load(full, device, baselines, &facts, &err) ||
        samples_load(samples, verdicts, &set, &err) ||
        dataset_write(&set, &tasks, &o, output, &out, &kept, &err))
        log_die(&err);
    log_info("%ld of %ld samples kept: correct, distinct, of train tasks", kept, set.n);
    samples_release(&set);
    prompt_facts_release(&facts);
    taskset_release(&tasks);
    artifact_spec_release(&out);
    return log_close(0);
}
