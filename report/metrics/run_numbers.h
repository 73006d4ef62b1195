/* What the artifacts of a run add up to: verdicts by outcome, scores, tokens, and the values that its
 * programs noted step by step. A file is read again only when it has changed. */
#ifndef REPORT_METRICS_RUN_NUMBERS_H
#define REPORT_METRICS_RUN_NUMBERS_H

#include <stdint.h>
#include <sys/stat.h>

#include "eval/device/outcome.h"
#include "report/run/run_folder.h"

typedef struct {
    int64_t step;
    char name[64];
    double value;
} StepValue;

typedef struct {
    char *path; /* below the run: "crl/3/model/metrics.qa" */
    char stage[32];
    int round; /* 0: of the stage itself */
    struct timespec changed;
    off_t size;
    long outcomes[OUTCOME_COUNT];
    double scores; /* sum over the ok verdicts */
    double prompt_tokens, answer_tokens;
    StepValue *steps; /* in the order of the file */
    int n_steps;
} FileNumbers;

typedef struct {
    FileNumbers *files; /* sorted by stage, round and path */
    int n;
} RunNumbers;

/* Brings *n up to date. steps_only: without verdicts and samples, which are many. A file that cannot be
 * read counts nothing: it may be written right now. Begin with {0}; the caller releases it. */
void run_numbers_read(const RunFolder *run, int steps_only, RunNumbers *n);
void run_numbers_release(RunNumbers *n);

/* The first value of a name in a file; NULL: it has none. */
const double *run_number(const FileNumbers *f, const char *name);
/* Whether a name that comes from a run's files may be put into the page as it is. */
int run_name_is_plain(const char *name);

/* Writes RUN/metrics/steps.jsonl, a JSON object a line, and for each stage an event file of TensorBoard
 * below RUN/metrics/STAGE. Equal steps give equal bytes. */
int steps_write(const RunFolder *run, const RunNumbers *n, Error *err);

#endif
