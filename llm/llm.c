/* The run: slots with one request each, retries with back-off, and a limit of requests at once that
 * follows the server's 429s. Every request ends in one call of `done`, or is dropped when the run
 * stops, so that a resumed run asks for it again. */
#include "llm/llm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "llm/endpoint.h"
#include "llm/retry.h"

/* A slot holds one request from its first attempt to its end, so at most `concurrency` requests are
 * begun and not ended. libcurl's own queue is not used, since it counts waiting as running. */
typedef enum { SLOT_IDLE, SLOT_RUNNING, SLOT_WAITING } SlotState;

typedef struct {
    SlotState state;
    CURL *easy;
    char curl_says[CURL_ERROR_SIZE];
    size_t index;
    char *prompt, *body;
    uint64_t seed;
    LlmDialect dialect; /* of this attempt */
    Buffer reply;
    int attempts;
    int useless;          /* replies in a row under status 200 that are no answer */
    double started;       /* of this attempt */
    double first_failure; /* 0: none yet */
    double wake;          /* of SLOT_WAITING */
} Slot;

enum {
    MAX_REPLY = 16 << 20, /* bytes of one reply, decompressed */
    DRAIN_S = 20,         /* for running requests after a stop: they are paid for */
    BREAKER = 10,         /* requests given up in a row that end the run */
    USELESS = 3,          /* replies in a row that are no answer, after which a request fails */
    SHOWN = 160,          /* bytes of a reply that is no answer, in the error */
    SAY_EVERY_S = 30,     /* interval of messages about retries */
    MAX_CONCURRENCY = 1024
};

typedef struct {
    LlmOptions opt;
    size_t n, next, ended;
    LlmPrompt *prompt;
    LlmDone *done;
    void *ctx;
    LlmEndpoint endpoint;
    LlmDialect dialect;
    CURLM *multi;
    Slot *slots;
    int n_slots, running, waiting;
    double limit; /* of running requests: additive increase, multiplicative decrease */
    double last_cut, paused_until, last_said;
    int *given_up_in_row, own_row;
    int reached; /* a connection was made once */
    int halted;  /* start no more requests, for the reason `why` */
    double drain_until;
    Error why;
    Random random;
} Run;

static void halt(Run *run, double drain_s)
{
    if (run->halted) return;
    run->halted = 1;
    run->drain_until = clock_seconds() + drain_s;
    if (run->running && drain_s > 0)
        log_info("%s; waiting up to %.0f s for %d running requests", run->why.text, drain_s,
                 run->running);
}

/* ---- one request ---- */

static size_t on_data(char *data, size_t size, size_t count, void *slot)
{
    size_t n = size * count;
    return buffer_append(&((Slot *)slot)->reply, data, n) ? 0 : n;
}

static int make_slot(Run *run, Slot *s)
{
    const LlmOptions *o = &run->opt;
    buffer_init(&s->reply, MAX_REPLY);
    CURL *c = s->easy = curl_easy_init();
    if (!c) return -1;
    return llm_endpoint_trust(c) || curl_easy_setopt(c, CURLOPT_URL, run->endpoint.url) ||
           curl_easy_setopt(c, CURLOPT_HTTPHEADER, run->endpoint.headers) ||
           curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") ||
           curl_easy_setopt(c, CURLOPT_POST, 1L) ||
           /* A redirect would send the key elsewhere. */
           curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) ||
           curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) ||
           curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L) ||
           curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "") ||
           curl_easy_setopt(c, CURLOPT_ERRORBUFFER, s->curl_says) ||
           curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data) ||
           curl_easy_setopt(c, CURLOPT_WRITEDATA, s) || curl_easy_setopt(c, CURLOPT_PRIVATE, s) ||
           curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)(o->connect_timeout_s * 1000)) ||
           curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(o->request_timeout_s * 1000));
}

static void empty_slot(Slot *s)
{
    free(s->prompt);
    free(s->body);
    s->prompt = s->body = NULL;
    s->state = SLOT_IDLE;
    s->attempts = s->useless = 0;
    s->first_failure = 0;
}

/* Pass the result to the caller and free the slot. When the caller fails to store it, the run ends
 * at once. */
static void end_request(Run *run, Slot *s, LlmReply *reply)
{
    reply->index = s->index;
    reply->attempts = s->attempts;
    run->ended++;
    if (run->done(run->ctx, reply, &run->why)) {
        run->halted = 1;
        run->drain_until = 0;
    }
    empty_slot(s);
}

