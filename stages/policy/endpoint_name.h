/* Policies and teachers that answer over HTTP, by name: "openai:MODEL" or "anthropic:MODEL". */
#ifndef STAGES_POLICY_ENDPOINT_NAME_H
#define STAGES_POLICY_ENDPOINT_NAME_H

#include "llm/llm.h"

/* Whether the name has one of the two prefixes. */
int endpoint_is(const char *name);

/* The options of requests to an endpoint, at temperature 1. The model's name points into name. */
LlmOptions endpoint_options(const char *name, int max_tokens, int concurrency);

#endif
