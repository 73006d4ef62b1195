/* quern-refine: makes the prompts of a next turn from judged answers. */
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/crl/prompts.h"
#include "stages/data/stage_config.h"

int main(int argc, char **argv)
{
    const char *samples = NULL, *verdicts = NULL, *output = NULL, *only = NULL, *root = NULL,
               *style = "brief", *device = NULL, *baselines = NULL;
    int64_t turn = 2;
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &samples, "answers of the turn before", .required = 1, .aside = 1},
        {"verdicts", FLAG_TEXT, &verdicts, "their verdicts", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "prompts artifact to write", .required = 1, .aside = 1},
        {"turn", FLAG_INT, &turn, "number of the turn that the prompts begin", 2,
         SAMPLES_MAX_TURNS},
        {"tasks", FLAG_TEXT, &only, "names, comma separated; all when left out", .aside = 1},
        {"task-root", FLAG_TEXT, &root, "folder of the tasks", .aside = 1},
        {"style", FLAG_TEXT, &style, "of the prompts", .choices = "brief|full"},
        PROMPT_FACTS_FLAGS(device, baselines),
        {0}};
    const FlagSpec spec = {"quern-refine", "--samples FILE --verdicts FILE --output FILE",
                           "Make prompts that show an answer and its verdict, for a next turn.",
                           flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    log_open("quern-refine");
    stop_install();
    Error err;
    ArtifactSpec out;
    TaskSet tasks;
    PromptFacts facts;
    SampleSet set;
    artifact_spec_init(&out, "prompts", "quern-refine");
    config_from_flags(&out, flags);
    if (artifact_spec_input(&out, samples, &err) || artifact_spec_input(&out, verdicts, &err) ||
        taskset_load(root, only, &tasks, &err) ||
        (baselines && artifact_spec_input(&out, baselines, &err)))
        log_die(&err);
    artifact_spec_input_digest(&out, "tasks", tasks.digest);
    if (artifact_same(&out, output)) return 0;
    if (prompt_facts_load(style[0] == 'f', device, baselines, &facts, &err) ||
        samples_load(samples, verdicts, &set, &err) ||
        refine_write(&set, &tasks, &facts, (int)turn, output, &out, &err))
        log_die(&err);
    samples_release(&set);
    prompt_facts_release(&facts);
    taskset_release(&tasks);
    artifact_spec_release(&out);
    return log_close(0);
}
