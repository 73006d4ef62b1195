/* The parser's state and what its files share. The files call in one direction: ptx_parse.c (the
 * module) calls ptx_body.c (function bodies), both call ptx_variable.c, and all of them call
 * ptx_parser.c (errors, types, symbols).
 *
 * Functions that return an int return 0, or -1 with the Error set. */
#ifndef EVAL_SIM_PTX_PTX_PARSER_H
#define EVAL_SIM_PTX_PTX_PARSER_H

#include "eval/sim/ptx/ptx.h"
#include "eval/sim/ptx/ptx_lex.h"

enum { PTX_BUCKETS = 4096, PTX_MAX_DEPTH = 64 };

typedef struct PtxSymbol PtxSymbol;
struct PtxSymbol {
    const char *name;
    size_t len;
    int is_reg, is_range; /* is_range: %r<29> */
    uint8_t cls, width;
    uint32_t first, count; /* registers */
    PtxVar *var;
    PtxSymbol *chain; /* next in the bucket */
    PtxSymbol *trail; /* declared before it */
};

typedef struct {
    PtxLexer lex;
    PtxModule *m;
    PtxFunction *fn; /* NULL at module level */
    int fn_index;
    Error *err;
    PtxSymbol *buckets[PTX_BUCKETS];
    PtxSymbol *trail; /* the latest symbol */
    int n_insts_total, n_vars;
    int cap_functions, cap_insts, cap_labels, cap_targets, cap_scopes;
    int scope;                                       /* of the braces that are open */
    int rolled;                                      /* .pragma "nounroll" was the last directive */
    uint32_t file, line, inlined_file, inlined_line; /* of the last .loc */
} PtxParser;

typedef struct {
    const char *name;
    uint8_t bytes, width, cls; /* width: bits of the register that holds it */
} PtxType;

/* ptx_parser.c */
const PtxType *ptx_type(const PtxParser *p); /* of the current token, as ".f32"; NULL: not a type */
int ptx_fail(PtxParser *p, const char *what); /* -1; the Error names the line and the token */
int ptx_expect(PtxParser *p, const char *s);
int ptx_skip_past(PtxParser *p, const char *s); /* skips tokens up to and with s */
int ptx_parse_count(PtxParser *p, uint64_t max, uint64_t *out);
void ptx_declare(PtxParser *p, PtxSymbol symbol);
/* Returns NULL for an unknown name. *reg is the number of a register in its class. */
const PtxSymbol *ptx_lookup(const PtxParser *p, const char *name, size_t len, uint32_t *reg);
void ptx_leave(PtxParser *p, const PtxSymbol *mark); /* drops all symbols declared after mark */

/* ptx_variable.c */
/* Parses what follows ".global" and the like, past the ';'. *out is the last variable declared. */
int ptx_parse_variable(PtxParser *p, PtxSpace space, PtxVar **out);
int ptx_parse_parameter(PtxParser *p, PtxVar **out); /* what follows ".param" */

/* ptx_body.c */
int ptx_parse_body(PtxParser *p); /* from '{' past its '}' */

#endif
