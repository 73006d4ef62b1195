/* quern-evaluate: have every sample judged by the evaluators of one or more device classes. */
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/judge/seeds.h"
#include "eval/serve/evaluate.h"
#include "queue/url.h"

static void list_classes(const FlagSpec *spec, char *text, EvaluateOptions *opt)
{
    for (char *save = NULL, *d = strtok_r(text, ",", &save); d; d = strtok_r(NULL, ",", &save)) {
        if (opt->n_devices == EVALUATE_MAX_DEVICES)
            flags_usage_error(spec, "--device names more than %d classes", EVALUATE_MAX_DEVICES);
        opt->devices[opt->n_devices++] = d;
    }
    if (!opt->n_devices) flags_usage_error(spec, "--device names no class");
}

/* End with a usage error when a flag is given that has no effect on simulators. */
static void check_measured(const FlagSpec *spec, const EvaluateOptions *opt)
{
    int measured = 0;
    for (int i = 0; i < opt->n_devices; i++) measured |= strncmp(opt->devices[i], "sim:", 4) != 0;
    if (!measured && flags_given("second-wait"))
        flags_usage_error(spec, "--second-wait has no effect on simulators: only measured scores "
                                "need a second device");
}

/* End with a usage error unless one seed is given; read it. */
static void choose_seed(const FlagSpec *spec, const char *file, int64_t seed, int again,
                        EvaluateOptions *opt)
{
    Error err;
    if (file && flags_given("seed"))
        flags_usage_error(spec, "--seed and --seed-file cannot be given together");
    opt->seed = (uint64_t)seed;
    if (file && seed_file_get(file, &opt->seed, &err)) log_die(&err);
    if (again) opt->seed = seed_derive(opt->seed, "again", "");
    opt->sanitize = again;
}

/* devices: a copy of --device, cut at its commas; opt->devices points into it. */
static void parse(int argc, char **argv, EvaluateOptions *opt, char **devices)
{
    const char *classes = "sim:h100";
    int64_t seed = 1;
    const char *seed_file = NULL;
    int again = 0;
    const Flag flags[] = {
        {"output", FLAG_TEXT, &opt->output, "the verdicts artifact", .required = 1},
        {"device", FLAG_TEXT, &classes,
         "device classes, comma-separated; each sample gets a verdict of each"},
        {"seed", FLAG_INT, &seed, "of the inputs that the evaluators draw", 0, 9e15},
        {"seed-file", FLAG_TEXT, &seed_file,
         "holds the seed; made with a random one when there is no such file"},
        {"again", FLAG_BOOL, &again,
         "on other inputs: those of a seed that follows from the given one; a simulator checks "
         "what a "
         "GPU measures"},
        {"redis", FLAG_TEXT, &opt->redis, "the queue's server instead of QUERN_REDIS"},
        {"queue", FLAG_TEXT, &opt->queue, "the queue's name, if not quern"},
        {"urgent", FLAG_BOOL, &opt->urgent, "before all jobs that are not"},
        {"patience", FLAG_FLOAT, &opt->patience_s, "fail when nothing finishes for so many seconds",
         1, 1e7},
        {"best", FLAG_TEXT, &opt->best,
         "a pool; a measured score above twice its best of the task needs a second device, "
         "as any above 3 does"},
        {"second-wait", FLAG_FLOAT, &opt->second_wait_s,
         "seconds for another device of the class to appear, else a record stays unconfirmed", 0,
         86400},
        {0}};
    const FlagSpec spec = {.program = "quern-evaluate",
                           .synopsis = "SAMPLES --output VERDICTS [--device CLASS,...]",
                           .about = "Sends each distinct candidate of SAMPLES through the queue "
                                    "and writes the verdicts in the order "
                                    "of the samples. Interrupted, the same command continues.",
                           .flags = flags,
                           .min_words = 1,
                           .max_words = 1};
    const char **words = (const char **)argv;
    flags_parse(&spec, argc, argv, words);
    queue_url_check_flag(&spec, opt->redis);
    opt->samples = words[0];
    choose_seed(&spec, seed_file, seed, again, opt);
    *devices = memory_strdup(classes);
    list_classes(&spec, *devices, opt);
    check_measured(&spec, opt);
}

int main(int argc, char **argv)
{
    EvaluateOptions opt = {.patience_s = 1800, .second_wait_s = 30};
    char *devices;
    Error err = {0};
    parse(argc, argv, &opt, &devices);
    log_open("quern-evaluate");
    stop_install();
    if (evaluate_run(&opt, &err)) log_die(&err);
    free(devices);
    return log_close(0);
}
