/* The machine: decoded instructions, warps as 32-lane rows, blocks, and what the handlers share.
 *
 * A register is a row of 32 lanes: 128 bytes for 16 and 32-bit registers (16-bit values
 * zero-extended), 256 for 64-bit ones; a predicate is one 32-bit mask. A row code is the byte
 * offset in the current frame's bank, or, with ROW_CONST set, in the module's pool of replicated
 * constants.
 *
 * A warp is a set of splits: lanes that are at one place. A branch that the lanes disagree on makes
 * two of one and a join at the branch's immediate post-dominator, where the halves wait for each
 * other. Splits are scheduled independently of each other, so locks and flags between lanes of
 * one warp make progress, as on real devices since sm_70. */
#ifndef EVAL_SIM_MACHINE_MACHINE_H
#define EVAL_SIM_MACHINE_MACHINE_H

#include <stdint.h>
#include <string.h>

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"
#include "eval/sim/machine/device_memory.h"
#include "eval/sim/ptx/ptx.h"

enum { LANES = 32, MAX_WARPS = 32, MAX_BARRIERS = 16, ROW32 = 128, ROW64 = 256 };
#define ROW_CONST 0x80000000u
#define ROW_NONE 0xffffffffu
#define FULL_MASK 0xffffffffu

typedef struct Inst Inst;
typedef struct Warp Warp;
typedef struct Exec Exec;
typedef struct AsyncCopies AsyncCopies;
typedef const Inst *Handler(Warp *w,
                            const Inst *in); /* the next instruction; NULL: the split stopped */

struct Inst {
    Handler *fn;
    uint32_t d, a, b, c; /* row codes, or predicate indices */
    uint32_t e, f;
    uint32_t g, gneg; /* guard: predicate index (0: always true) and the mask it is flipped by */
    union {
        uint64_t imm;
        struct MemOp *mem;
        struct CallOp *call;
        struct BranchOp *branch;
        struct CodeBlock *block;
        struct MmaOp *mma;
        struct WmmaOp *wmma;
        struct WmmaPart *part;
    };
    uint8_t k0, k1, k2, k3;
    uint32_t src; /* index in the PTX function */
};

typedef struct BranchOp {
    const Inst *target;
    const Inst *join; /* block where the two ways meet; NULL: at the function's end */
    int n_targets;    /* brx.idx */
    const Inst **targets;
} BranchOp;

typedef struct Function Function;

typedef struct CallOp {
    const Function *callee;
    int n_in, n_out; /* 32-bit words copied before and after */
    uint32_t *in_from, *in_to, *out_from, *out_to;
    struct CallOp **targets; /* of a call through a pointer, by the function's index; NULL: not one
                                that it can call */
} CallOp;

/* A basic block: what one pass over it costs, and how often it was passed. */
typedef struct CodeBlock {
    uint32_t n_insts;
    uint32_t by_class[INST_CLASS_COUNT];
    uint32_t global_waits, local_waits, chain, expansion;
    uint64_t fp32_flops, fp16_flops, fp64_flops, tensor_flops;
    uint64_t passes, lanes; /* counters of the current launch */
} CodeBlock;

struct Function {
    const PtxFunction *ptx;
    struct Code *code;
    Inst *insts;
    int n_insts;
    CodeBlock *blocks;
    int n_blocks;
    uint32_t rows32, rows64, preds; /* of a frame */
    uint32_t local_bytes;           /* of its frame */
    const char *unsupported;        /* a sentence, or NULL */
    int unsupported_line;
    const Function **callees;
    int n_callees;
    int visited;            /* mark of a walk over the calls */
    uint32_t static_shared; /* of an entry, with what it calls */
    uint32_t dynamic_at;    /* where dynamic shared memory starts; 0: at static_shared */
};

/* ---- memory instructions ---- */

enum { MEM_LOAD, MEM_STORE, MEM_ATOM, MEM_RED };
enum { ORDER_WEAK, ORDER_VOLATILE, ORDER_ACQUIRE, ORDER_RELEASE };

enum { HALF_ANY, HALF_SAME, HALF_ROW };

typedef struct {
    uint32_t mask, phase;
    int size; /* bytes a lane; 0: nothing cached */
    int32_t delta[LANES];
    int32_t min, max;
    uint8_t uniform, consecutive, aligned;
    uint8_t half[2]; /* lanes 0..15 and 16..31 of a full mask: one address, a row of words, or
                        neither */
    uint16_t wavefronts, distinct, most;
    int n_ranges;
    struct {
        int32_t lo, hi;
    } ranges[LANES];
} Pattern;

