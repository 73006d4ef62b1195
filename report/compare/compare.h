/* Runs side by side: the settings that differ, what each stage of theirs is worth, and whose kernels are
 * faster. The first run is what the others are compared with, on the tasks that both have. */
#ifndef REPORT_COMPARE_COMPARE_H
#define REPORT_COMPARE_COMPARE_H

#include "report/report.h"

enum { COMPARE_MAX_RUNS = 16, COMPARE_STAGES = 5, COMPARE_SPLITS = 2 };

/* A figure of the first run (a) and of another (b). */
typedef struct {
    double a, b;       /* NAN: none */
    Interval interval; /* of b - a, or of b / a; paired over tasks. Low and high NAN: none */
} CompareFigure;

typedef struct {
    const char *stage, *split; /* "collect" "sft" "selfsup" "crl" "best"; "train" "heldout" */
    int tasks;                 /* that both runs have, without degenerate ones */
    long attempted[2], succeeded[2];
    CompareFigure rate;    /* of correct samples; interval of b - a */
    CompareFigure geomean; /* of each task's best; interval of b / a; NAN: a run has none correct */
} CompareRow;

typedef struct {
    const char *task;
    int heldout, degenerate;
    double a, b;                   /* the scores of the runs' best kernels; NAN without one */
    Interval compile_a, compile_b; /* torch.compile's time over the kernels'; 0: not measured */
    int won;                       /* 1: b's is faster by over a hundredth; -1: a's is; 0 */
} CompareKernel;

typedef struct {
    char *name, *value[COMPARE_MAX_RUNS];
} CompareSetting;

typedef struct {
    int n_runs;
    RunFolder folder[COMPARE_MAX_RUNS];
    ReportFiles files[COMPARE_MAX_RUNS];
    Report run[COMPARE_MAX_RUNS];
    CompareSetting *setting; /* those that differ */
    int n_settings;
    /* Of run i + 1 against run 0. */
    CompareRow row[COMPARE_MAX_RUNS - 1][COMPARE_STAGES * COMPARE_SPLITS];
    CompareKernel *kernel[COMPARE_MAX_RUNS - 1];
    int n_kernels[COMPARE_MAX_RUNS - 1];
    int same_device, same_tasks;
} Compare;

/* names: n of 2 to COMPARE_MAX_RUNS runs, as run_folder_open takes them. The caller releases *out, also
 * after an error. */
int compare_load(const char *const *names, int n, const char *runs, Compare *out, Error *err);
void compare_release(Compare *c);

void compare_text(const Compare *c, Buffer *out);

#endif
