/* Read tokenizer.json with every claim checked, since other programs write it, and write it as
 * Hugging Face's tokenizers do. A step or option that is not known is an error, never approximated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/tokenizer/bpe.h"

enum { MAX_FILE = 64 << 20 };

/* ---- reading ---- */

static const char *type_of(const json_t *v)
{
    const char *s = json_string_value(json_object_get(v, "type"));
    return s ? s : "(none)";
}

static int is_false_or_absent(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    return !v || json_is_false(v) || json_is_null(v);
}

static const char *text_of(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s ? s : "";
}

static int read_normalizer(const json_t *v, TextRules *r, Error *err)
{
    const json_t *step;
    size_t i;
    if (!v || json_is_null(v)) return 0;
    if (!strcmp(type_of(v), "Sequence")) {
        json_array_foreach(json_object_get(v, "normalizers"), i, step)
        {
            if (!strcmp(type_of(step), "Sequence") || read_normalizer(step, r, err))
                return strcmp(type_of(step), "Sequence")
                           ? -1
                           : error_set(err, ERROR_UNSUPPORTED, "normalizer: a Sequence within one");
        }
        return 0;
    }
    const char *from = text_of(json_object_get(v, "pattern"), "String");
    if (!strcmp(type_of(v), "NFC")) return text_rule(r, TEXT_NFC, "", "", err);
    if (!strcmp(type_of(v), "Prepend"))
        return text_rule(r, TEXT_PREPEND, "", text_of(v, "prepend"), err);
    if (!strcmp(type_of(v), "Replace") && *from)
        return text_rule(r, TEXT_REPLACE, from, text_of(v, "content"), err);
    return error_set(err, ERROR_UNSUPPORTED,
                     "normalizer: expected NFC, Prepend, Replace of a text, or none, found %.40s",
                     type_of(v));
}

/* A pattern is an expression, or a text, whose marks get a backslash. */
static int read_split(const json_t *split, Tokenizer *t, Error *err)
{
    const json_t *pattern = json_object_get(split, "pattern");
    const char *regex = json_string_value(json_object_get(pattern, "Regex")),
               *text = text_of(pattern, "String"), *behavior = text_of(split, "behavior");
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious"};
    int how = 0;
    while (how < 3 && strcmp(behavior, names[how])) how++;
    if (how == 3)
        return error_set(
            err, ERROR_UNSUPPORTED,
            "pre_tokenizer: expected behavior Isolated, Removed or MergedWithPrevious, "
            "found %.40s",
            behavior);
    Buffer quoted;
    buffer_init(&quoted, MAX_FILE);
    for (const char *p = text; !regex && *p; p++) {
        if (strchr("\\.^$*+?{}[]()|", *p)) buffer_puts(&quoted, "\\");
        buffer_append(&quoted, p, 1);
    }
    if (regex) buffer_puts(&quoted, regex);
    int rc = quoted.len ? pretoken_add(&t->pretoken, quoted.data, quoted.len, (CutBehavior)how,
                                       json_is_true(json_object_get(split, "invert")), err)
                        : error_set(err, ERROR_CORRUPT,
                                    "pre_tokenizer: pattern.Regex is expected to be a text");
    buffer_release(&quoted);
    return rc ? error_prefix(err, "pre_tokenizer") : 0;
}

static int isolate(Tokenizer *t, const char *regex, Error *err)
{
    return pretoken_add(&t->pretoken, regex, strlen(regex), CUT_ISOLATED, 0, err);
}

static int read_byte_level(const json_t *v, Tokenizer *t, Error *err)
{
    if (!json_is_false(json_object_get(v, "add_prefix_space")))
        return error_set(err, ERROR_UNSUPPORTED,
                         "pre_tokenizer: expected ByteLevel without add_prefix_space");
    t->byte_level = 1;
    return json_is_false(json_object_get(v, "use_regex")) ? 0 : isolate(t, pretoken_gpt2, err);
}

static int read_metaspace(const json_t *v, Tokenizer *t, Error *err)
{
    const char *mark = text_of(v, "replacement"), *scheme = text_of(v, "prepend_scheme");
    static const char split[] = "\u2581?[^\u2581]+|\u2581";
    if (!*scheme)
        scheme = json_is_true(json_object_get(v, "add_prefix_space")) ? "always" : "never";
    int never = !strcmp(scheme, "never"), first = !strcmp(scheme, "first");
    if (strcmp(mark, "\u2581") || (!never && !first && strcmp(scheme, "always")))
        return error_set(err, ERROR_UNSUPPORTED, "pre_tokenizer: an unknown kind of Metaspace");
    return -(text_rule(&t->metaspace, TEXT_REPLACE, " ", mark, err) ||
             (!never && text_rule(&t->metaspace, first ? TEXT_PREPEND_FIRST : TEXT_PREPEND_MISSING,
                                  "", mark, err)) ||
             (!json_is_false(json_object_get(v, "split")) && isolate(t, split, err)));
}

