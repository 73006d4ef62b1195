/* Chat completions from HTTP endpoints, OpenAI-compatible or Anthropic, on libcurl's multi
 * interface. The key comes from the environment. It is in no argument, log, artifact or error. */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/llm_options.h"

typedef struct {
    size_t index;          /* of the request */
    const char *text;      /* the answer without the model's reasoning; NULL on failure */
    const char *reasoning; /* where the server shows it; or NULL */
    const char *finish;    /* "stop", "length", "error" */
    const char *error;     /* a sentence, on failure; never the key */
    int http_status, attempts;
    long prompt_tokens, completion_tokens;
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

#endif
