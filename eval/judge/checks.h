/* Correctness: every check workload is launched on inputs of several scales and compared with the
 * reference. The largest one is also launched a second time, which must give the same bytes, then
 * with other inputs at the same addresses and with special values, so that a result that was not
 * computed fails.
 *
 * Functions return 0, 1 or -1 as in eval/device/fault.h. */
#ifndef EVAL_JUDGE_CHECKS_H
#define EVAL_JUDGE_CHECKS_H

#include "eval/judge/judgement.h"

/* Resolve every launch of every workload that will run, without running it, to find the plan's
 * mistakes first. */
int checks_plan(Loaded *l, const Workload *timed, Fault *f);

/* The steps, in their order. step_check leaves the largest workload open for the next two. */
int step_check(Judgement *j);
int step_repeat(Judgement *j);
int step_variants(Judgement *j);
int step_check_rest(Judgement *j);
/* All four. */
int checks_run(Judgement *j);

/* The factors of inputs, which checks take in turn. */
enum { CHECKS_SCALES = 3 };
extern const double checks_scales[CHECKS_SCALES];

/* Launch the open run and compare. A wrong result is explained as checks_explain_wrong does. */
int checks_once(Run *r, Fault *f);

/* Launch once more with blocks and warps in another order, where the device can do that. */
int checks_disturbed(Judgement *j, Run *r);

/* Input number i, of CHECKS_UNSEEN, for a candidate that is faster than its baseline. It is the
 * workload w at another scale, with needles, special values or integers: in the timed runs the
 * candidate has seen ordinary inputs only. *out is NULL when the task has no such input. */
enum { CHECKS_UNSEEN = 6 };
int checks_unseen(Judgement *j, const Workload *w, uint64_t seed, int i, const Case **out);

/* Has the module variables in global memory, which keep their values between launches? */
int checks_has_variables(const Loaded *l);

/* After a wrong result: launch in a freshly loaded module. When that is right, *f becomes
 * stale_result or nondeterministic. Returns 1, or -1. */
int checks_explain_wrong(Run *r, Fault *f);

/* Add the device's warnings (DevicePrediction.warning), as many as fit. */
void checks_warn(Judgement *j);

#endif
