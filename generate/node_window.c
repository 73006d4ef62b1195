/* Windows: pools and depthwise convolutions as folds over the taps of a strided view, whose margins are
 * padding. */
#include <math.h>
#include <string.h>

#include "generate/node_build.h"
#include "ops/op_window.h"

enum { MOST_TAPS = 128 };

/* Along a dimension: taps of numbers that are equal at every binding. */
typedef struct {
    int lead, dims;
    int64_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], padding[WINDOW_DIMS], dilation[WINDOW_DIMS];
    Size in[WINDOW_DIMS], out[WINDOW_DIMS];
} Windows;

static Size number_over(Size a, int64_t by, int64_t plus)
{
    return size_plus(size_times(a, size_number(by)), size_number(plus));
}

/* The view in which a window's taps are the last dimensions: of a padded tensor where windows leave it. */
static int taps_of(Nodes *n, int a, const Windows *w, double fill)
{
    const int rank = n->node[a].rank;
    Size low[OP_MAX_RANK], size[OP_MAX_RANK], minus = size_number(-1);
    for (int d = 0; d < rank; d++) low[d] = size_number(0), size[d] = n->node[a].size[d];
    int inside = 1;
    for (int d = 0; d < w->dims; d++) {
        const int64_t span = (w->kernel[d] - 1) * w->dilation[d] + 1, more = span - w->stride[d];
        Size reach = number_over(size_plus(w->out[d], minus), w->stride[d], span);
        if (more > 0)
            size_know_sum(n->sizes, number_over(w->out[d], w->stride[d], 0), size_number(more));
        inside &= w->padding[d] == 0 && !size_less(w->in[d], reach);
        for (int k = 0; k < SIZE_BINDINGS; k++) inside &= reach.at[k] <= w->in[d].at[k];
        low[w->lead + d] = size_number(w->padding[d]);
        size[w->lead + d] = reach;
    }
    if (!inside) a = node_pad(n, a, low, size, fill);
    Node x = node_blank(NODE_VIEW, n->node[a].dtype);
    Size step[OP_MAX_RANK], s = size_number(1);
    for (int d = rank - 1; d >= 0; d--) {
        step[d] = s;
        s = size_times(s, n->node[a].size[d]);
    }
    x.arg[0] = a;
    x.rank = w->lead + 2 * w->dims;
    for (int d = 0; d < w->lead; d++) x.size[d] = n->node[a].size[d], x.step[d] = step[d];
    for (int d = 0; d < w->dims; d++) {
        int out = w->lead + d, tap = w->lead + w->dims + d;
        x.size[out] = w->out[d];
        x.step[out] = size_times(step[out], size_number(w->stride[d]));
        x.size[tap] = size_number(w->kernel[d]);
        x.step[tap] = size_times(step[out], size_number(w->dilation[d]));
    }
    return node_add(n, &x);
}

static unsigned tap_dims(const Windows *w)
{
    return ((1u << w->dims) - 1) << (w->lead + w->dims);
}

/* The numbers of a call's windows, from its arguments. 1: they differ from binding to binding, or are too
 * many. */
static int windows_of(const Nodes *n, const NodeCall *c, int a, Windows *w)
{
    const OpCall *call = c->call[0];
    Error unused;
    int64_t taps = 1;
    for (int d = 0; d < w->dims; d++) {
        w->stride[d] = w->kernel[d];
        w->padding[d] = 0, w->dilation[d] = 1;
        int stride = op_argument(call->op, "stride");
        if (stride >= 0 && call->arg[stride].kind == OP_INTS && call->arg[stride].n &&
            window_argument(call, "stride", d, 1, &w->stride[d], &unused))
            return 1;
        if (window_argument(call, "padding", d, 0, &w->padding[d], &unused)) return 1;
        if (op_argument(call->op, "dilation") >= 0 &&
            window_argument(call, "dilation", d, 1, &w->dilation[d], &unused))
            return 1;
        w->in[d] = n->node[a].size[w->lead + d];
        for (int k = 0; k < SIZE_BINDINGS; k++)
            w->out[d].at[k] = c->call[k]->result[0].size[w->lead + d];
        taps *= w->kernel[d];
    }
    return taps > MOST_TAPS;
}

/* ---- pools ---- */

static int64_t flag(const OpCall *c, const char *name)
{
    int at = op_argument(c->op, name);
    return at >= 0 && (c->arg[at].kind == OP_INT || c->arg[at].kind == OP_BOOL)
               ? c->arg[at].integer[0]
               : 0;
}

