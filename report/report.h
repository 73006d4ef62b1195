/* The report of a finished run: its artifacts in one structure, the statistics of the table, and
 * the page. Degenerate tasks are shown but are in no number. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "artifacts/artifact.h"
#include "base/buffer.h"
#include "eval/device/device.h"
#include "eval/device/outcome.h"
#include "eval/explain/why.h"
#include "eval/judge/rivals.h"
#include "report/metrics/run_numbers.h"
#include "report/run/run_status.h"
#include "stages/data/pool.h"
#include "tasks/task.h"

typedef enum { REPORT_COLLECT, REPORT_SFT, REPORT_SELFSUP, REPORT_CRL, REPORT_STAGES } ReportStage;
extern const char *const report_stage_names[REPORT_STAGES]; /* "collect" "sft" "selfsup" "crl" */

enum { REPORT_MAX_ROUNDS = 16384, REPORT_MAX_CLASSES = 64, REPORT_MAX_MESSAGES = 4096 };

typedef struct {
    long attempted, succeeded;    /* samples that were judged, and the correct ones */
    double best;                  /* the best score of these samples, at least 1.0 */
    char best_digest[DIGEST_HEX]; /* digest of its source; "" when best is 1.0 */
    double *score; /* of a stage: `attempted` of them as first judged, -1 where not correct */
} Tally;

/* ---- lineage.c: what the prompt of a kernel showed, back to the teachers ---- */
/* LINEAGE_TASKS: in a report of at most so many tasks the kernels of a lineage are shown. */
enum { LINEAGE_STEPS = 8, LINEAGE_SHOWN = 8, LINEAGE_BASELINE = -1, LINEAGE_TASKS = 16 };
typedef struct {
    char digest[DIGEST_HEX], *origin, *source; /* origin: "crl, round 2" */
    double score;
} LineageKernel;
typedef struct {
    int child, parent[LINEAGE_SHOWN], n; /* kernels by index, or LINEAGE_BASELINE */
} LineageStep;
typedef struct {
    int known; /* 0: no prompt is known */
    LineageKernel *kernel;
    int n_kernels;
    LineageStep step[LINEAGE_STEPS]; /* each is of a parent in the step before */
    int n_steps;
} Lineage;
/* Where a kernel of the pool comes from: "collect", "crl, round 2"; the caller frees it. */
char *lineage_origin(const PoolItem *p);
void lineage_of(const Pool *pool, const char *task, const char *source_digest, Lineage *out);
void lineage_release(Lineage *l);
/* Writes it as a list. links: to the kernels that lineage_sources writes. */
void lineage_write(const Lineage *l, const char *task, int links, Buffer *b);
void lineage_sources(const Lineage *l, const char *task, Buffer *b);

typedef struct {
    const Task *task;
    Tally stage[REPORT_STAGES];
    Tally *round; /* n_rounds of them */
    Tally run;    /* of all evaluated samples */
    /* The pool's best kernel on each device class: the score, NAN without an ok verdict; the
     * outcome, OUTCOME_OK without a verdict. */
    double class_score[REPORT_MAX_CLASSES];
    Outcome class_outcome[REPORT_MAX_CLASSES];
    /* The best kernel; source is NULL when no sample was correct. */
    char *source, *found; /* found: "collect", "crl 3", "the report's sft samples" */
    double score, time_us, baseline_us;
    double found_score; /* the score that chose it; `score` is from the second judgement, if any */
    char *refused;      /* why the second judgement refused the best kernel, or NULL */
    Lineage lineage;    /* of the best kernel */
    const char *doubt;  /* about a record: "unconfirmed", "disputed", or "" */
    char rivals
        [RIVALS_TEXT]; /* the best kernel beside torch.compile (rivals_text); "" without one */
    int n_rows;        /* of the best kernel's verdict: one for each of several timed workloads */
    VerdictRow rows[VERDICT_MAX_ROWS];
    Interval over_compile; /* torch.compile's time over the best kernel's; 0: not measured */
    int predicted;
    Counters best, baseline;
    int n_lines; /* the costliest lines of the best kernel, as its verdict has them */
    char lines[DEVICE_MAX_LINES][DEVICE_LINE_TEXT];
} ReportTask;

typedef struct {
    Outcome outcome;
    char *text, *key; /* key: the text without its numbers; equal keys are counted together */
    long count;
} ReportMessage;

