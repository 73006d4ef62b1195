/* The blocks of a cluster, which are resident together and reach each other's shared memory.
 *
 * Exec holds one block, the current one; the others wait here, and cluster_select changes places. A
 * block that reaches into another one is the actor: cluster_enter makes the other block the current one
 * for the access, so that all checks see its memory, and cluster_leave goes back.
 *
 * An address in a cluster's shared memory has the rank plus 1 from bit CLUSTER_SHIFT on; 0 there means the
 * block itself.
 *
 * Each block has a clock, and knows the clocks of the others up to which it has seen what they did: by a
 * barrier of the cluster, an mbarrier, or a fence with an access that finds it. An access to a word
 * that another block has accessed after that is a race, if one of them writes (cluster_shadow.c). */
#ifndef EVAL_SIM_MEMORY_CLUSTER_H
#define EVAL_SIM_MEMORY_CLUSTER_H

#include "eval/sim/memory/block_state.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/told.h"

enum {
    CLUSTER_MAX = 8, /* blocks; more are not portable */
    CLUSTER_SHIFT = 24,
    CLUSTER_OFFSET = (1 << CLUSTER_SHIFT) - 1
};

/* What the blocks that signal an mbarrier have seen. */
typedef struct {
    uint32_t at; /* offset of the mbarrier */
    uint32_t seen[CLUSTER_MAX];
} ClusterSignal;

typedef struct {
    BlockState state;

    uint32_t clock, seen[CLUSTER_MAX]; /* seen: of the other blocks' clocks */
    uint32_t touched[CLUSTER_MAX]; /* their clocks when they last accessed this block's memory */
    int has_met, has_exited;       /* has_met: it has passed a barrier of the cluster */
    int is_relaxed;                /* no arrival of this phase releases anything */
    /* Lanes that have arrived at the barrier of the cluster, by warp: in this phase, and in the one
     * before, for which they have not waited yet. */
    uint32_t arrived[MAX_WARPS], passed[MAX_WARPS];
    uint64_t charged[MAX_WARPS]; /* the instructions of the warp when it last waited for a block */
    uint32_t owing; /* warps whose stores to other blocks nobody has waited for, a bit each */
    uint64_t stored
        [MAX_WARPS];   /* where the last far access of the warp stored to; 0: it did not store */
    uint64_t arrivals; /* of its warps at barriers */
    uint32_t *marks;   /* by word of its shared memory (cluster_shadow.c) */
    size_t n_marks;
    ClusterSignal *signals;
    int n_signals, cap_signals;
} ClusterBlock;

typedef struct Cluster {
    int n, current, actor;        /* ranks */
    uint32_t of[3];               /* blocks in each dimension */
    uint32_t live;                /* threads */
    uint32_t arrived;             /* threads at the barrier of the cluster */
    uint32_t base;                /* all clocks when the cluster began */
    uint32_t joined[CLUSTER_MAX]; /* what all have seen who met at the last barrier */
    uint32_t met[CLUSTER_MAX];    /* their clocks at the last barrier */
    WarpPath arriving, passed;    /* of the warps that arrive, and of those that met last */
    ToldWords told;
    uint32_t published[CLUSTER_MAX]; /* what all have seen who executed a fence */
    ClusterBlock blocks[CLUSTER_MAX];
} Cluster;

/* ---- cluster.c ---- */

/* Prepares x->cluster for clusters of this size; NULL for blocks that are alone. */
void cluster_prepare(Exec *x, const uint32_t of[3]);
void cluster_unload(Exec *x);  /* block 0 is the current one again, and x->cluster NULL */
void cluster_release(Exec *x); /* frees all but block 0 */
void cluster_select(Exec *x, int rank);
/* All blocks have started. */
void cluster_start(Exec *x);
/* The number of a block in the grid. */
uint64_t cluster_block(const Exec *x, uint64_t cluster, int rank);
int cluster_has(const Exec *x, uint64_t block); /* is it in the running block's cluster? */
/* The block of an address that is relative to the window of shared memory; -1: there is none. */
int cluster_rank(const Cluster *k, uint64_t at);
/* The current block is the actor's. Returns 0, or -1 with a fault of this lane. */
int cluster_enter(Warp *w, const Inst *in, int lane, int rank);
void cluster_leave(Exec *x);
/* Bytes that are stored in another block. */
void cluster_count_store(Exec *x, uint64_t bytes);
/* The warp waits until its stores have reached the other blocks. */
void cluster_await_stores(Warp *w);
/* Runs an access to shared memory in the block that its addresses name. Returns as `once`, or 1: the lanes
 * must be taken one by one. */
int cluster_access(Warp *w, Access *a, int (*once)(Warp *, Access *));

/* ---- cluster_shadow.c ---- */

/* The kinds of marks. Atomics are ordered among themselves. */
typedef enum { CLUSTER_WRITES, CLUSTER_READS, CLUSTER_ATOMIC, CLUSTER_USES } ClusterUse;

/* Checks an access of the actor to the current block's memory against those of other blocks, and marks
 * it. changed: of a store. Returns -1 with a fault, else 1 when the actor is another block. */
int cluster_note(Warp *w, const Access *a, ClusterUse use, AccessChanged *changed);
/* Notes a read of the actor, which is in its own block, by a product. Returns 0, or -1 with a fault. */
int cluster_note_product(Warp *w, const Inst *in, uint32_t at, uint32_t bytes);
/* Another block reads this block's memory until the other one is known to have gone on. */
void cluster_lend(Exec *x, uint64_t at, uint32_t bytes, int rank);
/* The last threads of the current block are about to exit. Returns 0, or -1 with a fault. */
int cluster_check_exit(Warp *w, const Inst *in);
/* What the actor has done and seen becomes known to who acquires it. */
void cluster_give(Cluster *k, uint32_t *seen);
void cluster_take(Cluster *k, const uint32_t *seen);
void cluster_signal(Exec *x, uint32_t at); /* to an mbarrier of the current block */
void cluster_await(Exec *x, uint32_t at);

#endif
