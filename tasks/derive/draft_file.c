/* Reads a draft from JSON. What the numbers and expressions mean is checked by derive_task. */
#include "tasks/derive/draft_file.h"

#include <stdlib.h>

#include "base/memory.h"
#include "tasks/derive/shapes.h"
#include "tasks/task_fields.h"

enum { MAX_FILE = 1 << 22 };

static int optional_int(const json_t *o, const char *key, const char *where, int64_t *out,
                        Error *err)
{
    return json_object_get(o, key) ? json_need_int(o, key, where, out, err) : 0;
}

static int optional_number(const json_t *o, const char *key, const char *where, double *out,
                           Error *err)
{
    return json_object_get(o, key) ? json_need_number(o, key, where, out, err) : 0;
}

static int optional_text(const json_t *o, const char *key, const char *where, const char **out,
                         Error *err)
{
    if (!json_object_get(o, key)) return 0;
    *out = json_need_text(o, key, where, err);
    return *out ? 0 : -1;
}

static int read_axes(DraftFile *f, Error *err)
{
    const char *file = f->path;
    static const char *const fields[] = {"description", "size", "low", "high", NULL};
    json_t *axes = json_need_object(f->root, "axes", file, err), *o;
    const char *name;
    if (!axes) return -1;
    f->axes = memory_array(json_object_size(axes) + 1, sizeof *f->axes);
    json_object_foreach(axes, name, o)
    {
        DraftAxis *a = &f->axes[f->draft.n_axes++];
        a->name = name;
        if (!json_is_object(o) || task_known_fields(o, fields, name, err) ||
            json_need_int(o, "size", name, &a->size, err) ||
            optional_int(o, "low", name, &a->low, err) ||
            optional_int(o, "high", name, &a->high, err) ||
            optional_text(o, "description", name, &a->description, err))
            return error_prefix(err, "%s, axes", file);
    }
    return 0;
}

static int read_shape(DraftTensor *x, const json_t *o, Error *err)
{
    json_t *shape = json_object_get(o, "shape");
    x->rank = -1;
    if (!shape) return 0;
    size_t n = json_array_size(shape);
    if (!json_is_array(shape) || n > TASK_MAX_RANK)
        return error_set(err, ERROR_CORRUPT, "%s.shape: at most %d texts expected", x->name,
                         TASK_MAX_RANK);
    for (x->rank = 0; x->rank < (int)n; x->rank++)
        if (!(x->shape[x->rank] = json_string_value(json_array_get(shape, (size_t)x->rank))))
            return error_set(err, ERROR_CORRUPT, "%s.shape[%d]: a text expected", x->name, x->rank);
    return 0;
}

static int read_draw(DraftTensor *x, const json_t *o, Error *err)
{
    static const char *const draws[] = {"normal", "uniform", "positive", "integer", "mixed"};
    const char *text = NULL;
    x->low = -1, x->high = x->std = 1;
    if (optional_text(o, "draw", x->name, &text, err)) return -1;
    if (text) {
        int draw = task_choose(text, draws, 5, "draw", x->name, err);
        if (draw < 0) return -1;
        x->draw = (Draw)draw;
        x->has_draw = 1;
    }
    x->has_statistics = json_object_get(o, "std") != NULL;
    x->has_range = json_object_get(o, "min") && json_object_get(o, "max");
    int64_t distinct = -1;
    if (optional_int(o, "distinct", x->name, &distinct, err)) return -1;
    x->distinct = (int)distinct + 1;
    x->highest = x->draw == DRAW_INTEGER ? json_string_value(json_object_get(o, "high")) : NULL;
    return optional_number(o, "low", x->name, &x->low, err) ||
                   (!x->highest && optional_number(o, "high", x->name, &x->high, err)) ||
                   optional_number(o, "mean", x->name, &x->mean, err) ||
                   optional_number(o, "std", x->name, &x->std, err) ||
                   optional_number(o, "min", x->name, &x->min, err) ||
                   optional_number(o, "max", x->name, &x->max, err) ||
                   optional_text(o, "parameter", x->name, &x->parameter, err)
               ? -1
               : 0;
}

