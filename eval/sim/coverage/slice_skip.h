/* Trips of a loop that are not run, since they do what the ones before did. At the head of a loop, where
 * each value has changed by the same amount in two trips one after the other, and no comparison within the
 * loop comes out another way for some trips, the values go on by as many trips at once. So a loop takes a
 * few trips for each change of what it does. */
#ifndef EVAL_SIM_COVERAGE_SLICE_SKIP_H
#define EVAL_SIM_COVERAGE_SLICE_SKIP_H

#include "eval/sim/coverage/slice_run.h"

/* The lanes `on` have jumped back from block `end` to block `head`. */
void slice_skip(SliceRun *r, int head, int end, const uint8_t *on);
/* The loop begins anew. */
void slice_skip_begin(SliceRun *r, int head);
void slice_skip_release(SliceRun *r);

#endif
