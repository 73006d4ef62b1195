/* Writing of request bodies and parsing of replies. Replies come from outside: every field may be
 * absent or of another type. */
#include "llm/request.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"
#include "llm/llm.h"

/* ---- a reply that comes as a stream ---- */

typedef struct {
    Buffer text, thought;
    json_t *usage, *logprobs, *ids, *prompt_ids; /* NULL: none came */
    json_t *error;                               /* an event with an error, whole */
    char *model, *finish;
    int done;
} Joined;

enum { MAX_TEXT = 16 << 20 };

/* Whether a body is a stream of events: its first line is a field of one. */
static int llm_stream_is(const char *body, size_t len)
{
    static const char *const fields[] = {"data:", "event:", "id:", "retry:", ":"};
    size_t at = 0;
    while (at < len && strchr("\r\n", body[at])) at++;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t n = strlen(fields[i]);
        if (len - at >= n && !memcmp(body + at, fields[i], n)) return 1;
    }
    return 0;
}

static void put(Buffer *b, const json_t *text)
{
    if (json_is_string(text)) buffer_append(b, json_string_value(text), json_string_length(text));
}

static void keep_text(char **to, const json_t *text)
{
    if (!json_is_string(text) || !*json_string_value(text)) return;
    free(*to);
    *to = memory_strdup(json_string_value(text));
}

static void keep(json_t **to, json_t *value)
{
    if (!value || json_is_null(value)) return;
    json_decref(*to);
    *to = json_incref(value);
}

/* Adds the elements of a list to one that is made when the first come. */
static void extend(json_t **to, const json_t *list)
{
    size_t i;
    json_t *one;
    if (!json_array_size(list)) return;
    if (!*to) *to = json_array();
    json_array_foreach(list, i, one) json_array_append(*to, one);
}

static void add_openai(Joined *j, const json_t *event)
{
    const json_t *choices = json_object_get(event, "choices"), *c = json_array_get(choices, 0);
    const json_t *index = json_object_get(c, "index");
    keep(&j->usage, json_object_get(event, "usage"));
    keep(&j->prompt_ids, json_object_get(event, "prompt_token_ids"));
    keep_text(&j->model, json_object_get(event, "model"));
    if (!c || (json_is_integer(index) && json_integer_value(index) != 0)) return;
    /* Some servers send a whole message as the only event. */
    const json_t *delta = json_object_get(c, "delta");
    if (!delta) delta = json_object_get(c, "message");
    const json_t *thought = json_object_get(delta, "reasoning_content");
    put(&j->text, json_object_get(delta, "content"));
    put(&j->thought, json_is_string(thought) ? thought : json_object_get(delta, "reasoning"));
    extend(&j->ids, json_object_get(c, "token_ids"));
    extend(&j->logprobs, json_object_get(json_object_get(c, "logprobs"), "content"));
    keep_text(&j->finish, json_object_get(c, "finish_reason"));
}

static void add_anthropic(Joined *j, const json_t *event)
{
    const json_t *message = json_object_get(event, "message"),
                 *delta = json_object_get(event, "delta");
    json_t *usage = json_object_get(event, "usage");
    if (!usage) usage = json_object_get(message, "usage");
    if (usage && !j->usage) j->usage = json_object();
    if (usage) json_object_update(j->usage, usage);
    keep_text(&j->model, json_object_get(message, "model"));
    put(&j->text, json_object_get(delta, "text"));
    put(&j->thought, json_object_get(delta, "thinking"));
    keep_text(&j->finish, json_object_get(delta, "stop_reason"));
    const char *type = json_string_value(json_object_get(event, "type"));
    j->done |= type && !strcmp(type, "message_stop");
}

/* Takes the data of one event. */
static int add_event(Joined *j, LlmApi api, const char *data, size_t len, Error *err)
{
    if (len == 6 && !memcmp(data, "[DONE]", 6)) {
        j->done = 1;
        return 0;
    }
    json_t *event = json_read_text(data, len, "reply, an event", err);
    if (!event) return -1;
    json_t *error = json_object_get(event, "error");
    if (error && !json_is_null(error))
        keep(&j->error, event);
    else if (api == LLM_OPENAI)
        add_openai(j, event);
    else
        add_anthropic(j, event);
    json_decref(event);
    return 0;
}

