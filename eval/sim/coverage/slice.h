/* The part of a kernel that decides where it stores to global memory: the backward slice of the addresses and
 * guards of its stores, and of the branches that lead there. In most kernels it has no loads.
 *
 * Registers of the slice are numbered; a register that no instruction of the slice writes has none. The slice
 * is flow-insensitive: every definition of a register that is needed is part of it, with its branches. */
#ifndef EVAL_SIM_COVERAGE_SLICE_H
#define EVAL_SIM_COVERAGE_SLICE_H

#include "eval/sim/ptx/ptx_flow.h"

typedef enum {
    OP_UNKNOWN, /* the destinations have no known value */
    OP_MOVE,
    OP_CONVERT, /* between integers: from `from_bits` to `bits` */
    OP_ADD,
    OP_SUB,
    OP_MUL, /* the low half */
    OP_MUL_HIGH,
    OP_MUL_WIDE, /* from `from_bits` to `bits` */
    OP_MAD,
    OP_MAD_WIDE,
    OP_SHL,
    OP_SHR,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_NOT,
    OP_NEG,
    OP_ABS,
    OP_MIN,
    OP_MAX,
    OP_DIV,
    OP_REM,
    OP_COMPARE, /* k: SliceCompare; with three sources combined by `combine` */
    OP_SELECT,
    OP_PACK,       /* two halves of `from_bits` */
    OP_UNPACK,     /* into two halves of `bits` */
    OP_PARAM,      /* of the kernel, `from_bits` from `offset` on */
    OP_EXTRACT,    /* bfe */
    OP_INSERT,     /* bfi */
    OP_STORE,      /* `bytes` at source 0 + offset; no source: an unknown address */
    OP_STORE_RUN,  /* source 1: how many bytes */
    OP_STORE_TILE, /* of a warp: `rows` times `bytes`; source 1, if any: elements between them */
    OP_STORE_BOX   /* by the tensor map at source 0; sources from 1 on: the coordinates */
} SliceOp;

enum { SLICE_SOURCES = 6 };
typedef enum { IS_EQ, IS_NE, IS_LT, IS_LE, IS_GT, IS_GE } SliceCompare;
typedef enum { COMBINE_NOT, COMBINE_WITH_AND, COMBINE_WITH_OR, COMBINE_WITH_XOR } SliceCombine;
typedef enum { SOURCE_NONE, SOURCE_REGISTER, SOURCE_CONSTANT, SOURCE_SPECIAL } SliceSourceKind;

typedef struct {
    uint8_t kind, negated; /* negated: a predicate */
    int slot;              /* SOURCE_REGISTER */
    uint64_t value;        /* SOURCE_CONSTANT, or a PtxSpecial */
} SliceSource;

typedef struct {
    uint8_t op, bits, from_bits, is_signed;
    uint8_t k,
        combine; /* k of a store: the bytes of an element; of an or: its sign or high half matters */
    uint8_t n_dests, n_sources;
    int dests[4]; /* slots; -1: unused */
    SliceSource sources[SLICE_SOURCES], guard;
    int64_t offset;
    uint32_t bytes, rows;
    int inst; /* the PTX instruction */
} SliceInst;

/* A branch that is not needed goes on at the join. */
typedef struct {
    int first, last; /* instructions of the slice */
    FlowEnd end;
    int target;       /* a block, or the number of blocks: the exit */
    int join;         /* the block where both paths meet, or the exit */
    int is_needed;    /* the branch */
    int n_insts;      /* of the PTX, in the slice or not */
    SliceSource when; /* the branch is taken */
} SliceBlock;

typedef struct {
    const PtxFunction *f;
    SliceBlock *blocks;
    int n_blocks;
    SliceInst *insts;
    int n_insts, n_slots;
    const char *why; /* not NULL: why the kernel has no slice */
} Slice;

/* A slice of a kernel decides where the kernel accesses global memory, or which of its instructions run. An
 * atomic both changes and reads earlier contents; an exchange stores. SLICE_CHANGES: stores and atomics.
 * SLICE_CHOICES: branches, and the predicates by which values are selected and instructions guarded. */
typedef enum { SLICE_STORES, SLICE_LOADS, SLICE_CHANGES, SLICE_BRANCHES, SLICE_CHOICES } SliceKind;

/* Of the accesses of a kind whose address may come from the parameters of `where` (slice_bases.h), or of all
 * branches (and choices). */
Slice *slice_new(const PtxModule *m, const PtxFunction *f, uint64_t where, SliceKind kind);
void slice_free(Slice *s);

#endif
