/* Parts of the outputs of the timed size that the sampled blocks of a plan do not make complete: neighbouring
 * elements of a graph's outputs, rows of a reference.c's. Their cone (DevicePrediction.cone) runs, from the
 * parts back to the inputs. */
#ifndef EVAL_JUDGE_TIMED_CONE_H
#define EVAL_JUDGE_TIMED_CONE_H

#include "eval/judge/judgement.h"

/* outputs: by output, 1 where it is to be completed. wins: it may take longer. */
typedef struct {
    Judgement *j;
    Run *r; /* it was sampled, with the contents that all candidates share */
    unsigned char outputs[TASK_MAX_TENSORS];
    int wins;
    int is_known; /* the outputs' parts are complete now */
    int more;     /* so many parts of each output may be looked at behind the first ones; 1: none */
    char why[128]; /* not empty: why no part was complete */
} TimedCone;

/* The first part of each output. Returns 0, 1 or -1 as in eval/device/fault.h. */
int timed_cone(TimedCone *c);
/* More parts of each, those among them. kept: the first ones were compared; else they are completed again
 * where these take too much. */
int timed_cone_more(TimedCone *c, int kept);

#endif
