/* The vendor library calls that a baseline's plan may name, and the kinds of their arguments. The
 * calls themselves are in eval/cuda/library. */
#ifndef EVAL_CANDIDATE_LIBRARY_SIGNATURES_H
#define EVAL_CANDIDATE_LIBRARY_SIGNATURES_H

/* kinds has one letter for each argument ("pppiii"): p is a pointer, d a double, i a size from 1 to
 * 2^31 - 1, z a size that may be 0, b an integer that is 0 or 1. */
typedef struct {
    const char *name, *kinds;
} LibrarySignature;

/* The signature of a call; NULL when there is no such call. */
const LibrarySignature *library_signature(const char *name);

#endif
