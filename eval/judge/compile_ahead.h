/* Compiles the kernels of a task's baseline and references at the timed sizes, before the first verdict
 * needs them. The compiler's cache on disk keeps the code. On an H200 this compilation takes 0.5 s of the 2 s
 * of a first verdict (docs/measurements/evaluator.md). */
#ifndef EVAL_JUDGE_COMPILE_AHEAD_H
#define EVAL_JUDGE_COMPILE_AHEAD_H

#include "eval/judge/loaded.h"

/* For a GPU of this architecture that has room for what fits 80 GB. What fails here fails in the verdict. */
void compile_ahead(Compiler *c, const char *arch, Task *t);

#endif
