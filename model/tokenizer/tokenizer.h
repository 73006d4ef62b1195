/* Byte-level BPE in the tokenizer.json format: exactly the pipelines of Qwen2 and Llama-3, and the
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

/* Learn merges until there are vocab_size tokens (256 bytes + merges + specials), with the
 * pre-tokenizer of Qwen2 or, with `lines`, with whole lines as pieces. The most frequent pair is
 * merged first, and among equal counts the pair of smaller ids, so that equal texts give an equal
 * tokenizer.json. specials are added last, in order. */
int tokenizer_train(const char *const *texts, const size_t *lens, size_t n, int vocab_size,
                    int lines, const char *const *specials, int n_specials, Tokenizer **out,
                    Error *err);

int tokenizer_size(const Tokenizer *t);                      /* ids are 0..size-1 */
int tokenizer_special(const Tokenizer *t, const char *name); /* id, or -1 */
int tokenizer_is_text(const Tokenizer *t, int id);           /* a token, but not a special one */
/* Append ids (int32) to *ids, which grows; the caller frees it. Invalid UTF-8 becomes U+FFFD. */
int tokenizer_encode(const Tokenizer *t, const char *text, size_t len, int32_t **ids, size_t *n,
                     Error *err);
/* Append the bytes of ids to out. Special tokens are skipped unless keep_special. */
int tokenizer_decode(const Tokenizer *t, const int32_t *ids, size_t n, int keep_special,
                     Buffer *out, Error *err);

#endif
