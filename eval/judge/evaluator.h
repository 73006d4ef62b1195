/* An evaluator judges candidates on one device, one after another, by the steps of
 * eval/judge/steps.c. The first step that fails decides the verdict. One thread uses an evaluator. */
#ifndef EVAL_JUDGE_EVALUATOR_H
#define EVAL_JUDGE_EVALUATOR_H

#include "eval/judge/verdict/verdict.h"
#include "tasks/task.h"

typedef struct Evaluator Evaluator;

typedef struct {
    const char *device;     /* "sim:h100" */
    const char *tasks_root; /* NULL: the default of taskset_load */
    const char *tasks;      /* that evaluator_open loads, by taskset_load's words */
    const char *cache_dir;  /* compile cache; NULL: $QUERN_CACHE, else none */
    uint64_t seed;          /* of the drawn inputs; a candidate does not know it */
    ClockMode mode;         /* how a device with a clock times; 0: cold L2 */
    double budget_s;        /* seconds of timing for one candidate at most; 0: the default */
    const char *baseline;   /* file of a source that replaces the task's baseline; NULL: none */
    int profile;            /* read hardware counters, where the device has them */
} EvaluatorOptions;

/* Opens the device and starts the compiler; -1 when either fails or the tasks cannot be read. */
int evaluator_open(const EvaluatorOptions *opt, Evaluator **out, Error *err);
void evaluator_close(Evaluator *e);
const DeviceInfo *evaluator_device(const Evaluator *e);
/* The tasks that are in no set, and those that were named since. */
const TaskSet *evaluator_tasks(const Evaluator *e);
/* The task of a name, loaded when it is first named; NULL: there is none, or it cannot be read. */
const Task *evaluator_task(Evaluator *e, const char *name, Error *err);

/* Draw the inputs of the next candidates with another seed. */
void evaluator_reseed(Evaluator *e, uint64_t seed);

/* on: a device that measures has the simulator check each right kernel, not only each win. */
void evaluator_sanitize_all(Evaluator *e, int on);

/* Judge one source. Always fills *out, which the caller releases with verdict_release. A failure of
 * the evaluator is OUTCOME_EVALUATOR_ERROR with its sentence. */
void evaluator_run(Evaluator *e, const char *task, const char *source, size_t len, Verdict *out);
/* The same, for a caller that takes more than the verdict: *j (eval/judge/judgement.h) keeps the
 * candidate and its loaded code until judgement_release. The source must outlive it. */
struct Judgement;
void evaluator_judge(Evaluator *e, const char *task, const char *source, size_t len,
                     struct Judgement *j);
/* The compiler's version ("NVRTC 13.0"). Waits until it is ready; NULL when it cannot start. */
const char *evaluator_compiler(Evaluator *e, Error *err);
/* Offer a compilation made elsewhere to the next candidate (compiler_offer). */
void evaluator_offer(Evaluator *e, const char *key, const void *reply, size_t len);

#endif
