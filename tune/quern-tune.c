/* quern-tune: searches the generator's schedules for a task's fastest kernel. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "queue/url.h"
#include "tune/tune.h"

enum { KERNELS = 2000 };

static TuneOptions opt = {.device_class = "sim:h100"};
static const char *task, *root, *dir, *redis, *bound = "say";
static double seconds;
static int64_t seed = 1, most = 200;

static const Flag flags[] = {
    {"task", FLAG_TEXT, &task, "task, or the path of its folder", .required = 1},
    {"task-root", FLAG_TEXT, &root, "folder of the tasks"},
    {"output", FLAG_TEXT, &dir, "folder of best.cu, report.txt and verdicts.tsv, which is there",
     .required = 1},
    {"device", FLAG_TEXT, &opt.device_class, "device class"},
    {"ranks", FLAG_TEXT, &opt.ranks,
     "simulated device class, whose predictions choose what is judged"},
    {"seconds", FLAG_FLOAT, &seconds, "that the search may take; 0: until nothing moves", 0, 1e7},
    {"most", FLAG_INT, &most, "kernels that are judged at most", 1, KERNELS},
    {"bound", FLAG_TEXT, &bound,
     "what can be done with the module is said; only that; or not, as it was said before",
     .choices = "say|only|skip"},
    {"seed", FLAG_INT, &seed, "of the inputs that the evaluators draw", 0, 9e15},
    {"redis", FLAG_TEXT, &redis, "the queue's server instead of QUERN_REDIS"},
    {0}};

static const FlagSpec spec = {
    .program = "quern-tune",
    .synopsis = "--task NAME --output DIR [--device CLASS] [--seconds S]",
    .about =
        "Searches the kernel generator's schedules for a task's fastest kernel, by verdicts from "
        "the queue. DIR/best.cu is the best one so far. Exit status: 0 it is faster than the "
        "baseline, 1 none is, or nothing can be gained. --bound only judges nothing: 0 says that "
        "there "
        "is something to search.",
    .flags = flags};

/* The simulated GPU whose model fits a class: the one of its name, else the H100. */
static const Profile *profile_of(const char *device_class, Error *err)
{
    static const char *const gpus[][2] = {
        {"H200", "h200"}, {"A100", "a100"}, {"L40", "l40"}, {"3090", "rtx3090"}, {"H20", "h20"}};
    if (!strncmp(device_class, "sim:", 4)) return profile_find(device_class + 4, err);
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strstr(device_class, gpus[i][0])) return profile_find(gpus[i][1], err);
    return profile_find("h100", err);
}

int main(int argc, char **argv)
{
    const char *words[1];
    Error err = {0};
    TaskSet tasks = {0};
    const double begun = clock_seconds();
    flags_parse(&spec, argc, argv, words);
    queue_url_check_flag(&spec, redis);
    stop_install();
    task_at_path(&root, &task);
    int at = taskset_need(&tasks, root, task, &err);
    if (at < 0) log_die(&err);
    opt.task = opt.sized = tasks.tasks[at];
    Task *own = strncmp(opt.device_class, "sim:", 4) ? size_own(opt.task) : NULL;
    if (own) opt.sized = own;
    opt.seed = (uint64_t)seed;
    opt.most = (int)most;
    opt.deadline = seconds > 0 ? begun + seconds : 0;
    opt.output = memory_printf("%s/best.cu", dir);
    opt.report = memory_printf("%s/report.txt", dir);
    opt.verdicts = memory_printf("%s/verdicts.tsv", dir);
    opt.only_bound = !strcmp(bound, "only");
    opt.quiet = !strcmp(bound, "skip");
    if (!(opt.gpu = profile_of(opt.device_class, &err)) ||
        (!opt.only_bound && queue_open(redis, NULL, VERDICT_HARNESS, &opt.queue, &err)))
        log_die(&err);
    int rc = tune_run(&opt, &err);
    if (opt.queue) queue_close(opt.queue);
    if (rc < 0) log_die(&err);
    free(own);
    taskset_release(&tasks);
    return log_close(rc == TUNE_FOUND ? EXIT_STATUS_OK : EXIT_STATUS_FAILED);
}
