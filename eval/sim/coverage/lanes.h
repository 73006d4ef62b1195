/* Values of all threads of a block, and how they change from block to block.
 *
 * A value of block b is v + d[0] x + d[1] y + ... in the block that lies x, y, ... further in the grid,
 * modulo 2^bits, wherever (x, y, ...) is in a box around b (box.h). So what one block does tells what all
 * blocks of the box do. */
#ifndef EVAL_SIM_COVERAGE_LANES_H
#define EVAL_SIM_COVERAGE_LANES_H

#include "eval/sim/coverage/box.h"
#include "eval/sim/coverage/slice.h"

enum { LANES_MAX = 1024 };

typedef struct {
    int known;   /* 0: in no lane */
    int set;     /* since the block began */
    int uniform; /* v[0] is every lane's */
    int64_t d[BOX_DIMS];
    uint64_t *v;
} Lanes;

/* Lanes that take part: a byte each. */
typedef struct {
    int n;   /* lanes of the block */
    int all; /* each lane that has not exited takes part */
    const uint8_t *on;
} LaneMask;

/* Computes an instruction with an OP_* of numbers: from[i] are its sources. The result is in *out, whose v
 * has room for LANES_MAX. Returns -1 where it is unknown. */
int lanes_compute(const SliceInst *in, const Lanes *from, const LaneMask *m, Box *box, Lanes *out);
/* As above: *to is from the lanes of m what `v` is, and what it was in others. */
void lanes_put(Lanes *to, const Lanes *v, const LaneMask *m, Box *box);
/* The quotient and the remainder by a constant, of values without a sign. */
void lanes_divide(Lanes *v, uint64_t by, int remainder, const LaneMask *m, Box *box);
/* The values do not change from block to block: the box shrinks to where they do not. */
void lanes_pin(Lanes *v, Box *box);

#endif
