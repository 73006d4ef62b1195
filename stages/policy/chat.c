/* The layouts are a table; text collects in a buffer and is encoded before each special token. */
#include "stages/policy/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
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

/* The published templates by the SHA-256 of their text, without a line break at its end. */
static const struct {
    const char *digest;
    ChatKind kind;
} known[] = {
    {"55b2f4a26ac9ee719330a61a0c39d9e538b0e9322212f048326318cff4f8674a", CHAT_QWEN2_5},
    {"a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8", CHAT_QWEN3},
    {"64f85b198065d0fba2a81f37e10ed68161ce2c19a754c7100e67e0ca2ee9c326", CHAT_CHATML},
    {"ba03a121d097859c7b5b9cd03af99aafe95275210d2876f642ad9929a150f122", CHAT_LLAMA3},
    {"93c0e9aa3629bbd77e68dbc0f5621f6e6b23aa8d74b932595cdb8d64684526d7", CHAT_LLAMA3_1},
};

int chat_known(const char *digest, ChatKind *out)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].digest, digest)) {
            *out = known[i].kind;
            return 1;
        }
    return 0;
}

/* The names that CHAT takes. */
static const struct {
    const char *name;
    ChatKind kind;
} named[] = {{"chatml", CHAT_CHATML},
             {"qwen2.5", CHAT_QWEN2_5},
             {"qwen3", CHAT_QWEN3},
             {"llama3", CHAT_LLAMA3},
             {"llama3.1", CHAT_LLAMA3_1}};

static int kind_named(const char *name, ChatKind *out)
{
    for (size_t i = 0; name && i < sizeof named / sizeof *named; i++)
        if (!strcmp(named[i].name, name)) {
            *out = named[i].kind;
            return 1;
        }
    return 0;
}

/* ---- quern_chat.json ---- */

static int read_ids(const json_t *list, int vocab, int32_t *ids, int *n)
{
    size_t i;
    json_t *v;
    if (!json_is_array(list) || json_array_size(list) > CHAT_IDS) return -1;
    json_array_foreach(list, i, v)
    {
        json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= vocab) return -1;
        ids[i] = (int32_t)id;
    }
    *n = (int)json_array_size(list);
    return 0;
}

static int read_text(const json_t *text, char out[CHAT_TEXT])
{
    if (!json_is_string(text) || json_string_length(text) >= CHAT_TEXT) return -1;
    snprintf(out, CHAT_TEXT, "%s", json_string_value(text));
    return 0;
}

static int read_pieces(const json_t *j, const Tokenizer *t, Chat *out)
{
    ChatPieces *p = &out->pieces;
    const json_t *end = json_object_get(j, "end");
    const int vocab = tokenizer_size(t);
    *out = (Chat){.t = t, .kind = CHAT_PIECES, .begin = -1, .open = -1, .header = -1};
    out->end = json_is_integer(end) ? (int)json_integer_value(end) : -1;
    p->trim = json_is_true(json_object_get(j, "trim"));
    p->trim_answer = json_is_true(json_object_get(j, "trim_answer"));
    return -(out->end < 0 || out->end >= vocab ||
             read_ids(json_object_get(j, "before"), vocab, p->before, &p->n_before) ||
             read_ids(json_object_get(j, "after"), vocab, p->after, &p->n_after) ||
             read_text(json_object_get(j, "before_text"), p->before_text) ||
             read_text(json_object_get(j, "after_text"), p->after_text));
}

static int chat_in(const json_t *j, const Tokenizer *t, const char *path, Chat *out, Error *err)
{
    ChatKind kind;
    if (kind_named(json_string_value(json_object_get(j, "given")), &kind))
        return chat_make(t, kind, path, out, err);
    return read_pieces(j, t, out)
               ? error_set(err, ERROR_CORRUPT, "%s is not what tools/chat_pieces.py writes", path)
               : 0;
}

/* Returns 1 with the chat of a directory whose quern_chat.json was made of this template, 0 without
 * such a file. digest NULL: the file is one that chat_give has written, which goes before any template. */
static int chat_of_file(const Tokenizer *t, const char *dir, const char *digest, Chat *out,
                        Error *err)
{
    char *path = memory_printf("%s/quern_chat.json", dir);
    const int there = file_exists(path);
    json_t *j = there ? json_read_file(path, MAX_FILE, err) : NULL;
    const char *of = json_string_value(json_object_get(j, "template"));
    int rc = !there ? 0 : j ? 1 : -1;
    if (rc == 1 && !digest && !json_object_get(j, "given"))
        rc = 0;
    else if (rc == 1 && digest && (!of || strcmp(of, digest)))
        rc =
            error_set(err, ERROR_UNSUPPORTED,
                      "%s is of another chat template: tools/chat_pieces.py writes it again", path);
    else if (rc == 1 && chat_in(j, t, path, out, err))
        rc = -1;
    json_decref(j);
    free(path);
    return rc;
}

/* Returns what CHAT stands for as the text of a quern_chat.json. */
static json_t *given_file(const char *chat, Error *err)
{
    ChatKind kind;
    if (kind_named(chat, &kind)) return json_pack("{ss}", "given", chat);
    if (!file_exists(chat)) {
        error_set(err, ERROR_UNKNOWN_NAME,
                  "%s: expected chatml, qwen2.5, qwen3, llama3, llama3.1 or a file that "
                  "tools/chat_pieces.py wrote",
                  chat);
        return NULL;
    }
    json_t *j = json_read_file(chat, MAX_FILE, err);
    if (j) json_object_set_new(j, "given", json_true());
    return j;
}

