/* quern-eval: judge one candidate of a task, or several one after another, and print the verdicts.
 * The exit status is the highest of all verdicts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/candidate/candidate.h"
#include "eval/device/evaluator_flags.h"
#include "eval/judge/verdict/verdict_schema.h"
#include "eval/judge/verdict_show.h"

/* Sources up to this size are read. One above CANDIDATE_MAX_SOURCE gets a verdict that says so. */
enum { SOURCE_MAX = 256 << 20 };

static struct {
    const char *task, *device, *tasks_root, *cache, *mode, *baseline, *tolerance;
    double budget_s;
    int64_t seed;
    int json, profile, steps, schema;
} args = {.device = "sim:h100", .mode = "cold", .seed = 1};

static const Flag flags[] = {
    {"task", FLAG_TEXT, &args.task,
     "the task that the candidate is for, as gelu or composed/clamp_triu, or the path of its "
     "folder (required)"},
    EVALUATOR_FLAGS(args.device, args.seed, args.tasks_root, args.cache),
    {"mode", FLAG_TEXT, &args.mode,
     "what the clock of a GPU sees: L2 flushed, as the last run left it, or flushed and replayed "
     "as one CUDA graph",
     .choices = "cold|warm|graph"},
    {"budget", FLAG_FLOAT, &args.budget_s, "seconds of timing at most; 0: as the evaluator chooses",
     0, 600},
    {"baseline", FLAG_TEXT, &args.baseline,
     "a source that is speedup 1.0 instead of the task's baseline"},
    {"tolerance", FLAG_TEXT, &args.tolerance,
     "the error that is allowed: 2x, times eager PyTorch's own, or an absolute one as 1e-3; else "
     "$TOLERANCE, or what the task says"},
    {"json", FLAG_BOOL, &args.json, "the verdict as one line of JSON"},
    {"profile", FLAG_BOOL, &args.profile, "every check and counter, beside the baseline's"},
    {"steps", FLAG_BOOL, &args.steps, "the milliseconds of each step of the judgement"},
    {"schema", FLAG_BOOL, &args.schema,
     "print the fields of a verdict as Markdown, and judge nothing"},
    {0}};

static const FlagSpec spec = {
    .program = "quern-eval",
    .synopsis = "--task NAME [--device DEVICE] FILE.cu...",
    .about = "Compile, check and time one candidate, or several of a task. The file - is standard "
             "input. Exit status: 0 correct and timed, 1 a candidate failed, 2 usage, 3 the "
             "evaluator failed, 4 the device must leave service.",
    .flags = flags,
    .max_words = -1};

static void read_source(const char *path, Buffer *out)
{
    Error err;
    buffer_init(out, CANDIDATE_MAX_SOURCE + 1);
    if (file_read_source(path, SOURCE_MAX, out, &err)) log_die(&err);
}

/* Judge and print. Returns the exit status of this verdict. */
static int judge(Evaluator *e, const Buffer *source)
{
    Verdict v;
    Error err;
    int status = EXIT_STATUS_OK;
    evaluator_run(e, args.task, source->data, source->len, &v);
    if (v.outcome == OUTCOME_EVALUATOR_ERROR)
        status = EXIT_STATUS_SYSTEM;
    else if (v.outcome != OUTCOME_OK)
        status = EXIT_STATUS_FAILED;
    if (args.json) {
        if (show_json(stdout, args.task, &v, args.steps, &err)) log_die(&err);
    } else {
        show_text(stdout, args.task, &v, args.profile);
        if (args.steps) show_steps(stdout, &v);
    }
    if (fflush(stdout)) {
        error_errno(&err, "cannot write the result to stdout");
        log_die(&err);
    }
    verdict_release(&v);
    return status;
}

