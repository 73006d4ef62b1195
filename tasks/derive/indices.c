/* Finds the operators that index or compare with positions, and the largest numbers of those that make
 * indices. */
#include "tasks/derive/indices.h"

#include <string.h>

enum { INDICES_STEPS = 16 };

/* Operators with an argument of indices, and the tensor and dimension that they index. */
static const struct {
    const char *op, *argument, *of;
    int dim; /* -1: the argument "dim"; -2: `of` is a number of classes */
} indexed[] = {{"aten.embedding.", "indices", "weight", 0},
               {"aten.embedding_bag.", "indices", "weight", 0},
               {"aten.cross_entropy_loss.", "target", "self", 1},
               {"aten.nll_loss.", "target", "self", 1},
               {"aten.nll_loss_nd.", "target", "self", 1},
               {"aten.index.Tensor", "indices", "self", 0},
               {"aten.index_select.", "index", "self", -1},
               {"aten.index_add", "index", "self", -1},
               {"aten.index_copy", "index", "self", -1},
               {"aten.scatter", "index", "self", -1},
               {"aten.gather.", "index", "self", -1},
               {"aten.take_along_dim.", "indices", "self", -1},
               {"aten.one_hot.", "self", "num_classes", -2}};

/* The size that the k-th index of a list stands for; 0: it is not known. */
static int64_t indexed_size(const GraphBound *b, const GraphCall *c, size_t row, int k)
{
    const OpCall *call = &c->call;
    int arg = op_argument(call->op, "dim"), of = op_argument(call->op, indexed[row].of),
        dim = indexed[row].dim;
    if (of < 0) return 0;
    if (dim == -2) return call->arg[of].integer[0];
    if (call->arg[of].kind != OP_TENSOR) return 0;
    const OpTensor *x = &b->values[c->in[call->arg[of].integer[0]]].tensor;
    if (dim == -1 && (arg < 0 || op_dim(call->arg[arg].integer[0], x->rank, &dim, NULL))) return 0;
    dim += k;
    return x->rank ? x->size[dim >= x->rank ? 0 : dim] : 0;
}

static int has_integers(const OpCall *c)
{
    for (int i = 0; i < c->n_tensors; i++)
        if (c->tensor[i].dtype == DTYPE_I64 || c->tensor[i].dtype == DTYPE_I32) return 1;
    return 0;
}

void indices_each(const GraphBound *b, IndexSeen *f, void *ctx)
{
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        if (!has_integers(&c->call)) continue;
        for (size_t i = 0; i < sizeof indexed / sizeof *indexed; i++) {
            if (strncmp(c->call.op->name, indexed[i].op, strlen(indexed[i].op))) continue;
            int at = op_argument(c->call.op, indexed[i].argument);
            if (at < 0) continue;
            const OpValue *v = &c->call.arg[at];
            int n = v->kind == OP_TENSOR ? 1 : v->kind == OP_TENSORS ? v->n : 0;
            for (int k = 0; k < n; k++) {
                int64_t size = indexed_size(b, c, i, k);
                if (size) f(ctx, c->in[v->integer[k]], size);
            }
        }
    }
}

/* ---- integers of inputs ---- */

static int is_called(const OpCall *c, const char *packet)
{
    size_t len = strlen(packet);
    return !strncmp(c->op->name, packet, len) && c->op->name[len] == '.';
}

/* By how much add or sub with a number moves its argument. 0: it is none. */
static int moved_by(const OpCall *c, int64_t *by)
{
    int is_sub = is_called(c, "aten.sub"), alpha = op_argument(c->op, "alpha");
    if (!(is_sub || is_called(c, "aten.add")) || c->n_tensors != 1 || c->arg[1].kind != OP_INT ||
        (alpha >= 0 && c->arg[alpha].kind == OP_INT && c->arg[alpha].integer[0] != 1))
        return 0;
    *by = is_sub ? -c->arg[1].integer[0] : c->arg[1].integer[0];
    return 1;
}

/* How many tensors of a call, from *first on, have the elements of its result. A draw bounds no integer that
 * pads or fills. */
static int keeps_elements(const OpCall *c, int *first)
{
    static const char *const kept[] = {"aten.to",
                                       "aten.clone",
                                       "aten.contiguous",
                                       "aten.clamp",
                                       "aten.clamp_min",
                                       "aten.reshape",
                                       "aten.roll",
                                       "aten.flip",
                                       "aten.repeat",
                                       "aten.flatten",
                                       "aten.pad",
                                       "aten.index_select",
                                       "aten.masked_fill",
                                       "aten.constant_pad_nd",
                                       "aten.gather",
                                       "aten.index",
                                       "aten.take_along_dim"};
    static const char *const of_all[] = {"aten.cat", "aten.stack", "aten.slice_scatter"};
    *first = 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (is_called(c, kept[i])) return 1;
    for (size_t i = 0; i < sizeof of_all / sizeof *of_all; i++)
        if (is_called(c, of_all[i])) return c->n_tensors;
    *first = is_called(c, "aten.where");
    return *first ? c->n_tensors - 1 : 0;
}

