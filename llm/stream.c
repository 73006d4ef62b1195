/* Each event is JSON with a piece of the answer; the pieces collect in a reply of the usual shape. */
#include "llm/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

typedef struct {
    Buffer text, thought;
    json_t *usage, *logprobs, *ids, *prompt_ids; /* NULL: none came */
    json_t *error;                               /* an event with an error, whole */
    char *model, *finish;
    int done;
} Joined;

enum { MAX_TEXT = 16 << 20 };

int llm_stream_is(const char *body, size_t len)
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

int llm_stream_join(LlmApi api, const char *body, size_t len, Buffer *out, Error *err)
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
