/* A plan whose outputs cannot all be compared at the timed size may read all of its inputs there and leave a
 * part of them out of its sums: from the millionth element on, from the second strip, from the hundredth
 * partial sum. Other values of such an element change nothing of what the block writes that reads it. */
#ifndef EVAL_JUDGE_TIMED_IDLE_H
#define EVAL_JUDGE_TIMED_IDLE_H

#include "eval/judge/judgement.h"
#include "eval/judge/run.h"

/* Looks at the open run of the timed contents, and overwrites its memory. wins: the look may take longer. */
void timed_idle(const Judgement *j, const Run *r, int wins, DeviceIdle *out);

/* After the run is closed: 1 where the small workload uses all of a tensor of which a part is idle, a wrong
 * result; 0; or -1. */
int timed_idle_check(Judgement *j, const DeviceIdle *timed);

#endif
