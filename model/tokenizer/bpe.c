/* Merge the pair of lowest rank first, leftmost among equals, with a heap. A cache keeps the ids of
 * short pieces. */
#include "model/tokenizer/bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/tokenizer/unicode.h"

/* ---- the byte alphabet: printable Latin-1 bytes map to themselves, the other 68 bytes to U+0100
 * and up, in order ---- */

enum {
    LOW = 0x21,
    MIDDLE = 0x7F,
    HIGH = 0xA1,
    LAST = 0xAD
}; /* the others are 0..LOW, MIDDLE..HIGH and LAST */

unsigned bpe_alphabet(unsigned byte)
{
    if (byte < LOW) return 0x100 + byte;
    if (byte >= MIDDLE && byte < HIGH) return 0x100 + LOW + byte - MIDDLE;
    return byte == LAST ? 0x100 + LOW + HIGH - MIDDLE : byte;
}

int bpe_alphabet_byte(uint32_t code)
{
    if (code < 0x100) return bpe_alphabet(code) == code ? (int)code : -1;
    unsigned rank = code - 0x100;
    if (rank < LOW) return (int)rank;
    if (rank < LOW + HIGH - MIDDLE) return (int)(MIDDLE + rank - LOW);
    return rank == LOW + HIGH - MIDDLE ? LAST : -1;
}

/* ---- building ---- */

static size_t table_size(int expected)
{
    size_t n = 1024;
    while (n < 2 * (size_t)expected) n *= 2;
    return n;
}

Tokenizer *bpe_new(int expected_tokens, int expected_merges)
{
    Tokenizer *t = memory_alloc(sizeof *t);
    t->unknown = -1;
    pthread_mutex_init(&t->lock, NULL);
    buffer_init(&t->bytes, (size_t)1 << 28);
    buffer_init(&t->json, (size_t)1 << 28);
    size_t texts = table_size(expected_tokens), pairs = table_size(expected_merges);
    t->texts = memory_array(texts, sizeof *t->texts);
    t->texts_mask = texts - 1;
    t->pairs = memory_array(pairs, sizeof *t->pairs);
    t->pairs_mask = pairs - 1;
    t->merges = memory_array((size_t)expected_merges, sizeof *t->merges);
    return t;
}

void tokenizer_free(Tokenizer *t)
{
    if (!t) return;
    pthread_mutex_destroy(&t->lock);
    buffer_release(&t->bytes);
    pretoken_release(&t->pretoken);
    buffer_release(&t->json);
    free(t->tokens);
    free(t->merges);
    free(t->pairs);
    free(t->texts);
    free(t->added);
    free(t->cache);
    free(t->symbols);
    free(t->heap);
    free(t);
}

static int is_text(const Tokenizer *t, int32_t id, const char *bytes, size_t len)
{
    return t->tokens[id].len == len && !memcmp(bpe_bytes(t, id), bytes, len);
}

static TextSlot *text_slot(const Tokenizer *t, const char *bytes, size_t len, uint64_t hash)
{
    size_t i = hash & t->texts_mask;
    for (; t->texts[i].id; i = (i + 1) & t->texts_mask)
        if (t->texts[i].hash == hash >> 32 && is_text(t, t->texts[i].id - 1, bytes, len)) break;
    return &t->texts[i];
}

int32_t bpe_find(const Tokenizer *t, const char *bytes, size_t len)
{
    return text_slot(t, bytes, len, random_hash(bytes, len))->id - 1;
}

static size_t pair_slot(const Tokenizer *t, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t i = (size_t)(h >> 32) & t->pairs_mask;
    for (; t->pairs[i]; i = (i + 1) & t->pairs_mask) {
        const Merge *m = &t->merges[t->pairs[i] - 1];
        if (m->left == left && m->right == right) break;
    }
    return i;
}

int32_t bpe_rank(const Tokenizer *t, int32_t left, int32_t right)
{
    return t->pairs[pair_slot(t, left, right)] - 1;
}

/* Allocate the token `id`, which must be free and below the limit, and store its bytes. The caller
 * sets kind and hash. */
static Token *new_token(Tokenizer *t, int64_t id, const char *bytes, size_t len, Error *err)
{
    if (id < 0 || id >= BPE_MAX_TOKENS) {
        error_set(err, ERROR_CORRUPT, "the id %lld is not within 0..%d", (long long)id,
                  BPE_MAX_TOKENS - 1);
        return NULL;
    }
    if (len == 0 || len > BPE_MAX_TOKEN_BYTES) {
        error_set(err, ERROR_CORRUPT, "the token of id %lld has %zu bytes, expected 1 to %d",
                  (long long)id, len, BPE_MAX_TOKEN_BYTES);
        return NULL;
    }
    if (id >= t->n_tokens) {
        size_t n = (size_t)id + 1, old = (size_t)t->n_tokens;
        if (n > t->tokens_cap) {
            while (t->tokens_cap < n) t->tokens_cap = t->tokens_cap ? 2 * t->tokens_cap : 512;
            t->tokens = memory_grow(t->tokens, t->tokens_cap, sizeof *t->tokens);
        }
        memset(t->tokens + old, 0, (n - old) * sizeof *t->tokens);
        t->n_tokens = (int)n;
    }
    Token *k = &t->tokens[id];
    if (k->kind != TOKEN_NONE) {
        error_set(err, ERROR_CORRUPT, "two tokens have the id %lld", (long long)id);
        return NULL;
    }
    k->offset = t->bytes.len;
    k->len = (unsigned short)len;
    if (buffer_append(&t->bytes, bytes, len)) {
        error_set(err, ERROR_LIMIT, "the tokens take more than %zu bytes", t->bytes.max);
        return NULL;
    }
    return k;
}

