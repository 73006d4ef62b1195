/* The two large members of a tokenizer.json, model.vocab and model.merges, read where they lie: as
 * JSON values they would take more than half of the time that loading a vocabulary of 150,000
 * tokens takes. */
#ifndef MODEL_VOCABULARY_H
#define MODEL_VOCABULARY_H

#include "model/tokenizer/bpe.h"

typedef struct {
    const char *text; /* of the value, with its brackets; NULL: the document has no such member */
    size_t len, items;
} JsonSpan;

/* Find both in a document and append the document without them ({} and [] in their places) to rest.
 * 0, or -1 where the document is no JSON. The spans' brackets are matched, what is within is not
 * checked yet. */
int vocabulary_cut(const char *text, size_t len, Buffer *rest, JsonSpan *vocab, JsonSpan *merges);

/* Tokens, then merges ("a b" or ["a","b"]), into t; everything is checked as the hostile input that
 * it may be. */
int vocabulary_read(Tokenizer *t, const JsonSpan *vocab, const JsonSpan *merges, Error *err);

#endif
