/* The named things of a task.json: axes, inputs and outputs, each with its fields. */
#include "tasks/task_fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/words.h"

static int is_taken(const Task *t, const char *name)
{
    for (int i = 0; i < t->n_axes; i++)
        if (!strcmp(t->axis_name[i], name)) return 1;
    for (int i = 0; i < t->n_inputs; i++)
        if (!strcmp(t->inputs[i].name, name)) return 1;
    for (int i = 0; i < t->n_outputs; i++)
        if (!strcmp(t->outputs[i].name, name)) return 1;
    return 0;
}

static int add_name(const Task *t, char *dst, size_t size, const char *name, const char *where,
                    Error *err)
{
    if (!word_is_name(name, size))
        return error_set(err, ERROR_LIMIT,
                         "%s: \"%s\" is not a name (letters, digits, _; at most %zu)", where, name,
                         size - 1);
    if (is_taken(t, name))
        return error_set(err, ERROR_CORRUPT, "%s: the name \"%s\" is used twice", where, name);
    snprintf(dst, size, "%s", name);
    return 0;
}

int task_known_fields(const json_t *obj, const char *const *known, const char *where, Error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)obj, key, value)
    {
        int ok = 0;
        for (int i = 0; known[i]; i++) ok |= !strcmp(key, known[i]);
        if (!ok) return error_set(err, ERROR_CORRUPT, "%s: unknown field \"%s\"", where, key);
    }
    return 0;
}

int task_choose(const char *text, const char *const *names, int n, const char *what,
                const char *where, Error *err)
{
    Buffer list;
    for (int i = 0; i < n; i++)
        if (!strcmp(text, names[i])) return i;
    buffer_init(&list, 256);
    for (int i = 0; i < n; i++) buffer_printf(&list, "%s%s", i ? ", " : "", names[i]);
    error_set(err, ERROR_CORRUPT, "%s: the field \"%s\" is expected to be one of %s; found \"%s\"",
              where, what, list.data, text);
    buffer_release(&list);
    return -1;
}

static int read_own(Task *t, const json_t *axis, const char *where, Error *err)
{
    int64_t *own = &t->own_size[t->n_axes];
    if (!json_object_get(axis, "own")) return 0;
    if (json_need_int(axis, "own", where, own, err)) return -1;
    return *own > 0 ? 0 : error_set(err, ERROR_CORRUPT, "%s: own: a size expected", where);
}

int task_read_axes(Task *t, const json_t *root, const char *file, Error *err)
{
    json_t *axes = json_need_object(root, "axes", file, err), *axis;
    const char *name;
    if (!axes) return -1;
    size_t n = json_object_size(axes);
    int least = !json_object_get(root, "graph");
    if (n < (size_t)least || n > TASK_MAX_AXES)
        return error_set(err, ERROR_CORRUPT, "%s: %d to %d axes expected, found %zu", file, least,
                         TASK_MAX_AXES, n);
    json_object_foreach(axes, name, axis)
    {
        char where[4200];
        snprintf(where, sizeof where, "%s, axes.%s", file, name);
        if (!json_is_object(axis))
            return error_set(err, ERROR_CORRUPT,
                             "%s: an object {\"description\": \"...\"} expected", where);
        if (!json_need_text(axis, "description", where, err)) return -1;
        if (add_name(t, t->axis_name[t->n_axes], sizeof t->axis_name[0], name, where, err) ||
            read_own(t, axis, where, err))
            return -1;
        t->n_axes++;
    }
    return 0;
}

int task_read_constraints(Task *t, const json_t *root, const char *file, Error *err)
{
    json_t *list = json_object_get(root, "constraints");
    if (!list) return 0;
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > TASK_MAX_CONSTRAINTS)
        return error_set(err, ERROR_CORRUPT,
                         "%s: constraints: an array of at most %d texts expected", file,
                         TASK_MAX_CONSTRAINTS);
    t->constraints = memory_array(n + 1, sizeof *t->constraints);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text)
            return error_set(err, ERROR_CORRUPT, "%s: constraints[%zu]: a text expected", file, i);
        t->constraints[t->n_constraints++] = memory_strdup(text);
    }
    return 0;
}

static int read_shape(TaskTensor *x, const json_t *obj, const char *where, Error *err)
{
    json_t *shape = json_need_array(obj, "shape", where, err);
    if (!shape) return -1;
    size_t rank = json_array_size(shape);
    if (rank > TASK_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "%s: shape of at most %d axes expected, found %zu",
                         where, TASK_MAX_RANK, rank);
    for (; x->rank < (int)rank; x->rank++) {
        json_t *e = json_array_get(shape, (size_t)x->rank);
        if (json_is_string(e))
            x->shape[x->rank] = memory_strdup(json_string_value(e));
        else if (json_is_integer(e))
            x->shape[x->rank] = memory_printf("%lld", (long long)json_integer_value(e));
        else
            return error_set(
                err, ERROR_CORRUPT,
                "%s: shape[%d] is expected to be an expression over the axes or an integer", where,
                x->rank);
    }
    return 0;
}

static int read_optional_number(const json_t *obj, const char *key, const char *where, double *out,
                                Error *err)
{
    if (!json_object_get(obj, key)) return 0;
    if (json_need_number(obj, key, where, out, err)) return -1;
    return fabs(*out) <= 1e6 ? 0
                             : error_set(err, ERROR_CORRUPT,
                                         "%s: %s is expected in +-1e6, found %g", where, key, *out);
}

