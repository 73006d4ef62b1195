/* Decoded code: instructions, functions, modules, and the operands of branches, calls and matrix
 * instructions.
 *
 * A register is a row of 32 lanes: 128 bytes for 16-bit and 32-bit registers (16-bit values are
 * zero-extended), 256 bytes for 64-bit ones. A predicate is one 32-bit mask. A row code is a byte
 * offset in the current frame's bank or, with ROW_CONST set, in the module's pool of replicated
 * constants. */
#ifndef EVAL_SIM_MACHINE_INSTRUCTION_H
#define EVAL_SIM_MACHINE_INSTRUCTION_H

#include <stdint.h>
#include <string.h>

#include "eval/sim/machine/counts.h"
#include "eval/sim/ptx/ptx.h"

enum { LANES = 32, ROW32 = 128, ROW64 = 256 };
#define ROW_CONST 0x80000000u
#define ROW_NONE 0xffffffffu
#define FULL_MASK 0xffffffffu

typedef struct Inst Inst;
typedef struct Warp Warp;
typedef struct Function Function;

/* Runs an instruction for the active lanes. Returns the next one, or NULL when the split stops. */
typedef const Inst *Handler(Warp *w, const Inst *in);

struct Inst {
    Handler *fn;
    uint32_t d, a, b, c; /* row codes, or predicate indices */
    uint32_t e, f;
    uint32_t g, gneg; /* guard: predicate index (0: always true) and the mask that flips it */
    union {
        uint64_t imm;
        struct MemOp *mem;
        struct CallOp *call;
        struct BranchOp *branch;
        struct CodeBlock *block;
        struct MmaOp *mma;
        struct WmmaOp *wmma;
        struct WmmaPart *part;
        struct WgmmaOp *wgmma;
        struct TrackOp *track;
        struct BulkOp *bulk;
        const char *text;
    };
    uint8_t k0, k1, k2, k3;    /* small constants: operation, type, flags; handlers.h says which */
    uint32_t source : 31;      /* index in the PTX function */
    uint32_t starts_block : 1; /* it is the first instruction of a basic block */
};

typedef struct BranchOp {
    const Inst *target;
    const Inst *join; /* block where both paths meet; NULL: at the function's end */
    int n_targets;    /* brx.idx */
    const Inst **targets;
} BranchOp;

/* 32-bit rows that a call copies from one frame to another. */
typedef struct {
    int n;
    uint32_t *from, *to;
} CallWords;

typedef struct CallOp {
    const Function *callee;
    CallWords in, out;       /* arguments before the call, results after it */
    struct CallOp **targets; /* of a call through a pointer, by the function's index; NULL: the
                                function cannot be called here */
} CallOp;

/* How an instruction hands on undefined values. SHUFFLE, GATHER, MATRIX, TILE, PRODUCT and LOADED
 * follow the instruction, the others come before it. */
enum {
    TRACK_JOIN,    /* a destination is undefined when a source is, or by TrackOp.flow */
    TRACK_SELECT,  /* selp: only the chosen source counts */
    TRACK_AND,     /* of predicates: a false one decides, whatever the other is */
    TRACK_OR,      /* of predicates: a true one decides */
    TRACK_SHUFFLE, /* shfl: the source lane counts */
    TRACK_GATHER,  /* vote, match, redux: any lane counts */
    TRACK_LOAD,    /* of shared, local, global or generic memory */
    TRACK_MATRIX,  /* ldmatrix */
    TRACK_TILE,    /* mma, wmma.mma: rows of the first factor and columns of the second one count */
    TRACK_PRODUCT, /* wgmma: the same */
    TRACK_LOADED,  /* what the load found */
    TRACK_STORE,
    TRACK_STORED /* what the store left in global memory */
};

/* The parts of a register, a quarter of its bits each, and the most destinations of TrackOp.flow. */
enum { REG_PARTS = 4, FLOW_DESTS = 8 };

/* The registers of an instruction whose definedness is followed (decode/definedness.c). A slot is
 * REG_PARTS predicates of the frame: a bit a lane, set where that part of the register is undefined.
 * 0: the register is always defined. */
typedef struct TrackOp {
    uint8_t kind; /* TRACK_* */
    uint8_t n_dests, n_sources, n_musts;
    uint32_t guard;       /* slot of the guard's predicate, or 0 */
    uint32_t *dests;      /* slots; LOAD: of the items of the vector, or 0 */
    uint32_t *sources;    /* slots; SELECT: a, b, c; STORE: of the items, or 0 */
    uint32_t *musts;      /* slots that have to be defined: addresses, branches, barriers */
    uint32_t *origins;    /* parallel to musts, then to sources, then of the guard: the PTX
                             instruction that reads the undefined variable first */
    const char *use;      /* what a must is used for */
    struct MemOp *memory; /* LOAD, STORE */
    uint8_t *widths;      /* LOAD, STORE: bits of the items' registers */
    uint8_t *flow;        /* JOIN: for destination i, part p and source j, at (i * REG_PARTS + p) *
                             n_sources + j, the parts of the source; NULL: all on all */
    int doubts;           /* a must may be followed when the module is loaded again */
} TrackOp;

