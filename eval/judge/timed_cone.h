/* Parts of the outputs of the timed size that the sampled blocks of a plan do not make complete: neighbouring
 * elements of a graph's outputs, rows of a reference.c's. Their cone (DevicePrediction.cone) runs, from the
 * parts back to the inputs. */
#ifndef EVAL_JUDGE_TIMED_CONE_H
#define EVAL_JUDGE_TIMED_CONE_H

#include "eval/judge/judgement.h"

/* After a sample of the run r of the contents that all candidates share. comparable: by output; those that
 * are 0 are completed, and become the only ones with 1. wins: it may take longer. *why: "" where they are
 * complete, else why they are not. Returns 0, 1 or -1 as in eval/device/fault.h. */
int timed_cone(Judgement *j, Run *r, int wins, unsigned char *comparable, char why[128]);

#endif
