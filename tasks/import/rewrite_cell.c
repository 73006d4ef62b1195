/* Operators of PyTorch that are others of the library with other arguments: a cell of a recurrent network is
 * one step of it, an image's size comes from a scale, None among indices is a whole dimension, a
 * composition is its parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/import/argument.h"
#include "tasks/import/names.h"
#include "tasks/import/rewrite.h"

/* The name in lines of a tensor; NULL: the argument is none. */
static const char *name_of(Writer *w, const json_t *tensor)
{
    const char *name = json_string_value(json_object_get(tensor, "name"));
    return name ? json_string_value(json_object_get(w->out->names, name)) : NULL;
}

static const char *tensor(Writer *w, const json_t *node, const char *name)
{
    return name_of(w, json_object_get(argument_of(node, name), "as_tensor"));
}

static const char *output(const json_t *node, size_t i)
{
    const json_t *o = json_array_get(json_object_get(node, "outputs"), i);
    return json_string_value(json_object_get(json_object_get(o, "as_tensor"), "name"));
}

static int unknown_tensor(Writer *w)
{
    return error_set(w->err, ERROR_CORRUPT, "it uses a tensor that nothing before it gives");
}

/* Adds "NAME = TEXT", where NAME is a free one. `result` is then what the program's tensor of that name
 * is; of a name on the way it is 0. Frees the text. */
static void add(Writer *w, const char *wish, int result, const json_t *node, char *text,
                char chosen[GRAPH_NAME])
{
    names_choose(w->out->taken, wish, chosen, GRAPH_NAME);
    lines_add(w->out, memory_printf("%s = %s", chosen, text), node);
    if (result) lines_rename(w->out, wish, chosen);
    free(text);
}

/* ---- cells ---- */

/* One step of a network: x and each state have a dimension of one step, or of one layer, in front. */
static int write_cell(Writer *w, const json_t *node, const char *network)
{
    static const char *const weights[] = {"w_ih", "w_hh", "b_ih", "b_hh"};
    const json_t *hx = argument_of(node, "hx"), *states = json_object_get(hx, "as_tensors");
    const char *x = tensor(w, node, "input"), *h[2] = {tensor(w, node, "hx"), NULL};
    int lstm = states != NULL, biases = tensor(w, node, "b_ih") != NULL;
    char step[GRAPH_NAME], state[2][GRAPH_NAME], got[3][GRAPH_NAME], chosen[GRAPH_NAME];
    Buffer text;
    for (int i = 0; i < 2 && lstm; i++) h[i] = name_of(w, json_array_get(states, (size_t)i));
    if (!x || !h[0] || (lstm && !h[1]) || !tensor(w, node, "w_ih") || !tensor(w, node, "w_hh"))
        return unknown_tensor(w);
    add(w, "step", 0, NULL, memory_printf("aten.unsqueeze(%s, 0)", x), step);
    for (int i = 0; i <= lstm; i++)
        add(w, "state", 0, NULL, memory_printf("aten.unsqueeze(%s, 0)", h[i]), state[i]);
    buffer_init(&text, OP_LINE_MAX);
    for (int i = 0; i < 2 + lstm; i++) {
        names_choose(w->out->taken, i ? "last" : "steps", got[i], GRAPH_NAME);
        buffer_printf(&text, "%s%s", i ? ", " : "", got[i]);
    }
    buffer_printf(&text, " = aten.%s.input(%s, %s%s%s%s%s, [", network, step, lstm ? "[" : "",
                  state[0], lstm ? ", " : "", lstm ? state[1] : "", lstm ? "]" : "");
    for (int i = 0; i < (biases ? 4 : 2); i++) {
        const char *name = tensor(w, node, weights[i]);
        buffer_printf(&text, "%s%s", i ? ", " : "", name ? name : "None");
    }
    buffer_printf(&text, "], %s, 1, 0.0, False, False, False)", biases ? "True" : "False");
    lines_add(w->out, buffer_detach(&text), node);
    buffer_release(&text);
    for (int i = 0; i <= lstm; i++)
        if (output(node, (size_t)i))
            add(w, output(node, (size_t)i), 1, NULL,
                memory_printf("aten.squeeze.dim(%s, 0)", got[1 + i]), chosen);
    return 1;
}

