/* Blocks behind a sample that go ways which it does not go (coverage/ways.h). Their time does not count. What
 * they write is compared as what the sample wrote. */
#ifndef EVAL_SIM_SAMPLE_WAYS_H
#define EVAL_SIM_SAMPLE_WAYS_H

#include "eval/device/device.h"
#include "eval/sim/sample.h"
#include "eval/sim/sim_launches.h"

/* The blocks of a launch that have run. */
typedef struct {
    int n; /* 0: no others run */
    uint64_t ids[SAMPLE_BLOCKS], insts;
} WaysRan;

/* Notes a sample that has ended; none where other blocks would tell nothing, or disturb what these have
 * done: where the grid ran whole, in clusters or in order, or adds by atomics. */
void sample_ways_note(const Sample *s, const DeviceLaunch *l, WaysRan *out);
/* Runs the others; where few positions of the output are compared, beside the last one. Returns 0; 1 with a
 * fault of the candidate; 2 where a block took too long, so that what was written is not complete. */
int sample_ways_run(Device *d, const DeviceLaunch *l, const WaysRan *ran, const DeviceSample *s,
                    Fault *fault);

#endif
