/* Writing of request bodies and parsing of replies. Replies come from outside: every field may be
 * absent or of another type. */
#include "llm/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"
#include "llm/stream.h"

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
