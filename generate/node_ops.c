/* What operators are as nodes: pointwise ones, folds, and those that are made of both. Steps of operators
 * that ATen composes are read like operators of their own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/node_build.h"
#include "ops/op_chain.h"
#include "ops/op_pointwise.h"
#include "ops/op_product.h"
#include "ops/op_reduction.h"
#include "ops/op_strided.h"
#include "ops/op_text.h"
#include "ops/row/op_norm.h"
#include "ops/row/op_softmax.h"

int node_operand(const NodeCall *c, int arg)
{
    const OpValue *v = arg < c->call[0]->n_args ? &c->call[0]->arg[arg] : NULL;
    return v && v->kind == OP_TENSOR ? c->in[v->integer[0]] : -1;
}

int node_named(const NodeCall *c, const char *name)
{
    int at = op_argument(c->call[0]->op, name);
    return at < 0 ? -1 : node_operand(c, at);
}

/* 1: the numbers of an operator's arguments are equal at every binding, but for sizes. */
int node_fixed(const NodeCall *c, int from)
{
    for (int k = 1; k < SIZE_BINDINGS; k++)
        for (int i = from; i < c->call[0]->n_args; i++) {
            const OpValue *a = &c->call[0]->arg[i], *b = &c->call[k]->arg[i];
            if (a->kind == OP_TENSOR || a->kind == OP_TENSORS) continue;
            if (a->kind != b->kind || a->n != b->n ||
                (a->number != b->number && a->number == a->number))
                return 0;
        }
    return 1;
}

/* ---- pointwise ---- */

static Dtype promoted_type(const Nodes *n, const Node *x)
{
    Dtype d = DTYPE_B8;
    for (int i = 0; i < 3; i++) {
        Dtype own = x->arg[i] < 0 ? DTYPE_B8 : n->node[x->arg[i]].dtype;
        if (own == DTYPE_F64 || d == DTYPE_F64) return DTYPE_F64;
        if (dtype_is_float(own) || (x->arg[i] < 0 && x->number[i] != rint(x->number[i])))
            d = DTYPE_F32;
        else if (!dtype_is_float(d) && own != DTYPE_B8)
            d = DTYPE_I64;
    }
    return d == DTYPE_B8 ? DTYPE_I64 : d;
}

/* 1: an argument that is no tensor has one number at all bindings. */
static int is_number(const NodeCall *c, int arg)
{
    const OpValue *a = &c->call[0]->arg[arg];
    for (int k = 1; k < SIZE_BINDINGS; k++) {
        const OpValue *b = &c->call[k]->arg[arg];
        if (a->kind != b->kind || (a->number != b->number && a->number == a->number)) return 0;
    }
    return 1;
}

/* Notes the expression of a number as the graph's line has it. */
static void know_number(Nodes *n, Size s, const Op *op, int arg)
{
    const OpLine *l = &n->graph->line[n->line];
    char text[SIZE_TEXT];
    if (l->op != op || arg >= l->n_args || l->keyword[arg].len || l->value[arg].len >= sizeof text)
        return;
    snprintf(text, sizeof text, "%.*s", (int)l->value[arg].len, l->value[arg].p);
    size_know(n->sizes, s, text);
}

/* A number that is a size, such as the columns by which a module divides; -1: it is none. */
static int size_operand(Nodes *n, const NodeCall *c, int arg)
{
    Node x = node_blank(NODE_POINT, DTYPE_I64);
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        if (c->call[k]->arg[arg].kind != OP_INT) return -1;
        x.scale.at[k] = c->call[k]->arg[arg].integer[0];
    }
    if (size_constant(x.scale)) return -1;
    know_number(n, x.scale, c->call[0]->op, arg);
    x.text = "n";
    x.type = text_type(DTYPE_I64);
    return node_add(n, &x);
}

