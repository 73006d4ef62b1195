/* Operators that choose elements: joined and padded tensors, triangles, constants, elements by number, and
 * the places of the largest ones. */
#include <stdio.h>
#include <string.h>

#include "generate/node_build.h"
#include "ops/op_reduction.h"
#include "ops/row/op_nll.h"

enum { MOST_JOINED = 4, MOST_STACKED = 16 }; /* a matrix of four rows, stacked by elements */

int node_number(Nodes *n, double v, Dtype dtype)
{
    Node x = node_blank(NODE_POINT, dtype);
    x.text = "a";
    x.type = "float";
    if (!dtype_is_float(dtype) || dtype == DTYPE_F64)
        x.type = dtype == DTYPE_F64 ? "double" : "long long";
    x.number[0] = v;
    return node_add(n, &x);
}

int node_point3(Nodes *n, const char *text, const int arg[3], Dtype dtype)
{
    int y = node_point(n, text, dtype, arg[0], arg[1]);
    Node *x = &n->node[y];
    if (arg[2] < 0) return y;
    x->arg[2] = arg[2];
    node_broadcast(x, &n->node[arg[2]]);
    return y;
}

/* A sum over elements that begin with zeros: zeros, and then the sum. */
static int pad_scan(Nodes *n, int a, const Size *low, const Size *size)
{
    Node x = n->node[a];
    for (int d = 0; d < x.rank; d++)
        if (!size_same(size[d], size_plus(low[d], x.size[d])) ||
            (d != x.axis && !size_is(low[d], 0)))
            return -1;
    x.arg[0] = node_pad(n, x.arg[0], low, size, 0);
    memcpy(x.size, size, (size_t)x.rank * sizeof *size);
    x.value = -1;
    return node_add(n, &x);
}

int node_pad(Nodes *n, int a, const Size *low, const Size *size, double fill)
{
    if (n->node[a].kind == NODE_SCAN && n->node[a].fold == FOLD_SUM && fill == 0) {
        int y = pad_scan(n, a, low, size);
        if (y >= 0) return y;
    }
    Node x = node_blank(NODE_PAD, n->node[a].dtype);
    x.arg[0] = a;
    x.rank = n->node[a].rank;
    x.number[0] = fill;
    int same = 1;
    for (int d = 0; d < x.rank; d++) {
        x.size[d] = size[d];
        x.step[d] = low[d];
        same &= size_is(low[d], 0) && size_same(size[d], n->node[a].size[d]);
    }
    return same ? a : node_add(n, &x);
}

int node_gather(Nodes *n, int a, int by, int axis, int across)
{
    const Node *of = &n->node[a], *at = &n->node[by];
    Node x = node_blank(NODE_GATHER, of->dtype);
    x.arg[0] = a;
    x.arg[1] = by;
    x.axis = axis;
    x.across = across;
    for (int d = 0; d < of->rank; d++)
        if (!across || d != axis)
            x.size[x.rank++] = across ? of->size[d] : at->size[d];
        else
            for (int e = 0; e < at->rank; e++) x.size[x.rank++] = at->size[e];
    return node_add(n, &x);
}

/* ---- joined ---- */

static void result_shape(const NodeCall *c, int result, Node *x)
{
    x->rank = c->call[0]->result[result].rank;
    for (int d = 0; d < x->rank; d++)
        for (int k = 0; k < SIZE_BINDINGS; k++)
            x->size[d].at[k] = c->call[k]->result[result].size[d];
}

/* A tensor of a stack gets the new dimension. */
static int stacked(Nodes *n, int a, int dim)
{
    Size size[OP_MAX_RANK];
    int rank = n->node[a].rank;
    if (rank == OP_MAX_RANK) return -1;
    memcpy(size, n->node[a].size, (size_t)dim * sizeof *size);
    size[dim] = size_number(1);
    memcpy(size + dim + 1, n->node[a].size + dim, (size_t)(rank - dim) * sizeof *size);
    return node_reshape(n, a, rank + 1, size);
}

