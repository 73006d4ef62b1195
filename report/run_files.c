/* The artifacts of a run folder as the report wants them: those that are there. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/report.h"

/* Both files of a set, if both are there; the caller frees them. */
static void find_set(const RunFolder *r, const char *below, const char **samples,
                     const char **verdicts)
{
    if (!run_folder_holds(r, "%s/samples.qa", below) ||
        !run_folder_holds(r, "%s/verdicts.qa", below))
        return;
    *samples = run_folder_path(r, "%s/samples.qa", below);
    *verdicts = run_folder_path(r, "%s/verdicts.qa", below);
}

static void find_rounds(const RunFolder *r, Buffer *out)
{
    static const char *const stages[] = {"selfsup", "crl"};
    for (int s = 0; s < 2; s++)
        for (int n = 1; n <= run_folder_rounds(r, stages[s]); n++)
            if (run_folder_holds(r, "%s/%d/verdicts.qa", stages[s], n))
                buffer_printf(out, "%s%s/%s/%d/verdicts.qa", out->len ? "," : "", r->dir, stages[s],
                              n);
}

static char *if_there(const RunFolder *r, const char *name)
{
    return run_folder_holds(r, "%s", name) ? run_folder_path(r, "%s", name) : NULL;
}

void report_files_find(const RunFolder *r, ReportFiles *out)
{
    static const char *const below[REPORT_STAGES] = {"collect", "report/sft", "report/selfsup",
                                                     "report/crl"};
    const char *tasks = run_folder_setting(r, "TASKS");
    Buffer rounds;
    *out = (ReportFiles){.run = r->name,
                         .profile = run_folder_setting(r, "PROFILE"),
                         .device = run_folder_setting(r, "DEVICE")};
    /* A list by blanks or commas, as in a setting. */
    char *list = strcmp(tasks, "all") && *tasks ? memory_strdup(tasks) : NULL;
    for (char *p = list; p && *p; p++)
        if (*p == ' ') *p = ',';
    out->tasks = list;
    const char *root = run_folder_setting(r, "QUERN_TASKS");
    if (!*root) root = run_folder_setting(r, "TASK_ROOT"); /* a run of before version 0.2 */
    out->task_root = *root ? root : NULL;
    for (int s = 0; s < REPORT_STAGES; s++)
        find_set(r, below[s], &out->samples[s], &out->verdicts[s]);
    find_set(r, "best/again", &out->again_samples, &out->again_verdicts);
    out->results = if_there(r, "best/results.qa");
    out->pool = run_folder_last_pool(r);
    out->ledger = if_there(r, "spent.tsv");
    buffer_init(&rounds, 16 << 20);
    find_rounds(r, &rounds);
    if (rounds.len) out->rounds = buffer_detach(&rounds);
    buffer_release(&rounds);
}

void report_files_release(ReportFiles *f)
{
    for (int s = 0; s < REPORT_STAGES; s++) {
        free((void *)(uintptr_t)f->samples[s]);
        free((void *)(uintptr_t)f->verdicts[s]);
    }
    const char *const owned[] = {f->tasks,         f->results,        f->pool,  f->rounds,
                                 f->again_samples, f->again_verdicts, f->ledger};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free((void *)(uintptr_t)owned[i]);
    *f = (ReportFiles){0};
}
