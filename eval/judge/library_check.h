/* Libraries beside which other candidates have run are as good as those of the baseline. */
#ifndef EVAL_JUDGE_LIBRARY_CHECK_H
#define EVAL_JUDGE_LIBRARY_CHECK_H

#include "eval/judge/judgement.h"

/* Run the baseline in the candidate's process of libraries, with the tensors and buffers of its own open run.
 * The timing lock is held. Returns 0; or -1 where it is wrong there, or takes longer than `us`, its time in
 * its own process: the candidate is judged again in a process of its own then. */
int library_check(Judgement *j, const Run *baseline, double us);

#endif
