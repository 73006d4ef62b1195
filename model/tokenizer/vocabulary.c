/* A scanner over the text of the file, with every index checked against its end. */
#include "model/tokenizer/bpe.h"

#include <string.h>

#include "model/tokenizer/unicode.h"

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

/* ---- finding the two members ---- */

/* Returns the position after the string that begins at the quote p, or NULL if it does not end. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '"') return p + 1;
        if (*p == '\\') p++;
    }
    return NULL;
}

/* Returns the position after the value at p. For an array or object, *items is an estimate of its
 * size. */
static const char *skip_value(const char *p, const char *end, size_t *items)
{
    size_t depth = 0;
    *items = 0;
    while (p && p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            if (!depth) return p;
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        if (*p == ',' && depth == 1) ++*items;
        if (*p == '}' || *p == ']' || (*p == ',' && !depth)) {
            if (!depth) return p;
            if (!--depth) {
                ++*items;
                return p + 1;
            }
        }
        p++;
    }
    return NULL;
}

typedef struct {
    const char *done, *end; /* rest holds the text up to `done` */
    Buffer *rest;
    JsonSpan *vocab, *merges;
} Cut;

static int key_is(const char *key, const char *behind, const char *name)
{
    size_t n = strlen(name);
    return (size_t)(behind - key) == n + 2 && !memcmp(key + 1, name, n);
}

static void take(Cut *c, JsonSpan *span, const char *from, const char *to, size_t items,
                 const char *instead)
{
    *span = (JsonSpan){from, (size_t)(to - from), items};
    buffer_append(c->rest, c->done, (size_t)(from - c->done));
    buffer_puts(c->rest, instead);
    c->done = to;
}

/* Returns the position after the object at p, which is the document or its model. */
static const char *walk(Cut *c, const char *p, int in_model)
{
    const char *end = c->end;
    size_t items;
    if (p == end || *p != '{') return NULL;
    for (p = skip_space(p + 1, end); p < end && *p == '"';) {
        const char *key = p, *behind = skip_string(p, end);
        p = behind ? skip_space(behind, end) : end;
        if (p == end || *p != ':') return NULL;
        p = skip_space(p + 1, end);
        if (p == end) return NULL;
        const char *value = p;
        if (!in_model && *p == '{' && key_is(key, behind, "model"))
            p = walk(c, p, 1);
        else
            p = skip_value(p, end, &items);
        if (!p) return NULL;
        if (in_model && *value == '{' && key_is(key, behind, "vocab"))
            take(c, c->vocab, value, p, items, "{}");
        if (in_model && *value == '[' && key_is(key, behind, "merges"))
            take(c, c->merges, value, p, items, "[]");
        p = skip_space(p, end);
        if (p < end && *p == ',') p = skip_space(p + 1, end);
    }
    return p < end && *p == '}' ? p + 1 : NULL;
}

int vocabulary_cut(const char *text, size_t len, Buffer *rest, JsonSpan *vocab, JsonSpan *merges)
{
    Cut c = {text, text + len, rest, vocab, merges};
    *vocab = *merges = (JsonSpan){0};
    if (!walk(&c, skip_space(text, c.end), 0)) return -1;
    buffer_append(rest, c.done, (size_t)(c.end - c.done));
    return rest->full ? -1 : 0;
}

/* ---- reading them ---- */

typedef struct {
    const char *p, *end;
} Scan;

static int expect(Scan *s, char c)
{
    s->p = skip_space(s->p, s->end);
    if (s->p == s->end || *s->p != c) return 0;
    s->p++;
    return 1;
}

/* Decode the escape after a backslash at s->p. Returns UNICODE_INVALID if JSON does not have it. */
static uint32_t escaped(Scan *s)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s->end - s->p < 2) return UNICODE_INVALID;
    const char *at = strchr(from, s->p[1]);
    if (s->p[1] && at) {
        s->p += 2;
        return (unsigned char)to[at - from];
    }
    if (s->p[1] != 'u' || s->end - s->p < 6) return UNICODE_INVALID;
    uint32_t code = 0;
    for (int i = 2; i < 6; i++) {
        int c = s->p[i], digit = c >= '0' && c <= '9'                 ? c - '0'
                                 : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                                      : -1;
        if (digit < 0) return UNICODE_INVALID;
        code = code * 16 + (uint32_t)digit;
    }
    s->p += 6;
    return code;
}