static void fail_request(Run *run, Slot *s, int status, const char *error)
{
    LlmReply reply = {.finish = "error", .error = error, .http_status = status};
    end_request(run, s, &reply);
}

static void give_up(Run *run, Slot *s, int status, const Error *e)
{
    fail_request(run, s, status, e->text);
    if (++*run->given_up_in_row < BREAKER || run->halted) return;
    error_set(&run->why, e->code == ERROR_UNKNOWN_NAME ? ERROR_UNKNOWN_NAME : ERROR_SERVER,
              "%d requests in a row failed for good; the last: %s", BREAKER, e->text);
    halt(run, DRAIN_S);
}

/* Tokens of so many bytes, on the dear side: texts and code have three or four bytes a token. */
static long dear_tokens(size_t bytes)
{
    return (long)(bytes / 2) + 1;
}

/* Tells the caller that an attempt has ended. Returns 1 when it must not be sent again. The answer is
 * NULL where there is none; what came under status 200 may have to be paid all the same. */
static int tell_sent(Run *run, Slot *s, int status, const LlmAnswer *a, int again)
{
    LlmAttempt t = {.index = s->index,
                    .status = status,
                    .again = again && !run->halted,
                    .prompt_bytes = strlen(s->prompt),
                    .max_tokens = run->opt.max_tokens};
    if (!run->opt.sent) return 0;
    size_t bytes = s->reply.len;
    if (a) {
        bytes = strlen(a->text) + (a->reasoning ? strlen(a->reasoning) : 0);
        t.prompt_tokens = a->prompt_tokens;
        t.completion_tokens = a->completion_tokens;
    }
    if (status == 200 && t.prompt_tokens <= 0) {
        t.prompt_tokens = dear_tokens(t.prompt_bytes);
        t.estimated = 1;
    }
    if (status == 200 && t.completion_tokens <= 0 && bytes) {
        long most = dear_tokens(bytes);
        t.completion_tokens = most < t.max_tokens ? most : t.max_tokens;
        t.estimated = 1;
    }
    int rc = run->opt.sent(run->opt.sent_ctx, &t, &run->why);
    if (rc >= 0) return rc;
    run->halted = 1;
    run->drain_until = 0;
    return 1;
}

static void start(Run *run, Slot *s)
{
    Error e;
    free(s->body);
    s->dialect = run->dialect;
    s->body = llm_request_body(&run->opt, &s->dialect, s->prompt, s->seed, &e);
    if (!s->body) {
        tell_sent(run, s, LLM_UNSENT, NULL, 0);
        fail_request(run, s, 0, e.text);
        return;
    }
    buffer_clear(&s->reply);
    s->curl_says[0] = 0;
    s->attempts++;
    s->started = clock_seconds();
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(s->body));
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, s->body);
    if (curl_multi_add_handle(run->multi, s->easy)) {
        error_set(&e, ERROR_SERVER, "%s: libcurl took no more requests", run->endpoint.where);
        give_up(run, s, 0, &e);
        return;
    }
    s->state = SLOT_RUNNING;
    run->running++;
}

/* ---- after an attempt ---- */

/* The value of a header as a number, or -1. */
static double number_header(const Slot *s, const char *name)
{
    struct curl_header *h;
    if (curl_easy_header(s->easy, name, 0, CURLH_HEADER, -1, &h)) return -1;
    char *rest;
    double v = strtod(h->value, &rest);
    return rest == h->value || *rest || !isfinite(v) || v < 0 ? -1 : v;
}

/* Seconds that the server asks to wait, or -1. */
static double asked_to_wait(const Slot *s)
{
    double ms = number_header(s, "retry-after-ms"), seconds = number_header(s, "retry-after");
    if (ms >= 0) return ms / 1000;
    if (seconds >= 0) return seconds;
    curl_off_t date = 0; /* libcurl parses a date */
    return !curl_easy_getinfo(s->easy, CURLINFO_RETRY_AFTER, &date) && date > 0 ? (double)date : -1;
}

/* Halve the limit of requests at once. Requests that were started before the last cut do not count
 * again. */
static void slow_down(Run *run, const Slot *s, double now)
{
    if (s->started < run->last_cut) return;
    run->last_cut = now;
    run->limit = fmax(1, run->limit / 2);
    log_debug("%s: %d requests at once from now on", run->endpoint.where, (int)run->limit);
}