/* How many elements a window along a dimension has: of the tensor, or of its padding too. */
static int count_along(Nodes *n, int y, const Windows *w, int d, int padding)
{
    int at = node_coordinate(n, y, w->lead + d);
    int x = node_point(n,
                       padding ? "min(a * p0 + p1, n + p2) - (a * p0 - p2)"
                               : "min(a * p0 - p2 + p1, n) - max(a * p0 - p2, 0LL)",
                       DTYPE_I64, at, -1);
    if (padding) n->node[x].text = "min(a * p0 - p2 + p1, n + p2) - (a * p0 - p2)";
    n->node[x].p[0] = (double)w->stride[d];
    n->node[x].p[1] = (double)w->kernel[d];
    n->node[x].p[2] = (double)w->padding[d];
    n->node[x].scale = w->in[d];
    return x;
}

static int average(Nodes *n, const NodeCall *c, int sum, const Windows *w)
{
    const int64_t own = flag(c->call[0], "divisor_override"),
                  padding = flag(c->call[0], "count_include_pad");
    int64_t taps = 1;
    int margins = flag(c->call[0], "ceil_mode") != 0;
    for (int d = 0; d < w->dims; d++) {
        taps *= w->kernel[d];
        margins |= w->padding[d] && !padding;
    }
    if (own || !margins) {
        int y = node_made(n, "a / p0", sum, -1);
        n->node[y].p[0] = (double)(own ? own : taps);
        return y;
    }
    int count = -1;
    for (int d = 0; d < w->dims; d++) {
        int along = count_along(n, sum, w, d, padding != 0);
        count = count < 0 ? along : node_point(n, "a * b", DTYPE_I64, count, along);
    }
    return node_made(n, "a / b", sum, count);
}

static int pool(Nodes *n, const NodeCall *c, Windows *w)
{
    const OpCall *call = c->call[0];
    int a = node_operand(c, 0), mean = !strncmp(call->op->name, "aten.avg", 8);
    Error unused;
    if (a < 0 || !node_fixed(c, 1) || n->node[a].dtype == DTYPE_F64) return 1;
    w->lead = n->node[a].rank - w->dims;
    if (w->lead < 1 || w->lead + 2 * w->dims > OP_MAX_RANK) return 1;
    for (int d = 0; d < w->dims; d++)
        if (window_argument(call, "kernel_size", d, 1, &w->kernel[d], &unused)) return 1;
    if (windows_of(n, c, a, w)) return 1;
    int x = taps_of(n, node_made(n, "a", a, -1), w, mean ? 0 : -INFINITY);
    int y = node_fold_to(n, mean ? FOLD_SUM : FOLD_MAX, x, tap_dims(w), 0);
    if (mean) y = average(n, c, y, w);
    c->result[0] = node_cast(n, y, call->result[0].dtype);
    return 0;
}

/* An adaptive mean whose windows do not overlap. */
static int adaptive(Nodes *n, const NodeCall *c, Windows *w)
{
    const OpCall *call = c->call[0];
    int a = node_operand(c, 0);
    if (a < 0 || n->node[a].dtype == DTYPE_F64) return 1;
    const int rank = n->node[a].rank;
    Size size[OP_MAX_RANK], taps = size_number(1);
    unsigned dims = 0;
    int at = 0;
    w->lead = rank - w->dims;
    if (w->lead < 1 || w->lead + 2 * w->dims > OP_MAX_RANK) return 1;
    for (int d = 0; d < w->lead; d++) size[at++] = n->node[a].size[d];
    for (int d = 0; d < w->dims; d++) {
        Size out, in = n->node[a].size[w->lead + d];
        for (int k = 0; k < SIZE_BINDINGS; k++) out.at[k] = c->call[k]->result[0].size[w->lead + d];
        if (!size_divides(out, in)) return 1;
        size[at++] = out;
        dims |= 1u << at;
        size[at++] = size_over(in, out);
        taps = size_times(taps, size_over(in, out));
    }
    int sum =
        node_fold_to(n, FOLD_SUM, node_reshape(n, node_made(n, "a", a, -1), at, size), dims, 0);
    int y = node_made(n, "a / n", sum, -1);
    n->node[y].scale = taps;
    c->result[0] = node_cast(n, y, call->result[0].dtype);
    return 0;
}

/* ---- depthwise convolutions ---- */