static int pointwise(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    const Pointwise *w = call->op->detail;
    const Dtype result = call->result[0].dtype;
    (void)err;
    if (!node_fixed(c, w->operands) || !w->operands || dtype_is_float8(result)) return 1;
    Node x = node_blank(NODE_POINT, dtype_is_small(result) ? DTYPE_I64 : result);
    x.text = pointwise_text(call);
    for (int i = 0; i < w->operands; i++) {
        x.arg[i] = node_operand(c, i);
        if (x.arg[i] < 0) x.arg[i] = size_operand(n, c, i);
        if (x.arg[i] < 0 && !is_number(c, i)) return 1;
        if (x.arg[i] < 0) x.number[i] = call->arg[i].kind == OP_NONE ? NAN : call->arg[i].number;
    }
    pointwise_parameters(call, x.p);
    x.rank = call->result[0].rank;
    for (int d = 0; d < x.rank; d++)
        for (int k = 0; k < SIZE_BINDINGS; k++) x.size[d].at[k] = c->call[k]->result[0].size[d];
    x.type = text_type(x.dtype == DTYPE_B8 ? promoted_type(n, &x) : x.dtype);
    c->result[0] = node_cast(n, node_add(n, &x), result);
    return 0;
}

/* 1: floats that lie between two numbers of 32 bits: a conversion to 64 bits takes four times as long. */
static int is_clamped(const Nodes *n, int a)
{
    while (n->node[a].kind == NODE_VIEW) a = n->node[a].arg[0];
    const Node *x = &n->node[a];
    return !n->plain && x->kind == NODE_POINT && x->dtype == DTYPE_F32 &&
           !strcmp(x->text, "a < p0 ? p0 : a > p1 ? p1 : a") && fabs(x->p[0]) < 0x1p31 &&
           fabs(x->p[1]) < 0x1p31;
}

/* The elements of a node with a type of their own. */
int node_cast(Nodes *n, int a, Dtype to)
{
    static const char *const wraps[DTYPES] = {[DTYPE_B8] = "a != 0",
                                              [DTYPE_I8] = "(signed char)a",
                                              [DTYPE_U8] = "(unsigned char)a",
                                              [DTYPE_I16] = "(short)a"};
    if (n->node[a].dtype == to) return a;
    const int narrow = (to == DTYPE_I8 || to == DTYPE_U8 || to == DTYPE_I16) && is_clamped(n, a),
              y = node_point(n, wraps[to] ? wraps[to] : "a", to, a, -1);
    if (narrow) n->node[y].from = "int";
    return y;
}

/* Copies in C order of a view. */
static int strided(Nodes *n, const NodeCall *c, Error *err)
{
    const StridedView *v = c->call[0]->op->detail;
    int a = node_operand(c, 0), rc[SIZE_BINDINGS];
    const OpCall *call = c->call[0];
    if (a < 0) return 1;
    Dtype to = call->result[0].dtype;
    Node x = node_blank(NODE_VIEW, n->node[a].dtype);
    if (dtype_is_float8(to) && x.dtype != to) return 1;
    x.arg[0] = a;
    x.rank = call->result[0].rank;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        OpTensor t = *op_tensor(c->call[k], 0);
        op_contiguous(&t);
        OpTensor y = t;
        rc[k] = v->shape(c->call[k], &y, err);
        if (rc[k] < 0) return -1;
        if (rc[k]) op_contiguous(&y);
        for (int d = 0; d < x.rank; d++) {
            x.size[d].at[k] = c->call[k]->result[0].size[d];
            x.step[d].at[k] = y.stride[d];
        }
        x.offset.at[k] = y.offset;
    }
    int at = node_add(n, &x);
    c->result[0] = node_cast(n, at, call->result[0].dtype);
    return 0;
}

/* ---- folds ---- */

/* A fold whose result has the folded dimensions with size 1, if asked for. */
static int kept_to(Nodes *n, int y, int a, unsigned dims, int keep)
{
    Size size[OP_MAX_RANK];
    for (int d = 0; d < n->node[a].rank; d++)
        size[d] = dims >> d & 1 ? size_number(1) : n->node[a].size[d];
    return keep ? node_reshape(n, y, n->node[a].rank, size) : y;
}

int node_fold_to(Nodes *n, Fold how, int a, unsigned dims, int keep)
{
    return kept_to(n, node_fold(n, how, a, dims), a, dims, keep);
}

static Size folded(const Nodes *n, int a, unsigned dims)
{
    Size s = size_number(1);
    for (int d = 0; d < n->node[a].rank; d++)
        if (dims >> d & 1) s = size_times(s, n->node[a].size[d]);
    return s;
}