/* Lower the limit to the number of requests that the server says it will still accept. */
static void heed_remaining(Run *run, const Slot *s)
{
    double left = number_header(s, "x-ratelimit-remaining-requests");
    if (left < 0) left = number_header(s, "anthropic-ratelimit-requests-remaining");
    if (left >= 0 && left < run->limit) run->limit = fmax(1, left);
}

/* The request waits for its next attempt. Where no more may be sent it is dropped: a resumed run asks
 * again. */
static void wait_until(Run *run, Slot *s, int status, double wake)
{
    if (tell_sent(run, s, status, NULL, 1)) {
        empty_slot(s);
        return;
    }
    s->state = SLOT_WAITING;
    s->wake = wake;
    run->waiting++;
}

/* A request that is given up after this attempt. */
static void lose(Run *run, Slot *s, int status, const Error *e)
{
    tell_sent(run, s, status, NULL, 0);
    give_up(run, s, status, e);
}

static void drop(Run *run, Slot *s, int status)
{
    tell_sent(run, s, status, NULL, 0);
    empty_slot(s);
}

static void try_again(Run *run, Slot *s, int status, const Error *e, double now)
{
    double asked = asked_to_wait(s), give_up_s = run->opt.give_up_s;
    if (run->halted) { /* a resumed run asks again */
        drop(run, s, status);
        return;
    }
    if (status == 429 || status == 503 || status == 529) {
        slow_down(run, s, now);
        if (asked > 0) run->paused_until = fmax(run->paused_until, now + fmin(asked, give_up_s));
    }
    if (s->first_failure == 0) s->first_failure = s->started;
    double delay = llm_retry_delay(&run->random, s->attempts, asked);
    if (now + delay - s->first_failure > give_up_s) {
        Error final;
        if (asked > give_up_s)
            error_set(&final, ERROR_LIMIT,
                      "%s and asks to wait %.0f s, more than the %.0f s of patience", e->text,
                      asked, give_up_s);
        else
            error_set(&final, ERROR_SERVER, "%s; given up after %d attempts in %.0f s", e->text,
                      s->attempts, now - s->first_failure);
        lose(run, s, status, &final);
        return;
    }
    if (now - run->last_said > SAY_EVERY_S) {
        log_info("%s; trying again (%d requests are waiting)", e->text, run->waiting + 1);
        run->last_said = now;
    }
    log_debug("request %zu, attempt %d: %s; again in %.2f s", s->index, s->attempts, e->text,
              delay);
    wait_until(run, s, status, now + delay);
}

/* Appends the beginning of a reply that is no answer to the error, on one line. */
static void show_reply(const Slot *s, Error *e)
{
    char shown[SHOWN + 1];
    size_t n = s->reply.len < SHOWN ? s->reply.len : SHOWN;
    if (!n) return;
    memcpy(shown, s->reply.data, n);
    shown[n] = 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)shown[i] < 0x20 || (unsigned char)shown[i] >= 0x7f) shown[i] = ' ';
    char *was = memory_strdup(e->text);
    error_set(e, e->code, "%s; the reply begins: %s", was, shown);
    free(was);
}

/* A reply under status 200 is no answer. It may be one the next time, but not for ever. */
static void take_useless(Run *run, Slot *s, Error *e, double now)
{
    if (++s->useless < USELESS) {
        try_again(run, s, 200, e, now);
        return;
    }
    show_reply(s, e);
    lose(run, s, 200, e);
}

static void stop_run(Run *run, Slot *s, int status, const Error *e)
{
    run->why = run->halted ? run->why : *e;
    halt(run, DRAIN_S);
    drop(run, s, status); /* a resumed run asks again */
}

