/* Calls of the adapter routes of vLLM and SGLang. The two are told apart by which route exists, and
 * causes of a failure by the server's message, since neither sends a code. */
#include "llm/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/stop.h"
#include "llm/endpoint.h"
#include "llm/request.h"

enum { MAX_REPLY = 1 << 20, CONNECT_TRIES = 5, LIMIT_S = 300 };

static const char *const routes[][2] = {
    [LLM_ADAPTERS_VLLM] = {"/v1/load_lora_adapter", "/v1/unload_lora_adapter"},
    [LLM_ADAPTERS_SGLANG] = {"/load_lora_adapter", "/unload_lora_adapter"},
};

typedef struct {
    int status;
    char where[256];
    Buffer body;
} Answer;

static size_t on_data(char *data, size_t size, size_t count, void *body)
{
    return buffer_append(body, data, size * count) ? 0 : size * count;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)ctx, (void)a, (void)b, (void)c, (void)d;
    return stop_requested() != 0;
}

static CURLcode attempt(CURL *c, const LlmEndpoint *e, const char *body, Answer *out)
{
    buffer_clear(&out->body);
    if (llm_endpoint_trust(c) || curl_easy_setopt(c, CURLOPT_URL, e->url) ||
        curl_easy_setopt(c, CURLOPT_HTTPHEADER, e->headers) ||
        curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") ||
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, body) ||
        curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) ||
        curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) ||
        curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data) ||
        curl_easy_setopt(c, CURLOPT_WRITEDATA, &out->body) ||
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) ||
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress) ||
        curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 10L) ||
        curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)LIMIT_S))
        return CURLE_FAILED_INIT;
    return curl_easy_perform(c);
}

/* Make one call. Retries while the server refuses connections, CONNECT_TRIES times. Returns -1 when
 * no reply came. */
static int post(const LlmOptions *opt, const char *route, const char *body, Answer *out, Error *err)
{
    LlmEndpoint e;
    if (llm_endpoint_route(&e, opt, route, err)) return -1;
    CURL *c = curl_easy_init();
    CURLcode code = c ? CURLE_COULDNT_CONNECT : CURLE_FAILED_INIT;
    for (int i = 0; i < CONNECT_TRIES && code == CURLE_COULDNT_CONNECT && !stop_requested(); i++) {
        if (i) clock_sleep(i);
        code = attempt(c, &e, body, out);
    }
    long status = 0;
    if (c) curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    if (c) curl_easy_cleanup(c);
    out->status = (int)status;
    snprintf(out->where, sizeof out->where, "%s", e.where);
    llm_endpoint_redact(&e, out->body.data, out->body.len);
    llm_endpoint_release(&e);
    if (code == CURLE_OK) return 0;
    if (stop_requested()) return error_set(err, ERROR_STOPPED, "%s: stopped", out->where);
    return error_set(err, ERROR_SERVER, "%s: %s", out->where, curl_easy_strerror(code));
}

/* Write the status and the message of a failed call. */
static void reason_of(const Answer *a, char *out, size_t size)
{
    LlmRefusal r = {0};
    llm_refusal_parse(a->body.data, a->body.len, &r);
    snprintf(out, size, "%d%s%s", a->status, *r.message ? ": " : "", r.message);
    for (char *s = out; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = ' ';
}

static int succeeded(const Answer *a)
{
    Error unused;
    if (a->status != 200) return 0;
    /* vLLM's success is plain text. */
    json_t *j = json_read_text(a->body.data, a->body.len, "reply", &unused);
    int refused = json_is_false(json_object_get(j, "success"));
    json_decref(j);
    return !refused;
}

static int says(const Answer *a, const char *text)
{
    return strcasestr(a->body.data, text) != NULL;
}

static int refuse(const Answer *a, const char *name, const char *path, Error *err)
{
    char why[512];
    reason_of(a, why, sizeof why);
    if (a->status == 401 || a->status == 403)
        return error_set(err, ERROR_SERVER,
                         "%s answered %s: loading adapters needs the server's key", a->where, why);
    if (says(a, "No such file") || says(a, "No adapter found") || says(a, "not found") ||
        says(a, "does not exist"))
        return error_set(err, ERROR_SERVER,
                         "%s cannot find the adapter %s (it answered %s): the server must see this "
                         "folder under the same path",
                         a->where, path, why);
    if (says(a, "max_lora_rank") || says(a, "lora rank"))
        return error_set(err, ERROR_SERVER,
                         "%s does not take the adapter's rank (it answered %s): start it with a "
                         "larger --max-lora-rank",
                         a->where, why);
    if (says(a, "enable_lora") || says(a, "enable-lora") || says(a, "LoRA is not enabled"))
        return error_set(err, ERROR_SERVER,
                         "%s runs without adapters (it answered %s): start it with --enable-lora",
                         a->where, why);
    return error_set(err, ERROR_SERVER, "%s did not load the adapter %s: it answered %s", a->where,
                     name, why);
}

static char *request(const char *name, const char *path)
{
    json_t *j = path ? json_pack("{s:s,s:s}", "lora_name", name, "lora_path", path)
                     : json_pack("{s:s}", "lora_name", name);
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    return text;
}

int llm_adapter_load(const LlmOptions *opt, const char *name, const char *path, LlmAdapter *out,
                     Error *err)
{
    char *body = request(name, path);
    if (!body)
        return error_set(err, ERROR_USAGE,
                         "the adapter's path is not valid UTF-8: JSON cannot carry it");
    Answer a = {0};
    buffer_init(&a.body, MAX_REPLY);
    int rc = 0, found = 0;
    for (int api = 0; api < 2 && !rc && !found; api++) {
        out->api = (LlmAdapterApi)api;
        rc = post(opt, routes[api][0], body, &a, err);
        /* A 404 that names the adapter means that the folder is missing, not the route. */
        found = a.status != 405 && (a.status != 404 || says(&a, "adapter"));
    }
    free(body);
    if (!rc && !found)
        rc = error_set(err, ERROR_SERVER,
                       "%s has no route to load adapters: start vLLM with "
                       "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and "
                       "--enable-lora, or SGLang with --enable-lora",
                       a.where);
    else if (!rc && !succeeded(&a) && !says(&a, "already been loaded") &&
             !says(&a, "already loaded"))
        rc = refuse(&a, name, path, err);
    if (!rc)
        snprintf(out->model, sizeof out->model, "%s%s%s",
                 out->api == LLM_ADAPTERS_SGLANG ? opt->model : "",
                 out->api == LLM_ADAPTERS_SGLANG ? ":" : "", name);
    buffer_release(&a.body);
    return rc;
}

int llm_adapter_unload(const LlmOptions *opt, const LlmAdapter *adapter, const char *name,
                       Error *err)
{
    char *body = request(name, NULL);
    Answer a = {0};
    char why[512];
    buffer_init(&a.body, MAX_REPLY);
    int rc = post(opt, routes[adapter->api][1], body, &a, err);
    reason_of(&a, why, sizeof why);
    if (!rc && !succeeded(&a) && a.status != 404 && !says(&a, "not found") &&
        !says(&a, "cannot be found"))
        rc = error_set(err, ERROR_SERVER, "%s did not unload the adapter %s: it answered %s",
                       a.where, name, why);
    free(body);
    buffer_release(&a.body);
    return rc;
}
