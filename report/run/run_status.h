/* Where a run stands. It reads settings, logs, progress, the headers of artifacts and one pool, never the
 * samples: a run of any size takes a fraction of a second. */
#ifndef REPORT_RUN_RUN_STATUS_H
#define REPORT_RUN_RUN_STATUS_H

#include "base/buffer.h"
#include "queue/queue.h"
#include "report/run/run_folder.h"
#include "report/run/run_logs.h"

typedef enum { RUN_GOING, RUN_FINISHED, RUN_STOPPED, RUN_FAILED } RunState;
extern const char *const run_state_names[]; /* "going on" "finished" "stopped" "failed" */

typedef enum { STAGE_COLLECT, STAGE_SFT, STAGE_SELFSUP, STAGE_CRL, STAGE_REPORT, STAGES } StageId;
extern const char *const run_stage_names[STAGES];

typedef struct {
    int rules, failed, running; /* that have begun; whose last end was a failure; that run now */
    int rounds, planned;        /* finished and asked for; 0 of 0 where a stage has none */
    int done;
    double seconds; /* during which at least one of its rules ran; of their last times */
} StageStatus;

typedef struct {
    char task[128], found[48]; /* found: "crl 3", "collect" */
    double best, teacher;      /* scores; 0: none */
    long kernels;              /* correct and distinct */
} TaskStatus;

enum { STATUS_MAX_TASKS = 4096, STATUS_MAX_CLASSES = 64, STATUS_MAX_WORKERS = 1024 };

typedef struct {
    RunFolder folder;
    RunState state;
    RunRule *rules;
    int n_rules;
    double began, now; /* seconds since 1970; began: of the first rule that is noted, 0: none */
    double seconds;    /* during which at least one rule ran */
    StageStatus stage[STAGES];
    char pool[64]; /* the pool that `task` is from, below the run; "" none */
    TaskStatus *task;
    int n_tasks;
    /* The queue; has_queue is 0 when the run is not going on or its server does not answer. */
    int has_queue;
    QueueStatus classes[STATUS_MAX_CLASSES];
    int n_classes;
    struct {
        QueueWorker worker;
        int device_class; /* index into classes */
    } * workers;
    int n_workers;
    QueueSick *sick;
    int n_sick;
} RunStatus;

/* now: clock_unix. The caller releases *out, also after an error. */
int run_status_read(const char *run, const char *runs, double now, RunStatus *out, Error *err);
/* Reads the queue of a server into *s. Returns whether it answered. */
int run_status_queue(RunStatus *s, const char *url);
void run_status_release(RunStatus *s);
/* For people, a line each. colours: with escape sequences. */
void run_status_text(const RunStatus *s, int colours, Buffer *out);
/* "42 s", "3 min 05 s", "2 h 07 min" */
const char *run_status_duration(double seconds, char out[32]);
/* Whether a terminal gets them: not where NO_COLOR is set to something. */
int run_status_colours(void);
/* One JSON object. */
int run_status_json(const RunStatus *s, Buffer *out, Error *err);

#endif