typedef struct MemOp {
    uint8_t kind, space, order;
    uint8_t element, count; /* bytes of an element, elements a lane */
    uint8_t is_signed;
    uint8_t address64;  /* class of the address row; 2: none, the offset is all */
    uint8_t width[4];   /* bits of each data register */
    uint8_t atom, type; /* AtomOp, value type of an atomic */
    uint8_t bypass;     /* of an atomic: packed halves */
    uint8_t read_only;  /* ld.global.nc: of what nobody writes during the launch */
    uint32_t data[8], address;
    int64_t offset;
    uint32_t hit; /* the allocation of the last access */
    Pattern pattern;
} MemOp;

/* mma.sync m16n8kK */
typedef struct MmaOp {
    uint8_t k, n_a, n_b, n_c;         /* registers of a thread */
    uint8_t a_type, b_type, acc_type; /* T_* ; acc: T_F32, T_F16 or T_S32 */
    uint8_t saturate;
    uint32_t d[4], a[4], b[2], c[4];
} MmaOp;

/* wmma of M x N x K: which of its matrices, and how many registers of a thread hold them */
typedef struct WmmaOp {
    uint8_t m, n, k;
    uint8_t type, from, to; /* T_* of the factors and of the sums before and after */
    uint32_t d[8], a[8], b[8], c[8];
} WmmaOp;

/* A register of a fragment, or a half of it, on its way from or to memory. */
typedef struct WmmaPart {
    MemOp base; /* the matrix's address */
    char which; /* 'a', 'b', or 'c' for sums */
    uint8_t m, n, type, reg, half;
    uint8_t by_columns;
    uint32_t stride; /* its row */
} WmmaPart;

/* ---- the running machine ---- */

typedef struct Frame {
    struct Frame *parent;
    const Function *fn;
    const Inst *ret; /* in the parent */
    const CallOp *call;
    unsigned char *rows32, *rows64;
    uint32_t *preds;
    uint32_t local_base, depth, lanes; /* lanes still inside */
    struct Frame *next;                /* of all that were ever made */
} Frame;

typedef struct Join {
    struct Join *parent;
    const Inst *pc;
    Frame *frame;
    uint32_t expected, arrived;
} Join;

enum { SPLIT_READY, SPLIT_BARRIER, SPLIT_WARP_SYNC };

typedef struct {
    uint32_t mask, wants; /* wants: the lanes that a warp-level operation names */
    int state, barrier;
    const Inst *pc;
    Frame *frame;
    Join *join;
} Split;

/* A read of shared or local memory that nobody has written, whose value nobody has used so far
 * (exec_unwritten.c). */
enum { UNWRITTEN_MAX = 4 };
typedef struct {
    const Inst *in;
    Frame *frame;
    uint32_t lanes;
    int lane, size, is_shared; /* of the first such lane, for the message */
    uint64_t at;
    int n_regs;
    struct {
        uint8_t cls;
        uint32_t reg, row;
    } regs[4];
} Unwritten;

struct Warp {
    uint32_t active; /* the running split's lanes */
    uint32_t *p;     /* predicates of the running split's frame; p[0] is all ones */
    unsigned char *bank32[2], *bank64[2]; /* [0] the frame, [1] the constants */
    const Inst *join_pc;                  /* where the running split joins */
    Frame *frame;
    Join *join;
    Exec *x;
    int64_t slice;  /* instructions before another split or warp has its turn */
    uint32_t live;  /* lanes that have not exited */
    uint32_t lanes; /* lanes that exist */
    int index, current, n_splits;
    int yielded;     /* its slice ended */
    int n_unwritten; /* of unwritten[] */
    int forced;      /* the warp-level operation's lanes are all here: run it */
    Split splits[LANES];
    Join joins[2 * LANES + 2];
    uint64_t joins_used[2];
    Frame entry_frame;
    unsigned char *storage32, *storage64, *end32, *end64;
    uint32_t *preds, *preds_end;
    unsigned char *local;      /* [word][lane] */
    unsigned char *local_init; /* bytes written: [word][lane], 4 bits each */
    uint32_t local_used;
    uint64_t insts, global_waits, local_waits, chain;
    uint32_t tid[3][LANES];
    uint32_t carry; /* condition code of add.cc, a bit a lane */
    Unwritten unwritten[UNWRITTEN_MAX];
    uint64_t scratch[LANES];
};

typedef struct {
    uint32_t arrived, expected; /* threads; expected 0: all that live */
    uint32_t count;             /* bar.red: true predicates so far */
    uint32_t result, parties;   /* of the barrier that completed */
} Barrier;

