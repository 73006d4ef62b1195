/* The module's own sizes (Task.own) as a device that measures can time them. Tens of GiB of contents are
 * neither drawn nor computed in double precision: those of fewer positions along one axis are, and repeat
 * along it. The axis is the first dimension of some tensors, and in no other one; repeated inputs give
 * repeated outputs, or, where an output has no such dimension, the same (a mean over all rows).
 *
 * The tolerance is the timed workload's, which honest kernels' errors gave, by as much as the longest sum is
 * longer, since the error of a running sum grows with its terms, and by what the largest error of more
 * elements is larger. */
#ifndef EVAL_JUDGE_CONTENTS_OWN_SIZES_H
#define EVAL_JUDGE_CONTENTS_OWN_SIZES_H

#include "eval/device/device.h"
#include "tasks/task.h"

typedef struct {
    int axis;      /* along which contents repeat; -1: they are drawn whole */
    Workload part; /* what is drawn */
    double grown;  /* the tolerances are so many times those of the timed workload */
    double drawn;  /* bytes of its inputs, and of its outputs in double precision */
    double wide;   /* bytes of all its tensors in double precision */
    /* At the own sizes: bytes of inputs and outputs, and of what the baseline has between them; elements of
     * the largest result. */
    double tensors, between, largest;
} OwnSizes;

/* Repeated positions take at most so many bytes, as those of a derived timed workload (DERIVE_TIME_BYTES). */
#define OWN_PART_BYTES (1.75 * (1 << 30))

/* t has own sizes and a graph. -1: these cannot be bound. That contents repeat is tried once, with the
 * reference of a check workload. */
int own_sizes_find(Task *t, OwnSizes *out);
/* Has a GPU of the device's class room for two draws of the contents and one more, for the reference, and for
 * a run beside another side's buffers? That does not depend on what others use of its memory. */
int own_sizes_fit(const OwnSizes *s, const DeviceInfo *d);
/* Has this device, as it was opened? */
int own_sizes_fit_now(const OwnSizes *s, const DeviceInfo *d);
/* Does the tensor's first dimension repeat? */
int own_sizes_repeat(const Task *t, int axis, const TaskTensor *x);

#endif