static int joined(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    const OpValue *list = &call->arg[0];
    const Dtype dtype = call->result[0].dtype;
    int dim, y = -1, stack = !strncmp(call->op->name, "aten.stack", 10);
    Node whole = node_blank(NODE_PAD, dtype);
    Size low[OP_MAX_RANK], at = size_number(0);
    result_shape(c, 0, &whole);
    if (op_dim(call->arg[1].integer[0], whole.rank, &dim, err)) return -1;
    if (list->n > (stack ? MOST_STACKED : MOST_JOINED)) return 1;
    for (int d = 0; d < whole.rank; d++) low[d] = size_number(0);
    for (int i = 0; i < list->n; i++) {
        int a = c->in[list->integer[i]];
        if (stack) a = stacked(n, a, dim);
        if (a < 0 || n->node[a].rank != whole.rank) return 1;
        a = node_cast(n, a, dtype);
        low[dim] = at;
        size_know_sum(n->sizes, at, n->node[a].size[dim]);
        at = size_plus(at, n->node[a].size[dim]);
        int own = node_pad(n, a, low, whole.size, 0);
        if (y < 0) {
            y = own;
            continue;
        }
        int before = node_point(n, "a < n", DTYPE_B8, node_coordinate(n, own, dim), -1);
        n->node[before].type = "long long";
        n->node[before].scale = low[dim];
        y = node_point3(n, "a ? b : c", (int[]){before, y, own}, dtype);
    }
    if (y < 0) return 1;
    c->result[0] = y;
    return 0;
}

/* ---- a part of a tensor ---- */

/* By dimension of a tensor: which coordinates a part has. */
typedef struct {
    Size begin[OP_MAX_RANK], size[OP_MAX_RANK];
    int64_t step[OP_MAX_RANK];
} Part;

/* The part at one binding: 0; -1: it is none by ranges in the tensor's order. */
static int read_part(const Node *whole, const OpTensor *x, int binding, Part *p)
{
    int64_t rest = x->offset, pitch = node_count(whole).at[binding];
    int e = 0;
    for (int d = 0; d < whole->rank; d++) {
        const int64_t size = whole->size[d].at[binding];
        pitch /= size > 0 ? size : 1;
        if (pitch < 1) return -1;
        const int64_t begin = rest / pitch, one = e < x->rank && x->size[e] == 1;
        const int64_t step = one ? 1 : e < x->rank ? x->stride[e] / pitch : 0;
        const int ranged = step > 0 && (one || x->stride[e] % pitch == 0) &&
                           begin + (x->size[e] - 1) * step < size;
        rest -= begin * pitch;
        if (begin >= size || (binding && p->step[d] != (ranged ? step : 1))) return -1;
        p->begin[d].at[binding] = begin;
        p->size[d].at[binding] = ranged ? x->size[e] : 1;
        p->step[d] = ranged ? step : 1;
        e += ranged;
    }
    return e == x->rank && !rest ? 0 : -1;
}

/* Contents in steps along a dimension, at all of its coordinates: others than the part's are any. */
static int all_steps(Nodes *n, int contents, const Part *p, int dim, Size size)
{
    Node x = node_blank(NODE_COORD, DTYPE_I64);
    x.rank = n->node[contents].rank;
    memcpy(x.size, n->node[contents].size, sizeof x.size);
    x.size[dim] = size;
    x.axis = dim;
    int at = node_point(n, "a < p0 ? 0 : (a - p0) / p1 < n ? (a - p0) / p1 : n - 1", DTYPE_I64,
                        node_add(n, &x), -1);
    n->node[at].p[0] = (double)p->begin[dim].at[0];
    n->node[at].p[1] = (double)p->step[dim];
    n->node[at].scale = p->size[dim];
    return node_gather(n, contents, at, dim, 0);
}

