/* One candidate in, one verdict out. The evaluator owns a device and judges candidates one after
 * another: compile (own process) -> plan -> correctness -> hack checks -> timing -> statistics. */
#ifndef EVAL_JUDGE_EVALUATOR_H
#define EVAL_JUDGE_EVALUATOR_H

#include "eval/judge/verdict.h"
#include "tasks/task.h"

typedef struct Evaluator Evaluator;

typedef struct {
    const char *device;     /* "sim:h100" */
    const char *tasks_root; /* NULL: the default of taskset_load */
    const char *cache_dir;  /* compile cache; NULL: $QUERN_CACHE, else none */
    uint64_t seed;          /* of the drawn inputs; candidates do not know it */
    ClockMode mode;         /* how a device with a clock times; 0: cold L2 */
    double budget_s;        /* of one pair's timing; 0: the default */
    const char *baseline; /* a source file that is speedup 1.0 instead of the task's baseline; NULL:
                             the task's */
    int profile;          /* hardware counters too, where the device has them */
    const char *first_task;   /* and source: the first candidate, worked for while the device opens;
                                 NULL: not known */
    const char *first_source; /* the caller's until its verdict */
    size_t first_len;
} EvaluatorOptions;

int evaluator_open(const EvaluatorOptions *opt, Evaluator **out, Error *err);
void evaluator_close(Evaluator *e);
const DeviceInfo *evaluator_device(const Evaluator *e);
const TaskSet *evaluator_tasks(const Evaluator *e);

/* Always fills a verdict; an evaluator's own failure is OUTCOME_EVALUATOR_ERROR with its text. */
void evaluator_run(Evaluator *e, const char *task, const char *source, size_t len, Verdict *out);
/* Its compiler's version; waits until it is ready. NULL: it cannot start. */
const char *evaluator_compiler(Evaluator *e, Error *err);
/* A compilation made elsewhere, for the candidate that follows (compiler_offer). */
void evaluator_offer(Evaluator *e, const char *key, const void *reply, size_t len);

#endif