/* Reads the events: the "data" lines up to an empty line are one. */
static int read_events(Joined *j, LlmApi api, const char *body, size_t len, Error *err)
{
    Buffer data;
    int rc = 0;
    buffer_init(&data, MAX_TEXT);
    for (const char *p = body, *end = body + len; p < end && !rc && !j->error;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl : end) - p);
        if (n && p[n - 1] == '\r') n--;
        if (n >= 5 && !memcmp(p, "data:", 5)) {
            size_t skip = n > 5 && p[5] == ' ' ? 6 : 5;
            buffer_append(&data, p + skip, n - skip);
        }
        p = nl ? nl + 1 : end;
        if ((n && p < end) || !data.len) continue;
        rc = add_event(j, api, data.data, data.len, err);
        buffer_clear(&data);
    }
    buffer_release(&data);
    return rc;
}

static json_t *text_value(const Buffer *b)
{
    return json_stringn(b->data ? b->data : "", b->len);
}

/* The reply of the usual shape. */
static json_t *reply_of(Joined *j, LlmApi api)
{
    json_t *reply = json_object();
    if (api == LLM_OPENAI) {
        json_t *choice = json_pack("{s:i, s:s?, s:{s:o, s:o}}", "index", 0, "finish_reason",
                                   j->finish, "message", "content", text_value(&j->text),
                                   "reasoning", text_value(&j->thought));
        if (j->ids) json_object_set(choice, "token_ids", j->ids);
        if (j->logprobs)
            json_object_set_new(choice, "logprobs", json_pack("{s:O}", "content", j->logprobs));
        if (j->prompt_ids) json_object_set(reply, "prompt_token_ids", j->prompt_ids);
        json_object_set_new(reply, "choices", json_pack("[o]", choice));
    } else {
        json_object_set_new(reply, "content",
                            json_pack("[{s:s, s:o}, {s:s, s:o}]", "type", "thinking", "thinking",
                                      text_value(&j->thought), "type", "text", "text",
                                      text_value(&j->text)));
        json_object_set_new(reply, "stop_reason", json_string(j->finish ? j->finish : ""));
    }
    if (j->usage) json_object_set(reply, "usage", j->usage);
    if (j->model) json_object_set_new(reply, "model", json_string(j->model));
    return reply;
}

static void release(Joined *j)
{
    buffer_release(&j->text);
    buffer_release(&j->thought);
    json_decref(j->usage);
    json_decref(j->logprobs);
    json_decref(j->ids);
    json_decref(j->prompt_ids);
    json_decref(j->error);
    free(j->model);
    free(j->finish);
}

/* Writes the reply that the server would have sent without a stream, as JSON. A stream that ends
 * before the answer does is ERROR_SERVER. */
static int llm_stream_join(LlmApi api, const char *body, size_t len, Buffer *out, Error *err)
{
    Joined j = {0};
    buffer_init(&j.text, MAX_TEXT);
    buffer_init(&j.thought, MAX_TEXT);
    int rc = read_events(&j, api, body, len, err);
    if (!rc && !j.error && !j.done && !j.finish)
        rc = error_set(err, ERROR_SERVER, "reply: the stream of events ends before the answer");
    json_t *reply = rc ? NULL : j.error ? json_incref(j.error) : reply_of(&j, api);
    char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;
    if (!rc && !text)
        rc =
            error_set(err, ERROR_SERVER, "reply: the stream of events holds text that is no UTF-8");
    if (text) buffer_puts(out, text);
    free(text);
    json_decref(reply);
    release(&j);
    return rc;
}

/* ---- requests ---- */

static json_t *message(const char *role, const char *content)
{
    return json_pack("{s:s, s:s}", "role", role, "content", content);
}

