/* Runs a command with a private queue and local evaluators around it. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/stop.h"
#include "queue/fleet.h"

static int cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* "sim:h100,sim:a100" into a list; "auto" is the simulator, the one device that is everywhere. */
static int split_devices(char *text, const char **devices, const FlagSpec *spec)
{
    int n = 0;
    for (char *save = NULL, *d = strtok_r(text, ",", &save); d; d = strtok_r(NULL, ",", &save)) {
        if (n == FLEET_MAX_WORKERS) flags_usage_error(spec, "--devices names more than %d devices", FLEET_MAX_WORKERS);
        int is_auto = !strcmp(d, "auto");
        if (is_auto && !access("/dev/nvidiactl", F_OK))
            log_info("there is a GPU here, but no device of Quern's for it yet: the simulator sim:h100 is used");
        devices[n++] = is_auto ? "sim:h100" : d;
    }
    if (!n) flags_usage_error(spec, "--devices names no device");
    return n;
}

int main(int argc, char **argv)
{
    const char *dir = NULL, *devices = "auto", *evaluator = NULL;
    int64_t workers = -1, parent = 0;
    const Flag flags[] = {
        {.name = "dir", .kind = FLAG_TEXT, .target = &dir,
         .help = "where the private server keeps its data: finished jobs are found done on the next run; "
                 ".quern if not given. One fleet at a time has it, with an outside server too"},
        {.name = "devices", .kind = FLAG_TEXT, .target = &devices,
         .help = "comma-separated devices for the evaluators: sim:h100,cuda:0; auto is sim:h100"},
        {.name = "workers", .kind = FLAG_INT, .target = &workers,
         .help = "evaluator processes, shared out over the devices; -1: one a core, at least one a "
                 "device", .min = -1, .max = FLEET_MAX_WORKERS},
        {.name = "evaluator", .kind = FLAG_TEXT, .target = &evaluator,
         .help = "the evaluator's program, if not the quern-evald beside this one"},
        {.name = "parent", .kind = FLAG_INT, .target = &parent,
         .help = "a process whose end also ends COMMAND; 0: none", .min = 0, .max = 1 << 30},
        {0}};
    const FlagSpec spec = {.program = "quern-fleet",
                           .synopsis = "run [flags] -- COMMAND...",
                           .about = "Starts a private redis-server and evaluators, runs COMMAND with QUERN_REDIS set, and takes all "
                                    "down when it ends, on a signal, or when quern-fleet itself is killed. With QUERN_REDIS set, "
                                    "only evaluators are started, for that server. The exit status is COMMAND's.",
                           .flags = flags,
                           .min_words = 2,
                           .max_words = -1};
    const char **words = memory_array((size_t)argc + 1, sizeof *words);
    int n = flags_parse(&spec, argc, argv, words);
    if (strcmp(words[0], "run")) flags_usage_error(&spec, "expected 'run', found '%s'", words[0]);
    words[n] = NULL;
    log_open("quern-fleet");
    stop_install();
    const char *list[FLEET_MAX_WORKERS];
    char *text = memory_strdup(devices);
    int n_devices = split_devices(text, list, &spec);
    Error err = {0};
    char beside[4096];
    if (!evaluator) {
        if (process_self_dir(beside, sizeof beside - 16, &err)) log_die(1, &err);
        strcat(beside, "/quern-evald");
        evaluator = beside;
    }
    if (workers < 0) workers = cores() > n_devices ? cores() : n_devices;
    if (workers && access(evaluator, X_OK)) {
        error_errno(&err, "cannot run the evaluator %s", evaluator);
        log_die(1, &err);
    }
    const char *redis = getenv("QUERN_REDIS");
    if (redis && !*redis) redis = NULL;
    const FleetOptions opt = {.dir = dir || redis ? dir : ".quern",
                              .redis = redis,
                              .evaluator = evaluator,
                              .devices = list,
                              .n_devices = n_devices,
                              .workers = (int)workers,
                              .parent = (int)parent,
                              .command = (char *const *)(words + 1)};
    int status = 0;
    if (fleet_run(&opt, &status, &err)) log_die(stop_requested() ? 128 + stop_requested() : 1, &err);
    free(text);
    free(words);
    return log_close(status);
}
