/* quern-ablation: prints the table of an ablation's arms from its runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "lab/ablation.h"

/* Splits a list by commas in place. Returns how many words, or -1 when there are more than max. */
static int split(char *list, const char **out, int max)
{
    char *save = NULL;
    int n = 0;
    for (char *p = strtok_r(list, ", ", &save); p; p = strtok_r(NULL, ", ", &save)) {
        if (n == max) return -1;
        out[n++] = p;
    }
    return n;
}

int main(int argc, char **argv)
{
    const char *arms = NULL, *seeds = NULL, *root = NULL, *arm[ABLATION_MAX_ARMS],
               *seed[ABLATION_MAX_SEEDS];
    const Flag flags[] = {{"arms", FLAG_TEXT, &arms,
                           "names, comma separated; the first is compared with", .required = 1},
                          {"seeds", FLAG_TEXT, &seeds, "numbers, comma separated", .required = 1},
                          {"runs", FLAG_TEXT, &root, "folder of the runs ARM-SEED", .required = 1},
                          {0}};
    const FlagSpec spec = {"quern-ablation",
                           "--runs DIR --arms LIST --seeds LIST",
                           "Print one table of arms over seeds, with paired intervals.",
                           flags,
                           0,
                           0,
                           0};
    flags_parse(&spec, argc, argv, (const char **)argv);
    char *arm_list = memory_strdup(arms), *seed_list = memory_strdup(seeds);
    int n_arms = split(arm_list, arm, ABLATION_MAX_ARMS),
        n_seeds = split(seed_list, seed, ABLATION_MAX_SEEDS), missing = 0;
    if (n_arms < 1 || n_seeds < 1)
        flags_usage_error(&spec, "expected 1 to %d arms and 1 to %d seeds", ABLATION_MAX_ARMS,
                          ABLATION_MAX_SEEDS);
    Error err;
    AblationCell *cells = memory_array((size_t)(n_arms * n_seeds), sizeof *cells);
    for (int i = 0; i < n_arms * n_seeds; i++) {
        char *run = memory_printf("%s/%s-%s", root, arm[i / n_seeds], seed[i % n_seeds]);
        if (ablation_cell_read(run, &cells[i], &err)) log_die(&err);
        missing += !cells[i].there;
        free(run);
    }
    Buffer table;
    buffer_init(&table, 1 << 20);
    ablation_table(cells, &(AblationNames){arm, seed, n_arms, n_seeds}, &table);
    fputs(table.data, stdout);
    buffer_release(&table);
    free(cells);
    free(arm_list);
    free(seed_list);
    if (missing) log_warn("%d of %d runs are missing", missing, n_arms * n_seeds);
    return log_close(0);
}
