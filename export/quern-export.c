/* quern-export: judge a candidate, and write it as a package that runs outside of Quern. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/words.h"
#include "eval/device/evaluator_flags.h"
#include "eval/judge/verdict_show.h"
#include "export/package.h"

static PackageOptions opt = {.device = "sim:h100"};
static const char *form, *output;
static int64_t seed = 1;
static int faster, replace;

static const Flag flags[] = {
    {"task", FLAG_TEXT, &opt.task, "the task that the candidate is for (required)"},
    {"to", FLAG_TEXT, &form,
     "a PyTorch operator, C for the driver API, or a FlashInfer-Bench solution (required)",
     .choices = "torch|c|flashinfer"},
    {"output", FLAG_TEXT, &output,
     "the package's folder, which is made; -o is the same (required)"},
    {"name", FLAG_TEXT, &opt.name, "of the operator and its functions; else the task's"},
    {"device", FLAG_TEXT, &opt.device, "where the verdict is made: sim:h100, cuda:0"},
    {"arch", FLAG_TEXT, &opt.archs,
     "architectures of the binaries, as sm_80,sm_90; else the device's"},
    {"faster", FLAG_BOOL, &faster,
     "write nothing, with exit status 1, unless the candidate is faster than the baseline"},
    {"replace", FLAG_BOOL, &replace,
     "a package that is there is replaced at once, when the new one is whole"},
    {"seed", FLAG_INT, &seed, "of the inputs of the verdict", 0, 9e15},
    EVALUATOR_FOLDER_FLAGS(opt.tasks_root, opt.cache_dir),
    {0}};

static const FlagSpec spec = {
    .program = "quern-export",
    .synopsis = "--task NAME --to FORM --output DIR [--device DEVICE] KERNEL.cu",
    .about = "Judge a candidate and write it as a package with its binaries and its verdict. Exit "
             "status: 0 written, 1 the candidate is not ok or cannot be exported, 2 usage, 3 the "
             "evaluator or the disk failed.",
    .flags = flags,
    .min_words = 1,
    .max_words = 1};

static void need_flags(void)
{
    if (!opt.task || !*opt.task) flags_usage_error(&spec, "--task is required");
    if (!form || !*form) flags_usage_error(&spec, "--to is required: torch, c or flashinfer");
    if (!output || !*output) flags_usage_error(&spec, "--output is required");
    flags_need_files(&spec, &opt.path, 1);
}

/* An existing folder is written only when it is empty, so that no file of another package stays. */
static int need_absent(const char *dir, Error *err)
{
    int n = 0;
    DIR *d = opendir(dir);
    if (!d && errno == ENOENT) return 0;
    if (!d) return error_errno(err, "cannot open the folder %s", dir);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    if (!n) return 0;
    return error_set(err, ERROR_USAGE, "%s is not empty: name another folder, or remove it", dir);
}

/* Python imports a package by the name of its folder. */
static int need_importable(const char *dir, Error *err)
{
    size_t end = strlen(dir);
    while (end > 1 && dir[end - 1] == '/') end--;
    size_t begin = end;
    while (begin && dir[begin - 1] != '/') begin--;
    if (begin < end && word_name_length(dir + begin, dir + end) == end - begin) return 0;
    return error_set(err, ERROR_USAGE,
                     "%s: expected a folder that Python can import, of letters, digits and _", dir);
}

static int write_verdict(const Package *p, const char *dir, Error *err)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f) return error_errno(err, "cannot keep the verdict's text");
    int rc = show_json(f, p->task->name, &p->judged.verdict, 0, err);
    fclose(f);
    if (!rc) rc = package_file(dir, "verdict.json", text, len, err);
    free(text);
    return rc;
}

static int write_files(const Package *p, const char *dir, Error *err)
{
    if (file_mkdirs(dir, err) || write_verdict(p, dir, err) ||
        package_file(dir, "kernel.cu", p->judged.candidate.source, p->judged.candidate.len, err))
        return -1;
    return !strcmp(form, "c")       ? package_write_c(p, dir, err)
           : !strcmp(form, "torch") ? package_write_torch(p, dir, err)
                                    : package_write_flashinfer(p, dir, err);
}

/* Puts the folder in the place of `to`. At every moment a whole package is there, where the file system can
 * exchange two names. */
static int put_in_place(char *dir, const char *to, Error *err)
{
    if (!replace || !file_exists(to)) {
        return rename(dir, to) ? error_errno(err, "cannot rename %s to %s", dir, to) : 0;
    }
    if (!renameat2(AT_FDCWD, dir, AT_FDCWD, to, RENAME_EXCHANGE)) return file_remove_tree(dir, err);
    if (file_remove_tree(to, err)) return -1;
    return rename(dir, to) ? error_errno(err, "cannot rename %s to %s", dir, to) : 0;
}

/* Writes the files beside the output folder and moves them into its place: a package is there whole,
 * or not at all. */
static int write_package(const Package *p, Error *err)
{
    size_t n = strlen(output);
    while (n > 1 && output[n - 1] == '/') n--;
    char *dir = memory_printf("%.*s.tmp.%d", (int)n, output, (int)getpid());
    int rc = write_files(p, dir, err);
    if (!rc) rc = put_in_place(dir, output, err);
    if (rc) file_remove_tree(dir, NULL);
    free(dir);
    return rc;
}

int main(int argc, char **argv)
{
    Error err;
    Package p;
    char verdict[PACKAGE_VERDICT_TEXT];
    const char **words = memory_array((size_t)argc, sizeof *words);
    flags_parse(&spec, argc, argv, words);
    opt.path = words[0];
    opt.seed = (uint64_t)seed;
    need_flags();
    if (!strcmp(form, "torch") && need_importable(output, &err)) log_die(&err);
    if (!replace && need_absent(output, &err)) log_die(&err);
    int rc = package_make(&opt, &p, &err);
    if (rc < 0) log_die(&err);
    if (rc > 0) {
        show_text(stdout, p.task->name, &p.judged.verdict, 0);
        log_warn("nothing is written: only a candidate whose verdict is ok is exported");
        return log_close(EXIT_STATUS_FAILED);
    }
    if (faster && p.judged.verdict.score <= 1) {
        const char *why = verdict_unshown(&p.judged.verdict);
        log_warn("the candidate scores %.3f: it is not faster than the baseline%s%s",
                 p.judged.verdict.score, why ? "; " : "", why ? why : "");
        return log_close(EXIT_STATUS_FAILED);
    }
    if (write_package(&p, &err)) log_die(&err);
    package_verdict_text(&p, verdict);
    printf("%s: %s, a %s package of %s; %s\n", output, p.name, form, p.task->name, verdict);
    if (p.judged.verdict.low <= 1)
        log_warn("this candidate is not faster than the task's baseline");
    package_release(&p);
    free(words);
    return log_close(EXIT_STATUS_OK);
}
