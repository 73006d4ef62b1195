/* What the first verdict of a task needs beside its candidate, compiled before: the baseline's kernels and
 * those of the references, at the timed sizes. It takes 0.5 s of the 2 s of such a verdict on an H200
 * (docs/measurements/evaluator.md). The compiler's cache on disk keeps them. */
#ifndef EVAL_JUDGE_COMPILE_AHEAD_H
#define EVAL_JUDGE_COMPILE_AHEAD_H

#include "eval/judge/loaded.h"

/* For a GPU of this architecture that has room for what fits 80 GB. What fails here fails in the verdict. */
void compile_ahead(Compiler *c, const char *arch, Task *t);

#endif
