/* What blocks that run together, of a cooperative launch or of a cluster, tell one another by words of
 * global memory: the path of one that looks at a word is behind those that have told something there. Where
 * all blocks meet at a word, as at a barrier, a phase ends when each block has told something. */
#ifndef EVAL_SIM_MEMORY_TOLD_H
#define EVAL_SIM_MEMORY_TOLD_H

#include "eval/sim/machine/exec.h"

typedef struct {
    uint64_t word;  /* 1 + its index; 0: free */
    uint8_t *of;    /* by block, what it has done (told.c); NULL: too many words have one */
    uint64_t count; /* blocks that have told in the phase under way */
    uint64_t phases;
    WarpPath arriving, ended; /* of the phase under way, and of the last one */
} ToldWord;

/* A word that a weak store has set, as before a fence. It displaces that of another word. */
typedef struct {
    uint64_t word; /* 1 + its index; 0: none */
    WarpPath path;
} PlainWord;

enum { PLAIN_WORDS = 256 };

typedef struct ToldWords {
    ToldWord *words; /* a hash table; NULL: nobody has told anything */
    size_t n, cap;
    int n_phased;             /* words with an array of the blocks */
    PlainWord *plain;         /* PLAIN_WORDS; NULL: there are none */
    uint64_t blocks, current; /* current: the running one */
} ToldWords;

/* Nobody has told anything yet. The running block stays. */
void told_begin(ToldWords *c, uint64_t blocks);
void told_release(ToldWords *c);
/* A warp of the current block tells others something by a word, or hears it. looked: the block has looked at
 * that word last. */
void told_tell(ToldWords *c, uint64_t word, const WarpPath *path, int looked);
/* The same by a store that is weak. */
void told_tell_plainly(ToldWords *c, uint64_t word, const WarpPath *path);
void told_hear(ToldWords *c, Warp *w, uint64_t word, int looked);

#endif
