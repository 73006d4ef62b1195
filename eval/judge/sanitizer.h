/* The simulator as the sanitizer of kernels that a GPU has judged: it executes their check workloads
 * on the host, with every access checked, and leaves the GPU alone. */
#ifndef EVAL_JUDGE_SANITIZER_H
#define EVAL_JUDGE_SANITIZER_H

#include "eval/judge/checks.h"

typedef struct Sanitizer Sanitizer;

/* For candidates compiled for an architecture ("sm_90"). *out is NULL when no profile of the
 * simulator has it. Nothing is opened before the first check. */
Sanitizer *sanitizer_new(const char *arch);
void sanitizer_free(Sanitizer *s);

/* Run checks_run of a candidate that `l` has compiled. A race, a value or memory without contents, an
 * access out of bounds and a barrier that not all reach are findings: returns 1. Whatever else ends
 * the run says that the check could not be made: 0, with a line in *passed. -1: the host failed. */
int sanitizer_check(Sanitizer *s, const Loaded *l, Compiler *compiler, uint64_t seed,
                    ChecksPassed *passed, Finding *f, Error *err);

#endif
