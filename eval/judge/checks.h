/* Correctness: every check workload, on fresh inputs at several scales, against the reference; and
 * on one of them what a result that was not computed cannot pass: equal bytes on a second run, and
 * right results on other inputs at the same addresses. */
#ifndef EVAL_JUDGE_CHECKS_H
#define EVAL_JUDGE_CHECKS_H

#include "eval/judge/run.h"

typedef struct {
    int n;
    char text[VERDICT_MAX_CHECKS][VERDICT_CHECK_TEXT]; /* what was passed, in order */
} ChecksPassed;

/* Every launch of every workload that will run, resolved without running: a plan's mistakes first.
 */
int checks_plan(Loaded *l, const Workload *timed, Finding *f);
int checks_disturbed(Rig *r, ChecksPassed *passed, Finding *f,
                     Error *err); /* once more in another order, where the device can */
int checks_run(Loaded *l, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f,
               Error *err);

/* What a win is checked on, which no run of the candidate has seen: the timed workload with what
 * the check workloads had, another scale, needles, special values, integers. A kernel that knows
 * the timed shape has seen ordinary inputs alone there. *out NULL: the task has no such inputs. */
enum { CHECKS_UNSEEN = 5 };
int checks_unseen(Cases *cases, Task *t, const Workload *timed, uint64_t seed, int i,
                  const Case **out, Error *err);

/* After a wrong result: is it right in a freshly loaded module? Then state was kept between
 * launches, and f says so. Returns 1, or -1. */
int checks_explain_wrong(Rig *r, Finding *f, Error *err);

void checks_pass(ChecksPassed *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