static void take_reply(Run *run, Slot *s, int status, double now)
{
    LlmAnswer a;
    Error e;
    if (llm_reply_parse(run->opt.api, s->reply.data, s->reply.len, &a, &e)) {
        error_prefix(&e, "%s", run->endpoint.where);
        llm_endpoint_redact(&run->endpoint, e.text, strlen(e.text));
        if (llm_is_hopeless(&a.refusal))
            stop_run(run, s, status, &e);
        else
            take_useless(run, s, &e, now);
        return;
    }
    llm_endpoint_redact(&run->endpoint, a.text, strlen(a.text));
    if (a.filtered) {
        error_set(&e, ERROR_SERVER, "the model or a content filter refused to answer");
        tell_sent(run, s, status, &a, 0);
        give_up(run, s, status, &e);
        llm_answer_release(&a);
        return;
    }
    *run->given_up_in_row = 0;
    run->limit = fmin(run->limit + 1 / run->limit, run->opt.concurrency);
    heed_remaining(run, s);
    LlmReply reply = {.text = a.text,
                      .reasoning = a.reasoning,
                      .finish = a.finish,
                      .http_status = status,
                      .prompt_tokens = a.prompt_tokens,
                      .completion_tokens = a.completion_tokens,
                      .model_returned = a.model ? a.model : "",
                      .ids = a.ids,
                      .prompt_ids = a.prompt_ids,
                      .logprobs = a.logprobs,
                      .n_ids = a.n_ids,
                      .n_prompt_ids = a.n_prompt_ids};
    tell_sent(run, s, status, &a, 0);
    end_request(run, s, &reply);
    llm_answer_release(&a);
}

/* Whether the server does not have the model: it answers 404, as vLLM does, or refuses the adapter
 * of "BASE:ADAPTER" by name with 400, as SGLang does. */
static int lacks_model(const LlmOptions *o, int status, const LlmRefusal *r)
{
    const char *adapter = strrchr(o->model, ':');
    return status == 404 || (status == 400 && adapter && strstr(r->message, adapter + 1));
}

/* An HTTP reply came whole. */
static void take_http(Run *run, Slot *s, int status, double now)
{
    LlmRefusal refusal = {0};
    Error e;
    struct curl_header *h;
    const char *should =
        curl_easy_header(s->easy, "x-should-retry", 0, CURLH_HEADER, -1, &h) ? NULL : h->value;
    if (status != 200) llm_refusal_parse(s->reply.data, s->reply.len, &refusal);
    const char *says = *refusal.message ? refusal.message : refusal.code;
    error_set(&e, lacks_model(&run->opt, status, &refusal) ? ERROR_UNKNOWN_NAME : ERROR_SERVER,
              "%s answered %d%s%s%s", run->endpoint.where, status, *says ? " (" : "", says,
              *says ? ")" : "");
    llm_endpoint_redact(&run->endpoint, e.text,
                        strlen(e.text)); /* JSON may have hidden it behind escapes */
    switch (llm_classify(status, &refusal, should)) {
    case LLM_TAKE: take_reply(run, s, status, now); return;
    case LLM_AGAIN: try_again(run, s, status, &e, now); return;
    case LLM_STOP: stop_run(run, s, status, &e); return;
    case LLM_FAIL: break;
    }
    LlmDialect adapted = s->dialect; /* run->dialect may have changed since this attempt */
    if (llm_adapt(&adapted, &run->opt, status, &refusal)) {
        if (memcmp(&adapted, &run->dialect, sizeof adapted))
            log_warn("%s; the request goes again without that field", e.text);
        run->dialect = adapted;
        wait_until(run, s, status, now);
    } else if (llm_too_long(&refusal)) {
        tell_sent(run, s, status, NULL, 0);
        fail_request(run, s, status, e.text); /* says nothing about others: the breaker stays */
    } else {
        lose(run, s, status, &e);
    }
}

/* Errors that no retry changes: a URL that libcurl cannot use, an untrusted certificate. */
static int is_hopeless(CURLcode code)
{
    return code == CURLE_URL_MALFORMAT || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM;
}

/* Whether something came that is no answer: half of one, or no HTTP at all. */
static int is_useless(CURLcode code, long status)
{
    return code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL ||
           (status == 200 && code != CURLE_OPERATION_TIMEDOUT);
}

/* Returns whether this attempt made a connection. The CURLcode does not tell: a silent host and a
 * slow answer are both time-outs. A reused connection has no connect time, but the attempt that
 * made it had one. */
static int connected(const Slot *s)
{
    curl_off_t us = 0;
    return !curl_easy_getinfo(s->easy, CURLINFO_CONNECT_TIME_T, &us) && us > 0;
}

