/* A warp: 32 lanes, their registers, and the places where they are.
 *
 * A warp is a set of splits: groups of lanes at one place. A branch on which the lanes disagree
 * makes two splits of one, and a join at the branch's immediate post-dominator, where the splits
 * wait for each other. Splits are scheduled independently, so locks and flags between lanes of one
 * warp make progress, as on devices since sm_70. */
#ifndef EVAL_SIM_MACHINE_WARP_H
#define EVAL_SIM_MACHINE_WARP_H

#include "eval/sim/machine/instruction.h"

/* The activation of a function. */
typedef struct Frame {
    struct Frame *parent;
    const Function *fn;
    const Inst *ret; /* return address, in the parent */
    const CallOp *call;
    unsigned char *rows32, *rows64;
    uint32_t *preds;
    uint32_t local_base, depth;
    uint32_t lanes;     /* number of lanes that are still inside */
    struct Frame *next; /* list of all frames ever allocated */
} Frame;

/* A place where splits wait for each other. */
typedef struct Join {
    struct Join *parent;
    const Inst *pc;
    Frame *frame;
    uint32_t expected, arrived; /* lanes */
    uint64_t opened;            /* the warp's instructions then */
} Join;

/* What a path consists of (memory/path.h). Of the global waits, some are for DRAM and some for L2.
 * PIPES: what the warps of its scheduler have taken of each pipe, and those of others that it has waited for.
 * MEMORY: of a cooperative launch, cycles of the parts of the SMs' memory. */
enum { BUSY_MEMORY = 3 }; /* these parts */
enum {
    PATH_INSTS,
    PATH_CHAIN,
    PATH_GLOBAL,
    PATH_DRAM,
    PATH_L2,
    PATH_LOCAL,
    PATH_PIPES,
    PATH_MEMORY = PATH_PIPES + PIPE_COUNT,
    PATH_PARTS = PATH_MEMORY + BUSY_MEMORY
};
typedef struct {
    uint64_t part[PATH_PARTS];
} WarpPath;

typedef enum { SPLIT_READY, SPLIT_BARRIER, SPLIT_WARP_SYNC } SplitState;

/* A loop that waits may look at as many words in turn. */
enum { SPLIT_LOOKS = 4 };

typedef struct {
    uint32_t mask;
    uint32_t members; /* SPLIT_WARP_SYNC: the lanes that the operation names */
    SplitState state;
    int barrier; /* SPLIT_BARRIER: its index */
    int looks;   /* in a row that repeat one of the last (exec_look) */
    int n_last;  /* looks that differ, since a barrier */
    const Inst *pc, *last[SPLIT_LOOKS];
    uint64_t last_at[SPLIT_LOOKS];
    Frame *frame;
    Join *join;
} Split;

/* A read of unwritten shared or local memory whose value is not used yet (unwritten.h). */
enum { UNWRITTEN_MAX = 4 };
typedef struct {
    const Inst *in;
    Frame *frame;
    uint32_t lanes;
    int lane, size, is_shared; /* lane: the first that read so, for the message */
    int is_plain;              /* a load that a compiler might move */
    int is_copied;             /* as a part of what has a value, or into memory */
    uint64_t at;
    int n_regs;
    struct {
        uint8_t cls;
        uint32_t reg, row;
    } regs[4];
} Unwritten;

