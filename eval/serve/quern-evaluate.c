/* quern-evaluate: have every sample judged by the evaluators of one or more device classes. */
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/serve/evaluate.h"
#include "eval/serve/seed_file.h"

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

/* devices: a copy of --device, cut at its commas; opt->devices points into it. */
static void parse(int argc, char **argv, EvaluateOptions *opt, char **devices)
{
    const char *classes = "sim:h100";
    int64_t seed = 1;
    const char *seed_file = NULL;
    Error err;
    const Flag flags[] = {
        {.name = "output",
         .kind = FLAG_TEXT,
         .target = &opt->output,
         .help = "the verdicts artifact",
         .required = 1},
        {.name = "device",
         .kind = FLAG_TEXT,
         .target = &classes,
         .help = "device classes, comma-separated; each sample gets a verdict of each"},
        {.name = "seed",
         .kind = FLAG_INT,
         .target = &seed,
         .help = "of the inputs that the evaluators draw",
         .min = 0,
         .max = 9e15},
        {.name = "seed-file",
         .kind = FLAG_TEXT,
         .target = &seed_file,
         .help = "holds that seed; made with a random one when there is no such file",
         .aside = 1},
        {.name = "redis",
         .kind = FLAG_TEXT,
         .target = &opt->redis,
         .help = "the queue's server instead of QUERN_REDIS"},
        {.name = "queue",
         .kind = FLAG_TEXT,
         .target = &opt->queue,
         .help = "the queue's name, if not quern"},
        {.name = "urgent",
         .kind = FLAG_BOOL,
         .target = &opt->urgent,
         .help = "before all jobs that are not"},
        {.name = "patience",
         .kind = FLAG_FLOAT,
         .target = &opt->patience_s,
         .help = "fail when nothing finishes for so many seconds",
         .min = 1,
         .max = 1e7},
        {.name = "best",
         .kind = FLAG_TEXT,
         .target = &opt->best,
         .help = "a pool; a measured score above twice its best of the task needs a second device, "
                 "as any above 3 does"},
        {.name = "second-wait",
         .kind = FLAG_FLOAT,
         .target = &opt->second_wait_s,
         .help =
             "seconds for another device of the class to appear, else a record stays unconfirmed",
         .min = 0,
         .max = 86400},
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
    if (opt->redis && strchr(opt->redis, '@'))
        flags_usage_error(
            &spec,
            "--redis takes no password: others can read a command line; set QUERN_REDIS instead");
    opt->samples = words[0];
    if (seed_file && flags_given("seed"))
        flags_usage_error(&spec, "--seed and --seed-file cannot be given together");
    if (seed_file && seed_file_get(seed_file, &opt->seed, &err)) log_die(&err);
    if (!seed_file) opt->seed = (uint64_t)seed;
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
