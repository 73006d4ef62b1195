/* What the files of the decoder share. decode.c (the module) calls decode_layout.c and
 * decode_function.c; the latter calls decode_alu.c, decode_moves.c and the others for each
 * instruction, and these call decode_operand.c.
 *
 * Functions that return an int return 0, or -1 when the instruction is refused. */
#ifndef EVAL_SIM_DECODE_DECODE_INTERNAL_H
#define EVAL_SIM_DECODE_DECODE_INTERNAL_H

#include "eval/sim/assembler/assembler.h"
#include "eval/sim/exec/handlers.h"

typedef struct {
    const char *name;
    uint8_t type, bits, is_float, is_signed, packed; /* type: T_*; packed: x2 */
} ValueType;

/* How a basic block ends. */
typedef enum { END_FALL, END_BRANCH, END_COND, END_TABLE, END_RET, END_EXIT } BlockEnd;
/* Targets of branches that are not the index of a PTX instruction. */
enum { TARGET_EXIT = -1, TARGET_RET = -2, TARGET_UNKNOWN = -3 };
/* The extra block of guarded exits or returns. */
enum { BLOCK_NONE = -1, BLOCK_NEEDED = -2 };
/* Row codes are byte offsets of 31 bits. This many rows cannot overflow them. */
enum { FRAME_MAX_ROWS = 1 << 20 };

typedef struct {
    int first, last; /* instructions of the output; last: one behind the end */
    BlockEnd end;
    int target; /* END_BRANCH, END_COND: an instruction or TARGET_*, later a block */
    int n_table;
    int *table;    /* END_TABLE: targets, later blocks */
    int pure_exit; /* it only exits */
    int join;      /* a block, or -1 */
} BlockInfo;

typedef struct {
    Code *code;
    Function *f;
    const PtxFunction *p;
    const PtxInst *in; /* the current instruction */
    Inst *out;
    int n, cap;
    uint32_t mods_used; /* a bit per modifier of the current instruction */
    const char *why;    /* why the instruction is refused; NULL: it is unknown */
    uint32_t next32, next64, next_pred;
    BlockInfo *blocks;
    int n_blocks, cap_blocks;
    CodeBlock *costs; /* parallel to blocks */
    int cap_costs;
    int *block_of;                   /* PTX instruction -> block; n_insts + 1 entries */
    uint8_t *classes;                /* InstClass of each PTX instruction */
    uint16_t *latency;               /* of each: cycles until its result can be used */
    uint8_t *cost;                   /* of each PTX instruction, in parts of COST_WHOLE */
    int owed[INST_CLASS_COUNT];      /* the costs of the block that are not counted yet */
    uint8_t *accumulators;           /* 1 for each 32-bit register of wgmma; NULL: none */
    uint8_t *merged;                 /* of each atomic: ATOMIC_* */
    int exit_block, ret_block;       /* a block or BLOCK_* */
    struct Definedness *definedness; /* NULL: every register is set before it is read */
    /* of the current instruction; flops per thread */
    int inst_class, flops, expansion;
    int cycles;    /* until its result can be used; 0: as its class has */
    int repeats;   /* further executions on the pipe of its class */
    int mma_slots; /* of mma: flops of halves that take as long */
} Decoder;

/* ---- decode_operand.c ---- */

Inst *decode_emit(Decoder *d, Handler *fn); /* with the guard of the current instruction */
void decode_put(Decoder *d, Handler *fn,
                Inst with); /* the same, with the values of the others' members */
int decode_refuse(Decoder *d, const char *why); /* keeps the first reason; -1 */
int decode_has(Decoder *d, const char *mod);    /* 1: it has the modifier, which counts as used */
const ValueType *decode_type(Decoder *d);       /* uses the last unused type modifier; or NULL */
const PtxOperand *decode_operand(const Decoder *d, int i); /* NULL beyond the last */
/* Row codes of operands. bits: 16, 32 or 64. */
int decode_source(Decoder *d, int operand, int bits, uint32_t *row);
int decode_source_of(Decoder *d, const PtxOperand *o, int bits, uint32_t *row);
int decode_dest(Decoder *d, int operand, int bits, uint32_t *row);
/* Predicate indices. *flip: the mask that negates the predicate, or 0. */
int decode_pred(Decoder *d, int operand, uint32_t *pred, uint32_t *flip);
int decode_pred_dest(Decoder *d, const PtxOperand *o, uint32_t *pred);
uint32_t decode_const32(Code *c, uint32_t v);
uint32_t decode_const64(Code *c, uint64_t v);
uint32_t decode_temp32(Decoder *d);
uint32_t decode_temp64(Decoder *d);
uint32_t decode_temp_pred(Decoder *d);

