/* One candidate, one verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "eval/candidate.h"
#include "eval/show.h"

enum { EXIT_CANDIDATE = 1, EXIT_EVALUATOR = 3 };

static int judge(Evaluator *e, const char *task, const Buffer *source, int json, int profile)
{
    Verdict v;
    Error err;
    int status = EXIT_SUCCESS;
    evaluator_run(e, task, source->data, source->len, &v);
    if (v.outcome == OUTCOME_EVALUATOR_ERROR)
        status = EXIT_EVALUATOR;
    else if (v.outcome != OUTCOME_OK)
        status = EXIT_CANDIDATE;
    if (json) {
        if (show_json(stdout, task, &v, &err)) log_die(EXIT_EVALUATOR, &err);
    } else {
        show_text(stdout, task, &v, profile);
    }
    verdict_release(&v);
    return status;
}

/* A task that is not there is a wrong word on the command line. */
static void need_task(const FlagSpec *spec, const TaskSet *set, const char *task)
{
    char names[1000] = "";
    size_t n = 0;
    if (taskset_find(set, task, strlen(task))) return;
    for (int i = 0; i < set->n && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", set->tasks[i]->name);
    flags_usage_error(spec, "no task is named \"%s\"; there are %s", task, names);
}

int main(int argc, char **argv)
{
    const char *task = NULL, *device = "sim:h100", *tasks_root = NULL, *cache = NULL, *words[2], *arg;
    int json = 0, profile = 0;
    int64_t seed = 1;
    Flag flags[] = {
        {.name = "task", .kind = FLAG_TEXT, .target = &task, .help = "the task that the candidate is for", .required = 1},
        {.name = "device", .kind = FLAG_TEXT, .target = &device, .help = "where it runs: sim:a100, h100, h200, l40, rtx3090, h20"},
        {.name = "seed", .kind = FLAG_INT, .target = &seed, .help = "of the drawn inputs", .min = 0, .max = 9e15},
        {.name = "tasks", .kind = FLAG_TEXT, .target = &tasks_root, .help = "folder of the tasks; else $QUERN_TASKS, else Quern's own"},
        {.name = "cache", .kind = FLAG_TEXT, .target = &cache, .help = "folder of the compile cache; else $QUERN_CACHE, else none"},
        {.name = "json", .kind = FLAG_BOOL, .target = &json, .help = "the verdict as one line of JSON"},
        {.name = "profile", .kind = FLAG_BOOL, .target = &profile, .help = "every check and counter, beside the baseline's"},
        {.name = NULL}};
    FlagSpec spec = {.program = "quern-eval", .synopsis = "--task NAME [--device DEVICE] FILE.cu",
                     .about = "Compile, check and time one candidate. Exit status: 0 correct and timed, 1 the candidate failed, "
                              "2 usage, 3 the evaluator failed.",
                     .flags = flags, .min_words = 1, .max_words = 1};
    Error err;
    Evaluator *e;
    Buffer source;
    flags_parse(&spec, argc, argv, words);
    log_open("quern-eval");
    if (!device_find(device, &arg, &err)) flags_usage_error(&spec, "%s", err.text);
    buffer_init(&source, CANDIDATE_MAX_SOURCE + 1);
    /* Far more than a candidate may have: a large file is the candidate's fault, and its verdict says so. */
    if (file_read(words[0], (size_t)256 << 20, &source, &err)) flags_usage_error(&spec, "%s", err.text);
    EvaluatorOptions options = {.device = device, .tasks_root = tasks_root, .cache_dir = cache, .seed = (uint64_t)seed};
    if (evaluator_open(&options, &e, &err)) log_die(EXIT_EVALUATOR, &err);
    need_task(&spec, evaluator_tasks(e), task);
    int status = judge(e, task, &source, json, profile);
    evaluator_close(e);
    buffer_release(&source);
    return log_close(status);
}
