/* Work that the launches of a plan leave out at the timed size, compared with what they did at the small one.
 * A source could leave out what no comparison of outputs sees, such as most terms of a sum that is
 * only estimated. */
#ifndef EVAL_SIM_MISSING_H
#define EVAL_SIM_MISSING_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"
#include "eval/sim/machine/device_memory.h"

/* What a launch does to each buffer, noted after it. Sums over all blocks. */
typedef struct {
    char label[64]; /* of Alloc: the same at every workload */
    double size;    /* bytes of the buffer */
    double asked;   /* bytes that the threads load and store, once for each request */
    double touched; /* bytes of the sectors that the launch, or each block, reads and writes */
    int scratch;    /* it is no tensor of the task */
} BufferUse;

typedef struct {
    int n;
    BufferUse *of;
    /* The launch counts as one of the small size, grown: of its buffers only the size is known. */
    int scaled;
} LaunchUses;

/* Of every buffer, by the launch that has just run; a module's variables count as one. scale: what all
 * blocks of the launch ask for, over what the executed ones did. */
void uses_note(LaunchUses *u, const DevMem *mem, double scale);
/* Releases those of n launches, and the list. */
void uses_release(LaunchUses *list, int n);

/* What n launches did, in order. Library calls have no uses. */
typedef struct {
    int n;
    SimCounts *counts;
    LaunchUses *uses;
} SequenceWork;

SequenceWork work_new(int n);
void work_release(SequenceWork *w);

/* The index of the last small launch that has the same kernel, or the same op line, whose kernels depend on
 * the sizes: that with the index `at` where it is one. -1: there is none. */
int missing_find(const SequenceWork *small, const DeviceLaunch *l, int at);

/* How many times more than they do would the own launches of a plan do together, had their work grown from
 * the small size on as the task's (s). 1: they do enough.
 * bytes: takes, by launch, the bytes that the plan's own kernels leave out, where every tensor is larger.
 * What all launches of a kernel leave out is at its first one. */
double missing_work(const SequenceWork *small, const SequenceWork *now,
                    const DeviceLaunch *launches, const DeviceSample *s, double *bytes);

/* As missing_work, where outputs are compared: how many times more would the launches do, had they done a
 * part of what the task needs. Work that a plan left out at the small size, too, is not missing.
 * open: memory decides what blocks do, so that a sample may miss the heavy ones. */
double missing_compared(const SequenceWork *small, const SequenceWork *now,
                        const DeviceLaunch *launches, const DeviceSample *s, int open);

#endif
