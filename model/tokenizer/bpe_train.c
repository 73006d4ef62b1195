/* Train a vocabulary. The texts are split into pre-tokens, and equal pre-tokens are counted. Then
 * the most frequent adjacent pair becomes a token, repeatedly. The counts of pairs are updated by
 * visiting only the words that hold the merged pair. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/unicode.h"

typedef struct {
    size_t text;     /* offset of its bytes */
    uint32_t len, n; /* bytes; remaining symbols */
    size_t first;    /* of its symbols */
    int64_t count;
} Word;

typedef struct {
    int32_t left, right; /* left -1: a free slot */
    int64_t count;
    uint32_t *words; /* words that held it when they were added */
    uint32_t n, cap;
    int32_t offered; /* the token of the last merge that added it to `grown` */
} Pair;

typedef struct {
    int64_t count;
    int32_t left, right;
} Offer;

typedef struct {
    Buffer bytes;
    Word *words;
    uint32_t n_words, words_cap;
    uint32_t *index; /* hash of words: index + 1 */
    size_t index_mask;
    int32_t *symbols;
    Pair *pairs;
    size_t n_pairs, pairs_mask;
    Offer *heap;
    size_t heap_len, heap_cap;
    int32_t made; /* the token of the current merge: only pairs with it can have grown */
    Offer *grown;
    size_t n_grown, grown_cap;
} Trainer;

/* ---- distinct pre-tokens ---- */

static size_t word_slot(const Trainer *r, const char *s, size_t len)
{
    size_t i = random_hash(s, len) & r->index_mask;
    for (; r->index[i]; i = (i + 1) & r->index_mask) {
        const Word *w = &r->words[r->index[i] - 1];
        if (w->len == len && !memcmp(r->bytes.data + w->text, s, len)) break;
    }
    return i;
}

static void grow_index(Trainer *r)
{
    r->index_mask = 2 * (r->index_mask + 1) - 1;
    free(r->index);
    r->index = memory_array(r->index_mask + 1, sizeof *r->index);
    for (uint32_t w = 0; w < r->n_words; w++)
        r->index[word_slot(r, r->bytes.data + r->words[w].text, r->words[w].len)] = w + 1;
}

static int count_piece(void *trainer, const char *s, size_t len, Error *err)
{
    Trainer *r = trainer;
    size_t slot = word_slot(r, s, len);
    if (r->index[slot]) {
        r->words[r->index[slot] - 1].count++;
        return 0;
    }
    if (r->n_words == UINT32_MAX / 4)
        return error_set(err, ERROR_LIMIT, "more than %u distinct words", UINT32_MAX / 4);
    memory_room(r->words, r->n_words, r->words_cap, 4096);
    r->words[r->n_words] = (Word){.text = r->bytes.len, .len = (uint32_t)len, .count = 1};
    if (buffer_append(&r->bytes, s, len))
        return error_set(err, ERROR_LIMIT, "distinct words of more than %zu bytes", r->bytes.max);
    r->index[slot] = ++r->n_words;
    if (2 * (size_t)r->n_words > r->index_mask) grow_index(r);
    return 0;
}

static int count_text(Trainer *r, const Tokenizer *t, const char *s, size_t n, Error *err)
{
    if (n > BPE_MAX_TEXT)
        return error_set(err, ERROR_LIMIT, "expected a text of at most %d bytes, found %zu",
                         BPE_MAX_TEXT, n);
    Buffer repaired, nfc;
    buffer_init(&repaired, BPE_MAX_TEXT);
    buffer_init(&nfc, BPE_MAX_TEXT);
    int rc = -(unicode_repair(&s, &n, &repaired, err) || unicode_nfc(&s, &n, &nfc, err));
    if (!rc) rc = pretoken_cut(&t->pretoken, s, n, &(PretokenSink){count_piece, r}, err);
    buffer_release(&repaired);
    buffer_release(&nfc);
    return rc;
}

/* ---- pairs ---- */

static size_t pair_slot(const Trainer *r, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t i = (size_t)(h >> 32) & r->pairs_mask;
    while (r->pairs[i].left >= 0 && (r->pairs[i].left != left || r->pairs[i].right != right))
        i = (i + 1) & r->pairs_mask;
    return i;
}

static void new_pairs(Trainer *r, size_t size)
{
    r->pairs_mask = size - 1;
    r->pairs = memory_array(size, sizeof *r->pairs);
    for (size_t i = 0; i < size; i++) r->pairs[i].left = -1;
}

