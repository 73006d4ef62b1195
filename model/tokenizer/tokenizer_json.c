/* Read tokenizer.json with every claim checked, since other programs write it, and write it as
 * Hugging Face's tokenizers do. A pipeline other than Qwen2's, Llama-3's, GPT-2's or SmolLM's is
 * an error, never approximated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/unicode.h"

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

static int read_normalizer(const json_t *v, Tokenizer *t, Error *err)
{
    if (json_is_object(v) && !strcmp(type_of(v), "Sequence")) {
        const json_t *list = json_object_get(v, "normalizers");
        if (!json_is_array(list) || json_array_size(list) > 1)
            return error_set(err, ERROR_UNSUPPORTED,
                             "normalizer: expected NFC or none, found a sequence of others");
        v = json_array_get(list, 0);
    }
    if (!v || json_is_null(v)) return 0;
    if (strcmp(type_of(v), "NFC"))
        return error_set(err, ERROR_UNSUPPORTED, "normalizer: expected NFC or none, found %.40s",
                         type_of(v));
    t->nfc = 1;
    return 0;
}

static int read_split(const json_t *split, Tokenizer *t, Error *err)
{
    if (strcmp(type_of(split), "Split"))
        return error_set(err, ERROR_UNSUPPORTED,
                         "pre_tokenizer: expected Split, then ByteLevel; found %.40s first",
                         type_of(split));
    const char *regex =
        json_string_value(json_object_get(json_object_get(split, "pattern"), "Regex"));
    if (!regex)
        return error_set(err, ERROR_CORRUPT,
                         "pre_tokenizer: pattern.Regex is expected to be a text");
    t->max_digits = !strcmp(regex, pretoken_regex_1)       ? 1
                    : !strcmp(regex, pretoken_regex_3)     ? 3
                    : !strcmp(regex, pretoken_regex_lines) ? PRETOKEN_LINES
                                                           : 0;
    if (!t->max_digits)
        return error_set(err, ERROR_UNSUPPORTED,
                         "pre_tokenizer: the regular expression is neither Qwen2's nor Llama-3's "
                         "nor the line rule: %.200s",
                         regex);
    const char *behavior = json_string_value(json_object_get(split, "behavior"));
    if (!behavior || strcmp(behavior, "Isolated") || !is_false_or_absent(split, "invert"))
        return error_set(err, ERROR_UNSUPPORTED,
                         "pre_tokenizer: expected behavior Isolated, not inverted");
    return 0;
}

/* Whether v is a ByteLevel without a blank in front, which has GPT-2's expression or none. */
static int is_byte_level(const json_t *v, int with_regex)
{
    const json_t *regex = json_object_get(v, "use_regex");
    return !strcmp(type_of(v), "ByteLevel") &&
           json_is_false(json_object_get(v, "add_prefix_space")) &&
           (with_regex ? !json_is_false(regex) : json_is_false(regex));
}

static int read_pretokenizer(const json_t *v, Tokenizer *t, Error *err)
{
    const json_t *list = json_object_get(v, "pretokenizers"), *first = json_array_get(list, 0);
    if (is_byte_level(v, 1)) {
        t->max_digits = PRETOKEN_GPT2;
        return 0;
    }
    if (strcmp(type_of(v), "Sequence") || json_array_size(list) != 2)
        return error_set(err, ERROR_UNSUPPORTED,
                         "pre_tokenizer: expected a Sequence of Split and ByteLevel, found %.40s",
                         type_of(v));
    if (!strcmp(type_of(first), "Digits") &&
        json_is_true(json_object_get(first, "individual_digits")) &&
        is_byte_level(json_array_get(list, 1), 1)) {
        t->max_digits = PRETOKEN_DIGITS;
        return 0;
    }
    if (read_split(first, t, err)) return -1;
    if (!is_byte_level(json_array_get(list, 1), 0))
        return error_set(
            err, ERROR_UNSUPPORTED,
            "pre_tokenizer: expected ByteLevel without add_prefix_space and use_regex");
    return 0;
}