/* `known`, and a comparison of the coordinate along a dimension with a size; -1 is known without any. */
static int and_where(Nodes *n, int known, const char *text, int coordinate, Size with)
{
    int y = node_point(n, text, DTYPE_B8, coordinate, -1);
    n->node[y].type = "long long";
    n->node[y].scale = with;
    return known < 0 ? y : node_point(n, "a && b", DTYPE_B8, known, y);
}

/* The first coordinate of a part is the size less what follows. */
static void know_begin(SizeTable *t, Size begin, Size size)
{
    char text[2 * SIZE_TEXT + 8], whole[SIZE_TEXT], rest[SIZE_TEXT];
    Size left;
    Error unused;
    for (int k = 0; k < SIZE_BINDINGS; k++) left.at[k] = size.at[k] - begin.at[k];
    if (size_constant(begin) || size_text(t, size, whole, &unused) ||
        size_text(t, left, rest, &unused))
        return;
    snprintf(text, sizeof text, "%s - (%s)", whole, rest);
    if (strlen(text) < SIZE_TEXT) size_know(t, begin, text);
}

/* Where an element of the tensor is of the part, as far as dimension `dim` tells. */
static int in_part(Nodes *n, int known, int old, const Part *p, int dim)
{
    const Size size = n->node[old].size[dim], begin = p->begin[dim],
               step = size_number(p->step[dim]);
    const int at = node_coordinate(n, old, dim);
    Size end = begin;
    int last = 1;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        end.at[k] += (p->size[dim].at[k] - 1) * step.at[k] + 1;
        last &= end.at[k] + step.at[k] > size.at[k];
    }
    know_begin(n->sizes, begin, size);
    if (size_is(p->size[dim], 1) && !size_is(size, 1))
        return and_where(n, known, "a == n", at, begin);
    if (!size_less(begin, step)) known = and_where(n, known, "a >= n", at, begin);
    size_know_sum(n->sizes, begin, p->size[dim]);
    if (!last) known = and_where(n, known, "a < n", at, end);
    if (p->step[dim] == 1) return known;
    known = and_where(n, known, "(a - n) % p0 == 0", at, begin);
    const Node *both = &n->node[known];
    n->node[both->arg[1] < 0 ? known : both->arg[1]].p[0] = (double)p->step[dim];
    return known;
}

int node_with_part(Nodes *n, int old, int contents, const OpTensor *const part[SIZE_BINDINGS])
{
    Node whole = n->node[old];
    Part p;
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (read_part(&whole, part[k], k, &p)) return -1;
    if (!n->node[contents].rank) {
        const int one = node_point(n, "a", whole.dtype, contents, -1);
        for (int d = 0; d < part[0]->rank; d++)
            for (int k = 0; k < SIZE_BINDINGS; k++) n->node[one].size[d].at[k] = part[k]->size[d];
        n->node[one].rank = part[0]->rank;
        contents = one;
    }
    contents = node_reshape(n, contents, whole.rank, p.size);
    int known = -1;
    for (int d = 0; d < whole.rank; d++) {
        if (p.step[d] == 1) continue;
        if (!size_constant(p.begin[d])) return -1;
        contents = all_steps(n, contents, &p, d, whole.size[d]);
    }
    for (int d = 0; d < whole.rank; d++) known = in_part(n, known, old, &p, d);
    for (int d = 0; d < whole.rank; d++)
        if (p.step[d] != 1) p.begin[d] = size_number(0);
    contents = node_pad(n, contents, p.begin, whole.size, 0);
    return known < 0 ? contents
                     : node_point3(n, "a ? b : c", (int[]){known, contents, old}, whole.dtype);
}

/* ---- joined parts ---- */

