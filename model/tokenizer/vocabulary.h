/* The two large members of a tokenizer.json, model.vocab and model.merges, read directly from the
 * text. As JSON values they would take more than half of the loading time of a vocabulary of
 * 150,000 tokens. */
#ifndef MODEL_VOCABULARY_H
#define MODEL_VOCABULARY_H

#include "model/tokenizer/bpe.h"

typedef struct {
    const char *text; /* the value with its brackets; NULL: the document has no such member */
    size_t len, items;
} JsonSpan;

/* Find both members in a document, and append the document without them ({} and [] in their places)
 * to rest. Returns 0, or -1 if the document is not JSON. The brackets of the spans are matched, but
 * their contents are not checked yet. */
int vocabulary_cut(const char *text, size_t len, Buffer *rest, JsonSpan *vocab, JsonSpan *merges);

/* Read tokens, then merges ("a b" or ["a","b"]), into t. The text is untrusted and is checked
 * completely. */
int vocabulary_read(Tokenizer *t, const JsonSpan *vocab, const JsonSpan *merges, Error *err);

#endif