/* Add the sampling parameters and, for want_ids, the request for ids and log-probabilities. */
static void add_sampling(json_t *body, const LlmOptions *o, const LlmDialect *d)
{
    int all = o->want_ids && o->api == LLM_OPENAI && !d->no_ids;
    if (o->top_p > 0 || all)
        json_object_set_new(body, "top_p", json_real(o->top_p > 0 ? o->top_p : 1));
    if (o->top_k > 0 || all)
        json_object_set_new(body, "top_k", json_integer(o->top_k > 0 ? o->top_k : -1));
    if (o->min_p > 0 || all) json_object_set_new(body, "min_p", json_real(o->min_p));
    if (o->stop && o->api == LLM_OPENAI)
        json_object_set_new(body, "stop", json_pack("[s]", o->stop));
    if (o->stop && o->api == LLM_ANTHROPIC)
        json_object_set_new(body, "stop_sequences", json_pack("[s]", o->stop));
    if (!all) return;
    json_object_set_new(body, "repetition_penalty", json_real(1));
    json_object_set_new(body, "logprobs", json_true());
    json_object_set_new(body, "return_token_ids", json_true());
    json_object_set_new(body, "return_tokens_as_token_ids", json_true()); /* vLLM before 0.10.2 */
}

char *llm_request_body(const LlmOptions *opt, const LlmDialect *dialect, const char *prompt,
                       uint64_t seed, Error *err)
{
    json_t *body = json_object(), *messages = json_array(), *user = message("user", prompt);
    json_t *system = opt->system ? message("system", opt->system) : NULL;
    char *text = NULL;
    if (!user || (opt->system && !system)) {
        error_set(err, ERROR_CORRUPT, "the prompt is not valid UTF-8: JSON cannot carry it");
        goto done;
    }
    json_object_set_new(body, "model", json_string(opt->model));
    if (system && opt->api == LLM_ANTHROPIC)
        json_object_set_new(body, "system", json_string(opt->system));
    else if (system)
        json_array_append(messages, system);
    json_array_append(messages, user);
    json_object_set(body, "messages", messages);
    int newer = opt->api == LLM_OPENAI && dialect->max_completion_tokens;
    json_object_set_new(body, newer ? "max_completion_tokens" : "max_tokens",
                        json_integer(opt->max_tokens));
    if (!dialect->no_temperature)
        json_object_set_new(body, "temperature", json_real(opt->temperature));
    /* Servers disagree on the width of a seed; 31 bits fit all of them. Anthropic has none. */
    if (opt->api == LLM_OPENAI && !dialect->no_seed)
        json_object_set_new(body, "seed", json_integer((json_int_t)(seed & 0x7fffffff)));
    add_sampling(body, opt, dialect);
    if (dialect->stream) json_object_set_new(body, "stream", json_true());
    if (dialect->stream == 1 && opt->api == LLM_OPENAI)
        json_object_set_new(body, "stream_options", json_pack("{s:b}", "include_usage", 1));
    text = json_dumps(body, JSON_COMPACT);
    if (!text)
        error_set(err, ERROR_CORRUPT, "the model's name is not valid UTF-8: JSON cannot carry it");
done:
    json_decref(body);
    json_decref(messages);
    json_decref(user);
    json_decref(system);
    return text;
}

/* ---- replies ---- */

void llm_answer_release(LlmAnswer *a)
{
    free(a->text);
    free(a->reasoning);
    free(a->model);
    free(a->ids);
    free(a->prompt_ids);
    free(a->logprobs);
    *a = (LlmAnswer){0};
}

static const char *text_of(const json_t *obj, const char *key)
{
    const char *s = json_string_value(json_object_get(obj, key));
    return s ? s : "";
}

static long tokens(const json_t *reply, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(json_object_get(reply, "usage"), key));
    return n < 0 || n > 1 << 30 ? 0 : (long)n;
}

/* Content is a text, null, or a list of parts. Returns the text, or the joined texts of the parts
 * of one type. The caller frees it. */
static char *joined(const json_t *content, const char *type, const char *key)
{
    Buffer b;
    size_t i;
    json_t *part;
    buffer_init(&b, (size_t)1 << 30);
    if (json_is_string(content)) buffer_puts(&b, json_string_value(content));
    json_array_foreach(content, i, part)
    {
        if (!strcmp(text_of(part, "type"), type)) buffer_puts(&b, text_of(part, key));
    }
    char *s = buffer_detach(&b);
    buffer_release(&b);
    return s;
}