/* Computed in float, also of half types. */
int node_made(Nodes *n, const char *text, int a, int b)
{
    Dtype d = n->node[a].dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    /* A copy would be another value, which kernels would compute or store once more. */
    if (!strcmp(text, "a") && n->node[a].dtype == d) return a;
    return node_point(n, text, d, a, b);
}

static int mean_of(Nodes *n, int a, unsigned dims, int keep)
{
    Size count = folded(n, a, dims);
    int y =
        node_made(n, "a / n", node_fold_to(n, FOLD_SUM, node_made(n, "a", a, -1), dims, keep), -1);
    n->node[y].scale = count;
    return y;
}

typedef struct {
    int a;
    unsigned dims;
    int keep; /* with the folded dimensions, of size 1 */
} Folded;

/* The mean square distance from the mean, times n / (n - correction), and the mean. */
static int variance_of(Nodes *n, Folded f, double correction, int *mean)
{
    int spread = node_pair(n, FOLD_SPREAD, FOLD_MEAN, node_made(n, "a", f.a, -1), f.dims);
    *mean = kept_to(n, n->node[spread].pair, f.a, f.dims, f.keep);
    int y = node_made(n, "a / max(n - p0, 0.f)", kept_to(n, spread, f.a, f.dims, f.keep), -1);
    n->node[y].scale = folded(n, f.a, f.dims);
    n->node[y].p[0] = correction;
    return y;
}

static int norm_fold(Nodes *n, int a, unsigned dims, double order, int keep)
{
    int size = node_made(n, "fabs(a)", a, -1);
    if (isinf(order)) return node_fold_to(n, order > 0 ? FOLD_MAX : FOLD_MIN, size, dims, keep);
    if (order == 1) return node_fold_to(n, FOLD_SUM, size, dims, keep);
    if (order == 2)
        return node_made(n, "sqrt(a)",
                         node_fold_to(n, FOLD_SUM, node_made(n, "a * a", a, -1), dims, keep), -1);
    if (order <= 0) return -1;
    int power = node_made(n, "pow(a, p0)", size, -1);
    n->node[power].p[0] = order;
    int y = node_made(n, "pow(a, p0)", node_fold_to(n, FOLD_SUM, power, dims, keep), -1);
    n->node[y].p[0] = 1 / order;
    return y;
}

/* 1: no one-pass order of the elements is known. */
static int has_places(const Nodes *n, int a)
{
    Dtype d = n->node[a].dtype;
    return dtype_is_float(d) && d != DTYPE_F64;
}

static int place(Nodes *n, const NodeCall *c, int a, const Reduction *r)
{
    if (!has_places(n, a) || !r->dims) return 1;
    int y = node_place_of_most(n, a, r->dims, r->kind == REDUCE_ARGMIN);
    if (y < 0) return 1;
    Node x = node_blank(NODE_VIEW, DTYPE_I64);
    x.rank = c->call[0]->result[0].rank;
    for (int d = 0; d < x.rank; d++)
        for (int k = 0; k < SIZE_BINDINGS; k++) x.size[d].at[k] = c->call[k]->result[0].size[d];
    c->result[0] = node_reshape(n, y, x.rank, x.size);
    return 0;
}

