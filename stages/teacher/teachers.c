/* Every text is copied, since the JSON is freed after it is read. */
#include "stages/teacher/teacher.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

enum { MAX_FILE = 1 << 20 };

/* Keeps the text as long as the teachers. */
static const char *keep(Teachers *t, char *text)
{
    t->texts = memory_grow(t->texts, (size_t)t->n_texts + 1, sizeof *t->texts);
    return t->texts[t->n_texts++] = text;
}

static int add(Teachers *t, const Teacher *one, Error *err)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->items[i].name, one->name))
            return error_set(err, ERROR_USAGE,
                             "the teacher '%s' is there twice: give one a \"name\"", one->name);
    if (t->n == TEACHERS_MAX)
        return error_set(err, ERROR_USAGE, "at most %d teachers", TEACHERS_MAX);
    t->items[t->n++] = *one;
    return 0;
}

static int add_name(Teachers *t, const char *name, size_t n, const Teacher *common, Error *err)
{
    Teacher one = *common;
    one.name = keep(t, memory_strndup(name, n));
    return -(teacher_check(one.name, err) || add(t, &one, err));
}

/* ---- an entry of a file ---- */

typedef struct {
    Teachers *t;
    const json_t *v;
    const char *where;
} Entry;

/* A whole number from 1 to max, where the field is there. */
static int read_count(const Entry *e, const char *key, int max, int *out, Error *err)
{
    int64_t n;
    if (!json_object_get(e->v, key)) return 0;
    if (json_need_int(e->v, key, e->where, &n, err)) return -1;
    if (n < 1 || n > max)
        return error_set(err, ERROR_USAGE, "%s: \"%s\": expected 1 to %d, found %lld", e->where,
                         key, max, (long long)n);
    *out = (int)n;
    return 0;
}

static int read_text(const Entry *e, const char *key, const char **out, Error *err)
{
    if (!json_object_get(e->v, key)) return 0;
    const char *text = json_need_text(e->v, key, e->where, err);
    if (!text) return -1;
    if (!*text) return error_set(err, ERROR_USAGE, "%s: \"%s\" is empty", e->where, key);
    *out = keep(e->t, memory_strdup(text));
    return 0;
}

static int read_price(const json_t *v, const char *where, BudgetPrice *out, Error *err)
{
    if (!json_object_get(v, "price")) return 0;
    const json_t *p = json_need_object(v, "price", where, err);
    if (!p || json_need_number(p, "input", where, &out->input, err) ||
        json_need_number(p, "output", where, &out->output, err))
        return -1;
    return out->input >= 0 && out->output >= 0
               ? 0
               : error_set(err, ERROR_USAGE, "%s: \"price\": expected numbers from 0 on", where);
}

static int check_fields(const json_t *v, const char *where, Error *err)
{
    static const char *const known[] = {"api",    "model", "name",   "url",         "key",
                                        "trials", "keep",  "tokens", "concurrency", "price"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)v, key, value)
    {
        int found = 0;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= !strcmp(known[i], key);
        if (!found)
            return error_set(err, ERROR_USAGE, "%s: there is no field \"%.60s\"", where, key);
    }
    return 0;
}

static int add_entry(Teachers *t, const json_t *v, const char *where, const Teacher *common,
                     Error *err)
{
    Teacher one = *common;
    const Entry e = {t, v, where};
    const char *api = NULL, *model = NULL;
    one.name = NULL;
    if (json_is_string(v))
        return add_name(t, json_string_value(v), json_string_length(v), common, err);
    if (!json_is_object(v))
        return error_set(err, ERROR_USAGE, "%s: expected a name or an object", where);
    if (check_fields(v, where, err) || read_text(&e, "api", &api, err) ||
        read_text(&e, "model", &model, err) || read_text(&e, "name", &one.name, err) ||
        read_text(&e, "url", &one.url, err) || read_text(&e, "key", &one.key_env, err) ||
        read_count(&e, "trials", 100000, &one.trials, err) ||
        read_count(&e, "keep", 100000, &one.keep, err) ||
        read_count(&e, "tokens", 131072, &one.max_tokens, err) ||
        read_count(&e, "concurrency", 1024, &one.concurrency, err) ||
        read_price(v, where, &one.price, err))
        return -1;
    if (!model || !api || (strcmp(api, "openai") && strcmp(api, "anthropic")))
        return error_set(err, ERROR_USAGE,
                         "%s: expected \"api\" (openai or anthropic) and \"model\"", where);
    one.endpoint = keep(t, memory_printf("%s:%s", api, model));
    if (!one.name) one.name = one.endpoint;
    if (strpbrk(one.name, "/ \t\n"))
        return error_set(err, ERROR_USAGE,
                         "%s: the name '%.80s' has a blank or a slash: give it a "
                         "\"name\" without",
                         where, one.name);
    return add(t, &one, err);
}

static int add_file(Teachers *t, const char *path, const Teacher *common, Error *err)
{
    json_t *file = json_read_file(path, MAX_FILE, err), *list, *v;
    size_t i;
    int rc = file ? 0 : -1;
    list = rc ? NULL : json_need_array(file, "teachers", path, err);
    if (!list) rc = -1;
    if (!rc && !json_array_size(list)) rc = error_set(err, ERROR_USAGE, "%s: no teacher", path);
    json_array_foreach(list, i, v)
    {
        char *where = memory_printf("%s, teachers[%zu]", path, i);
        if (!rc) rc = add_entry(t, v, where, common, err);
        free(where);
    }
    json_decref(file);
    return rc;
}

int teachers_read(const char *list, const Teacher *common, Teachers *out, Error *err)
{
    memset(out, 0, sizeof *out);
    int rc = 0;
    for (const char *p = list; !rc && *p;) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ", ");
        if (n > 5 && !strncmp(p, "file:", 5)) {
            char *path = memory_strndup(p + 5, n - 5);
            rc = add_file(out, path, common, err);
            free(path);
        } else if (n) {
            rc = add_name(out, p, n, common, err);
        }
        p += n;
    }
    if (!rc && !out->n) rc = error_set(err, ERROR_USAGE, "--teachers expects at least one");
    return rc;
}

void teachers_release(Teachers *t)
{
    for (int i = 0; i < t->n_texts; i++) free(t->texts[i]);
    free(t->texts);
    memset(t, 0, sizeof *t);
}
