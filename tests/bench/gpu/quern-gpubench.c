/* quern-gpubench: measure an evaluator on a device, part by part. A part that fails does not stop
 * the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/stop.h"
#include "tests/bench/gpu/gpubench.h"

static const struct {
    const char *name;
    int (*run)(GpuBench *b, Error *err);
    double share; /* of the limit, when same and difference share one */
} parts[] = {{"latency", gpubench_latency, 1},    {"baselines", gpubench_baselines, 1},
             {"same", gpubench_same, 0.7},        {"difference", gpubench_difference, 0.3},
             {"repeat", gpubench_repeat, 1},      {"hostile", gpubench_hostile, 1},
             {"sustained", gpubench_sustained, 1}};

enum { PARTS = sizeof parts / sizeof *parts };

static int is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && !memcmp(p, name, n)) return 1;
    return !strcmp(list, "all");
}

static void check_names(const FlagSpec *spec, const char *list)
{
    if (!*list) flags_usage_error(spec, "--parts names none");
    for (const char *p = list; *p && strcmp(list, "all"); p += strcspn(p, ","), p += *p == ',') {
        int known = 0;
        for (int i = 0; i < PARTS; i++)
            known |= strlen(parts[i].name) == strcspn(p, ",") &&
                     !strncmp(p, parts[i].name, strcspn(p, ","));
        if (!known)
            flags_usage_error(spec,
                              "--parts: no part is named \"%.*s\"; there are latency, baselines, "
                              "same, difference, repeat, "
                              "hostile, sustained",
                              (int)strcspn(p, ","), p);
    }
}

/* Whether repeats are made between the comparisons of this part. */
static int has_repeats(int (*run)(GpuBench *b, Error *err))
{
    return run == gpubench_same || run == gpubench_difference;
}

/* The time limit of a part. Same, difference and repeat share one. */
static double limit_of(int part, const char *list, double limit_s, double compared_s)
{
    if (parts[part].run == gpubench_repeat) return limit_s > 0 ? fmax(limit_s - compared_s, 1) : 0;
    return is_listed(list, "same") && is_listed(list, "difference") ? limit_s * parts[part].share
                                                                    : limit_s;
}

/* Run the listed parts. Returns 1 when one of them failed. */
static int run_parts(GpuBench *b, const char *list, double limit_s)
{
    int failed = 0;
    double compared_s = 0;
    Error err = {0};
    for (int i = 0; i < PARTS && !stop_requested(); i++) {
        err.text[0] = 0;
        long before = b->rows;
        if (!is_listed(list, parts[i].name)) continue;
        if (!b->repeat && has_repeats(parts[i].run) && is_listed(list, "repeat") &&
            gpubench_repeat_begin(b, &err))
            log_warn("repeat: %s", err.text);
        double start = clock_seconds();
        b->limit_s = limit_of(i, list, limit_s, compared_s);
        int rc = parts[i].run(b, &err);
        if (has_repeats(parts[i].run)) compared_s += clock_seconds() - start;
        if (!rc) continue;
        failed = 1;
        printf("  not measured%s: %s\n", b->rows > before ? " to its end" : "", err.text);
        log_warn("%s: %s", parts[i].name, err.text);
    }
    return failed;
}

typedef struct {
    GpuBench bench;
    double limit_s;
    const char *list, *out, *work;
} Options;

static Options opt = {.bench = {.device = "cuda:0",
                                .latency = 21,
                                .sustained = 2000,
                                .pairs = 500,
                                .trials = 200,
                                .repeats = 10,
                                .span_s = 600,
                                .hostile = 1000,
                                .hangs = 20,
                                .compilers = -1},
                      .list = "all"};

