/* Bodies of server-sent events, which some servers send in place of one JSON text. */
#ifndef LLM_STREAM_H
#define LLM_STREAM_H

#include <stddef.h>

#include "base/buffer.h"
#include "llm/llm.h"

/* Whether a body is a stream of events: its first line is a field of one. */
int llm_stream_is(const char *body, size_t len);
/* Writes the reply that the server would have sent without a stream, as JSON. A stream that ends
 * before the answer does is ERROR_SERVER. */
int llm_stream_join(LlmApi api, const char *body, size_t len, Buffer *out, Error *err);

#endif
