/* quern-evalbench: the time of a verdict, with every task's baseline as a candidate, in one
 * process. The first verdict of a task also draws inputs, computes references and times the
 * baseline. Later ones, with sources that no cache holds, cost what a queued candidate costs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/judge/evaluator.h"
#include "eval/judge/statistics.h"

enum { REPEATS_MAX = 100, TASKS_MAX = 1000, WORDS_MAX = 64 };

/* Returns the milliseconds of one verdict, or -1 when it is not ok. */
static double time_verdict(Evaluator *e, const Task *t, int round)
{
    Verdict v;
    char *source = memory_printf("%s\n// round %d\n", t->baseline_source, round);
    double start = clock_seconds();
    evaluator_run(e, t->name, source, strlen(source), &v);
    double ms = (clock_seconds() - start) * 1e3;
    if (v.outcome != OUTCOME_OK) {
        log_warn("%s: %s: %s", t->name, outcome_name(v.outcome), v.message);
        ms = -1;
    }
    verdict_release(&v);
    free(source);
    return ms;
}

static int is_named(const char *name, int n_words, const char *const *words)
{
    for (int i = 0; i < n_words; i++)
        if (!strcmp(name, words[i])) return 1;
    return !n_words;
}

static int check_names(const TaskSet *set, int n_words, const char *const *words, Error *err)
{
    for (int w = 0; w < n_words; w++) {
        int i = 0;
        while (i < set->n && strcmp(set->tasks[i]->name, words[w])) i++;
        if (i == set->n) return error_set(err, ERROR_UNKNOWN_NAME, "no task \"%s\"", words[w]);
    }
    return 0;
}

static int bench(Evaluator *e, int repeats, int n_words, const char *const *words)
{
    const TaskSet *set = evaluator_tasks(e);
    double firsts[TASKS_MAX], again[TASKS_MAX], ms[REPEATS_MAX];
    int n = 0;
    printf("%-28s %10s %10s\n", "task", "first ms", "then ms");
    for (int i = 0; i < set->n && n < TASKS_MAX; i++) {
        if (!is_named(set->tasks[i]->name, n_words, words)) continue;
        firsts[n] = time_verdict(e, set->tasks[i], 0);
        for (int k = 0; k < repeats; k++)
            if ((ms[k] = time_verdict(e, set->tasks[i], k + 1)) < 0) return -1;
        again[n] = statistics_median(ms, repeats);
        if (firsts[n] < 0) return -1;
        printf("%-28s %10.0f %10.0f\n", set->tasks[i]->name, firsts[n], again[n]);
        n++;
    }
    if (n)
        printf("%-28s %10.0f %10.0f\n", "median", statistics_median(firsts, n),
               statistics_median(again, n));
    return 0;
}

int main(int argc, char **argv)
{
    const char *device = "sim:h100", *words[WORDS_MAX];
    int64_t repeats = 3;
    Flag flags[] = {
        {.name = "device", .kind = FLAG_TEXT, .target = &device, .help = "where the kernels run"},
        {.name = "repeats",
         .kind = FLAG_INT,
         .target = &repeats,
         .help = "runs after the first",
         .min = 1,
         .max = REPEATS_MAX},
        {.name = NULL}};
    FlagSpec spec = {.program = "quern-evalbench",
                     .synopsis = "[--device sim:h100] [TASK...]",
                     .about = "Measure how long a verdict takes, task by task: all tasks, or those "
                              "that are named.",
                     .flags = flags,
                     .max_words = WORDS_MAX};
    Error err;
    Evaluator *e;
    int n_words = flags_parse(&spec, argc, argv, words);
    log_open("quern-evalbench");
    if (evaluator_open(&(EvaluatorOptions){.device = device, .cache_dir = "", .seed = 1}, &e, &err))
        log_die(&err);
    if (check_names(evaluator_tasks(e), n_words, words, &err)) log_die(&err);
    int rc = bench(e, (int)repeats, n_words, words);
    evaluator_close(e);
    return log_close(rc ? 1 : 0);
}
