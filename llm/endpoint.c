/* Endpoint set-up from options and environment. No message repeats the base URL before it is
 * parsed, since it may hold a password. */
#include "llm/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/version.h"

typedef struct {
    const char *base_env, *key_env, *vendor_url, *suffix;
} Vendor;

static const Vendor vendors[] = {
    [LLM_OPENAI] = {"OPENAI_BASE_URL", "OPENAI_API_KEY", "https://api.openai.com/v1",
                    "/chat/completions"},
    [LLM_ANTHROPIC] = {"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "https://api.anthropic.com",
                       "/v1/messages"},
};

static char *url_part(CURLU *u, CURLUPart part)
{
    char *s = NULL;
    return curl_url_get(u, part, &s, 0) ? NULL : s;
}

static void cut_end(char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    while (n && path[n - 1] == '/') path[--n] = 0;
    if (n >= m && !strcmp(path + n - m, end)) path[n - m] = 0;
}

/* Append the path of the call to the base URL's path, unless it is there. Query and password stay.
 * With a route, replace a final /v1 by the route. */
static int complete_path(CURLU *u, const char *suffix, const char *route)
{
    char *path = url_part(u, CURLUPART_PATH);
    if (!path) return -1;
    cut_end(path, suffix);
    if (route) cut_end(path, "/v1");
    cut_end(path, "");
    char *full = memory_printf("%s%s", path, route ? route : suffix);
    int rc = curl_url_set(u, CURLUPART_PATH, full, 0) ? -1 : 0;
    free(full);
    curl_free(path);
    return rc;
}

static int resolve_url(LlmEndpoint *e, const LlmOptions *opt, const Vendor *v, const char *route,
                       Error *err)
{
    const char *env = getenv(v->base_env), *base = opt->base_url ? opt->base_url
                                                   : env && *env ? env
                                                                 : v->vendor_url;
    e->vendor = !strcmp(base, v->vendor_url);
    CURLU *u = curl_url();
    if (!u) return error_set(err, ERROR_MEMORY, "out of memory for a URL");
    int rc = curl_url_set(u, CURLUPART_URL, base, 0) ? -1 : complete_path(u, v->suffix, route);
    char *scheme = url_part(u, CURLUPART_SCHEME), *host = url_part(u, CURLUPART_HOST),
         *port = url_part(u, CURLUPART_PORT);
    char *path = url_part(u, CURLUPART_PATH), *whole = url_part(u, CURLUPART_URL);
    if (rc || !whole || !host || !path || !scheme ||
        (strcmp(scheme, "http") && strcmp(scheme, "https"))) {
        /* The text may hold a password: it is not repeated. */
        rc = error_set(err, ERROR_USAGE,
                       "%s: expected an http or https URL such as %s, found something else",
                       opt->base_url ? "the endpoint's base URL" : v->base_env, v->vendor_url);
    } else {
        snprintf(e->where, sizeof e->where, "%s://%s%s%s%s", scheme, host, port ? ":" : "",
                 port ? port : "", path);
        e->url = memory_strdup(whole);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_free(whole);
    curl_url_cleanup(u);
    return rc;
}

static int read_key(LlmEndpoint *e, const char *variable, int required, Error *err)
{
    const char *s = getenv(variable);
    size_t n = s ? strlen(s) : 0;
    /* The end of a file's last line. */
    while (n && (s[n - 1] == '\n' || s[n - 1] == '\r' || s[n - 1] == ' ')) n--;
    if (!n && !e->vendor && !required) return 0;
    if (!n) return error_set(err, ERROR_USAGE, "%s is not set: %s needs a key", variable, e->where);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= 0x20 || (unsigned char)s[i] >= 0x7f)
            return error_set(err, ERROR_USAGE, "%s: character %zu of %zu is one that no key has",
                             variable, i + 1, n);
    e->key = memory_strndup(s, n);
    return 0;
}

static int add_header(LlmEndpoint *e, const char *line)
{
    struct curl_slist *more = curl_slist_append(e->headers, line);
    if (more) e->headers = more;
    return more ? 0 : -1;
}

static int init(LlmEndpoint *e, const LlmOptions *opt, const char *route, Error *err)
{
    const Vendor *v = &vendors[opt->api];
    *e = (LlmEndpoint){0};
    if (resolve_url(e, opt, v, route, err) ||
        read_key(e, opt->key_env ? opt->key_env : v->key_env, opt->key_env != NULL, err)) {
        llm_endpoint_release(e);
        return -1;
    }
    /* An empty Expect: bodies above 1 MB would otherwise wait for a 100-continue. */
    char agent[80];
    snprintf(agent, sizeof agent, "User-Agent: quern/%s", quern_version);
    int failed = add_header(e, "Content-Type: application/json") || add_header(e, "Expect:") ||
                 add_header(e, agent) ||
                 (opt->api == LLM_ANTHROPIC && add_header(e, "anthropic-version: 2023-06-01"));
    if (e->key) {
        char *line = memory_printf(
            opt->api == LLM_ANTHROPIC ? "x-api-key: %s" : "Authorization: Bearer %s", e->key);
        failed = failed || add_header(e, line);
        explicit_bzero(line, strlen(line));
        free(line);
    }
    if (!failed) return 0;
    llm_endpoint_release(e);
    return error_set(err, ERROR_MEMORY, "out of memory for the headers");
}

int llm_endpoint_init(LlmEndpoint *e, const LlmOptions *opt, Error *err)
{
    return init(e, opt, NULL, err);
}

int llm_endpoint_route(LlmEndpoint *e, const LlmOptions *opt, const char *route, Error *err)
{
    return init(e, opt, route, err);
}

static const char *variable(const char *name)
{
    const char *s = getenv(name);
    return s && *s ? s : NULL;
}

int llm_endpoint_trust(CURL *c)
{
    const char *bundle = variable("CURL_CA_BUNDLE"),
               *file = bundle ? bundle : variable("SSL_CERT_FILE"),
               *dir = bundle ? NULL : variable("SSL_CERT_DIR");
    return (file && (curl_easy_setopt(c, CURLOPT_CAINFO, file) ||
                     curl_easy_setopt(c, CURLOPT_PROXY_CAINFO, file))) ||
           (dir && (curl_easy_setopt(c, CURLOPT_CAPATH, dir) ||
                    curl_easy_setopt(c, CURLOPT_PROXY_CAPATH, dir)));
}

void llm_endpoint_release(LlmEndpoint *e)
{
    for (struct curl_slist *h = e->headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(e->headers);
    if (e->key) explicit_bzero(e->key, strlen(e->key));
    free(e->key);
    free(e->url);
    *e = (LlmEndpoint){0};
}

void llm_endpoint_redact(const LlmEndpoint *e, char *data, size_t len)
{
    /* Shorter keys are placeholders for local servers ("none", "EMPTY") and words of answers. */
    enum { SHORTEST_SECRET = 12 };
    size_t n = e->key ? strlen(e->key) : 0;
    if (n < SHORTEST_SECRET) return;
    for (char *end = data + len, *s = data; (s = memmem(s, (size_t)(end - s), e->key, n)); s += n)
        memset(s, '*', n);
}