static void attempt_ended(Run *run, Slot *s, CURLcode code)
{
    long status = 0;
    double now = clock_seconds();
    Error e;
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(run->multi, s->easy);
    run->running--;
    run->reached |= connected(s);
    llm_endpoint_redact(&run->endpoint, s->reply.data, s->reply.len);
    llm_endpoint_redact(&run->endpoint, s->curl_says, strlen(s->curl_says));
    if (code == CURLE_OK) {
        take_http(run, s, (int)status, now);
        return;
    }
    error_set(&e, ERROR_SERVER, "%s: %s", run->endpoint.where,
              *s->curl_says ? s->curl_says : curl_easy_strerror(code));
    if (s->reply.full) {
        error_set(&e, ERROR_LIMIT, "%s: a reply of more than %d bytes", run->endpoint.where,
                  MAX_REPLY);
        lose(run, s, (int)status, &e);
    } else if (is_hopeless(code)) {
        run->why = run->halted ? run->why : e;
        halt(run, 0);
        drop(run, s, 0);
    } else if (!run->reached && s->first_failure > 0 &&
               now - s->first_failure > run->opt.absent_s) {
        if (!run->halted)
            error_set(&run->why, ERROR_SERVER, "%s; nothing was reached there for %.0f s", e.text,
                      run->opt.absent_s);
        halt(run, 0);
        drop(run, s, 0);
    } else if (is_useless(code, status)) {
        take_useless(run, s, &e, now);
    } else {
        try_again(run, s, (int)status, &e, now);
    }
}

/* ---- the loop ---- */

/* Put the next request that is not skipped into an idle slot. Returns 0 when there is none. */
static int take_next(Run *run, Slot *s)
{
    while (run->next < run->n) {
        size_t index = run->next++;
        s->seed = 0;
        const char *prompt = run->prompt(run->ctx, index, &s->seed);
        if (!prompt) continue;
        s->index = index;
        s->prompt = memory_strdup(prompt);
        return 1;
    }
    return 0;
}

/* Start requests up to the limit: first those whose wait is over, then new ones. */
static void fill(Run *run, double now)
{
    if (run->halted || now < run->paused_until) return;
    for (int i = 0; i < run->n_slots && run->running < (int)run->limit && !run->halted; i++) {
        Slot *s = &run->slots[i];
        if (s->state != SLOT_WAITING || s->wake > now) continue;
        s->state = SLOT_IDLE;
        run->waiting--;
        start(run, s);
    }
    for (int i = 0; i < run->n_slots && run->running < (int)run->limit && !run->halted; i++)
        while (run->slots[i].state == SLOT_IDLE && !run->halted && take_next(run, &run->slots[i]))
            start(run, &run->slots[i]);
}

static int milliseconds_to_wait(const Run *run, double now)
{
    double until = now + 1;
    if (run->halted) {
        until = fmin(until, run->drain_until);
    } else if (now < run->paused_until) {
        until = fmin(until, run->paused_until);
    } else {
        for (int i = 0; i < run->n_slots && run->running < (int)run->limit; i++)
            if (run->slots[i].state == SLOT_WAITING) until = fmin(until, run->slots[i].wake);
    }
    return until <= now ? 0 : (int)((until - now) * 1000) + 1;
}

static void look_for_stop(Run *run)
{
    int sig = stop_requested();
    if (!sig || run->halted) return;
    error_set(&run->why, ERROR_STOPPED, "stopped by signal %d", sig);
    halt(run, DRAIN_S);
}

static int loop(Run *run)
{
    for (;;) {
        int active, left;
        double now = clock_seconds();
        look_for_stop(run);
        fill(run, now);
        if (!run->running && (run->halted || (!run->waiting && run->next == run->n))) return 0;
        if (run->halted && now >= run->drain_until) return 0;
        CURLMcode bad = curl_multi_perform(run->multi, &active);
        CURLMsg *m;
        int news = 0;
        while ((m = curl_multi_info_read(run->multi, &left)))
            if (m->msg == CURLMSG_DONE) {
                char *slot = NULL;
                CURLcode code = m->data.result; /* remove_handle frees m */
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &slot);
                attempt_ended(run, (Slot *)slot, code);
                news = 1;
            }
        struct curl_waitfd stop = {.fd = stop_fd(), .events = CURL_WAIT_POLLIN};
        int ms = news ? 0 : milliseconds_to_wait(run, clock_seconds());
        /* After the first signal its descriptor stays readable: do not poll it any more. */
        if (!bad)
            bad = curl_multi_poll(run->multi, &stop, stop.fd >= 0 && !stop_requested(), ms, NULL);
        if (bad)
            return error_set(&run->why, ERROR_SERVER, "%s: libcurl: %s", run->endpoint.where,
                             curl_multi_strerror(bad));
    }
}