/* The accesses of a PTX instruction in the current launch, over all blocks that ran. */
typedef struct {
    uint64_t requests, bytes;   /* bytes: that the threads asked for */
    uint64_t sectors, dram, l2; /* sectors of global memory; of them, from DRAM and from L2 */
    uint64_t wavefronts, ideal; /* of shared memory */
    uint64_t serial;            /* of atomics: summed, the most lanes on one address */
} InstTraffic;

/* A basic block: the cost of one pass, and the passes of the current launch. */
typedef struct CodeBlock {
    uint32_t n_insts, folded; /* folded: of them, those that cost nothing */
    uint32_t by_class[INST_CLASS_COUNT];
    uint32_t pipes[PIPE_COUNT]; /* what a scheduler's part of each takes, in its units */
    uint32_t global_waits, local_waits, chain, expansion;
    uint32_t host; /* charged to the budget beside the instructions */
    uint64_t fp32_flops, fp16_flops, fp64_flops, tensor_flops, mma_slots, wgmma_slots;
    uint64_t passes, lanes; /* lanes: summed over the passes */
    uint64_t all_passes;    /* of all blocks of a sample; passes: of its last one */
} CodeBlock;

/* Bytes of static shared memory that belong to no variable: before an aligned one, behind the last. */
typedef struct {
    struct SharedGap {
        uint32_t lo, hi;
        const PtxVar *before; /* the variable that ends at lo; NULL: none */
    } * list;                 /* n, ascending */
    int n;
} SharedGaps;

struct Function {
    const PtxFunction *ptx;
    struct Code *code;
    Inst *insts;
    int n_insts;
    CodeBlock *blocks;
    int n_blocks;
    uint32_t rows32, rows64, preds; /* of a frame */
    uint32_t local_bytes;           /* of a frame, per thread */
    const char *unsupported;        /* why it cannot run, a sentence; NULL: it can */
    int unsupported_line;
    const Function **callees;
    int n_callees;
    int visited;            /* mark of a walk over the call graph */
    uint32_t static_shared; /* bytes, of a kernel with its callees */
    uint32_t *undefined;    /* n_undefined slots that are undefined when it starts; n_slots: the
                               predicates of all slots */
    int n_undefined, n_slots;
    struct UnsetRegister {
        RegClass cls;
        uint32_t reg;
    } * unset;                        /* n_undefined: what may be read before it is set */
    uint32_t first_slot, first_event; /* a predicate a slot: its event (memory/doubts.h); 0: none */
    uint32_t *words;                  /* slots of the words of parameters, from row first_word on */
    uint32_t first_word;
    uint32_t dynamic_at; /* offset of dynamic shared memory; 0: at static_shared */
    SharedGaps gaps;     /* of a kernel, behind the shared variables of the module */
    /* By PTX instruction: its class, the waits for global memory that it adds, its accesses. */
    uint8_t *classes, *waits;
    InstTraffic *traffic;
};

/* mma.sync m16n8kK, and m8n8k4 of doubles */
typedef struct MmaOp {
    uint8_t k, n_a, n_b, n_c;         /* n_*: registers of a thread */
    uint8_t a_type, b_type, acc_type; /* T_*; acc_type: T_F32, T_F16, T_S32 or T_F64 */
    uint8_t saturate;
    uint32_t d[4], a[8], b[4], c[4];
} MmaOp;

/* wmma.mma of M x N x K. from and to: the types of the accumulators before and after. */
typedef struct WmmaOp {
    uint8_t m, n, k;
    uint8_t type, from, to; /* T_*; type: of the factors */
    uint8_t saturate;
    uint32_t d[8], a[8], b[8], c[8];
} WmmaOp;

/* wgmma.mma_async of 64 x N x K, of which a warp computes 16 rows. A register of an accumulator that is
 * T_F16 holds two of them. */
typedef struct WgmmaOp {
    int n, k;
    uint8_t n_c, a_type, b_type, acc_type; /* n_c: registers of the accumulators; T_* */
    uint8_t saturate, negated;
    uint8_t a_in_registers, a_transposed, b_transposed;
    uint32_t *c;              /* rows */
    uint32_t a[4];            /* rows; from shared memory a[0] is the descriptor's */
    uint32_t b;               /* row of the descriptor */
    uint32_t adds, adds_flip; /* predicate scale-d: adds to the accumulators */
    uint32_t wavefronts;      /* of a warp's share of the factors in shared memory */
    InstTraffic *traffic;
} WgmmaOp;

/* ---- a module ---- */

typedef struct Code {
    PtxModule ptx;
    Function *functions;            /* in the order of ptx.functions */
    unsigned char *pool32, *pool64; /* constants, replicated over the lanes */
    int n_pool32, n_pool64, cap_pool32, cap_pool64;
    unsigned char *const_bank; /* .const variables, const_bytes */
    uint32_t const_bytes;
    SharedGaps gaps;         /* between the shared variables of the module and of functions */
    int64_t pointer_targets; /* table entries of all calls through pointers */
    int64_t launch_cost;     /* charged for each launch and each block of a sample */
    int follow;              /* doubtful values are followed (memory/doubts.h) */
    int uses_proxy;          /* it has bulk copies or wgmma (memory/proxy.h) */
    int uses_grid;           /* it looks for the barrier of a grid (cooperative groups) */
    int uses_reserved;       /* the system's part of a block's shared memory (cooperative groups) */
} Code;

#endif
