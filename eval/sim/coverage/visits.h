/* What blocks of a launch have told of their accesses (slice_run.h). Several questions are asked of one
 * launch, as who writes which bytes, then of other contents again: the same slice runs for the same blocks.
 * What a block tells is kept, and what it took, which is charged again: a budget ends where it would. */
#ifndef EVAL_SIM_COVERAGE_VISITS_H
#define EVAL_SIM_COVERAGE_VISITS_H

#include "eval/sim/coverage/slice_run.h"

typedef struct VisitedLaunches VisitedLaunches;
typedef struct VisitedLaunch VisitedLaunch;

VisitedLaunches *visits_new(void);
void visits_free(VisitedLaunches *all); /* or NULL */
/* The launch that is run by the slice, which is added. NULL: it is not kept, as where `all` is NULL. It stays
 * until the next call. split: the grid is to be divided, as it is where that was done before. */
VisitedLaunch *visits_of(VisitedLaunches *all, SliceRun *r, int split);
/* 1: block b has told before, so that *r is as behind slice_run_block, with joined runs. 0: it has not, or
 * what it takes is more than is left. of: or NULL. */
int visits_again(const VisitedLaunch *of, SliceRun *r, uint64_t b);
/* Keeps what block b has told, joined, where there is room. It took that much of the budget. */
void visits_keep(VisitedLaunch *of, const SliceRun *r, uint64_t b, int64_t took);

#endif