/* Does a value have elements of an input? At most `steps` operators back. */
static int comes_from(const GraphBound *b, int value, int input, int steps, int64_t *plus)
{
    int base = b->values[value].base, node = b->values[base].node, first = 0;
    int64_t by = 0;
    *plus = 0;
    if (base == input) return 1;
    if (node < 0 || !steps) return 0;
    const GraphCall *c = &b->calls[node];
    int n = moved_by(&c->call, &by) ? 1 : keeps_elements(&c->call, &first);
    for (int i = first; i < first + n; i++) {
        if (!comes_from(b, c->in[i], input, steps - 1, plus)) continue;
        *plus += by;
        return 1;
    }
    return 0;
}

int indices_of_input(const GraphBound *b, int value, int input, int64_t *plus)
{
    *plus = 0;
    return value >= 0 && comes_from(b, value, input, INDICES_STEPS, plus);
}

/* The positions from *first on that a value holds along one dimension; 0: it holds others. */
static int64_t positions(const GraphBound *b, int value, int64_t *first)
{
    const OpTensor *x = &b->values[value].tensor;
    int node = b->values[b->values[value].base].node, along = -1;
    if (node < 0 || !is_called(&b->calls[node].call, "aten.arange")) return 0;
    const OpCall *c = &b->calls[node].call;
    int start = op_argument(c->op, "start"), step = op_argument(c->op, "step");
    for (int d = 0; d < x->rank; d++) {
        if (!x->stride[d] || x->size[d] == 1) continue;
        if (along >= 0 || x->stride[d] != 1) return 0;
        along = d;
    }
    if (step >= 0 && !(c->arg[step].kind == OP_INT && c->arg[step].integer[0] == 1)) return 0;
    if (start >= 0 && c->arg[start].kind != OP_INT) return 0;
    *first = x->offset + (start >= 0 ? c->arg[start].integer[0] : 0);
    return along < 0 ? 1 : x->size[along];
}

void lengths_each(const GraphBound *b, LengthSeen *f, void *ctx)
{
    /* positions < length: as many hold as the length says; <=: it is the last one that does. With `>`
     * and `>=`, those are the ones that do not hold. */
    static const struct {
        const char *op;
        int last; /* with the positions on the left, and on the right */
    } compared[] = {
        {"aten.lt.Tensor", 0}, {"aten.le.Tensor", 1}, {"aten.gt.Tensor", 1}, {"aten.ge.Tensor", 0}};
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        for (size_t i = 0; i < sizeof compared / sizeof *compared && c->call.n_tensors == 2; i++) {
            if (strcmp(c->call.op->name, compared[i].op) != 0) continue;
            for (int side = 0; side < 2; side++) {
                int64_t first, n = positions(b, c->in[side], &first);
                int last = side ? !compared[i].last : compared[i].last;
                if (n) f(ctx, c->in[!side], first + !last, n);
            }
        }
    }
}

/* ---- integers that the graph makes ---- */

static int64_t largest_index(const GraphBound *b, int value);

/* Of a quotient or remainder by a positive integer: the largest integer that it holds. 0: *most is not
 * touched, it is neither. */
static int largest_divided(const GraphBound *b, const GraphCall *c, int64_t *most)
{
    const OpCall *call = &c->call;
    int mode = op_argument(call->op, "rounding_mode");
    int divides =
            is_called(call, "aten.floor_divide") || (is_called(call, "aten.div") && mode >= 0),
        rest = is_called(call, "aten.remainder") || is_called(call, "aten.fmod");
    if (!(divides || rest) || call->n_tensors != 1 || call->arg[1].kind != OP_INT) return 0;
    int64_t by = call->arg[1].integer[0], of = by > 0 ? largest_index(b, c->in[0]) : -1;
    *most = of < 0 ? -1 : divides ? of / by : by - 1 < of ? by - 1 : of;
    return 1;
}

/* The largest index that a value holds; -1: it is not known. */
static int64_t largest_index(const GraphBound *b, int value)
{
    static const char *const places[] = {
        "aten.sort", "aten.argsort", "aten.topk",   "aten.argmax", "aten.argmin",  "aten.max",
        "aten.min",  "aten.cummax",  "aten.cummin", "aten.median", "aten.kthvalue"};
    int64_t moved = 0, most;
    for (int steps = 0; steps < 16; steps++) {
        int base = b->values[value].base, node = b->values[base].node, dim;
        if (node < 0) return -1;
        const GraphCall *c = &b->calls[node];
        const OpValue *end = &c->call.arg[0];
        if (largest_divided(b, c, &most)) return most < 0 ? -1 : most + moved;
        if (is_called(&c->call, "aten.arange")) {
            int at = op_argument(c->call.op, "end"), by = op_argument(c->call.op, "step");
            end = &c->call.arg[at];
            return by < 0 && end->kind == OP_INT ? end->integer[0] - 1 + moved : -1;
        }
        if (is_called(&c->call, "aten.to") || is_called(&c->call, "aten.clone")) {
            value = c->in[c->call.arg[0].integer[0]];
            continue;
        }
        const OpValue *more = &c->call.arg[1];
        if (is_called(&c->call, "aten.add") && c->call.n_tensors == 1 && more->kind == OP_INT) {
            moved += more->integer[0];
            value = c->in[0];
            continue;
        }
        if (is_called(&c->call, "aten.clamp")) {
            end = &c->call.arg[op_argument(c->call.op, "max")];
            return end->kind == OP_INT ? end->integer[0] + moved : -1;
        }
        if (is_called(&c->call, "aten.bucketize") || is_called(&c->call, "aten.searchsorted")) {
            int of = is_called(&c->call, "aten.bucketize") ? 1 : 0; /* the boundaries */
            const OpTensor *t = &c->call.tensor[c->call.arg[of].integer[0]];
            return t->rank ? t->size[t->rank - 1] + moved : -1;
        }
        int at = op_argument(c->call.op, "dim");
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (is_called(&c->call, places[i]) && at >= 0 && c->call.arg[at].kind == OP_INT &&
                !op_dim(c->call.arg[at].integer[0], c->call.tensor[0].rank, &dim, NULL))
                return moved + (c->call.tensor[0].rank ? c->call.tensor[0].size[dim] - 1 : 0);
        return -1;
    }
    return -1;
}

