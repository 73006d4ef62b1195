/* From the PTX tree to what the machine runs: registers to rows, operands to row codes, blocks with
 * their joins and costs. */
#ifndef EVAL_SIM_DECODE_DECODE_H
#define EVAL_SIM_DECODE_DECODE_H

#include "eval/sim/exec/handlers.h"
#include "eval/sim/machine/machine.h"

/* Takes over *ptx. The addresses of .global variables must be set. Kernels that contain what is not
 * known are marked. */
int code_build(PtxModule *ptx, Code *out, Error *err);
void code_release(Code *c);
Function *code_find_entry(Code *c, const char *name);

/* ---- between the decoder's files ---- */

typedef struct {
    const char *name;
    uint8_t type, bits, is_float, is_signed, packed; /* type: T_*; packed: x2 */
} ValueType;

enum { END_FALL, END_BRANCH, END_COND, END_TABLE, END_RET, END_EXIT };

typedef struct {
    int first, last; /* instructions of the output */
    int end, target; /* how it ends; a block */
    int n_table;
    int *table;          /* END_TABLE: blocks */
    int pure_exit, join; /* join: a block or -1 */
} BlockInfo;

typedef struct {
    Code *code;
    Function *f;
    const PtxFunction *p;
    const PtxInst *in;
    Inst *out;
    int n, cap;
    uint32_t mods_used;
    const char *why; /* why the instruction was refused; NULL: not known at all */
    uint32_t next32, next64, next_pred;
    BlockInfo *blocks;
    int n_blocks, cap_blocks;
    CodeBlock *costs; /* parallel to blocks */
    int cap_costs;
    int *block_of;             /* PTX instruction -> block; n_insts + 1 entries */
    uint8_t *classes;          /* of each PTX instruction: InstClass */
    int exit_block, ret_block; /* wanted by guarded exits: -1 none, -2 wanted */
    int inst_class;            /* of the current instruction */
    int flops, expansion;
} Decoder;

Inst *decode_emit(Decoder *d, Handler *fn);     /* with the guard of the current instruction */
int decode_has(Decoder *d, const char *mod);    /* and takes it */
const ValueType *decode_type(Decoder *d);       /* the last type not yet taken */
int decode_refuse(Decoder *d, const char *why); /* -1 */
int decode_source(Decoder *d, int operand, int bits, uint32_t *row); /* bits 16, 32, 64 */
int decode_source_of(Decoder *d, const PtxOperand *o, int bits, uint32_t *row);
int decode_dest(Decoder *d, int operand, int bits, uint32_t *row);
int decode_pred(Decoder *d, int operand, uint32_t *pred, uint32_t *flip);
int decode_pred_dest(Decoder *d, const PtxOperand *o, uint32_t *pred);
uint32_t decode_const32(Code *c, uint32_t v);
uint32_t decode_const64(Code *c, uint64_t v);
uint32_t decode_temp32(Decoder *d);
uint32_t decode_temp64(Decoder *d);
uint32_t decode_temp_pred(Decoder *d);
const PtxOperand *decode_operand(const Decoder *d, int i); /* NULL beyond the last */

int decode_space(Decoder *d); /* takes it: PtxSpace */
int decode_address(Decoder *d, const PtxOperand *o,
                   MemOp *mo); /* its space may follow from a variable */
int decode_memory_class(int space, int kind);
int decode_fragment(Decoder *d, int operand, int n, uint32_t *rows,
                    int is_dest); /* registers of 32 bits */

/* Each decodes the current instruction: 0, -1 refused, 1 not one of its. */
int decode_alu(Decoder *d);
int decode_moves(Decoder *d);
int decode_memory(Decoder *d);
int decode_control(Decoder *d);
int decode_mma(Decoder *d);
int decode_wmma(Decoder *d);
int decode_mbarrier(Decoder *d);

/* cfg.c */
void cfg_joins(Decoder *d);
void cfg_costs(Decoder *d);

#endif
