/* Checked access to jansson's objects. */
#include "base/json.h"

#include "base/buffer.h"
#include "base/file.h"

json_t *json_read_text(const char *text, size_t len, const char *where, Error *err)
{
    json_error_t je;
    json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
    if (!v)
        error_set(err, ERROR_CORRUPT, "%s: not valid JSON at line %d, column %d: %s", where,
                  je.line, je.column, je.text);
    return v;
}

json_t *json_read_file(const char *path, size_t max, Error *err)
{
    Buffer b;
    buffer_init(&b, max);
    json_t *v = file_read(path, max, &b, err) ? NULL : json_read_text(b.data, b.len, path, err);
    buffer_release(&b);
    return v;
}

/* types: bits of json_type. */
static json_t *need(const json_t *obj, const char *key, const char *where, const char *type,
                    unsigned types, Error *err)
{
    json_t *v = json_object_get(obj, key);
    if (!v) {
        error_set(err, ERROR_CORRUPT, "%s: expected the field \"%s\" (%s), found none", where, key,
                  type);
        return NULL;
    }
    if (!(types >> json_typeof(v) & 1)) {
        error_set(err, ERROR_CORRUPT, "%s: the field \"%s\" is expected to be %s", where, key,
                  type);
        return NULL;
    }
    return v;
}

json_t *json_need_object(const json_t *obj, const char *key, const char *where, Error *err)
{
    return need(obj, key, where, "an object", 1u << JSON_OBJECT, err);
}

json_t *json_need_array(const json_t *obj, const char *key, const char *where, Error *err)
{
    return need(obj, key, where, "an array", 1u << JSON_ARRAY, err);
}

const char *json_need_text(const json_t *obj, const char *key, const char *where, Error *err)
{
    json_t *v = need(obj, key, where, "a text", 1u << JSON_STRING, err);
    return v ? json_string_value(v) : NULL;
}

int json_need_int(const json_t *obj, const char *key, const char *where, int64_t *out, Error *err)
{
    json_t *v = need(obj, key, where, "an integer", 1u << JSON_INTEGER, err);
    if (!v) return -1;
    *out = json_integer_value(v);
    return 0;
}

int json_need_number(const json_t *obj, const char *key, const char *where, double *out, Error *err)
{
    json_t *v = need(obj, key, where, "a number", 1u << JSON_INTEGER | 1u << JSON_REAL, err);
    if (!v) return -1;
    *out = json_number_value(v);
    return 0;
}