/* Refuses options that change the ids and are unknown here. */
static int check_model(const json_t *model, Tokenizer *t, Error *err)
{
    const json_t *type = json_object_get(model, "type");
    if (type && strcmp(type_of(model), "BPE"))
        return error_set(err, ERROR_UNSUPPORTED, "model.type: expected BPE, found %.40s",
                         type_of(model));
    static const char *const off[] = {"dropout", "unk_token", "byte_fallback"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (!is_false_or_absent(model, off[i]))
            return error_set(err, ERROR_UNSUPPORTED, "model.%s: expected none", off[i]);
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        const json_t *v = json_object_get(model, empty[i]);
        if (v && !json_is_null(v) && !(json_is_string(v) && !json_string_length(v)))
            return error_set(err, ERROR_UNSUPPORTED, "model.%s: expected none", empty[i]);
    }
    t->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    return 0;
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
        const char *nfc = text;
        size_t len = strlen(text);
        Buffer copy;
        buffer_init(&copy, 1 << 16);
        int rc = normalized && !special && t->nfc ? unicode_nfc(&nfc, &len, &copy, err) : 0;
        if (!rc && strcmp(nfc, text))
            rc = error_set(err, ERROR_CORRUPT, "%s: the content is expected in NFC", where);
        buffer_release(&copy);
        if (rc) return -1;
    }
    return 0;
}

/* vocab and merges are in the text of the file, not in the document. */
static int read_document(const json_t *doc, const JsonSpan *vocab, const JsonSpan *merges,
                         Tokenizer **out, Error *err)
{
    const char *where = "the document";
    if (!json_is_object(doc)) return error_set(err, ERROR_CORRUPT, "expected an object");
    json_t *model = json_need_object(doc, "model", where, err);
    if (!model || !json_need_object(model, "vocab", "model", err) ||
        !json_need_array(model, "merges", "model", err))
        return -1;
    if (!vocab->text || !merges->text)
        return error_set(err, ERROR_CORRUPT,
                         "model: expected vocab and merges, their names without escapes");
    if (vocab->items > BPE_MAX_TOKENS || merges->items > BPE_MAX_TOKENS)
        return error_set(err, ERROR_LIMIT, "model: expected at most %d tokens and merges",
                         BPE_MAX_TOKENS);
    Tokenizer *t = *out = bpe_new((int)vocab->items, (int)merges->items);
    if (read_normalizer(json_object_get(doc, "normalizer"), t, err)) return -1;
    if (read_pretokenizer(json_object_get(doc, "pre_tokenizer"), t, err)) return -1;
    if (strcmp(type_of(json_object_get(doc, "decoder")), "ByteLevel"))
        return error_set(err, ERROR_UNSUPPORTED, "decoder: expected ByteLevel, found %.40s",
                         type_of(json_object_get(doc, "decoder")));
    if (check_model(model, t, err) || vocabulary_read(t, vocab, merges, err)) return -1;
    return -(read_added(json_object_get(doc, "added_tokens"), t, err) || bpe_finish(t, err));
}

static int parse(const Buffer *text, const char *path, Tokenizer **out, Error *err)
{
    JsonSpan vocab, merges;
    Buffer rest;
    buffer_init(&rest, MAX_FILE);
    /* Text that is not JSON is parsed whole, for a message with its line. */
    const Buffer *read =
        vocabulary_cut(text->data, text->len, &rest, &vocab, &merges) ? text : &rest;
    json_t *doc = json_read_text(read->data, read->len, path, err);
    int rc = doc ? read_document(doc, &vocab, &merges, out, err) : -1;
    if (doc && rc) error_prefix(err, "%s", path);
    json_decref(doc);
    buffer_release(&rest);
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
    const char *regex = t->max_digits == 1   ? pretoken_regex_1
                        : t->max_digits == 3 ? pretoken_regex_3
                                             : pretoken_regex_lines;
    buffer_puts(b, t->nfc ? "  \"normalizer\": {\n    \"type\": \"NFC\"\n  },\n"
                          : "  \"normalizer\": null,\n");
    buffer_puts(
        b,
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