int bpe_add_token(Tokenizer *t, int64_t id, const char *bytes, size_t len, Error *err)
{
    Token *k = new_token(t, id, bytes, len, err);
    if (!k) return -1;
    k->kind = TOKEN_TEXT;
    k->in_vocab = 1;
    uint64_t hash = random_hash(bytes, len);
    TextSlot *slot = text_slot(t, bytes, len, hash);
    if (slot->id)
        return error_set(err, ERROR_CORRUPT, "the ids %d and %lld have equal bytes", slot->id - 1,
                         (long long)id);
    *slot = (TextSlot){(uint32_t)(hash >> 32), (int32_t)id + 1};
    return 0;
}

int bpe_add_added(Tokenizer *t, int64_t id, const char *bytes, size_t len, int special,
                  int normalized, Error *err)
{
    if (t->n_added == BPE_MAX_ADDED)
        return error_set(err, ERROR_LIMIT, "expected at most %d added tokens", BPE_MAX_ADDED);
    Token *k = id >= 0 && id < t->n_tokens ? &t->tokens[id] : NULL;
    if (!k || k->kind != TOKEN_TEXT || k->len != len ||
        memcmp(bpe_bytes(t, (int32_t)id), bytes, len)) {
        k = new_token(t, id, bytes, len, err);
        if (!k) return -1;
    }
    k->kind = special ? TOKEN_SPECIAL : TOKEN_ADDED;
    k->normalized = normalized != 0;
    t->added = memory_grow(t->added, (size_t)t->n_added + 1, sizeof *t->added);
    t->added[t->n_added++] = (int32_t)id;
    t->n_matched += !special;
    return 0;
}

int bpe_add_merge(Tokenizer *t, int32_t left, int32_t right, Error *err)
{
    char joined[2 * BPE_MAX_TOKEN_BYTES];
    size_t a = t->tokens[left].len, b = t->tokens[right].len;
    memcpy(joined, bpe_bytes(t, left), a);
    memcpy(joined + a, bpe_bytes(t, right), b);
    /* Merges are usually in the order of the tokens they make: try the next token first. */
    int32_t merged = t->n_merges ? t->merges[t->n_merges - 1].merged : 0;
    if (!is_text(t, merged, joined, a + b) && merged + 1 < t->n_tokens) merged++;
    if (!t->tokens[merged].in_vocab || !is_text(t, merged, joined, a + b))
        merged = bpe_find(t, joined, a + b);
    if (merged < 0)
        return error_set(err, ERROR_CORRUPT,
                         "the merge of the ids %d and %d gives no token of the vocabulary", left,
                         right);
    size_t slot = pair_slot(t, left, right);
    if (t->pairs[slot])
        return error_set(err, ERROR_CORRUPT, "the merge of the ids %d and %d is given twice", left,
                         right);
    t->merges[t->n_merges++] = (Merge){left, right, merged};
    t->pairs[slot] = t->n_merges;
    return 0;
}

static int find_fallback(Tokenizer *t, Error *err)
{
    char name[8];
    for (unsigned b = 0; b < 256; b++) {
        snprintf(name, sizeof name, "<0x%02X>", b);
        t->fallback[b] = t->byte_fallback ? bpe_find(t, name, 6) : -1;
        if (t->byte_fallback && t->fallback[b] < 0)
            return error_set(err, ERROR_CORRUPT, "the vocabulary has no token %s", name);
    }
    return 0;
}

int bpe_finish(Tokenizer *t, Error *err)
{
    if (find_fallback(t, err)) return -1;
    for (unsigned b = 0; b < 256; b++) {
        char c = (char)b;
        t->byte_id[b] = t->byte_level || b < 0x80 ? bpe_find(t, &c, 1) : -1;
        /* A vocabulary may lack bytes that texts hardly have: they are left out, as by the library. */
        if (t->byte_level && t->byte_id[b] < 0 &&
            (b == '\t' || b == '\n' || (b >= ' ' && b <= '~')))
            return error_set(err, ERROR_CORRUPT, "the vocabulary has no token for the byte 0x%02X",
                             b);
    }
    t->cache = memory_array(BPE_CACHE_SLOTS, sizeof *t->cache);
    return 0;
}

