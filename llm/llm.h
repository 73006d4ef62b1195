/* Chat completions from HTTP endpoints: OpenAI-compatible and Anthropic, on libcurl's multi
 * interface. The key comes from the environment and goes nowhere else: no argument, log, artifact
 * or error. */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum { LLM_OPENAI, LLM_ANTHROPIC } LlmApi;

typedef struct {
    LlmApi api;
    const char *model;
    const char *base_url; /* NULL: $OPENAI_BASE_URL / $ANTHROPIC_BASE_URL, else the vendor's */
    double temperature;
    int max_tokens, concurrency;                 /* concurrency: at most; lowered on 429 (AIMD) */
    double connect_timeout_s, request_timeout_s; /* 0: 10 and 600 */
    double give_up_s;   /* of straight failures for one request, then its error is final; 0: 900, so
                         * that a request   that ran into the time limit is asked once more */
    double absent_s;    /* without any connection since the start, then the run stops; 0: 60 */
    const char *system; /* system prompt or NULL */
    double top_p, min_p; /* 0: not sent, the server's own default holds */
    int top_k;           /* 0: not sent */
    const char *stop;    /* a text that ends the answer, or NULL */
    int want_ids; /* ask for token ids and log-probabilities (vLLM, SGLang), under the model's own
                   * law: what the server's defaults would leave out is asked for too */
} LlmOptions;

typedef struct {
    size_t index;          /* of the request */
    const char *text;      /* the answer, without what the model thought; NULL on failure */
    const char *reasoning; /* what a reasoning model thought, where the server shows it; or NULL */
    const char *finish;    /* "stop", "length", "error" */
    const char *error;     /* a sentence, when failed; never the key */
    int http_status, attempts;
    long prompt_tokens, completion_tokens;
    const char *model_returned;
    const int32_t *ids, *prompt_ids; /* as sampled, and as the server's template made the prompt;
                                        NULL: it does not tell */
    const double *logprobs;          /* of ids, or NULL */
    size_t n_ids, n_prompt_ids;
} LlmReply;

/* Called when request `index` ended, in the order of completion; return -1 to stop. Persist before
 * return. */
typedef int LlmDone(void *ctx, const LlmReply *reply, Error *err);
/* The i-th prompt (user message); NULL skips it (already journalled). */
typedef const char *LlmPrompt(void *ctx, size_t index, uint64_t *seed);

/* Run n requests. -1: stopped by a signal, by a refusal that no retry mends (401, 403, quota), or
 * by the breaker (many failures in a row); what was done has been handed over. */
int llm_run(const LlmOptions *opt, size_t n, LlmPrompt *prompt, LlmDone *done, void *ctx,
            Error *err);

#endif
