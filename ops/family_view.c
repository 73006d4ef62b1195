/* Operators that rename memory: reshapes, permutations, slices, expansions, and the copies that they
 * become where no strides can tell. Strides are ATen's, also those of dimensions of size 1. */
#include <string.h>

#include "ops/op_strided.h"

typedef int ShapeFunction(const OpCall *c, OpTensor *y, Error *err);

static int same(const OpCall *c, OpTensor *y, Error *err)
{
    (void)c, (void)y, (void)err;
    return 0;
}

static int contiguous(const OpCall *c, OpTensor *y, Error *err)
{
    (void)c, (void)err;
    return !op_is_contiguous(y);
}

/* Strides of results are C order here where ATen keeps those of an operator's input, so that a view
 * of such a result may need the copy that reshape makes. */
static int view(const OpCall *c, OpTensor *y, Error *err)
{
    int64_t size[OP_MAX_RANK];
    if (strided_sizes(y, &c->arg[1], size, err)) return -1;
    OpTensor x = *y;
    int rc = strided_reshape(&x, c->arg[1].n, size, y);
    y->rank = c->arg[1].n;
    memcpy(y->size, size, sizeof size);
    return rc;
}

static int view_as(const OpCall *c, OpTensor *y, Error *err)
{
    const OpTensor *other = op_tensor(c, 1), x = *y;
    if (op_elements(other) != op_elements(y))
        return error_set(err, ERROR_INVALID, "the shapes have different numbers of elements");
    int rc = strided_reshape(&x, other->rank, other->size, y);
    y->rank = other->rank;
    memcpy(y->size, other->size, sizeof y->size);
    return rc;
}

static int reshape_to(OpTensor *y, int rank, const int64_t *size, Error *err)
{
    OpTensor x = *y;
    if (rank > OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "expected a rank of at most %d, found %d", OP_MAX_RANK,
                         rank);
    int rc = strided_reshape(&x, rank, size, y);
    y->rank = rank;
    memcpy(y->size, size, (size_t)rank * sizeof *size);
    return rc;
}

static int flatten(const OpCall *c, OpTensor *y, Error *err)
{
    int from, to, rank = 0;
    int64_t size[OP_MAX_RANK] = {1};
    if (op_dim(c->arg[1].integer[0], y->rank, &from, err)) return -1;
    if (op_dim(c->arg[2].integer[0], y->rank, &to, err)) return -1;
    if (from > to)
        return error_set(err, ERROR_INVALID, "start_dim %d comes after end_dim %d", from, to);
    if (!y->rank) return reshape_to(y, 1, size, err);
    if (from == to) return 0;
    for (int d = 0; d < y->rank; d++)
        if (d > from && d <= to)
            size[rank - 1] *= y->size[d];
        else
            size[rank++] = y->size[d];
    return reshape_to(y, rank, size, err);
}

static int unflatten(const OpCall *c, OpTensor *y, Error *err)
{
    const OpValue *list = &c->arg[2];
    OpTensor part = {.rank = 1};
    int dim, rank = 0;
    int64_t inner[OP_MAX_RANK], size[2 * OP_MAX_RANK];
    if (op_dim(c->arg[1].integer[0], y->rank, &dim, err)) return -1;
    part.size[0] = y->rank ? y->size[dim] : 1;
    if (strided_sizes(&part, list, inner, err)) return -1;
    for (int d = 0; d < y->rank; d++)
        if (d == dim)
            for (int k = 0; k < list->n; k++) size[rank++] = inner[k];
        else
            size[rank++] = y->size[d];
    return reshape_to(y, rank, size, err);
}

static int permuted(OpTensor *y, const int *from)
{
    OpTensor x = *y;
    for (int d = 0; d < y->rank; d++) {
        y->size[d] = x.size[from[d]];
        y->stride[d] = x.stride[from[d]];
    }
    return 0;
}

