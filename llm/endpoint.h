/* Where requests go and who they say they are. The key lives here and in libcurl's header list
 * only. */
#ifndef LLM_ENDPOINT_H
#define LLM_ENDPOINT_H

#include <curl/curl.h>

#include "llm/llm.h"

typedef struct {
    char *url;       /* with everything; for libcurl only: it may carry a password */
    char where[256]; /* scheme, host, port, path: for messages */
    char *key;       /* NULL: none */
    struct curl_slist *headers;
    int vendor; /* the API's own host */
} LlmEndpoint;

int llm_endpoint_init(LlmEndpoint *e, const LlmOptions *opt, Error *err);
/* Another route of an OpenAI-compatible server, such as "/v1/load_lora_adapter": the base without
 * its /v1, and this. */
int llm_endpoint_route(LlmEndpoint *e, const LlmOptions *opt, const char *route, Error *err);
void llm_endpoint_release(LlmEndpoint *e); /* wipes the key */

/* Overwrite every occurrence of the key in bytes that came from outside. */
void llm_endpoint_redact(const LlmEndpoint *e, char *data, size_t len);

#endif
