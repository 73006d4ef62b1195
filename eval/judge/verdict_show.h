/* A verdict for people and for scripts. */
#ifndef EVAL_JUDGE_VERDICT_SHOW_H
#define EVAL_JUDGE_VERDICT_SHOW_H

#include <stdio.h>

#include "eval/judge/evaluator.h"

/* profile: all counters, beside the baseline's. */
void show_text(FILE *out, const char *task, const Verdict *v, int profile);
int show_json(FILE *out, const char *task, const Verdict *v, Error *err); /* one object, one line */

#endif