/* ---- the instructions; each returns 1 when the current one is not among its own ---- */

/* An operation and what decodes it. */
typedef struct {
    const char *name;
    int (*fn)(Decoder *);
} DecodeOp;
int decode_among(Decoder *d, const DecodeOp *ops, size_t n);

int decode_alu(Decoder *d);
int decode_moves(Decoder *d);
int decode_memory(Decoder *d);
int decode_control(Decoder *d);
int decode_warp(Decoder *d);
int decode_mma(Decoder *d);
int decode_wmma(Decoder *d);
int decode_wgmma(Decoder *d);
int decode_cluster(Decoder *d);
int decode_mbarrier(Decoder *d);
int decode_bulk(Decoder *d); /* decode_mbarrier.c: cp.async.bulk */
/* Says why a bulk copy is unknown, also one that could not be parsed; NULL: it may be known. */
const char *decode_unknown_copy(const PtxInst *in);

/* decode_price.c: what the assembler makes of the current instruction, where a table has it */
void decode_price(Decoder *d);

/* decode_control.c: an instruction without an effect on results, with any modifiers */
int decode_nothing(Decoder *d);
/* decode_control.c: the PTX instruction behind a label of a scope; < 0: there is none */
int decode_label(const Decoder *d, const char *name, int scope);

/* decode_operand.c: a MemOp of the current instruction, which counts its accesses */
MemOp *decode_mem(Decoder *d);

/* decode_memory.c, for other memory instructions */
int decode_space(Decoder *d); /* uses the modifier; PtxSpace, SPACE_GENERIC without one */
/* Fills in the address of *mo. A generic access to a variable gets the variable's space. */
int decode_address(Decoder *d, const PtxOperand *o, MemOp *mo);
int decode_memory_class(int space, int kind); /* InstClass */
/* decode_mma.c: n registers of 32 or 64 bits */
int decode_fragment(Decoder *d, int operand, int n, int bits, uint32_t *rows);
int decode_fragment_dest(Decoder *d, int operand, int n, int bits, uint32_t *rows);
/* A product of doubles. rows: of the result */
int decode_mma_doubles(Decoder *d, int rows, int k);
/* Flops of halves that take as long as `flops` of factors of a type. */
int decode_mma_slots(int flops, int type);

/* decode_wgmma.c. Returns 1 for each 32-bit register that may hold an accumulator of wgmma, or NULL. */
uint8_t *wgmma_accumulators(const PtxFunction *p);
void wgmma_before(Decoder *d); /* emits the wait that the current instruction needs */

/* ---- decode_function.c, cfg.c, costs.c ---- */

void decode_function(Code *code, int index);
void cfg_joins(Decoder *d);  /* fills in the join of each block */
void costs_find(Decoder *d); /* fills in chains and waits of the blocks' costs */

/* ---- definedness.c ---- */

typedef struct Definedness Definedness;
/* Finds the registers that may have no value, and emits what marks them at the function's start.
 * leader: 1 for each PTX instruction at which a block starts. */
void definedness_find(Decoder *d, const unsigned char *leader);
/* Emit what follows undefined values through the current instruction. */
void definedness_before(Decoder *d);
void definedness_after(Decoder *d);
void definedness_release(Decoder *d);

/* ---- decode_layout.c ---- */

/* Parameters of functions, and the .param variables of calls, become 32-bit rows of the frame. */
void layout_frame(Function *f);
int layout_const(Code *c, Error *err);
/* Gives the shared variables of the module and of all functions their places. Returns the end. *last, which
 * is NULL before: the last one. */
uint64_t layout_shared(Code *c, const PtxVar **last);
/* Puts the kernel's own shared variables behind `at`, where `last` ends. */
void layout_entry_shared(Function *f, uint64_t at, const PtxVar *last);
/* Dynamic shared memory starts at one offset for the module, behind the largest static part. */
void layout_dynamic_shared(Code *c);

#endif
