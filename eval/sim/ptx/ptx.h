/* PTX text to a tree: variables, functions, instructions with their operands resolved to registers
 * and variables. Nothing is executed here and nothing is judged: an instruction that cannot be
 * parsed is kept with `bad` set, so that only a kernel that contains it is refused. The text is
 * hostile: every count is bounded, every failure is an Error with the PTX line. */
#ifndef EVAL_SIM_PTX_PTX_H
#define EVAL_SIM_PTX_PTX_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Generic addresses: each space that is not global has a window of 4 GiB. */
#define SHARED_WINDOW 0x010000000000u
#define LOCAL_WINDOW 0x020000000000u
#define CONST_WINDOW 0x030000000000u
#define PARAM_WINDOW 0x040000000000u
#define CODE_WINDOW 0x050000000000u /* functions; reading there is a fault */
#define WINDOW_MASK 0xffff00000000u

enum {
    PTX_MAX_TEXT = 64 << 20,
    PTX_MAX_MODS = 16,
    PTX_MAX_FUNCTIONS = 4096,
    PTX_MAX_INSTS = 2 << 20, /* of a module */
    PTX_MAX_REGS = 1 << 16,  /* of a class in a function */
    PTX_MAX_VARS = 1 << 14,
    PTX_MAX_INIT = 64 << 20, /* bytes of one variable */
};

typedef enum {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_CONST,
    SPACE_PARAM
} PtxSpace;

/* 16-bit and 8-bit registers live zero-extended in 32-bit rows. */
typedef enum { REG_PRED, REG_32, REG_64, REG_128, REG_CLASSES } RegClass;

typedef struct PtxVar PtxVar;
struct PtxVar {
    const char *name;
    PtxSpace space;
    uint32_t align, element;   /* bytes of one element */
    uint64_t size;             /* bytes; 0 for extern arrays of unstated size */
    int is_extern, is_pointer; /* is_pointer: .ptr annotation of a kernel parameter, else -1 unknown
                                  for 8 bytes, 0 */
    uint64_t
        offset; /* in its space's frame (shared, local, parameter) or bank (const), once laid out */
    unsigned char *init; /* size bytes, or NULL */
    int n_relocs;        /* initialised with addresses of other variables */
    struct PtxReloc {
        uint64_t at;
        const char *name;
        int64_t addend;
        int generic;
    } * relocs;
    int owner;        /* function index, -1 module */
    uint64_t address; /* of a .global, once loaded */
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
    uint8_t kind;
    uint8_t negated;    /* !%p or -%r */
    uint8_t cls, width; /* OPND_REG: class and bits (1, 16, 32, 64) */
    uint32_t reg;       /* OPND_REG; OPND_ADDR with a register base */
    int n;              /* OPND_VEC, OPND_LIST: elements */
    PtxOperand *items;  /* their array; OPND_ADDR: items[0] is the base (REG, VAR, INT or NAME) */
    int64_t value;      /* OPND_INT, OPND_F32/64 bits; offset of OPND_VAR and OPND_ADDR */
    const PtxVar *var;
    const char *name; /* OPND_NAME: a label, a function; OPND_SPECIAL */
    PtxOperand *pair; /* d|p */
};

typedef struct {
    const char *text; /* the statement, text_len bytes, for messages */
    uint32_t text_len;
    const char *op;                 /* "ld" */
    const char *mods[PTX_MAX_MODS]; /* "global", "f32" */
    int n_mods, n_operands;
    PtxOperand *operands;
    int guard, guard_negated; /* predicate register or -1 */
    int line;                 /* of the source, 0 unknown */
    int ptx_line;
    int bad;                                   /* not parsed */
    uint32_t file, inlined_file, inlined_line; /* raw .loc */
} PtxInst;

typedef struct {
    const char *name;
    int inst; /* index of the instruction that follows */
} PtxLabel;

typedef struct {
    const char *name; /* .branchtargets of brx.idx */
    int n;
    const char **labels;
} PtxTargets;

typedef struct {
    const char *name;
    int is_entry, is_extern, defined;
    int address_taken; /* a call through a pointer may be of this one */
    int n_params, n_returns;
    PtxVar **params, **returns;
    uint32_t n_regs[REG_CLASSES];
    PtxInst *insts;
    int n_insts;
    PtxLabel *labels;
    int n_labels;
    PtxTargets *targets;
    int n_targets;
    PtxVar *vars;            /* local, shared and inner param variables, linked */
    uint32_t max_threads;    /* .maxntid or .reqntid product; 0 none */
    uint32_t cluster[3];     /* .reqnctapercluster; 0 none */
    uint32_t entry_loc_file; /* file of its first .loc */
} PtxFunction;

typedef struct {
    int version; /* 90 for 9.0 */
    char target[16];
    PtxVar *vars; /* of the module, linked in order */
    PtxFunction *functions;
    int n_functions;
    struct PtxArena *arena;
} PtxModule;

int ptx_parse(const char *text, size_t len, PtxModule *out, Error *err);
void ptx_release(PtxModule *m);

PtxFunction *ptx_find_function(const PtxModule *m, const char *name);
/* What a pointer to it holds, and that it is called through one from here on; 0: no function of
 * this name can be. */
uint64_t ptx_take_address(PtxModule *m, const char *name);
int ptx_function_at(const PtxModule *m, uint64_t address); /* its index; -1: no function is there */

/* A name as people wrote it: "_Z6helperfi" is shown as it is, without its parameters' list. */
int ptx_is_special(const char *name, size_t len);

/* Shared with the files of the parser. */
typedef struct PtxArena PtxArena;
PtxArena *ptx_arena_new(void);
void *ptx_arena_alloc(PtxArena *a, size_t bytes);
char *ptx_arena_text(PtxArena *a, const char *s, size_t len);
void ptx_arena_free(PtxArena *a);

typedef enum { TOK_END, TOK_IDENT, TOK_INT, TOK_F32, TOK_F64, TOK_TEXT, TOK_PUNCT } PtxTokenKind;

typedef struct {
    PtxTokenKind kind;
    const char *start;
    size_t len;
    uint64_t value; /* TOK_INT, bits of TOK_F32 and TOK_F64 */
    int line;
    int bad; /* a number that does not fit */
} PtxToken;

typedef struct {
    const char *text, *p, *end;
    int line;
    PtxToken tok; /* the current one */
} PtxLexer;

void ptx_lex_init(PtxLexer *l, const char *text, size_t len);
void ptx_lex_next(PtxLexer *l);
int ptx_lex_is(const PtxLexer *l, const char *s); /* current token is exactly this */
int ptx_lex_accept(PtxLexer *l, const char *s);   /* and skip it */

#endif
