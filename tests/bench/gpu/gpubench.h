/* The parts of quern-gpubench. Each measures one property of an evaluator on a device, through the
 * interfaces that users call, and prints results as they come. Every part also runs on a simulator,
 * where times are predicted. */
#ifndef TESTS_BENCH_GPU_GPUBENCH_H
#define TESTS_BENCH_GPU_GPUBENCH_H

#include <stdio.h>

#include "base/error.h"
#include "eval/judge/evaluator.h"

typedef struct {
    const char *device;
    const char *bin;  /* folder of Quern's programs */
    const char *work; /* scratch */
    FILE *out;        /* tab-separated results; NULL: none */
    long rows;        /* printed so far */
    double limit_s;   /* time limit of a part, which then ends with what it has; 0: none */
    double until;     /* end of the time limit, set by gpubench_begin; 0: none */
    int64_t latency, sustained, pairs, trials, repeats, hostile, hangs;
    int64_t compilers; /* of quern-evald; -1: its own choice */
    const char *sets;  /* tasks of baselines and sustained, as TASKS has them; NULL: in no set */
    int64_t jobs;      /* tasks of part baselines that are prepared side by side; 0: by the cores */
    const char *baseline_rows; /* file of part baselines' rows (gpubench_rows.h), or NULL */
    const char *only;          /* tasks of part same, by comma; NULL: all */
    int64_t from;              /* number of part hostile's first candidate, to split it over GPUs */
    double span_s;             /* time from the first to the last repeat */
    struct GpuRepeat *repeat;  /* part repeat while it is open, or NULL */
    const char *eager;         /* a table of tools/rival.py, or NULL */
} GpuBench;

/* The parts. Each returns 0, or -1 with what could not be measured. */
int gpubench_latency(GpuBench *b, Error *err);
int gpubench_sustained(GpuBench *b, Error *err);
int gpubench_same(GpuBench *b, Error *err); /* A/A */
int gpubench_difference(GpuBench *b, Error *err);
int gpubench_repeat(GpuBench *b, Error *err);
/* Open part repeat before same and difference. Repeats that are due are then made between their
 * comparisons, and gpubench_repeat makes the rest. */
int gpubench_repeat_begin(GpuBench *b, Error *err);
int gpubench_hostile(GpuBench *b, Error *err);
int gpubench_baselines(GpuBench *b, Error *err);

/* ---- for the parts ---- */

void gpubench_begin(GpuBench *b, const char *title);
int gpubench_over(const GpuBench *b); /* the time limit has passed, or a stop signal came */

/* Report a result: print it and write a line of the file. asked: the target, "<0.15" or ">12000",
 * or "" for none. */
void gpubench_row(GpuBench *b, const char *part, const char *what, double value, const char *unit,
                  const char *asked);
/* Write a single observation as a line of the file only. */
void gpubench_raw(GpuBench *b, const char *part, const char *what, double value, const char *unit);

/* Make the folder "<work>/NAME" and return its path in out. */
int gpubench_folder(const GpuBench *b, const char *name, char *out, size_t size, Error *err);
enum { GPUBENCH_HALF = -2 };
/* Make a folder of the tasks with other timed sizes: those of the simulator, with `axis` set to
 * size when axis is given; or half of the usual ones, with axis NULL and size GPUBENCH_HALF. */
int gpubench_tasks(const GpuBench *b, const char *name, const char *only, const char *axis,
                   int64_t size, char out[4096], Error *err);
/* Returns the kernel with a comment after it that is unique to this run and number, so that no
 * cache holds it. The caller frees it. */
char *gpubench_variant(const char *source, long number);

typedef struct {
    char task[64], kind[64]; /* kind: "teacher", or the file's name */
    char expect[128]; /* outcomes that the file expects on this device, "timeout | launch_error" */
    char *source;
} GpuBenchCandidate;

typedef struct {
    GpuBenchCandidate *items;
    int n;
} GpuBenchList;

/* Append n distinct kernels that the generator draws, over the tasks of b->sets in their order, or
 * fewer when it has no more. mistakes: the share with a mistake. */
int gpubench_teacher(const GpuBench *b, int n, double mistakes, GpuBenchList *out, Error *err);
/* Append every file that matches and names a task. No match is no error. */
int gpubench_files(const GpuBench *b, const char *pattern, GpuBenchList *out, Error *err);
void gpubench_list_release(GpuBenchList *l);
/* Returns whether the candidate's file expects this outcome, or expects nothing. */
int gpubench_expected(const GpuBenchCandidate *c, const char *outcome, const char *cheat);

double gpubench_mean(const double *v, int n);

#endif
