/* Checks at sizes that the evaluator's seed draws (contents/drawn_sizes.h). The sizes are wide enough for
 * the candidate: along each axis its grid has three blocks or more, and the loops of a block that
 * holds a whole row have three trips. Candidates with equal needs share cases. */
#ifndef EVAL_JUDGE_WIDE_CHECKS_H
#define EVAL_JUDGE_WIDE_CHECKS_H

#include "eval/judge/judgement.h"

/* The step. A size that takes too long, that the candidate's op lines do not have, or whose reference is not
 * finite is left out: it blames nobody. */
int step_wide(Judgement *j);

#endif
