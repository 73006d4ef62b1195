/* The blocks of a cooperative launch. All of them are resident together and take turns, so that they can
 * wait for one another. Exec holds one of them, the current one; the others wait here. */
#ifndef EVAL_SIM_MEMORY_COOPERATIVE_H
#define EVAL_SIM_MEMORY_COOPERATIVE_H

#include "eval/sim/memory/block_state.h"
#include "eval/sim/memory/told.h"

typedef struct Cooperative {
    BlockState *blocks;
    uint64_t n, current;
    uint64_t *arrivals; /* of a block's warps at its barriers */
    int quiet;          /* rounds in a row in which all blocks only waited */
    int stopped;        /* the current block has read early */
    /* The bytes of the arena that a block read first before anything was written there. */
    uint64_t lo, hi;
    Fault early;
    ToldWords told;
} Cooperative;

/* Makes x->cooperative for the blocks of the launch, none of which has memory yet. */
void cooperative_prepare(Exec *x);
void cooperative_select(Exec *x, uint64_t block);
/* Frees all blocks but the first, which is the current one again; x->cooperative is NULL. */
void cooperative_release(Exec *x);
/* The current block faults, for it reads these unwritten bytes of the arena. The others go on, since one of
 * them may write there: then it is a race. */
void cooperative_read_early(Exec *x, uint64_t lo, uint64_t hi);
/* After a fault: lets the other blocks go on where one has read early. */
void cooperative_go_on(Exec *x);
/* All blocks have ended, or a fault came. */
void cooperative_end(Exec *x);
/* All blocks have had a turn. busy: one of them did more than wait. Reports a launch that waits for ever. */
void cooperative_round(Exec *x, int busy);

#endif
