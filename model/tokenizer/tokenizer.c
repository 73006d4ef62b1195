/* Text to ids and back. Special tokens are never made from text. Other added tokens are, as in
 * Hugging Face's tokenizers with encode_special_tokens: first the tokens matched in the raw text,
 * then, after NFC, the rest. */
#include "model/tokenizer/tokenizer.h"

#include <stdint.h>
#include <stdio.h>
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

/* A part of the text. */
typedef struct {
    const char *s;
    size_t n;
    int first; /* it begins the sequence */
} Part;

static int put_piece(void *ctx, const char *s, size_t n, Error *err)
{
    const Encoding *e = ctx;
    (void)err;
    e->out->n += bpe_piece(e->t, s, n, token_ids_room(e->out, n));
    return 0;
}

static int encode_plain(const Encoding *e, Part p, Buffer copies[2])
{
    return -(text_change(&e->t->metaspace, p.first, &p.s, &p.n, copies, e->err) ||
             pretoken_cut(&e->t->pretoken, p.s, p.n,
                          &(PretokenSink){put_piece, (void *)(uintptr_t)e}, e->err));
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

static int encode_pass(const Encoding *e, Part p, int normalized);

static int encode_between(const Encoding *e, Part p, int normalized)
{
    Buffer copies[2];
    for (int i = 0; i < 2; i++) buffer_init(&copies[i], BPE_MAX_TEXT);
    int rc = normalized ? encode_plain(e, p, copies)
                        : -(text_change(&e->t->normalizer, p.first, &p.s, &p.n, copies, e->err) ||
                            encode_pass(e, p, 1));
    for (int i = 0; i < 2; i++) buffer_release(&copies[i]);
    return rc;
}

static int encode_pass(const Encoding *e, Part p, int normalized)
{
    if (!e->t->n_matched) return encode_between(e, p, normalized);
    for (size_t at = 0; at < p.n;) {
        int32_t id;
        size_t found = at + find_added(e->t, p.s + at, p.n - at, normalized, &id);
        if (found > at &&
            encode_between(e, (Part){p.s + at, found - at, p.first && !at}, normalized))
            return -1;
        at = found;
        if (found < p.n) {
            *token_ids_room(e->out, 1) = id;
            e->out->n++;
            at += e->t->tokens[id].len;
        }
    }
    return 0;
}

static int encode(const Tokenizer *t, Part p, TokenIds *out, Error *err)
{
    if (p.n > BPE_MAX_TEXT)
        return error_set(err, ERROR_LIMIT, "expected a text of at most %d bytes, found %zu",
                         BPE_MAX_TEXT, p.n);
    if (!p.n) return 0;
    Buffer copy;
    buffer_init(&copy, BPE_MAX_TEXT);
    int rc = unicode_repair(&p.s, &p.n, &copy, err);
    if (!rc) {
        Tokenizer *own = (Tokenizer *)t; /* the lock guards the cache and the scratch */
        pthread_mutex_lock(&own->lock);
        rc = encode_pass(&(Encoding){own, out, err}, p, 0);
        pthread_mutex_unlock(&own->lock);
    }
    buffer_release(&copy);
    return rc;
}

int tokenizer_encode(const Tokenizer *t, const char *text, size_t len, TokenIds *out, Error *err)
{
    return encode(t, (Part){text, len, 1}, out, err);
}

int tokenizer_encode_on(const Tokenizer *t, const char *text, size_t len, TokenIds *out, Error *err)
{
    return encode(t, (Part){text, len, 0}, out, err);
}

/* Appends the text of a token: its own, or the byte that it stands for. */
static int put_token(const Tokenizer *t, int32_t id, Buffer *out)
{
    static const char mark[] = "\u2581"; /* a blank */
    const char *s = bpe_bytes(t, id), *end = s + t->tokens[id].len, *at;
    unsigned byte;
    if (t->byte_fallback && end - s == 6 && !memcmp(s, "<0x", 3) &&
        sscanf(s, "<0x%2X>", &byte) == 1)
        return buffer_append(out, &(char){(char)byte}, 1);
    if (!t->byte_level)
        for (; (at = memmem(s, (size_t)(end - s), mark, 3)); s = at + 3) {
            buffer_append(out, s, (size_t)(at - s));
            buffer_puts(out, " ");
        }
    return buffer_append(out, s, (size_t)(end - s));
}

int tokenizer_decode(const Tokenizer *t, const int32_t *ids, size_t n, Buffer *out, Error *err)
{
    const size_t start = out->len;
    int strip = t->strip_left;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= t->n_tokens || t->tokens[ids[i]].kind == TOKEN_NONE)
            return error_set(err, ERROR_INVALID,
                             "the id %d at %zu is no token (the vocabulary has %d)", ids[i], i,
                             t->n_tokens);
        const Token *k = &t->tokens[ids[i]];
        if (k->kind == TOKEN_SPECIAL) continue;
        if (put_token(t, ids[i], out))
            return error_set(err, ERROR_LIMIT, "the text takes more than %zu bytes", out->max);
        if (strip && out->len > start) {
            if (out->data[start] == ' ')
                memmove(out->data + start, out->data + start + 1, out->len-- - start);
            strip = 0;
        }
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
