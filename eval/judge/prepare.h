/* Work for the first candidate of a process that does not need the device, done on two threads
 * while the device opens: one draws the contents of the timed workload, one compiles the candidate
 * and its baseline. A failure here is dropped: the work is done again, and fails again, where its
 * result is needed. */
#ifndef EVAL_JUDGE_PREPARE_H
#define EVAL_JUDGE_PREPARE_H

#include "eval/compile/compile_client.h"
#include "eval/judge/cases.h"

typedef struct {
    Compiler *compiler; /* only the thread uses it until prepare_compiled */
    Cases *cases;       /* only the thread uses them until prepare_drawn */
    Task *task;
    const Workload *timed;
    uint64_t seed;
    const char *baseline; /* its source */
    const char *source;   /* the candidate's; it must last until prepare_end */
    size_t len;
    const char *arch;
} PrepareOptions;

typedef struct Prepare Prepare;

Prepare *prepare_begin(const PrepareOptions *opt);
/* Wait for one thread or the other. Both return at once when p is NULL or the thread was joined. */
void prepare_compiled(Prepare *p);
void prepare_drawn(Prepare *p);
/* Move the drawn contents to the device, which must be open. Does nothing while the thread still
 * draws. */
int prepare_contents(Prepare *p, Error *err);
void prepare_end(Prepare *p); /* waits for both threads */

#endif
