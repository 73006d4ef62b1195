/* The counters of a whole launch from those of a sample of its blocks, each run alone. Numbers that are
 * the largest of a block stay the largest of the sample. */
#ifndef EVAL_SIM_TIME_EXTRAPOLATE_H
#define EVAL_SIM_TIME_EXTRAPOLATE_H

#include "eval/sim/machine/counts.h"
#include "eval/sim/time/profile.h"

/* done[i] are the counts of block i of the sample, which stands for weights[i] blocks. */
void extrapolate_blocks(const SimCounts *done, const double *weights, int n, SimCounts *out);
/* Block `last` is behind the n others, and its time is added to theirs: it is not the heaviest of them. */
void extrapolate_behind(const SimCounts *done, int n, SimCounts *last);
/* The launch has one block that takes so many times longer than the heaviest of the sample. */
void extrapolate_heaviest(double factor, SimCounts *c);

/* The share of `bytes` that a second pass over them finds in L2, which replaces at random: of what it misses,
 * each takes the place of another one. The root below 1 of h = exp(-(1 - h) ratio). */
double extrapolate_kept(const Profile *p, double bytes);

/* Distinct sectors of one buffer, summed over the blocks of the sample. */
typedef struct {
    double read, written, size;
    double shared[2]; /* the share of its reads that a block has in common with the next one, and
                         with the one `apart` from it */
    double apart;
    double common,
        common_read; /* sectors of its parts that many blocks read, and of `read` those in them */
    double waits;    /* of warps for what their block read of it for the first time */
    int atomics;     /* are there any in the sample? */
} BufferTraffic;

/* Sets what reaches DRAM, and the footprints. A buffer that blocks share counts once where the
 * launch's footprint fits L2, else once for each wave of `resident` blocks. Blocks that are no
 * neighbours are taken to read different parts of a buffer. */
void extrapolate_traffic(const Profile *p, const BufferTraffic *buffers, int n, double resident,
                         SimCounts *c);

/* The counts of a launch of the same kernel with `growth` times the work, on another grid. */
void extrapolate_growth(const SimCounts *small, double growth, const uint32_t grid[3],
                        SimCounts *out);

/* Blocks of the launch wait in a way that no sample follows: each may wait for the one before. */
void extrapolate_chain(SimCounts *c);

#endif