/* What node_pad has padded, with `low` before it along the dimension and nothing before it elsewhere; -1. */
static int padded_part(const Nodes *n, int node, int dim, Size low)
{
    const Node *x = &n->node[node];
    for (int d = 0; d < x->rank; d++)
        if (x->kind != NODE_PAD || !size_same(x->step[d], d == dim ? low : size_number(0)) ||
            (d != dim && !size_same(x->size[d], n->node[x->arg[0]].size[d])))
            return -1;
    return x->arg[0];
}

int node_joined_parts(const Nodes *n, int a, int dim, int part[2])
{
    const Node *x = &n->node[a];
    if (x->kind == NODE_POINT && !strcmp(x->text, "a") && x->arg[0] >= 0) x = &n->node[x->arg[0]];
    if (x->kind != NODE_POINT || strcmp(x->text, "a ? b : c") != 0 || x->arg[0] < 0) return 0;
    const Node *before = &n->node[x->arg[0]];
    if (before->kind != NODE_POINT || strcmp(before->text, "a < n") != 0 || before->arg[0] < 0 ||
        n->node[before->arg[0]].kind != NODE_COORD || n->node[before->arg[0]].axis != dim)
        return 0;
    for (int i = 0; i < 2; i++) {
        if (x->arg[1 + i] < 0) return 0;
        part[i] = padded_part(n, x->arg[1 + i], dim, i ? before->scale : size_number(0));
        if (part[i] < 0) return 0;
    }
    const Size first = n->node[part[0]].size[dim], second = n->node[part[1]].size[dim];
    return size_same(first, before->scale) && size_same(x->size[dim], size_plus(first, second));
}

/* ---- padded, triangles, constants ---- */

static int padded(Nodes *n, const NodeCall *c, Error *err)
{
    int a = node_operand(c, 0), mode = op_argument(c->call[0]->op, "mode"),
        value = op_argument(c->call[0]->op, "value");
    const OpValue *v = &c->call[0]->arg[value];
    Size low[OP_MAX_RANK];
    (void)err;
    if (a < 0 || (mode >= 0 && strcmp(c->call[0]->arg[mode].text, "constant"))) return 1;
    Node x = node_blank(NODE_PAD, n->node[a].dtype);
    result_shape(c, 0, &x);
    for (int d = 0; d < x.rank; d++) {
        int own = 2 * (x.rank - 1 - d);
        low[d] = size_number(0);
        for (int k = 0; k < SIZE_BINDINGS && own < c->call[0]->arg[1].n; k++)
            low[d].at[k] = c->call[k]->arg[1].integer[own];
    }
    c->result[0] = node_pad(n, a, low, x.size, v->kind == OP_NONE ? 0 : v->number);
    return 0;
}

static int triangle(Nodes *n, const NodeCall *c, Error *err)
{
    int a = node_operand(c, 0), upper = !strncmp(c->call[0]->op->name, "aten.triu", 9);
    (void)err;
    if (a < 0 || !node_fixed(c, 1) || n->node[a].rank < 2) return 1;
    int row = node_coordinate(n, a, n->node[a].rank - 2),
        column = node_coordinate(n, a, n->node[a].rank - 1);
    int keep = node_point(n, upper ? "b - a >= p0" : "b - a <= p0", DTYPE_B8, row, column);
    n->node[keep].type = "long long";
    n->node[keep].p[0] = (double)c->call[0]->arg[1].integer[0];
    c->result[0] = node_point3(n, "a ? b : 0", (int[]){keep, a, -1}, n->node[a].dtype);
    return 0;
}

static int constant(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    const char *name = call->op->name + 5;
    int fill = op_argument(call->op, "fill_value");
    (void)err;
    double v = fill >= 0 ? call->arg[fill].number : strstr(name, "ones") ? 1 : 0;
    if (fill >= 0)
        for (int k = 1; k < SIZE_BINDINGS; k++)
            if (c->call[k]->arg[fill].number != v) return 1;
    int y = node_number(n, v, call->result[0].dtype);
    result_shape(c, 0, &n->node[y]);
    c->result[0] = y;
    return 0;
}