/* ---- sizes of images ---- */

/* The sizes are those that PyTorch recorded, whatever they come from; the scales stay. */
static int write_resize(Writer *w, const json_t *node, const char *op)
{
    static const char *const scales[3][3] = {
        {"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}};
    const char *x = tensor(w, node, "input"), *result = output(node, 0);
    const json_t *corners = json_object_get(argument_of(node, "align_corners"), "as_bool"),
                 *factors = json_object_get(argument_of(node, "scale_factors"), "as_floats"),
                 *sizes =
                     json_object_get(json_object_get(w->p->tensors, result ? result : ""), "sizes");
    size_t rank = json_array_size(sizes);
    char chosen[GRAPH_NAME];
    Buffer text;
    if (!x || !result || rank < 3 || rank > 5) return unknown_tensor(w);
    buffer_init(&text, OP_LINE_MAX);
    buffer_printf(&text, "%.*s(%s, [", (int)strcspn(op + 5, ".") + 5, op, x);
    int rc = 0;
    for (size_t d = 2; d < rank && !rc; d++) {
        buffer_puts(&text, d > 2 ? ", " : "");
        rc = argument_size(w->p, json_array_get(sizes, d), &text, w->err);
    }
    buffer_puts(&text, "]");
    if (corners) buffer_printf(&text, ", %s", json_is_true(corners) ? "True" : "False");
    for (size_t d = 0; d < json_array_size(factors) && d < rank - 2; d++) {
        buffer_printf(&text, ", %s=", scales[rank - 3][d]);
        argument_real(json_number_value(json_array_get(factors, d)), &text);
    }
    buffer_puts(&text, ")");
    if (!rc) add(w, result, 1, node, buffer_detach(&text), chosen);
    buffer_release(&text);
    return rc ? -1 : 1;
}

/* ---- indices ---- */

/* The one index among None, and its dimension: -1, there are several, or none. */
static int only_index(const json_t *list, const char **name)
{
    int dim = -1;
    json_t *e;
    size_t i;
    json_array_foreach((json_t *)list, i, e)
    {
        const json_t *optional = json_object_get(e, "as_tensor");
        const char *have = json_string_value(json_object_get(optional ? optional : e, "name"));
        if (!have) continue;
        if (dim >= 0) return -1;
        dim = (int)i;
        *name = have;
    }
    return dim;
}

static size_t rank_of(const Writer *w, const char *name)
{
    return json_array_size(json_object_get(json_object_get(w->p->tensors, name), "sizes"));
}

/* Two indices of one dimension each for dimensions that lie side by side: the first one, or -1. */
static int two_indices(const Writer *w, const json_t *list, const char *name[2])
{
    int dim = -1, n = 0;
    json_t *e;
    size_t i;
    json_array_foreach((json_t *)list, i, e)
    {
        const char *have =
            json_string_value(json_object_get(json_object_get(e, "as_tensor"), "name"));
        if (!have) continue;
        if (n == 2 || (n && (int)i != dim + 1) || rank_of(w, have) != 1) return -1;
        if (!n) dim = (int)i;
        name[n++] = have;
    }
    return n == 2 ? dim : -1;
}

/* An index of a dimension as one that is not negative: chosen, and the dimension's size as a text. */
static int write_whole_index(Writer *w, const char *index, const json_t *size,
                             char chosen[GRAPH_NAME], Buffer *text)
{
    const char *i = json_string_value(json_object_get(w->out->names, index));
    if (!i) return unknown_tensor(w);
    if (argument_size(w->p, size, text, w->err)) return -1;
    add(w, "at", 0, NULL, memory_printf("aten.remainder.Scalar(%s, %s)", i, text->data), chosen);
    return 0;
}

/* x[:, i, k]: a selection of what the elements of both dimensions are in one. */
static int write_pairs(Writer *w, const json_t *node, const json_t *list, const char *own)
{
    const char *name[2], *x = tensor(w, node, "self"), *result = output(node, 0);
    const json_t *sizes = json_object_get(json_object_get(w->p->tensors, own), "sizes");
    int dim = two_indices(w, list, name), rc = 0;
    char at[2][GRAPH_NAME], flat[GRAPH_NAME], chosen[GRAPH_NAME];
    Buffer size;
    if (dim < 0) return 0;
    buffer_init(&size, OP_LINE_MAX);
    for (int k = 0; k < 2 && !rc; k++) {
        buffer_clear(&size);
        rc = write_whole_index(w, name[k], json_array_get(sizes, (size_t)(dim + k)), at[k], &size);
    }
    if (!rc) {
        add(w, "row", 0, NULL, memory_printf("aten.mul.Tensor(%s, %s)", at[0], size.data), chosen);
        add(w, "at", 0, NULL, memory_printf("aten.add.Tensor(%s, %s)", chosen, at[1]), at[0]);
        add(w, "flat", 0, NULL,
            memory_printf("aten.flatten.using_ints(%s, %d, %d)", x, dim, dim + 1), flat);
        add(w, result, 1, node, memory_printf("aten.index_select(%s, %d, %s)", flat, dim, at[0]),
            chosen);
    }
    buffer_release(&size);
    return rc ? rc : 1;
}

/* x[:, i] with one dimension of indices: a selection, or a copy or sum of as many places. */
static int write_indexed(Writer *w, const json_t *node, const char *op)
{
    const json_t *arg = argument_of(node, "indices"),
                 *list = json_object_get(arg, "as_optional_tensors");
    const char *index = NULL, *x = tensor(w, node, "self"), *result = output(node, 0),
               *to = json_string_value(json_object_get(
                   json_object_get(argument_of(node, "self"), "as_tensor"), "name"));
    int puts = !strncmp(op, "aten.index_put", 14);
    if (!list && puts) list = json_object_get(arg, "as_tensors");
    int dim = only_index(list, &index);
    char chosen[GRAPH_NAME], selected[GRAPH_NAME];
    if (dim < 0 && !puts && x && to && result) return write_pairs(w, node, list, to);
    if (dim < 0 || rank_of(w, index) != 1 || !x || !to || !result) return 0;
    const char *i = json_string_value(json_object_get(w->out->names, index));
    if (!i) return unknown_tensor(w);
    if (!puts) {
        add(w, result, 1, node, memory_printf("aten.index_select(%s, %d, %s)", x, dim, i), chosen);
        return 1;
    }
    const char *values = tensor(w, node, "values");
    int sums = json_is_true(json_object_get(argument_of(node, "accumulate"), "as_bool")),
        in_place = strstr(op, "put_.") != NULL;
    if (!values) return unknown_tensor(w);
    add(w, "selected", 0, NULL, memory_printf("aten.index_select(%s, %d, %s)", x, dim, i),
        selected);
    add(w, "placed", 0, NULL, memory_printf("aten.expand_as(%s, %s)", values, selected), selected);
    add(w, result, 1, node,
        memory_printf("aten.%s%s(%s, %d, %s, %s)", sums ? "index_add" : "index_copy",
                      in_place ? "_" : "", x, dim, i, selected),
        chosen);
    return 1;
}

/* ---- compositions ---- */

static int64_t whole(const json_t *node, const char *name, int64_t unless)
{
    const json_t *v = json_object_get(argument_of(node, name), "as_int");
    return v ? json_integer_value(v) : unless;
}

static double number(const json_t *node, const char *name, double unless)
{
    const json_t *v = argument_of(node, name), *real = json_object_get(v, "as_float");
    return real ? json_number_value(real) : (double)whole(node, name, (int64_t)unless);
}

/* The module's own size of a tensor's dimension, counted from the end; 0: it is not known. */
static int64_t own_size(const Writer *w, const char *name, size_t from_end)
{
    const json_t *sizes = json_object_get(json_object_get(w->p->tensors, name), "sizes");
    size_t rank = json_array_size(sizes);
    const json_t *size = from_end > rank ? NULL : json_array_get(sizes, rank - from_end),
                 *hint = json_object_get(json_object_get(size, "as_expr"), "hint");
    return json_integer_value(json_object_get(hint ? hint : size, "as_int"));
}

/* Rows beside the sums of their squares and ones, in an order that a product of two such needs. */
static void write_sides(Writer *w, const char *rows, const char *scaled, int ones_last,
                        char out[GRAPH_NAME])
{
    char square[GRAPH_NAME], sum[GRAPH_NAME], ones[GRAPH_NAME];
    add(w, "square", 0, NULL, memory_printf("aten.pow.Tensor_Scalar(%s, 2)", rows), square);
    add(w, "sum", 0, NULL, memory_printf("aten.sum.dim_IntList(%s, [-1], True)", square), sum);
    add(w, "ones", 0, NULL, memory_printf("aten.ones_like(%s)", sum), ones);
    add(w, "sides", 0, NULL,
        memory_printf("aten.cat([%s, %s, %s], -1)", scaled, ones_last ? sum : ones,
                      ones_last ? ones : sum),
        out);
}

/* Euclidean distances by a product, as eager PyTorch computes those of more than 25 rows. It has a kernel
 * of its own for others, which is no composition. */
static int write_cdist(Writer *w, const json_t *node)
{
    const char *x = tensor(w, node, "x1"), *y = tensor(w, node, "x2"), *result = output(node, 0);
    int64_t mode = whole(node, "compute_mode", 0);
    char scaled[GRAPH_NAME], left[GRAPH_NAME], right[GRAPH_NAME], squares[GRAPH_NAME];
    if (!x || !y || !result || number(node, "p", 2) != 2 || mode == 2) return 0;
    if (mode != 1 && own_size(w, x, 2) <= 25 && own_size(w, y, 2) <= 25) return 0;
    add(w, "scaled", 0, NULL, memory_printf("aten.mul.Tensor(%s, -2)", x), scaled);
    write_sides(w, x, scaled, 1, left);
    write_sides(w, y, y, 0, right);
    add(w, "turned", 0, NULL, memory_printf("aten.transpose.int(%s, -2, -1)", right), right);
    add(w, "squares", 0, NULL, memory_printf("aten.matmul(%s, %s)", left, right), squares);
    add(w, "positive", 0, NULL, memory_printf("aten.clamp_min_(%s, 0)", squares), squares);
    add(w, result, 1, node, memory_printf("aten.sqrt_(%s)", squares), left);
    return 1;
}

/* The sizes of a result, as a list. */
static int result_sizes(Writer *w, const char *result, Buffer *text)
{
    const json_t *sizes = json_object_get(json_object_get(w->p->tensors, result), "sizes");
    buffer_puts(text, "[");
    for (size_t d = 0; d < json_array_size(sizes); d++) {
        buffer_puts(text, d ? ", " : "");
        if (argument_size(w->p, json_array_get(sizes, d), text, w->err)) return -1;
    }
    buffer_puts(text, "]");
    return 0;
}

/* Each vector along its dimension of the grid. */
static int write_meshgrid(Writer *w, const json_t *node)
{
    const json_t *from = json_object_get(argument_of(node, "tensors"), "as_tensors"),
                 *to = json_object_get(json_array_get(json_object_get(node, "outputs"), 0),
                                       "as_tensors");
    const char *order =
        json_string_value(json_object_get(argument_of(node, "indexing"), "as_string"));
    size_t n = json_array_size(from);
    char chosen[GRAPH_NAME];
    int rc = 0;
    if (n < 2 || n > OP_MAX_RANK || json_array_size(to) != n) return 0;
    for (size_t i = 0; i < n && !rc; i++) {
        size_t at = order && !strcmp(order, "xy") && i < 2 ? 1 - i : i;
        const char *x = name_of(w, json_array_get(from, i)),
                   *result = json_string_value(json_object_get(json_array_get(to, i), "name"));
        Buffer text;
        if (!x || !result) return unknown_tensor(w);
        buffer_init(&text, OP_LINE_MAX);
        buffer_printf(&text, "aten.view(%s, [", x);
        for (size_t d = 0; d < n; d++)
            buffer_printf(&text, "%s%d", d ? ", " : "", d == at ? -1 : 1);
        buffer_puts(&text, "])");
        add(w, "line", 0, NULL, buffer_detach(&text), chosen);
        buffer_printf(&text, "aten.expand(%s, ", chosen);
        rc = result_sizes(w, result, &text);
        buffer_puts(&text, ")");
        if (!rc) add(w, result, 1, NULL, buffer_detach(&text), chosen);
        buffer_release(&text);
    }
    return rc ? -1 : 1;
}

/* The square of whole numbers, which the functions of floating-point ones would round: a product. */
static int write_power(Writer *w, const json_t *node)
{
    const char *x = tensor(w, node, "self"), *result = output(node, 0);
    char product[GRAPH_NAME];
    Dtype dtype;
    Symbolic size[OP_MAX_RANK];
    int rank;
    if (!x || !result) return 0;
    if (program_tensor(w->p, result, &dtype, &rank, size, w->err)) return -1;
    for (int d = 0; d < rank; d++) symbolic_release(&size[d]);
    if (dtype != DTYPE_I64 && dtype != DTYPE_I32) return 0;
    if (whole(node, "exponent", -1) != 2)
        return error_set(w->err, ERROR_UNSUPPORTED,
                         "a power of whole numbers other than the second");
    add(w, result, 1, node, memory_printf("aten.mul.Tensor(%s, %s)", x, x), product);
    return 1;
}

/* ---- contractions ---- */

static const char *own_name(const json_t *node, const char *name)
{
    return json_string_value(
        json_object_get(json_object_get(argument_of(node, name), "as_tensor"), "name"));
}

/* The dimensions of a list, counted from the front: how many; 0: they are not those of the tensor. */
static size_t dimensions(const json_t *node, const char *name, size_t rank, size_t out[OP_MAX_RANK])
{
    const json_t *list = json_object_get(argument_of(node, name), "as_ints");
    size_t n = json_array_size(list);
    if (!list && rank) return out[0] = rank - 1, 1; /* of an inner product */
    for (size_t i = 0; i < n && n <= rank; i++) {
        int64_t d = json_integer_value(json_array_get(list, i));
        if (d < 0) d += (int64_t)rank;
        if (d < 0 || d >= (int64_t)rank) return 0;
        out[i] = (size_t)d;
        for (size_t k = 0; k < i; k++)
            if (out[k] == out[i]) return 0;
    }
    return n <= rank ? n : 0;
}

/* A tensor, of whose dimensions n are summed over. */
typedef struct {
    const char *name;
    size_t rank, n, dims[OP_MAX_RANK];
} Contracted;

/* A matrix of a tensor: the dimensions that stay are its rows, or with `turned` its columns. */
static void write_matrix(Writer *w, const Contracted *x, int turned, char out[GRAPH_NAME])
{
    const size_t rank = x->rank, n = x->n, *dims = x->dims;
    Buffer text;
    char gone[OP_MAX_RANK] = {0};
    size_t kept = rank - n, first = turned ? n : kept;
    buffer_init(&text, OP_LINE_MAX);
    for (size_t i = 0; i < n; i++) gone[dims[i]] = 1;
    buffer_printf(&text, "aten.permute(%s, [", x->name);
    for (int part = 0, count = 0; part < 2; part++)
        for (size_t d = 0; d < (part == turned ? rank : n); d++) {
            if (part == turned && gone[d]) continue;
            buffer_printf(&text, "%s%zu", count++ ? ", " : "", part == turned ? d : dims[d]);
        }
    buffer_puts(&text, "])");
    add(w, "turned", 0, NULL, buffer_detach(&text), out);
    buffer_release(&text);
    if (rank - first > 1)
        add(w, "flat", 0, NULL, memory_printf("aten.flatten.using_ints(%s, %zu, -1)", out, first),
            out);
    if (first > 1)
        add(w, "flat", 0, NULL,
            memory_printf("aten.flatten.using_ints(%s, 0, %zu)", out, first - 1), out);
    if (!kept) add(w, "flat", 0, NULL, memory_printf("aten.unsqueeze(%s, %d)", out, turned), out);
}

/* A product of matrices, as eager PyTorch computes contractions. */
static int write_tensordot(Writer *w, const json_t *node)
{
    const char *result = output(node, 0);
    const char *own[] = {own_name(node, "self"), own_name(node, "other")};
    Contracted x[] = {{.name = tensor(w, node, "self")}, {.name = tensor(w, node, "other")}};
    char left[GRAPH_NAME], right[GRAPH_NAME], product[GRAPH_NAME];
    Buffer text;
    if (!x[0].name || !x[1].name || !own[0] || !own[1] || !result) return unknown_tensor(w);
    for (int i = 0; i < 2; i++) x[i].rank = rank_of(w, own[i]);
    if (x[0].rank > OP_MAX_RANK || x[1].rank > OP_MAX_RANK) return 0;
    x[0].n = dimensions(node, "dims_self", x[0].rank, x[0].dims);
    x[1].n = dimensions(node, "dims_other", x[1].rank, x[1].dims);
    if (!x[0].n || x[1].n != x[0].n) return 0;
    for (size_t i = 0; i < x[0].n; i++) { /* a dimension of one would be a sum of the other */
        int64_t a = own_size(w, own[0], x[0].rank - x[0].dims[i]),
                b = own_size(w, own[1], x[1].rank - x[1].dims[i]);
        if (a < 2 || a != b) return 0;
    }
    write_matrix(w, &x[0], 0, left);
    write_matrix(w, &x[1], 1, right);
    add(w, "product", 0, NULL, memory_printf("aten.mm(%s, %s)", left, right), product);
    buffer_init(&text, OP_LINE_MAX);
    buffer_printf(&text, "aten.reshape(%s, ", product);
    int rc = result_sizes(w, result, &text);
    buffer_puts(&text, ")");
    if (!rc) add(w, result, 1, node, buffer_detach(&text), product);
    buffer_release(&text);
    return rc ? -1 : 1;
}

/* ---- tensors side by side ---- */

/* Along a dimension that tensors of fewer dimensions lack: a stack. */
static int write_beside(Writer *w, const json_t *node, int64_t dim, int64_t alone)
{
    const json_t *list = json_object_get(argument_of(node, "tensors"), "as_tensors");
    const char *result = output(node, 0);
    size_t n = json_array_size(list), rank = 0;
    char chosen[GRAPH_NAME];
    Buffer text;
    buffer_init(&text, OP_LINE_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *own = json_string_value(json_object_get(json_array_get(list, i), "name")),
                   *x = name_of(w, json_array_get(list, i));
        if (!x || !own || (i && rank_of(w, own) != rank)) n = 0;
        if (!n) break;
        rank = rank_of(w, own);
        buffer_printf(&text, "%s%s", i ? ", " : "", x);
    }
    int stacks = rank == 1 && alone < 0,
        rc = n && n <= OP_MAX_LIST && result && rank && (rank > 1 || alone >= -1);
    if (rank <= (size_t)dim && rank > 1) rc = 0;
    if (rc)
        add(w, result, 1, node,
            memory_printf("aten.%s([%s], %lld)", stacks ? "stack" : "cat", text.data,
                          (long long)(rank == 1 && !stacks ? alone : dim)),
            chosen);
    buffer_release(&text);
    return rc;
}

static int write_hstack(Writer *w, const json_t *node)
{
    return write_beside(w, node, 1, 0);
}

static int write_vstack(Writer *w, const json_t *node)
{
    return write_beside(w, node, 0, -1);
}

static int write_columns(Writer *w, const json_t *node)
{
    return write_beside(w, node, 1, -1);
}

/* Differences of a tensor with others put before and behind it, as ATen joins them. */
static int write_diff(Writer *w, const json_t *node)
{
    const char *x = tensor(w, node, "self"), *before = tensor(w, node, "prepend"),
               *behind = tensor(w, node, "append"), *result = output(node, 0);
    long long dim = whole(node, "dim", -1);
    char joined[GRAPH_NAME], chosen[GRAPH_NAME];
    if (!x || !result || (!before && !behind)) return 0;
    add(w, "joined", 0, NULL,
        memory_printf("aten.cat([%s%s%s%s%s], %lld)", before ? before : "", before ? ", " : "", x,
                      behind ? ", " : "", behind ? behind : "", dim),
        joined);
    add(w, result, 1, node,
        memory_printf("aten.diff(%s, %lld, %lld)", joined, (long long)whole(node, "n", 1), dim),
        chosen);
    return 1;
}

/* To a type and a device, of which there is one. */
static int write_moved(Writer *w, const json_t *node)
{
    const char *x = tensor(w, node, "self"), *result = output(node, 0);
    char chosen[GRAPH_NAME];
    Buffer text;
    if (!x || !result) return 0;
    buffer_init(&text, OP_LINE_MAX);
    buffer_printf(&text, "aten.to.dtype(%s, ", x);
    int rc = argument_write(w->p, argument_of(node, "dtype"), w->out->names, &text, w->err) > 0;
    if (rc) add(w, result, 1, node, memory_printf("%s)", text.data), chosen);
    buffer_release(&text);
    return rc;
}

/* Zeros, and ones on the diagonal, as ATen makes them. */
static int write_eye(Writer *w, const json_t *node)
{
    const char *result = output(node, 0);
    char diagonal[GRAPH_NAME], chosen[GRAPH_NAME];
    Symbolic size[OP_MAX_RANK];
    Dtype dtype;
    Buffer text;
    int rank;
    if (!result) return 0;
    if (program_tensor(w->p, result, &dtype, &rank, size, w->err)) return -1;
    for (int d = 0; d < rank; d++) symbolic_release(&size[d]);
    buffer_init(&text, OP_LINE_MAX);
    buffer_puts(&text, "aten.zeros(");
    int rc = result_sizes(w, result, &text);
    buffer_printf(&text, ", dtype=torch.%s)", dtype_name(dtype));
    if (!rc) {
        add(w, result, 1, node, buffer_detach(&text), chosen);
        add(w, "diagonal", 0, NULL, memory_printf("aten.diagonal(%s)", chosen), diagonal);
        add(w, "ones", 0, NULL, memory_printf("aten.fill_.Scalar(%s, 1)", diagonal), diagonal);
    }
    buffer_release(&text);
    return rc ? -1 : 1;
}

/* A number as a tensor without dimensions, which an assignment of one to a part of a tensor makes. */
static int write_number(Writer *w, const json_t *node)
{
    const char *result = output(node, 0);
    char chosen[GRAPH_NAME];
    Symbolic size[OP_MAX_RANK];
    Dtype dtype;
    Buffer text;
    int rank;
    if (!result) return 0;
    if (program_tensor(w->p, result, &dtype, &rank, size, w->err)) return -1;
    buffer_init(&text, OP_LINE_MAX);
    buffer_puts(&text, "aten.full([], ");
    int rc = argument_write(w->p, argument_of(node, "s"), w->out->names, &text, w->err);
    buffer_printf(&text, ", dtype=torch.%s)", dtype_name(dtype));
    if (rc > 0) add(w, result, 1, node, buffer_detach(&text), chosen);
    buffer_release(&text);
    return rc;
}

/* A tensor filled with the only element of another one. */
static int write_filled(Writer *w, const json_t *node)
{
    const char *x = tensor(w, node, "self"), *value = tensor(w, node, "value"),
               *result = output(node, 0);
    char chosen[GRAPH_NAME];
    if (!x || !value || !result) return 0;
    add(w, result, 1, node, memory_printf("aten.copy_(%s, %s)", x, value), chosen);
    return 1;
}

/* A matrix with a vector on its diagonal: a triangle of a triangle, as readers of graphs know it. */
static int write_diagonal(Writer *w, const json_t *node)
{
    const char *x = tensor(w, node, "self"), *name = own_name(node, "self"),
               *result = output(node, 0);
    char column[GRAPH_NAME], wide[GRAPH_NAME], upper[GRAPH_NAME], chosen[GRAPH_NAME];
    Buffer text;
    if (!x || !name || !result || rank_of(w, name) != 1 || whole(node, "diagonal", 0) ||
        whole(node, "offset", 0))
        return 0;
    buffer_init(&text, OP_LINE_MAX);
    int rc = result_sizes(w, result, &text);
    if (!rc) {
        add(w, "column", 0, NULL, memory_printf("aten.unsqueeze(%s, 1)", x), column);
        add(w, "wide", 0, NULL, memory_printf("aten.expand(%s, %s)", column, text.data), wide);
        add(w, "upper", 0, NULL, memory_printf("aten.triu(%s)", wide), upper);
        add(w, result, 1, node, memory_printf("aten.tril(%s)", upper), chosen);
    }
    buffer_release(&text);
    return rc ? -1 : 1;
}

/* ---- boundaries ---- */

/* The node that gives a tensor, past conversions; NULL: none, or a later one overwrites it. */
static const json_t *source_of(const Writer *w, const char *name)
{
    for (int steps = 0; name && steps < 8; steps++) {
        const json_t *found = NULL;
        json_t *e;
        size_t i;
        json_array_foreach((json_t *)w->p->nodes, i, e)
        {
            const char *own = output(e, 0), *self = own_name(e, "self"),
                       *op = json_string_value(json_object_get(e, "target"));
            if (own && !strcmp(own, name)) found = e;
            if (op && strstr(op, "_.") && self && !strcmp(self, name)) return NULL;
        }
        const char *target = json_string_value(json_object_get(found, "target"));
        if (!target || strncmp(target, "torch.ops.aten.to.", 18) != 0) return found;
        name = own_name(found, "self");
    }
    return NULL;
}

static int sorts_rows(const Writer *w, const json_t *node)
{
    const char *x = own_name(node, "self");
    int64_t dim = whole(node, "dim", -1);
    return x && (dim == -1 || dim + 1 == (int64_t)rank_of(w, x)) &&
           !json_is_true(json_object_get(argument_of(node, "descending"), "as_bool"));
}

/* Boundaries that are drawn would be in no order, of which a search has no meaning: 0 if they are. */
static int write_search(Writer *w, const json_t *node)
{
    const char *name = own_name(node, "boundaries");
    const json_t *from = source_of(w, name ? name : own_name(node, "sorted_sequence"));
    const char *target = json_string_value(json_object_get(from, "target")),
               *op = target ? target : "";
    if (!strncmp(op, "torch.ops.aten.linspace.", 24) &&
        number(from, "start", 0) < number(from, "end", 0))
        return 0;
    if (!strcmp(op, "torch.ops.aten.arange.default") || !strcmp(op, "torch.ops.aten.arange.start"))
        return 0;
    if (!strncmp(op, "torch.ops.aten.sort.", 20) && sorts_rows(w, from)) return 0;
    return error_set(w->err, ERROR_UNSUPPORTED,
                     "its boundaries are not known to be in order, as those of linspace, arange "
                     "and sort are");
}

static int write_composed(Writer *w, const json_t *node, const char *op)
{
    static const struct {
        const char *op;
        int (*write)(Writer *w, const json_t *node);
    } composed[] = {{"aten.bucketize.Tensor", write_search},
                    {"aten.searchsorted.Tensor", write_search},
                    {"aten.tensordot.default", write_tensordot},
                    {"aten.inner.default", write_tensordot},
                    {"aten.hstack.default", write_hstack},
                    {"aten.vstack.default", write_vstack},
                    {"aten.column_stack.default", write_columns},
                    {"aten.pow.Tensor_Scalar", write_power},
                    {"aten.cdist.default", write_cdist},
                    {"aten.meshgrid.default", write_meshgrid},
                    {"aten.meshgrid.indexing", write_meshgrid},
                    {"aten.diff.default", write_diff},
                    {"aten.to.device", write_moved},
                    {"aten.diag.default", write_diagonal},
                    {"aten.diag_embed.default", write_diagonal},
                    {"aten.scalar_tensor.default", write_number},
                    {"aten.fill_.Tensor", write_filled},
                    {"aten.eye.default", write_eye},
                    {"aten.eye.m", write_eye}};
    for (size_t i = 0; i < sizeof composed / sizeof *composed; i++)
        if (!strcmp(op, composed[i].op)) return composed[i].write(w, node);
    return 0;
}

int rewrite_cell(Writer *w, const json_t *node, const char *op)
{
    static const char *const cells[][2] = {{"aten.gru_cell.default", "gru"},
                                           {"aten.lstm_cell.default", "lstm"},
                                           {"aten.rnn_tanh_cell.default", "rnn_tanh"},
                                           {"aten.rnn_relu_cell.default", "rnn_relu"}};
    size_t len = strlen(op);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (!strcmp(op, cells[i][0])) return write_cell(w, node, cells[i][1]);
    if (!strncmp(op, "aten.upsample_", 14) && len > 4 && !strcmp(op + len - 4, ".vec"))
        return write_resize(w, node, op);
    if (!strncmp(op, "aten.index_put", 14) ||
        (!strcmp(op, "aten.index.Tensor") &&
         json_object_get(argument_of(node, "indices"), "as_optional_tensors")))
        return write_indexed(w, node, op);
    return write_composed(w, node, op);
}