static const char think_open[] = "<think>", think_close[] = "</think>";

/* Find the end tag of a reasoning text whose opening tag was in the prompt. Returns NULL when there
 * is none. The first end tag counts: the answer after it may mention the tag. A tag inside a code
 * block is part of the code, unless it begins its line, which no C line does: then the code block
 * was left open. */
static const char *end_of_thought(const char *text)
{
    int in_code = 0;
    const char *tag = strstr(text, think_close), *line = text;
    while (tag) {
        const char *first = line + strspn(line, " \t\r"), *end = line + strcspn(line, "\n");
        if (tag < end && (!in_code || tag == first)) return tag;
        while (tag && tag < end) tag = strstr(tag + 1, think_close);
        in_code ^= !strncmp(first, "```", 3);
        line = end + 1; /* a tag follows, so `end` is a line feed */
    }
    return NULL;
}

/* Split the reasoning off the answer. Servers without a reasoning parser send it in front of the
 * answer, with its opening tag, or without it when their template puts the tag into the prompt. A
 * reasoning text without an end was cut by the token limit: the answer is then empty. */
static void split_thinking(LlmAnswer *a)
{
    const char *start = a->text + strspn(a->text, " \t\r\n"), *end;
    if (!strncmp(start, think_open, sizeof think_open - 1)) {
        start += sizeof think_open - 1;
        end = strstr(start, think_close);
    } else {
        end = a->reasoning ? NULL : end_of_thought(start); /* the server sent it separately */
        if (!end) return;
    }
    const char *rest = end ? end + sizeof think_close - 1 : "";
    if (!a->reasoning)
        a->reasoning = memory_strndup(start, end ? (size_t)(end - start) : strlen(start));
    char *answer = memory_strdup(rest + strspn(rest, "\r\n"));
    free(a->text);
    a->text = answer;
}

/* Read a list of token ids. Returns NULL unless all elements are numbers in range. */
static int32_t *ids_of(const json_t *list, size_t *n)
{
    *n = json_array_size(list);
    if (!*n) return NULL;
    int32_t *ids = memory_array(*n, sizeof *ids);
    for (size_t i = 0; i < *n; i++) {
        const json_t *v = json_array_get(list, i);
        json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id > INT32_MAX) {
            free(ids);
            *n = 0;
            return NULL;
        }
        ids[i] = (int32_t)id;
    }
    return ids;
}

/* Read the id of a token "token_id:123". Returns -1 for any other text. */
static json_int_t id_of_token(const json_t *entry)
{
    const char *s = text_of(entry, "token");
    if (strncmp(s, "token_id:", 9)) return -1;
    char *rest;
    long long id = strtoll(s + 9, &rest, 10);
    return rest == s + 9 || *rest || id > INT32_MAX ? -1 : id;
}

/* Read token ids, as vLLM and SGLang send them, and their log-probabilities. Incomplete lists are
 * left out. */
static void parse_tokens(const json_t *reply, const json_t *choice, LlmAnswer *a)
{
    const json_t *content = json_object_get(json_object_get(choice, "logprobs"), "content"), *entry;
    size_t n = json_array_size(content), i;
    a->ids = ids_of(json_object_get(choice, "token_ids"), &a->n_ids);
    a->prompt_ids = ids_of(json_object_get(reply, "prompt_token_ids"), &a->n_prompt_ids);
    if (!a->prompt_ids)
        a->prompt_ids = ids_of(json_object_get(choice, "prompt_token_ids"), &a->n_prompt_ids);
    if (!a->ids && n) {
        json_t *list = json_array();
        json_array_foreach(content, i, entry)
            json_array_append_new(list, json_integer(id_of_token(entry)));
        a->ids = ids_of(list, &a->n_ids);
        json_decref(list);
    }
    if (!a->ids || n != a->n_ids) return;
    a->logprobs = memory_array(n, sizeof *a->logprobs);
    json_array_foreach(content, i, entry)
    {
        const json_t *v = json_object_get(entry, "logprob");
        a->logprobs[i] = json_number_value(v);
        if (json_is_number(v) && a->logprobs[i] <= 0 && a->logprobs[i] > -1e4) continue;
        free(a->logprobs);
        a->logprobs = NULL;
        return;
    }
}