static int reduction(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    Reduction r;
    int a = node_operand(c, 0), keep = op_argument(call->op, "keepdim"), y = -1, mean;
    if (reduction_of(call, 0, &r, err)) return -1;
    if (a < 0 || !node_fixed(c, 1)) return 1;
    if (r.kind == REDUCE_ARGMAX || r.kind == REDUCE_ARGMIN) return place(n, c, a, &r);
    keep = keep >= 0 && call->arg[keep].integer[0];
    if (!r.dims) return 1;
    int floating = dtype_is_float(call->result[0].dtype) && dtype_is_float(n->node[a].dtype);
    if (!floating && r.kind != REDUCE_SUM &&
        (dtype_is_float(call->result[0].dtype) || r.kind > REDUCE_MIN))
        return 1;
    int x = floating ? node_made(n, "a", a, -1) : node_cast(n, a, call->result[0].dtype);
    switch (r.kind) {
    case REDUCE_SUM: y = node_fold_to(n, FOLD_SUM, x, r.dims, keep); break;
    case REDUCE_PROD: y = node_fold_to(n, FOLD_PROD, x, r.dims, keep); break;
    case REDUCE_MEAN: y = mean_of(n, x, r.dims, keep); break;
    case REDUCE_MAX:
    case REDUCE_MAX_AT: y = node_fold_to(n, FOLD_MAX, x, r.dims, keep); break;
    case REDUCE_MIN:
    case REDUCE_MIN_AT: y = node_fold_to(n, FOLD_MIN, x, r.dims, keep); break;
    case REDUCE_NORM: y = norm_fold(n, x, r.dims, r.order, keep); break;
    case REDUCE_VAR:
    case REDUCE_VAR_MEAN: y = variance_of(n, (Folded){x, r.dims, keep}, r.order, &mean); break;
    case REDUCE_STD:
    case REDUCE_STD_MEAN:
        y = node_made(n, "sqrt(a)", variance_of(n, (Folded){x, r.dims, keep}, r.order, &mean), -1);
        break;
    default: return 1;
    }
    if (y < 0) return 1;
    c->result[0] = node_cast(n, y, call->result[0].dtype);
    if ((r.kind == REDUCE_MAX_AT || r.kind == REDUCE_MIN_AT) && has_places(n, a)) {
        int at = node_place_of_most(n, a, r.dims, r.kind == REDUCE_MIN_AT);
        if (at >= 0) c->result[1] = kept_to(n, at, a, r.dims, keep);
    }
    if (r.kind == REDUCE_VAR_MEAN || r.kind == REDUCE_STD_MEAN)
        c->result[1] = node_cast(n, mean, call->result[1].dtype);
    return 0;
}

/* The largest element and the sum of exponentials of one part, with the folded dimension. */
static void part_folds(Nodes *n, int a, int dim, int *most, int *sum)
{
    const unsigned dims = 1u << dim;
    if (size_is(n->node[a].size[dim], 1)) {
        *most = a;
        *sum = node_number(n, 1, n->node[a].dtype);
        return;
    }
    const int pair = node_pair(n, FOLD_EXPSUM, FOLD_MAX, a, dims);
    *most = kept_to(n, n->node[pair].pair, a, dims, 1);
    *sum = kept_to(n, pair, a, dims, 1);
}

/* The same of a whole row. One of two parts that lie side by side, such as scores and a sink, has the folds
 * of these: the rows of a part are whole vectors, and no element asks in which part it lies. */
static void row_folds(Nodes *n, int x, int dim, int *most, int *sum)
{
    int part[2], m[2], s[2];
    if (n->plain || !node_joined_parts(n, x, dim, part)) {
        part_folds(n, x, dim, most, sum);
        return;
    }
    for (int i = 0; i < 2; i++) part_folds(n, node_made(n, "a", part[i], -1), dim, &m[i], &s[i]);
    *most = node_made(n, "a != a || a > b ? a : b", m[0], m[1]);
    for (int i = 0; i < 2; i++)
        s[i] = node_point3(n, "b == -INFINITY ? 0 : a * exp(b - c)", (int[]){s[i], m[i], *most},
                           n->node[*most].dtype);
    *sum = node_made(n, "a + b", s[0], s[1]);
}

static int composed(Nodes *n, const NodeCall *c, Error *err);

static int softmax(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    int a = node_operand(c, 0), dim;
    Softmax s;
    if (softmax_of(call, &s, err) ||
        op_dim(call->arg[1].integer[0], call->tensor[0].rank, &dim, err))
        return -1;
    if (a < 0) return 1;
    int x = node_made(n, "a", a, -1);
    int most, sum;
    row_folds(n, x, dim, &most, &sum);
    int less = node_made(n, "a - b", x, most);
    int y = s.logarithm ? node_made(n, "a - b", less, node_made(n, "log(a)", sum, -1))
                        : node_made(n, "a / b", node_made(n, "exp(a)", less, -1), sum);
    c->result[0] = node_cast(n, y, call->result[0].dtype);
    return 0;
}

/* One pass gives the largest element and the sum of exponentials. An infinite one is the result, as where it
 * is taken for 0. Of half types the logarithm is rounded before it is added. */
