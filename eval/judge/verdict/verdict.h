/* A verdict: the result of evaluating one candidate, its key, and its record in an artifact. The
 * fields of the record and of the JSON are in eval/judge/verdict/verdict_schema.h. */
#ifndef EVAL_JUDGE_VERDICT_VERDICT_H
#define EVAL_JUDGE_VERDICT_VERDICT_H

#include "artifacts/record.h"
#include "base/digest.h"
#include "eval/device/device.h"

/* The version of the rules by which verdicts are made. It is part of every key, since verdicts of
 * two versions cannot be compared. */
#define VERDICT_HARNESS "33"

/* The time of a step of the judgement (eval/judge/steps.h). */
typedef struct {
    const char *name;
    double ms;
} VerdictStep;

/* A row of the verdict: the result at one of several timed workloads. */
typedef struct {
    char sizes[VERDICT_CHECK_TEXT]; /* "rows=1 cols=4096" */
    double weight;                  /* its share of the sum of weights */
    double speedup, low, high;
    double time_us, baseline_us, light_us;
} VerdictRow;

enum { VERDICT_MAX_STEPS = 24, VERDICT_MAX_RIVALS = 9, VERDICT_MAX_ROWS = 8 };

typedef struct {
    Outcome outcome;
    char cheat[64];            /* the cheat's name, or "" */
    char message[2304];        /* "" when ok; else what to change, for a model to read */
    ErrorCode error;           /* the evaluator's own error, not in the record; NONE: it had none */
    int line;                  /* of the source, 0 none */
    double score;              /* low, rounded towards 1; 0 unless ok */
    double speedup, low, high; /* median paired ratio and its 95% interval */
    double time_us, baseline_us;
    int n_rows; /* of a task with several timed workloads: what is above is of their weighted means */
    VerdictRow rows[VERDICT_MAX_ROWS];
    double own_error, eager_error, budget; /* errors.h; budget 0: none was given */
    char error_of[64];                     /* the output that they are of; "": not measured */
    double light_us;                       /* timing_light_us */
    int light_is_flops;  /* light_us is the time of the arithmetic, else of the bytes */
    int registers;       /* per thread, the maximum over the kernels */
    size_t local_bytes;  /* per thread, the maximum over the kernels: spills and indexed arrays */
    size_t shared_bytes; /* per block, static and dynamic, the maximum over the timed launches */
    double occupancy;    /* theoretical, the minimum over the timed launches; 0 unknown */
    char occupancy_limit[16]; /* what limits it: "registers" */
    int n_checks;
    char checks[VERDICT_MAX_CHECKS][VERDICT_CHECK_TEXT]; /* passed, in order: "check rows=7" */
    int n_warnings;
    char warnings[VERDICT_MAX_WARNINGS][VERDICT_CHECK_TEXT]; /* mistakes that do not matter */
    DeviceTiming *timing; /* NULL unless timed; owned by the verdict */
    char torch[32];       /* the PyTorch of rivals; "": there are none */
    int n_rivals;
    DeviceCounter rivals[VERDICT_MAX_RIVALS]; /* its times of the task (rivals.h): "compile_us" */
    char source_digest[DIGEST_HEX], task_digest[DIGEST_HEX], device[64], compiler[64],
        key[DIGEST_HEX];
    char device_name[128], driver[32], uuid[48]; /* of DeviceInfo */
    int n_steps;
    VerdictStep steps[VERDICT_MAX_STEPS]; /* in the order of their first run; in no record */
    uint64_t seed, second_seed;           /* second_seed: 0 when there was no second timing */
    int predicted;
    double error_factor;  /* DeviceInfo.error_factor */
    double compile_cpu_s; /* of the compilation, when it was made; in no record */
    int left_own;         /* VerdictKey.left_own; in no record */
} Verdict;

void verdict_release(Verdict *v);

/* How the line begins that says what was compared at the timed size of a predicted verdict. */
#define VERDICT_SHOWN "timed size: "
/* And one that says why the speedup is 1 at most. */
#define VERDICT_UNSHOWN VERDICT_SHOWN "no speedup counts, since "
/* That line, behind "timed size: "; NULL: there is none. */
const char *verdict_unshown(const Verdict *v);
/* Add a line to the checks that were passed; dropped when there are VERDICT_MAX_CHECKS. */
void verdict_pass(Verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add a warning, unless it is there or there are VERDICT_MAX_WARNINGS. */
void verdict_warn(Verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add ms to those of a step; `name` is a constant. */
void verdict_spend(Verdict *v, const char *step, double ms);

/* The inputs of a verdict. not_on: the uuid of a device that must not judge it, or "". */
typedef struct {
    const char *source, *task_digest, *device_class, *not_on;
    size_t source_len;
    uint64_t seed;
    int sanitize; /* a device that measures has the simulator check it even when it is no win */
    int left_own; /* timed at shortened sizes, where others of the class time the module's own */
} VerdictKey;

/* The digest of the key's fields and VERDICT_HARNESS. Jobs with equal keys are one job. */
void verdict_key(const VerdictKey *key, char out[DIGEST_HEX]);

/* Write v into r, a record of kind `verdicts`. The submitter adds the sample's id. */
void verdict_record(const Verdict *v, const char *task, Record *r);

/* Read a record into *out, which the caller releases when this returns 0. Returns -1 with the
 * record and field when one is missing, of the wrong type, too long, or not one of its words.
 * occupancy_limit is in no record and becomes "". */
int verdict_read(const View *record, Verdict *out, Error *err);

#endif