static int parse_openai(const json_t *reply, LlmAnswer *a, Error *err)
{
    json_t *choices = json_need_array(reply, "choices", "reply", err), *choice = NULL, *c;
    size_t i;
    if (!choices) return -1;
    /* One choice was asked for. Of several, take the one with index 0, else the first. */
    json_array_foreach(choices, i, c)
    {
        const json_t *index = json_object_get(c, "index");
        if (!choice || (json_is_integer(index) && json_integer_value(index) == 0)) choice = c;
    }
    if (!choice)
        return error_set(err, ERROR_SERVER, "reply, choices: expected 1 element, found none");
    json_t *m = json_need_object(choice, "message", "reply, choices[0]", err);
    if (!m) return -1;
    const char *finish = text_of(choice, "finish_reason"), *refusal = text_of(m, "refusal");
    a->filtered = !strcmp(finish, "content_filter") || *refusal;
    a->finish = !strcmp(finish, "length") ? "length" : "stop";
    json_t *content = json_object_get(m, "content");
    const char *thought = text_of(m, "reasoning");
    if (!*thought) thought = text_of(m, "reasoning_content");
    if (!a->filtered && !json_is_string(content) && !json_is_array(content) && !*thought)
        return error_set(
            err, ERROR_SERVER,
            "reply, choices[0].message: expected \"content\" to be a text, found none");
    a->text = joined(content, "text", "text");
    if (*thought) a->reasoning = memory_strdup(thought);
    a->prompt_tokens = tokens(reply, "prompt_tokens");
    a->completion_tokens = tokens(reply, "completion_tokens");
    parse_tokens(reply, choice, a);
    return 0;
}

static int parse_anthropic(const json_t *reply, LlmAnswer *a, Error *err)
{
    json_t *content = json_need_array(reply, "content", "reply", err);
    if (!content) return -1;
    const char *reason = text_of(reply, "stop_reason");
    a->filtered = !strcmp(reason, "refusal");
    /* pause_turn, like the two limits, ends before the answer does. */
    int cut = !strcmp(reason, "max_tokens") || !strcmp(reason, "model_context_window_exceeded") ||
              !strcmp(reason, "pause_turn");
    a->finish = cut ? "length" : "stop";
    a->text = joined(content, "text", "text");
    a->reasoning = joined(content, "thinking", "thinking");
    if (!*a->reasoning) {
        free(a->reasoning);
        a->reasoning = NULL;
    }
    a->prompt_tokens = tokens(reply, "input_tokens");
    a->completion_tokens = tokens(reply, "output_tokens");
    return 0;
}

enum { ESCAPE = 6 }; /* the length of \u0000 */

/* Read the number of an escape "\u1234". Returns -1 for any other text. */
static long escaped(const char *s, size_t len)
{
    if (len < ESCAPE || s[0] != '\\' || s[1] != 'u' || strspn(s + 2, "0123456789abcdefABCDEF") < 4)
        return -1;
    char digits[5] = {s[2], s[3], s[4], s[5]};
    return strtol(digits, NULL, 16);
}

/* Parse a reply. jansson refuses escapes of a NUL and of half a surrogate pair, with which an
 * answer ends that was cut inside a character. They are replaced by U+FFFD first. */
static json_t *read_reply(const char *body, size_t len, Error *err)
{
    char *text = memory_strndup(body, len);
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\\') continue;
        long code = escaped(text + i, len - i), half = code & ~0x3ffL;
        size_t n = code < 0 ? 2 : ESCAPE; /* skip the escaped character, which may be a backslash */
        if (half == 0xd800 && (escaped(text + i + n, len - i - n) & ~0x3ffL) == 0xdc00)
            n += ESCAPE;
        else if (code == 0 || half == 0xd800 || half == 0xdc00)
            memcpy(text + i, "\\ufffd", ESCAPE);
        i += n - 1;
    }
    json_t *reply = json_read_text(text, len, "reply", err);
    free(text);
    return reply;
}

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
    for (char *s = to; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = ' ';
}

