/* Libraries beside which other candidates have run are as good as those of the baseline. Returns 0, 1 or -1
 * as in eval/device/fault.h. */
#ifndef EVAL_JUDGE_LIBRARIES_STEP_H
#define EVAL_JUDGE_LIBRARIES_STEP_H

#include "eval/judge/judgement.h"

/* The step, of a candidate whose process of libraries others have used: the baseline runs there, too. Where
 * it is wrong or takes longer than in its own process, the evaluator fails here, and the candidate is judged
 * again in a process of its own. */
int step_libraries(Judgement *j);

#endif
