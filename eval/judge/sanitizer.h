/* The simulator as the sanitizer of kernels that a GPU has judged: it executes their check workloads
 * on the host, with every access checked, and leaves the GPU alone. */
#ifndef EVAL_JUDGE_SANITIZER_H
#define EVAL_JUDGE_SANITIZER_H

#include "eval/judge/judgement.h"

/* For candidates compiled for an architecture ("sm_90"). NULL when no profile of the simulator has
 * it. Nothing is opened before the first check. */
Sanitizer *sanitizer_new(const char *arch);
void sanitizer_free(Sanitizer *s);

/* The step: runs the checks of a candidate on the simulator, with the code that j has compiled. A
 * race, a value or memory without contents, an access out of bounds and a barrier that not all
 * reach are findings: returns 1. Whatever else ends the run says that the check could not be made:
 * 0, with a line in the verdict. -1: the host failed. The GPU is idle meanwhile, and may serve
 * other processes. */
int step_sanitize(Judgement *j);

#endif
