/* The tokens of PTX text. */
#ifndef EVAL_SIM_PTX_PTX_LEX_H
#define EVAL_SIM_PTX_PTX_LEX_H

#include <stddef.h>
#include <stdint.h>

typedef enum { TOK_END, TOK_IDENT, TOK_INT, TOK_F32, TOK_F64, TOK_TEXT, TOK_PUNCT } PtxTokenKind;

typedef struct {
    PtxTokenKind kind;
    const char *start; /* in the text */
    size_t len;
    uint64_t value; /* TOK_INT; the bits of TOK_F32 and TOK_F64 */
    int line;       /* of the PTX text, from 1 */
    int bad;        /* a number that does not fit, or a string that does not end */
} PtxToken;

typedef struct {
    const char *text, *p, *end;
    int line;
    PtxToken tok; /* the current token */
} PtxLexer;

/* Starts at the first token. The text must outlive the lexer. */
void ptx_lex_init(PtxLexer *l, const char *text, size_t len);
void ptx_lex_next(PtxLexer *l);
int ptx_lex_is(const PtxLexer *l, const char *s); /* is the current token exactly s? */
int ptx_lex_accept(PtxLexer *l, const char *s);   /* skips the current token if it is s */

#endif
