/* A plan whose outputs cannot all be compared at the timed size, such as that of one sum of a whole
 * tensor, may leave out a part of the work there: a last launch that adds up the first thousands of
 * partial sums, or a launch that ends before its input does. What is read at the small workload, and not
 * at the timed one, is left out. */
#ifndef EVAL_JUDGE_TIMED_UNREAD_H
#define EVAL_JUDGE_TIMED_UNREAD_H

#include "eval/judge/judgement.h"
#include "eval/judge/run.h"

/* Finds tensors of which the open run of the timed contents should read a part that it does not read. */
void timed_unread(const Judgement *j, const Run *r, DeviceUnread *out);

/* After the run is closed: 1 where the small workload reads all of one of them, a wrong result; 0; or -1. */
int timed_unread_check(Judgement *j, const DeviceUnread *left);

#endif
