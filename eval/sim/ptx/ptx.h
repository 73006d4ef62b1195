/* PTX text to a tree: variables, functions, and instructions whose operands are resolved to
 * registers and variables. The parser executes nothing and judges nothing: an instruction that it
 * cannot parse is kept with `bad` set, so that only a kernel that contains it is refused. The text
 * is hostile: every count is bounded, and every failure is an Error with the PTX line. */
#ifndef EVAL_SIM_PTX_PTX_H
#define EVAL_SIM_PTX_PTX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "eval/sim/ptx/ptx_arena.h"

/* Generic addresses: each space but the global one has a window of 4 GiB. */
#define SHARED_WINDOW 0x010000000000u
#define LOCAL_WINDOW 0x020000000000u
#define CONST_WINDOW 0x030000000000u
#define PARAM_WINDOW 0x040000000000u
#define CODE_WINDOW 0x050000000000u /* functions; an access there is a fault */
#define WINDOW_MASK 0xffff00000000u

enum {
    PTX_MAX_TEXT = 64 << 20, /* bytes */
    PTX_MAX_MODS = 16,       /* of an instruction */
    PTX_MAX_FUNCTIONS = 4096,
    PTX_MAX_INSTS = 2 << 20, /* of a module */
    PTX_MAX_REGS = 1 << 16,  /* of one class in a function */
    PTX_MAX_VARS = 1 << 14,
    PTX_MAX_INIT = 64 << 20, /* bytes of one initialised variable */
    PTX_MAX_ALIGN = 64 << 10,
};

typedef enum {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_CONST,
    SPACE_PARAM
} PtxSpace;

/* The special registers that the simulator has. */
#define PTX_SPECIALS(X)                              \
    X(TID_X, "%tid.x")                               \
    X(TID_Y, "%tid.y")                               \
    X(TID_Z, "%tid.z")                               \
    X(NTID_X, "%ntid.x")                             \
    X(NTID_Y, "%ntid.y")                             \
    X(NTID_Z, "%ntid.z")                             \
    X(CTAID_X, "%ctaid.x")                           \
    X(CTAID_Y, "%ctaid.y")                           \
    X(CTAID_Z, "%ctaid.z")                           \
    X(NCTAID_X, "%nctaid.x")                         \
    X(NCTAID_Y, "%nctaid.y")                         \
    X(NCTAID_Z, "%nctaid.z")                         \
    X(LANEID, "%laneid")                             \
    X(WARPID, "%warpid")                             \
    X(NWARPID, "%nwarpid")                           \
    X(SMID, "%smid")                                 \
    X(NSMID, "%nsmid")                               \
    X(GRIDID, "%gridid")                             \
    X(CLOCK, "%clock")                               \
    X(CLOCK_HI, "%clock_hi")                         \
    X(CLOCK64, "%clock64")                           \
    X(GLOBALTIMER, "%globaltimer")                   \
    X(GLOBALTIMER_LO, "%globaltimer_lo")             \
    X(GLOBALTIMER_HI, "%globaltimer_hi")             \
    X(LANEMASK_EQ, "%lanemask_eq")                   \
    X(LANEMASK_LE, "%lanemask_le")                   \
    X(LANEMASK_LT, "%lanemask_lt")                   \
    X(LANEMASK_GE, "%lanemask_ge")                   \
    X(LANEMASK_GT, "%lanemask_gt")                   \
    X(DYNAMIC_SMEM_SIZE, "%dynamic_smem_size")       \
    X(TOTAL_SMEM_SIZE, "%total_smem_size")           \
    X(AGGR_SMEM_SIZE, "%aggr_smem_size")             \
    X(WARP_SIZE, "WARP_SZ")                          \
    X(RESERVED_BEGIN, "%reserved_smem_offset_begin") \
    X(RESERVED_0, "%reserved_smem_offset_0")         \
    X(RESERVED_1, "%reserved_smem_offset_1")         \
    X(RESERVED_END, "%reserved_smem_offset_end")     \
    X(RESERVED_CAP, "%reserved_smem_offset_cap")     \
    X(ENVREG1, "%envreg1")                           \
    X(ENVREG2, "%envreg2")                           \
    X(CLUSTERID_X, "%clusterid.x")                   \
    X(CLUSTERID_Y, "%clusterid.y")                   \
    X(CLUSTERID_Z, "%clusterid.z")                   \
    X(NCLUSTERID_X, "%nclusterid.x")                 \
    X(NCLUSTERID_Y, "%nclusterid.y")                 \
    X(NCLUSTERID_Z, "%nclusterid.z")                 \
    X(CLUSTER_CTAID_X, "%cluster_ctaid.x")           \
    X(CLUSTER_CTAID_Y, "%cluster_ctaid.y")           \
    X(CLUSTER_CTAID_Z, "%cluster_ctaid.z")           \
    X(CLUSTER_NCTAID_X, "%cluster_nctaid.x")         \
    X(CLUSTER_NCTAID_Y, "%cluster_nctaid.y")         \
    X(CLUSTER_NCTAID_Z, "%cluster_nctaid.z")         \
    X(IS_EXPLICIT_CLUSTER, "%is_explicit_cluster")   \
    X(CLUSTER_CTARANK, "%cluster_ctarank")           \
    X(CLUSTER_NCTARANK, "%cluster_nctarank")

typedef enum {
#define X(id, name) SPECIAL_##id,
    PTX_SPECIALS(X)
#undef X
        SPECIAL_COUNT
} PtxSpecial;