/* The block that runs. */
typedef struct {
    uint32_t id[3];
    uint64_t linear;
    unsigned char *shared;
    uint32_t *shared_writer, *shared_reader; /* a tag a word */
    unsigned char *shared_bytes;             /* bytes written of partly written words */
    uint32_t shared_size, static_shared;
    uint32_t epoch, floor; /* tags of now, and the least tag of this block */
    uint32_t phase;        /* barriers passed */
    uint32_t tag;          /* in global memory's shadow */
    int stored, acquired;  /* since the tag was taken; has it looked at a flag */
    uint32_t live_threads;
    Barrier barriers[MAX_BARRIERS];
    int n_warps;
} Cta;

struct Exec {
    DevMem *mem;
    const struct Code *code;
    const Function *entry;
    const DeviceLaunch *launch;
    uint32_t grid[3], block[3];
    uint64_t n_blocks;
    int reversed; /* blocks, and the warps of a block, from the last to the first */
    Cta cta;
    Warp *warps;
    int cap_warps;
    Frame *free_frames, *all_frames;
    unsigned char *register_file;
    size_t register_file_bytes;
    unsigned char *shared_store;
    uint32_t shared_cap;
    size_t local_cap; /* bytes a thread */
    size_t clear32, clear64,
        clear_preds;    /* bytes of a warp's registers that a block starts with at zero */
    int64_t budget;     /* thread-instructions left of this run */
    int64_t block_cost; /* of it, for the start of a block */
    AsyncCopies *async; /* cp.async on its way; NULL: none was issued */
    SimCounts counts;
    uint64_t clock; /* warp-instructions since the device was opened */
    uint32_t sm_count;
    DeviceFault *fault;
    int faulted;
    int has_pending; /* a read of unwritten shared memory: a race if another warp writes it before
                        the next barrier */
    DeviceFault pending;
};

/* ---- code: a module decoded ---- */

typedef struct Code {
    PtxModule ptx;
    Function *functions;            /* as in ptx.functions */
    unsigned char *pool32, *pool64; /* constants, replicated over the lanes */
    int n_pool32, n_pool64, cap_pool32, cap_pool64;
    unsigned char *const_bank;
    uint32_t const_bytes;
    int64_t pointer_targets; /* looked at for calls through pointers */
} Code;

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

static inline void blend32(uint32_t *d, const uint32_t *v, uint32_t m)
{
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? v[i] : d[i];
}

static inline void blend64(uint64_t *d, const uint64_t *v, uint32_t m)
{
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? v[i] : d[i];
}

/* Faults: each fills x->fault, stops the run and returns NULL. */
const Inst *exec_fault(Warp *w, const Inst *in, int lane, Outcome outcome, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void exec_raise_pending(Exec *x);
const PtxInst *exec_source(const Warp *w, const Inst *in);

/* exec_control.c */
Handler h_block, h_bra, h_bra_uni, h_brx, h_call, h_call_pointer, h_call_drop, h_assert, h_ret,
    h_exit, h_trap, h_nop, h_fence;
void warp_pick(Warp *w, int split); /* make it the running one */
void warp_park(Warp *w, const Inst *pc,
               int state);          /* the running one stops here, to continue at pc */
void warp_enter(Warp *w, Frame *f); /* its registers are the current ones */
void warp_start(Warp *w);           /* at the entry's first instruction, all lanes */
int warp_run(Warp *w);              /* until nothing is ready or its turn ends; 1: something ran */

/* exec_unwritten.c: 0, or -1 with a fault */
int unwritten_follow(
    Warp *w,
    const Inst *from); /* the running split is about to run from there to its block's end */
int unwritten_select(Warp *w, const Inst *in, uint32_t m, uint32_t takes_a);

/* exec_barrier.c */
Handler h_bar, h_bar_result;
void barrier_passed(Exec *x);   /* what was done before is ordered before what comes */
void barrier_check(Exec *x);    /* complete those that all living threads have reached */
void barrier_deadlock(Exec *x); /* nothing can run: fills the fault */

/* exec_warp.c: operations between the lanes of a warp */
Handler h_shfl, h_vote, h_match, h_redux, h_bar_warp, h_activemask, h_elect;
/* 1: all lanes that take part are here. Otherwise the split waits, and warp_resolve runs the
 * handler again once they are. */
int warp_all_here(Warp *w, const Inst *in, uint32_t m, uint32_t wants);
int warp_resolve(
    Warp *w); /* release lanes that wait for one another: nothing is ready, or what is spins */

/* launch.c */
int exec_launch(Exec *x, const DeviceLaunch *launch); /* 1: a fault */
void exec_release(Exec *x);

#endif
