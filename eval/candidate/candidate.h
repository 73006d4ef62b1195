/* A candidate: one CUDA C++ source and the launch plan in its comments. The plan points into the
 * candidate's copy of the source. */
#ifndef EVAL_CANDIDATE_CANDIDATE_H
#define EVAL_CANDIDATE_CANDIDATE_H

#include "base/digest.h"
#include "eval/candidate/plan.h"
#include "eval/device/fault.h"

enum { CANDIDATE_MAX_SOURCE = 256 * 1024 };

typedef struct {
    char *source; /* a NUL-terminated copy, owned */
    size_t len;
    char digest[DIGEST_HEX];
    Plan plan;
} Candidate;

/* Parse a source. trusted: a baseline, whose plan may call libraries. Returns 0, or 1 with COMPILE_ERROR for
 * a source that is too large or holds a NUL byte, and PLAN_ERROR for a mistake in the plan. Release in both
 * cases. */
int candidate_parse(const char *source, size_t len, int trusted, Candidate *out, Fault *f);
void candidate_release(Candidate *c);

#endif
