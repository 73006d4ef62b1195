/* The first candidate of a process: what does not need the device is done while it opens, on
 * threads beside it. The contents that are timed are drawn, and the candidate and its baseline
 * compiled. What fails here is silent: it is done again, and fails again, where its result is
 * wanted. */
#ifndef EVAL_JUDGE_PREPARE_H
#define EVAL_JUDGE_PREPARE_H

#include "eval/compile/compile_client.h"
#include "eval/judge/cases.h"

typedef struct {
    Compiler
        *compiler; /* not the caller's until prepare_compiled, as the cases until prepare_drawn */
    Cases *cases;
    Task *task;
    const Workload *timed;
    uint64_t seed;
    const char *baseline; /* its source */
    const char *source;   /* the candidate's, which the caller keeps until prepare_end */
    size_t len;
    const char *arch;
} PrepareOptions;

typedef struct Prepare Prepare;

Prepare *prepare_begin(const PrepareOptions *opt);
/* Wait for the one or the other; NULL is none, and a second time is none. */
void prepare_compiled(Prepare *p);
void prepare_drawn(Prepare *p);
/* What was drawn goes to the device, which is open; nothing happens while it is still being drawn.
 */
int prepare_contents(Prepare *p, Error *err);
void prepare_end(Prepare *p); /* waits for both */

#endif
