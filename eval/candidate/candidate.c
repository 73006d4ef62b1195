/* Bounds on a source before its plan is parsed. The digest is of the bytes as given. */
#include "eval/candidate/candidate.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int parse(const char *source, size_t len, int trusted, Candidate *out, Outcome *outcome,
                 int *line, Error *err)
{
    memset(out, 0, sizeof *out);
    *line = 0;
    *outcome = OUTCOME_COMPILE_ERROR;
    Digest d;
    digest_of(source, len, &d);
    digest_hex(&d, out->digest);
    if (len > CANDIDATE_MAX_SOURCE)
        return error_set(err, ERROR_LIMIT, "the source has %zu bytes; at most %d are taken", len,
                         CANDIDATE_MAX_SOURCE);
    if (memchr(source, 0, len))
        return error_set(err, ERROR_INVALID, "the source holds a NUL byte; expected text");
    out->source = memory_strndup(source, len);
    out->len = len;
    *outcome = OUTCOME_PLAN_ERROR;
    return trusted ? plan_parse_trusted(out->source, len, &out->plan, line, err)
                   : plan_parse(out->source, len, &out->plan, line, err);
}

int candidate_parse(const char *source, size_t len, Candidate *out, Outcome *outcome, int *line,
                    Error *err)
{
    return parse(source, len, 0, out, outcome, line, err);
}

int candidate_parse_trusted(const char *source, size_t len, Candidate *out, Outcome *outcome,
                            int *line, Error *err)
{
    return parse(source, len, 1, out, outcome, line, err);
}

void candidate_release(Candidate *c)
{
    plan_release(&c->plan);
    free(c->source);
    memset(c, 0, sizeof *c);
}