static int transpose(const OpCall *c, OpTensor *y, Error *err)
{
    int a, b, from[OP_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (op_dim(c->arg[1].integer[0], y->rank, &a, err)) return -1;
    if (op_dim(c->arg[2].integer[0], y->rank, &b, err)) return -1;
    from[a] = b;
    from[b] = a;
    return permuted(y, from);
}

static int reversed(const OpCall *c, OpTensor *y, Error *err)
{
    int from[OP_MAX_RANK];
    (void)c, (void)err;
    for (int d = 0; d < y->rank; d++) from[d] = y->rank - 1 - d;
    return permuted(y, from);
}

static int swap_last(OpTensor *y)
{
    int from[OP_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    from[y->rank - 1] = y->rank - 2;
    from[y->rank - 2] = y->rank - 1;
    return permuted(y, from);
}

static int transpose_last(const OpCall *c, OpTensor *y, Error *err)
{
    (void)c;
    return y->rank >= 2
               ? swap_last(y)
               : error_set(err, ERROR_INVALID, "a tensor of rank %d is no matrix", y->rank);
}

static int transpose_matrix(const OpCall *c, OpTensor *y, Error *err)
{
    (void)c;
    if (y->rank > 2)
        return error_set(err, ERROR_INVALID, "a tensor of rank %d is no matrix", y->rank);
    return y->rank == 2 ? swap_last(y) : 0;
}

static int permute(const OpCall *c, OpTensor *y, Error *err)
{
    const OpValue *dims = &c->arg[1];
    int from[OP_MAX_RANK], seen = 0;
    if (dims->n != y->rank)
        return error_set(err, ERROR_INVALID, "expected %d dimensions, found %d", y->rank, dims->n);
    for (int d = 0; d < y->rank; d++) {
        if (op_dim(dims->integer[d], y->rank, &from[d], err)) return -1;
        if (seen & 1 << from[d])
            return error_set(err, ERROR_INVALID, "dimension %d is given twice", from[d]);
        seen |= 1 << from[d];
    }
    return permuted(y, from);
}

static int movedim(const OpCall *c, OpTensor *y, Error *err)
{
    int a, b, from[OP_MAX_RANK] = {0}, k = 0;
    if (op_dim(c->arg[1].integer[0], y->rank, &a, err)) return -1;
    if (op_dim(c->arg[2].integer[0], y->rank, &b, err)) return -1;
    for (int d = 0; d < y->rank; d++) {
        k += k == a;
        from[d] = d == b ? a : k++;
    }
    return permuted(y, from);
}

static void drop(OpTensor *y, int dim)
{
    y->rank--;
    for (int d = dim; d < y->rank; d++) {
        y->size[d] = y->size[d + 1];
        y->stride[d] = y->stride[d + 1];
    }
}

static int squeeze(const OpCall *c, OpTensor *y, Error *err)
{
    int dim, out = 0;
    for (int i = 0; c->n_args > 1 && i < c->arg[1].n + (c->arg[1].kind == OP_INT); i++) {
        if (op_dim(c->arg[1].integer[i], y->rank, &dim, err)) return -1;
        out |= 1 << dim;
    }
    for (int d = y->rank - 1; d >= 0; d--)
        if (y->size[d] == 1 && (c->n_args == 1 || out & 1 << d)) drop(y, d);
    return 0;
}

static int unsqueeze(const OpCall *c, OpTensor *y, Error *err)
{
    int dim;
    if (op_dim(c->arg[1].integer[0], y->rank + 1, &dim, err)) return -1;
    if (y->rank == OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "expected a rank below %d", OP_MAX_RANK);
    for (int d = y->rank++; d > dim; d--) {
        y->size[d] = y->size[d - 1];
        y->stride[d] = y->stride[d - 1];
    }
    y->stride[dim] = dim == y->rank - 1 ? 1 : y->size[dim] * y->stride[dim];
    y->size[dim] = 1;
    return 0;
}

static int need_rank(const OpTensor *y, Error *err)
{
    return y->rank ? 0 : error_set(err, ERROR_INVALID, "a tensor of rank 0 cannot be cut");
}

static int select_one(const OpCall *c, OpTensor *y, Error *err)
{
    int dim;
    int64_t at = c->arg[2].integer[0];
    if (need_rank(y, err) || op_dim(c->arg[1].integer[0], y->rank, &dim, err)) return -1;
    if (at < -y->size[dim] || at >= y->size[dim])
        return error_set(err, ERROR_INVALID, "index %lld is outside of dimension %d of size %lld",
                         (long long)at, dim, (long long)y->size[dim]);
    y->offset += (at < 0 ? at + y->size[dim] : at) * y->stride[dim];
    drop(y, dim);
    return 0;
}

/* [start, start + n) of a dimension, within it. */
static void cut(OpTensor *y, int dim, int64_t start, int64_t n)
{
    y->offset += start * y->stride[dim];
    y->size[dim] = n;
}

static int64_t within(const OpValue *v, int64_t otherwise, int64_t n)
{
    int64_t at = v->kind == OP_NONE ? otherwise : v->integer[0];
    if (at < 0) at += n;
    return at < 0 ? 0 : at > n ? n : at;
}

static int stretch(OpTensor *y, int dim, int64_t step, Error *err)
{
    if (__builtin_mul_overflow(y->stride[dim], step, &y->stride[dim]) || y->stride[dim] > INT64_C(1)
                                                                                              << 48)
        return error_set(err, ERROR_LIMIT, "a stride is above 2^48");
    return 0;
}

static int slice(const OpCall *c, OpTensor *y, Error *err)
{
    int dim;
    int64_t step = c->arg[4].integer[0];
    if (need_rank(y, err) || op_dim(c->arg[1].integer[0], y->rank, &dim, err)) return -1;
    if (step < 1)
        return error_set(err, ERROR_INVALID, "the step %lld is not positive", (long long)step);
    int64_t n = y->size[dim], from = within(&c->arg[2], 0, n), to = within(&c->arg[3], n, n);
    int64_t length = to > from ? to - from : 0;
    cut(y, dim, from, length / step + (length % step != 0));
    return stretch(y, dim, step, err);
}

static int narrow(const OpCall *c, OpTensor *y, Error *err)
{
    int dim;
    int64_t start = c->arg[2].integer[0], length = c->arg[3].integer[0];
    if (need_rank(y, err) || op_dim(c->arg[1].integer[0], y->rank, &dim, err)) return -1;
    int64_t n = y->size[dim];
    if (start < 0 && start >= -n) start += n;
    if (start < 0 || start > n || length < 0 || length > n - start)
        return error_set(err, ERROR_INVALID,
                         "[%lld, +%lld) is outside of dimension %d of size %lld", (long long)start,
                         (long long)length, dim, (long long)n);
    cut(y, dim, start, length);
    return 0;
}

static int unfold(const OpCall *c, OpTensor *y, Error *err)
{
    int dim = 0;
    int64_t size = c->arg[2].integer[0], step = c->arg[3].integer[0];
    if (op_dim(c->arg[1].integer[0], y->rank, &dim, err)) return -1;
    int64_t n = y->rank ? y->size[dim] : 1, stride = y->rank ? y->stride[dim] : 1;
    if (size < 0 || size > n || step < 1 || step > INT64_C(1) << 48 || y->rank == OP_MAX_RANK)
        return error_set(err, ERROR_INVALID,
                         "a dimension of size %lld has no windows of size %lld "
                         "at steps of %lld",
                         (long long)n, (long long)size, (long long)step);
    if (y->rank) {
        y->size[dim] = (n - size) / step + 1;
        if (stretch(y, dim, step, err)) return -1;
    }
    y->size[y->rank] = size;
    y->stride[y->rank++] = stride;
    return 0;
}

/* sizes[d] -1 keeps a size. */
static int expand_to(OpTensor *y, int rank, const int64_t *sizes, Error *err)
{
    OpTensor x = *y;
    if (rank < x.rank || rank > OP_MAX_RANK)
        return error_set(err, ERROR_INVALID, "expected a rank of %d to %d, found %d", x.rank,
                         OP_MAX_RANK, rank);
    y->rank = rank;
    for (int d = rank - 1; d >= 0; d--) {
        int own = d - (rank - x.rank);
        int64_t size = own >= 0 ? x.size[own] : 1, want = sizes[d];
        y->stride[d] = own >= 0       ? x.stride[own]
                       : d < rank - 1 ? y->size[d + 1] * y->stride[d + 1]
                                      : 1;
        if (want == -1 && own >= 0) want = size;
        if (want < 0 || (want != size && size != 1))
            return error_set(err, ERROR_INVALID, "dimension %d of size %lld cannot become %lld", d,
                             (long long)size, (long long)want);
        if (want != size || !x.rank) y->stride[d] = 0;
        y->size[d] = want;
    }
    return 0;
}

static int expand(const OpCall *c, OpTensor *y, Error *err)
{
    return expand_to(y, c->arg[1].n, c->arg[1].integer, err);
}

static int expand_as(const OpCall *c, OpTensor *y, Error *err)
{
    const OpTensor *other = op_tensor(c, 1);
    return expand_to(y, other->rank, other->size, err);
}

static int diagonal(const OpCall *c, OpTensor *y, Error *err)
{
    int64_t k = c->arg[1].integer[0];
    int a, b;
    if (op_dim(c->arg[2].integer[0], y->rank, &a, err)) return -1;
    if (op_dim(c->arg[3].integer[0], y->rank, &b, err)) return -1;
    if (a == b || y->rank < 2)
        return error_set(err, ERROR_INVALID, "a diagonal needs two dimensions");
    int64_t rows = y->size[a] - (k < 0 ? (k < -y->size[a] ? y->size[a] : -k) : 0),
            cols = y->size[b] - (k > 0 ? (k > y->size[b] ? y->size[b] : k) : 0);
    int64_t n = rows < cols ? rows : cols, stride = y->stride[a] + y->stride[b];
    if (n > 0) y->offset += k >= 0 ? k * y->stride[b] : -k * y->stride[a];
    drop(y, a > b ? a : b);
    drop(y, a > b ? b : a);
    y->size[y->rank] = n;
    y->stride[y->rank++] = stride;
    return 0;
}

/* A negative stride: only a copy has it. */
static int flip(const OpCall *c, OpTensor *y, Error *err)
{
    int dim, seen = 0;
    for (int i = 0; i < c->arg[1].n; i++) {
        if (op_dim(c->arg[1].integer[i], y->rank, &dim, err)) return -1;
        if (seen & 1 << dim)
            return error_set(err, ERROR_INVALID, "dimension %d is given twice", dim);
        seen |= 1 << dim;
        if (!y->rank || !y->size[dim]) continue;
        y->offset += (y->size[dim] - 1) * y->stride[dim];
        y->stride[dim] = -y->stride[dim];
    }
    return 0;
}

/* ---- several results ---- */

static int piece(OpCall *c, int dim, int64_t start, int64_t n, Error *err)
{
    OpTensor y = *op_tensor(c, 0);
    cut(&y, dim, start, n);
    return op_view(c, (int)c->arg[0].integer[0], &y, err);
}

static int pieces(OpCall *c, int dim, int64_t n, int64_t each, Error *err)
{
    int64_t start = 0;
    do {
        int64_t length = n - start < each ? n - start : each;
        if (piece(c, dim, start, length, err)) return -1;
        start += each;
    } while (start < n);
    return 0;
}

static int infer_split(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int dim, chunks = !strcmp(c->op->name, "aten.chunk.default");
    int64_t each = c->arg[1].integer[0];
    if (need_rank(x, err) || op_dim(c->arg[2].integer[0], x->rank, &dim, err)) return -1;
    int64_t n = x->size[dim];
    if (each < 0 || each > INT64_C(1) << 48 || (!each && (n || chunks)))
        return error_set(err, ERROR_INVALID, "a dimension of size %lld cannot be split by %lld",
                         (long long)n, (long long)each);
    if (chunks) each = (n + each - 1) / each;
    return pieces(c, dim, n, each > 0 ? each : 1, err);
}

static int infer_split_sizes(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int dim;
    int64_t start = 0;
    if (need_rank(x, err) || op_dim(c->arg[2].integer[0], x->rank, &dim, err)) return -1;
    for (int i = 0; i < c->arg[1].n; i++) {
        int64_t n = c->arg[1].integer[i];
        if (n < 0 || n > x->size[dim] - start)
            return error_set(err, ERROR_INVALID, "the sizes do not add up to %lld",
                             (long long)x->size[dim]);
        if (piece(c, dim, start, n, err)) return -1;
        start += n;
    }
    return start == x->size[dim]
               ? 0
               : error_set(err, ERROR_INVALID, "the sizes add up to %lld, not %lld",
                           (long long)start, (long long)x->size[dim]);
}

/* Pieces of nearly the same size, the longer ones first. */
static int infer_sections(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int dim;
    int64_t n = c->arg[1].integer[0], start = 0;
    if (need_rank(x, err) || op_dim(c->arg[2].integer[0], x->rank, &dim, err)) return -1;
    if (n < 1 || n > OP_MAX_RESULTS)
        return error_set(err, ERROR_LIMIT, "expected 1 to %d sections, found %lld", OP_MAX_RESULTS,
                         (long long)n);
    for (int64_t i = 0; i < n; i++) {
        int64_t length = x->size[dim] / n + (i < x->size[dim] % n);
        if (piece(c, dim, start, length, err)) return -1;
        start += length;
    }
    return 0;
}

/* Pieces between places, each of which is a slice's end: negative ones count from the end. */
static int infer_cuts(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    const OpValue *at = &c->arg[1];
    int dim;
    if (need_rank(x, err) || op_dim(c->arg[2].integer[0], x->rank, &dim, err)) return -1;
    int64_t n = x->size[dim], start = 0;
    for (int i = 0; i <= at->n; i++) {
        int64_t end = i == at->n ? n : at->integer[i] < 0 ? at->integer[i] + n : at->integer[i];
        end = end < 0 ? 0 : end > n ? n : end;
        if (piece(c, dim, start, end > start ? end - start : 0, err)) return -1;
        start = end;
    }
    return 0;
}

static int infer_unbind(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int dim;
    if (need_rank(x, err) || op_dim(c->arg[1].integer[0], x->rank, &dim, err)) return -1;
    for (int64_t i = 0; i < x->size[dim]; i++) {
        OpTensor y = *x;
        y.offset += i * y.stride[dim];
        drop(&y, dim);
        if (op_view(c, (int)c->arg[0].integer[0], &y, err)) return -1;
    }
    return 0;
}

static int infer_broadcast(OpCall *c, Error *err)
{
    const OpTensor *t[OP_MAX_LIST] = {0};
    int64_t size[OP_MAX_RANK];
    int rank, n = c->arg[0].n;
    for (int i = 0; i < n; i++) t[i] = &c->tensor[c->arg[0].integer[i]];
    if (op_broadcast(t, n, size, &rank, err)) return -1;
    for (int i = 0; i < n; i++) {
        OpTensor y = *t[i];
        if (expand_to(&y, rank, size, err)) return -1;
        if (op_view(c, (int)c->arg[0].integer[i], &y, err)) return -1;
    }
    return 0;
}

/* The graph has the metadata that it asserts. */
static int infer_nothing(OpCall *c, Error *err)
{
    (void)c, (void)err;
    return 0;
}

#define ROW(aten, schema, kind, function)                                                   \
    {                                                                                       \
        "aten." aten, schema, strided_infer, strided_reference, strided_plain, NULL,        \
            kind == STRIDED_COPY ? 0 : OP_VIEW, &(const StridedView){kind, function}, NULL, \
            &strided_elements                                                               \
    }
#define MANY(aten, schema, infer)                                                 \
    {                                                                             \
        "aten." aten, schema, infer, strided_reference, NULL, NULL, OP_VIEW, NULL \
    }
#define SELF "Tensor self"

static const Op table[] = {
    ROW("alias.default", SELF, STRIDED_VIEW, same),
    ROW("detach.default", SELF, STRIDED_VIEW, same),
    ROW("detach_.default", SELF, STRIDED_VIEW, same),
    ROW("clone.default", SELF ", *, Any? memory_format=None", STRIDED_COPY, same),
    ROW("lift_fresh_copy.default", SELF, STRIDED_COPY, same),
    ROW("contiguous.default", SELF ", *, Any? memory_format=None", STRIDED_MAYBE, contiguous),
    ROW("view.default", SELF ", int[] size", STRIDED_MAYBE, view),
    ROW("_unsafe_view.default", SELF ", int[] size", STRIDED_MAYBE, view),
    ROW("reshape.default", SELF ", int[] shape", STRIDED_MAYBE, view),
    ROW("view_as.default", SELF ", Tensor other", STRIDED_MAYBE, view_as),
    ROW("flatten.using_ints", SELF ", int start_dim=0, int end_dim=-1", STRIDED_MAYBE, flatten),
    ROW("unflatten.int", SELF ", int dim, int[] sizes", STRIDED_MAYBE, unflatten),
    ROW("transpose.int", SELF ", int dim0, int dim1", STRIDED_VIEW, transpose),
    ROW("permute.default", SELF ", int[] dims", STRIDED_VIEW, permute),
    ROW("movedim.int", SELF ", int source, int destination", STRIDED_VIEW, movedim),
    ROW("numpy_T.default", SELF, STRIDED_VIEW, reversed),
    ROW("t.default", SELF, STRIDED_VIEW, transpose_matrix),
    ROW("mT.default", SELF, STRIDED_VIEW, transpose_last),
    ROW("squeeze.default", SELF, STRIDED_VIEW, squeeze),
    ROW("squeeze.dim", SELF ", int dim", STRIDED_VIEW, squeeze),
    ROW("squeeze.dims", SELF ", int[] dim", STRIDED_VIEW, squeeze),
    ROW("unsqueeze.default", SELF ", int dim", STRIDED_VIEW, unsqueeze),
    ROW("select.int", SELF ", int dim, int index", STRIDED_VIEW, select_one),
    ROW("slice.Tensor", SELF ", int dim=0, int? start=None, int? end=None, int step=1",
        STRIDED_VIEW, slice),
    ROW("narrow.default", SELF ", int dim, int start, int length", STRIDED_VIEW, narrow),
    ROW("unfold.default", SELF ", int dimension, int size, int step", STRIDED_VIEW, unfold),
    ROW("expand.default", SELF ", int[] size, *, bool implicit=False", STRIDED_VIEW, expand),
    ROW("expand_as.default", SELF ", Tensor other", STRIDED_VIEW, expand_as),
    ROW("diagonal.default", SELF ", int offset=0, int dim1=0, int dim2=1", STRIDED_VIEW, diagonal),
    ROW("flip.default", SELF ", int[] dims", STRIDED_COPY, flip),
    MANY("split.Tensor", SELF ", int split_size, int dim=0", infer_split),
    MANY("split_with_sizes.default", SELF ", int[] split_sizes, int dim=0", infer_split_sizes),
    MANY("chunk.default", SELF ", int chunks, int dim=0", infer_split),
    MANY("tensor_split.sections", SELF ", int sections, int dim=0", infer_sections),
    MANY("tensor_split.indices", SELF ", int[] indices, int dim=0", infer_cuts),
    MANY("unbind.int", SELF ", int dim=0", infer_unbind),
    MANY("broadcast_tensors.default", "Tensor[] tensors", infer_broadcast),
    MANY("_assert_tensor_metadata.default",
         "Tensor a, int[]? size=None, int[]? stride=None, ScalarType? dtype=None, *, "
         "Any? device=None, Any? layout=None",
         infer_nothing),
};

const OpFamily view_family = {"view", table, sizeof table / sizeof *table};