int chat_given(const Tokenizer *t, const char *chat, Chat *out, Error *err)
{
    json_t *j = given_file(chat, err);
    int rc = j ? chat_in(j, t, chat, out, err) : -1;
    json_decref(j);
    return rc;
}

int chat_give(const char *chat, const char *dir, Error *err)
{
    char *path = memory_printf("%s/quern_chat.json", dir);
    json_t *j = given_file(chat, err);
    char *text = j ? json_dumps(j, JSON_SORT_KEYS | JSON_INDENT(1)) : NULL;
    int rc = text ? file_write_atomic(path, text, strlen(text), err) : -1;
    free(text);
    json_decref(j);
    free(path);
    return rc;
}

/* Knows a template by its whole text: another default system prompt, a token more or a thought that
 * the prompt begins would be other ids than the model was trained on. */
static int kind_of(const char *template, const char *where, ChatKind *out, char digest[DIGEST_HEX],
                   Error *err)
{
    Digest d;
    size_t n = strlen(template);
    if (n && template[n - 1] == '\n') n--;
    digest_of(template, n, &d);
    digest_hex(&d, digest);
    if (chat_known(digest, out)) return 0;
    return error_set(err, ERROR_UNSUPPORTED,
                     "%s: Quern does not know this chat template; python3 tools/chat_pieces.py DIR "
                     "reads it, proves it on five conversations and writes DIR/quern_chat.json; or "
                     "CHAT names another one",
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

/* Returns 1 and the kind, or 0 when the file does not exist or has no template. digest: of one that is
 * not known. */
static int kind_in(const char *dir, const char *file, ChatKind *out, char digest[DIGEST_HEX],
                   Error *err)
{
    char *path = memory_printf("%s/%s", dir, file);
    json_t *config = NULL;
    const char *template = NULL;
    Buffer text;
    const int json = strstr(file, ".json") != NULL;
    buffer_init(&text, MAX_FILE);
    int rc = file_exists(path) ? file_read(path, MAX_FILE, &text, err) : 0;
    if (!rc && text.len) {
        config = json ? json_read_text(text.data, text.len, path, err) : NULL;
        rc = json && !config ? -1 : 0;
        template = json ? template_in(config) : text.data;
    }
    if (!rc && template) rc = kind_of(template, path, out, digest, err) ? -1 : 1;
    json_decref(config);
    buffer_release(&text);
    free(path);
    return rc;
}

int chat_detect(const Tokenizer *t, const char *dir, Chat *out, Error *err)
{
    ChatKind kind = tokenizer_special(t, "<|start_header_id|>") >= 0 ? CHAT_LLAMA3 : CHAT_SMALL;
    char digest[DIGEST_HEX] = "";
    int found = chat_of_file(t, dir, NULL, out, err);
    if (found) return found < 0 ? -1 : 0;
    found = kind_in(dir, "chat_template.jinja", &kind, digest, err);
    if (!found) found = kind_in(dir, "tokenizer_config.json", &kind, digest, err);
    if (found < 0) {
        Error why;
        int pieces = *digest ? chat_of_file(t, dir, digest, out, &why) : 0;
        if (pieces < 0) *err = why;
        return pieces == 1 ? 0 : -1;
    }
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
    int on; /* ids stand before, or the prompt of an answer does */
    int failed;
    Error *err;
} Encoder;

static void flush(Encoder *o)
{
    if (o->text.full && !o->failed)
        o->failed = error_set(o->err, ERROR_LIMIT, "a prompt of more than %zu bytes", o->text.max);
    if (!o->failed)
        o->failed = (o->on ? tokenizer_encode_on : tokenizer_encode)(o->c->t, o->text.data,
                                                                     o->text.len, o->out, o->err);
    o->on |= o->text.len > 0;
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
    o->on = 1;
}

static int is_space(uint32_t code)
{
    return unicode_is_space(code) || (code >= 0x1C && code <= 0x1F);
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

static void put_ids(Encoder *o, const int32_t *ids, int n)
{
    for (int i = 0; i < n; i++) put_special(o, ids[i]);
}

static int encode_in_pieces(const Chat *c, const char *text, size_t len, TokenIds *out, Error *err)
{
    const ChatPieces *p = &c->pieces;
    Encoder o = encoder_start(c, out, err);
    put_ids(&o, p->before, p->n_before);
    if (p->trim) trim(&text, &len);
    put_words(&o, p->before_text);
    put_text(&o, text, len);
    put_words(&o, p->after_text);
    put_ids(&o, p->after, p->n_after);
    return encoder_finish(&o);
}

int chat_encode_prompt(const Chat *c, const char *text, size_t len, TokenIds *out, Error *err)
{
    if (c->kind == CHAT_PIECES) return encode_in_pieces(c, text, len, out, err);
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
    o.on = 1;
    if (is_llama(c) || c->pieces.trim_answer) trim(&text, &len);
    if (c->kind == CHAT_QWEN3) put_thought(&o, &text, &len);
    put_text(&o, text, len);
    put_special(&o, c->end);
    return encoder_finish(&o);
}