/* first: nothing has cut the text before this step. */
static int read_step(const json_t *v, int first, Tokenizer *t, Error *err)
{
    const char *type = type_of(v);
    if (t->byte_level)
        return error_set(err, ERROR_UNSUPPORTED,
                         "pre_tokenizer: expected ByteLevel last, found %.40s after it", type);
    if (!strcmp(type, "Split")) return read_split(v, t, err);
    if (!strcmp(type, "ByteLevel")) return read_byte_level(v, t, err);
    if (!strcmp(type, "Metaspace") && first) return read_metaspace(v, t, err);
    if (!strcmp(type, "Digits"))
        return isolate(
            t, json_is_true(json_object_get(v, "individual_digits")) ? "\\p{N}" : "\\p{N}+", err);
    return error_set(err, ERROR_UNSUPPORTED,
                     "pre_tokenizer: expected Split, Digits, Metaspace or ByteLevel, found %.40s",
                     type);
}

static int read_pretokenizer(const json_t *v, Tokenizer *t, Error *err)
{
    const json_t *step;
    size_t i;
    if (!v || json_is_null(v)) return 0;
    if (strcmp(type_of(v), "Sequence")) return read_step(v, 1, t, err);
    json_array_foreach(json_object_get(v, "pretokenizers"), i, step)
    {
        if (read_step(step, !i, t, err)) return -1;
    }
    return 0;
}

/* The parts of a decoder of characters: blanks, single bytes, the blank that was put in front. */
static int read_decoder_step(const json_t *v, Tokenizer *t, Error *err)
{
    const char *type = type_of(v);
    if (!strcmp(type, "Fuse")) return 0;
    if (!strcmp(type, "Replace") &&
        !strcmp(text_of(json_object_get(v, "pattern"), "String"), "\u2581") &&
        !strcmp(text_of(v, "content"), " "))
        return 0;
    if (!strcmp(type, "Metaspace")) {
        t->strip_left = strcmp(text_of(v, "prepend_scheme"), "never") != 0;
        return 0;
    }
    if (!strcmp(type, "ByteFallback")) return 0;
    if (!strcmp(type, "Strip") && !strcmp(text_of(v, "content"), " ") &&
        json_integer_value(json_object_get(v, "start")) == 1 &&
        json_integer_value(json_object_get(v, "stop")) == 0) {
        t->strip_left = 1;
        return 0;
    }
    return error_set(
        err, ERROR_UNSUPPORTED,
        "decoder: expected Replace of \u2581, ByteFallback, Fuse, Strip or Metaspace, found "
        "%.40s",
        type);
}

static int read_decoder(const json_t *v, Tokenizer *t, Error *err)
{
    const json_t *step;
    size_t i;
    if (t->byte_level && strcmp(type_of(v), "ByteLevel"))
        return error_set(err, ERROR_UNSUPPORTED, "decoder: expected ByteLevel, found %.40s",
                         type_of(v));
    if (t->byte_level) return 0;
    if (strcmp(type_of(v), "Sequence")) return read_decoder_step(v, t, err);
    json_array_foreach(json_object_get(v, "decoders"), i, step)
    {
        if (read_decoder_step(step, t, err)) return -1;
    }
    return 0;
}

/* Refuses options that change the ids and are unknown here. */
static int check_model(const json_t *model, Tokenizer *t, Error *err)
{
    const json_t *type = json_object_get(model, "type");
    if (type && strcmp(type_of(model), "BPE"))
        return error_set(err, ERROR_UNSUPPORTED, "model.type: expected BPE, found %.40s",
                         type_of(model));
    static const char *const off[] = {"dropout", "byte_fallback"};
    for (int i = 0; i < 1 + t->byte_level; i++)
        if (!is_false_or_absent(model, off[i]))
            return error_set(err, ERROR_UNSUPPORTED, "model.%s: expected none", off[i]);
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        const json_t *v = json_object_get(model, empty[i]);
        if (v && !json_is_null(v) && !(json_is_string(v) && !json_string_length(v)))
            return error_set(err, ERROR_UNSUPPORTED, "model.%s: expected none", empty[i]);
    }
    t->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    t->byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    t->fuse_unknown = json_is_true(json_object_get(model, "fuse_unk"));
    return 0;
}