/* Numbers from `start` on, in steps. */
static int ranged(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    const int start = op_argument(call->op, "start"), step = op_argument(call->op, "step");
    Node x = node_blank(NODE_COORD, DTYPE_I64);
    (void)err;
    const Dtype dtype = call->result[0].dtype;
    if (dtype_is_small(dtype)) return 1;
    for (int k = 1; k < SIZE_BINDINGS; k++)
        if ((start >= 0 && c->call[k]->arg[start].number != call->arg[start].number) ||
            (step >= 0 && c->call[k]->arg[step].number != call->arg[step].number))
            return 1;
    if (!dtype_is_float(dtype)) x.dtype = dtype;
    result_shape(c, 0, &x);
    int y = node_add(n, &x);
    if (start >= 0) {
        y = node_point(n, "a * p0 + p1", dtype, y, -1);
        n->node[y].p[0] = step < 0 ? 1 : call->arg[step].number;
        n->node[y].p[1] = call->arg[start].number;
    }
    c->result[0] = node_cast(n, y, dtype);
    return 0;
}

/* Steps of a fixed number: both halves count from their own end, as PyTorch does. */
static int stepped(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    const double from = call->arg[0].number, to = call->arg[1].number;
    const int64_t steps = call->arg[2].integer[0];
    Node x = node_blank(NODE_COORD, DTYPE_I64);
    (void)err;
    if (call->result[0].dtype != DTYPE_F32 || steps < 2 || steps > 1 << 24) return 1;
    for (int k = 1; k < SIZE_BINDINGS; k++)
        if (c->call[k]->arg[0].number != from || c->call[k]->arg[1].number != to ||
            c->call[k]->arg[2].integer[0] != steps)
            return 1;
    result_shape(c, 0, &x);
    int y =
        node_point(n, "a < p0 ? p1 + p2 * a : p3 - p2 * (p4 - a)", DTYPE_F32, node_add(n, &x), -1);
    const double p[] = {(double)((steps + 1) / 2), from, (to - from) / (double)(steps - 1), to,
                        (double)(steps - 1)};
    memcpy(n->node[y].p, p, sizeof p);
    c->result[0] = y;
    return 0;
}

/* Of a dimension of a resized image, by places of the result: its elements before and behind, by number, and
 * the weight of the latter. */
typedef struct {
    int low, high, over;
} Neighbours;

static Neighbours neighbours_of(Nodes *n, const NodeCall *c, int axis, double scale)
{
    Node x = node_blank(NODE_COORD, DTYPE_I64);
    Size in;
    x.rank = 1;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        x.size[0].at[k] = c->call[k]->result[0].size[axis];
        in.at[k] = op_tensor(c->call[k], 0)->size[axis];
    }
    const int at =
        node_point(n, "max(p0 * (a + 0.5f) - 0.5f, 0.f)", DTYPE_F32, node_add(n, &x), -1);
    n->node[at].p[0] = scale;
    const int low = node_cast(n, at, DTYPE_I64);
    const Neighbours y = {node_point(n, "min(a, n - 1)", DTYPE_I64, low, -1),
                          node_point(n, "min(a + 1, n - 1)", DTYPE_I64, low, -1),
                          node_made(n, "a - b", at, node_cast(n, low, DTYPE_F32))};
    n->node[y.low].scale = n->node[y.high].scale = in;
    return y;
}

/* How many elements of the image a step of the result is; 0: that differs from binding to binding. */
static double step_of_image(const NodeCall *c, int axis, const char *scale)
{
    const OpValue *v = &c->call[0]->arg[op_argument(c->call[0]->op, scale)];
    double step = 0;
    if (v->kind != OP_NONE && v->number > 0) return 1 / v->number;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        const double own =
            (double)op_tensor(c->call[k], 0)->size[axis] / (double)c->call[k]->result[0].size[axis];
        if (k && own != step) return 0;
        step = own;
    }
    return step;
}

