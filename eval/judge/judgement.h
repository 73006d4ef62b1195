/* The judgement of one candidate: everything that its steps (eval/judge/steps.h) share, with one
 * owner and one release. A step returns 0 to go on; 1 when the candidate is at fault, which
 * j->fault says; -1 when the evaluator failed, which j->fault.error says.
 *
 * The evaluator is what lasts from one judgement to the next. One thread uses both. */
#ifndef EVAL_JUDGE_JUDGEMENT_H
#define EVAL_JUDGE_JUDGEMENT_H

#include "eval/judge/evaluator.h"
#include "eval/judge/run.h"

typedef struct Baseline Baseline;   /* eval/judge/baseline.h */
typedef struct Sanitizer Sanitizer; /* eval/judge/sanitizer.h */

/* How a device with a clock times. */
typedef struct {
    ClockMode mode;
    double budget_s; /* seconds of sampling at most */
    uint64_t seed;   /* of contents and orders */
    int profile;     /* read the hardware counters of one run of each side, too */
} ClockOptions;

struct Evaluator {
    Machine machine;
    Cases *cases;
    Cache *stored;         /* what its cases keep on disk; NULL: no folder is given */
    TaskSet tasks;         /* those in no set, and each other one from when it is first named */
    char *tasks_root;      /* NULL: the default */
    Baseline **baselines;  /* by index of the task, a list; NULL: not prepared yet */
    char *baseline_source; /* replaces the tasks' baselines; NULL: none */
    Sanitizer *sanitizer;  /* of a device that measures; NULL: no simulator has its architecture */
    int sanitize_all;      /* not only wins */
    ClockOptions clock;
    uint64_t seed;
};

typedef struct Judgement {
    Evaluator *evaluator;
    Task *task;
    TimedPair pairs[TASK_MAX_TIMED];
    int n_pairs;
    const Workload *timed; /* of the pair at hand (workloads.h) */
    const Workload *small; /* a simulator runs it whole, and samples the timed one */
    const char *source;    /* the caller's */
    size_t len;
    Candidate candidate;
    int trusted; /* the harness's own code: a baseline */
    Loaded loaded;
    Baseline *baseline; /* the evaluator's; NULL before the candidate is timed */
    int shared;         /* another candidate's code had run in its process of libraries before */
    Run largest;        /* of the largest check workload, open from `check` to `variants` */
    int n_checked;      /* check workloads that have run */
    int unshown;        /* predicted, and no output of the timed size was compared, or not all
                           of one is known to be written: no win */
    DeviceTiming *first_timing; /* of the first pair, while others are timed; NULL: there is none */
    Errors errors;              /* of the candidate's or baseline's own outputs */
    Verdict verdict;
    Fault fault;
} Judgement;

/* Begin: the verdict gets what is known before any step. task NULL: there is none. Release in every
 * case. */
void judgement_begin(Judgement *j, Evaluator *e, Task *t, const char *source, size_t len);
/* The verdict's key, of the sizes that are timed. */
void judgement_key(Judgement *j);
/* Complete the verdict after the last step, which returned rc. */
void judgement_conclude(Judgement *j, int rc);
void judgement_release(Judgement *j);

/* The device's kind. */
int judgement_is_predicted(const Judgement *j);
/* The interval of the verdict's ratio lies above 1. */
int judgement_is_win(const Judgement *j);

/* The contents that the evaluator's seed draws. trial: of draws of the same. */
typedef struct {
    const Workload *w;
    Variant v;
    double scale;
    int trial;
} Contents;

/* Their case. NULL: the evaluator failed. */
const Case *judgement_draw(Judgement *j, const Contents *of);
/* That of a workload as it is drawn first. */
const Case *judgement_case(Judgement *j, const Workload *w);

/* Fill the verdict's times and its ratio from verdict.timing. */
int judgement_score(Judgement *j);
/* A step: a time below timing_floor_us is a cheat. */
int judgement_floor(Judgement *j);

#endif