/* What stands for a unit without a token. */
static int read_unknown(const json_t *model, Tokenizer *t, Error *err)
{
    const char *name = json_string_value(json_object_get(model, "unk_token"));
    if (!name) return 0;
    t->unknown = bpe_find(t, name, strlen(name));
    return t->unknown < 0 ? error_set(err, ERROR_CORRUPT,
                                      "model.unk_token: \"%.40s\" is not in the vocabulary", name)
                          : 0;
}

/* A token that is matched after the normalizer is one that it leaves as it is. */
static int check_normalized(const Tokenizer *t, const char *text, const char *where, Error *err)
{
    const char *changed = text;
    size_t len = strlen(text);
    Buffer copies[2];
    for (int i = 0; i < 2; i++) buffer_init(&copies[i], 1 << 16);
    int rc = text_change(&t->normalizer, 1, &changed, &len, copies, err);
    if (!rc && (len != strlen(text) || memcmp(changed, text, len)))
        rc = error_set(err, ERROR_UNSUPPORTED,
                       "%s: expected a content that the normalizer does not change", where);
    for (int i = 0; i < 2; i++) buffer_release(&copies[i]);
    return rc;
}

static int read_added(const json_t *list, Tokenizer *t, Error *err)
{
    if (!list || json_is_null(list)) return 0;
    if (!json_is_array(list))
        return error_set(err, ERROR_CORRUPT, "added_tokens: expected an array");
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        char where[64];
        snprintf(where, sizeof where, "added_tokens[%zu]", i);
        int64_t id;
        const char *text = json_need_text(v, "content", where, err);
        if (!text || json_need_int(v, "id", where, &id, err)) return -1;
        int special = json_is_true(json_object_get(v, "special"));
        int normalized = json_is_true(json_object_get(v, "normalized"));
        static const char *const off[] = {"single_word", "lstrip", "rstrip"};
        for (size_t k = 0; k < 3 && !special; k++)
            if (!is_false_or_absent(v, off[k]))
                return error_set(err, ERROR_UNSUPPORTED, "%s.%s: expected false", where, off[k]);
        if (bpe_add_added(t, id, text, strlen(text), special, normalized, err))
            return error_prefix(err, "%s", where);
        if (normalized && !special && check_normalized(t, text, where, err)) return -1;
    }
    return 0;
}

static int read_document(const json_t *doc, Tokenizer **out, Error *err)
{
    const char *where = "the document";
    if (!json_is_object(doc)) return error_set(err, ERROR_CORRUPT, "expected an object");
    json_t *model = json_need_object(doc, "model", where, err),
           *vocab = model ? json_need_object(model, "vocab", "model", err) : NULL,
           *merges = vocab ? json_need_array(model, "merges", "model", err) : NULL;
    if (!merges) return -1;
    if (json_object_size(vocab) > BPE_MAX_TOKENS || json_array_size(merges) > BPE_MAX_TOKENS)
        return error_set(err, ERROR_LIMIT, "model: expected at most %d tokens and merges",
                         BPE_MAX_TOKENS);
    Tokenizer *t = *out = bpe_new((int)json_object_size(vocab), (int)json_array_size(merges));
    if (read_normalizer(json_object_get(doc, "normalizer"), &t->normalizer, err)) return -1;
    if (read_pretokenizer(json_object_get(doc, "pre_tokenizer"), t, err)) return -1;
    if (read_decoder(json_object_get(doc, "decoder"), t, err)) return -1;
    if (check_model(model, t, err) || vocabulary_read(t, vocab, merges, err)) return -1;
    if (read_unknown(model, t, err)) return -1;
    return -(read_added(json_object_get(doc, "added_tokens"), t, err) || bpe_finish(t, err));
}

static int parse(const Buffer *text, const char *path, Tokenizer **out, Error *err)
{
    json_t *doc = json_read_text(text->data, text->len, path, err);
    int rc = doc ? read_document(doc, out, err) : -1;
    if (doc && rc) error_prefix(err, "%s", path);
    json_decref(doc);
    return rc;
}

int tokenizer_load(const char *path, Tokenizer **out, Error *err)
{
    *out = NULL;
    Buffer text;
    Tokenizer *t = NULL;
    buffer_init(&text, MAX_FILE);
    if (file_read(path, MAX_FILE, &text, err) || parse(&text, path, &t, err)) {
        tokenizer_free(t);
        buffer_release(&text);
        return -1;
    }
    buffer_release(&t->json);
    t->json = text;
    *out = t;
    return 0;
}

