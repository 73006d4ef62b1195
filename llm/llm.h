/* Chat completions from HTTP endpoints, OpenAI-compatible or Anthropic, on libcurl's multi
 * interface. The key comes from the environment. It is in no argument, log, artifact or error. */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LLM_UNSENT = -1 };

/* An attempt that was sent and has ended: whatever the server made of it, it may have to be paid. */
typedef struct {
    size_t index;
    int status; /* 0: no reply came; LLM_UNSENT: the request could not be written */
    long prompt_tokens, completion_tokens;
    int estimated; /* from bytes, on the dear side: the server did not say */
    int again;     /* the request is to be sent once more */
    size_t prompt_bytes;
    int max_tokens;
} LlmAttempt;

/* Called after each attempt, before the reply is given to LlmDone. Returns 0; 1 with `again`: it must
 * not be sent any more; -1 to stop the run. */
typedef int LlmSent(void *ctx, const LlmAttempt *attempt, Error *err);

/* The options of requests to an endpoint: which API, which model, how to sample, how to wait. */
typedef enum { LLM_OPENAI, LLM_ANTHROPIC } LlmApi;

typedef struct {
    LlmApi api;
    const char *model;
    const char *key_env;  /* variable that holds the key; NULL: the vendor's */
    const char *base_url; /* NULL: $OPENAI_BASE_URL or $ANTHROPIC_BASE_URL, else the vendor's */
    double temperature;
    int max_tokens;
    int concurrency;          /* requests at once, at most; lowered on 429 (AIMD) */
    double connect_timeout_s; /* 0: 10 */
    double request_timeout_s; /* 0: 600 */
    /* A request that has failed for this long ends with its error; 0: 900, so that a request that
     * ran into the time limit is tried once more. */
    double give_up_s;
    double absent_s;     /* stop the run when nothing was reached for this long; 0: 60 */
    const char *system;  /* system prompt or NULL */
    double top_p, min_p; /* 0: not sent, the server's default holds */
    int top_k;           /* 0: not sent */
    const char *stop;    /* a text that ends the answer, or NULL */
    /* Ask for token ids and log-probabilities (vLLM, SGLang). All sampling parameters are then
     * sent, so that no default of the server changes the model's distribution. */
    int want_ids;
    LlmSent *sent; /* or NULL */
    void *sent_ctx;
    int *in_row; /* requests given up in a row, of several runs; NULL: of this run */
} LlmOptions;

typedef struct {
    size_t index;          /* of the request */
    const char *text;      /* the answer without the model's reasoning; NULL on failure */
    const char *reasoning; /* where the server shows it; or NULL */
    const char *finish;    /* "stop", "length", "error" */
    const char *error;     /* a sentence, on failure; never the key */
    int http_status, attempts;
    long prompt_tokens, completion_tokens; /* 0: the server does not say */
    const char *model_returned;
    const int32_t *ids;        /* of the answer, as sampled; NULL: the server does not send them */
    const int32_t *prompt_ids; /* of the prompt in the server's template; or NULL */
    const double *logprobs;    /* of ids, or NULL */
    size_t n_ids, n_prompt_ids;
} LlmReply;

/* Called when a request ends, in the order of completion. The reply is the caller's only during the
 * call. Return -1 to stop the run. */
typedef int LlmDone(void *ctx, const LlmReply *reply, Error *err);
/* Return the index-th prompt (user message), or NULL to skip it. */
typedef const char *LlmPrompt(void *ctx, size_t index, uint64_t *seed);

/* Run n requests. Returns -1 when the run stopped early: on a signal, on a refusal that no retry
 * changes (401, 403, quota), or after many failures in a row. All requests that ended have been
 * passed to `done`. */
int llm_run(const LlmOptions *opt, size_t n, LlmPrompt *prompt, LlmDone *done, void *ctx,
            Error *err);

/* ---- endpoints by name: "openai:MODEL" or "anthropic:MODEL" ---- */

/* Whether the name has one of the two prefixes. */
int llm_is_endpoint(const char *name);
/* The options of requests to an endpoint, at temperature 1. The model's name points into name. */
LlmOptions llm_endpoint_options(const char *name, int max_tokens, int concurrency);

#endif
