/* Host code in a source that must be device code only. */
#ifndef EVAL_CANDIDATE_HOST_CODE_H
#define EVAL_CANDIDATE_HOST_CODE_H

#include <stddef.h>

/* Finds the first word outside of comments and strings that only host code has: a launch "<<<",
 * main, a call of CUDA's runtime such as cudaMalloc, or PyTorch's bindings. Copies it to out and
 * returns its line from 1, or 0 when there is none. The source is read as text: the word is help for
 * a reader, never a verdict. */
int host_code(const char *source, size_t len, char *out, size_t size);

#endif
