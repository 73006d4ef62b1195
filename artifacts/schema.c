/* The table of kinds and fields. */
#include "artifacts/schema.h"

#include <stdio.h>
#include <string.h>

/* fields: the name and the type of each; a type with "?" is of a field that may be missing. */
typedef struct {
    const char *kind;
    int version; /* changes when a field is removed, changes its meaning, or must be there */
    const char *fields;
} Schema;

static const Schema schemas[] = {
    /* producer: generator, openai:MODEL, native, dir:PATH. group: the prompt's. finish: stop, length, error.
     * text: the answer. source: the candidate, "" if the answer holds none. logprobs: as sampled, native
     * only. turn: from 2 on, an answer to a verdict. parent: the sample that was judged. */
    {"samples", 1,
     "id t task t split t stage t producer t group t trial i seed i finish t text t source t "
     "prompt t "
     "prompt_ids I? ids I? logprobs F? usage m? turn i? parent t?"},
    /* id: the sample's. The others are those of docs/verdict.md. */
    {"verdicts", 2,
     "id t task t key t device t outcome t message t line i score f speedup f low f high f time_us "
     "f "
     "baseline_us f predicted B source_digest t task_digest t harness t compiler t registers i? "
     "counters m? checks T? cheat t? detail m? confirmed t? other m?"},
    /* kind: plain, contrastive, drill, correction. */
    {"dataset", 1, "id t task t kind t prompt t answer t score f"},
    /* exemplars: of {id t, score f}. group: of its answers; else its id. */
    {"prompts", 1,
     "id t task t split t kind t text t exemplars L? copies i? group t? turn i? parent t?"},
    /* parents: digests of the sources that its prompt showed, "baseline". */
    {"pool", 1,
     "id t task t source t source_digest t score f speedup f stage t round i counters m? parents "
     "T?"},
    {"results", 1,
     "task t split t level i degenerate B device t predicted B score f outcome t source t "
     "baseline_source t time_us f baseline_us f counters m? baseline_counters m?"},
    /* cheat: its name. */
    {"hacks", 1, "id t task t source t source_digest t cheat t message t"},
    /* similar: of {id t, cheat t, similarity f}. judge: "" none. word: cheat, honest, "" none. said: the
     * judge's answer. recheck: an outcome, "" none. */
    {"reviews", 1, "id t task t score f similar L? judge t word t said t recheck t withheld B"},
    {"metrics", 1, "step i name t value f"},
    {"manifest", 1, "name t digest t bytes i"},
};

typedef struct {
    const char *name;
    size_t n;
    char type;
    int optional;
} SchemaField;

/* Takes the next field of the text at *p and moves *p behind it. Returns 0 at the end. */
static int next_field(const char **p, SchemaField *f)
{
    f->name = *p + strspn(*p, " ");
    f->n = strcspn(f->name, " ");
    if (!f->n) return 0;
    f->type = f->name[f->n + 1];
    f->optional = f->name[f->n + 2] == '?';
    *p = f->name + f->n + 2 + f->optional;
    return 1;
}

static const Schema *find_schema(const char *kind)
{
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        if (!strcmp(schemas[i].kind, kind)) return &schemas[i];
    return NULL;
}

int schema_version(const char *kind)
{
    const Schema *s = find_schema(kind);
    return s ? s->version : 0;
}

const char *schema_fields(const char *kind)
{
    const Schema *s = find_schema(kind);
    return s ? s->fields : NULL;
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
    const char *fields = schema_fields(kind);
    if (!fields)
        return error_set(err, ERROR_CORRUPT, "%s: '%s' is no kind of artifact", v->where, kind);
    for (uint32_t i = 0; i < v->map->via.map.size; i++) {
        const msgpack_object_kv *kv = &v->map->via.map.ptr[i];
        const msgpack_object_str *name = &kv->key.via.str;
        SchemaField f;
        int known = 0;
        for (const char *p = fields; !known && next_field(&p, &f);)
            known = f.n == name->size && !memcmp(f.name, name->ptr, f.n);
        if (!known)
            return error_set(err, ERROR_CORRUPT, "%s, field %.*s: the kind '%s' has no such field",
                             v->where, name->size > 64 ? 64 : (int)name->size, name->ptr, kind);
        if (!has_type(&kv->val, f.type))
            return error_set(err, ERROR_CORRUPT, "%s, field %.*s: expected %s, found another type",
                             v->where, (int)f.n, f.name, type_name(f.type));
    }
    SchemaField f;
    for (const char *p = fields; next_field(&p, &f);) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)f.n, f.name);
        if (!f.optional && !view_has(v, name))
            return error_set(err, ERROR_CORRUPT, "%s, field %s: expected %s, found no such field",
                             v->where, name, type_name(f.type));
    }
    return 0;
}
