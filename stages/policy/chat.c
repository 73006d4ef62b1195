/* The layouts are a table; text collects in a buffer and is encoded before each special token. */
#include "stages/policy/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "model/tokenizer/unicode.h"

enum { MAX_FILE = 16 << 20, MAX_TEXT = 1 << 28 };

static const char qwen_system[] =
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

/* Special tokens by name. The token `header`, or else a line break, follows the name of a role. */
static const struct {
    const char *begin, *open, *header, *end, *system;
} layout[] = {
    [CHAT_SMALL] = {NULL, "<|im_start|>", NULL, "<|im_end|>", NULL},
    [CHAT_CHATML] = {NULL, "<|im_start|>", NULL, "<|im_end|>", NULL},
    [CHAT_QWEN2_5] = {NULL, "<|im_start|>", NULL, "<|im_end|>", qwen_system},
    [CHAT_QWEN3] = {NULL, "<|im_start|>", NULL, "<|im_end|>", NULL},
    [CHAT_LLAMA3] = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
                     NULL},
    [CHAT_LLAMA3_1] = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
                       "<|eot_id|>",
                       "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"},
};

static int is_llama(const Chat *c)
{
    return c->header >= 0;
}

/* ---- which template ---- */

static int special(const Tokenizer *t, const char *name, const char *where, int *id, Error *err)
{
    *id = name ? tokenizer_special(t, name) : -1;
    return name && *id < 0
               ? error_set(err, ERROR_INVALID,
                           "%s: expected the special token %s of its chat template, found none",
                           where, name)
               : 0;
}

int chat_make(const Tokenizer *t, ChatKind kind, const char *where, Chat *out, Error *err)
{
    *out = (Chat){.t = t, .kind = kind};
    return -(special(t, layout[kind].begin, where, &out->begin, err) ||
             special(t, layout[kind].open, where, &out->open, err) ||
             special(t, layout[kind].header, where, &out->header, err) ||
             special(t, layout[kind].end, where, &out->end, err));
}

/* Recognizes a template by a text that only it has. A template with another default system prompt,
 * or one whose prompt begins a thought, is refused: the model would read another prompt. */
static int kind_of(const char *template, const char *where, ChatKind *out, Error *err)
{
    static const char *const others[] = {"<|im_start|>system\nYou", "<|im_start|>system\\nYou",
                                         "<|im_start|>assistant\\n<think>",
                                         "<|im_start|>assistant\n<think>"};
    if (strstr(template, "<|start_header_id|>")) {
        *out = strstr(template, "Cutting Knowledge Date") ? CHAT_LLAMA3_1 : CHAT_LLAMA3;
        return 0;
    }
    if (strstr(template, "<|im_start|>")) {
        int other = 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            other |= strstr(template, others[i]) != NULL;
        *out = strstr(template, "enable_thinking") ? CHAT_QWEN3
               : strstr(template, qwen_system)     ? CHAT_QWEN2_5
                                                   : CHAT_CHATML;
        if (*out != CHAT_CHATML || !other) return 0;
    }
    return error_set(err, ERROR_UNSUPPORTED,
                     "%s: the chat template is expected to be Qwen2.5's, Qwen3's or Llama 3's",
                     where);
}

/* Returns the chat_template of tokenizer_config.json, or NULL. It is a text or a list of named
 * texts. */
static const char *template_in(const json_t *config)
{
    const json_t *v = json_object_get(config, "chat_template"), *entry;
    size_t i;
    json_array_foreach(v, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name && !strcmp(name, "default"))
            return json_string_value(json_object_get(entry, "template"));
    }
    return json_string_value(v);
}

/* Returns 1 and the kind, or 0 when the file does not exist or has no template. */
static int kind_in(const char *dir, const char *file, int json, ChatKind *out, Error *err)
{
    char *path = memory_printf("%s/%s", dir, file);
    json_t *config = NULL;
    const char *template = NULL;
    Buffer text;
    buffer_init(&text, MAX_FILE);
    int rc = file_exists(path) ? file_read(path, MAX_FILE, &text, err) : 0;
    if (!rc && text.len) {
        config = json ? json_read_text(text.data, text.len, path, err) : NULL;
        rc = json && !config ? -1 : 0;
        template = json ? template_in(config) : text.data;
    }
    if (!rc && template) rc = kind_of(template, path, out, err) ? -1 : 1;
    json_decref(config);
    buffer_release(&text);
    free(path);
    return rc;
}

int chat_detect(const Tokenizer *t, const char *dir, Chat *out, Error *err)
{
    ChatKind kind = tokenizer_special(t, "<|start_header_id|>") >= 0 ? CHAT_LLAMA3 : CHAT_SMALL;
    int found = kind_in(dir, "chat_template.jinja", 0, &kind, err);
    if (!found) found = kind_in(dir, "tokenizer_config.json", 1, &kind, err);
    if (found < 0) return -1;
    char *where = memory_printf("%s/tokenizer.json", dir);
    int rc = chat_make(t, kind, where, out, err);
    free(where);
    return rc;
}

/* ---- encoding ---- */