static int logsumexp(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    const int a = node_operand(c, 0), keep = (int)call->arg[2].integer[0];
    unsigned dims = 0;
    for (int i = 0; i < call->arg[1].n; i++) {
        int dim;
        if (op_dim(call->arg[1].integer[i], call->tensor[0].rank, &dim, err)) return -1;
        dims |= 1u << dim;
    }
    if (a < 0 || !dims || n->plain || n->node[a].dtype != DTYPE_F32) return composed(n, c, err);
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (!op_elements(op_tensor(c->call[k], 0))) return composed(n, c, err);
    const int sum = node_pair(n, FOLD_EXPSUM, FOLD_MAX, node_made(n, "a", a, -1), dims),
              most = kept_to(n, n->node[sum].pair, a, dims, keep);
    c->result[0] = node_made(n, "isinf(b) ? b : log(a) + b", kept_to(n, sum, a, dims, keep), most);
    return 0;
}

/* ---- norms ---- */

/* The shape in which a norm's statistics are folds over `dims`, and its channels broadcast. */
typedef struct {
    int rank;
    Size size[4];
    unsigned dims;
    int channel_rank;
    Size channel[3];
} NormShape;

static Size norm_number(const Norm *m, int64_t (*of)(const Norm *m))
{
    Size s;
    for (int k = 0; k < SIZE_BINDINGS; k++) s.at[k] = of(&m[k]);
    return s;
}
static int64_t rows_of(const Norm *m)
{
    return m->rows;
}
static int64_t length_of(const Norm *m)
{
    return m->n;
}
static int64_t spread_of(const Norm *m)
{
    return m->spread;
}
static int64_t channels_of(const Norm *m)
{
    return m->channels;
}
static int64_t batch_of(const Norm *m)
{
    return m->x->size[0];
}
static int64_t groups_of(const Norm *m)
{
    return m->x->size[0] ? m->rows / m->x->size[0] : 1;
}

static NormShape norm_shape(const Norm *m)
{
    const Size batch = norm_number(m, batch_of), spread = norm_number(m, spread_of),
               channels = norm_number(m, channels_of), one = size_number(1);
    if (m->kind == NORM_LAYER || m->kind == NORM_RMS) {
        Size n = norm_number(m, length_of);
        return (NormShape){2, {norm_number(m, rows_of), n}, 2, 1, {n}};
    }
    if (m->kind == NORM_GROUP) {
        Size groups = norm_number(m, groups_of), own = size_over(channels, groups);
        return (NormShape){4, {batch, groups, own, spread}, 12, 3, {groups, own, one}};
    }
    return (NormShape){
        3, {batch, channels, spread}, m->kind == NORM_BATCH ? 5 : 4, 2, {channels, one}};
}

static int channel_node(Nodes *n, const NodeCall *c, const NormShape *s, const char *name)
{
    int a = node_named(c, name);
    return a < 0 ? -1 : node_reshape(n, a, s->channel_rank, s->channel);
}

static int normalised(Nodes *n, const NodeCall *c, const Norm *m, int x, const NormShape *s)
{
    int less = x, spread;
    if (!m->own) {
        less = node_made(n, "a - b", x, channel_node(n, c, s, "running_mean"));
        spread = channel_node(n, c, s, "running_var");
    } else if (m->kind == NORM_RMS) {
        spread = mean_of(n, node_made(n, "a * a", x, -1), s->dims, 1);
    } else {
        int mean;
        spread = variance_of(n, (Folded){x, s->dims, 1}, 0, &mean);
        less = node_made(n, "a - b", x, mean);
    }
    int scale = node_made(n, "rsqrt(a + p0)", spread, -1);
    n->node[scale].p[0] = m->eps;
    int y = node_made(n, "a * b", less, scale), weight = channel_node(n, c, s, "weight"),
        bias = channel_node(n, c, s, "bias");
    if (weight >= 0) y = node_made(n, "a * b", y, weight);
    return bias >= 0 ? node_made(n, "a + b", y, bias) : y;
}

