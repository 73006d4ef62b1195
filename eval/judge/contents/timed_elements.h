/* Written elements of the outputs of sampled blocks, against the task's graph computed for them alone
 * (tasks/graph/demand.h): whatever their neighbours cost, and wherever in a position of the axis
 * `turns` they lie. Of elements that cost much two are compared, in the contents that all candidates
 * share, and their values are kept. */
#ifndef EVAL_JUDGE_CONTENTS_TIMED_ELEMENTS_H
#define EVAL_JUDGE_CONTENTS_TIMED_ELEMENTS_H

#include "eval/judge/contents/timed_contents.h"
#include "tasks/graph/demand.h"

/* Can the last element of each output be computed? Known after the first call. */
int timed_elements_can(TimedContents *c);

/* Compares written elements of the comparable outputs, and sets *compared to their number: 0 where they
 * cost too much. */
int timed_elements_compare(TimedContents *c, const TimedOutputs *r, int64_t *compared, Fault *f);

/* The reader of the inputs' elements, by which a graph is computed for a few of its results. */
DemandInputs timed_inputs(TimedContents *c);

/* The contents are others now. */
void timed_elements_forget(TimedContents *c);

#endif