static void grow_pairs(Trainer *r)
{
    Pair *old = r->pairs;
    size_t n = r->pairs_mask + 1;
    new_pairs(r, 2 * n);
    for (size_t i = 0; i < n; i++)
        if (old[i].left >= 0) r->pairs[pair_slot(r, old[i].left, old[i].right)] = old[i];
    free(old);
}

static void add_pair(Trainer *r, int32_t left, int32_t right, uint32_t word)
{
    if (2 * r->n_pairs > r->pairs_mask) grow_pairs(r);
    Pair *p = &r->pairs[pair_slot(r, left, right)];
    if (p->left < 0) {
        *p = (Pair){.left = left, .right = right, .offered = -2};
        r->n_pairs++;
    }
    if (p->offered != r->made && (r->made < 0 || left == r->made || right == r->made)) {
        memory_room(r->grown, r->n_grown, r->grown_cap, 4096);
        r->grown[r->n_grown++] = (Offer){0, left, right};
        p->offered = r->made;
    }
    p->count += r->words[word].count;
    if (p->n && p->words[p->n - 1] == word) return;
    memory_room(p->words, p->n, p->cap, 2);
    p->words[p->n++] = word;
}

/* Order by descending count, then by ascending ids. */
static int offered_before(Offer a, Offer b)
{
    if (a.count != b.count) return a.count > b.count;
    return a.left != b.left ? a.left < b.left : a.right < b.right;
}

static void heap_push(Trainer *r, Offer o)
{
    memory_room(r->heap, r->heap_len, r->heap_cap, 4096);
    size_t i = r->heap_len++;
    for (; i && offered_before(o, r->heap[(i - 1) / 2]); i = (i - 1) / 2)
        r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = o;
}

static Offer heap_pop(Trainer *r)
{
    Offer top = r->heap[0], last = r->heap[--r->heap_len];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < r->heap_len; i = child) {
        if (child + 1 < r->heap_len && offered_before(r->heap[child + 1], r->heap[child])) child++;
        if (!offered_before(r->heap[child], last)) break;
        r->heap[i] = r->heap[child];
    }
    r->heap[i] = last;
    return top;
}

static void offer_grown(Trainer *r)
{
    for (size_t i = 0; i < r->n_grown; i++) {
        Offer o = r->grown[i];
        o.count = r->pairs[pair_slot(r, o.left, o.right)].count;
        if (o.count > 0) heap_push(r, o);
    }
    r->n_grown = 0;
}

/* Find the most frequent pair. Returns 0 when no pair occurs twice. An offer whose count has
 * decreased is pushed again. */
static int best_pair(Trainer *r, Offer *best)
{
    while (r->heap_len) {
        *best = heap_pop(r);
        int64_t now = r->pairs[pair_slot(r, best->left, best->right)].count;
        if (now == best->count) return now >= 2;
        best->count = now;
        if (now > 0) heap_push(r, *best);
    }
    return 0;
}

/* ---- merging ---- */

static void add_word(Trainer *r, uint32_t word, int sign)
{
    Word *w = &r->words[word];
    const int32_t *s = r->symbols + w->first;
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        if (sign > 0)
            add_pair(r, s[i], s[i + 1], word);
        else
            r->pairs[pair_slot(r, s[i], s[i + 1])].count -= w->count;
    }
}

static void merge_word(Trainer *r, uint32_t word, Offer pair, int32_t id)
{
    Word *w = &r->words[word];
    int32_t *s = r->symbols + w->first;
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; n++) {
        int hit = i + 1 < w->n && s[i] == pair.left && s[i + 1] == pair.right;
        s[n] = hit ? id : s[i];
        i += hit ? 2 : 1;
    }
    w->n = n;
}

static int holds(const Trainer *r, uint32_t word, Offer pair)
{
    const Word *w = &r->words[word];
    const int32_t *s = r->symbols + w->first;
    for (uint32_t i = 0; i + 1 < w->n; i++)
        if (s[i] == pair.left && s[i + 1] == pair.right) return 1;
    return 0;
}

static void merge_pair(Trainer *r, Offer pair, int32_t id)
{
    Pair *p = &r->pairs[pair_slot(r, pair.left, pair.right)];
    uint32_t *words = p->words, n = p->n;
    r->made = id;
    p->words = NULL;
    p->n = p->cap = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!holds(r, words[i], pair)) continue; /* merged away since, or listed twice */
        add_word(r, words[i], -1);
        merge_word(r, words[i], pair, id);
        add_word(r, words[i], 1);
    }
    free(words);
    offer_grown(r);
}

/* ---- the training loop ---- */

