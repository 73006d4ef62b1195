/* Which blocks of a launch stand for all: the first and the last, blocks spread over the rest, and
 * neighbours, in pairs that mirror each other. Where the work of a block grows with its place, as in
 * causal attention, a pair has the mean. A grid of at most SAMPLE_BLOCKS runs whole while it is cheap.
 * A sample ends at SAMPLE_ALIKE blocks when their instructions differ little, else at SAMPLE_BLOCKS,
 * and with two blocks or more at SAMPLE_INSTRUCTIONS. Neighbours run one right after the other, and
 * tell which share of its reads of a buffer a block has in common with the next one.
 *
 * Blocks that wait for others cannot be sampled. A launch that executes both atomics and fences
 * counts as such. So does one that fails after it read what no sampled block wrote, and one that
 * exceeds its limit. Its counters are those of the smaller launch times the growth of the work. */
#ifndef EVAL_SIM_SAMPLE_H
#define EVAL_SIM_SAMPLE_H

#include "eval/sim/exec/launch.h"
#include "eval/sim/time/profile.h"

enum { SAMPLE_BLOCKS = 96, SAMPLE_ALIKE = 16, SAMPLE_INSTRUCTIONS = 12000000 };

typedef struct {
    uint64_t blocks; /* of the grid; of clusters, their number, as in all that follows */
    uint32_t grid[3];
    uint64_t cluster; /* blocks of a cluster */
    int n;            /* blocks that have run */
    uint64_t far;     /* of block n from the block before, when both are compared; else 0 */
    uint64_t ids[SAMPLE_BLOCKS];
    uint64_t insts;                           /* thread-instructions of them */
    uint64_t least, largest, atomics, fences; /* thread-instructions of a block; sums */
    SimCounts *done;                          /* SAMPLE_BLOCKS of them */
    const DevMem *mem;
    struct SharedReads *shared; /* one for each allocation of mem */
} Sample;

/* cluster: the blocks of a cluster in each dimension, or 0; clusters are picked as others' blocks are. */
void sample_begin(Sample *s, const DeviceLaunch *l, const uint32_t cluster[3], const DevMem *mem);
void sample_release(Sample *s);
int sample_next(void *sample, const SimCounts *done, uint64_t *block); /* an ExecNext */
/* Sums up with extrapolate.h; at least one block has run. resident: blocks on the whole GPU. */
void sample_finish(const Sample *s, const Profile *p, double resident, SimCounts *out);

/* The bytes that all blocks ask for, as in `out` of sample_finish, over those of the blocks that have run. */
double sample_scale(const Sample *s, const SimCounts *out);

/* What the launches of a sample tell about an output. */
typedef struct {
    int writers, writer; /* launches that wrote to it, and the last of them */
    int atomics;
} SampledOutput;

typedef struct {
    SampledOutput *of; /* n of them */
    int n;
    int guessed;        /* launches were not executed, and may have written any output */
    int complete_until; /* launches before the first that read what no sampled block wrote */
} SampledOutputs;

/* Launch `launch` has run. */
void sampled_outputs_note(SampledOutputs *o, const DeviceSample *s, DevMem *mem, int launch);
/* Sets s->comparable and s->why. Returns 1 when each output is. */
int sampled_outputs_finish(const SampledOutputs *o, DeviceSample *s);

#endif