/* true, or the parameter's name in the module's state_dict. */
static int read_parameter(TaskTensor *x, const json_t *obj, const char *where, Error *err)
{
    const json_t *value = json_object_get(obj, "parameter");
    int is = json_is_true(value) || json_string_length(value) > 0;
    x->parameter = is || json_is_true(json_object_get(obj, "fixed"));
    x->unused = json_is_true(json_object_get(obj, "unused"));
    return is || !value || json_is_false(value)
               ? 0
               : error_set(err, ERROR_CORRUPT,
                           "%s: parameter is true, false or a name in the module's state_dict",
                           where);
}

/* Reads "mean", "std", "low" and "high". */
static int read_statistics(TaskTensor *x, const json_t *obj, const char *where, Error *err)
{
    int has_mean = json_object_get(obj, "mean") || json_object_get(obj, "std"),
        has_low = json_object_get(obj, "low") || json_object_get(obj, "high");
    x->std = x->high = 1;
    x->low = -1;
    if (read_parameter(x, obj, where, err)) return -1;
    if (has_mean && x->draw != DRAW_NORMAL && x->draw != DRAW_MIXED)
        return error_set(err, ERROR_CORRUPT, "%s: mean and std go with normal or mixed draws",
                         where);
    if (has_low && x->draw != DRAW_UNIFORM)
        return error_set(err, ERROR_CORRUPT, "%s: low and high go with uniform or integer draws",
                         where);
    if (read_optional_number(obj, "mean", where, &x->mean, err) ||
        read_optional_number(obj, "std", where, &x->std, err) ||
        read_optional_number(obj, "low", where, &x->low, err) ||
        read_optional_number(obj, "high", where, &x->high, err))
        return -1;
    if (x->std < 0 || x->low > x->high)
        return error_set(err, ERROR_CORRUPT, "%s: std >= 0 and low <= high expected", where);
    return 0;
}

static int read_distinct(TaskTensor *x, const json_t *obj, const char *where, Error *err)
{
    int64_t dim;
    if (!json_object_get(obj, "distinct")) return 0;
    if (json_need_int(obj, "distinct", where, &dim, err)) return -1;
    if (dim < 0 || dim >= x->rank)
        return error_set(err, ERROR_CORRUPT,
                         "%s: distinct is expected to be a dimension, found %lld", where,
                         (long long)dim);
    x->distinct = (int)dim;
    return 0;
}

static int read_draw(TaskTensor *x, const json_t *obj, const char *where, Error *err)
{
    static const char *const draws[] = {"normal", "uniform", "positive", "integer", "mixed"};
    const char *text = json_need_text(obj, "draw", where, err);
    int draw = text ? task_choose(text, draws, 5, "draw", where, err) : -1;
    if (draw < 0) return -1;
    x->draw = (Draw)draw;
    x->distinct = -1;
    if (x->draw != DRAW_INTEGER) return read_statistics(x, obj, where, err);
    const json_t *highest = json_object_get(obj, "high");
    if (json_need_int(obj, "low", where, &x->draw_low, err)) return -1;
    if (json_is_string(highest))
        x->draw_highest = memory_strdup(json_string_value(highest));
    else if (json_need_int(obj, "high", where, &x->draw_high, err))
        return -1;
    return read_distinct(x, obj, where, err) || read_parameter(x, obj, where, err) ? -1 : 0;
}

int task_read_tensors(Task *t, const json_t *root, int inputs, const char *file, Error *err)
{
    const char *key = inputs ? "inputs" : "outputs";
    TaskTensor **list = inputs ? &t->inputs : &t->outputs;
    int *n = inputs ? &t->n_inputs : &t->n_outputs;
    static const char *const in_fields[] = {"dtype",    "shape",       "draw",      "low",  "high",
                                            "std",      "description", "parameter", "mean", "fixed",
                                            "distinct", "format",      "unused",    NULL};
    static const char *const out_fields[] = {"dtype", "shape", "description", NULL};
    json_t *tensors = json_need_object(root, key, file, err), *obj;
    const char *name;
    if (!tensors) return -1;
    size_t count = json_object_size(tensors);
    if (count < 1 || count > TASK_MAX_TENSORS)
        return error_set(err, ERROR_CORRUPT, "%s: 1 to %d %s expected, found %zu", file,
                         TASK_MAX_TENSORS, key, count);
    *list = memory_array(count, sizeof **list);
    json_object_foreach(tensors, name, obj)
    {
        char where[4200];
        snprintf(where, sizeof where, "%s, %s.%s", file, key, name);
        TaskTensor *x = &(*list)[*n];
        if (!json_is_object(obj))
            return error_set(err, ERROR_CORRUPT, "%s: an object with dtype and shape expected",
                             where);
        if (task_known_fields(obj, inputs ? in_fields : out_fields, where, err)) return -1;
        if (add_name(t, x->name, sizeof x->name, name, where, err)) return -1;
        ++*n;
        const char *text = json_need_text(obj, "dtype", where, err);
        int dtype =
            text ? task_choose(text, dtype_names, inputs ? DTYPES_OF_INPUTS : DTYPES_OF_OUTPUTS,
                               "dtype", where, err)
                 : -1;
        if (dtype < 0) return -1;
        x->dtype = (Dtype)dtype;
        if (read_shape(x, obj, where, err)) return -1;
        if (inputs && read_draw(x, obj, where, err)) return -1;
        if (inputs && x->dtype > DTYPE_I32 && !dtype_is_float(x->dtype) && x->draw != DRAW_INTEGER)
            return error_set(err, ERROR_CORRUPT, "%s: an integer draw expected", where);
    }
    return 0;
}
