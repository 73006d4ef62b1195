/* The table of kinds and fields. */
#include "artifacts/schema.h"

#include <string.h>

typedef struct {
    const char *name;
    char type;     /* as in schema.h */
    char optional; /* '?' or 0 */
} SchemaField;

enum { MAX_FIELDS = 26 };

typedef struct {
    const char *kind;
    int version; /* changes when a field is removed, changes its meaning, or must be there */
    SchemaField fields[MAX_FIELDS];
} Schema;

static const Schema schemas[] = {
    {"samples",
     1,
     {{"id", 't', 0},
      {"task", 't', 0},
      {"split", 't', 0},
      {"stage", 't', 0},
      {"producer", 't', 0},
      {"group", 't', 0},
      {"trial", 'i', 0},
      {"seed", 'i', 0},
      {"finish", 't', 0},
      {"text", 't', 0},
      {"source", 't', 0},
      {"prompt", 't', 0},
      {"prompt_ids", 'I', '?'},
      {"ids", 'I', '?'},
      {"logprobs", 'F', '?'},
      {"usage", 'm', '?'},
      {"turn", 'i', '?'},
      {"parent", 't', '?'}}},
    {"verdicts", 2, {{"id", 't', 0},          {"task", 't', 0},       {"key", 't', 0},
                     {"device", 't', 0},      {"outcome", 't', 0},    {"message", 't', 0},
                     {"line", 'i', 0},        {"score", 'f', 0},      {"speedup", 'f', 0},
                     {"low", 'f', 0},         {"high", 'f', 0},       {"time_us", 'f', 0},
                     {"baseline_us", 'f', 0}, {"predicted", 'B', 0},  {"source_digest", 't', 0},
                     {"task_digest", 't', 0}, {"harness", 't', 0},    {"compiler", 't', 0},
                     {"registers", 'i', '?'}, {"counters", 'm', '?'}, {"checks", 'T', '?'},
                     {"cheat", 't', '?'},     {"detail", 'm', '?'},   {"confirmed", 't', '?'},
                     {"other", 'm', '?'}}},
    {"dataset",
     1,
     {{"id", 't', 0},
      {"task", 't', 0},
      {"kind", 't', 0},
      {"prompt", 't', 0},
      {"answer", 't', 0},
      {"score", 'f', 0}}},
    {"prompts",
     1,
     {{"id", 't', 0},
      {"task", 't', 0},
      {"split", 't', 0},
      {"kind", 't', 0},
      {"text", 't', 0},
      {"exemplars", 'L', '?'},
      {"copies", 'i', '?'},
      {"group", 't', '?'},
      {"turn", 'i', '?'},
      {"parent", 't', '?'}}},
    {"pool",
     1,
     {{"id", 't', 0},
      {"task", 't', 0},
      {"source", 't', 0},
      {"source_digest", 't', 0},
      {"score", 'f', 0},
      {"speedup", 'f', 0},
      {"stage", 't', 0},
      {"round", 'i', 0},
      {"counters", 'm', '?'},
      {"parents", 'T', '?'}}},
    {"results",
     1,
     {{"task", 't', 0},
      {"split", 't', 0},
      {"level", 'i', 0},
      {"degenerate", 'B', 0},
      {"device", 't', 0},
      {"predicted", 'B', 0},
      {"score", 'f', 0},
      {"outcome", 't', 0},
      {"source", 't', 0},
      {"baseline_source", 't', 0},
      {"time_us", 'f', 0},
      {"baseline_us", 'f', 0},
      {"counters", 'm', '?'},
      {"baseline_counters", 'm', '?'}}},
    {"hacks",
     1,
     {{"id", 't', 0},
      {"task", 't', 0},
      {"source", 't', 0},
      {"source_digest", 't', 0},
      {"cheat", 't', 0},
      {"message", 't', 0}}},
    {"reviews",
     1,
     {{"id", 't', 0},
      {"task", 't', 0},
      {"score", 'f', 0},
      {"similar", 'L', '?'},
      {"judge", 't', 0},
      {"word", 't', 0},
      {"said", 't', 0},
      {"recheck", 't', 0},
      {"withheld", 'B', 0}}},
    {"metrics", 1, {{"step", 'i', 0}, {"name", 't', 0}, {"value", 'f', 0}}},
    {"manifest", 1, {{"name", 't', 0}, {"digest", 't', 0}, {"bytes", 'i', 0}}},
};