/* The confirmation of a record by a second device: there was none, it disputed the score, or it
 * confirmed the score. */
typedef struct {
    char *task, source_digest[DIGEST_HEX];
    enum { DOUBT_ALONE, DOUBT_DISPUTED, DOUBT_NONE } state;
} ReportDoubt;

typedef struct {
    char *path, *text; /* text: kind, producer, count, digest */
    char *config;
} ReportInput;

/* A teacher or an endpoint, by the name in its samples. */
typedef struct {
    char *name;
    long attempted, succeeded, paid; /* of train tasks; paid: lines of the ledger */
    double *best;                    /* of each task; 0: it was not asked */
    double prompt_tokens, answer_tokens, usd;
} ReportModel;

typedef struct {
    const char *run, *profile, *device;
    TaskSet tasks;
    ReportTask *task; /* tasks.n of them */
    char **round_name;
    int n_rounds;
    char *class_name[REPORT_MAX_CLASSES];
    int n_classes;
    long outcomes[REPORT_STAGES][OUTCOME_COUNT]; /* of train tasks */
    ReportMessage *messages;                     /* by outcome, then the most frequent first */
    int n_messages;
    ReportDoubt *doubts;
    int n_doubts;
    ReportInput *inputs;
    int n_inputs;
    long failed[OUTCOME_COUNT]; /* of the whole run */
    long judged, unjudged;      /* verdicts of answers; those that the evaluator failed to make */
    int predicted, measured;    /* some times are predicted; some are measured */
    int own_predicted;          /* the times of the run's own device are predicted */
    double error_factor;        /* the largest of the predicted verdicts; 0: unknown */
    int judged_again;           /* the best kernels have scores of a second judgement */
    char *policy;               /* the endpoint that answered, or NULL: a model here */
    int untrained;              /* it has no adapter of this run: no weights were trained */
    ReportModel *models;
    int n_models;
    const RunStatus *live;     /* of a run that is going on; borrowed, NULL of a finished one */
    const RunNumbers *numbers; /* the steps of the run, borrowed; NULL: not known */
    const RunRule *rules;      /* what its programs took, borrowed */
    int n_rules;
} Report;

typedef struct {
    const char *run, *profile, *device, *tasks, *task_root;
    const char *samples[REPORT_STAGES], *verdicts[REPORT_STAGES];
    const char *results, *pool, *rounds; /* rounds: verdicts, comma separated, oldest first */
    /* The second judgement: of the best of the pool and of each stage's samples. */
    const char *again_samples, *again_verdicts;
    const char *ledger; /* what endpoints cost (stages/policy/budget.h); it need not be there */
} ReportFiles;

/* ---- run_files.c ---- */
/* The artifacts that a run folder has, whether the run is finished or not. It borrows from r; the rest
 * is released by report_files_release, and only then. */
void report_files_find(const RunFolder *r, ReportFiles *out);
void report_files_release(ReportFiles *f);

/* Reads the artifacts. The caller releases *out, also after an error. f must stay valid. */
int report_load(const ReportFiles *f, Report *out, Error *err);
void report_release(Report *r);
ReportTask *report_task(const Report *r, const char *name); /* NULL: the report has no such task */

/* ---- models.c: the rows of teachers and endpoints ---- */
/* whole 0: the samples are of one producer, and are read only if it has a row. */
int models_load(Report *r, const char *samples, const char *verdicts, int whole, Error *err);
int models_ledger(Report *r, const char *path, Error *err);
void models_release(Report *r);
/* Returns the number of rows, 0 where the generator alone has one: then nothing is written. */
int models_write(const Report *r, Buffer *b);

/* ---- table.c ---- */
typedef enum {
    TABLE_RATE,   /* succeeded / attempted */
    TABLE_FASTER, /* tasks */
    TABLE_MEAN,
    TABLE_GEOMEAN,
    TABLE_MEDIAN,
    TABLE_STATISTICS
} TableStatistic;

typedef struct {
    char stage[16], split[16];
    int tasks, faster;
    long attempted, succeeded;
    double mean, geomean, median, max, p25, p75; /* NAN without tasks */
    /* The 95% interval of each statistic, by resampling tasks and each task's samples; of the whole
     * run tasks alone. NAN where there is none: a single task. */
    Interval in[TABLE_STATISTICS];
} TableRow;

