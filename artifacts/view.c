/* Typed access to the fields of a decoded record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/record.h"
#include "artifacts/scan.h"
#include "base/memory.h"

int view_decode(const void *data, size_t len, const char *where, msgpack_zone *zone, View *out,
                Error *err)
{
    size_t used, off = 0;
    if (scan_record(data, len, where, &used, err)) return -1;
    if (used != len)
        return error_set(err, ERROR_CORRUPT, "%s: %zu bytes follow the end of the record", where,
                         len - used);
    msgpack_object *root = msgpack_zone_malloc(zone, sizeof *root);
    if (!root || msgpack_unpack(data, len, &off, zone, root) != MSGPACK_UNPACK_SUCCESS)
        return error_set(err, ERROR_CORRUPT, "%s: msgpack could not decode %zu bytes", where, len);
    out->map = root;
    snprintf(out->where, sizeof out->where, "%s", where);
    return 0;
}

int view_read(const void *data, size_t len, const char *where, ViewRead *read, void *out,
              Error *err)
{
    msgpack_zone zone;
    View v;
    if (!msgpack_zone_init(&zone, 4096)) return error_set(err, ERROR_MEMORY, "no memory");
    int rc = view_decode(data, len, where, &zone, &v, err) ? -1 : read(&v, out, err);
    msgpack_zone_destroy(&zone);
    return rc;
}

/* Searches by bisection: scan_record has checked that the keys are sorted. */
static const msgpack_object *find(const View *v, const char *key)
{
    size_t lo = 0, hi = v->map->via.map.size, n = strlen(key);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const msgpack_object_kv *kv = &v->map->via.map.ptr[mid];
        size_t size = kv->key.via.str.size;
        int c = memcmp(kv->key.via.str.ptr, key, size < n ? size : n);
        if (!c) c = size < n ? -1 : size > n;
        if (!c) return &kv->val;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static const char *type_word(const msgpack_object *o)
{
    switch (o->type) {
    case MSGPACK_OBJECT_NIL: return "nothing (nil)";
    case MSGPACK_OBJECT_BOOLEAN: return "a bool";
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        return o->via.u64 > INT64_MAX ? "an integer above 2^63-1" : "an integer";
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: return "an integer";
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: return "a float";
    case MSGPACK_OBJECT_STR: return "a text";
    case MSGPACK_OBJECT_ARRAY: return "a list";
    case MSGPACK_OBJECT_MAP: return "a map";
    case MSGPACK_OBJECT_BIN: return "bytes";
    default: return "an unknown type";
    }
}

static int wrong(const View *v, const char *key, const char *expected, const msgpack_object *found,
                 Error *err)
{
    return error_set(err, ERROR_CORRUPT, "%s, field %s: expected %s, found %s", v->where, key,
                     expected, found ? type_word(found) : "no such field");
}

/* Returns the value if it has the type, else NULL with an error. */
static const msgpack_object *need(const View *v, const char *key, msgpack_object_type type,
                                  const char *expected, Error *err)
{
    const msgpack_object *o = find(v, key);
    if (o && o->type == type) return o;
    wrong(v, key, expected, o, err);
    return NULL;
}

int view_has(const View *v, const char *key)
{
    return find(v, key) != NULL;
}

int view_text(const View *v, const char *key, const char **s, size_t *n, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_STR, "a text", err);
    if (!o) return -1;
    *s = o->via.str.ptr;
    *n = o->via.str.size;
    return 0;
}

int view_text_is(const View *v, const char *key, const char *want)
{
    const char *s;
    size_t n;
    return !view_text(v, key, &s, &n, NULL) && n == strlen(want) && !memcmp(s, want, n);
}

char *view_strdup(const View *v, const char *key, Error *err)
{
    const char *s;
    size_t n;
    return view_text(v, key, &s, &n, err) ? NULL : memory_strndup(s, n);
}

int view_texts(const View *v, const ViewText *texts, int n, Error *err)
{
    for (int i = 0; i < n; i++)
        if (!(*texts[i].copy = view_strdup(v, texts[i].key, err))) return -1;
    return 0;
}

int view_copy(const View *v, const char *key, char *out, size_t size, Error *err)
{
    const char *s;
    size_t n;
    if (view_text(v, key, &s, &n, err)) return -1;
    if (n >= size)
        return error_set(err, ERROR_LIMIT, "%s, field %s: expected at most %zu bytes, found %zu",
                         v->where, key, size - 1, n);
    if (memchr(s, 0, n))
        return error_set(err, ERROR_CORRUPT, "%s, field %s: a byte 0 in a text", v->where, key);
    memcpy(out, s, n);
    out[n] = 0;
    return 0;
}