/* 16-bit and 8-bit registers are kept zero-extended in 32-bit rows. */
typedef enum { REG_PRED, REG_32, REG_64, REG_128, REG_CLASSES } RegClass;

typedef struct PtxVar PtxVar;
struct PtxVar {
    const char *name;
    PtxSpace space;
    uint32_t align, element; /* bytes; of one element */
    uint64_t size;           /* bytes; 0 for an extern array of unstated size */
    int is_extern;
    int is_pointer;      /* of a kernel parameter: 1 with .ptr, -1 unknown (8 bytes), 0 no */
    uint64_t offset;     /* bytes, once laid out: in its frame, bank or block's shared memory */
    unsigned char *init; /* size bytes, or NULL */
    int n_relocs;        /* addresses of other variables and functions in init */
    struct PtxReloc {
        uint64_t at; /* byte offset in init */
        const char *name;
        int64_t addend;
        int generic;
    } * relocs;
    int owner;        /* index of the function; -1: the module */
    uint64_t address; /* of a .global variable, once loaded */
    PtxVar *next;
};

typedef enum {
    OPND_REG,
    OPND_SPECIAL,
    OPND_INT,
    OPND_F32,
    OPND_F64,
    OPND_VAR,
    OPND_NAME,
    OPND_ADDR,
    OPND_VEC,
    OPND_LIST,
    OPND_SINK
} PtxOperandKind;

typedef struct PtxOperand PtxOperand;
struct PtxOperand {
    uint8_t kind;       /* PtxOperandKind */
    uint8_t negated;    /* !%p or -%r */
    uint8_t cls, width; /* OPND_REG: RegClass and bits (1, 16, 32, 64) */
    uint32_t reg;       /* OPND_REG */
    int n;              /* OPND_VEC, OPND_LIST: elements */
    PtxOperand *items;  /* the elements; OPND_ADDR: items[0] is the base (REG, VAR, INT or NAME) */
    int64_t value;      /* OPND_INT, bits of OPND_F32 and OPND_F64, offset of OPND_VAR and
                           OPND_ADDR, PtxSpecial of OPND_SPECIAL */
    const PtxVar *var;  /* OPND_VAR */
    const char *name;   /* OPND_NAME: a label or a function */
    PtxOperand *pair;   /* the second destination of d|p */
};

typedef struct {
    const char *text; /* the statement, text_len bytes, for messages */
    uint32_t text_len;
    const char *op;                 /* "ld" */
    const char *mods[PTX_MAX_MODS]; /* "global", "f32" */
    int n_mods, n_operands;
    PtxOperand *operands;
    int guard, guard_negated; /* predicate register; -1: no guard */
    int line;                 /* of the CUDA source; 0 unknown */
    int ptx_line;
    int scope;                                 /* the braces around it, an index of scopes */
    int bad;                                   /* it could not be parsed */
    int rolled;                                /* .pragma "nounroll" stands before it */
    uint32_t file, inlined_file, inlined_line; /* from the .loc before it */
} PtxInst;

typedef struct {
    const char *name;
    int scope;
    int inst; /* index of the instruction that follows */
} PtxLabel;

/* .branchtargets: the table of a brx.idx. */
typedef struct {
    const char *name;
    int scope;
    int n;
    const char **labels;
} PtxTargets;

typedef struct {
    const char *name;
    int is_entry, is_extern, defined;
    int address_taken; /* a call through a pointer may reach it */
    int n_params, n_returns;
    PtxVar **params, **returns;
    uint32_t n_regs[REG_CLASSES];
    PtxInst *insts;
    int n_insts;
    PtxLabel *labels;
    int n_labels;
    PtxTargets *targets;
    int n_targets;
    int *scopes; /* the braces around each pair of braces; scopes[0], the body: -1 */
    int n_scopes;
    PtxVar *vars;            /* list of local, shared and inner param variables */
    uint32_t max_threads;    /* product of .maxntid or .reqntid; 0 none */
    uint32_t cluster[3];     /* .reqnctapercluster; 0 none */
    uint32_t entry_loc_file; /* file of its first .loc */
} PtxFunction;

typedef struct {
    int version; /* 90 for 9.0 */
    char target[16];
    PtxVar *vars; /* list of the module's variables, in the order of the text */
    PtxFunction *functions;
    int n_functions;
    PtxArena *arena;
} PtxModule;

/* Parses a copy of the text. On success the caller releases *out; on failure there is nothing to
 * release. */
int ptx_parse(const char *text, size_t len, PtxModule *out, Error *err);
void ptx_release(PtxModule *m);

int ptx_has_mod(const PtxInst *in, const char *mod);
/* Most names differ in their first letter. */
static inline int ptx_same(const char *a, const char *b)
{
    return *a == *b && !strcmp(a, b);
}

/* The label, or the table of targets, that a name means inside a scope. -1: none. */
int ptx_find_label(const PtxFunction *f, const char *name, int scope);
int ptx_find_targets(const PtxFunction *f, const char *name, int scope);
PtxFunction *ptx_find_function(const PtxModule *m, const char *name); /* NULL: not in the module */
/* Returns the address of a function and marks the function as called through a pointer. Returns 0
 * when no defined function that is not a kernel has this name. */
uint64_t ptx_take_address(PtxModule *m, const char *name);
/* Returns the index of the function at an address of ptx_take_address; -1: there is none. */
int ptx_function_at(const PtxModule *m, uint64_t address);

int ptx_differs_by_lane(PtxSpecial s); /* the lanes of a warp have values of their own */
int ptx_has_dest(const PtxInst *in);   /* 1: its first operand is the destination */

#endif
