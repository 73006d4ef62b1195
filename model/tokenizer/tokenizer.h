/* BPE in the tokenizer.json format, byte-level or of characters with tokens for single bytes, and the
 * training of a vocabulary. Plain text never becomes a special token; chats are built by
 * concatenating special ids and encoded text. */
#ifndef MODEL_TOKENIZER_H
#define MODEL_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct Tokenizer Tokenizer;

int tokenizer_load(const char *path, Tokenizer **out, Error *err); /* reads a tokenizer.json */
int tokenizer_save(const Tokenizer *t, const char *path, Error *err);
void tokenizer_free(Tokenizer *t);

typedef struct {
    const char *const *texts;
    const size_t *lens;
    size_t n;
} Corpus;

typedef struct {
    int size;                    /* tokens: 256 bytes + merges + specials */
    int lines;                   /* whole lines as pieces; else the pre-tokenizer of Qwen2 */
    const char *const *specials; /* added last, in order */
    int n_specials;
} VocabularyOptions;

/* Learn merges until the vocabulary has its size. The most frequent pair is merged first, and among
 * equal counts the pair of smaller ids, so that equal texts give an equal tokenizer.json. */
int tokenizer_train(const Corpus *c, const VocabularyOptions *o, Tokenizer **out, Error *err);

int tokenizer_size(const Tokenizer *t);                      /* ids are 0..size-1 */
int tokenizer_special(const Tokenizer *t, const char *name); /* id, or -1 */
int tokenizer_is_text(const Tokenizer *t, int id);           /* a token, but not a special one */

/* Token ids, which grow. They begin as {0}; the caller frees ids. */
typedef struct {
    int32_t *ids;
    size_t n, cap;
} TokenIds;

/* Returns the place of the next id, with room for `more`. */
int32_t *token_ids_room(TokenIds *v, size_t more);
/* Append the ids of a text that begins a sequence. Invalid UTF-8 becomes U+FFFD. */
int tokenizer_encode(const Tokenizer *t, const char *text, size_t len, TokenIds *out, Error *err);
/* The same of a text that ids stand before: some tokenizers put a blank in front of the first one. */
int tokenizer_encode_on(const Tokenizer *t, const char *text, size_t len, TokenIds *out,
                        Error *err);
/* Append the bytes of ids to out, without those of special tokens. */
int tokenizer_decode(const Tokenizer *t, const int32_t *ids, size_t n, Buffer *out, Error *err);

#endif
