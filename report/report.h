/* The report of a finished run: its artifacts read into one structure, the statistics of its table,
 * and the page. Degenerate tasks are shown and left out of every number. */
#ifndef STAGES_REPORT_H
#define STAGES_REPORT_H

#include "artifacts/artifact.h"
#include "base/buffer.h"
#include "eval/device/device.h"
#include "eval/device/outcome.h"
#include "tasks/task.h"

typedef enum { REPORT_COLLECT, REPORT_SFT, REPORT_SELFSUP, REPORT_CRL, REPORT_STAGES } ReportStage;
extern const char *const report_stage_names[REPORT_STAGES]; /* "collect" "sft" "selfsup" "crl" */

/* Rounds: more than one argument of a command can name. */
enum { REPORT_MAX_ROUNDS = 16384, REPORT_MAX_CLASSES = 64, REPORT_MAX_MESSAGES = 4096 };

typedef struct {
    int n;
    DeviceCounter v[DEVICE_MAX_COUNTERS];
} Counters;

/* NAN when there is none of that name. */
double counters_get(const Counters *c, const char *name);

typedef struct {
    long attempted, succeeded;    /* attempted: those that were judged */
    double best;                  /* score of the best of these samples, 1.0 where none is better */
    char best_digest[DIGEST_HEX]; /* its source's; "" where none is better */
} Tally;

typedef struct {
    const Task *task;
    Tally stage[REPORT_STAGES];
    Tally *round;                           /* n_rounds of them */
    Tally run;                              /* of everything that was evaluated */
    double class_score[REPORT_MAX_CLASSES]; /* of the pool's best; NAN: not evaluated there, or not
                                               ok */
    Outcome class_outcome[REPORT_MAX_CLASSES]; /* OUTCOME_OK where there is none */
    /* The best kernel: source NULL when no sample was correct. */
    char *source, *found; /* found: "collect", "crl 3", "the report's sft samples" */
    double score, time_us, baseline_us;
    double found_score; /* that chose it; score is of the judgement after, where there is one */
    char *refused; /* of what would be the best: why the judgement after refused it; else NULL */
    const char *doubt; /* of a record: "unconfirmed", "disputed", or "" */
    int predicted;
    Counters best, baseline;
} ReportTask;

typedef struct {
    Outcome outcome;
    char *text, *key; /* key: the text without its numbers, by which messages are counted */
    long count;
} ReportMessage;

/* What is known of a record: no second device was there, or what it said. */
typedef struct {
    char *task, source_digest[DIGEST_HEX];
    enum { DOUBT_ALONE, DOUBT_DISPUTED, DOUBT_NONE } state;
} ReportDoubt;

typedef struct {
    char *path, *text; /* text: kind, producer, count, digest, inputs: one line each */
    char *config;
} ReportInput;

typedef struct {
    const char *run, *profile, *device;
    TaskSet tasks;
    ReportTask *task; /* tasks.n of them */
    char **round_name;
    int n_rounds;
    char *class_name[REPORT_MAX_CLASSES];
    int n_classes;
    long outcomes[REPORT_STAGES][OUTCOME_COUNT];
    ReportMessage *messages; /* most frequent first after report_load */
    int n_messages;
    ReportDoubt *doubts;
    int n_doubts;
    ReportInput *inputs;
    int n_inputs;
    long failed[OUTCOME_COUNT]; /* of the whole run */
    int predicted, measured;    /* some time is a model's; some is a clock's */
    int own_predicted;          /* those of the run's own device are */
    int judged_again;           /* the scores of the bests are not those that chose them */
} Report;

typedef struct {
    const char *run, *profile, *device, *tasks, *task_root;
    const char *samples[REPORT_STAGES], *verdicts[REPORT_STAGES];
    const char *results, *pool, *rounds; /* rounds: verdicts, comma separated, oldest first */
    const char *again_samples,
        *again_verdicts; /* the best of the pool and of each stage's samples, judged once more */
} ReportFiles;

int report_load(const ReportFiles *f, Report *out, Error *err);
void report_release(Report *r);

/* ---- table.c ---- */
typedef struct {
    char stage[16], split[16];
    int tasks, faster;
    long attempted, succeeded;
    double mean, geomean, median, max, p25, p75; /* NAN without tasks */
} TableRow;

/* v sorted ascending, n >= 1, p within 0..1: linear between the two nearest ranks. */
double table_percentile(const double *v, int n, double p);
/* The statistics of n bests; v is sorted. faster: above 1.01. */
void table_statistics(double *v, int n, TableRow *row);

enum { TABLE_ROWS = 12 };
/* Stages sft selfsup crl best, each over train, heldout, all. */
void table_rows(const Report *r, TableRow out[TABLE_ROWS]);
void table_tsv(const TableRow rows[TABLE_ROWS], Buffer *out);

/* ---- explain.c ---- */
typedef struct {
    const char *label, *unit;
    double baseline, best;
} CounterRow;

enum { EXPLAIN_ROWS = 16 };
/* The counters worth showing: those that differ by more than a hundredth. */
int explain_rows(const ReportTask *t, CounterRow out[EXPLAIN_ROWS]);
/* Why the best is faster: what changed most of what holds the baseline up. */
void explain_text(const ReportTask *t, Buffer *out);
void explain_number(double v, const char *unit, char *out,
                    size_t size); /* "12.6 MB", "48,160", "0.75" */

/* ---- highlight.c ---- */
void html_escape(Buffer *b, const char *s, size_t n);
void highlight_cuda(Buffer *b, const char *source);

/* ---- figures.c: SVG that takes its colours from the page ---- */
int figure_rounds_a_point(
    const Report *r); /* 1, or more where the rounds are too many to tell apart */
void figure_rounds(const Report *r, Buffer *b);
void figure_outcomes(const Report *r, Buffer *b);

/* ---- best.c ---- */
/* DIR/best/<task>.cu of each task with a correct kernel; other .cu files there, of earlier reports,
 * are removed. */
int best_write(const Report *r, const char *dir, Error *err);

/* ---- html.c, style.c ---- */
extern const char *const report_style;
int html_page(const Report *r, const TableRow rows[TABLE_ROWS], Buffer *b, Error *err);

#endif
