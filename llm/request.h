/* The JSON of requests and replies, for both APIs. Nothing here uses the network. */
#ifndef LLM_REQUEST_H
#define LLM_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/llm.h"

/* Fields that some models refuse. A refusal sets them (llm_adapt). */
typedef struct {
    int no_temperature, no_seed;
    int max_completion_tokens; /* the newer name of max_tokens */
    int no_ids;                /* none of the fields that want_ids adds */
    int stream;                /* 1: the reply is asked for as events, with usage; 2: without */
} LlmDialect;

/* Returns the body of one request; the caller frees it. */
char *llm_request_body(const LlmOptions *opt, const LlmDialect *dialect, const char *prompt,
                       uint64_t seed, Error *err);

/* The fields of an error reply; "" where it has none. */
typedef struct {
    char message[400], code[64], type[64], param[64];
} LlmRefusal;

typedef struct {
    char *text, *reasoning, *model; /* text is never NULL; the others may be */
    const char *finish;             /* "stop" or "length" */
    long prompt_tokens, completion_tokens;
    int filtered;              /* the model or a filter refused to answer: a retry does not help */
    int32_t *ids, *prompt_ids; /* NULL: not sent */
    double *logprobs;          /* of ids, or NULL */
    size_t n_ids, n_prompt_ids;
    LlmRefusal refusal; /* of a reply that is an error under the status of success */
} LlmAnswer;

/* Parse the body of a reply with status 200: JSON, or a stream of events. */
int llm_reply_parse(LlmApi api, const char *body, size_t len, LlmAnswer *out, Error *err);
void llm_answer_release(LlmAnswer *a);

/* Parse the body of a reply with an error status. Never fails. */
void llm_refusal_parse(const char *body, size_t len, LlmRefusal *out);

#endif