static const Flag flags[] = {
    {"device", FLAG_TEXT, &opt.bench.device, "cuda:N, or sim:PROFILE to try the program"},
    {"parts", FLAG_TEXT, &opt.list,
     "latency,baselines,same,difference,repeat,hostile,sustained, by comma"},
    {"limit", FLAG_FLOAT, &opt.limit_s,
     "seconds after which a part ends with what it has, same, difference and repeat as one; 0: "
     "none",
     0, 1e6},
    {"output", FLAG_TEXT, &opt.out, "every result and observation, tab-separated"},
    {"work", FLAG_TEXT, &opt.work, "scratch folder that is kept; else one in /tmp that is removed"},
    {"latency", FLAG_INT, &opt.bench.latency, "candidates of part latency", 1, 1000},
    {"pairs", FLAG_INT, &opt.bench.pairs, "comparisons of part same at the sizes that tasks time",
     1, 1e5},
    {"tasks", FLAG_TEXT, &opt.bench.only, "of part same alone, by comma; else all"},
    {"trials", FLAG_INT, &opt.bench.trials, "of part difference", 2, 1e5},
    {"repeats", FLAG_INT, &opt.bench.repeats, "of part repeat", 2, 1000},
    {"span", FLAG_FLOAT, &opt.bench.span_s, "seconds from the first to the last repeat", 0, 86400},
    {"hostile", FLAG_INT, &opt.bench.hostile, "candidates of part hostile", 1, 1e5},
    {"from", FLAG_INT, &opt.bench.from,
     "number of the first of them, where several GPUs share the work", 0, 1e5},
    {"hangs", FLAG_INT, &opt.bench.hangs, "of them at most so many that hang", 0, 1e5},
    {"sustained", FLAG_INT, &opt.bench.sustained, "candidates of part sustained", 1, 9000},
    {"compilers", FLAG_INT, &opt.bench.compilers, "quern-evald's; -1: its own choice", -1, 64},
    {"sets", FLAG_TEXT, &opt.bench.sets,
     "tasks of parts baselines and sustained, as kernelbench/level1"},
    {"jobs", FLAG_INT, &opt.bench.jobs,
     "tasks that part baselines prepares side by side, timed one by one; 0: by the cores", 0, 16},
    {"rows", FLAG_TEXT, &opt.bench.baseline_rows,
     "part baselines: a JSON line a task, and the same command measures the others"},
    {"eager", FLAG_TEXT, &opt.bench.eager, "a table of tools/rival.py, for part baselines"},
    {0}};

/* Open the result file, the work folder and a new cache. `made` is a template for mkdtemp. */
static int prepare(GpuBench *b, char *made, Error *err)
{
    char cache[4096];
    if (opt.out && !(b->out = fopen(opt.out, "w")))
        return error_errno(err, "cannot create %s", opt.out);
    if (!opt.work && !mkdtemp(made)) return error_errno(err, "cannot make a folder in /tmp");
    if (opt.work && file_mkdirs(opt.work, err)) return -1;
    b->work = opt.work ? opt.work : made;
    if (gpubench_folder(b, "cache", cache, sizeof cache, err)) return -1;
    if (setenv("QUERN_CACHE", cache, 1)) return error_errno(err, "cannot set QUERN_CACHE");
    if (b->out) fprintf(b->out, "part\twhat\tvalue\tunit\tasked\tjudged\n");
    return 0;
}

int main(int argc, char **argv)
{
    const FlagSpec spec = {
        .program = "quern-gpubench",
        .synopsis = "[--device cuda:0] [--parts NAME,...] [--limit SECONDS] [--output FILE]",
        .about = "Measures an evaluator's speed, accuracy and resilience on a device. Exit status "
                 "1 when a part could "
                 "not be measured; a number that misses what was asked is printed as such and is "
                 "no failure.",
        .flags = flags};
    GpuBench *b = &opt.bench;
    char bin[4096], made[64] = "/tmp/quern-gpubench-XXXXXX";
    const char *words[1];
    Error err;
    flags_parse(&spec, argc, argv, words);
    check_names(&spec, opt.list);
    log_open("quern-gpubench");
    stop_install();
    if (process_self_dir(bin, sizeof bin, &err)) log_die(&err);
    b->bin = bin;
    if (prepare(b, made, &err)) log_die(&err);
    int status = run_parts(b, opt.list, opt.limit_s);
    if (b->out && (ferror(b->out) | fclose(b->out))) {
        log_warn("not all that was measured could be written to %s", opt.out);
        status = EXIT_STATUS_SYSTEM;
    }
    if (!opt.work) file_remove_tree(made, NULL);
    return log_close(stop_requested() ? EXIT_STATUS_SIGNAL + stop_requested() : status);
}
