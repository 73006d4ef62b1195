/* Which blocks of a launch stand for all. A census (coverage/census.h) finds kinds of blocks that run the
 * same instructions; each kind with a share of the work has a drawn block in the sample, small kinds that
 * matter together have eight, and the largest kind has two. Further blocks are spread over the grid from a
 * drawn place on, in pairs that mirror each other: where the work of a block grows with its place, a pair has
 * the mean. Neighbours run one right after the other, and tell which share of its reads of a buffer a block
 * has in common with the next one.
 *
 * A grid of at most SAMPLE_BLOCKS runs whole while it is cheap. Else a sample ends at SAMPLE_ALIKE blocks
 * where the interval of the total is narrow, with dear blocks at SAMPLE_INSTRUCTIONS where it is, and at
 * SAMPLE_BLOCKS. Where the census does not know what each block does, at SAMPLE_LEAST at the earliest.
 *
 * Blocks that wait for earlier ones run in order, from the first on. Behind those that the sample counts
 * others run, whose delays alone are noted, and up to where a kind begins that none is of: a chain may begin
 * there. Two blocks far behind run alone beforehand (sample_order.h): one that waits in vain tells that
 * another chain may begin. Where each block draws a number from a counter, one more block draws the last one,
 * behind the others.
 *
 * A block counts for those of its kind that did not run. A kind of which none ran has the counts of the kinds
 * with the nearest cost, in proportion to the cost; a small one, of small ones. */
#ifndef EVAL_SIM_SAMPLE_H
#define EVAL_SIM_SAMPLE_H

#include "eval/sim/coverage/census.h"
#include "eval/sim/exec/launch.h"
#include "eval/sim/time/profile.h"

enum {
    SAMPLE_BLOCKS = 96,
    SAMPLE_LEADS = 60,
    SAMPLE_ALIKE = 16,
    SAMPLE_LEAST = 8,
    SAMPLE_INSTRUCTIONS = 12000000,
    MOST_INSTRUCTIONS = 20 * SAMPLE_INSTRUCTIONS,
    DEAR_CLUSTER = 100000000, /* of one kind, one is enough: it is several blocks */
    DEAR_BLOCK = 64
};

typedef struct {
    uint64_t blocks; /* of the grid; of clusters, their number, as in all that follows */
    uint32_t grid[3];
    uint64_t cluster, seed; /* cluster: blocks of one */
    const Census *census;
    Exec *exec;
    int stuck;      /* a block waits for one that has not run */
    int is_limited; /* the limit is no sign of a loop without an end */
    int too_dear;   /* blocks that must still run surely take more than is left */
    int64_t begun,
        least;          /* what was left when the last block began; what a block took, the least */
    struct MemOp *vain; /* by which block `must` has waited in vain; NULL: it is not known */
    int in_order,
        closing; /* closing: of ids, the block that finds that all others have ended; 0: none has */
    int n_lead, n_least; /* blocks that run first; those of them that must */
    uint64_t leads[SAMPLE_LEADS];
    int n;        /* blocks that have run */
    uint64_t far; /* of block n from the block before, when both are compared; else 0 */
    uint64_t ids[SAMPLE_BLOCKS];
    uint64_t insts;           /* thread-instructions of them */
    uint64_t atomics, fences; /* sums */
    double near_lines; /* the share of its lines of atomics that a block shares with the next one */
    SimCounts *done;   /* SAMPLE_BLOCKS of them */
    const DevMem *mem;
    struct SharedReads *shared; /* one for each allocation of mem */

    /* of blocks in order */
    uint64_t *delays; /* by block: of those that ran */
    uint64_t must, ran, part,
        until; /* blocks that ran; of these, the first of the last part; its end */
    int parts; /* that have begun behind the counted blocks */
    double passed,
        passed_bytes; /* thread-instructions, and bytes, of blocks that are not counted */
} Sample;

/* All are borrowed. cluster: the blocks of a cluster in each dimension, or 0; clusters are picked as others'
 * blocks are. */
typedef struct {
    const DeviceLaunch *launch;
    const uint32_t *cluster;
    const DevMem *mem;
    const Census *census;
    uint64_t seed;
    Exec *exec;         /* that runs the blocks */
    int in_order;       /* from the first block on */
    struct MemOp *vain; /* of a block that waited in vain; NULL: it is not known */
    uint64_t must;      /* that block: the order comes to it */
} SampleOf;

void sample_begin(Sample *s, const SampleOf *of);
void sample_release(Sample *s);
int sample_next(void *sample, const SimCounts *done, uint64_t *block); /* an ExecNext */
/* Sums up with extrapolate.h; at least one block has run. resident: blocks on the whole GPU. */
void sample_finish(const Sample *s, const Profile *p, double resident, SimCounts *out);
/* Half the 95% interval of the time that all blocks take together, as a share of it, from how blocks of one
 * kind differ. */
double sample_interval(const Sample *s);

/* Warp-instructions of the blocks that must run, as far as the census tells. */
double sample_least_work(const Sample *s);

/* Does the census leave it open what some blocks do? */
int sample_is_open(const Sample *s);

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
