/* Shared by the two halves of the PTX parser: ptx_parse.c (module, variables) and ptx_body.c
 * (functions' bodies). */
#ifndef EVAL_SIM_PTX_PTX_PARSER_H
#define EVAL_SIM_PTX_PTX_PARSER_H

#include "eval/sim/ptx/ptx.h"

enum { PTX_BUCKETS = 4096, PTX_MAX_DEPTH = 64 };

typedef struct PtxSymbol PtxSymbol;
struct PtxSymbol {
    const char *name;
    size_t len;
    int is_reg, is_range; /* %r<29>: a range */
    uint8_t cls, width;
    uint32_t first, count; /* registers */
    PtxVar *var;
    PtxSymbol *chain, *trail; /* in the bucket; declared before it */
};

typedef struct {
    PtxLexer lex;
    PtxModule *m;
    PtxFunction *fn; /* NULL at module level */
    int fn_index;
    Error *err;
    PtxSymbol *buckets[PTX_BUCKETS];
    PtxSymbol *trail; /* the latest symbol: leaving a scope drops back to a mark */
    int n_insts_total, n_vars;
    int cap_functions, cap_insts, cap_labels, cap_targets;
    uint32_t file, line, inlined_file, inlined_line; /* the last .loc */
} PtxParser;

typedef struct {
    const char *name;
    uint8_t bytes, width, cls; /* width: bits of the register that holds it */
} PtxType;

const PtxType *ptx_type(const PtxParser *p);  /* of the current token ".f32"; NULL: not a type */
int ptx_fail(PtxParser *p, const char *what); /* -1, with the line and the token */
int ptx_expect(PtxParser *p, const char *s);
int ptx_parse_variable(PtxParser *p, PtxSpace space,
                       PtxVar **out);                /* after ".global"; up to and with ';' */
int ptx_parse_parameter(PtxParser *p, PtxVar **out); /* after ".param", in a list */
int ptx_parse_body(PtxParser *p);                    /* at '{' */
int ptx_declare(PtxParser *p, PtxSymbol symbol);
const PtxSymbol *ptx_lookup(const PtxParser *p, const char *name, size_t len, uint32_t *reg);
void ptx_leave(PtxParser *p, const PtxSymbol *mark);
int ptx_skip_past(PtxParser *p, const char *s);
void *ptx_push(void *array, int *n, int *cap, size_t size); /* room for one more, zeroed */

#endif
