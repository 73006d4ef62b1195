/* The two prefixes, and the timeouts of every request. */
#include "stages/policy/endpoint_name.h"

#include <string.h>

int endpoint_is(const char *name)
{
    return !strncmp(name, "openai:", 7) || !strncmp(name, "anthropic:", 10);
}

LlmOptions endpoint_options(const char *name, int max_tokens, int concurrency)
{
    return (LlmOptions){.api = name[0] == 'a' ? LLM_ANTHROPIC : LLM_OPENAI,
                        .model = strchr(name, ':') + 1,
                        .temperature = 1,
                        .max_tokens = max_tokens,
                        .concurrency = concurrency,
                        .connect_timeout_s = 10,
                        .request_timeout_s = 600};
}
