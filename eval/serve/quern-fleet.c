/* quern-fleet: run a command with a private queue and local evaluators around it. */
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
#include "eval/judge/verdict/verdict.h"
#include "queue/fleet.h"

enum { FIND_S = 30 }; /* time limit of quern-devices */

static int cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

typedef struct {
    const char *names[FLEET_MAX_WORKERS]; /* never released */
    int threads[FLEET_MAX_WORKERS];
    int n;
} Devices;

static void add_device(Devices *d, const char *name, size_t len, const FlagSpec *spec)
{
    if (d->n == FLEET_MAX_WORKERS)
        flags_usage_error(spec, "--devices names more than %d devices", FLEET_MAX_WORKERS);
    d->names[d->n++] = memory_strndup(name, len);
}

/* Add every GPU that quern-devices, beside this program, finds; without one, the simulator
 * sim:h100. */
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

static int at_least_one(int n)
{
    return n < 1 ? 1 : n;
}

static int is_gpu(const char *name)
{
    return !strncmp(name, "cuda:", 5);
}

/* Give each GPU one evaluator, with half of the cores beside simulators and all of them otherwise: the host
 * computes its references meanwhile. Each other core has a simulator, each simulator at least one. */
static void share_out(Devices *d, const FlagSpec *spec)
{
    int simulated[FLEET_MAX_WORKERS], n = 0;
    for (int i = 0; i < d->n; i++)
        if (!is_gpu(d->names[i])) simulated[n++] = i;
    const int gpus = d->n - n, half = cores() / 2 > gpus ? cores() / 2 : gpus,
              spare = cores() - (gpus ? half : 0);
    for (int k = n; n && k < spare && d->n < FLEET_MAX_WORKERS; k++) {
        const char *name = d->names[simulated[k % n]];
        add_device(d, name, strlen(name), spec);
    }
    for (int i = 0; i < d->n; i++)
        d->threads[i] = is_gpu(d->names[i]) && n ? half / gpus : at_least_one(cores() / d->n);
}

typedef struct {
    const char *dir, *devices, *evaluator;
    int64_t workers, parent;
    int forget;
    const char **words; /* "run", then the command; NULL-terminated, owned */
} Arguments;

/* Fill a and the devices. The devices are listed here, since mistakes in them are usage errors. */
static void parse(int argc, char **argv, Arguments *a, Devices *list, const char *self_dir)
{
    *a = (Arguments){.devices = "auto", .workers = -1};
    const Flag flags[] = {
        {"dir", FLAG_TEXT, &a->dir,
         "where the private server keeps its data: finished jobs are found done on the next run; "
         ".quern if not given. One fleet at a time has it, with an outside server too"},
        {"devices", FLAG_TEXT, &a->devices,
         "comma-separated devices for the evaluators: sim:h100,cuda:0; auto: every GPU, without "
         "one sim:h100"},
        {"workers", FLAG_INT, &a->workers,
         "evaluator processes, shared out over the devices; -1: one a GPU, and one a core for "
         "simulators",
         .min = -1, .max = FLEET_MAX_WORKERS},
        {"evaluator", FLAG_TEXT, &a->evaluator,
         "the evaluator's program, if not the quern-evald beside this one"},
        {"forget", FLAG_BOOL, &a->forget,
         "when COMMAND succeeds and no job is dead, remove the private server's data: its results "
         "are kept elsewhere"},
        {"parent", FLAG_INT, &a->parent, "a process whose end also ends COMMAND; 0: none", .min = 0,
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
    a->words = memory_array((size_t)argc + 1, sizeof *a->words);
    a->words[flags_parse(&spec, argc, argv, a->words)] = NULL;
    if (strcmp(a->words[0], "run"))
        flags_usage_error(&spec, "expected 'run', found '%s'", a->words[0]);
    list_devices(list, a->devices, self_dir, &spec);
    for (int i = 0; i < list->n && a->workers > 0; i++)
        list->threads[i] = at_least_one(cores() / (int)a->workers);
    if (a->workers < 0) {
        share_out(list, &spec);
        a->workers = list->n;
    }
}

static int run(const Arguments *a, const Devices *list, const char *evaluator, int *status,
               Error *err)
{
    if (a->workers && access(evaluator, X_OK))
        return error_errno(err, "cannot run the evaluator %s", evaluator);
    const char *redis = getenv("QUERN_REDIS");
    if (redis && !*redis) redis = NULL;
    const FleetOptions opt = {.threads = list->threads,
                              .dir = a->dir || redis ? a->dir : ".quern",
                              .version = VERDICT_HARNESS,
                              .redis = redis,
                              .worker = evaluator,
                              .noun = "evaluator",
                              .devices = list->names,
                              .n_devices = list->n,
                              .workers = (int)a->workers,
                              .parent = (int)a->parent,
                              .forget = a->forget,
                              .command = (char *const *)(a->words + 1)};
    return fleet_run(&opt, status, err);
}

int main(int argc, char **argv)
{
    static Devices list;
    Arguments a;
    Error err = {0};
    char self_dir[4000], beside[4096];
    int status = 0;
    log_open("quern-fleet");
    stop_install();
    if (process_self_dir(self_dir, sizeof self_dir, &err)) log_die(&err);
    parse(argc, argv, &a, &list, self_dir);
    snprintf(beside, sizeof beside, "%s/quern-evald", self_dir);
    if (run(&a, &list, a.evaluator ? a.evaluator : beside, &status, &err)) log_die(&err);
    free(a.words);
    return log_close(status);
}
