/* One candidate, one verdict; several of one task, one after another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/candidate/candidate.h"
#include "eval/judge/verdict_show.h"

enum { EXIT_CANDIDATE = 1, EXIT_EVALUATOR = 3 };

/* Far more than a candidate may have: a large file is the candidate's fault, and its verdict says
 * so. */
enum { SOURCE_MAX = 256 << 20 };

static void read_source(const char *path, Buffer *out)
{
    Error err;
    buffer_init(out, CANDIDATE_MAX_SOURCE + 1);
    if (file_read_source(path, SOURCE_MAX, out, &err)) log_die(&err);
}

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
        if (show_json(stdout, task, &v, &err)) log_die(&err);
    } else {
        show_text(stdout, task, &v, profile);
    }
    fflush(stdout);
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
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                              set->tasks[i]->name);
    flags_usage_error(spec, "no task is named \"%s\"; there are %s", task, names);
}

static ClockMode clock_mode(const char *name)
{
    return !strcmp(name, "warm") ? CLOCK_WARM : !strcmp(name, "graph") ? CLOCK_GRAPH : CLOCK_COLD;
}

int main(int argc, char **argv)
{
    const char *task = NULL, *device = "sim:h100", *tasks_root = NULL, *cache = NULL, *arg;
    const char *mode = "cold", *baseline = NULL;
    double budget = 0;
    int json = 0, profile = 0;
    int64_t seed = 1;
    Flag flags[] = {{.name = "task",
                     .kind = FLAG_TEXT,
                     .target = &task,
                     .help = "the task that the candidate is for",
                     .required = 1},
                    {.name = "device",
                     .kind = FLAG_TEXT,
                     .target = &device,
                     .help = "where it runs: sim:a100, h100, h200, l40, rtx3090, h20; cuda:0"},
                    {.name = "seed",
                     .kind = FLAG_INT,
                     .target = &seed,
                     .help = "of the drawn inputs",
                     .min = 0,
                     .max = 9e15},
                    {.name = "tasks",
                     .kind = FLAG_TEXT,
                     .target = &tasks_root,
                     .help = "folder of the tasks; else $QUERN_TASKS, else Quern's own"},
                    {.name = "cache",
                     .kind = FLAG_TEXT,
                     .target = &cache,
                     .help = "folder of the compile cache; else $QUERN_CACHE, else none"},
                    {.name = "mode",
                     .kind = FLAG_TEXT,
                     .target = &mode,
                     .choices = "cold|warm|graph",
                     .help = "what the clock of a GPU sees: L2 flushed, as the last run left it, "
                             "or flushed and replayed as one CUDA graph"},
                    {.name = "budget",
                     .kind = FLAG_FLOAT,
                     .target = &budget,
                     .help = "seconds of timing at most; 0: as the evaluator chooses",
                     .max = 600},
                    {.name = "baseline",
                     .kind = FLAG_TEXT,
                     .target = &baseline,
                     .help = "a source that is speedup 1.0 instead of the task's baseline"},
                    {.name = "json",
                     .kind = FLAG_BOOL,
                     .target = &json,
                     .help = "the verdict as one line of JSON"},
                    {.name = "profile",
                     .kind = FLAG_BOOL,
                     .target = &profile,
                     .help = "every check and counter, beside the baseline's"},
                    {.name = NULL}};
    FlagSpec spec = {.program = "quern-eval",
                     .synopsis = "--task NAME [--device DEVICE] FILE.cu...",
                     .about = "Compile, check and time one candidate, or several of a task. Exit "
                              "status: 0 correct and timed, "
                              "1 a candidate failed, 2 usage, 3 the evaluator failed.",
                     .flags = flags,
                     .min_words = 1,
                     .max_words = -1};
    Error err;
    Evaluator *e;
    const char **words = memory_array((size_t)argc, sizeof *words);
    int n = flags_parse(&spec, argc, argv, words), status = EXIT_SUCCESS;
    log_open("quern-eval");
    const DeviceOps *ops = device_find(device, &arg, &err);
    if (!ops) flags_usage_error(&spec, "%s", err.text);
    for (int i = 0; i < n; i++)
        if (!file_exists(words[i]))
            flags_usage_error(&spec, "cannot open %s: No such file or directory", words[i]);
    /* A GPU's driver takes 0.2 s to clear away a process with a context: nobody has to wait for
     * that. */
    if (ops->clock) process_answer_early();
    if (ops->use_only) ops->use_only(arg);
    Buffer first; /* the evaluator begins with it; a pipe can be read once only */
    read_source(words[0], &first);
    EvaluatorOptions options = {.device = device,
                                .tasks_root = tasks_root,
                                .cache_dir = cache,
                                .seed = (uint64_t)seed,
                                .mode = clock_mode(mode),
                                .budget_s = budget,
                                .baseline = baseline,
                                .profile = profile,
                                .first_task = task,
                                .first_source =
                                    first.len <= CANDIDATE_MAX_SOURCE ? first.data : NULL,
                                .first_len = first.len};
    if (evaluator_open(&options, &e, &err)) log_die(&err);
    need_task(&spec, evaluator_tasks(e), task);
    for (int i = 0; i < n; i++) {
        if (n > 1 && !json) printf("%s%s:\n", i ? "\n" : "", words[i]);
        Buffer next;
        if (i) read_source(words[i], &next);
        int one = judge(e, task, i ? &next : &first, json, profile);
        if (i) buffer_release(&next);
        if (one > status) status = one;
    }
    log_debug("judged");
    status = log_close(status);
    /* The end of the process ends the compiler and the runners and frees all: taking down CUDA
     * contexts by hand costs 0.15 s. */
    fflush(NULL);
    process_answered(status);
}