/* ---- merging one piece: the lowest rank first, the leftmost among equals ---- */

static int before(Candidate a, Candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void heap_push(Tokenizer *t, Candidate c)
{
    size_t i = t->heap_len++;
    for (; i && before(c, t->heap[(i - 1) / 2]); i = (i - 1) / 2) t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = c;
}

static Candidate heap_pop(Tokenizer *t)
{
    Candidate top = t->heap[0], last = t->heap[--t->heap_len];
    size_t i = 0, n = t->heap_len;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(t->heap[child + 1], t->heap[child])) child++;
        if (!before(t->heap[child], last)) break;
        t->heap[i] = t->heap[child];
    }
    t->heap[i] = last;
    return top;
}

/* Push the pair that starts at symbol `at`, if it merges. */
static void offer(Tokenizer *t, int32_t at)
{
    if (at < 0 || t->symbols[at].next < 0) return;
    int32_t rank = bpe_rank(t, t->symbols[at].id, t->symbols[t->symbols[at].next].id);
    if (rank >= 0) heap_push(t, (Candidate){rank, at});
}

/* Returns the size of the unit at s, a byte or a character, and its token, or -1. */
static size_t unit(const Tokenizer *t, const char *s, size_t n, int32_t *id)
{
    uint32_t code;
    size_t size = t->byte_level ? 1 : unicode_decode(s, n, &code);
    *id = size == 1 ? t->byte_id[(unsigned char)*s] : bpe_find(t, s, size);
    return size;
}

/* Puts the tokens of the units of a piece into t->symbols, which has room. Returns their number. */
static size_t first_symbols(Tokenizer *t, const char *piece, size_t len)
{
    size_t known = 0;
    int unknown = 0; /* the last unit was */
    for (size_t at = 0, size; at < len; at += size) {
        int32_t id;
        size = unit(t, piece + at, len - at, &id);
        const int bytes = id < 0 && t->byte_fallback, was_unknown = unknown;
        unknown = id < 0 && !bytes;
        if (unknown && was_unknown && t->fuse_unknown) continue;
        for (size_t i = 0; i < (bytes ? size : 1); i++) {
            int32_t to = bytes     ? t->fallback[(unsigned char)piece[at + i]]
                         : unknown ? t->unknown
                                   : id,
                    k = (int32_t)known;
            if (to >= 0) t->symbols[known++] = (Symbol){to, k - 1, k + 1};
        }
    }
    return known;
}

static size_t merge_piece(Tokenizer *t, const char *piece, size_t len, int32_t *out)
{
    if (len > t->symbols_cap) {
        t->symbols_cap = 2 * len;
        t->symbols = memory_grow(t->symbols, t->symbols_cap, sizeof *t->symbols);
        /* one candidate per start, then at most two for each of len - 1 merges */
        t->heap_cap = 3 * t->symbols_cap;
        t->heap = memory_grow(t->heap, t->heap_cap, sizeof *t->heap);
    }
    t->heap_len = 0;
    size_t known = first_symbols(t, piece, len);
    if (!known) return 0;
    t->symbols[known - 1].next = -1;
    for (size_t i = 0; i < known; i++) offer(t, (int32_t)i);
    while (t->heap_len) {
        Candidate c = heap_pop(t);
        Symbol *left = &t->symbols[c.at];
        const Merge *m = &t->merges[c.rank];
        /* stale if one of the two symbols was merged since */
        if (left->id != m->left || left->next < 0 || t->symbols[left->next].id != m->right)
            continue;
        Symbol *right = &t->symbols[left->next];
        left->id = m->merged;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) t->symbols[left->next].prev = c.at;
        offer(t, left->prev);
        offer(t, c.at);
    }
    size_t n = 0;
    for (int32_t i = 0; i >= 0; i = t->symbols[i].next) out[n++] = t->symbols[i].id;
    return n;
}

size_t bpe_piece(Tokenizer *t, const char *piece, size_t len, int32_t *out)
{
    CacheSlot *slot = NULL;
    if (len == 1 && !t->ignore_merges && t->byte_level && t->unknown < 0) {
        *out = t->byte_id[(unsigned char)*piece];
        return *out >= 0;
    }
    if (len <= BPE_CACHE_BYTES) {
        slot = &t->cache[random_hash(piece, len) % BPE_CACHE_SLOTS];
        if (slot->len == len && !memcmp(slot->bytes, piece, len)) {
            memcpy(out, slot->ids, slot->n * sizeof *out);
            return slot->n;
        }
    }
    size_t n = 1;
    int32_t whole = t->ignore_merges ? bpe_find(t, piece, len) : -1;
    if (whole >= 0)
        *out = whole;
    else
        n = merge_piece(t, piece, len, out);
    if (slot) {
        slot->len = (unsigned char)len;
        slot->n = (unsigned char)n;
        memcpy(slot->bytes, piece, len);
        memcpy(slot->ids, out, n * sizeof *out);
    }
    return n;
}
