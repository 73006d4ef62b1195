/* quern-refine: makes the prompts of a next turn from judged answers. */
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/crl/prompts.h"
#include "stages/data/stage_config.h"

int main(int argc, char **argv)
{
    const char *samples = NULL, *verdicts = NULL, *output = NULL, *only = NULL, *root = NULL,
               *device = NULL, *baselines = NULL;
    int64_t turn = 2;
    int full = 0;
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &samples, "answers of the turn before", .required = 1, .aside = 1},
        {"verdicts", FLAG_TEXT, &verdicts, "their verdicts", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "prompts artifact to write", .required = 1, .aside = 1},
        {"turn", FLAG_INT, &turn, "number of the turn that the prompts begin", 2,
         SAMPLES_MAX_TURNS},
        TASK_FLAGS(only, root),
        PROMPT_FACTS_FLAGS(full, device, baselines),
        {0}};
    const FlagSpec spec = {"quern-refine", "--samples FILE --verdicts FILE --output FILE",
                           "Make prompts that show an answer and its verdict, for a next turn.",
                           flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    stop_install();
    Error err;
    ArtifactSpec out;
    TaskSet tasks;
    PromptFacts facts;
    SampleSet set;
    config_spec(&out, "prompts", &spec, NULL);
    if (config_inputs(&out, (const char *[]){samples, verdicts, baselines}, 3, &err) ||
        config_tasks(&out, root, only, &tasks, &err))
        log_die(&err);
    if (artifact_same(&out, output)) return 0;
    if (prompt_facts_load(full, device, baselines, &facts, &err) ||
        samples_load(samples, verdicts, &set, &err) ||
        refine_write(&set, &tasks, &facts, (int)turn, output, &out, &err))
        log_die(&err);
    samples_release(&set);
    prompt_facts_release(&facts);
    taskset_release(&tasks);
    artifact_spec_release(&out);
    return log_close(0);
}
