/* Classification of replies by status, and of refusals by the codes and texts of the servers. */
#include "llm/retry.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static int is_one_of(const char *s, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(s, *list)) return 1;
    return 0;
}

/* 429 and 403 may also mean that the account has no credit. */
static int out_of_credit(const LlmRefusal *r)
{
    static const char *const codes[] = {"insufficient_quota",
                                        "billing_hard_limit_reached",
                                        "billing_not_active",
                                        "billing_error",
                                        "spend_limit_reached",
                                        "access_terminated",
                                        NULL};
    return is_one_of(r->code, codes) || is_one_of(r->type, codes);
}

/* Servers that name a wrong key by another status than 401: 400, 500, or a 200 with an error. */
static int wrong_key(const LlmRefusal *r)
{
    static const char *const codes[] = {"invalid_api_key",
                                        "authentication_error",
                                        "API_KEY_INVALID",
                                        "UNAUTHENTICATED",
                                        "401",
                                        NULL};
    static const char *const keys[] = {
        "api key",      "api_key",     "apikey",         "api-key",   "auth token", "access token",
        "bearer token", "credentials", "authentication", "x-api-key", "token is",   NULL};
    static const char *const faults[] = {
        "invalid", "incorrect", "not valid", "wrong",   "missing", "expired", "no ",
        "fail",    "not found", "require",   "provide", "revoked", "denied",  NULL};
    int key = 0, fault = 0;
    if (is_one_of(r->code, codes) || is_one_of(r->type, codes)) return 1;
    if (!strcasecmp(r->message, "unauthorized")) return 1;
    for (const char *const *k = keys; *k; k++) key |= strcasestr(r->message, *k) != NULL;
    for (const char *const *f = faults; *f; f++) fault |= strcasestr(r->message, *f) != NULL;
    return key && fault;
}

int llm_is_hopeless(const LlmRefusal *refusal)
{
    return out_of_credit(refusal) || wrong_key(refusal);
}

LlmAction llm_classify(int status, const LlmRefusal *refusal, const char *should_retry)
{
    if (status == 200) return LLM_TAKE;
    if (status == 401 || status == 402 || status == 403 || status == 404 ||
        llm_is_hopeless(refusal))
        return LLM_STOP;
    if (should_retry && !strcasecmp(should_retry, "true")) return LLM_AGAIN;
    if (should_retry && !strcasecmp(should_retry, "false")) return LLM_FAIL;
    return status == 0 || status == 408 || status == 409 || status == 425 || status == 429 ||
                   status >= 500
               ? LLM_AGAIN
               : LLM_FAIL;
}

static int says_unsupported(const LlmRefusal *r)
{
    static const char *const codes[] = {"unsupported_parameter", "unsupported_value", NULL};
    return is_one_of(r->code, codes) || strcasestr(r->message, "unsupported") ||
           strcasestr(r->message, "not support") || strcasestr(r->message, "deprecated") ||
           strcasestr(r->message, "not permitted") || strcasestr(r->message, "unrecognized") ||
           strcasestr(r->message, "unknown parameter") || strcasestr(r->message, "unknown name") ||
           strcasestr(r->message, "unknown field") || strcasestr(r->message, "not allowed") ||
           strcasestr(r->message, "unexpected") || strcasestr(r->message, "extra inputs") ||
           strcasestr(r->message, "extra fields");
}

static int names(const LlmRefusal *r, const char *field)
{
    return !strcmp(r->param, field) || strstr(r->message, field);
}

int llm_adapt(LlmDialect *dialect, const LlmOptions *opt, int status, const LlmRefusal *refusal)
{
    if (status != 400 && status != 422) return 0;
    /* Only a stream: "stream must be true", "only streaming is supported". */
    if (names(refusal, "stream_options") && dialect->stream == 1) return dialect->stream = 2;
    if (names(refusal, "stream") && !dialect->stream) return dialect->stream = 1;
    if (opt->api == LLM_OPENAI && !strcmp(refusal->param, "seed") && !dialect->no_seed)
        return dialect->no_seed = 1; /* no answer needs it */
    if (!says_unsupported(refusal)) return 0;
    if (opt->api == LLM_OPENAI && names(refusal, "max_tokens") && !dialect->max_completion_tokens)
        return dialect->max_completion_tokens = 1;
    if (names(refusal, "temperature") && !dialect->no_temperature)
        return dialect->no_temperature = 1;
    static const char *const with_ids[] = {"logprobs", "return_token", "top_k", "min_p",
                                           "repetition_penalty"};
    for (size_t i = 0; i < sizeof with_ids / sizeof *with_ids && opt->want_ids; i++)
        if (names(refusal, with_ids[i]) && !dialect->no_ids) return dialect->no_ids = 1;
    if (opt->api == LLM_OPENAI && names(refusal, "seed") && !dialect->no_seed)
        return dialect->no_seed = 1;
    return 0;
}

int llm_too_long(const LlmRefusal *refusal)
{
    static const char *const codes[] = {"context_length_exceeded", "exceed_context_size_error",
                                        NULL};
    return is_one_of(refusal->code, codes) || is_one_of(refusal->type, codes) ||
           strcasestr(refusal->message, "context length") ||
           strcasestr(refusal->message, "maximum model length") ||
           strcasestr(refusal->message, "prompt is too long");
}

double llm_retry_delay(Random *random, int attempts, double asked)
{
    double ceiling = fmin(0.5 * exp2(attempts < 20 ? attempts : 20), 60);
    double delay = ceiling * random_uniform(random);
    return asked > delay ? asked : delay;
}
