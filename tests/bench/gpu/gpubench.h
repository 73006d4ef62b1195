/* The parts of quern-gpubench: each measures one row of what is asked of an evaluator on a GPU,
 * through the same entries that users go through, and prints what it found as it finds it. Every
 * part runs on a simulator too, where times are predicted. */
#ifndef EVAL_GPUBENCH_H
#define EVAL_GPUBENCH_H

#include <stdio.h>

#include "base/error.h"
#include "eval/judge/evaluator.h"

typedef struct {
    const char *device;
    const char *bin;  /* folder of Quern's programs */
    const char *work; /* scratch */
    FILE *out;        /* tab-separated results; NULL: none */
    long rows;        /* printed so far */
    double limit_s;   /* a part ends early, with what it has, after so long; 0: never */
    double until;     /* when that is, set by gpubench_begin; 0: never */
    int64_t latency, sustained, pairs, trials, repeats, hostile, hangs;
    int64_t compilers; /* of quern-evald; -1: its own choice */
    const char *only;  /* tasks of part same, by comma; NULL: all */
    int64_t from;  /* number of the first candidate of part hostile: several GPUs share the work */
    double span_s; /* over which the repeats are spread */
    struct GpuRepeat *repeat; /* part repeat, begun and not ended; NULL: it is not */
    const char *eager;        /* what tests/gpu/eager.py printed, or NULL */
} GpuBench;

/* Each 0, or -1 with what could not be measured. */
int gpubench_latency(GpuBench *b, Error *err);
int gpubench_sustained(GpuBench *b, Error *err);
int gpubench_same(GpuBench *b, Error *err); /* A/A */
int gpubench_difference(GpuBench *b, Error *err);
int gpubench_repeat(GpuBench *b, Error *err);
/* Before same and difference: what is due of it then comes between their comparisons, and
 * gpubench_repeat waits for the rest. */
int gpubench_repeat_begin(GpuBench *b, Error *err);
int gpubench_hostile(GpuBench *b, Error *err);
int gpubench_baselines(GpuBench *b, Error *err);

/* ---- for the parts ---- */

void gpubench_begin(GpuBench *b, const char *title);
int gpubench_over(const GpuBench *b); /* its time is over, or a stop signal came */

/* One result: printed, and a line of the file. asked: "<0.15", ">12000", or "" when nothing was
 * asked. */
void gpubench_row(GpuBench *b, const char *part, const char *what, double value, const char *unit,
                  const char *asked);
/* A single observation: a line of the file only. */
void gpubench_raw(GpuBench *b, const char *part, const char *what, double value, const char *unit);

/* "<work>/NAME", made. */
int gpubench_folder(const GpuBench *b, const char *name, char *out, size_t size, Error *err);
enum { GPUBENCH_HALF = -2 };
/* A folder of all tasks as they are, but timed at other sizes: those that a simulator times, `axis`
 * of them set to size; or, with axis NULL and size GPUBENCH_HALF, half of the usual ones. */
int gpubench_tasks(const GpuBench *b, const char *name, const char *only, const char *axis,
                   int64_t size, char *out, size_t out_size, Error *err);
/* The same kernel with a comment of its own behind it, of this run alone: a cache that is kept has
 * not seen it. The caller frees. */
char *gpubench_variant(const char *source, long number);

/* Candidates to judge. */
typedef struct {
    char task[64], kind[64]; /* kind: "teacher", or the file's name */
    char expect[128]; /* "timeout | launch_error" as the file says for this device; "" for the
                         teacher's */
    char *source;
} GpuBenchCandidate;

typedef struct {
    GpuBenchCandidate *items;
    int n;
} GpuBenchList;

/* n kernels of the template teacher, over all tasks it knows, no two the same and a share of them
 * with a mistake; fewer when it knows no more. */
int gpubench_teacher(const GpuBench *b, int n, double mistakes, GpuBenchList *out, Error *err);
/* Every file of tests/ that matches and names a task. Appends; no match is no error. */
int gpubench_files(const GpuBench *b, const char *pattern, GpuBenchList *out, Error *err);
void gpubench_list_release(GpuBenchList *l);
/* Is this what the candidate's file expects? True when it says nothing. */
int gpubench_expected(const GpuBenchCandidate *c, const char *outcome, const char *cheat);

double gpubench_mean(const double *v, int n);

#endif