/* Returns the percentile p (0 to 1) of n >= 1 ascending values, linear between the nearest
 * ranks. */
double table_percentile(const double *v, int n, double p);
/* Faster means above this score. */
#define TABLE_FASTER_FROM 1.01
/* Sorts the n best scores in v and computes their statistics. */
void table_statistics(double *v, int n, TableRow *row);

enum { TABLE_ROWS = 15 };
/* Makes the rows of collect, sft, selfsup, crl and best, each over train, heldout and all. */
void table_rows(const Report *r, TableRow out[TABLE_ROWS]);
void table_tsv(const TableRow rows[TABLE_ROWS], Buffer *out);

/* ---- standing.c: what a run is worth ---- */
typedef struct {
    int has_teacher;
    int tasks, beaten;  /* train tasks; those whose best kernel is the model's, not the teacher's */
    Interval beaten_in; /* NAN with a single task */
    /* The success rate of the crl model on train tasks, minus the sft model's. NAN without
     * samples of both. */
    Interval gain;
    /* The mean score of their samples on train tasks, 0 of a wrong one, and the difference. */
    double mean_before, mean_after;
    Interval rise;
} Standing;

void standing_of(const Report *r, Standing *out);
/* Whether the model found a kernel that is more than a hundredth faster than every kernel of the
 * teachers. Without samples of a teacher: than the baseline. */
int standing_beats_teacher(const ReportTask *t);

/* ---- summary.c: the last lines of a run, for a person: at most 80 columns ---- */
void summary_write(const Report *r, const char *dir, Buffer *b);
/* Writes how many verdicts were not made, if any. Returns whether they are over a tenth. */
int summary_unjudged(const Report *r, Buffer *b);

/* ---- explain.c ---- */
enum { EXPLAIN_ROWS = WHY_ROWS + 1 };
/* Lists the times, and the counters that differ by more than a hundredth. Returns how many. */
int explain_rows(const ReportTask *t, CounterRow out[EXPLAIN_ROWS]);
/* Explains why the best kernel is faster: by the counter of the baseline's bottleneck that changed
 * most, and the next one. */
void explain_text(const ReportTask *t, Buffer *out);

/* ---- highlight.c ---- */
void html_escape(Buffer *b, const char *s, size_t n);
void highlight_cuda(Buffer *b, const char *source);

/* ---- figures.c: SVG with the colours of the page ---- */
/* Returns how many rounds one point shows: 1, or more when the rounds are too many for the
 * width. */
int figure_rounds_per_point(const Report *r);
void figure_rounds(const Report *r, Buffer *b);
void figure_outcomes(const Report *r, Buffer *b);

/* ---- kernel_figures.c ---- */
/* The costliest lines of a task's best kernel, its shares of the peaks, and its roofline. */
void kernel_figures(const Report *r, const ReportTask *t, Buffer *b);

/* ---- best.c ---- */
/* Writes DIR/best/<task>.cu for each task with a correct kernel, and removes the other .cu files of
 * earlier reports there. */
int best_write(const Report *r, const char *dir, Error *err);

/* ---- html_top.c: the first screen and the table of stages ---- */
void html_text(Buffer *b, const char *s); /* escaped */
void html_factor(Buffer *b, double v);    /* "1.25×" */
void html_top(const Report *r, const TableRow rows[TABLE_ROWS], Buffer *b);
void html_stages(const Report *r, const TableRow rows[TABLE_ROWS], Buffer *b);

/* ---- page_files.c ---- */
void page_style(Buffer *b);
void page_first_script(Buffer *b); /* at the beginning of the page's body */
void page_script(Buffer *b);       /* at its end */

/* ---- html.c ---- */
int html_page(const Report *r, const TableRow rows[TABLE_ROWS], Buffer *b, Error *err);

/* ---- notes while a run is read: its input files with their configurations, and the messages of what
 * failed ---- */
void notes_input(Report *r, const char *path, const ArtifactReader *a);
/* Opens the artifact for its header. */
int notes_file(Report *r, const char *path, Error *err);
void notes_failure(Report *r, Outcome outcome, const View *verdict);
/* Counts a sample whose endpoint failed. Its verdict says only that there was no code. */
void notes_unanswered(Report *r);
/* By outcome, then the most frequent first. */
void notes_sort(Report *r);

#endif