/* Judge n files, of which the first is read already. Returns the largest status. */
static int judge_all(Evaluator *e, const char **files, int n, const Buffer *first)
{
    int status = EXIT_STATUS_OK;
    for (int i = 0; i < n; i++) {
        if (n > 1 && !args.json) printf("%s%s:\n", i ? "\n" : "", file_label(files[i]));
        Buffer next;
        if (i) read_source(files[i], &next);
        int one = judge(e, i ? &next : first);
        if (i) buffer_release(&next);
        if (one > status) status = one;
    }
    return status;
}

/* Opens the evaluator with its task. Ends with a usage error when there is none of that name. --task may have
 * the task's folder; what is printed has its name. */
static Evaluator *need_task(EvaluatorOptions *options)
{
    Error err;
    Evaluator *e;
    task_at_path(&args.tasks_root, &args.task);
    options->tasks_root = args.tasks_root;
    options->tasks = args.task;
    const Task *t = evaluator_open(options, &e, &err) ? NULL : evaluator_task(e, args.task, &err);
    if (!t && err.code == ERROR_UNKNOWN_NAME) flags_usage_error(&spec, "%s", err.text);
    if (!t) log_die(&err);
    args.task = t->name;
    return e;
}

/* End with a usage error when a flag is given that has no effect on this device: a simulator
 * predicts times, so there is nothing to time. */
static void need_clock(const DeviceOps *ops, const char *flag)
{
    if (!ops->clock && flags_given(flag))
        flags_usage_error(&spec, "--%s has no effect on %s: its times are predicted, not measured",
                          flag, args.device);
}

/* End with a usage error unless a task, a known device and files that exist are named. */
static const DeviceOps *need_words(const char **files, int n, const char **device_arg)
{
    Error err;
    if (!args.task || !*args.task) flags_usage_error(&spec, "--task is required");
    if (!n) flags_usage_error(&spec, "expected %s %s, found 0 words", spec.program, spec.synopsis);
    if (args.baseline && !strcmp(args.baseline, "-"))
        flags_usage_error(&spec, "--baseline expects a file, found - (standard input)");
    const DeviceOps *ops = device_find(args.device, device_arg, &err);
    if (!ops) flags_usage_error(&spec, "%s", err.text);
    need_clock(ops, "mode");
    need_clock(ops, "budget");
    flags_need_files(&spec, files, n);
    return ops;
}

/* The tasks are read with the budget of the environment. */
static void need_tolerance(void)
{
    Error err;
    ErrorBudget budget;
    if (!args.tolerance) return;
    if (budget_named(args.tolerance, &budget, &err))
        flags_usage_error(&spec, "--tolerance: %s", err.text);
    setenv("TOLERANCE", args.tolerance, 1);
}

static ClockMode clock_mode(const char *name)
{
    return !strcmp(name, "warm") ? CLOCK_WARM : !strcmp(name, "graph") ? CLOCK_GRAPH : CLOCK_COLD;
}

int main(int argc, char **argv)
{
    process_again_with("OMP_WAIT_POLICY", "passive", argv); /* threads sleep without work */
    Buffer first;
    const char **files = memory_array((size_t)argc, sizeof *files), *device_arg;
    int n = flags_parse(&spec, argc, argv, files);
    log_open("quern-eval");
    if (args.schema) {
        verdict_schema_print(stdout);
        return log_close(EXIT_STATUS_OK);
    }
    const DeviceOps *ops = need_words(files, n, &device_arg);
    need_tolerance();
    if (ops->use_only) ops->use_only(device_arg);
    read_source(files[0], &first); /* once, since it may be a pipe */
    EvaluatorOptions options = {.device = args.device,
                                .cache_dir = args.cache,
                                .seed = (uint64_t)args.seed,
                                .mode = clock_mode(args.mode),
                                .budget_s = args.budget_s,
                                .baseline = args.baseline,
                                .profile = args.profile};
    Evaluator *e = need_task(&options);
    int status = judge_all(e, files, n, &first);
    status = log_close(status);
    fflush(NULL);
    _exit(status); /* frees everything, faster than taking down the CUDA contexts one by one */
}