static int read_tensors(DraftFile *f, const char *key, DraftTensor **list, int *n, Error *err)
{
    const char *file = f->path;
    static const char *const fields[] = {"dtype", "shape", "draw", "low",       "high",     "mean",
                                         "std",   "min",   "max",  "parameter", "distinct", NULL};
    json_t *tensors = json_need_object(f->root, key, file, err), *o;
    const char *name;
    if (!tensors) return -1;
    *list = memory_array(json_object_size(tensors) + 1, sizeof **list);
    json_object_foreach(tensors, name, o)
    {
        DraftTensor *x = &(*list)[(*n)++];
        const char *type = NULL;
        int dtype = DTYPES;
        x->name = name;
        if (!json_is_object(o))
            return error_set(err, ERROR_CORRUPT, "%s, %s.%s: an object expected", file, key, name);
        if (task_known_fields(o, fields, name, err) ||
            optional_text(o, "dtype", name, &type, err) ||
            (type &&
             (dtype = task_choose(type, dtype_names, DTYPES_OF_INPUTS, "dtype", name, err)) < 0) ||
            read_shape(x, o, err) || read_draw(x, o, err))
            return error_prefix(err, "%s, %s", file, key);
        x->dtype = (Dtype)dtype;
        if (list == &f->inputs && (dtype == DTYPES || x->rank < 0))
            return error_set(err, ERROR_CORRUPT, "%s, %s.%s: dtype and shape expected", file, key,
                             name);
    }
    return 0;
}

static int read_texts(DraftFile *f, int which, const char *key, int *n, Error *err)
{
    const char *file = f->path;
    json_t *list = json_object_get(f->root, key);
    if (list && !json_is_array(list))
        return error_set(err, ERROR_CORRUPT, "%s, %s: an array of texts expected", file, key);
    size_t count = json_array_size(list);
    f->texts[which] = memory_array(count + 1, sizeof **f->texts);
    for (; *n < (int)count; ++*n)
        if (!(f->texts[which][*n] = json_string_value(json_array_get(list, (size_t)*n))))
            return error_set(err, ERROR_CORRUPT, "%s, %s[%d]: a text expected", file, key, *n);
    return 0;
}

static int read_head(DraftFile *f, Error *err)
{
    const char *file = f->path;
    static const char *const fields[] = {
        "name",   "description", "op_type", "tags",        "level",  "split",  "axes",
        "inputs", "graph",       "outputs", "constraints", "budget", "shapes", NULL};
    static const char *const splits[] = {"train", "heldout"};
    Draft *d = &f->draft;
    const char *split = "train", *shapes = "";
    ErrorBudget unused;
    int64_t level = 1;
    if (!json_is_object(f->root))
        return error_set(err, ERROR_CORRUPT, "%s: an object expected", file);
    if (task_known_fields(f->root, fields, file, err) ||
        !(d->name = json_need_text(f->root, "name", file, err)) ||
        optional_text(f->root, "description", file, &d->description, err) ||
        optional_text(f->root, "op_type", file, &d->op_type, err) ||
        optional_int(f->root, "level", file, &level, err) ||
        optional_text(f->root, "split", file, &split, err) ||
        optional_text(f->root, "budget", file, &d->budget, err) ||
        optional_text(f->root, "shapes", file, &shapes, err) ||
        (d->budget && budget_named(d->budget, &unused, err)) ||
        shapes_read(shapes, &f->shapes, &d->n_shapes, err) ||
        (d->heldout = task_choose(split, splits, 2, "split", file, err)) < 0)
        return -1;
    d->shapes = f->shapes;
    d->level = level < 1 || level > 3 ? 0 : (int)level;
    return 0;
}

int draft_file_read(const char *path, DraftFile *f, Error *err)
{
    *f = (DraftFile){.path = path, .root = json_read_file(path, MAX_FILE, err)};
    Draft *d = &f->draft;
    if (!f->root || read_head(f, err) || read_axes(f, err) ||
        read_tensors(f, "inputs", &f->inputs, &d->n_inputs, err) ||
        read_tensors(f, "outputs", &f->outputs, &d->n_outputs, err) ||
        read_texts(f, 0, "tags", &d->n_tags, err) ||
        read_texts(f, 1, "constraints", &d->n_constraints, err) ||
        read_texts(f, 2, "graph", &d->n_lines, err)) {
        draft_file_release(f);
        return -1;
    }
    d->axes = f->axes, d->inputs = f->inputs, d->outputs = f->outputs;
    d->tags = f->texts[0], d->constraints = f->texts[1], d->lines = f->texts[2];
    return 0;
}

void draft_file_release(DraftFile *f)
{
    json_decref(f->root);
    free(f->axes);
    free(f->inputs);
    free(f->outputs);
    free(f->shapes);
    for (int i = 0; i < 3; i++) free(f->texts[i]);
    *f = (DraftFile){0};
}
