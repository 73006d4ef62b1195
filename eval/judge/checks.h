/* Correctness: every check workload is launched on inputs of several scales and compared with the
 * reference. The largest one is also launched a second time, which must give the same bytes, then
 * with other inputs at the same addresses and with special values, so that a result that was not
 * computed fails.
 *
 * Functions return 0, 1 or -1 as in eval/judge/loaded.h. */
#ifndef EVAL_JUDGE_CHECKS_H
#define EVAL_JUDGE_CHECKS_H

#include "eval/judge/run.h"

typedef struct {
    int n;
    char text[VERDICT_MAX_CHECKS][VERDICT_CHECK_TEXT]; /* in order */
    int n_warnings;
    char warnings[VERDICT_MAX_WARNINGS][VERDICT_CHECK_TEXT];
} ChecksPassed;

/* Resolve every launch of every workload that will run, without running it, to find the plan's
 * mistakes first. */
int checks_plan(Loaded *l, const Workload *timed, Finding *f);
int checks_run(Loaded *l, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f,
               Error *err);

/* Launch once more with blocks and warps in another order, where the device can do that. */
int checks_disturbed(Run *r, ChecksPassed *passed, Finding *f, Error *err);
void checks_disturbed_passed(const Run *r, ChecksPassed *passed); /* adds its line */

/* Input number i, of CHECKS_UNSEEN, for a candidate that is faster than its baseline. It is the
 * timed workload at another scale, with needles, special values or integers: in the timed runs the
 * candidate has seen ordinary inputs only. *out is NULL when the task has no such input. */
enum { CHECKS_UNSEEN = 5 };
int checks_unseen(Cases *cases, Task *t, const Workload *timed, uint64_t seed, int i,
                  const Case **out, Error *err);

/* Has the module variables in global memory, which keep their values between launches? */
int checks_has_variables(const Loaded *l);

/* After a wrong result: launch in a freshly loaded module. When that is right, *f becomes
 * stale_result or nondeterministic. Returns 1, or -1. */
int checks_explain_wrong(Run *r, Finding *f, Error *err);

/* Add a line to the checks that were passed; dropped when there are VERDICT_MAX_CHECKS. */
void checks_pass(ChecksPassed *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Add the device's warnings (DeviceOps.warning), as many as fit. */
void checks_warn(ChecksPassed *p, const Loaded *l);

#endif
