/* The baseline of a task at one of its timed workloads, which defines speedup 1.0. It is prepared at the
 * task's first candidate and kept. It is what an eager framework launches: baseline_cuda.cu where the task
 * has it, else baseline.cu. On a device that predicts times it is timed once. On a GPU it stays loaded in
 * the trusted process to be timed in pairs with every candidate. */
#ifndef EVAL_JUDGE_BASELINE_H
#define EVAL_JUDGE_BASELINE_H

#include "eval/judge/judgement.h"

struct Baseline {
    Baseline *next; /* of the same task at another workload; NULL: the last one */
    Judgement own;  /* of its source; its code stays loaded on a device with a clock */
    int rehearsed;  /* of own sizes: a timing has room (paired_rehearse) */
    double us;      /* the predicted time, equal in every run */
    int n_counters;
    DeviceCounter counters[DEVICE_MAX_COUNTERS];
};

/* Set j->baseline to that of j's task and workload, prepared. Returns -1 when the baseline itself fails,
 * which is never the candidate's fault. */
int baseline_need(Judgement *j);
void baselines_free(Baseline *b); /* and all behind it; NULL is allowed */

#endif
