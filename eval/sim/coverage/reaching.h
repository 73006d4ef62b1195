/* Which blocks of a launch reach some bytes, without running the launch. */
#ifndef EVAL_SIM_COVERAGE_REACHING_H
#define EVAL_SIM_COVERAGE_REACHING_H

#include "eval/sim/coverage/coverage.h"
#include "eval/sim/machine/ranges.h"

/* Blocks of a grid, each once. */
typedef struct {
    uint64_t *id; /* linear, in the order in which they were added */
    int64_t n, cap;
    uint64_t blocks; /* of the grid */
    uint64_t *has;   /* a bit for each block of the grid */
    size_t words;    /* of has */
} BlockSet;

void block_set_release(BlockSet *s);
int block_set_add(BlockSet *s, uint64_t id); /* 0: it was there */
int block_set_has(const BlockSet *s, uint64_t id);

/* Adds the blocks whose accesses meet the joined bytes, at most `most` of them. Where looking at all blocks
 * takes too much, and the kernel has plain stores alone, blocks are enough that store all of the bytes: no
 * other one changes them. Returns 0; -1: they are not known, and out->why says why. */
int coverage_reaching(const CoverageOf *of, const Ranges *bytes, int64_t most, int64_t *budget,
                      BlockSet *to, Coverage *out);

#endif
