/* Records are built field by field and encoded with sorted keys. */
#include "artifacts/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A value is kept as its msgpack bytes. Nested maps stay open until the record is encoded. */
typedef enum { FIELD_VALUE, FIELD_MAP, FIELD_LIST } FieldKind;

typedef struct {
    char *key;
    FieldKind kind;
    char *bytes;
    size_t len;
    Record **children; /* one for a map */
    size_t n_children;
} Field;

struct Record {
    Field *fields;
    size_t n, cap;
    const char *too_long; /* key of a value beyond msgpack's 32-bit lengths; NULL: none */
};

enum { MAX_RECORD_VALUE = 1 << 30 };

Record *record_new(void)
{
    return memory_alloc(sizeof(Record));
}

void record_free(Record *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n; i++) {
        Field *f = &r->fields[i];
        for (size_t k = 0; k < f->n_children; k++) record_free(f->children[k]);
        free(f->children);
        free(f->bytes);
        free(f->key);
    }
    free(r->fields);
    free(r);
}

static Field *find_field(const Record *r, const char *key)
{
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->fields[i].key, key)) return &r->fields[i];
    return NULL;
}

static Field *add_field(Record *r, const char *key, FieldKind kind)
{
    memory_room(r->fields, r->n, r->cap, 16);
    Field *f = &r->fields[r->n++];
    *f = (Field){.key = memory_strdup(key), .kind = kind};
    return f;
}

static int append_packed(void *buffer, const char *data, size_t len)
{
    return buffer_append(buffer, data, len);
}

/* A value that is being packed. */
typedef struct {
    Buffer b;
    msgpack_packer pk;
} Value;

static msgpack_packer *begin(Value *v)
{
    buffer_init(&v->b, MAX_RECORD_VALUE);
    msgpack_packer_init(&v->pk, &v->b, append_packed);
    return &v->pk;
}

static void take_value(Record *r, const char *key, Value *v)
{
    Field *f = add_field(r, key, FIELD_VALUE);
    if (v->b.full) r->too_long = f->key;
    f->len = v->b.len;
    f->bytes = buffer_detach(&v->b);
    buffer_release(&v->b);
}

void record_textn(Record *r, const char *key, const char *s, size_t n)
{
    Value v;
    msgpack_pack_str(begin(&v), n);
    buffer_append(&v.b, s, n);
    take_value(r, key, &v);
}

void record_text(Record *r, const char *key, const char *s)
{
    record_textn(r, key, s, strlen(s));
}

void record_bytes(Record *r, const char *key, const void *data, size_t n)
{
    Value v;
    msgpack_pack_bin(begin(&v), n);
    buffer_append(&v.b, data, n);
    take_value(r, key, &v);
}

void record_int(Record *r, const char *key, int64_t x)
{
    Value v;
    msgpack_pack_int64(begin(&v), x);
    take_value(r, key, &v);
}

void record_float(Record *r, const char *key, double x)
{
    Value v;
    msgpack_pack_double(begin(&v), x);
    take_value(r, key, &v);
}

void record_bool(Record *r, const char *key, int x)
{
    Value v;
    (x ? msgpack_pack_true : msgpack_pack_false)(begin(&v));
    take_value(r, key, &v);
}

void record_ints(Record *r, const char *key, const int64_t *x, size_t n)
{
    Value v;
    msgpack_pack_array(begin(&v), n);
    for (size_t i = 0; i < n; i++) msgpack_pack_int64(&v.pk, x[i]);
    take_value(r, key, &v);
}

void record_floats(Record *r, const char *key, const double *x, size_t n)
{
    Value v;
    msgpack_pack_array(begin(&v), n);
    for (size_t i = 0; i < n; i++) msgpack_pack_double(&v.pk, x[i]);
    take_value(r, key, &v);
}

void record_texts(Record *r, const char *key, const char *const *x, size_t n)
{
    Value v;
    msgpack_pack_array(begin(&v), n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(x[i]);
        msgpack_pack_str(&v.pk, len);
        buffer_append(&v.b, x[i], len);
    }
    take_value(r, key, &v);
}

static Record *add_child(Field *f)
{
    f->children = memory_grow(f->children, f->n_children + 1, sizeof *f->children);
    return f->children[f->n_children++] = record_new();
}

Record *record_map(Record *r, const char *key)
{
    return add_child(add_field(r, key, FIELD_MAP));
}

Record *record_item(Record *r, const char *key)
{
    Field *f = find_field(r, key);
    assert(!f || f->kind == FIELD_LIST);
    return add_child(f ? f : add_field(r, key, FIELD_LIST));
}

void record_copy(Record *r, const View *v)
{
    for (uint32_t i = 0; i < v->map->via.map.size; i++) {
        const msgpack_object_kv *kv = &v->map->via.map.ptr[i];
        char *key = memory_strndup(kv->key.via.str.ptr, kv->key.via.str.size);
        if (!find_field(r, key)) {
            Value value;
            msgpack_pack_object(begin(&value), kv->val);
            take_value(r, key, &value);
        }
        free(key);
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(Field *const *)a)->key, (*(Field *const *)b)->key);
}

static int encode(const Record *r, Buffer *out, int depth, Error *err)
{
    if (r->too_long)
        return error_set(err, ERROR_LIMIT, "field %s: the value has more than %d bytes",
                         r->too_long, MAX_RECORD_VALUE);
    assert(depth <= 8);
    const Field **order = memory_array(r->n, sizeof *order);
    for (size_t i = 0; i < r->n; i++) order[i] = &r->fields[i];
    qsort(order, r->n, sizeof *order, by_key);
    msgpack_packer pk;
    msgpack_packer_init(&pk, out, append_packed);
    msgpack_pack_map(&pk, r->n);
    int rc = 0;
    for (size_t i = 0; i < r->n && !rc; i++) {
        const Field *f = order[i];
        assert(i == 0 || strcmp(order[i - 1]->key, f->key));
        size_t len = strlen(f->key);
        msgpack_pack_str(&pk, len);
        buffer_append(out, f->key, len);
        if (f->kind == FIELD_VALUE) buffer_append(out, f->bytes, f->len);
        if (f->kind == FIELD_LIST) msgpack_pack_array(&pk, f->n_children);
        for (size_t k = 0; k < f->n_children && !rc; k++)
            if (encode(f->children[k], out, depth + 1, err))
                rc = error_prefix(err, "field %s", f->key);
    }
    free(order);
    return rc;
}

int record_encode(const Record *r, Buffer *out, Error *err)
{
    size_t start = out->len;
    int rc = encode(r, out, 1, err);
    if (!rc && out->full)
        rc = error_set(err, ERROR_LIMIT, "a record does not fit a buffer of at most %zu bytes",
                       out->max);
    if (rc) {
        out->len = start;
        out->full = 0;
        out->data[start] = 0;
    }
    return rc;
}
