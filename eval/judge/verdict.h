/* A verdict: what an evaluation of one candidate found, its key, and its record in an artifact. */
#ifndef EVAL_JUDGE_VERDICT_H
#define EVAL_JUDGE_VERDICT_H

#include "artifacts/record.h"
#include "base/digest.h"
#include "eval/device/device.h"

/* The version of the rules that verdicts are made by. It is part of every key: verdicts of two
 * versions are never compared. */
#define VERDICT_HARNESS "6"

typedef struct {
    Outcome outcome;
    char cheat[64];            /* the cheat's name, or "" */
    char message[2048];        /* "" when ok; else what to change, for a model to read */
    ErrorCode error;           /* the evaluator's own error, not in the record; NONE: it had none */
    int line;                  /* of the source, 0 none */
    double score;              /* 0 unless ok: lower bound of the speedup, rounded towards 1 */
    double speedup, low, high; /* median paired ratio and its 95% interval */
    double time_us, baseline_us;
    double light_us;    /* least time by bytes and flops on this device */
    int light_is_flops; /* the ceiling that light_us is: arithmetic, else bytes */
    int registers;      /* most of any kernel */
    size_t local_bytes; /* per thread, most of any kernel: spills and indexed arrays */
    size_t
        shared_bytes; /* per block, static and dynamic, most of any launch of the timed workload */
    double
        occupancy; /* by registers, shared memory and block size, least of any launch; 0 unknown */
    char occupancy_limit[16]; /* what keeps more blocks out: "registers" */
    int n_checks;
    char checks[VERDICT_MAX_CHECKS][VERDICT_CHECK_TEXT]; /* what was passed, in order: "check rows=7
                                                            cols=33, input scale 1" */
    DeviceTiming *timing; /* NULL unless timed; owned by the verdict */
    char source_digest[DIGEST_HEX], task_digest[DIGEST_HEX], device[64], compiler[64],
        key[DIGEST_HEX];
    char device_name[128], driver[32], uuid[48]; /* of DeviceInfo */
    uint64_t seed;
    int predicted;
} Verdict;

void verdict_release(Verdict *v);

/* What decides a verdict. not_on: the uuid of a device that must not judge it, or "". */
typedef struct {
    const char *source, *task_digest, *device_class, *not_on;
    size_t source_len;
    uint64_t seed;
} VerdictKey;

/* The digest of the key's fields and VERDICT_HARNESS. Equal keys are one job. */
void verdict_key(const VerdictKey *key, char out[DIGEST_HEX]);

/* The verdict as a record of kind `verdicts`, without the sample's id, which the submitter adds. */
void verdict_record(const Verdict *v, const char *task, Record *r);

#endif