/* ---- writing ---- */

static int quote(Buffer *b, const char *s, size_t n, Error *err)
{
    json_t *v = json_stringn(s, n);
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    json_decref(v);
    if (!text) return error_set(err, ERROR_INVALID, "\"%.100s\" is not UTF-8", s);
    buffer_puts(b, text);
    free(text);
    return 0;
}

static void quote_bytes(Buffer *b, const char *bytes, size_t n)
{
    buffer_puts(b, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned code = bpe_alphabet((unsigned char)bytes[i]);
        if (code == '"' || code == '\\')
            buffer_printf(b, "\\%c", (char)code);
        else if (code < 0x80)
            buffer_printf(b, "%c", (char)code);
        else
            buffer_printf(b, "%c%c", (char)(0xC0 | code >> 6), (char)(0x80 | (code & 0x3F)));
    }
    buffer_puts(b, "\"");
}

static void quote_id(Buffer *b, const Tokenizer *t, int32_t id)
{
    quote_bytes(b, bpe_bytes(t, id), t->tokens[id].len);
}

static int render_added(const Tokenizer *t, Buffer *b, Error *err)
{
    buffer_puts(b, "  \"added_tokens\": [");
    for (int i = 0; i < t->n_added; i++) {
        const Token *k = &t->tokens[t->added[i]];
        buffer_printf(b, "%s\n    {\n      \"id\": %d,\n      \"content\": ", i ? "," : "",
                      t->added[i]);
        if (quote(b, bpe_bytes(t, t->added[i]), k->len, err)) return -1;
        buffer_printf(
            b,
            ",\n      \"single_word\": false,\n      \"lstrip\": false,\n      \"rstrip\": false,\n"
            "      \"normalized\": %s,\n      \"special\": %s\n    }",
            k->normalized ? "true" : "false", k->kind == TOKEN_SPECIAL ? "true" : "false");
    }
    return buffer_puts(b, t->n_added ? "\n  ],\n" : "],\n");
}

static int render_pipeline(const Tokenizer *t, Buffer *b, Error *err)
{
    const char *regex = t->written;
    buffer_puts(
        b,
        "  \"normalizer\": {\n    \"type\": \"NFC\"\n  },\n"
        "  \"pre_tokenizer\": {\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n      {\n"
        "        \"type\": \"Split\",\n        \"pattern\": {\n          \"Regex\": ");
    if (quote(b, regex, strlen(regex), err)) return -1;
    buffer_puts(
        b,
        "\n        },\n        \"behavior\": \"Isolated\",\n        \"invert\": false\n      },\n"
        "      {\n        \"type\": \"ByteLevel\",\n        \"add_prefix_space\": false,\n"
        "        \"trim_offsets\": false,\n        \"use_regex\": false\n      }\n    ]\n  },\n");
    static const char *const names[] = {"post_processor", "decoder"};
    for (int i = 0; i < 2; i++)
        buffer_printf(
            b,
            "  \"%s\": {\n    \"type\": \"ByteLevel\",\n    \"add_prefix_space\": false,\n"
            "    \"trim_offsets\": false,\n    \"use_regex\": false\n  },\n",
            names[i]);
    return 0;
}

int tokenizer_render(Tokenizer *t, Error *err)
{
    Buffer *b = &t->json;
    buffer_clear(b);
    buffer_puts(b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
    if (render_added(t, b, err) || render_pipeline(t, b, err)) return -1;
    buffer_printf(
        b,
        "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
        "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
        "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": %s,\n"
        "    \"vocab\": {",
        t->ignore_merges ? "true" : "false");
    for (int i = 0, n = 0; i < t->n_tokens; i++) {
        if (!t->tokens[i].in_vocab) continue;
        buffer_puts(b, n++ ? ",\n      " : "\n      ");
        quote_id(b, t, i);
        buffer_printf(b, ": %d", i);
    }
    buffer_puts(b, "\n    },\n    \"merges\": [");
    for (int i = 0; i < t->n_merges; i++) {
        buffer_puts(b, i ? ",\n      [\n        " : "\n      [\n        ");
        quote_id(b, t, t->merges[i].left);
        buffer_puts(b, ",\n        ");
        quote_id(b, t, t->merges[i].right);
        buffer_puts(b, "\n      ]");
    }
    buffer_puts(b, t->n_merges ? "\n    ]\n  }\n}" : "]\n  }\n}");
    return b->full ? error_set(err, ERROR_LIMIT, "the tokenizer takes more than %zu bytes", b->max)
                   : 0;
}
