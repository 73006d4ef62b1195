/* The numbers asked of an evaluator on a GPU, part by part. */
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
    double share; /* of the limit, where comparisons of two parts have one */
} parts[] = {{"latency", gpubench_latency, 1},    {"baselines", gpubench_baselines, 1},
             {"same", gpubench_same, 0.7},        {"difference", gpubench_difference, 0.3},
             {"repeat", gpubench_repeat, 1},      {"hostile", gpubench_hostile, 1},
             {"sustained", gpubench_sustained, 1}};

enum { PARTS = sizeof parts / sizeof *parts };

static int wanted(const char *list, const char *name)
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

/* Repeats come between the comparisons of such a part. */
static int has_repeats(int (*run)(GpuBench *b, Error *err))
{
    return run == gpubench_same || run == gpubench_difference;
}

/* Comparisons and the repeats between them end together. */
static double limit_of(int part, const char *list, double limit_s, double compared_s)
{
    if (parts[part].run == gpubench_repeat) return limit_s > 0 ? fmax(limit_s - compared_s, 1) : 0;
    return wanted(list, "same") && wanted(list, "difference") ? limit_s * parts[part].share
                                                              : limit_s;
}

/* Every part that can be measured is, whatever becomes of the others. */
static int run_parts(GpuBench *b, const char *list, double limit_s)
{
    int failed = 0;
    double compared_s = 0;
    Error err = {0};
    for (int i = 0; i < PARTS && !stop_requested(); i++) {
        err.text[0] = 0;
        long before = b->rows;
        if (!wanted(list, parts[i].name)) continue;
        if (!b->repeat && has_repeats(parts[i].run) && wanted(list, "repeat") &&
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

int main(int argc, char **argv)
{
    GpuBench b = {.device = "cuda:0",
                  .latency = 21,
                  .sustained = 2000,
                  .pairs = 500,
                  .trials = 200,
                  .repeats = 10,
                  .span_s = 600,
                  .hostile = 1000,
                  .hangs = 20,
                  .compilers = -1};
    double limit_s = 0;
    const char *list = "all", *out = NULL, *work = NULL;
    char bin[4096], made[64] = "/tmp/quern-gpubench-XXXXXX";
    const char *words[1];
    const Flag flags[] = {
        {.name = "device",
         .kind = FLAG_TEXT,
         .target = &b.device,
         .help = "cuda:N, or sim:PROFILE to try the program"},
        {.name = "parts",
         .kind = FLAG_TEXT,
         .target = &list,
         .help = "latency,baselines,same,difference,repeat,hostile,sustained, by comma"},
        {.name = "limit",
         .kind = FLAG_FLOAT,
         .target = &limit_s,
         .help = "seconds after which a part ends with what it has, same, difference and repeat as "
                 "one; 0: none",
         .min = 0,
         .max = 1e6},
        {.name = "out",
         .kind = FLAG_TEXT,
         .target = &out,
         .help = "every result and observation, tab-separated"},
        {.name = "work",
         .kind = FLAG_TEXT,
         .target = &work,
         .help = "scratch folder that is kept; else one in /tmp that is removed"},
        {.name = "latency",
         .kind = FLAG_INT,
         .target = &b.latency,
         .help = "candidates of part latency",
         .min = 1,
         .max = 1000},
        {.name = "pairs",
         .kind = FLAG_INT,
         .target = &b.pairs,
         .help = "comparisons of part same at the sizes that tasks time",
         .min = 1,
         .max = 1e5},
        {.name = "tasks",
         .kind = FLAG_TEXT,
         .target = &b.only,
         .help = "of part same alone, by comma; else all"},
        {.name = "trials",
         .kind = FLAG_INT,
         .target = &b.trials,
         .help = "of part difference",
         .min = 2,
         .max = 1e5},
        {.name = "repeats",
         .kind = FLAG_INT,
         .target = &b.repeats,
         .help = "of part repeat",
         .min = 2,
         .max = 1000},
        {.name = "span",
         .kind = FLAG_FLOAT,
         .target = &b.span_s,
         .help = "seconds from the first to the last repeat",
         .min = 0,
         .max = 86400},
        {.name = "hostile",
         .kind = FLAG_INT,
         .target = &b.hostile,
         .help = "candidates of part hostile",
         .min = 1,
         .max = 1e5},
        {.name = "from",
         .kind = FLAG_INT,
         .target = &b.from,
         .help = "number of the first of them, where several GPUs share the work",
         .min = 0,
         .max = 1e5},
        {.name = "hangs",
         .kind = FLAG_INT,
         .target = &b.hangs,
         .help = "of them at most so many that hang",
         .min = 0,
         .max = 1e5},
        {.name = "sustained",
         .kind = FLAG_INT,
         .target = &b.sustained,
         .help = "candidates of part sustained",
         .min = 1,
         .max = 9000},
        {.name = "compilers",
         .kind = FLAG_INT,
         .target = &b.compilers,
         .help = "quern-evald's; -1: its own choice",
         .min = -1,
         .max = 64},
        {.name = "eager",
         .kind = FLAG_TEXT,
         .target = &b.eager,
         .help = "what tests/gpu/eager.py printed, for part baselines"},
        {0}};
    const FlagSpec spec = {
        .program = "quern-gpubench",
        .synopsis = "[--device cuda:0] [--parts NAME,...] [--limit SECONDS] [--out FILE]",
        .about = "Measures an evaluator's speed, accuracy and resilience on a device. Exit status "
                 "1 when a part could "
                 "not be measured; a number that misses what was asked is printed as such and is "
                 "no failure.",
        .flags = flags};
    Error err;
    flags_parse(&spec, argc, argv, words);
    check_names(&spec, list);
    log_open("quern-gpubench");
    stop_install();
    if (process_self_dir(bin, sizeof bin, &err)) log_exit(1, &err);
    if (out && !(b.out = fopen(out, "w"))) {
        error_errno(&err, "cannot create %s", out);
        log_exit(1, &err);
    }
    if (!work && !mkdtemp(made)) {
        error_errno(&err, "cannot make a folder in /tmp");
        log_exit(1, &err);
    }
    if (work && file_mkdirs(work, &err)) log_exit(1, &err);
    b.bin = bin;
    b.work = work ? work : made;
    char cache[4096]; /* the compiler's, and what the harness keeps of a device */
    if (gpubench_folder(&b, "cache", cache, sizeof cache, &err) || setenv("QUERN_CACHE", cache, 1))
        log_exit(1, &err);
    if (b.out) fprintf(b.out, "part\twhat\tvalue\tunit\tasked\tjudged\n");
    int failed = run_parts(&b, list, limit_s);
    if (b.out && (ferror(b.out) | fclose(b.out))) {
        log_warn("not all that was measured could be written to %s", out);
        failed = 1;
    }
    if (!work) file_remove_tree(made, NULL);
    return log_close(stop_requested() ? 128 + stop_requested() : failed);
}
