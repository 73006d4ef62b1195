/* The submitter: it sends jobs through the queue, waits, and reads their verdicts. Equal jobs are one
 * job. Jobs that the queue loses are sent again. A result that is no verdict of its job is buried as
 * dead, with the verdict evaluator_error, which counts. */
#ifndef EVAL_SERVE_SUBMITTER_H
#define EVAL_SERVE_SUBMITTER_H

#include "eval/serve/job.h"

/* One distinct job. */
typedef struct {
    Job job; /* its source is borrowed */
    char key[DIGEST_HEX];
    int held;      /* the submitter looks for its verdict and does not enqueue it */
    int queued;    /* in the queue, as far as is known */
    char *verdict; /* an encoded record; NULL: none yet */
    size_t len;
} Submission;

typedef struct Submitter Submitter;

/* What a layer above adds; each may be NULL. Both return -1 to end the run, and may add jobs. */
typedef struct {
    /* The verdict of submission `index` has come. */
    int (*on_verdict)(void *ctx, long index, const Verdict *v, Error *err);
    int (*on_turn)(void *ctx, Error *err); /* several times a second */
    void *ctx;
} SubmitterHooks;

/* most: how many jobs are added at most. */
Submitter *submitter_new(long most, const SubmitterHooks *hooks);
void submitter_free(Submitter *s); /* NULL is allowed */

/* Add a job. Returns its index, or that of an equal one. */
long submitter_add(Submitter *s, const Job *job, int held);
long submitter_count(const Submitter *s); /* of distinct jobs */
long submitter_done(const Submitter *s);  /* of those with a verdict */
/* Valid until the submitter is freed. */
const Submission *submitter_at(const Submitter *s, long index);

/* Keep a verdict that an earlier run got, an encoded record. ERROR_CORRUPT when no job has its key. */
int submitter_restore(Submitter *s, const void *data, size_t len, Error *err);
/* Keep the verdict evaluator_error for a job, with the reason. */
int submitter_give_up(Submitter *s, long index, const char *why, Error *err);
/* Enqueue a held job. */
int submitter_enqueue(Submitter *s, long index, Error *err);

typedef struct {
    Queue *queue;
    int urgent;        /* before all jobs that are not */
    double patience_s; /* fail when nothing finishes for this long */
} SubmitterOptions;

/* Run until every job has a verdict. ERROR_STOPPED after a stop signal. */
int submitter_run(Submitter *s, const SubmitterOptions *opt, Error *err);

/* ---- a few candidates whose outcomes are needed at once ---- */

typedef struct {
    const Task *task;
    const char *source;
    Outcome outcome; /* output */
} AskItem;

typedef struct {
    Queue *queue;
    const char *device_class;
    uint64_t seed;
} AskOptions;

/* Submit n candidates and wait for all of their outcomes. */
int submitter_ask(const AskOptions *opt, AskItem *items, size_t n, Error *err);

#endif
