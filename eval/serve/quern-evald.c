/* quern-evald: serve the queue with one device. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/process.h"
#include "base/stop.h"
#include "eval/serve/eval_worker.h"
#include "eval/serve/precompile.h"
#include "queue/url.h"

static void parse(int argc, char **argv, EvalWorkerOptions *opt)
{
    int64_t compilers = -1;
    const char *runner = "evaluator";
    const Flag flags[] = {
        {"device", FLAG_TEXT, &opt->runner.device, "what to evaluate on: sim:h100, cuda:0",
         .required = 1},
        {"redis", FLAG_TEXT, &opt->redis,
         "the queue's server, redis://host:port/db or unix:PATH, instead of QUERN_REDIS"},
        {"queue", FLAG_TEXT, &opt->queue, "the queue's name, if not quern"},
        {"consumer", FLAG_TEXT, &opt->consumer,
         "a name of its own among the workers, if not host, process and nonce"},
        {"deadline", FLAG_FLOAT, &opt->deadline_s,
         "seconds that one job may take before its runner is killed", .min = 0.1, .max = 86400},
        {"compilers", FLAG_INT, &compilers,
         "processes that compile the next candidates while one is judged; -1: up to four on a real "
         "device, none on a simulator",
         .min = -1, .max = PRECOMPILE_MAX_COMPILERS},
        {"once", FLAG_BOOL, &opt->once, "end after one job"},
        {"runner", FLAG_TEXT, &runner,
         "who judges; noop answers every job with a fixed verdict, to test a queue",
         .choices = "evaluator|noop"},
        {"uuid", FLAG_TEXT, &opt->runner.uuid, "of the noop runner's device, to test records"},
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
    queue_url_check_flag(&spec, opt->redis);
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
