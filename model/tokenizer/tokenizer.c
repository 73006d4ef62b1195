/* Text to ids and back. Special tokens are never made from text. Other added tokens are, as in
 * Hugging Face's tokenizers with encode_special_tokens: first the tokens matched in the raw text,
 * then, after NFC, the rest. */
#include "model/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/unicode.h"

int32_t *token_ids_room(TokenIds *v, size_t more)
{
    if (v->n + more > v->cap) {
        v->cap = 2 * v->cap + more;
        v->ids = memory_grow(v->ids, v->cap, sizeof *v->ids);
    }
    return v->ids + v->n;
}

/* Encoding one text. */
typedef struct {
    Tokenizer *t;
    TokenIds *out;
    Error *err;
} Encoding;

static void encode_plain(const Encoding *e, const char *s, size_t n)
{
    for (size_t at = 0, end; at < n; at = end) {
        end = pretoken_end(s, n, at, e->t->max_digits);
        e->out->n += bpe_piece(e->t, s + at, end - at, token_ids_room(e->out, end - at));
    }
}

/* Find the first added token of the pass, the longest at its position. Returns n if there is none. */
static size_t find_added(const Tokenizer *t, const char *s, size_t n, int normalized, int32_t *id)
{
    for (size_t at = 0; at < n; at++) {
        *id = -1;
        for (int i = 0; i < t->n_added; i++) {
            const Token *k = &t->tokens[t->added[i]];
            if (k->kind != TOKEN_ADDED || k->normalized != normalized || k->len > n - at) continue;
            if (memcmp(s + at, bpe_bytes(t, t->added[i]), k->len)) continue;
            if (*id < 0 || k->len > t->tokens[*id].len) *id = t->added[i];
        }
        if (*id >= 0) return at;
    }
    return n;
}

static int encode_pass(const Encoding *e, const char *s, size_t n, int normalized);

static int encode_between(const Encoding *e, const char *s, size_t n, int normalized)
{
    if (normalized) {
        encode_plain(e, s, n);
        return 0;
    }
    Buffer copy;
    buffer_init(&copy, BPE_MAX_TEXT);
    int rc = -((e->t->nfc && unicode_nfc(&s, &n, &copy, e->err)) || encode_pass(e, s, n, 1));
    buffer_release(&copy);
    return rc;
}

static int encode_pass(const Encoding *e, const char *s, size_t n, int normalized)
{
    if (!e->t->n_matched) return encode_between(e, s, n, normalized);
    for (size_t at = 0; at < n;) {
        int32_t id;
        size_t found = at + find_added(e->t, s + at, n - at, normalized, &id);
        if (found > at && encode_between(e, s + at, found - at, normalized)) return -1;
        at = found;
        if (found < n) {
            *token_ids_room(e->out, 1) = id;
            e->out->n++;
            at += e->t->tokens[id].len;
        }
    }
    return 0;
}

int tokenizer_encode(const Tokenizer *t, const char *text, size_t len, TokenIds *out, Error *err)
{
    if (len > BPE_MAX_TEXT)
        return error_set(err, ERROR_LIMIT, "expected a text of at most %d bytes, found %zu",
                         BPE_MAX_TEXT, len);
    if (!len) return 0;
    Buffer copy;
    buffer_init(&copy, BPE_MAX_TEXT);
    int rc = unicode_repair(&text, &len, &copy, err);
    if (!rc) {
        Tokenizer *own = (Tokenizer *)t; /* the lock guards the cache and the scratch */
        pthread_mutex_lock(&own->lock);
        rc = encode_pass(&(Encoding){own, out, err}, text, len, 0);
        pthread_mutex_unlock(&own->lock);
    }
    buffer_release(&copy);
    return rc;
}

int tokenizer_decode(const Tokenizer *t, const int32_t *ids, size_t n, Buffer *out, Error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= t->n_tokens || t->tokens[ids[i]].kind == TOKEN_NONE)
            return error_set(err, ERROR_INVALID,
                             "the id %d at %zu is no token (the vocabulary has %d)", ids[i], i,
                             t->n_tokens);
        const Token *k = &t->tokens[ids[i]];
        if (k->kind == TOKEN_SPECIAL) continue;
        if (buffer_append(out, bpe_bytes(t, ids[i]), k->len))
            return error_set(err, ERROR_LIMIT, "the text takes more than %zu bytes", out->max);
    }
    return 0;
}

int tokenizer_size(const Tokenizer *t)
{
    return t->n_tokens;
}

int tokenizer_special(const Tokenizer *t, const char *name)
{
    size_t len = strlen(name);
    for (int i = 0; i < t->n_added; i++) {
        const Token *k = &t->tokens[t->added[i]];
        if (k->len == len && !memcmp(bpe_bytes(t, t->added[i]), name, len)) return t->added[i];
    }
    return -1;
}

int tokenizer_is_text(const Tokenizer *t, int id)
{
    return id >= 0 && id < t->n_tokens &&
           (t->tokens[id].kind == TOKEN_TEXT || t->tokens[id].kind == TOKEN_ADDED);
}

int tokenizer_save(const Tokenizer *t, const char *path, Error *err)
{
    return file_write_atomic(path, t->json.data, t->json.len, err);
}