typedef struct {
    const GraphBound *b;
    int fits;
} Fit;

static void check(void *ctx, int value, int64_t size)
{
    Fit *f = ctx;
    if (largest_index(f->b, value) >= size) f->fits = 0;
}

int indices_fit(const GraphBound *b)
{
    Fit f = {b, 1};
    indices_each(b, check, &f);
    return f.fits;
}

/* The value that a value is, under another shape and type and with a number added. */
static int origin_of(const GraphBound *b, int value)
{
    int64_t by;
    for (int steps = 0; steps < 16; steps++) {
        int base = b->values[value].base, node = b->values[base].node;
        if (node < 0) return base;
        const OpCall *c = &b->calls[node].call;
        if (!moved_by(c, &by) && !is_called(c, "aten.to") && !is_called(c, "aten.clone"))
            return base;
        value = b->calls[node].in[0];
    }
    return value;
}

/* The dimension of x that is dimension dim of a value which repeats x along others; -1: it is not so
 * simple. */
static int dimension_of(const GraphBound *b, int origin, int value, int dim)
{
    const OpTensor *x = &b->values[origin].tensor, *y = &b->values[value].tensor;
    if (x->rank < 1 || y->rank < 1) return -1;
    if (x->rank == y->rank)
        return x->size[dim] == y->size[dim] &&
                       (x->size[dim] == 1 || x->stride[dim] == y->stride[dim])
                   ? dim
                   : -1;
    return x->rank == 1 && y->size[dim] == x->size[0] && y->stride[dim] == 1 ? 0 : -1;
}

/* The graph makes a value whose integers are distinct along a dimension: a range, or places of sorted
 * elements. */
static int makes_distinct(const GraphBound *b, int origin, int dim)
{
    static const char *const sorts[] = {"aten.sort", "aten.argsort", "aten.topk"};
    int node = b->values[origin].node, own;
    if (node < 0) return 0;
    const OpCall *c = &b->calls[node].call;
    if (is_called(c, "aten.arange")) return 1;
    int at = op_argument(c->op, "dim");
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++)
        if (is_called(c, sorts[i]) && at >= 0 && c->arg[at].kind == OP_INT &&
            !op_dim(c->arg[at].integer[0], c->tensor[0].rank, &own, NULL))
            return own == dim;
    return 0;
}

/* Does a call write elements to places that an argument names, one by one? *value: the places, along
 * dimension *dim; *room: how many there are. */
static int writes_places(const GraphCall *c, int *value, int *dim, int64_t *room)
{
    const OpCall *call = &c->call;
    int lines = !strncmp(call->op->name, "aten.index_copy", 15), at;
    if (!lines && strcmp(call->op->name, "aten.scatter.src") &&
        strcmp(call->op->name, "aten.scatter_.src"))
        return 0;
    const OpTensor *x = op_tensor(call, 0);
    if (op_dim(call->arg[1].integer[0], x->rank, &at, NULL)) return 0;
    *value = c->in[call->arg[2].integer[0]];
    *dim = lines ? 0 : at;
    *room = x->size[at];
    return 1;
}

int indices_distinct(const GraphBound *b, int input, int64_t *room)
{
    int value, dim, found = -1;
    int64_t own;
    for (int node = 0; node < b->graph->n_nodes && found < 0; node++)
        if (writes_places(&b->calls[node], &value, &dim, &own))
            if (origin_of(b, value) == input)
                found = dimension_of(b, input, value, dim), *room = own;
    return found;
}

const char *indices_repeat(const GraphBound *b)
{
    int value, dim;
    int64_t room;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        if (!writes_places(c, &value, &dim, &room)) continue;
        const OpTensor *y = &b->values[value].tensor;
        if (!y->rank || y->size[dim] <= 1) continue;
        int origin = origin_of(b, value), own = dimension_of(b, origin, value, dim);
        if (own < 0 || (b->values[origin].node >= 0 && !makes_distinct(b, origin, own)))
            return c->call.op->name;
    }
    return NULL;
}