static const Schema *find_schema(const char *kind)
{
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        if (!strcmp(schemas[i].kind, kind)) return &schemas[i];
    return NULL;
}

int schema_known(const char *kind)
{
    return find_schema(kind) != NULL;
}

int schema_version(const char *kind)
{
    const Schema *s = find_schema(kind);
    return s ? s->version : 0;
}

const char *schema_field(const char *kind, int i, char *type, int *optional)
{
    const Schema *s = find_schema(kind);
    if (!s || i < 0 || i >= MAX_FIELDS || !s->fields[i].name) return NULL;
    *type = s->fields[i].type;
    *optional = s->fields[i].optional != 0;
    return s->fields[i].name;
}

static int is_int(const msgpack_object *o)
{
    return o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ||
           (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= INT64_MAX);
}

static int has_type(const msgpack_object *o, char type)
{
    switch (type) {
    case 't': return o->type == MSGPACK_OBJECT_STR;
    case 'b': return o->type == MSGPACK_OBJECT_BIN;
    case 'i': return is_int(o);
    case 'f': return o->type == MSGPACK_OBJECT_FLOAT64;
    case 'B': return o->type == MSGPACK_OBJECT_BOOLEAN;
    case 'm': return o->type == MSGPACK_OBJECT_MAP;
    }
    char element = type == 'I' ? 'i' : type == 'F' ? 'f' : type == 'T' ? 't' : 'm';
    if (o->type != MSGPACK_OBJECT_ARRAY) return 0;
    for (uint32_t i = 0; i < o->via.array.size; i++)
        if (!has_type(&o->via.array.ptr[i], element)) return 0;
    return 1;
}

static const char *type_name(char type)
{
    switch (type) {
    case 't': return "a text";
    case 'b': return "bytes";
    case 'i': return "an integer";
    case 'f': return "a 64-bit float";
    case 'B': return "a bool";
    case 'I': return "a list of integers";
    case 'F': return "a list of 64-bit floats";
    case 'T': return "a list of texts";
    case 'm': return "a map";
    default: return "a list of maps";
    }
}

int schema_check(const char *kind, const View *v, Error *err)
{
    const Schema *s = find_schema(kind);
    if (!s) return error_set(err, ERROR_CORRUPT, "%s: '%s' is no kind of artifact", v->where, kind);
    for (uint32_t i = 0; i < v->map->via.map.size; i++) {
        const msgpack_object_kv *kv = &v->map->via.map.ptr[i];
        const char *name = kv->key.via.str.ptr;
        int n = kv->key.via.str.size > 64 ? 64 : (int)kv->key.via.str.size;
        const SchemaField *f = s->fields;
        while (f < s->fields + MAX_FIELDS && f->name &&
               !(strlen(f->name) == kv->key.via.str.size &&
                 !memcmp(f->name, name, kv->key.via.str.size)))
            f++;
        if (f == s->fields + MAX_FIELDS || !f->name)
            return error_set(err, ERROR_CORRUPT, "%s, field %.*s: the kind '%s' has no such field",
                             v->where, n, name, kind);
        if (!has_type(&kv->val, f->type))
            return error_set(err, ERROR_CORRUPT, "%s, field %s: expected %s, found another type",
                             v->where, f->name, type_name(f->type));
    }
    for (const SchemaField *f = s->fields; f < s->fields + MAX_FIELDS && f->name; f++)
        if (!f->optional && !view_has(v, f->name))
            return error_set(err, ERROR_CORRUPT, "%s, field %s: expected %s, found no such field",
                             v->where, f->name, type_name(f->type));
    return 0;
}
