/* quern-evald: serve the queue with one device. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/process.h"
#include "base/stop.h"
#include "eval/serve/eval_worker.h"
#include "eval/serve/precompile.h"

static void parse(int argc, char **argv, EvalWorkerOptions *opt)
{
    int64_t compilers = -1;
    const char *runner = "evaluator";
    const Flag flags[] = {
        {.name = "device",
         .kind = FLAG_TEXT,
         .target = &opt->runner.device,
         .help = "what to evaluate on: sim:h100, cuda:0",
         .required = 1},
        {.name = "redis",
         .kind = FLAG_TEXT,
         .target = &opt->redis,
         .help = "the queue's server, redis://host:port/db or unix:PATH, instead of QUERN_REDIS"},
        {.name = "queue",
         .kind = FLAG_TEXT,
         .target = &opt->queue,
         .help = "the queue's name, if not quern"},
        {.name = "consumer",
         .kind = FLAG_TEXT,
         .target = &opt->consumer,
         .help = "a name of its own among the workers, if not host, process and nonce"},
        {.name = "deadline",
         .kind = FLAG_FLOAT,
         .target = &opt->deadline_s,
         .help = "seconds that one job may take before its runner is killed",
         .min = 0.1,
         .max = 86400},
        {.name = "compilers",
         .kind = FLAG_INT,
         .target = &compilers,
         .help = "processes that compile the next candidates while one is judged; -1: up to four "
                 "on a real device, none on a simulator",
         .min = -1,
         .max = PRECOMPILE_MAX_COMPILERS},
        {.name = "once", .kind = FLAG_BOOL, .target = &opt->once, .help = "end after one job"},
        {.name = "runner",
         .kind = FLAG_TEXT,
         .target = &runner,
         .help = "who judges; noop answers every job with a fixed verdict, to test a queue",
         .choices = "evaluator|noop"},
        {.name = "uuid",
         .kind = FLAG_TEXT,
         .target = &opt->runner.uuid,
         .help = "of the noop runner's device, to test records"},
        {0}};
    const FlagSpec spec = {
        .program = "quern-evald",
        .synopsis = "--device DEVICE [flags]",
        .about = "Takes candidates from the queue, judges them on the device and hands in the "
                 "verdicts, until SIGTERM: then it finishes or hands back what it has. Any number "
                 "may serve one queue, on any host. Exit status: 2 no such device, 4 the device "
                 "cannot be used, or is sick and left service.",
        .flags = flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    if (opt->redis && strchr(opt->redis, '@'))
        flags_usage_error(
            &spec,
            "--redis takes no password: others can read a command line; set QUERN_REDIS instead");
    if (opt->runner.uuid && strcmp(runner, "noop"))
        flags_usage_error(&spec, "--uuid is for --runner noop: a device has its own");
    opt->compilers = (int)compilers;
    opt->runner.noop = !strcmp(runner, "noop");
}

int main(int argc, char **argv)
{
    EvalWorkerOptions opt = {.deadline_s = 120};
    Error err = {0};
    parse(argc, argv, &opt);
    log_open("quern-evald");
    stop_install();
    process_adopt();
    if (eval_worker_run(&opt, &err)) log_die(&err);
    return log_close(0);
}
