/* quern: runs quern-COMMAND, found beside this program or in ../libexec/quern/bin. `quern run` makes a
 * target of pipeline.mk through mk/pipeline, with the runs below the current folder. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/paths.h"
#include "base/process.h"
#include "base/sort.h"
#include "base/suggest.h"
#include "base/version.h"

enum { COMMANDS_MAX = 256 };

/* What `quern help -a` says of a command; `quern help` shows the first ones. Others are listed without a
 * line. */
static const struct {
    const char *name, *about;
} commands[] = {
    {"run", "train and search: stages, rounds and report, as `make crl` does"},
    {"status", "show where a run stands: stages, rates, time left, best so far, failures"},
    {"watch", "show that again and again until the run ends"},
    {"metrics", "serve the numbers of runs to Prometheus"},
    {"compare", "show runs side by side: settings, stages, kernels"},
    {"clean", "show the space of a run, and free what is not needed"},
    {"config", "resolve and check the settings of a run"},
    {"eval", "compile, check and time one candidate"},
    {"why", "say what limits a kernel, and which lines take its time"},
    {"export", "write a kernel as a package for PyTorch, C or FlashInfer-Bench"},
    {"task", "list, show and gate tasks"},
    {"import", "make a task of a PyTorch archive"},
    {"derive", "make a task of a graph of operators"},
    {"artifact", "print, check, export and compare artifacts"},
    {"queue", "look at a job queue and repair it"},
    {"fleet", "run a command with a private queue and evaluators"},
    {"evald", "serve a queue with one device"},
    {"evaluate", "judge samples through the queue"},
    {"devices", "list what this machine can evaluate on"},
    /* ---- those that a run calls, and for single steps ---- */
    {"compile", "compile one candidate and print its PTX"},
    {"light", "measure a GPU's speed of light"},
    {"collect", "stage 1: samples of the teachers"},
    {"filter", "stage 1: samples and verdicts to a dataset"},
    {"sft", "stage 1: supervised fine-tuning"},
    {"selfsup", "stage 2: one round on the model's own successes"},
    {"crl", "stage 3: one round of contrastive reinforcement learning"},
    {"prompt", "write prompts from tasks and a pool"},
    {"refine", "write prompts that show an answer and its verdict"},
    {"sample", "answers of a policy to prompts"},
    {"hacks", "keep confirmed cheats, and find similar ones"},
    {"review", "stage 3: review the records of a round"},
    {"pool", "add kernels to the pool, or take its best"},
    {"results", "the best kernels on each device class"},
    {"report", "write report.html and best/"},
    {"kernel", "write a kernel for a task's graph, by a schedule"},
    {"tune", "search the schedules of a task's kernels"},
    {"blunt", "list outputs whose tolerance is wide beside their spread"},
    {"figures", "success, score and length of a round's samples"},
    {"join", "join artifacts of one kind"},
    {"calibrate", "compare predicted times with measured ones"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands, N_DAILY = 20 };

static int is_program(const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && !stat(path, &st) && S_ISREG(st.st_mode) &&
           !access(path, X_OK);
}

/* The folder of the quern-* programs. */
static int find_programs(char *out, size_t size, Error *err)
{
    char self[3072];
    if (process_self_dir(self, sizeof self, err)) return -1;
    snprintf(out, size, "%s", self);
    if (is_program(out, "quern-eval")) return 0;
    snprintf(out, size, "%s/../libexec/quern/bin", self);
    if (is_program(out, "quern-eval")) return 0;
    return error_set(err, ERROR_NOT_FOUND,
                     "the programs quern-* are neither in %s nor in %s: the installation is "
                     "incomplete",
                     self, out);
}

/* The commands that there are, sorted, into names[0..COMMANDS_MAX). Returns their number. */
static int list_commands(const char *dir, char **names)
{
    int n = 0;
    DIR *d = opendir(dir);
    if (!d) return 0;
    for (struct dirent *e; n < COMMANDS_MAX - 1 && (e = readdir(d));)
        if (!strncmp(e->d_name, "quern-", 6) && !strchr(e->d_name, '.') &&
            is_program(dir, e->d_name))
            names[n++] = memory_strdup(e->d_name + 6);
    closedir(d);
    names[n++] = memory_strdup("run");
    sort_texts(names, (size_t)n);
    return n;
}

static int is_listed(char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return 1;
    return 0;
}

/* Prints the names that the table lacks. */
static void print_unlisted(char *const *names, int n)
{
    printf("\nAlso:");
    for (int i = 0; i < n; i++) {
        int known = 0;
        for (int k = 0; k < N_COMMANDS; k++) known |= !strcmp(commands[k].name, names[i]);
        if (!known) printf(" %s", names[i]);
    }
    printf("\n");
}

static void print_help(char *const *names, int n, int all)
{
    printf("usage: quern COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < (all ? N_COMMANDS : N_DAILY); i++)
        if (is_listed(names, n, commands[i].name))
            printf("  %-10s %s\n", commands[i].name, commands[i].about);
    if (all) print_unlisted(names, n);
    printf(
        "\n%s`quern help COMMAND` prints the flags of a command, `quern --version` the version.\n",
        all ? "" : "`quern help -a` lists the other commands.\n");
}

static _Noreturn void run_program(const char *dir, char **argv, const char *flag)
{
    char path[PATH_MAX];
    Error err;
    char *with_flag[] = {path, (char *)(uintptr_t)flag, NULL};
    snprintf(path, sizeof path, "%s/quern-%s", dir, argv[0]);
    if (flag)
        argv = with_flag;
    else
        argv[0] = path;
    execv(path, argv);
    error_errno(&err, "cannot run %s", path);
    log_die(&err);
}

static const char run_help[] =
    "usage: quern run [collect|sft|selfsup|crl|optimize|STEP] [-n|-q] [NAME=VALUE...]\n\n"
    "Make a target, crl if none is named: every stage and the report. The run is a folder below\n"
    "runs/ in the current folder. The same command continues a run that stopped. optimize takes\n"
    "OP=model.py, or FILE.pt2 or a task's folder, and ends in a package of its fastest kernel.\n"
    "-n prints what would be made, -q only tells by its exit status whether there is anything.\n"
    "A step of the rounds or of the report is a target, too, by the name of its log: "
    "crl-3-samples.\n\n"
    "`quern config --help` lists the settings.\n";

/* Where a word after `run` goes; NULL: it is neither a target nor a flag. */
static const char **run_word(const char *word, const char **target, const char **flags)
{
    static const char *const targets[] = {"collect", "sft", "selfsup", "crl", "optimize"};
    static const char *const steps[] = {"selfsup-", "crl-", "report-"}; /* crl-3-samples */
    if (!strcmp(word, "-n") || !strcmp(word, "-q")) return flags;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(word, targets[i])) return target;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !strchr(word, '='); i++)
        if (!strncmp(word, steps[i], strlen(steps[i]))) return target;
    return NULL;
}

