/* Hints from a source's text, which are printed beside a refusal. A hint never changes a verdict. */
#ifndef EVAL_CANDIDATE_SOURCE_HINTS_H
#define EVAL_CANDIDATE_SOURCE_HINTS_H

#include "eval/candidate/candidate.h"
#include "tasks/task.h"

/* Finds the first word outside of comments and strings that only host code has: a launch "<<<",
 * main, a call of CUDA's runtime such as cudaMalloc, or PyTorch's bindings. Copies it to out and
 * returns its line from 1, or 0 when there is none. */
int host_code(const char *source, size_t len, char *out, size_t size);

/* Finds the first identifier of line `line` (from 1) whose nearest declaration at or above the line
 * has no initialiser, and copies it to out. Returns 1, or 0 when there is none. */
int undefined_name(const char *source, size_t len, int line, char *out, size_t size);

/* The first int64 input that a launch passes to a parameter whose declaration names a type of fewer bytes:
 * writes that declaration ("const int *labels"), and returns the input's index, or -1 where there is none. */
int wide_integers_narrowed(const Candidate *c, const Task *t, char *declaration, size_t size);

#endif