/* Ids 0..255 are the bytes in the order of the alphabet's characters, as in other trainers. */
static int add_bytes(Tokenizer *t, Error *err)
{
    int32_t id = 0;
    for (uint32_t code = 0; code < 0x200; code++) {
        int byte = bpe_alphabet_byte(code);
        if (byte >= 0 && bpe_add_token(t, id++, (char[]){(char)byte}, 1, err)) return -1;
    }
    return 0;
}

static void start_words(Trainer *r, const Tokenizer *t)
{
    r->symbols = memory_array(r->bytes.len, sizeof *r->symbols);
    r->made = -1;
    for (uint32_t i = 0; i < r->n_words; i++) {
        Word *w = &r->words[i];
        w->first = w->text;
        w->n = w->len;
        for (uint32_t k = 0; k < w->len; k++)
            r->symbols[w->first + k] = t->byte_id[(unsigned char)r->bytes.data[w->text + k]];
        add_word(r, i, 1);
    }
    offer_grown(r);
}

/* Two merges may make the same token: then the vocabulary does not grow. A pair that was merged
 * before may occur again, which is not a new merge. */
static int learn(Trainer *r, Tokenizer *t, int n_tokens, int max_merges, Error *err)
{
    char joined[2 * BPE_MAX_TOKEN_BYTES];
    Offer best;
    while (t->n_tokens < n_tokens && t->n_merges < max_merges && best_pair(r, &best)) {
        size_t a = t->tokens[best.left].len, b = t->tokens[best.right].len;
        if (a + b > BPE_MAX_TOKEN_BYTES) continue; /* stays two tokens */
        memcpy(joined, bpe_bytes(t, best.left), a);
        memcpy(joined + a, bpe_bytes(t, best.right), b);
        int32_t id = bpe_find(t, joined, a + b);
        if (id < 0) {
            id = t->n_tokens;
            if (bpe_add_token(t, id, joined, a + b, err)) return -1;
        }
        if (bpe_rank(t, best.left, best.right) < 0 && bpe_add_merge(t, best.left, best.right, err))
            return -1;
        merge_pair(r, best, id);
    }
    return 0;
}

static void trainer_release(Trainer *r)
{
    for (size_t i = 0; r->pairs && i <= r->pairs_mask; i++) free(r->pairs[i].words);
    buffer_release(&r->bytes);
    free(r->words);
    free(r->index);
    free(r->symbols);
    free(r->pairs);
    free(r->heap);
    free(r->grown);
}

static int add_specials(Tokenizer *t, const char *const *specials, int n, Error *err)
{
    for (int i = 0; i < n; i++) {
        size_t len = strlen(specials[i]);
        if (tokenizer_special(t, specials[i]) >= 0 || bpe_find(t, specials[i], len) >= 0)
            return error_set(err, ERROR_INVALID, "the special token %.100s is a token already",
                             specials[i]);
        if (bpe_add_added(t, t->n_tokens, specials[i], len, 1, 0, err)) return -1;
    }
    return 0;
}

int tokenizer_train(const Corpus *c, const VocabularyOptions *o, Tokenizer **out, Error *err)
{
    *out = NULL;
    if (o->n_specials < 0 || o->size < 256 + o->n_specials || o->size > BPE_MAX_TOKENS)
        return error_set(err, ERROR_INVALID, "expected a vocabulary of %d to %d tokens, found %d",
                         256 + o->n_specials, BPE_MAX_TOKENS, o->size);
    int n_tokens = o->size - o->n_specials, max_merges = 2 * (n_tokens - 256);
    Tokenizer *t = bpe_new(n_tokens, max_merges);
    t->byte_level = 1;
    t->written = o->lines ? pretoken_lines : pretoken_qwen2;
    Trainer r = {.index_mask = 8191};
    buffer_init(&r.bytes, (size_t)1 << 30);
    r.index = memory_array(r.index_mask + 1, sizeof *r.index);
    new_pairs(&r, 8192);
    int rc = -(text_rule(&t->normalizer, TEXT_NFC, "", "", err) ||
               pretoken_add(&t->pretoken, t->written, strlen(t->written), CUT_ISOLATED, 0, err) ||
               add_bytes(t, err) || bpe_finish(t, err));
    for (size_t i = 0; i < c->n && !rc; i++) rc = count_text(&r, t, c->texts[i], c->lens[i], err);
    if (!rc) {
        start_words(&r, t);
        rc = -(learn(&r, t, n_tokens, max_merges, err) ||
               add_specials(t, o->specials, o->n_specials, err) || tokenizer_render(t, err));
    }
    trainer_release(&r);
    if (rc)
        tokenizer_free(t);
    else
        *out = t;
    return rc;
}
