/* quern-why: why a kernel takes the time that it takes, beside its baseline or another kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/candidate/candidate.h"
#include "eval/device/evaluator_flags.h"
#include "eval/explain/why.h"
#include "eval/judge/evaluator.h"

static struct {
    const char *against, *device, *tasks_root, *cache;
    int64_t seed;
    int counters;
} args = {.device = "sim:h100", .seed = 1};

static const Flag flags[] = {
    {"against", FLAG_TEXT, &args.against,
     "another kernel of the task to compare with, instead of the baseline"},
    {"counters", FLAG_BOOL, &args.counters, "print every counter of the kernel too"},
    EVALUATOR_FLAGS(args.device, args.seed, args.tasks_root, args.cache),
    {0}};

static const FlagSpec spec = {
    .program = "quern-why",
    .synopsis = "TASK KERNEL.cu [--against OTHER.cu]",
    .about = "Say which resource limits a kernel, what the task needs at best, which source lines "
             "take the time, which change usually helps, and what differs from the baseline. "
             "Lines are counted by simulators alone. Exit status: 0 told, 1 the kernel is not "
             "correct, 2 usage, 3 the evaluator failed, 4 the device must leave service.",
    .flags = flags,
    .min_words = 2,
    .max_words = 2};

typedef struct {
    const char *label;
    Buffer source;
    Verdict v;
} Kernel;

/* Judges a file. Ends the program, with the verdict's sentence, when it is not correct. */
static void judge(Evaluator *e, const char *task, const char *path, Kernel *k)
{
    Error err;
    k->label = file_label(path);
    buffer_init(&k->source, CANDIDATE_MAX_SOURCE + 1);
    if (file_read_source(path, CANDIDATE_MAX_SOURCE, &k->source, &err)) log_die(&err);
    evaluator_run(e, task, k->source.data, k->source.len, &k->v);
    if (k->v.outcome == OUTCOME_OK) return;
    printf("%s is not correct: %s\n  %s\n", k->label, outcome_name(k->v.outcome), k->v.message);
    int status = k->v.outcome == OUTCOME_EVALUATOR_ERROR ? EXIT_STATUS_SYSTEM : EXIT_STATUS_FAILED;
    exit(log_close(status));
}

static void print_rows(const Counters *before, const Counters *after, const char *name)
{
    CounterRow rows[WHY_ROWS];
    int n = why_rows(before, after, rows);
    if (n) printf("\n  %-26s %14s %14s\n", "counter", name, "the kernel");
    for (int i = 0; i < n; i++) {
        char a[40], b[40];
        why_number(rows[i].before, rows[i].unit, a, sizeof a);
        why_number(rows[i].after, rows[i].unit, b, sizeof b);
        printf("  %-26s %14s %14s%s\n", rows[i].label, a, b,
               rows[i].better > 0   ? "  better"
               : rows[i].better < 0 ? "  worse"
                                    : "");
    }
}

static void tell(const char *task, const Kernel *k, const Kernel *other)
{
    const Verdict *v = &k->v;
    Counters before, after;
    Buffer text;
    const DeviceTiming *t = v->timing;
    counters_of(t->counters, t->n_counters, &after);
    if (other)
        counters_of(other->v.timing->counters, other->v.timing->n_counters, &before);
    else
        counters_of(t->baseline_counters, t->n_baseline_counters, &before);
    double other_us = other ? other->v.time_us : v->baseline_us;
    const char *name = other ? other->label : "the baseline";
    printf("%s, %s on %s: %.4g us, %.2fx as fast as %s (%.4g us)\n", k->label, task, v->device,
           v->time_us, other_us / v->time_us, name, other_us);
    buffer_init(&text, 1 << 20);
    why_text(v, k->source.data, &text);
    if (before.n) {
        int faster = v->time_us <= other_us;
        why_difference(faster ? &before : &after, faster ? &after : &before,
                       faster ? (other ? other->label : "The baseline") : k->label,
                       faster ? "This kernel" : (other ? other->label : "The baseline"), &text);
        buffer_puts(&text, "\n");
    }
    fwrite(text.data, 1, text.len, stdout);
    buffer_release(&text);
    print_rows(&before, &after, other ? other->label : "baseline");
    for (int i = 0; args.counters && i < after.n; i++)
        printf("%s  %s %.6g\n", i ? "" : "\n", after.v[i].name, after.v[i].value);
}

int main(int argc, char **argv)
{
    Error err;
    Evaluator *e;
    const char **words = memory_array((size_t)argc, sizeof *words), *device_arg;
    Kernel kernel = {0}, other = {0};
    flags_parse(&spec, argc, argv, words);
    log_open("quern-why");
    const DeviceOps *ops = device_find(args.device, &device_arg, &err);
    if (!ops) flags_usage_error(&spec, "%s", err.text);
    const char *files[2] = {words[1], args.against};
    flags_need_files(&spec, files, 2);
    if (ops->use_only) ops->use_only(device_arg);
    EvaluatorOptions options = {.device = args.device,
                                .tasks_root = args.tasks_root,
                                .cache_dir = args.cache,
                                .seed = (uint64_t)args.seed,
                                .profile = 1};
    if (evaluator_open(&options, &e, &err)) log_die(&err);
    const Task *task = evaluator_task(e, words[0], &err);
    if (!task) {
        if (err.code == ERROR_UNKNOWN_NAME) flags_usage_error(&spec, "%s", err.text);
        log_die(&err);
    }
    judge(e, task->name, words[1], &kernel);
    if (args.against) judge(e, task->name, args.against, &other);
    tell(task->name, &kernel, args.against ? &other : NULL);
    int status = log_close(EXIT_STATUS_OK);
    fflush(NULL);
    _exit(status); /* frees everything, faster than taking down the CUDA contexts one by one */
}
