/* The running machine: one launch, its current block, and faults. */
#ifndef EVAL_SIM_MACHINE_EXEC_H
#define EVAL_SIM_MACHINE_EXEC_H

#include "eval/device/device.h"
#include "eval/sim/machine/device_memory.h"
#include "eval/sim/machine/memory_op.h"
#include "eval/sim/machine/warp.h"

enum {
    DOUBTED = 1,
    DOUBTED_UNWRITTEN = 2, /* in shared or local memory: stored, or a part of what has a value */
    DOUBTED_USED = 4       /* the same, in arithmetic */
};
enum { SCHEDULERS = 4 }; /* warp i runs on scheduler i % 4 */
enum { MAX_WARPS = 32, RESERVED_SHARED = 1024 };
/* The barriers that have an index in a program, and the one of a cluster. */
enum { NAMED_BARRIERS = 16, CLUSTER_BARRIER = 16, MAX_BARRIERS = 17 };

/* A barrier of the block. Counts are of threads. */
typedef struct {
    uint32_t arrived, expected; /* expected 0: all live threads */
    uint32_t count;             /* bar.red: true predicates */
    uint32_t result, parties;   /* of the phase that completed last */
    WarpPath path;              /* of the warps that have arrived */
} Barrier;

/* What the time model knows of the SM that the simulator needs meanwhile. */
typedef struct {
    double pipe[PIPE_COUNT]; /* cycles that a scheduler takes for a unit */
    /* Cycles that each part of the SM's memory takes for the counts; NULL: it is not known. */
    void (*memory)(const void *profile, const SimCounts *counts, double cycles[BUSY_MEMORY]);
    const void *profile;
} ExecRates;

/* The current block. */
typedef struct {
    uint32_t id[3];
    uint64_t linear;
    unsigned char *shared;
    uint32_t *shared_writer, *shared_reader; /* a tag per word (shadow_shared.c) */
    unsigned char *shared_bytes;             /* bytes written of partly written words */
    uint32_t *shared_cleared; /* per word: the floor of the block that last cleared it */
    uint32_t shared_size, static_shared;
    uint32_t reserved_at;  /* of shared memory: RESERVED_SHARED bytes, where code uses them */
    uint32_t epoch, floor; /* the current epoch, and the lowest tag of this block */
    uint32_t phase;        /* barriers passed */
    uint32_t tag;          /* in the shadow of global memory */
    int touched;           /* it has accessed global memory since it took the tag, ... */
    int stored;            /* ... or stored there since it took fenced_tag */
    uint32_t fenced_tag;   /* taken at the last fence behind a store */
    uint64_t passed;       /* the position of the last barrier (memory/order.h) */
    int acquired;          /* it has executed a fence, an atomic or a volatile load */
    int64_t alone_since;   /* Exec.budget when it last did, or when it began */
    uint32_t live_threads;
    Barrier barriers[MAX_BARRIERS];
    int n_warps;
    uint64_t pipes[SCHEDULERS][PIPE_COUNT]; /* what the warps of each have taken of each pipe */
    /* memory/busy.h: cycles of the SM's memory before the block came back, and those of all blocks then. */
    double memory[BUSY_MEMORY], memory_at[BUSY_MEMORY];
} Cta;

typedef struct AsyncCopies AsyncCopies;
typedef struct BulkCopies BulkCopies;
typedef struct WgmmaReads WgmmaReads;
/* Thread-instructions that the budget gets when it is used up, if they are enough for the warp-instructions
 * that the launch needs. */
typedef struct {
    int64_t left;
    int64_t spent;  /* the budget before */
    uint64_t began; /* Exec.clock at the launch's start */
    double needed;  /* warp-instructions */
} ExecReserve;

/* The SM's caches of constants, in lines: one of 2 KiB, each set's lines from the last used one on, and a
 * larger one, which holds all that has come. Lines count from 1. */
