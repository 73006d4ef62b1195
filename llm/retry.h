/* Decisions after an attempt: pure functions of the reply. */
#ifndef LLM_RETRY_H
#define LLM_RETRY_H

#include "base/random.h"
#include "llm/request.h"

typedef enum {
    LLM_TAKE,  /* a 200: parse it */
    LLM_AGAIN, /* a retry may succeed */
    LLM_FAIL,  /* this request's error is final */
    LLM_STOP   /* no request of this run can succeed: wrong key, no credit, no such model */
} LlmAction;

/* Classify a reply. status 0: no HTTP reply came. should_retry: header x-should-retry, or NULL. */
LlmAction llm_classify(int status, const LlmRefusal *refusal, const char *should_retry);

/* Returns whether the refusal is of the key or the account: it stops the run under any status. */
int llm_is_hopeless(const LlmRefusal *refusal);

/* When the server refuses an optional field, remove it from the dialect and return 1; else 0. */
int llm_adapt(LlmDialect *dialect, const LlmOptions *opt, int status, const LlmRefusal *refusal);

/* Returns whether the server refuses this prompt for its length. Other prompts may be accepted. */
int llm_too_long(const LlmRefusal *refusal);

/* Seconds until attempt number `attempts` + 1: exponential back-off with full jitter, at most 60 s.
 * Never less than the server asked for (asked < 0: it did not ask). */
double llm_retry_delay(Random *random, int attempts, double asked);

#endif
