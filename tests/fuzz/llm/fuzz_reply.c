/* Foreign bytes as the body of a reply of either API, and as the body of an error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "llm/retry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (LlmApi api = LLM_OPENAI; api <= LLM_ANTHROPIC; api++) {
        LlmAnswer a;
        Error err;
        if (llm_reply_parse(api, (const char *)data, size, &a, &err)) continue;
        /* what an accepted reply promises */
        if (!a.text || !a.finish || (strcmp(a.finish, "stop") && strcmp(a.finish, "length")) ||
            a.prompt_tokens < 0 || a.completion_tokens < 0)
            abort();
        if (!a.ids != !a.n_ids || !a.prompt_ids != !a.n_prompt_ids || (a.logprobs && !a.ids))
            abort();
        for (size_t i = 0; i < a.n_ids; i++)
            if (a.ids[i] < 0 || (a.logprobs && !(a.logprobs[i] <= 0))) abort();
        llm_answer_release(&a);
    }
    LlmRefusal r;
    LlmDialect d = {0};
    LlmOptions o = {.api = LLM_OPENAI, .want_ids = 1};
    llm_refusal_parse((const char *)data, size, &r);
    if (memchr(r.message, '\n', strlen(r.message))) abort();
    (void)llm_classify(429, &r, NULL);
    int adapted = 0;
    while (llm_adapt(&d, &o, 400, &r))
        if (++adapted > 4) abort();
    return 0;
}
