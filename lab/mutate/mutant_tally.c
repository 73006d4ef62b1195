/* A row of each kind, in the order in which the kinds come. */
#include "lab/mutate/mutant_tally.h"

#include <string.h>

static TallyRow *find_row(TallyRow *rows, int *n, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    if (*n == TALLY_ROWS) return &rows[TALLY_ROWS - 1];
    snprintf(rows[*n].name, sizeof rows[*n].name, "%s", name);
    return &rows[(*n)++];
}

static void count(TallyRow *row, const MutantResult *r, SurvivorClass class)
{
    row->drawn++;
    row->invalid += r->fate == MUTANT_INVALID;
    row->equal += r->fate == MUTANT_EQUAL;
    row->killed += r->fate == MUTANT_KILLED;
    if (r->fate != MUTANT_OK) return;
    row->survived[class]++;
    row->wins += r->score > 1 && (class == SURVIVOR_NEW || class == SURVIVOR_WRONG);
}

void tally_add(MutantTally *t, const char *kind, const char *task_kind, const MutantResult *r,
               SurvivorClass class)
{
    count(&t->all, r, class);
    count(find_row(t->by_kind, &t->n_kinds, kind), r, class);
    count(find_row(t->by_task, &t->n_tasks, task_kind), r, class);
}

/* Those that were judged and are not known to be equivalent. */
static int judged(const TallyRow *r)
{
    return r->killed + r->survived[SURVIVOR_NEW] + r->survived[SURVIVOR_PERMITTED] +
           r->survived[SURVIVOR_WRONG];
}

static double share(const TallyRow *r)
{
    int of = judged(r);
    return of ? 100.0 * r->killed / of : 100;
}

static void print_rows(const char *what, const TallyRow *rows, int n, FILE *out)
{
    fprintf(
        out,
        "\n| %s | drawn | invalid | equal code | equivalent | permitted | wrong | new | killed |"
        "\n|---|---|---|---|---|---|---|---|---|\n",
        what);
    for (int i = 0; i < n; i++) {
        const TallyRow *r = &rows[i];
        fprintf(out, "| %s | %d | %d | %d | %d | %d | %d | %d | %d of %d, %.1f%% |\n", r->name,
                r->drawn, r->invalid, r->equal, r->survived[SURVIVOR_EQUIVALENT],
                r->survived[SURVIVOR_PERMITTED], r->survived[SURVIVOR_WRONG],
                r->survived[SURVIVOR_NEW], r->killed, judged(r), share(r));
    }
}

void tally_print(const MutantTally *t, FILE *out)
{
    const TallyRow *r = &t->all;
    print_rows("mutation", t->by_kind, t->n_kinds, out);
    print_rows("task", t->by_task, t->n_tasks, out);
    fprintf(out,
            "\n%d drawn, %d invalid, %d with equal code; of %d that are not equivalent %d were "
            "killed (%.1f%%); survivors: %d equivalent, %d permitted, %d wrong, %d new; wins among "
            "wrong and new ones: %d\n",
            r->drawn, r->invalid, r->equal, judged(r), r->killed, share(r),
            r->survived[SURVIVOR_EQUIVALENT], r->survived[SURVIVOR_PERMITTED],
            r->survived[SURVIVOR_WRONG], r->survived[SURVIVOR_NEW], r->wins);
}
