/* Serves the queue with one device. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "eval/worker.h"

int main(int argc, char **argv)
{
    WorkerOptions opt = {.deadline_s = 120};
    const char *runner = "evaluator";
    const Flag flags[] = {
        {"device", FLAG_TEXT, &opt.runner.device, "what to evaluate on: sim:h100, cuda:0", 0, 0, NULL, 1},
        {"redis", FLAG_TEXT, &opt.redis, "the queue's server, redis://host:port/db or unix:PATH, instead of QUERN_REDIS (a password belongs there, not here)", 0, 0, NULL, 0},
        {"queue", FLAG_TEXT, &opt.queue, "the queue's name, if not quern", 0, 0, NULL, 0},
        {"consumer", FLAG_TEXT, &opt.consumer, "a name of its own among the workers, if not host, process and nonce", 0, 0, NULL, 0},
        {"deadline", FLAG_FLOAT, &opt.deadline_s, "seconds that one job may take before its runner is killed", 0.1, 86400, NULL, 0},
        {"once", FLAG_BOOL, &opt.once, "end after one job", 0, 0, NULL, 0},
        {"runner", FLAG_TEXT, &runner, "who judges; noop answers every job with a fixed verdict, to test a queue", 0, 0, "evaluator|noop", 0},
        {0}};
    const FlagSpec spec = {.program = "quern-evald",
                           .synopsis = "--device DEVICE [flags]",
                           .about = "Takes candidates from the queue, judges them on the device and hands in the verdicts, until "
                                    "SIGTERM: then it finishes or hands back what it has. Any number may serve one queue, on any host.",
                           .flags = flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    opt.runner.noop = !strcmp(runner, "noop");
    log_open("quern-evald");
    stop_install();
    Error err = {0};
    if (worker_run(&opt, &err)) log_die(1, &err);
    return log_close(0);
}
