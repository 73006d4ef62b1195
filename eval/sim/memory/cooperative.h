/* The blocks of a cooperative launch. All of them are resident together and take turns, so that they can
 * wait for one another. Exec holds one of them, the current one; the others wait here. */
#ifndef EVAL_SIM_MEMORY_COOPERATIVE_H
#define EVAL_SIM_MEMORY_COOPERATIVE_H

#include "eval/sim/memory/block_state.h"

/* What blocks have told one another by a word. Where all of them meet there, as at a barrier, a phase ends
 * when each block has told something. */
typedef struct {
    uint64_t word;  /* 1 + its index; 0: free */
    uint8_t *of;    /* by block: COOPERATIVE_*; NULL: too many words have one */
    uint64_t count; /* blocks that have told in the phase under way */
    uint64_t phases;
    WarpPath arriving, ended; /* of the phase under way, and of the last one */
} ToldWord;

typedef struct Cooperative {
    BlockState *blocks;
    uint64_t n, current;
    uint64_t *arrivals; /* of a block's warps at its barriers */
    int quiet;          /* rounds in a row in which all blocks only waited */
    int stopped;        /* the current block has read early */
    /* The bytes of the arena that a block read first before anything was written there. */
    uint64_t lo, hi;
    Fault early;
    ToldWord *told; /* a hash table; NULL: nobody has told anything */
    size_t n_told, cap_told;
    int n_phased; /* words with an array of the blocks */
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
/* A warp of the current block tells others something by a word, or hears it. looked: the block has looked at
 * that word last. */
void cooperative_tell(Exec *x, uint64_t word, const WarpPath *path, int looked);
void cooperative_hear(Warp *w, uint64_t word, int looked);
/* All blocks have ended, or a fault came. */
void cooperative_end(Exec *x);
/* All blocks have had a turn. busy: one of them did more than wait. Reports a launch that waits for ever. */
void cooperative_round(Exec *x, int busy);

#endif
