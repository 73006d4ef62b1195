/* How many mutants there were, by kind of mutation and by kind of task, and what became of them. */
#ifndef LAB_MUTATE_MUTANT_TALLY_H
#define LAB_MUTATE_MUTANT_TALLY_H

#include <stdio.h>

#include "lab/mutate/mutant_trial.h"
#include "lab/mutate/survivors.h"

enum { TALLY_ROWS = 128 };

typedef struct {
    char name[64];
    int drawn, invalid, equal, killed;
    int survived[SURVIVOR_WRONG + 1]; /* by class */
    int wins;                         /* survivors, new or wrong, with a score above 1 */
} TallyRow;

typedef struct {
    TallyRow all, by_kind[TALLY_ROWS], by_task[TALLY_ROWS];
    int n_kinds, n_tasks;
} MutantTally;

void tally_add(MutantTally *t, const char *kind, const char *task_kind, const MutantResult *r,
               SurvivorClass class);
/* Tables in Markdown, and one line that sums up. */
void tally_print(const MutantTally *t, FILE *out);

#endif
