/* Inside the tokenizer: tokens by id, merges by rank, and how a text is cut before it is merged. */
#ifndef MODEL_BPE_H
#define MODEL_BPE_H

#include <pthread.h>
#include <stddef.h>

#include "base/json.h"
#include "model/tokenizer/regex.h"
#include "model/tokenizer/tokenizer.h"

enum {
    BPE_MAX_TOKENS = 1 << 20,
    BPE_MAX_TOKEN_BYTES = 4096,
    BPE_MAX_ADDED = 8192,
    BPE_CACHE_SLOTS = 8192,
    BPE_CACHE_BYTES = 30,
    BPE_MAX_TEXT = 1 << 28 /* bytes of one call */
};

typedef enum {
    TOKEN_NONE,    /* no token has this id */
    TOKEN_TEXT,    /* from the vocabulary */
    TOKEN_ADDED,   /* matched in texts before anything else */
    TOKEN_SPECIAL, /* never made from text */
} TokenKind;

typedef struct {
    size_t offset; /* into bytes */
    unsigned short len;
    /* normalized: an added token that is matched after NFC. */
    unsigned char kind, in_vocab, normalized;
} Token;

typedef struct {
    unsigned char len, n; /* len 0: free */
    char bytes[BPE_CACHE_BYTES];
    int32_t ids[BPE_CACHE_BYTES];
} CacheSlot;

typedef struct {
    int32_t id, prev, next; /* -1: none */
} Symbol;

typedef struct {
    int32_t rank, at;
} Candidate;

typedef struct {
    int32_t left, right, merged;
} Merge;

typedef struct {
    uint32_t hash;
    int32_t id; /* id + 1; 0: free */
} TextSlot;

enum { TEXT_RULES = 8, PRETOKEN_STEPS = 16 };

/* PREPEND_FIRST and PREPEND_MISSING put `to` where the text does not begin with it; the first only at the
 * begin of the whole. */
typedef enum {
    TEXT_NFC,
    TEXT_REPLACE,
    TEXT_PREPEND,
    TEXT_PREPEND_MISSING,
    TEXT_PREPEND_FIRST
} TextRuleKind;

typedef struct {
    TextRuleKind kind;
    char from[32], to[32];
} TextRule;

typedef struct {
    TextRule list[TEXT_RULES];
    int n;
} TextRules;

/* What becomes of a match: a piece, nothing, or the end of the piece before it. */
typedef enum { CUT_ISOLATED, CUT_REMOVED, CUT_WITH_PREVIOUS } CutBehavior;

typedef struct {
    Regex *regex;
    CutBehavior behavior;
    int invert; /* what does not match counts as the match */
} PretokenStep;

typedef struct {
    PretokenStep steps[PRETOKEN_STEPS]; /* each cuts the pieces of the one before */
    int n;
} Pretoken;

typedef struct {
    int (*piece)(void *ctx, const char *s, size_t n, Error *err);
    void *ctx;
} PretokenSink;

struct Tokenizer {
    Token *tokens; /* by id */
    int n_tokens;
    size_t tokens_cap;
    Buffer bytes;
    Merge *merges; /* by rank */
    int n_merges;
    int32_t *pairs;  /* hash of (left, right): rank + 1, 0 free */
    TextSlot *texts; /* hash of bytes: vocabulary tokens */
    size_t pairs_mask, texts_mask;
    int32_t *added;         /* ids of TOKEN_ADDED and TOKEN_SPECIAL, in order */
    int n_added, n_matched; /* n_matched: the number of TOKEN_ADDED */
    int32_t byte_id[256];
    TextRules normalizer, metaspace; /* before, and in the pre-tokenizer */
    Pretoken pretoken;
    const char *written; /* trained here: the expression of pretoken */
    int ignore_merges;
    /* Bytes are written in the byte alphabet; else tokens are text, and <0xXX> a byte that has no token. */
    int byte_level, byte_fallback, fuse_unknown, strip_left;
    int32_t unknown, fallback[256]; /* -1: none */
    Buffer json; /* the file as read or rendered, which tokenizer_save writes byte for byte */
    /* Guards the cache of pieces and the scratch of a merge. */
    pthread_mutex_t lock;
    CacheSlot *cache;
    Symbol *symbols;
    Candidate *heap;
    size_t symbols_cap, heap_cap, heap_len;
};

Tokenizer *bpe_new(int expected_tokens, int expected_merges);
int bpe_add_token(Tokenizer *t, int64_t id, const char *bytes, size_t len, Error *err);
/* Add an added token. It may already be a token of the vocabulary. */
int bpe_add_added(Tokenizer *t, int64_t id, const char *bytes, size_t len, int special,
                  int normalized, Error *err);
/* Add a merge. The vocabulary must already have the merged token. */
int bpe_add_merge(Tokenizer *t, int32_t left, int32_t right, Error *err);
int32_t bpe_rank(const Tokenizer *t, int32_t left, int32_t right); /* -1: the pair does not merge */
/* Checks that there is a token for what texts have; called before any use. */
int bpe_finish(Tokenizer *t, Error *err);
/* Returns a token of the vocabulary, or -1. */
int32_t bpe_find(const Tokenizer *t, const char *bytes, size_t len);
static inline const char *bpe_bytes(const Tokenizer *t, int32_t id)
{
    return t->bytes.data + t->tokens[id].offset;
}

/* Write the ids of one pre-token to out, which has room for len. Returns their number. The caller
 * holds the lock. */
size_t bpe_piece(Tokenizer *t, const char *piece, size_t len, int32_t *out);

/* The byte alphabet of the files: byte to code point, and back (-1: not in the alphabet). */
unsigned bpe_alphabet(unsigned byte);
int bpe_alphabet_byte(uint32_t code);

int tokenizer_render(Tokenizer *t, Error *err); /* fills t->json */

/* Read the tokens, then the merges ("a b" or ["a","b"]), of the members of `model` into t. */
int vocabulary_read(Tokenizer *t, json_t *vocab, const json_t *merges, Error *err);

/* ---- before a text is merged ---- */
extern const char *const pretoken_qwen2, *const pretoken_gpt2;
/* For a small model of one narrow language: whole lines with their ends, so that tokens may span words.
 * Generated kernels are about three times shorter in tokens. */
extern const char *const pretoken_lines;

int text_rule(TextRules *r, TextRuleKind kind, const char *from, const char *to, Error *err);
/* Change a text, which may then lie in one of the copies. first: it begins the whole. */
int text_change(const TextRules *r, int first, const char **text, size_t *len, Buffer copies[2],
                Error *err);

int pretoken_add(Pretoken *p, const char *pattern, size_t len, CutBehavior behavior, int invert,
                 Error *err);
void pretoken_release(Pretoken *p);
/* Cut well-formed UTF-8 and hand the pieces on in order. */
int pretoken_cut(const Pretoken *p, const char *s, size_t n, const PretokenSink *sink, Error *err);

#endif
