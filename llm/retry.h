/* What to do after an attempt: pure functions of what came back. */
#ifndef LLM_RETRY_H
#define LLM_RETRY_H

#include "base/random.h"
#include "llm/request.h"

typedef enum {
    LLM_TAKE,  /* a 200: parse it */
    LLM_AGAIN, /* a retry may mend it */
    LLM_FAIL,  /* this request's error is final */
    LLM_STOP   /* no request of this run can succeed: wrong key, no money, no such model */
} LlmAction;

/* status 0: no HTTP reply came. should_retry: the x-should-retry header, or NULL. */
LlmAction llm_classify(int status, const LlmRefusal *refusal, const char *should_retry);

/* A refusal of a field that the request can do without: change the dialect and say 1; else 0. */
int llm_adapt(LlmDialect *dialect, const LlmOptions *opt, int status, const LlmRefusal *refusal);

/* Is it this prompt's length that the server refuses? Of others it says nothing. */
int llm_too_long(const LlmRefusal *refusal);

/* Seconds until attempt number `attempts` + 1: exponential with full jitter, at most 60 s, and
 * never less than the server asked for (asked < 0: it did not). */
double llm_retry_delay(Random *random, int attempts, double asked);

#endif