static int norm(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    Norm m[SIZE_BINDINGS];
    int a = node_operand(c, 0);
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (norm_of(c->call[k], &m[k], err)) return -1;
    if (a < 0 || m[0].results == NORM_UPDATED) return 1;
    NormShape s = norm_shape(m);
    int x = node_reshape(n, node_made(n, "a", a, -1), s.rank, s.size);
    int y = normalised(n, c, m, x, &s);
    y = node_reshape(n, y, n->node[a].rank, n->node[a].size);
    c->result[0] = node_cast(n, y, call->result[0].dtype);
    return 0;
}

/* ---- compositions: their steps at every binding ---- */

typedef struct {
    int n, result;
    struct {
        OpCall *step; /* NULL: the input with the index `input` */
        int value, input, operand[OP_MAX_TENSORS];
    } at[64];
} Steps;

static int note_step(void *of, const ChainSeen *seen, Error *err)
{
    Steps *s = of;
    if (s->n == 64) return error_set(err, ERROR_UNSUPPORTED, "more than 64 steps");
    s->at[s->n].value = seen->value;
    s->at[s->n].input = seen->input;
    s->at[s->n].step = NULL;
    if (seen->step) {
        s->at[s->n].step = memory_alloc(sizeof *seen->step);
        *s->at[s->n].step = *seen->step;
        for (int i = 0; i < seen->step->n_tensors; i++) s->at[s->n].operand[i] = seen->operand[i];
    }
    s->n++;
    return 0;
}

static int read_step(Nodes *n, const NodeCall *c, Steps *const *s, int i, int *of)
{
    int in[OP_MAX_TENSORS];
    Error unused;
    NodeCall call = {.in = in, .result = of + s[0]->at[i].value};
    if (!s[0]->at[i].step) {
        of[s[0]->at[i].value] = c->in[s[0]->at[i].input];
        return 0;
    }
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        call.call[k] = s[k]->at[i].step;
        if (!call.call[k] || call.call[k]->op != call.call[0]->op) return 1;
    }
    for (int t = 0; t < call.call[0]->n_tensors; t++)
        if ((in[t] = of[s[0]->at[i].operand[t]]) < 0) return 1;
    return nodes_of_call(n, &call, &unused);
}

static int composed(Nodes *n, const NodeCall *c, Error *err)
{
    enum { MAX_VALUES = 64 * 4 };
    Steps *s[SIZE_BINDINGS];
    int of[MAX_VALUES], rc = 0;
    for (int i = 0; i < MAX_VALUES; i++) of[i] = -1;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        s[k] = memory_alloc(sizeof *s[k]);
        ChainVisitor v = {s[k], note_step};
        s[k]->result = chain_visit(c->call[k], &v, err);
        if (s[k]->result < 0 || s[k]->n != s[0]->n) rc = 1;
    }
    for (int i = 0; i < s[0]->n && !rc; i++)
        rc = s[0]->at[i].value >= MAX_VALUES - OP_MAX_RESULTS || read_step(n, c, s, i, of);
    if (!rc) c->result[0] = of[s[0]->result];
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        for (int i = 0; i < s[k]->n; i++) free(s[k]->at[i].step);
        free(s[k]);
    }
    return rc || c->result[0] < 0;
}

/* A view of a step's input, by the strides that it gets of a tensor in C order. */
static int viewed(Nodes *n, const NodeCall *c, Error *err)
{
    OpCall *call = memory_alloc(sizeof *call);
    Node x = node_blank(NODE_VIEW, DTYPE_F32);
    int rc = 0;
    for (int k = 0; k < SIZE_BINDINGS && !rc; k++) {
        *call = *c->call[k];
        for (int i = 0; i < call->n_tensors; i++) op_contiguous(&call->tensor[i]);
        rc = op_infer(call, err) || call->n_results != 1 || call->view_of[0] < 0;
        const OpTensor *y = &call->result[0];
        if (rc) break;
        x.arg[0] = c->in[call->view_of[0]], x.arg[1] = x.arg[2] = -1;
        x.rank = y->rank;
        x.dtype = y->dtype;
        for (int d = 0; d < y->rank; d++)
            x.size[d].at[k] = y->size[d], x.step[d].at[k] = y->stride[d];
        x.offset.at[k] = y->offset;
    }
    free(call);
    if (!rc) c->result[0] = node_add(n, &x);
    return rc;
}

