/* One candidate in, one verdict out. The evaluator owns a device and judges candidates one after
 * another: compile (own process) -> plan -> correctness -> hack checks -> timing -> statistics. */
#ifndef EVAL_EVALUATOR_H
#define EVAL_EVALUATOR_H

#include "artifacts/record.h"
#include "eval/device.h"
#include "queue/job.h"
#include "tasks/task.h"

#define EVAL_HARNESS JOB_HARNESS /* part of every job key: a new harness is a new verdict */

typedef struct Evaluator Evaluator;

typedef struct {
    const char *device;        /* "sim:h100" */
    const char *tasks_root;    /* NULL: the default of taskset_load */
    const char *cache_dir;     /* compile cache; NULL: $QUERN_CACHE, else none */
    uint64_t seed;             /* of the drawn inputs; candidates do not know it */
    ClockMode mode;            /* how a device with a clock times; 0: cold L2 */
    double budget_s;           /* of one pair's timing; 0: the default */
    const char *baseline;      /* a source file that is speedup 1.0 instead of the task's baseline; NULL: the task's */
    int profile;               /* hardware counters too, where the device has them */
    const char *first_task;    /* and source: the first candidate, worked for while the device opens; NULL: not known */
    const char *first_source;  /* the caller's until its verdict */
    size_t first_len;
} EvaluatorOptions;

int evaluator_open(const EvaluatorOptions *opt, Evaluator **out, Error *err);
void evaluator_close(Evaluator *e);
const DeviceInfo *evaluator_device(const Evaluator *e);
const TaskSet *evaluator_tasks(const Evaluator *e);

typedef struct {
    Outcome outcome;
    char cheat[64];            /* the cheat's name, or "" */
    char message[2048];        /* "" when ok; else what to change, for a model to read */
    int line;                  /* of the source, 0 none */
    double score;              /* 0 unless ok: lower bound of the speedup, rounded towards 1 */
    double speedup, low, high; /* median paired ratio and its 95% interval */
    double time_us, baseline_us;
    double light_us;           /* least time by bytes and flops on this device */
    int light_is_flops;        /* the ceiling that light_us is: arithmetic, else bytes */
    int registers;             /* most of any kernel */
    size_t local_bytes;        /* per thread, most of any kernel: spills and indexed arrays */
    size_t shared_bytes;       /* per block, static and dynamic, most of any launch of the timed workload */
    double occupancy;          /* by registers, shared memory and block size, least of any launch; 0 unknown */
    char occupancy_limit[16];  /* what keeps more blocks out: "registers" */
    int n_checks;
    char checks[VERDICT_MAX_CHECKS][VERDICT_CHECK_TEXT]; /* what was passed, in order: "check rows=7 cols=33, input scale 1" */
    DeviceTiming *timing;      /* NULL unless timed; owned by the verdict */
    char source_digest[DIGEST_HEX], task_digest[DIGEST_HEX], device[64], compiler[64], key[DIGEST_HEX];
    char device_name[128], driver[32], uuid[48]; /* of DeviceInfo */
    uint64_t seed;
    int predicted;
} Verdict;

/* Always fills a verdict; an evaluator's own failure is OUTCOME_EVALUATOR_ERROR with its text. */
void evaluator_run(Evaluator *e, const char *task, const char *source, size_t len, Verdict *out);
void verdict_release(Verdict *v);
/* Its compiler's version; waits until it is ready. NULL: it cannot start. */
const char *evaluator_compiler(Evaluator *e, Error *err);
/* A compilation made elsewhere, for the candidate that follows (compiler_offer). */
void evaluator_offer(Evaluator *e, const char *key, const void *reply, size_t len);

/* The job's key: digest of (source, task's digest, device class, harness, seed). */
void evaluator_job_key(const char *source, size_t len, const char *task_digest, const char *device_class, uint64_t seed,
                       char out[DIGEST_HEX]);

/* A verdict as a record of kind `verdicts` (without the sample's id, which the submitter adds). */
void verdict_record(const Verdict *v, const char *task, Record *r);

#endif
