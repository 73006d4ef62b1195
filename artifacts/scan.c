/* The walk keeps a fixed stack of keys, one for each depth. */
#include "artifacts/scan.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const uint8_t *s;
    size_t n;
} Key;

typedef struct {
    const uint8_t *p, *end;
    const char *where;
    Key path[SCAN_MAX_DEPTH]; /* the current key at each depth; n is 0 inside a list */
    int depth;
    Error *err;
} Scan;

static int scan_value(Scan *s);

static int refuse(Scan *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(Scan *s, const char *fmt, ...)
{
    char field[160] = "", what[160];
    size_t at = 0;
    for (int i = 0; i < s->depth && at < sizeof field - 64; i++)
        if (s->path[i].n) {
            int n = s->path[i].n > 40 ? 40 : (int)s->path[i].n;
            at += (size_t)snprintf(field + at, sizeof field - at, "%s%.*s", at ? "." : ", field ",
                                   n, (const char *)s->path[i].s);
        }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return error_set(s->err, ERROR_CORRUPT, "%s%s: %s", s->where, field, what);
}

static size_t left(const Scan *s)
{
    return (size_t)(s->end - s->p);
}

static int skip(Scan *s, size_t n, const char *what)
{
    if (left(s) < n)
        return refuse(s, "%s of %zu bytes is claimed, %zu are present", what, n, left(s));
    s->p += n;
    return 0;
}

/* Reads a big-endian length of `width` bytes. */
static int claim(Scan *s, int width, size_t *n)
{
    if (left(s) < (size_t)width) return refuse(s, "the data ends inside a length");
    *n = 0;
    for (int i = 0; i < width; i++) *n = *n << 8 | *s->p++;
    return 0;
}

static int enter(Scan *s)
{
    if (s->depth == SCAN_MAX_DEPTH) return refuse(s, "nested deeper than %d", SCAN_MAX_DEPTH);
    s->path[s->depth++] = (Key){0};
    return 0;
}

static int scan_list(Scan *s, size_t n)
{
    if (n > left(s))
        return refuse(s, "a list of %zu elements is claimed, %zu bytes are present", n, left(s));
    if (enter(s)) return -1;
    for (size_t i = 0; i < n; i++)
        if (scan_value(s)) return -1;
    s->depth--;
    return 0;
}

static int scan_key(Scan *s, Key *key)
{
    if (!left(s)) return refuse(s, "the data ends before a field's name");
    uint8_t b = *s->p++;
    size_t n = b & 31;
    if (b >= 0xd9 && b <= 0xdb) {
        if (claim(s, 1 << (b - 0xd9), &n)) return -1;
    } else if (b < 0xa0 || b > 0xbf) {
        return refuse(s, "a field's name is expected to be text, found the byte 0x%02x", b);
    }
    if (skip(s, n, "a field's name")) return -1;
    *key = (Key){s->p - n, n};
    return 0;
}

static int key_order(Key a, Key b)
{
    int c = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
    return c ? c : a.n < b.n ? -1 : a.n > b.n;
}

static int scan_map(Scan *s, size_t n)
{
    if (n > left(s) / 2)
        return refuse(s, "a map of %zu fields is claimed, %zu bytes are present", n, left(s));
    if (enter(s)) return -1;
    Key last = {0};
    for (size_t i = 0; i < n; i++) {
        Key key;
        if (scan_key(s, &key)) return -1;
        s->path[s->depth - 1] = key;
        if (i && key_order(last, key) >= 0)
            return refuse(s, "the field comes twice or out of order");
        if (scan_value(s)) return -1;
        last = key;
    }
    s->depth--;
    return 0;
}

static int scan_value(Scan *s)
{
    if (!left(s)) return refuse(s, "the data ends where a value is expected");
    uint8_t b = *s->p++;
    size_t n = 0;
    if (b <= 0x7f || b >= 0xe0) return 0;
    if (b <= 0x8f) return scan_map(s, b & 15);
    if (b <= 0x9f) return scan_list(s, b & 15);
    if (b <= 0xbf) return skip(s, b & 31, "a text");
    switch (b) {
    case 0xc0:
    case 0xc2:
    case 0xc3: return 0;
    case 0xc4:
    case 0xc5:
    case 0xc6: return claim(s, 1 << (b - 0xc4), &n) ? -1 : skip(s, n, "a byte string");
    case 0xca: return skip(s, 4, "a number");
    case 0xcb: return skip(s, 8, "a number");
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return skip(s, (size_t)1 << (b - 0xcc), "a number");
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: return skip(s, (size_t)1 << (b - 0xd0), "a number");
    case 0xd9:
    case 0xda:
    case 0xdb: return claim(s, 1 << (b - 0xd9), &n) ? -1 : skip(s, n, "a text");
    case 0xdc:
    case 0xdd: return claim(s, b == 0xdc ? 2 : 4, &n) ? -1 : scan_list(s, n);
    case 0xde:
    case 0xdf: return claim(s, b == 0xde ? 2 : 4, &n) ? -1 : scan_map(s, n);
    default: return refuse(s, "the byte 0x%02x begins no type that records use", b);
    }
}

int scan_record(const void *data, size_t len, const char *where, size_t *used, Error *err)
{
    const uint8_t *p = data;
    Scan s = {.p = p, .end = p + len, .where = where, .err = err};
    if (!len) return refuse(&s, "expected a record, found no bytes");
    if ((*p & 0xf0) != 0x80 && *p != 0xde && *p != 0xdf)
        return refuse(&s, "expected a map, found the byte 0x%02x", *p);
    if (scan_value(&s)) return -1;
    *used = (size_t)(s.p - p);
    return 0;
}