struct Warp {
    uint32_t active; /* lanes of the running split */
    uint32_t *p;     /* predicates of the running split's frame; p[0] is all ones */
    unsigned char *bank32[2], *bank64[2]; /* [0] the frame's registers, [1] the constants */
    const Inst *join_pc;                  /* where the running split joins; NULL: nowhere */
    Frame *frame;
    Join *join;
    struct Exec *x;
    int64_t slice;  /* instructions left before another split or warp runs */
    uint32_t live;  /* lanes that have not exited */
    uint32_t lanes; /* lanes that exist */
    int index, current, n_splits;
    int yielded;     /* the running split used up its slice */
    int turns;       /* of the slice that the warp has had */
    int spins;       /* the running split ended its slice to wait for others (exec_look) */
    int idle;        /* when it ran last, it only waited: its splits spun, or none could run */
    int n_unwritten; /* of unwritten[] */
    int converged;   /* all lanes of the pending warp-level operation are here: it may run */
    Split splits[LANES];
    Join joins[2 * LANES + 2];
    uint64_t joins_used[2]; /* a bit per join */
    Frame entry_frame;
    unsigned char *storage32, *storage64, *end32, *end64;
    uint32_t *preds, *preds_end;
    unsigned char *local;      /* [word][lane], 4 bytes each */
    unsigned char *local_init; /* [word][lane]: 4 bits each, a bit per byte written */
    /* Counters of the block. Of the global waits, dram_waits wait for DRAM and l2_waits for L2. */
    uint64_t insts, global_waits, dram_waits, l2_waits, local_waits, chain;
    uint64_t known_at,
        known;      /* what the warp found last in a word that others change, and its address */
    WarpPath ahead; /* by how much the path up to here is longer, by waits for other warps */
    /* Since the last code block began: its waits, and requests that went to DRAM or to L2. */
    uint32_t open_waits, dram_requests, l2_requests;
    int dram_buffer; /* that the last of those to DRAM read; -1: it was a copy to shared memory */
    uint32_t tid[3][LANES];
    uint64_t stored;    /* 1 + the line, and a bit per sector, of a store; 0: no last access */
    const Inst *awaits; /* the last wait at an mbarrier, whose phase had not ended; NULL: none */
    uint32_t awaited;   /* its offset */
    uint32_t carry;     /* condition code of add.cc, a bit per lane */
    Unwritten unwritten[UNWRITTEN_MAX];
    /* Between an instruction and what follows its value (memory/doubts.h): the lanes whose value is
     * doubtful with the event, and the tentative value. */
    uint32_t doubtful_load, load_event, load_value, doubtful_shuffle, shuffle_event;
    uint32_t partial_load, partial_bytes[LANES]; /* lanes with some doubtful bytes, and these */
    uint64_t scratch[LANES];
};

/* The lanes for which an instruction runs. */
static inline uint32_t exec_mask(const Warp *w, const Inst *in)
{
    return w->active & (w->p[in->g] ^ in->gneg);
}

static inline uint32_t *row32(const Warp *w, uint32_t code)
{
    return (uint32_t *)(void *)(w->bank32[code >> 31] + (code & ~ROW_CONST));
}

static inline uint64_t *row64(const Warp *w, uint32_t code)
{
    return (uint64_t *)(void *)(w->bank64[code >> 31] + (code & ~ROW_CONST));
}

/* Copies the lanes of m from v to d. */
static inline void blend32(uint32_t *d, const uint32_t *v, uint32_t m)
{
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? v[i] : d[i];
}

static inline void blend64(uint64_t *d, const uint64_t *v, uint32_t m)
{
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? v[i] : d[i];
}

/* Sets the lanes of m in a row to one value. */
static inline void fill32(uint32_t *d, uint32_t v, uint32_t m)
{
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? v : d[i];
}

/* Copies the bits of m from value into predicate p. Predicate 0 stays all ones: it is also the
 * destination "_". */
static inline void put_pred(Warp *w, uint32_t p, uint32_t m, uint32_t value)
{
    if (p) w->p[p] = (w->p[p] & ~m) | (value & m);
}

/* Of the lanes, those whose member mask, in a row, names the same live lanes as `members`. */
static inline uint32_t warp_with_members(const Warp *w, uint32_t row, uint32_t lanes,
                                         uint32_t members)
{
    const uint32_t *mask = row32(w, row);
    uint32_t same = 0;
    if (row & ROW_CONST) return lanes;
    for (int i = 0; i < LANES; i++) same |= (uint32_t)(((mask[i] ^ members) & w->live) == 0) << i;
    return lanes & same;
}

/* Takes the lanes that name the same members as the lowest one out of *rest: a group. */
static inline uint32_t warp_group(const Warp *w, uint32_t row, uint32_t *rest)
{
    uint32_t group = warp_with_members(w, row, *rest, row32(w, row)[__builtin_ctz(*rest)]);
    *rest &= ~group;
    return group;
}

#endif