/* 1: what an argument says is said at every binding. */
static int is_constant(const NodeCall *c, const char *name)
{
    const int at = op_argument(c->call[0]->op, name);
    for (int k = 1; k < SIZE_BINDINGS && at >= 0; k++) {
        const OpValue *a = &c->call[0]->arg[at], *b = &c->call[k]->arg[at];
        if (a->kind != b->kind || a->n != b->n) return 0;
        for (int i = 0; i < a->n && a->kind == OP_INTS; i++)
            if (a->integer[i] != b->integer[i]) return 0;
    }
    return 1;
}

/* Each group has one channel of the input, and as many filters as the result has channels for each of it. */
static int depthwise(Nodes *n, const NodeCall *c, Windows *w)
{
    const OpCall *call = c->call[0];
    int a = node_operand(c, 0), weight = node_operand(c, 1), bias = node_operand(c, 2);
    int padding = op_argument(call->op, "padding");
    if (a < 0 || weight < 0 || padding < 0 || call->arg[padding].kind != OP_INTS ||
        !is_constant(c, "stride") || !is_constant(c, "padding") || !is_constant(c, "dilation"))
        return 1;
    w->lead = 2;
    if (n->node[a].rank != 2 + w->dims || n->node[a].dtype == DTYPE_F64) return 1;
    const Size channels = n->node[a].size[1], filters = n->node[weight].size[0],
               one = size_number(1);
    if (!size_divides(channels, filters) || !size_is(n->node[weight].size[1], 1) ||
        size_is(channels, 1))
        return 1;
    const Size each = size_over(filters, channels);
    const int apart = !size_is(each, 1), rank = 2 + apart + 2 * w->dims;
    if (rank > OP_MAX_RANK) return 1;
    Size shape[OP_MAX_RANK] = {one, channels, each}, column[1 + WINDOW_DIMS] = {filters};
    Size whole[OP_MAX_RANK] = {n->node[a].size[0], filters};
    for (int d = 0; d < w->dims; d++) {
        Size taps = n->node[weight].size[2 + d];
        if (!size_constant(taps)) return 1;
        w->kernel[d] = taps.at[0];
        shape[2 + apart + d] = column[1 + d] = one;
        shape[2 + apart + w->dims + d] = taps;
    }
    if (windows_of(n, c, a, w)) return 1;
    for (int d = 0; d < w->dims; d++) whole[2 + d] = w->out[d];
    int x = taps_of(n, node_made(n, "a", a, -1), w, 0),
        filter = node_reshape(n, weight, rank, shape);
    if (apart) {
        Size of[OP_MAX_RANK];
        for (int d = 0; d < rank; d++) of[d] = d == 2 ? one : n->node[x].size[d - (d > 2)];
        x = node_reshape(n, x, rank, of);
    }
    w->lead += apart;
    int y = node_fold_to(n, FOLD_SUM, node_made(n, "a * b", x, filter), tap_dims(w), 0);
    if (apart)
        y = node_reshape(n, y, 2 + w->dims, whole);
    else if (w->dims == 2 && n->node[y].kind == NODE_FOLD)
        n->node[y].depthwise = 1;
    if (bias >= 0) y = node_made(n, "a + b", y, node_reshape(n, bias, 1 + w->dims, column));
    c->result[0] = node_cast(n, y, call->result[0].dtype);
    return 0;
}

int node_window(Nodes *n, const NodeCall *c, Error *err)
{
    static const struct {
        const char *name;
        int dims;
        int (*read)(Nodes *n, const NodeCall *c, Windows *w);
    } readers[] = {{"aten.max_pool1d.", 1, pool},
                   {"aten.max_pool2d.", 2, pool},
                   {"aten.max_pool3d.", 3, pool},
                   {"aten.avg_pool1d.", 1, pool},
                   {"aten.avg_pool2d.", 2, pool},
                   {"aten.avg_pool3d.", 3, pool},
                   {"aten.adaptive_avg_pool1d.", 1, adaptive},
                   {"aten.adaptive_avg_pool2d.", 2, adaptive},
                   {"aten.adaptive_avg_pool3d.", 3, adaptive},
                   {"aten.conv1d.", 1, depthwise},
                   {"aten.conv2d.", 2, depthwise},
                   {"aten.conv3d.", 3, depthwise}};
    const char *name = c->call[0]->op->name;
    (void)err;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        Windows w = {.dims = readers[i].dims};
        if (!strncmp(name, readers[i].name, strlen(readers[i].name)))
            return readers[i].read(n, c, &w);
    }
    return 1;
}
