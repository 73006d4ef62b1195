/* The vendor library calls that a baseline's plan may name, and the kinds of their arguments. The
 * calls themselves are in eval/cuda/library. */
#ifndef EVAL_CANDIDATE_LIBRARY_SIGNATURES_H
#define EVAL_CANDIDATE_LIBRARY_SIGNATURES_H

/* kinds: one letter an argument ("pppiii"): p a pointer, d a double, else an integer: i a size from
 * 1 to 2^31 - 1, z a size that may be 0, b 0 or 1. */
typedef struct {
    const char *name, *kinds;
} LibrarySignature;

/* NULL: there is no such call. */
const LibrarySignature *library_signature(const char *name);

#endif