static int is_norm(const Op *op)
{
    static const char *const names[] = {"aten.layer_norm",    "aten.rms_norm",
                                        "aten.group_norm",    "aten.native_layer_norm",
                                        "aten.batch_norm",    "aten._native_batch_norm_legit_no",
                                        "aten.instance_norm", "aten.native_group_norm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(op->name, names[i], strlen(names[i]))) return 1;
    return 0;
}

/* ---- products ---- */

/* A product at every binding, and the dimensions of its result in their order: the d-th is dimension dim[d]
 * of group[d], or has size 1 where dim[d] is -1. */
typedef struct {
    Product at[SIZE_BINDINGS];
    int n, group[PRODUCT_DIMS], dim[PRODUCT_DIMS];
} Products;

static int64_t result_step(const Product *p, const Products *b, int d)
{
    return b->dim[d] < 0 ? INT64_MAX : p->step[PRODUCT_C][b->group[d]][b->dim[d]];
}

/* Fills the dimensions, the farthest apart first. Plain kernels have one of the batch in any case. */
static void order_dimensions(Products *b, int plain)
{
    const Product *p = &b->at[0];
    if (plain && !p->rank[PRODUCT_BATCH]) b->group[b->n] = PRODUCT_BATCH, b->dim[b->n++] = -1;
    for (int g = 0; g <= PRODUCT_COLUMNS; g++)
        for (int i = 0; i < p->rank[g]; i++) {
            int d = b->n++;
            for (; d && result_step(p, b, d - 1) < p->step[PRODUCT_C][g][i]; d--)
                b->group[d] = b->group[d - 1], b->dim[d] = b->dim[d - 1];
            b->group[d] = g, b->dim[d] = i;
        }
}

/* 1: the result is in C order, and one dimension at most is summed over. */
static int is_simple_product(const Products *b)
{
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        const Product *p = &b->at[k];
        int64_t step = 1;
        for (int g = 0; g < PRODUCT_GROUPS; g++)
            if (p->rank[g] != b->at[0].rank[g]) return 0;
        for (int d = b->n - 1; d >= 0 && b->dim[d] >= 0; d--) {
            if (result_step(p, b, d) != step) return 0;
            step *= p->size[b->group[d]][b->dim[d]];
        }
        if (p->rank[PRODUCT_DEPTH] > 1) return 0;
    }
    return b->n < OP_MAX_RANK && b->at[0].side[PRODUCT_A].tensor && b->at[0].side[PRODUCT_B].tensor;
}

/* The elements of an operand under the result's dimensions, and with `whole` under the depth; else those of
 * the term `term`. */
static int product_operand(Nodes *n, const NodeCall *c, const Products *b, ProductOperand side,
                           int whole, int term)
{
    const int in = c->in[b->at[0].side[side].tensor - c->call[0]->tensor];
    Node x = node_blank(NODE_VIEW, n->node[in].dtype);
    x.arg[0] = in;
    x.rank = b->n + whole;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        const Product *p = &b->at[k];
        const int64_t next = p->rank[PRODUCT_DEPTH] ? p->step[side][PRODUCT_DEPTH][0] : 0;
        for (int d = 0; d < b->n; d++) {
            const int g = b->group[d], i = b->dim[d];
            x.size[d].at[k] = i < 0 ? 1 : p->size[g][i];
            x.step[d].at[k] = i < 0 ? 0 : p->step[side][g][i];
        }
        if (whole) x.size[b->n].at[k] = p->count[PRODUCT_DEPTH], x.step[b->n].at[k] = next;
        x.offset.at[k] = term * next;
    }
    return node_made(n, "a", node_add(n, &x), -1);
}

static int times(Nodes *n, int a, double by)
{
    if (by == 1) return a;
    int y = node_made(n, "p0 * a", a, -1);
    n->node[y].p[0] = by;
    return y;
}

/* 1: the schedule has it as a sum of the kernel's own. */
static int is_own_product(const Nodes *n)
{
    char key[GRAPH_NAME];
    const int value = n->graph->first[n->line];
    snprintf(key, sizeof key, "%.44s", n->graph->name[value]);
    return genes_choose(n->genes, key, &(GenePoint){.gene = GENE_OWN, .most = 1});
}

