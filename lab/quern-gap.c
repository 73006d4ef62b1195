/* quern-gap: how much of the gap between the teacher and its whole range the samples of a run close. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/flags.h"
#include "base/log.h"
#include "lab/gap.h"
#include "report/run/run_folder.h"

/* One set of samples: its row, or with by_task a row for each task. */
static void print_rows(const char *name, const Gap *g, int by_task)
{
    printf("| %s | all %d | %.1f%%", name, g->n, 100 * g->closed.middle);
    if (g->n > 1) printf(" | %.1f to %.1f |\n", 100 * g->closed.low, 100 * g->closed.high);
    if (g->n < 2) printf(" | |\n");
    for (int i = 0; by_task && i < g->n; i++)
        printf("| %s | %s | %.1f%% | |\n", name, g->task[i].task, 100 * g->task[i].closed);
}

/* The pools of the teacher as it taught, and with its whole range. */
typedef struct {
    Pool teacher, full;
} Pools;

/* Nothing where the run does not have the set. */
static int print_set(const RunFolder *r, const char *name, const Pools *p, int by_task, Error *err)
{
    SampleSet s;
    Gap g;
    if (!run_folder_holds(r, "%s/verdicts.qa", name)) return 0;
    char *samples = run_folder_path(r, "%s/samples.qa", name),
         *verdicts = run_folder_path(r, "%s/verdicts.qa", name);
    int rc = samples_load(samples, verdicts, &s, err);
    if (!rc) {
        gap_of_samples(&s, &p->teacher, &p->full, &g);
        print_rows(name, &g, by_task);
        gap_release(&g);
        samples_release(&s);
    }
    free(samples);
    free(verdicts);
    return rc;
}

static int print_run(const RunFolder *r, Error *err)
{
    static const char *const stages[] = {"selfsup", "crl"}, *const last[] = {"sft", "selfsup",
                                                                             "crl"};
    char name[64], *from = run_folder_path(r, "collect/pool.qa"),
                   *to = run_folder_path(r, "lab/full/pool.qa");
    Pools p = {0};
    int rc = pool_load(from, &p.teacher, err) || pool_load(to, &p.full, err) ? -1 : 0;
    printf("| samples | task | gap closed | 95%% interval |\n|---|---|---|---|\n");
    for (int s = 0; s < 2; s++)
        for (int n = 1; !rc && n <= run_folder_rounds(r, stages[s]); n++) {
            snprintf(name, sizeof name, "%s/%d", stages[s], n);
            rc = print_set(r, name, &p, 0, err);
        }
    for (int s = 0; s < 3 && !rc; s++) {
        snprintf(name, sizeof name, "report/%s", last[s]);
        rc = print_set(r, name, &p, 1, err);
    }
    pool_release(&p.teacher);
    pool_release(&p.full);
    free(from);
    free(to);
    return rc;
}

int main(int argc, char **argv)
{
    const char *runs = "runs", *words[1];
    const Flag flags[] = {{"runs", FLAG_TEXT, &runs, "folder that holds the runs"}, {0}};
    const FlagSpec spec = {.program = "quern-gap",
                           .synopsis = "RUN",
                           .about =
                               "Print the gap closed by each round of a run that was made with "
                               "LAB_WITHHOLD=1, and by task for the report's samples.",
                           .flags = flags,
                           .min_words = 1,
                           .max_words = 1};
    flags_parse(&spec, argc, argv, words);
    Error err;
    RunFolder folder;
    if (run_folder_open(words[0], runs, &folder, &err) || print_run(&folder, &err)) log_die(&err);
    run_folder_release(&folder);
    return log_close(0);
}
