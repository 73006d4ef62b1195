/* One mutant before the judge. */
#ifndef LAB_MUTATE_MUTANT_TRIAL_H
#define LAB_MUTATE_MUTANT_TRIAL_H

#include "base/digest.h"
#include "eval/judge/evaluator.h"

typedef enum {
    MUTANT_INVALID, /* it does not compile, or has no valid plan */
    MUTANT_EQUAL,   /* its code is the original's */
    MUTANT_KILLED,
    MUTANT_OK
} MutantFate;

typedef struct {
    MutantFate fate;
    char outcome[40], message[160];
    double score;
} MutantResult;

/* The digest of the PTX of a source without line numbers and debug sections. 1: it does not compile. The
 * reply is kept for the next judgement. */
int trial_code(Evaluator *e, const char *source, char digest[DIGEST_HEX], Error *err);

/* Judge a source. -1: the evaluator failed. */
int trial_judge(Evaluator *e, const char *task, const char *source, MutantResult *out, Error *err);

#endif