static void release(Run *run)
{
    for (int i = 0; i < run->n_slots; i++) {
        Slot *s = &run->slots[i];
        if (s->state == SLOT_RUNNING) {
            curl_multi_remove_handle(run->multi, s->easy);
            tell_sent(run, s, 0, NULL, 0);
        }
        if (s->easy) curl_easy_cleanup(s->easy);
        empty_slot(s);
        buffer_release(&s->reply);
    }
    if (run->multi) curl_multi_cleanup(run->multi);
    free(run->slots);
    llm_endpoint_release(&run->endpoint);
}

static int check_options(LlmOptions *o, Error *err)
{
    if (!o->model || !*o->model)
        return error_set(err, ERROR_USAGE, "llm: expected the name of a model, found none");
    if (o->max_tokens < 1)
        return error_set(err, ERROR_USAGE, "llm: expected max_tokens of 1 or more, found %d",
                         o->max_tokens);
    if (o->concurrency < 1 || o->concurrency > MAX_CONCURRENCY)
        return error_set(err, ERROR_USAGE, "llm: expected a concurrency of 1 to %d, found %d",
                         MAX_CONCURRENCY, o->concurrency);
    double hottest = o->api == LLM_ANTHROPIC ? 1 : 2;
    if (!(o->temperature >= 0 && o->temperature <= hottest))
        return error_set(err, ERROR_USAGE,
                         "llm: this API expects a temperature of 0 to %g, found %g", hottest,
                         o->temperature);
    if (o->connect_timeout_s <= 0) o->connect_timeout_s = 10;
    if (o->request_timeout_s <= 0) o->request_timeout_s = 600;
    if (o->give_up_s <= 0) o->give_up_s = 900;
    if (o->absent_s <= 0) o->absent_s = 60;
    return 0;
}

int llm_run(const LlmOptions *opt, size_t n, LlmPrompt *prompt, LlmDone *done, void *ctx,
            Error *err)
{
    static int started;
    Run run = {.opt = *opt, .n = n, .prompt = prompt, .done = done, .ctx = ctx};
    if (check_options(&run.opt, err)) return -1;
    if (!started++ && curl_global_init(CURL_GLOBAL_DEFAULT))
        return error_set(err, ERROR_IO, "libcurl could not be set up");
    if (llm_endpoint_init(&run.endpoint, &run.opt, err)) return -1;
    run.n_slots = run.opt.concurrency;
    if (n < (size_t)run.n_slots) run.n_slots = n ? (int)n : 1;
    run.slots = memory_array((size_t)run.n_slots, sizeof *run.slots);
    run.limit = run.n_slots;
    run.given_up_in_row = opt->in_row ? opt->in_row : &run.own_row;
    run.last_said = -SAY_EVERY_S;
    /* Jitter must differ between processes, so the seed is not the run's. */
    random_init(&run.random, (uint64_t)getpid(), (uint64_t)time(NULL));
    run.multi = curl_multi_init();
    int failed = !run.multi;
    for (int i = 0; i < run.n_slots && !failed; i++) failed = make_slot(&run, &run.slots[i]);
    if (failed)
        error_set(&run.why, ERROR_MEMORY, "out of memory for %d requests at once", run.n_slots);
    failed = failed || loop(&run) || run.halted;
    if (failed && run.halted)
        error_set(err, run.why.code, "%s; %zu of %zu requests had ended", run.why.text, run.ended,
                  n);
    else if (failed)
        error_set(err, run.why.code, "%s", run.why.text);
    release(&run);
    return failed ? -1 : 0;
}

/* ---- endpoints by name ---- */

int llm_is_endpoint(const char *name)
{
    return !strncmp(name, "openai:", 7) || !strncmp(name, "anthropic:", 10);
}

LlmOptions llm_endpoint_options(const char *name, int max_tokens, int concurrency)
{
    return (LlmOptions){.api = name[0] == 'a' ? LLM_ANTHROPIC : LLM_OPENAI,
                        .model = strchr(name, ':') + 1,
                        .temperature = 1,
                        .max_tokens = max_tokens,
                        .concurrency = concurrency,
                        .connect_timeout_s = 10,
                        .request_timeout_s = 600};
}
