/* Bounds on a source before its plan is parsed. The digest is of the bytes as given. */
#include "eval/candidate/candidate.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int candidate_parse(const char *source, size_t len, int trusted, Candidate *out, Fault *f)
{
    Digest d;
    memset(out, 0, sizeof *out);
    digest_of(source, len, &d);
    digest_hex(&d, out->digest);
    if (len > CANDIDATE_MAX_SOURCE)
        return fault_set(f, OUTCOME_COMPILE_ERROR, 0,
                         "the source has %zu bytes; at most %d are taken", len,
                         CANDIDATE_MAX_SOURCE);
    if (memchr(source, 0, len))
        return fault_set(f, OUTCOME_COMPILE_ERROR, 0, "the source holds a NUL byte; expected text");
    out->source = memory_strndup(source, len);
    out->len = len;
    return plan_parse(out->source, len, trusted, &out->plan, f);
}

void candidate_release(Candidate *c)
{
    plan_release(&c->plan);
    free(c->source);
    memset(c, 0, sizeof *c);
}