/* Decodes the second half of a surrogate pair. Returns the character, or UNICODE_INVALID. */
static uint32_t low_surrogate(Scan *s, uint32_t high)
{
    uint32_t low = s->p < s->end && *s->p == '\\' ? escaped(s) : 0;
    if (high >= 0xDC00 || low < 0xDC00 || low > 0xDFFF) return UNICODE_INVALID;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

static uint32_t next_code(Scan *s)
{
    uint32_t code = (unsigned char)*s->p;
    if (code == '\\') {
        code = escaped(s);
        return code >= 0xD800 && code <= 0xDFFF ? low_surrogate(s, code) : code;
    }
    s->p += code < 0x80 ? 1 : unicode_decode(s->p, (size_t)(s->end - s->p), &code);
    return code;
}

/* Writes a character as UTF-8. Returns its size. */
static int put_code(uint32_t c, char out[4])
{
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Decode a token up to a quote or, in a merge or the byte alphabet, a space to out, which has room for
 * BPE_MAX_TOKEN_BYTES. Returns the number of bytes, or -1. */
static int token_bytes(const Tokenizer *t, Scan *s, int in_merge, char *out)
{
    int n = 0;
    while (s->p < s->end && *s->p != '"' && (*s->p != ' ' || !(in_merge || t->byte_level))) {
        char unit[4];
        uint32_t code = next_code(s);
        int byte = code == UNICODE_INVALID ? -1 : t->byte_level ? bpe_alphabet_byte(code) : 0;
        if (byte < 0) return -1;
        unit[0] = (char)byte;
        int size = t->byte_level ? 1 : put_code(code, unit);
        if (n + size > BPE_MAX_TOKEN_BYTES) return -1;
        memcpy(out + n, unit, (size_t)size);
        n += size;
    }
    return s->p < s->end ? n : -1;
}

/* Read a JSON integer of at most 18 digits. Returns 0 if there is none. */
static int integer(Scan *s, int64_t *out)
{
    s->p = skip_space(s->p, s->end);
    const char *p = s->p;
    int minus = p < s->end && *p == '-', n = 0;
    p += minus;
    for (*out = 0; p + n < s->end && p[n] >= '0' && p[n] <= '9' && n < 18; n++)
        *out = *out * 10 + (p[n] - '0');
    if (!n || (n > 1 && *p == '0') || (p + n < s->end && strchr(".eE0123456789", p[n]))) return 0;
    if (minus) *out = -*out;
    s->p = p + n;
    return 1;
}

/* Returns how many bytes at `at` a message quotes. */
static int shown(const char *at, const char *end)
{
    const char *quote = memchr(at, '"', (size_t)(end - at));
    size_t n = (size_t)((quote ? quote : end) - at);
    return n < 100 ? (int)n : 100;
}

static int read_vocab(Tokenizer *t, const JsonSpan *span, Error *err)
{
    Scan s = {span->text + 1, span->text + span->len};
    char bytes[BPE_MAX_TOKEN_BYTES];
    int64_t id;
    if (expect(&s, '}')) return 0;
    do {
        if (!expect(&s, '"'))
            return error_set(err, ERROR_CORRUPT, "model.vocab: expected a text at byte %zu of it",
                             (size_t)(s.p - span->text));
        const char *key = s.p;
        int n = token_bytes(t, &s, 0, bytes), long_key = shown(key, s.end);
        if (n < 0 || *s.p != '"')
            return error_set(err, ERROR_CORRUPT,
                             "model.vocab: \"%.*s\" is too long or not of the %s", long_key, key,
                             t->byte_level ? "byte alphabet" : "JSON that is expected");
        s.p++;
        if (!expect(&s, ':') || !integer(&s, &id))
            return error_set(err, ERROR_CORRUPT, "model.vocab: the id of \"%.*s\" is no integer",
                             long_key, key);
        if (bpe_add_token(t, id, bytes, (size_t)n, err)) return error_prefix(err, "model.vocab");
    } while (expect(&s, ','));
    if (expect(&s, '}') && s.p == s.end) return 0;
    return error_set(err, ERROR_CORRUPT, "model.vocab: not valid JSON at byte %zu of it",
                     (size_t)(s.p - span->text));
}

/* Read one of the two tokens of merge i, and skip its quote or space. */
static int merge_part(Tokenizer *t, Scan *s, size_t i, int32_t *id, Error *err)
{
    char bytes[BPE_MAX_TOKEN_BYTES];
    const char *text = s->p;
    int n = token_bytes(t, s, 1, bytes);
    *id = n < 0 ? -1 : bpe_find(t, bytes, (size_t)n);
    if (*id >= 0) return 0;
    int len = n < 0 ? shown(text, s->end) : (int)(s->p - text);
    return error_set(err, ERROR_CORRUPT, "model.merges[%zu]: %.*s is not in the vocabulary", i, len,
                     text);
}

static int read_merge(Tokenizer *t, Scan *s, size_t i, Error *err)
{
    int32_t left, right;
    int pair = expect(s, '['), sound = expect(s, '"');
    if (sound && merge_part(t, s, i, &left, err)) return -1;
    sound = sound && *s->p++ == (pair ? '"' : ' ') && (!pair || (expect(s, ',') && expect(s, '"')));
    if (sound && merge_part(t, s, i, &right, err)) return -1;
    if (!sound || *s->p++ != '"' || (pair && !expect(s, ']')))
        return error_set(err, ERROR_CORRUPT, "model.merges[%zu]: expected two tokens", i);
    return bpe_add_merge(t, left, right, err) ? error_prefix(err, "model.merges[%zu]", i) : 0;
}

static int read_merges(Tokenizer *t, const JsonSpan *span, Error *err)
{
    Scan s = {span->text + 1, span->text + span->len};
    if (expect(&s, ']')) return 0;
    size_t i = 0;
    do {
        if (i == span->items)
            return error_set(err, ERROR_CORRUPT, "model.merges[%zu]: not valid JSON", i);
        if (read_merge(t, &s, i++, err)) return -1;
    } while (expect(&s, ','));
    return expect(&s, ']') && s.p == s.end
               ? 0
               : error_set(err, ERROR_CORRUPT, "model.merges[%zu]: not valid JSON", i);
}

int vocabulary_read(Tokenizer *t, const JsonSpan *vocab, const JsonSpan *merges, Error *err)
{
    return -(read_vocab(t, vocab, err) || read_merges(t, merges, err));
}
