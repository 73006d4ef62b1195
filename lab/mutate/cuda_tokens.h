/* The tokens of a candidate's source: of its code, of the `//@` lines of its plan, and of #define lines.
 * Comments and other lines of the preprocessor have none. The text must outlive the
 * tokens. */
#ifndef LAB_MUTATE_CUDA_TOKENS_H
#define LAB_MUTATE_CUDA_TOKENS_H

#include <stddef.h>

typedef enum { TOKEN_NAME, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_SIGN } TokenKind;
typedef enum { IN_CODE = 1, IN_PLAN = 2, IN_MACRO = 4 } TokenPlace;

typedef struct {
    TokenKind kind;
    TokenPlace place;
    const char *text;
    size_t len;
    int line, column; /* from 1 */
    int mate;         /* of a bracket: the index of the other one; -1: none */
    int inside;       /* the index of the innermost bracket that is open here; -1: none */
} Token;

typedef struct {
    const char *text;
    Token *at;
    int n;
} Tokens;

/* Release in every case. */
void tokens_read(const char *text, Tokens *out);
void tokens_release(Tokens *t);

/* Token i is `word`. An index outside of the tokens is no word. */
int token_is(const Tokens *t, int i, const char *word);
/* Token i is one of the words, which stand between blanks: " < <= ". */
int token_among(const Tokens *t, int i, const char *words);
/* Token i is a name or a number. */
int token_is_word(const Tokens *t, int i);
/* The first token of the statement, directive or macro that has token i. */
int token_statement(const Tokens *t, int i);
/* One behind the last token of the operand that begins at i: it ends before a sign of `stops` or a bracket
 * that closes. */
int token_operand_end(const Tokens *t, int i, const char *stops);

#endif