/* Copies a text, or a number as text. */
static void copy_value(char *to, size_t size, const json_t *v)
{
    char number[24] = "";
    if (json_is_integer(v))
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(v));
    copy_text(to, size, json_is_string(v) ? json_string_value(v) : number);
}

enum { MAX_NESTED = 6 };

/* Finds what an error says, in the shapes that servers have: {"error": {"message", "type", "code",
 * "param"}}, {"error": "text"}, {"message": {"detail": ...}}, {"detail": [{"loc", "msg", "type"}]},
 * [{"error": ...}]. The first text counts; code, type and param stand beside it or above. */
static void find_refusal(const json_t *v, int depth, LlmRefusal *out)
{
    static const char *const says[] = {"error",   "message",      "msg",         "detail",
                                       "details", "errors",       "description", "reason",
                                       "title",   "error_message"};
    const json_t *loc = json_object_get(v, "loc");
    if (depth > MAX_NESTED || *out->message) return;
    if (json_is_string(v)) copy_text(out->message, sizeof out->message, json_string_value(v));
    if (json_is_array(v)) find_refusal(json_array_get(v, 0), depth + 1, out);
    if (!json_is_object(v)) return;
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        find_refusal(json_object_get(v, says[i]), depth + 1, out);
    if (!*out->code) copy_value(out->code, sizeof out->code, json_object_get(v, "code"));
    if (!*out->type) copy_value(out->type, sizeof out->type, json_object_get(v, "type"));
    if (!*out->type) copy_value(out->type, sizeof out->type, json_object_get(v, "status"));
    if (!*out->param) copy_value(out->param, sizeof out->param, json_object_get(v, "param"));
    if (json_array_size(loc) && !*out->param)
        copy_value(out->param, sizeof out->param, json_array_get(loc, json_array_size(loc) - 1));
}

/* Names the parameter in the message where only its place does. */
static void refusal_of(const json_t *reply, LlmRefusal *out)
{
    char said[sizeof out->message];
    *out = (LlmRefusal){0};
    find_refusal(reply, 0, out);
    if (!*out->param || !*out->message || strstr(out->message, out->param)) return;
    copy_text(said, sizeof said, out->message);
    snprintf(out->message, sizeof out->message, "%s: %.*s", out->param,
             (int)(sizeof said - sizeof out->param - 4), said);
}

void llm_refusal_parse(const char *body, size_t len, LlmRefusal *out)
{
    Error unused;
    json_t *reply = read_reply(body, len, &unused);
    *out = (LlmRefusal){0};
    if (reply) refusal_of(reply, out);
    json_decref(reply);
}

/* Reads a body: JSON, after a byte-order mark or not, or a stream of events. */
static json_t *read_body(LlmApi api, const char *body, size_t len, Error *err)
{
    if (len >= 3 && !memcmp(body, "\xef\xbb\xbf", 3)) body += 3, len -= 3;
    if (!llm_stream_is(body, len)) return read_reply(body, len, err);
    Buffer b;
    buffer_init(&b, (size_t)1 << 28);
    json_t *reply =
        llm_stream_join(api, body, len, &b, err) ? NULL : read_reply(b.data, b.len, err);
    buffer_release(&b);
    return reply;
}

int llm_reply_parse(LlmApi api, const char *body, size_t len, LlmAnswer *out, Error *err)
{
    *out = (LlmAnswer){0};
    json_t *reply = read_body(api, body, len, err);
    if (!reply) return -1;
    int rc;
    if (json_object_get(reply, "error") && !json_is_null(json_object_get(reply, "error"))) {
        refusal_of(reply, &out->refusal);
        rc = error_set(err, ERROR_SERVER, "reply: an error under the status of success: %s",
                       out->refusal.message);
    } else {
        rc = api == LLM_OPENAI ? parse_openai(reply, out, err) : parse_anthropic(reply, out, err);
    }
    if (!rc) {
        const char *model = text_of(reply, "model");
        if (*model) out->model = memory_strdup(model);
        split_thinking(out);
    } else {
        const LlmRefusal refusal = out->refusal;
        llm_answer_release(out);
        out->refusal = refusal;
    }
    json_decref(reply);
    return rc;
}
