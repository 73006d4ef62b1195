/* Follows values that numbers of the graph bound to what reads tensors at them. */
#include "tasks/import/tables.h"

#include <string.h>

static const char *operator_of(const json_t *node)
{
    const char *target = json_string_value(json_object_get(node, "target"));
    return target && !strncmp(target, "torch.ops.aten.", 15) ? target + 15 : "";
}

/* The operator's name without its overload is one of a list that NULL ends. */
static int is_one_of(const char *op, const char *const *list)
{
    size_t len = strcspn(op, ".");
    for (; *list; list++)
        if (strlen(*list) == len && !strncmp(op, *list, len)) return 1;
    return 0;
}

static json_t *argument(const json_t *node, const char *name)
{
    json_t *inputs = json_object_get(node, "inputs"), *input;
    size_t i;
    json_array_foreach(inputs, i, input)
    {
        const char *own = json_string_value(json_object_get(input, "name"));
        if (own && !strcmp(own, name)) return json_object_get(input, "arg");
    }
    return NULL;
}

static const char *tensor_of(const json_t *argument)
{
    return json_string_value(json_object_get(json_object_get(argument, "as_tensor"), "name"));
}

/* Has a node a number above 1 among its arguments? */
static int has_number(const json_t *node)
{
    json_t *input;
    size_t i;
    json_array_foreach(json_object_get(node, "inputs"), i, input)
    {
        json_t *arg = json_object_get(input, "arg"), *n = json_object_get(arg, "as_int");
        const char *name = json_string_value(json_object_get(input, "name"));
        if (!n) n = json_object_get(arg, "as_float");
        if (json_number_value(n) > 1 && name && strcmp(name, "dtype") && strcmp(name, "layout"))
            return 1;
    }
    return 0;
}

/* Is a tensor of a set anywhere in a value? */
static int takes_any(const json_t *value, const json_t *set)
{
    json_t *e;
    const char *key;
    size_t i;
    if (json_is_string(value)) return json_object_get(set, json_string_value(value)) != NULL;
    json_array_foreach((json_t *)value, i, e)
    {
        if (takes_any(e, set)) return 1;
    }
    json_object_foreach((json_t *)value, key, e)
    {
        if (takes_any(e, set)) return 1;
    }
    return 0;
}

static void add_results(const json_t *node, json_t *set)
{
    json_t *result;
    size_t i;
    json_array_foreach(json_object_get(node, "outputs"), i, result)
    {
        const char *name = tensor_of(result);
        if (name) json_object_set_new(set, name, json_true());
    }
}

/* Pins a dimension of a tensor; a negative one counts from the end. */
static int pin_dimension(Program *p, const char *tensor, int64_t dim, Error *err)
{
    json_t *sizes = json_object_get(json_object_get(p->tensors, tensor), "sizes");
    int64_t n = (int64_t)json_array_size(sizes);
    json_t *size = json_array_get(sizes, (size_t)(dim < 0 ? dim + n : dim));
    Symbolic e;
    if (!size) return 0;
    if (program_size(p, size, &e, err)) return error_prefix(err, "%.80s", tensor);
    symbolic_pin(&e, &p->symbols);
    symbolic_release(&e);
    return 0;
}

/* x[i, None, k]: the dimensions that have an index. */
static int pin_indexed(Program *p, const json_t *node, const char *tensor, const json_t *set,
                       Error *err)
{
    json_t *list = argument(node, "indices"), *at;
    json_t *indices = json_object_get(list, "as_optional_tensors");
    size_t i;
    if (!indices) indices = json_object_get(list, "as_tensors");
    json_array_foreach(indices, i, at)
    {
        if (takes_any(at, set) && pin_dimension(p, tensor, (int64_t)i, err)) return -1;
    }
    return 0;
}

static int pin_table(Program *p, const json_t *node, const char *op, const json_t *set, Error *err)
{
    int is_embedding = !strncmp(op, "embedding.", 10);
    const char *tensor = tensor_of(argument(node, is_embedding ? "weight" : "self"));
    if (!tensor) return 0;
    if (!strncmp(op, "index.", 6)) return pin_indexed(p, node, tensor, set, err);
    if (!takes_any(argument(node, is_embedding ? "indices" : "index"), set)) return 0;
    json_t *dim = json_object_get(argument(node, "dim"), "as_int");
    return pin_dimension(p, tensor, json_integer_value(dim), err);
}

int tables_pin(Program *p, Error *err)
{
    static const char *const tables[] = {"embedding", "index_select", "gather", "index", NULL},
                             *const bounds[] = {"clamp", "clamp_max", "minimum", "min", "remainder",
                                                "fmod",  "full_like", "full",    NULL},
                             *const within[] = {"argmax",  "argmin",  "topk",   "sort",
                                                "argsort", "nonzero", "linear", "matmul",
                                                "mm",      "bmm",     NULL};
    json_t *set = json_object(), *node;
    size_t i;
    int rc = 0;
    json_array_foreach(p->nodes, i, node)
    {
        const char *op = operator_of(node);
        json_t *inputs = json_object_get(node, "inputs");
        if (is_one_of(op, tables))
            rc = pin_table(p, node, op, set, err);
        else if (!is_one_of(op, within) &&
                 ((is_one_of(op, bounds) && has_number(node)) || takes_any(inputs, set)))
            add_results(node, set);
        if (rc) break;
    }
    json_decref(set);
    return rc;
}
