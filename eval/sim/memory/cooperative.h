/* The blocks of a cooperative launch. All of them are resident together and take turns, so that they can
 * wait for one another. Exec holds one of them, the current one; the others wait here. */
#ifndef EVAL_SIM_MEMORY_COOPERATIVE_H
#define EVAL_SIM_MEMORY_COOPERATIVE_H

#include "eval/sim/memory/block_state.h"

/* What all blocks meet at, by atomics on one line: a phase ends when each block has had one there. */
enum { MEETINGS = 8 };
typedef struct {
    uint64_t line;  /* 0: none yet */
    uint8_t *has;   /* by block: it has arrived */
    uint64_t count; /* of these */
    WarpPath arriving, ended;
} Meeting;

typedef struct Cooperative {
    BlockState *blocks;
    uint64_t n, current;
    uint64_t *arrivals; /* of a block's warps at its barriers */
    int quiet;          /* rounds in a row in which all blocks only waited */
    int stopped;        /* the current block has read early */
    /* The bytes of the arena that a block read first before anything was written there. */
    uint64_t lo, hi;
    Fault early;
    Meeting meetings[MEETINGS]; /* by line; of lines that share a place, the first */
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
/* A warp of the current block has arrived at a line. What waits there takes the path of the last phase. */
void cooperative_arrive(Exec *x, uint64_t line, const WarpPath *path);
const WarpPath *cooperative_ended(const Exec *x, uint64_t line);
/* All blocks have ended, or a fault came. */
void cooperative_end(Exec *x);
/* All blocks have had a turn. busy: one of them did more than wait. Reports a launch that waits for ever. */
void cooperative_round(Exec *x, int busy);

#endif