enum { CONST_LINE = 64, CONST_LINES = 1024, CONST_SETS = 8, CONST_WAYS = 4 };
typedef struct {
    uint16_t near[CONST_SETS][CONST_WAYS];
    uint8_t has_come[CONST_LINES];
    uint32_t last, is_read_on; /* the line of the last load, and whether it was near */
} ConstCache;

typedef struct Exec Exec;
struct Exec {
    DevMem *mem;
    const Code *code;
    const Function *entry;
    const DeviceLaunch *launch;
    uint32_t grid[3], block[3];
    uint64_t n_blocks;
    int reversed; /* run blocks, and the warps of a block, from the last to the first */
    int ample;    /* reversed: the budget is clearly above what the usual order took */
    Cta cta;
    ConstCache constants;
    Warp *warps;
    int cap_warps;
    Frame *free_frames, *all_frames;
    unsigned char *register_file;
    size_t register_file_bytes;
    unsigned char *shared_store;
    uint32_t shared_cap;
    size_t local_cap;                     /* bytes per thread */
    size_t clear32, clear64, clear_preds; /* bytes of a warp's registers zeroed for each block */
    size_t clear_local;                   /* bytes of local_init zeroed for each block and warp */
    int64_t budget;                       /* thread-instructions left of this run */
    int64_t block_budget;                 /* of it, what one block may take; 0: all of it */
    struct MemOp *vain;                   /* by which a block of a sample has waited in vain */
    int64_t block_floor;                  /* the budget below which the block has taken that */
    ExecReserve reserve;                  /* of a launch that may be run in part; else zeros */
    int64_t block_cost;                   /* charged to the budget for the start of a block */
    struct Pattern *patterns;             /* of addresses (memory/access.c); NULL: none is kept */
    AsyncCopies *async;                   /* cp.async under way; NULL: none issued */
    BulkCopies *bulk;                     /* cp.async.bulk under way */
    WgmmaReads *wgmma;                    /* products under way; NULL: none issued */
    struct BlockPaths *paths;  /* of the block (memory/path.h); NULL: nothing has arrived */
    struct BlockOrder *order;  /* the block's fences (memory/order.h); NULL: none */
    struct Landed *landed;     /* of the block (memory/landed.h); NULL: no copy has landed */
    struct ProxyFences *proxy; /* of the block (memory/proxy.h); NULL: not needed */
    struct OrderGraph *graph;  /* of the launch; NULL: no block has ordered anything */
    struct BlockWaits *waits;  /* memory/block_waits.h; NULL: no block waits */
    int sampled, closing;      /* a sample of blocks runs; its last one (memory/block_waits.h) */
    int in_order;              /* its blocks run in order */
    uint64_t ticket,
        ticket_step;  /* of its first block; to the next one's, modulo the blocks but one */
    SimCounts counts; /* of the last launch */
    int counted;      /* counts has the requests to global memory */
    uint64_t clock;   /* warp-instructions of the module since it was loaded */
    uint64_t grid_id; /* launches of the module since it was loaded */
    uint32_t sm_count;
    /* Bytes of shared memory and of a warp's local memory (a bit a lane, undefined_cap bytes a warp)
     * that hold an undefined value; NULL until there is one (memory/undefined_memory.h). */
    unsigned char *undefined_shared;
    uint32_t *undefined_local;
    size_t undefined_cap;
    struct Cluster *cluster; /* the blocks beside cta; NULL: a block is alone (memory/cluster.h) */
    struct Cooperative *cooperative; /* all blocks of such a launch; NULL: see cluster */
    uint64_t grid_barrier;    /* the address of what the blocks of a cooperative launch meet at */
    struct Doubts *doubts;    /* where doubtful values are followed; borrowed (memory/doubts.h) */
    uint32_t event_in_memory; /* the event of a doubtful value that was stored last */
    int doubted;              /* a run stopped at a value that nobody followed: DOUBTED_* */
    Fault *fault;
    int faulted;
    /* A read of unwritten shared memory. It becomes a fault at the next barrier, unless another
     * warp writes the place before: then it is a race. */
    int has_pending;
    Fault pending;
    int keeps_pending;        /* until the next barrier of the cluster */
    struct Cluster *clusters; /* kept for the next launch that has a cluster */
    int has_clusters;         /* the simulated GPU has them */
    ExecRates rates;
};

