/* Which blocks of a launch do the same, without running them: the slice of the kernel's branches runs for a
 * block, and tells in which other blocks each branch goes the same way (coverage.h). Blocks whose warps run
 * each part of the code equally often are of one kind.
 *
 * A branch that memory decides is passed over, and its loop counts as run once: what it costs shows in the
 * blocks that run. */
#ifndef EVAL_SIM_COVERAGE_CENSUS_H
#define EVAL_SIM_COVERAGE_CENSUS_H

#include "eval/device/device.h"
#include "eval/sim/ptx/ptx.h"

typedef struct {
    uint64_t blocks; /* known ones */
    uint64_t drawn;  /* of the blocks that ran; which ones, the seed decides. Of clusters: all */
    double cost;     /* warp-instructions of one */
    double path;     /* of it, those behind one another, about */
    uint64_t opens;  /* a digest of the branches that it runs and memory decides */
    uint64_t digest; /* of what its warps run */
} CensusKind;

typedef struct {
    int n;
    CensusKind *kinds;
    uint64_t blocks;  /* or clusters */
    uint16_t *of;     /* by block: 1 + its kind; 0: not known */
    uint64_t known;   /* blocks that have a kind */
    int open;         /* memory decides a branch */
    uint8_t *open_at; /* by block of code: it ends in such a branch */
    int settled; /* all blocks have run the part of the kernel that decides such branches (trips.h) */
} Census;

typedef struct {
    int64_t budget; /* as in coverage_find; takes what is left of it */
    uint64_t seed;
} CensusLimit;

/* Counts blocks by kind; in a launch of clusters, clusters. Blocks have no kind when the budget ends before
 * them, or when their branches cannot be told. */
void census_take(const PtxModule *m, const PtxFunction *f, const DeviceLaunch *l,
                 CensusLimit *limit, Census *out);
void census_release(Census *c);
/* A stride that comes to each of n places once, modulo n (1 or more), in an order that spreads over them. */
uint64_t census_stride(uint64_t n);
/* The kind of a block, or -1. */
int census_kind(const Census *c, uint64_t block);

#endif
