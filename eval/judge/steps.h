/* The steps of a judgement, in their order. The first step that fails decides the verdict. */
#ifndef EVAL_JUDGE_STEPS_H
#define EVAL_JUDGE_STEPS_H

#include "eval/judge/judgement.h"

/* When a step applies: the conditions of all its bits hold. RUNS is no condition: the step runs the
 * candidate's code, and is done again when its doubtful values are followed (loaded_follow). */
enum {
    ALWAYS = 0,
    SIMULATOR = 1, /* the device predicts times */
    CLOCK = 2,     /* the device measures them */
    WIN = 4,       /* the candidate is faster than its baseline so far */
    SANITIZED = 8, /* a win, or the evaluator sanitizes every right kernel */
    RUNS = 16,
    EACH =
        32 /* no condition: the step, and those of this kind beside it, run for each timed workload */
};

typedef struct {
    const char *name;
    int (*run)(Judgement *j); /* 0, 1 or -1 as in eval/judge/judgement.h */
    unsigned when;
} JudgementStep;

extern const JudgementStep judgement_steps[];
extern const int judgement_n_steps;

/* Does the step apply, after those before it went well? */
int judgement_step_applies(const Judgement *j, const JudgementStep *s);

#endif