int view_bytes(const View *v, const char *key, const void **p, size_t *n, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_BIN, "bytes", err);
    if (!o) return -1;
    *p = o->via.bin.ptr;
    *n = o->via.bin.size;
    return 0;
}

static int as_int(const msgpack_object *o, int64_t *out)
{
    if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= INT64_MAX)
        *out = (int64_t)o->via.u64;
    else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        *out = o->via.i64;
    else
        return -1;
    return 0;
}

static int as_float(const msgpack_object *o, double *out)
{
    if (o->type == MSGPACK_OBJECT_FLOAT64 || o->type == MSGPACK_OBJECT_FLOAT32)
        *out = o->via.f64;
    else if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        *out = (double)o->via.u64;
    else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        *out = (double)o->via.i64;
    else
        return -1;
    return 0;
}

int view_int(const View *v, const char *key, int64_t *out, Error *err)
{
    const msgpack_object *o = find(v, key);
    return !o || as_int(o, out) ? wrong(v, key, "an integer", o, err) : 0;
}

int view_float(const View *v, const char *key, double *out, Error *err)
{
    const msgpack_object *o = find(v, key);
    return !o || as_float(o, out) ? wrong(v, key, "a float", o, err) : 0;
}

int view_bool(const View *v, const char *key, int *out, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_BOOLEAN, "a bool", err);
    if (!o) return -1;
    *out = o->via.boolean;
    return 0;
}

static int wrong_element(const View *v, const char *key, size_t i, const char *expected,
                         const msgpack_object *found, Error *err)
{
    return error_set(err, ERROR_CORRUPT, "%s, field %s[%zu]: expected %s, found %s", v->where, key,
                     i, expected, type_word(found));
}

int view_ints(const View *v, const char *key, int64_t **out, size_t *n, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_ARRAY, "a list of integers", err);
    if (!o) return -1;
    int64_t *values = memory_array(o->via.array.size, sizeof *values);
    for (size_t i = 0; i < o->via.array.size; i++)
        if (as_int(&o->via.array.ptr[i], &values[i])) {
            free(values);
            return wrong_element(v, key, i, "an integer", &o->via.array.ptr[i], err);
        }
    *out = values;
    *n = o->via.array.size;
    return 0;
}

int view_floats(const View *v, const char *key, double **out, size_t *n, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_ARRAY, "a list of floats", err);
    if (!o) return -1;
    double *values = memory_array(o->via.array.size, sizeof *values);
    for (size_t i = 0; i < o->via.array.size; i++)
        if (as_float(&o->via.array.ptr[i], &values[i])) {
            free(values);
            return wrong_element(v, key, i, "a float", &o->via.array.ptr[i], err);
        }
    *out = values;
    *n = o->via.array.size;
    return 0;
}

int view_map(const View *v, const char *key, View *out, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_MAP, "a map", err);
    if (!o) return -1;
    char where[sizeof v->where];
    snprintf(where, sizeof where, "%s, in %s", v->where, key);
    out->map = o;
    memcpy(out->where, where, sizeof where);
    return 0;
}

int view_count(const View *v, const char *key, size_t *n, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_ARRAY, "a list", err);
    if (!o) return -1;
    *n = o->via.array.size;
    return 0;
}

int view_text_at(const View *v, const char *key, size_t i, const char **s, size_t *n, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_ARRAY, "a list of texts", err);
    if (!o) return -1;
    if (i >= o->via.array.size)
        return error_set(err, ERROR_CORRUPT, "%s, field %s: expected item %zu, found %u items",
                         v->where, key, i, o->via.array.size);
    const msgpack_object *item = &o->via.array.ptr[i];
    if (item->type != MSGPACK_OBJECT_STR) return wrong_element(v, key, i, "a text", item, err);
    *s = item->via.str.ptr;
    *n = item->via.str.size;
    return 0;
}

int view_item(const View *v, const char *key, size_t i, View *out, Error *err)
{
    const msgpack_object *o = need(v, key, MSGPACK_OBJECT_ARRAY, "a list of maps", err);
    if (!o) return -1;
    if (i >= o->via.array.size)
        return error_set(err, ERROR_CORRUPT,
                         "%s, field %s: expected at least %zu elements, found %u", v->where, key,
                         i + 1, o->via.array.size);
    const msgpack_object *item = &o->via.array.ptr[i];
    if (item->type != MSGPACK_OBJECT_MAP) return wrong_element(v, key, i, "a map", item, err);
    char where[sizeof v->where];
    snprintf(where, sizeof where, "%s, in %s[%zu]", v->where, key, i);
    out->map = item;
    memcpy(out->where, where, sizeof where);
    return 0;
}