typedef struct {
    const Chat *c;
    Buffer text; /* since the last special token, not yet encoded */
    TokenIds *out;
    int failed;
    Error *err;
} Encoder;

static void flush(Encoder *o)
{
    if (o->text.full && !o->failed)
        o->failed = error_set(o->err, ERROR_LIMIT, "a prompt of more than %zu bytes", o->text.max);
    if (!o->failed)
        o->failed = tokenizer_encode(o->c->t, o->text.data, o->text.len, o->out, o->err);
    buffer_clear(&o->text);
}

static void put_text(Encoder *o, const char *text, size_t len)
{
    buffer_append(&o->text, text, len);
    if (o->c->kind == CHAT_SMALL) flush(o);
}

static void put_words(Encoder *o, const char *text)
{
    put_text(o, text, strlen(text));
}

static void put_special(Encoder *o, int id)
{
    flush(o);
    *token_ids_room(o->out, 1) = id;
    o->out->n++;
}

static int is_space(uint32_t code)
{
    return unicode_class(code) == CLASS_SPACE || (code >= 0x1C && code <= 0x1F);
}

/* Removes white space, as Python's strip does, from both ends. */
static void trim(const char **text, size_t *len)
{
    const char *s = *text;
    size_t first = 0, last = 0;
    int seen = 0;
    for (size_t at = 0; at < *len;) {
        uint32_t code;
        size_t k = unicode_decode(s + at, *len - at, &code);
        int space = code != UNICODE_INVALID && is_space(code);
        if (!space && !seen) first = at;
        if (!space) last = at + k;
        seen |= !space;
        at += k;
    }
    *text = s + first;
    *len = last - first;
}

static void strip_lines(const char **text, size_t *len)
{
    while (*len && **text == '\n') ++*text, --*len;
}

/* Puts "<|im_start|>user\n", or "<|start_header_id|>user<|end_header_id|>\n\n". */
static void put_role(Encoder *o, const char *role)
{
    char line[32];
    put_special(o, o->c->open);
    snprintf(line, sizeof line, "%s%s", role, is_llama(o->c) ? "" : "\n");
    put_words(o, line);
    if (!is_llama(o->c)) return;
    put_special(o, o->c->header);
    put_words(o, "\n\n");
}

static void put_message(Encoder *o, const char *role, const char *text, size_t len)
{
    put_role(o, role);
    put_text(o, text, len);
    put_special(o, o->c->end);
    if (!is_llama(o->c)) put_words(o, "\n");
}

static Encoder encoder_start(const Chat *c, TokenIds *out, Error *err)
{
    Encoder o = {.c = c, .out = out, .err = err};
    buffer_init(&o.text, MAX_TEXT);
    return o;
}

static int encoder_finish(Encoder *o)
{
    flush(o);
    buffer_release(&o->text);
    return o->failed ? -1 : 0;
}

int chat_encode_prompt(const Chat *c, const char *text, size_t len, TokenIds *out, Error *err)
{
    const char *system = layout[c->kind].system;
    Encoder o = encoder_start(c, out, err);
    if (c->begin >= 0) put_special(&o, c->begin);
    if (system) put_message(&o, "system", system, strlen(system));
    if (is_llama(c)) trim(&text, &len);
    put_message(&o, "user", text, len);
    put_role(&o, "assistant");
    if (c->kind == CHAT_QWEN3 && !c->thinking) put_words(&o, "<think>\n\n</think>\n\n");
    return encoder_finish(&o);
}

static const char *find(const char *text, size_t len, const char *mark, int last)
{
    const char *found = NULL, *end = text + len;
    for (const char *p = text; (p = memmem(p, (size_t)(end - p), mark, strlen(mark))); p++) {
        found = p;
        if (!last) break;
    }
    return found;
}

/* Splits a Qwen3 answer: sets *text and *len to what follows its thought, and puts the thought
 * unless the prompt has an empty one. */
static void put_thought(Encoder *o, const char **text, size_t *len)
{
    static const char start[] = "<think>", stop[] = "</think>";
    const char *end = *text + *len, *closed = find(*text, *len, stop, 0),
               *rest = find(*text, *len, stop, 1);
    const char *thought = *text;
    size_t n = closed ? (size_t)(closed - thought) : 0;
    while (n && thought[n - 1] == '\n') n--;
    const char *opened = find(thought, n, start, 1);
    if (opened) {
        n -= (size_t)(opened + sizeof start - 1 - thought);
        thought = opened + sizeof start - 1;
    }
    strip_lines(&thought, &n);
    if (closed) {
        *text = rest + sizeof stop - 1;
        *len = (size_t)(end - *text);
    }
    strip_lines(text, len);
    if (!o->c->thinking) return;
    put_words(o, "<think>\n");
    put_text(o, thought, n);
    put_words(o, "\n</think>\n\n");
}

int chat_encode_answer(const Chat *c, const char *text, size_t len, TokenIds *out, Error *err)
{
    Encoder o = encoder_start(c, out, err);
    if (is_llama(c)) trim(&text, &len);
    if (c->kind == CHAT_QWEN3) put_thought(&o, &text, &len);
    put_text(&o, text, len);
    put_special(&o, c->end);
    return encoder_finish(&o);
}
