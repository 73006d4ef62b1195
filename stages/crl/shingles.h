/* How alike two kernels are: the shingles of a source are its runs of SHINGLE tokens. Comments and
 * blanks do not count; numbers are one token, and so are names that are no function's, no keyword's
 * and no built-in's, so that neither renaming nor other sizes hide a copy. */
#ifndef STAGES_CRL_SHINGLES_H
#define STAGES_CRL_SHINGLES_H

#include <stddef.h>
#include <stdint.h>

enum { SHINGLE = 4 };

typedef struct {
    uint64_t *hash; /* sorted, each once */
    size_t n;
} Shingles;

void shingles_make(const char *source, Shingles *out);
void shingles_release(Shingles *s);
/* The share of the shingles of both that are in both (Jaccard); 0 when neither has any. */
double shingles_similarity(const Shingles *a, const Shingles *b);

#endif
