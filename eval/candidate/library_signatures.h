/* The vendor library calls that a baseline's plan may name, and the kinds of their arguments. The
 * calls themselves are in eval/cuda/library. */
#ifndef EVAL_CANDIDATE_LIBRARY_SIGNATURES_H
#define EVAL_CANDIDATE_LIBRARY_SIGNATURES_H

#include <stdint.h>

/* The dtype of a call whose factors are float32 and may be rounded to TF32. */
enum { LIBRARY_TF32 = 3 };

/* kinds has one letter for each argument ("pppiii"): p is a pointer, d a double, i a size from 1 to
 * 2^31 - 1, z a size that may be 0, b an integer that is 0 or 1. */
typedef struct {
    const char *name, *kinds;
    int dtype; /* the argument that is the dtype of the factors; 0: there is none */
} LibrarySignature;

/* Makes the dtype argument of a call of float32 factors LIBRARY_TF32 where the libraries of `tf32` may
 * round (base/precision.h). */
void library_let_tf32(const LibrarySignature *s, unsigned tf32, uint64_t *dtype);

/* The signature of a call; NULL when there is no such call. */
const LibrarySignature *library_signature(const char *name);

#endif
