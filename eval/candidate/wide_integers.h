/* A common cause of wrong results: an input of 8-byte integers that a kernel reads as int. */
#ifndef EVAL_CANDIDATE_WIDE_INTEGERS_H
#define EVAL_CANDIDATE_WIDE_INTEGERS_H

#include "eval/candidate/candidate.h"
#include "tasks/task.h"

/* The first int64 input that a launch passes to a parameter whose declaration names a type of fewer bytes:
 * writes that declaration ("const int *labels"), and returns the input's index, or -1 where there is none. */
int wide_integers_narrowed(const Candidate *c, const Task *t, char *declaration, size_t size);

#endif
