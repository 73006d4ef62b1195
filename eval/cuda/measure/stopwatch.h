/* The clock of a context: events around a launch sequence in its one stream, after shared memory
 * was overwritten and the L2 filled with other, clean lines. All is queued before the first launch
 * starts: while the flush runs, the host is ahead. */
#ifndef EVAL_CUDA_MEASURE_STOPWATCH_H
#define EVAL_CUDA_MEASURE_STOPWATCH_H

#include "eval/cuda/context/executor.h"

int stopwatch_open(Executor *e, Error *err);
/* When a cold launch sequence begins: at `phase` nanoseconds of a period, by the GPU's clock.
 * period 0: when it may. */
typedef struct {
    uint32_t period, phase;
} StallWait;

/* The flush's kernel and the wait's, from the harness's cubin; nothing is timed cold before. */
int stopwatch_arm(Executor *e, const void *cubin, Error *err);
void stopwatch_close(Executor *e);
void stopwatch_forget(Executor *e); /* the captured graphs */

/* 0; 1 with *end filled. */
int stopwatch_clock(Executor *e, const LaunchList *l, ClockMode mode, StallWait wait,
                    DeviceClock *out, LaunchEnd *end);
/* Hardware counters of the sequence, on a cold L2. -1: they cannot be had here, and why. 1 with
 * *end: the sequence failed. */
int stopwatch_counters(Executor *e, const LaunchList *l, DeviceCounter *out, int *n, LaunchEnd *end,
                       Error *err);

#endif