/* memory/cluster_shadow.c: a fence of the current block, and what sees the fences of others. */
void cluster_fence(Exec *x);
void cluster_acquire(Exec *x);

/* A fence, an atomic or a volatile load: from now on the block sees released writes of others. */
static inline void exec_acquire(Exec *x)
{
    x->cta.acquired = 1;
    x->cta.alone_since = x->budget;
    if (x->cluster) cluster_acquire(x);
}

/* Equal looks of a split: before other splits of its warp run, and the blocks of a cooperative launch; before
 * the lanes go on that wait for it at joins; before other warps run; and before a block of a sample ends that
 * waits for one that does not run. */
enum {
    LOOKS_AMONG_LANES = 4,
    LOOKS_AT_JOIN = 16,
    LOOKS_ALONE = 200,
    LOOKS_IN_VAIN = 1 << 16,
    LOOK_SLICE = 100
};

/* A look that repeats the last one, in a launch whose blocks wait for each other. How often it is repeated
 * says when the others have run: it takes no time, and the first one that waits takes what a grid's barrier
 * takes, beside its atomic and this look. */
enum { GRID_WAIT_CYCLES = 1800 };
static inline void exec_look_again(Warp *w, int looks)
{
    w->global_waits -= w->open_waits;
    w->open_waits = 0;
    if (looks == 2) w->chain += GRID_WAIT_CYCLES;
}

/* A volatile or acquiring load, or an atomic: it may spin on what other lanes or warps write, which run
 * soon. */
static inline void exec_look(Warp *w, const Inst *in, uint64_t address)
{
    Split *s = &w->splits[w->current];
    int i = 0;
    while (i < s->n_last && (s->last[i] != in || s->last_at[i] != address)) i++;
    const int same = i < s->n_last;
    if (same && w->x->cooperative) exec_look_again(w, s->looks);
    s->looks = same ? s->looks + 1 : 1;
    if (!same) {
        if (i == SPLIT_LOOKS) i = 0;
        s->last[i] = in;
        s->last_at[i] = address;
        s->n_last = i + 1;
    }
    if (!w->x->counted) w->slice -= LOOK_SLICE;
    int enough = w->n_splits > 1 || w->x->cooperative ? LOOKS_AMONG_LANES
                 : w->join                            ? LOOKS_AT_JOIN
                                                      : LOOKS_ALONE;
    if (s->looks % enough) return;
    if (s->looks > LOOKS_IN_VAIN && w->x->sampled) {
        w->x->block_floor = INT64_MAX;
        w->x->vain = in->mem;
    }
    w->slice = -1;
    w->spins = 1;
}

/* Charges host work that takes longer than a thread-instruction for each lane, which may cost 1.25 ns.
 * The budget is looked at when the next block of code begins. */
static inline void exec_charge(Exec *x, int64_t thread_instructions)
{
    x->budget -= thread_instructions;
}

/* Fills x->fault with a sentence about one lane and stops the run. The first fault counts. Returns
 * NULL, so that a handler can return it. */
const Inst *exec_fault(Warp *w, const Inst *in, int lane, Outcome outcome, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for functions that return 0 or -1. Returns -1. */
#define exec_fail(...) (exec_fault(__VA_ARGS__), -1)

/* Makes the pending fault the fault of the run. */
void exec_raise_pending(Exec *x);
/* The PTX of an instruction of the current frame, or NULL. */
const PtxInst *exec_source(const Warp *w, const Inst *in);

#endif