static int between(Nodes *n, int a, const Neighbours *by, int axis, int rank)
{
    const Size size[] = {n->node[by->over].size[0], size_number(1)};
    return node_point3(n, "(1.f - c) * a + c * b",
                       (int[]){node_gather(n, a, by->low, axis, 1),
                               node_gather(n, a, by->high, axis, 1),
                               node_reshape(n, by->over, rank - axis, size)},
                       DTYPE_F32);
}

/* An image of another size, whose elements lie between two of a row and of a column. */
static int resized(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    const int rank = call->result[0].rank, corners = op_argument(call->op, "align_corners");
    int a = node_operand(c, 0);
    double step[2];
    (void)err;
    if (a < 0 || n->plain || call->arg[corners].integer[0] || n->node[a].dtype == DTYPE_F64)
        return 1;
    for (int d = 2; d < rank; d++) {
        step[d - 2] = step_of_image(c, d, rank == 3 ? "scales" : d == 2 ? "scales_h" : "scales_w");
        if (step[d - 2] <= 0) return 1;
    }
    a = node_made(n, "a", a, -1);
    for (int d = rank - 1; d >= 2; d--) {
        const Neighbours by = neighbours_of(n, c, d, step[d - 2]);
        a = between(n, a, &by, d, rank);
    }
    c->result[0] = node_cast(n, a, call->result[0].dtype);
    return 0;
}

/* 1 where a class is the one that a number stands for. */
static int one_hot(Nodes *n, const NodeCall *c, Error *err)
{
    int of = node_operand(c, 0);
    Node x = node_blank(NODE_COORD, DTYPE_I64);
    (void)err;
    if (of < 0 || n->node[of].rank == OP_MAX_RANK) return 1;
    result_shape(c, 0, &x);
    x.axis = x.rank - 1;
    const int own = node_add(n, &x), column = stacked(n, of, x.axis);
    c->result[0] = node_cast(n, node_point(n, "a == b", DTYPE_B8, own, column), DTYPE_I64);
    n->node[n->node[c->result[0]].arg[0]].type = "long long";
    return 0;
}

/* ---- scans ---- */

/* A scan of few long rows is left to the library, whose blocks share a row. */
enum { SCAN_ROWS = 64, SCAN_LONG = 16384 };

static int scanned(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    int a = node_operand(c, 0), dim;
    const Dtype dtype = call->result[0].dtype;
    if (a < 0 || !n->node[a].rank || n->plain) return 1;
    if (op_dim(call->arg[1].integer[0], n->node[a].rank, &dim, err)) return -1;
    const int64_t length = n->node[a].size[dim].at[0], all = node_count(&n->node[a]).at[0];
    if (all / (length ? length : 1) < SCAN_ROWS && length > SCAN_LONG) return 1;
    int in = dtype_is_float(dtype) ? node_made(n, "a", a, -1) : node_cast(n, a, dtype);
    Node x = node_blank(NODE_SCAN, n->node[in].dtype);
    x.fold = strstr(call->op->name, "prod") ? FOLD_PROD : FOLD_SUM;
    x.arg[0] = in;
    x.axis = dim;
    x.rank = n->node[a].rank;
    memcpy(x.size, n->node[a].size, sizeof x.size);
    c->result[0] = node_cast(n, node_add(n, &x), dtype);
    return 0;
}

/* ---- by number ---- */

static int embedded(Nodes *n, const NodeCall *c, Error *err)
{
    int table = node_operand(c, 0), by = node_operand(c, 1);
    (void)err;
    if (table < 0 || by < 0) return 1;
    c->result[0] = node_gather(n, table, by, 0, 1);
    return 0;
}

