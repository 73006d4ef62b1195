/* The URL, headers and key of an endpoint. The key is stored here and in libcurl's header list
 * only. */
#ifndef LLM_ENDPOINT_H
#define LLM_ENDPOINT_H

#include <curl/curl.h>

#include "base/error.h"
#include "llm/llm.h"

typedef struct {
    char *url;       /* for libcurl only: it may hold a password */
    char where[256]; /* scheme, host, port, path: for messages */
    char *key;       /* NULL: none */
    struct curl_slist *headers;
    int vendor; /* the base URL is the vendor's own */
} LlmEndpoint;

/* Fill e for chat completions, from opt and the environment. */
int llm_endpoint_init(LlmEndpoint *e, const LlmOptions *opt, Error *err);
/* Fill e for another route of the server, such as "/v1/load_lora_adapter": the base URL without its
 * /v1, followed by the route. */
int llm_endpoint_route(LlmEndpoint *e, const LlmOptions *opt, const char *route, Error *err);
/* Make a handle trust the certificates that the environment names, as the curl tool does:
 * CURL_CA_BUNDLE, else SSL_CERT_FILE and SSL_CERT_DIR. libcurl reads none of them. */
int llm_endpoint_trust(CURL *c);
void llm_endpoint_release(LlmEndpoint *e); /* wipes the key */

/* Overwrite every occurrence of the key in bytes that came from outside. */
void llm_endpoint_redact(const LlmEndpoint *e, char *data, size_t len);

#endif
