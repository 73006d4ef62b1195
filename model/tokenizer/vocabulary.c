/* Bytes of tokens from the texts of a tokenizer.json: of the byte alphabet, or as they are. */
#include "model/tokenizer/bpe.h"

#include <string.h>

#include "model/tokenizer/unicode.h"

enum { SHOWN = 100 }; /* bytes of a text in a message */

/* Returns the number of bytes, at most BPE_MAX_TOKEN_BYTES, or -1. */
static int token_bytes(const Tokenizer *t, const char *s, size_t len, char *out)
{
    int n = 0;
    if (!t->byte_level) {
        if (len > BPE_MAX_TOKEN_BYTES) return -1;
        memcpy(out, s, len);
        return (int)len;
    }
    for (size_t i = 0; i < len; n++) {
        uint32_t code;
        i += unicode_decode(s + i, len - i, &code);
        int byte = bpe_alphabet_byte(code);
        if (byte < 0 || n == BPE_MAX_TOKEN_BYTES) return -1;
        out[n] = (char)byte;
    }
    return n;
}

static int read_vocab(Tokenizer *t, json_t *vocab, Error *err)
{
    char bytes[BPE_MAX_TOKEN_BYTES];
    const char *key;
    json_t *id;
    json_object_foreach(vocab, key, id)
    {
        int n = token_bytes(t, key, strlen(key), bytes);
        if (n < 0)
            return error_set(err, ERROR_CORRUPT,
                             "model.vocab: \"%.*s\" is too long or not of the byte alphabet", SHOWN,
                             key);
        if (!json_is_integer(id))
            return error_set(err, ERROR_CORRUPT, "model.vocab: the id of \"%.*s\" is no integer",
                             SHOWN, key);
        if (bpe_add_token(t, json_integer_value(id), bytes, (size_t)n, err))
            return error_prefix(err, "model.vocab");
    }
    return 0;
}

/* One of the two tokens of a merge. */
typedef struct {
    const char *text;
    size_t len;
} Part;

static Part part_of(const json_t *text)
{
    return (Part){json_string_value(text), json_string_length(text)};
}

/* "a b" or ["a", "b"]. Returns 0 where it is neither. */
static int merge_parts(const json_t *merge, Part part[2])
{
    if (json_is_array(merge)) {
        for (int i = 0; i < 2; i++) part[i] = part_of(json_array_get(merge, (size_t)i));
        return json_array_size(merge) == 2 && part[0].text && part[1].text;
    }
    part[0] = part_of(merge);
    const char *space = part[0].text ? memchr(part[0].text, ' ', part[0].len) : NULL;
    if (!space) return 0;
    part[1] = (Part){space + 1, (size_t)(part[0].text + part[0].len - space) - 1};
    part[0].len -= part[1].len + 1;
    return !memchr(part[1].text, ' ', part[1].len);
}

static int read_merge(Tokenizer *t, const json_t *merge, size_t i, Error *err)
{
    char bytes[BPE_MAX_TOKEN_BYTES];
    int32_t id[2];
    Part part[2];
    if (!merge_parts(merge, part))
        return error_set(err, ERROR_CORRUPT, "model.merges[%zu]: expected two tokens", i);
    for (int k = 0; k < 2; k++) {
        int n = token_bytes(t, part[k].text, part[k].len, bytes);
        id[k] = n < 0 ? -1 : bpe_find(t, bytes, (size_t)n);
        if (id[k] < 0)
            return error_set(err, ERROR_CORRUPT, "model.merges[%zu]: %.*s is not in the vocabulary",
                             i, (int)(part[k].len < SHOWN ? part[k].len : SHOWN), part[k].text);
    }
    return bpe_add_merge(t, id[0], id[1], err) ? error_prefix(err, "model.merges[%zu]", i) : 0;
}

int vocabulary_read(Tokenizer *t, json_t *vocab, const json_t *merges, Error *err)
{
    if (read_vocab(t, vocab, err)) return -1;
    for (size_t i = 0; i < json_array_size(merges); i++)
        if (read_merge(t, json_array_get(merges, i), i, err)) return -1;
    return 0;
}