/* gather and index_select: a dimension, then the numbers. */
static int gathered(Nodes *n, const NodeCall *c, Error *err)
{
    int a = node_operand(c, 0), by = node_operand(c, 2), dim;
    int across = !strncmp(c->call[0]->op->name, "aten.index_select", 17);
    if (a < 0 || by < 0 || !n->node[a].rank) return 1;
    if (op_dim(c->call[0]->arg[1].integer[0], n->node[a].rank, &dim, err)) return -1;
    if (across && n->node[by].rank != 1) return 1;
    c->result[0] = node_gather(n, a, by, dim, across);
    return 0;
}

/* x[i]: one tensor of numbers, which may be negative, for dimension 0. */
static int indexed(Nodes *n, const NodeCall *c, Error *err)
{
    const OpValue *list = &c->call[0]->arg[1];
    int a = node_operand(c, 0);
    (void)err;
    if (a < 0 || list->kind != OP_TENSORS || list->n != 1 || list->integer[0] < 0) return 1;
    int by = c->in[list->integer[0]];
    if (dtype_is_float(n->node[by].dtype) || n->node[by].dtype == DTYPE_B8) return 1;
    int at = node_point(n, "a < 0 ? a + n : a", DTYPE_I64, by, -1);
    n->node[at].scale = n->node[a].size[0];
    c->result[0] = node_gather(n, a, at, 0, 1);
    return 0;
}

/* Each element along a dimension several times, side by side. */
static int interleaved(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    const int a = node_operand(c, 0);
    int dim;
    if (a < 0 || !node_fixed(c, 1) || call->arg[1].kind != OP_INT || call->arg[2].kind != OP_INT ||
        n->node[a].rank == OP_MAX_RANK)
        return 1;
    if (op_dim(call->arg[2].integer[0], n->node[a].rank, &dim, err)) return -1;
    Node x = node_blank(NODE_VIEW, n->node[a].dtype), y = x;
    Size step = size_number(1);
    x.arg[0] = a, x.rank = n->node[a].rank + 1;
    for (int d = x.rank - 1; d >= 0; d--) {
        const int own = d > dim ? d - 1 : d;
        const int again = d == dim + 1;
        x.size[d] = again ? size_number(call->arg[1].integer[0]) : n->node[a].size[own];
        x.step[d] = again ? size_number(0) : step;
        if (!again) step = size_times(step, x.size[d]);
    }
    result_shape(c, 0, &y);
    c->result[0] = node_reshape(n, node_add(n, &x), y.rank, y.size);
    return 0;
}

/* ---- places ---- */

int node_place_of_most(Nodes *n, int a, unsigned dims, int least)
{
    Size size[OP_MAX_RANK] = {{{0}}};
    int rank = 0, axis = -1, whole = 1;
    for (int d = 0; d < n->node[a].rank; d++) {
        whole &= dims >> d & 1;
        if (dims >> d & 1 && axis >= 0 && d > axis + 1) return -1;
        if (dims >> d & 1) axis = d;
    }
    if (whole) {
        size[rank++] = node_count(&n->node[a]);
        a = node_reshape(n, a, rank, size);
        dims = 1, axis = 0;
    }
    if (axis < 0 || dims != 1u << axis) return -1;
    int order =
        node_point(n,
                   least ? "a != a ? 2147483647LL : (long long)((__float_as_int(0.f - a) >> 31 & "
                           "0x7fffffff) ^ __float_as_int(0.f - a))"
                         : "a != a ? 2147483647LL : (long long)((__float_as_int(a + 0.f) >> 31 & "
                           "0x7fffffff) ^ __float_as_int(a + 0.f))",
                   DTYPE_I64, a, -1);
    n->node[order].from = "float";
    int key = node_point(n, "(a << 32) | (4294967295LL - b)", DTYPE_I64, order,
                         node_coordinate(n, a, axis));
    return node_point(n, "4294967295LL - (a & 4294967295LL)", DTYPE_I64,
                      node_fold(n, FOLD_MAX, key, dims), -1);
}

