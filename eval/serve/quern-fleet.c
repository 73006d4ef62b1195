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
#include "eval/judge/verdict.h"
#include "queue/fleet.h"

enum { FIND_S = 30 };

static int cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

typedef struct {
    const char *names[FLEET_MAX_WORKERS]; /* never released */
    int n;
} Devices;

static void add_device(Devices *d, const char *name, size_t len, const FlagSpec *spec)
{
    if (d->n == FLEET_MAX_WORKERS)
        flags_usage_error(spec, "--devices names more than %d devices", FLEET_MAX_WORKERS);
    d->names[d->n++] = memory_strndup(name, len);
}

/* Every GPU that quern-devices, beside this program, finds; else the simulator, the one device that
 * is everywhere. */
static void add_found(Devices *d, const char *dir, const FlagSpec *spec)
{
    char program[4200];
    Buffer out, said;
    ProcessResult result = {.exit_code = -1};
    Error err = {0};
    int before = d->n;
    buffer_init(&out, 64 * 1024);
    buffer_init(&said, 4096);
    snprintf(program, sizeof program, "%s/quern-devices", dir);
    const char *const argv[] = {program, "--gpus", NULL};
    if (process_run(argv, &(ProcessOptions){.timeout_s = FIND_S}, &out, &said, &result, &err))
        log_warn("%s", err.text);
    for (char *line = out.data; !strncmp(line, "cuda:", 5); line += strcspn(line, "\n") + 1) {
        add_device(d, line, strcspn(line, " \n"), spec);
        if (!line[strcspn(line, "\n")]) break;
    }
    if (d->n == before) {
        add_device(d, "sim:h100", 8, spec);
        said.data[strcspn(said.data, "\n")] = 0;
        const char *why = result.timed_out ? "the CUDA driver does not answer" : said.data;
        if (*why)
            log_info("there is a GPU here that cannot be used, so the simulator sim:h100 is: %s",
                     why);
    }
    buffer_release(&out);
    buffer_release(&said);
}

static void list_devices(Devices *d, const char *text, const char *dir, const FlagSpec *spec)
{
    for (size_t n; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        if (n == 4 && !memcmp(text, "auto", 4))
            add_found(d, dir, spec);
        else if (n)
            add_device(d, text, n, spec);
    }
    if (!d->n) flags_usage_error(spec, "--devices names no device");
}

static int is_gpu(const char *name)
{
    return !strncmp(name, "cuda:", 5);
}

/* One evaluator a GPU; the simulators share the other cores, with at least one evaluator each. */
static void share_out(Devices *d, const FlagSpec *spec)
{
    int simulated[FLEET_MAX_WORKERS], n = 0, gpus;
    for (int i = 0; i < d->n; i++)
        if (!is_gpu(d->names[i])) simulated[n++] = i;
    gpus = d->n - n;
    for (int k = n, spare = cores() - gpus; n && k < spare && d->n < FLEET_MAX_WORKERS; k++) {
        const char *name = d->names[simulated[k % n]];
        add_device(d, name, strlen(name), spec);
    }
}

int main(int argc, char **argv)
{
    const char *dir = NULL, *devices = "auto", *evaluator = NULL;
    int64_t workers = -1, parent = 0;
    const Flag flags[] = {
        {.name = "dir",
         .kind = FLAG_TEXT,
         .target = &dir,
         .help = "where the private server keeps its data: finished jobs are found done on the "
                 "next run; "
                 ".quern if not given. One fleet at a time has it, with an outside server too"},
        {.name = "devices",
         .kind = FLAG_TEXT,
         .target = &devices,
         .help = "comma-separated devices for the evaluators: sim:h100,cuda:0; auto: every GPU, "
                 "without one sim:h100"},
        {.name = "workers",
         .kind = FLAG_INT,
         .target = &workers,
         .help =
             "evaluator processes, shared out over the devices; -1: one a GPU, and one a core for "
             "simulators",
         .min = -1,
         .max = FLEET_MAX_WORKERS},
        {.name = "evaluator",
         .kind = FLAG_TEXT,
         .target = &evaluator,
         .help = "the evaluator's program, if not the quern-evald beside this one"},
        {.name = "parent",
         .kind = FLAG_INT,
         .target = &parent,
         .help = "a process whose end also ends COMMAND; 0: none",
         .min = 0,
         .max = 1 << 30},
        {0}};
    const FlagSpec spec = {
        .program = "quern-fleet",
        .synopsis = "run [flags] -- COMMAND...",
        .about = "Starts a private redis-server and evaluators, runs COMMAND with QUERN_REDIS set, "
                 "and takes all "
                 "down when it ends, on a signal, or when quern-fleet itself is killed. With "
                 "QUERN_REDIS set, "
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
    static Devices list;
    Error err = {0};
    char dir_of_self[4000], beside[4096];
    if (process_self_dir(dir_of_self, sizeof dir_of_self, &err)) log_die(&err);
    if (!evaluator) {
        snprintf(beside, sizeof beside, "%s/quern-evald", dir_of_self);
        evaluator = beside;
    }
    list_devices(&list, devices, dir_of_self, &spec);
    if (workers < 0) {
        share_out(&list, &spec);
        workers = list.n;
    }
    if (workers && access(evaluator, X_OK)) {
        error_errno(&err, "cannot run the evaluator %s", evaluator);
        log_die(&err);
    }
    const char *redis = getenv("QUERN_REDIS");
    if (redis && !*redis) redis = NULL;
    const FleetOptions opt = {.dir = dir || redis ? dir : ".quern",
                              .version = VERDICT_HARNESS,
                              .redis = redis,
                              .worker = evaluator,
                              .noun = "evaluator",
                              .devices = list.names,
                              .n_devices = list.n,
                              .workers = (int)workers,
                              .parent = (int)parent,
                              .command = (char *const *)(words + 1)};
    int status = 0;
    if (fleet_run(&opt, &status, &err)) log_die(&err);
    free(words);
    return log_close(status);
}
