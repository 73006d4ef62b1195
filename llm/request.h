/* The JSON that goes out and comes back, for both APIs. Nothing here touches the network. */
#ifndef LLM_REQUEST_H
#define LLM_REQUEST_H

#include "base/buffer.h"
#include "llm/llm.h"

/* Fields that some models refuse; found out by their refusal, once a run. */
typedef struct {
    int no_temperature, no_seed;
    int max_completion_tokens; /* the newer name of max_tokens */
    int no_ids;                /* nor what comes with them: the fields of want_ids */
} LlmDialect;

/* The body of one request; caller frees. */
char *llm_request_body(const LlmOptions *opt, const LlmDialect *dialect, const char *prompt,
                       uint64_t seed, Error *err);

typedef struct {
    char *text, *reasoning, *model; /* text is never NULL; the others may be */
    const char *finish;             /* "stop" or "length" */
    long prompt_tokens, completion_tokens;
    int filtered;              /* the model or a filter refused to answer: no retry mends it */
    int32_t *ids, *prompt_ids; /* NULL: not told */
    double *logprobs;          /* of ids, or NULL */
    size_t n_ids, n_prompt_ids;
} LlmAnswer;

/* The body of a 200. -1: not such a reply, with a sentence. */
int llm_reply_parse(LlmApi api, const char *body, size_t len, LlmAnswer *out, Error *err);
void llm_answer_release(LlmAnswer *a);

/* What an error's body says, as far as it says something: empty texts otherwise. */
typedef struct {
    char message[400], code[64], type[64], param[64];
} LlmRefusal;

void llm_refusal_parse(const char *body, size_t len, LlmRefusal *out);

#endif
