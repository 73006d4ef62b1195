/* Print a verdict, as text or as JSON. */
#ifndef EVAL_JUDGE_VERDICT_SHOW_H
#define EVAL_JUDGE_VERDICT_SHOW_H

#include <stdio.h>

#include "eval/judge/evaluator.h"

/* profile: print all checks, and all counters beside the baseline's. */
void show_text(FILE *out, const char *task, const Verdict *v, int profile);
/* A table of the steps and their milliseconds. */
void show_steps(FILE *out, const Verdict *v);
/* One JSON object on one line, with the milliseconds of each step where `steps` asks for them: they
 * differ from run to run, and nothing else does on a simulator. -1: it cannot be written. */
int show_json(FILE *out, const char *task, const Verdict *v, int steps, Error *err);

#endif