/* ---- the negative log-likelihood of classes ---- */

/* -x of each target's class, in the shape of the targets: x has the classes as dimension 1. */
static int minus_own(Nodes *n, int x, int target)
{
    Size column[OP_MAX_RANK], shape[OP_MAX_RANK];
    const int rank = n->node[target].rank;
    for (int d = 0; d < rank; d++) shape[d] = n->node[target].size[d];
    column[0] = shape[0], column[1] = size_number(1);
    for (int d = 1; d < rank; d++) column[d + 1] = shape[d];
    int own = node_gather(n, x, node_reshape(n, target, rank + 1, column), 1, 0);
    return node_reshape(n, node_made(n, "-a", own, -1), rank, shape);
}

static int nll(Nodes *n, const NodeCall *c, Error *err)
{
    const OpCall *call = c->call[0];
    int x = node_operand(c, 0), target = node_operand(c, 1), weight = node_operand(c, 2);
    int reduction = (int)call->arg[3].integer[0];
    (void)err;
    if (x < 0 || target < 0 || !node_fixed(c, 3) || n->node[x].rank < 2) return 1;
    int used = node_point(n, "a != p0", DTYPE_B8, target, -1);
    n->node[used].type = "long long";
    n->node[used].p[0] = (double)call->arg[4].integer[0];
    int safe = node_point(n, "a ? b : 0", DTYPE_I64, used, target);
    int own = minus_own(n, x, safe);
    int w = weight < 0
                ? node_made(n, "a ? 1.f : 0.f", used, -1)
                : node_point3(n, "a ? b : 0.f",
                              (int[]){used, node_gather(n, weight, safe, 0, 1), -1}, DTYPE_F32);
    int y = node_point3(n, "a ? b * c : 0.f", (int[]){used, own, w}, DTYPE_F32);
    const unsigned all = (1u << n->node[target].rank) - 1;
    int sum = reduction ? node_fold_to(n, FOLD_SUM, w, all, 0) : -1;
    if (reduction) y = node_fold_to(n, FOLD_SUM, y, all, 0);
    if (reduction == 1) y = node_made(n, "a / b", y, sum);
    c->result[0] = node_cast(n, y, call->result[0].dtype);
    if (call->n_results > 1 && reduction) c->result[1] = node_cast(n, sum, call->result[1].dtype);
    return 0;
}

int node_select(Nodes *n, const NodeCall *c, Error *err)
{
    static const struct {
        const char *name;
        int (*read)(Nodes *n, const NodeCall *c, Error *err);
    } readers[] = {{"aten.cumsum.", scanned},
                   {"aten.cumprod.", scanned},
                   {"aten.cat.", joined},
                   {"aten.concat.", joined},
                   {"aten.stack.", joined},
                   {"aten.pad.", padded},
                   {"aten.constant_pad_nd.", padded},
                   {"aten.triu.", triangle},
                   {"aten.tril.", triangle},
                   {"aten.zeros", constant},
                   {"aten.ones", constant},
                   {"aten.full", constant},
                   {"aten.new_zeros", constant},
                   {"aten.new_ones", constant},
                   {"aten.new_full", constant},
                   {"aten.arange.", ranged},
                   {"aten.linspace.", stepped},
                   {"aten.upsample_linear1d.", resized},
                   {"aten.upsample_bilinear2d.", resized},
                   {"aten.one_hot.", one_hot},
                   {"aten.embedding.", embedded},
                   {"aten.gather.", gathered},
                   {"aten.index_select.", gathered},
                   {"aten.index.Tensor", indexed},
                   {"aten.repeat_interleave.self_int", interleaved}};
    const Op *op = c->call[0]->op;
    if (op->infer == nll_infer) return nll(n, c, err);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strncmp(op->name, readers[i].name, strlen(readers[i].name)))
            return readers[i].read(n, c, err);
    return 1;
}
