/* The search for a task's fastest kernel among the generator's schedules. It is anytime: the best kernel
 * so far is in a file at every moment. An analytic model chooses what is judged first; then a beam moves
 * from the fastest kernels by one gene at a time. Sources that are equal are judged once. With equal
 * verdicts two searches are equal, and a queue that has kept the verdicts answers at once. */
#ifndef TUNE_TUNE_H
#define TUNE_TUNE_H

#include "eval/serve/submitter.h"
#include "generate/first.h"
#include "tune/bound.h"

typedef struct {
    const Task *task;
    const Task *sized;        /* the same as the devices time it: schedules are chosen for it */
    const char *device_class; /* of the jobs */
    const char *ranks;        /* a simulated class that chooses what is judged; NULL: all is */
    const char *output;       /* the best kernel so far */
    const char *report;       /* a text for people; NULL: none */
    const char *verdicts;     /* a line for each kernel, its schedule and message */
    const Profile *gpu;       /* of the model */
    Queue *queue;
    uint64_t seed;   /* of the inputs of verdicts */
    double deadline; /* clock_seconds; 0: none */
    int most;        /* kernels that are judged at most */
    int only_bound;  /* nothing is judged */
    int quiet;       /* what the module's bound is was said before */
} TuneOptions;

/* A kernel of the search. */
typedef struct {
    Genes genes; /* its points; all of them are given to what it moves to */
    char *source;
    char why[200];   /* it is eager PyTorch's plan, since no kernel can be written */
    uint64_t body;   /* hash of the source without its schedule */
    double model_us; /* 0: not all kernels have an estimate */
    int n_kernels;
    KernelEstimate *kernel; /* of its estimate */
    char moved[120];        /* the gene by which it differs from where it comes from */
    int next_move;          /* of its points' neighbours: all before it are made */
    long job, rank_job;     /* -1: none */
    int ranked;
    double predicted_us; /* of one that is ranked; HUGE_VAL: it is not right there */
    int judged;
    Outcome outcome;
    double speedup, low, high, us, baseline_us, light_us, found_s;
    int light_is_flops;
    char message[2304];
} TuneCandidate;

typedef struct {
    const TuneOptions *o;
    Submitter *submitter;
    TuneCandidate **all;
    int n, best; /* candidates; -1: none */
    int written; /* the one in the file: the best, but for rises below half a percent */
    int kept;    /* the one that was there after the last batch */
    int left;    /* kernels of the round that are still to be judged, where a simulator ranks */
    int bound_said, rival_said;
    double rival_sought; /* when the table of PyTorch's times was read */
    double said;         /* when the last line about kernels was said */
    int equal, slow;     /* moves that gave an equal source, or one that the model thinks slow */
    double begun;
    const char *ended; /* why */
    Bound bound;
} Tune;

typedef enum {
    TUNE_FOUND,    /* the best kernel is faster than the baseline */
    TUNE_NOTHING,  /* none is */
    TUNE_HOPELESS, /* nothing was judged: nothing can be */
} TuneResult;

/* Returns a TuneResult, or -1 with *err. After a stop signal and at the deadline what was found is there. */
int tune_run(const TuneOptions *o, Error *err);

/* ---- candidates: candidates.c ---- */

/* Generates a kernel by the given genes and adds it. Returns its index; -1: an equal one is there, or the
 * model takes it for slow; -2: *err. */
int tune_add(Tune *t, const Genes *given, const char *moved, Error *err);
/* Adds what the estimates of candidate 0 rank highest, at most n. */
int tune_add_ranked(Tune *t, int n, Error *err);
/* Adds at most n neighbours of a candidate. Returns how many; -1: *err. */
int tune_add_moves(Tune *t, TuneCandidate *c, int n, Error *err);
void tune_free(Tune *t);

/* ---- what a search says: tune_report.c ---- */
int tune_write_report(const Tune *t, Error *err);
int tune_write_verdicts(const Tune *t, Error *err);
/* Says once what the best kernel is worth beside torch.compile, when its time is in a table. 1: it was. */
int tune_say_rival(Tune *t);
void tune_say_best(const Tune *t);
void tune_say_still(const Tune *t); /* how far the search is */
void tune_say_end(const Tune *t);

#endif