/* argv: the words after `run`. */
static _Noreturn void run_pipeline(const char *programs, int argc, char **argv)
{
    char build[PATH_MAX + 8], *script;
    const char *target = NULL, *flags = NULL;
    char **words = memory_array((size_t)argc + 6, sizeof *words);
    int n = 5;
    Error err = {0};
    for (int i = 0; i < argc; i++) {
        const char **to = run_word(argv[i], &target, &flags);
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(run_help, stdout);
            exit(log_close(EXIT_STATUS_OK));
        }
        if (to && *to) error_set(&err, ERROR_USAGE, "run: %s is given beside %s", argv[i], *to);
        if (!to && !strchr(argv[i], '='))
            error_set(&err, ERROR_USAGE,
                      "run: expected collect, sft, selfsup, crl, optimize, -n, -q or NAME=VALUE, "
                      "found '%s'",
                      argv[i]);
        if (err.code) log_die(&err);
        if (to)
            *to = argv[i];
        else
            words[n++] = argv[i];
    }
    if (!target) target = "crl";
    if (!flags) flags = "-";
    script = paths_in_root(strcmp(target, "optimize") ? "mk/pipeline" : "mk/optimize", &err);
    if (!script) log_die(&err);
    snprintf(build, sizeof build, "%s/..", programs);
    words[0] = script;
    words[1] = (char *)(uintptr_t)target;
    words[2] = build;
    words[3] = (char *)(uintptr_t)flags;
    words[4] = (char *)(uintptr_t) "make";
    if (setenv("MAKEFLAGS", "-j", 0)) exit(EXIT_STATUS_SYSTEM);
    execv(script, words);
    error_errno(&err, "cannot run %s", script);
    log_die(&err);
}

int main(int argc, char **argv)
{
    char dir[PATH_MAX], *names[COMMANDS_MAX];
    Error err;
    log_open("quern");
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        printf("quern %s\n", quern_version);
        return log_close(EXIT_STATUS_OK);
    }
    if (find_programs(dir, sizeof dir, &err)) log_die(&err);
    int n = list_commands(dir, names);
    int help = argc < 2 || !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") ||
               !strcmp(argv[1], "-h");
    int all = help && argc == 3 && (!strcmp(argv[2], "-a") || !strcmp(argv[2], "--all"));
    if (argc < 2 || (help && argc == 2) || all) {
        print_help(names, n, all);
        return log_close(argc < 2 ? EXIT_STATUS_USAGE : EXIT_STATUS_OK);
    }
    char **command = argv + (help ? 2 : 1);
    if (!strcmp(command[0], "run")) {
        char *ask[] = {(char *)(uintptr_t) "--help"};
        run_pipeline(dir, help ? 1 : argc - 2, help ? ask : argv + 2);
    }
    if (is_listed(names, n, command[0])) run_program(dir, command, help ? "--help" : NULL);
    const char *near = suggest_name(command[0], (const char *const *)names, n);
    error_set(&err, ERROR_UNKNOWN_NAME, "there is no command '%s'%s%s%s; quern help -a lists them",
              command[0], near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    log_die(&err);
}