/* 1: each sum has few terms at the timed sizes, such as the angles of a rotary embedding, which have one, and
 * rotations of points. `always`: as many at any size. */
static int has_few_terms(const Products *b, int *always)
{
    enum { FEW = 4 };
    const int64_t terms = b->at[0].count[PRODUCT_DEPTH];
    *always = 1;
    for (int k = 1; k < SIZE_BINDINGS; k++) *always &= b->at[k].count[PRODUCT_DEPTH] == terms;
    return terms <= FEW;
}

/* The sums one term after another, which are pointwise. */
static int added_terms(Nodes *n, const NodeCall *c, const Products *b, int terms)
{
    int y = -1;
    for (int k = 0; k < terms; k++) {
        int left = product_operand(n, c, b, PRODUCT_A, 0, k),
            right = product_operand(n, c, b, PRODUCT_B, 0, k);
        int term = node_made(n, "a * b", left, right);
        y = y < 0 ? term : node_made(n, "a + b", y, term);
    }
    return y;
}

/* As a fold: of plain kernels, which compute the sums themselves, and of few terms, which are pointwise where
 * their number is the same at any size. */
static int product(Nodes *n, const NodeCall *c, Error *err)
{
    Products b = {.n = 0};
    (void)err;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        if (!product_of_call(c->call[k], &b.at[k])) return 1;
        product_groups(&b.at[k], 1);
    }
    order_dimensions(&b, n->plain != NULL);
    const Product *p = &b.at[0];
    int y, always;
    const int few = has_few_terms(&b, &always) && !n->plain;
    if (!is_simple_product(&b) || !(few || (n->plain && is_own_product(n)))) return 1;
    if (few && always) {
        y = added_terms(n, c, &b, (int)p->count[PRODUCT_DEPTH]);
    } else {
        int left = product_operand(n, c, &b, PRODUCT_A, 1, 0),
            right = product_operand(n, c, &b, PRODUCT_B, 1, 0);
        y = node_fold(n, FOLD_SUM, node_made(n, "a * b", left, right), 1u << b.n);
    }
    y = times(n, y, p->alpha);
    if (p->side[PRODUCT_D].tensor && p->beta != 0)
        y = node_made(n, "a + b", y, times(n, product_operand(n, c, &b, PRODUCT_D, 0, 0), p->beta));
    Node x = node_blank(NODE_VIEW, DTYPE_F32);
    x.rank = c->call[0]->result[0].rank;
    for (int d = 0; d < x.rank; d++)
        for (int k = 0; k < SIZE_BINDINGS; k++) x.size[d].at[k] = c->call[k]->result[0].size[d];
    y = node_reshape(n, y, x.rank, x.size);
    c->result[0] = node_cast(n, y, c->call[0]->result[0].dtype);
    return 0;
}

/* 1: an operator on the bits of whole numbers. */
static int of_bits(const Op *op)
{
    return !strncmp(op->name, "aten.bitwise_", 13) || !strncmp(op->name, "aten.__", 7);
}

int nodes_of_call(Nodes *n, const NodeCall *c, Error *err)
{
    const Op *op = c->call[0]->op;
    const int truth = c->call[0]->result[0].dtype == DTYPE_B8;
    if (op->infer == pointwise_infer || (op->plain == pointwise_plain && (truth || of_bits(op))))
        return pointwise(n, c, err);
    if (op->infer == strided_infer) return strided(n, c, err);
    if (op->plain == reduction_plain) return reduction(n, c, err);
    if (op->plain == softmax_plain) return softmax(n, c, err);
    if (!strcmp(op->name, "aten.logsumexp.default")) return logsumexp(n, c, err);
    if (op->reference && op->infer == chain_infer) return composed(n, c, err);
    if (is_norm(op)) return norm(n, c, err);
    if (op->flags & OP_VIEW) return viewed(n, c, err);
    int rc = node_select(n, c, err);
    if (rc > 0) rc = node_window(n, c, err);
    if (rc > 0 && !n->plain && !strncmp(op->name, "aten.einsum", strlen("aten.einsum")))
        rc = node_einsum(n, c);
    return rc > 0 ? product(n, c, err) : rc;
}
