/* Nodes of convolutions with channels last. The memory of such a tensor is a node of its own, whose shape
 * has the channels as its last dimension; the tensor of the graph is a view of it. */
#include "generate/layout.h"

#include <stdio.h>
#include <string.h>

#include "eval/sim/library/library_time.h"
#include "generate/convolve.h"
#include "ops/op_text.h"

/* What packing costs on an H200 (2026-11-29): bytes a second of what is read and written, and seconds of a
 * launch. GAIN: the least that is worth it, as an H100 packs more slowly. */
static const double PACKING = 3.5e12, LAUNCH = 3e-6, GAIN = 1.05;

/* ---- names ---- */

static int name_taken(const Nodes *n, const char *name)
{
    return graph_find(n->graph, name, strlen(name)) >= 0 || node_name_taken(n, name);
}

static void choose_name(const Nodes *n, const char *own, const char *end, char out[GRAPH_NAME])
{
    char name[GRAPH_NAME];
    if (!*own || !strcmp(own, "_")) own = "part";
    snprintf(name, sizeof name, "%.40s_%s", own, end);
    for (int i = 1; name_taken(n, name); i++)
        snprintf(name, sizeof name, "%.40s_%s%d", own, end, i);
    snprintf(out, GRAPH_NAME, "%s", name);
}

/* The graph's name of a node, or that of the tensor that it views. */
static const char *name_of(const Nodes *n, int node)
{
    for (int i = 0; i < 40 && node >= 0; i++, node = n->node[node].arg[0])
        if (n->node[node].value >= 0) return n->graph->name[n->node[node].value];
    return "part";
}

/* ---- the order of elements in memory ---- */

static Size step_of(const Node *x, int d)
{
    Size step = size_number(1);
    for (int e = d + 1; e < x->rank; e++) step = size_times(step, x->size[e]);
    return step;
}

static int last_of(const Node *x)
{
    int d = x->rank - 1;
    while (d >= 0 && size_is(x->size[d], 1)) d--;
    return d;
}

/* The dimension of a view that walks along dimension `nearest` of its argument; -1: none. */
static int viewed(const Node *x, const Node *of, int nearest)
{
    const Size step = nearest < 0 ? size_number(1) : step_of(of, nearest);
    for (int d = x->rank - 1; d >= 0; d--)
        if (size_same(x->step[d], step) && !size_is(x->size[d], 1)) return d;
    return -1;
}

/* The same of a fold, which has not the dimensions that it is over. */
static int folded(const Node *x, int nearest)
{
    int own = 0;
    if (x->parts || nearest < 0 || x->dims >> nearest & 1) return -1;
    for (int d = 0; d < nearest; d++) own += !(x->dims >> d & 1);
    return own;
}

int layout_nearest(const Nodes *n, int node)
{
    const Node *x = &n->node[node];
    int at = -1, from = x->arg[0];
    const int made = !x->stored && (x->kind == NODE_VIEW || x->kind == NODE_POINT ||
                                    x->kind == NODE_FOLD || x->kind == NODE_PAD);
    for (int i = 0; i < 3 && made && x->kind == NODE_POINT; i++) {
        from = x->arg[i];
        if (from >= 0 && node_same_shape(x, &n->node[from])) break;
        from = -1;
    }
    if (made && from >= 0) at = layout_nearest(n, from);
    if (at >= 0 && x->kind == NODE_VIEW) at = viewed(x, &n->node[from], at);
    if (at >= 0 && x->kind == NODE_FOLD) at = folded(x, at);
    return at >= 0 ? at : last_of(x);
}

/* ---- channels last ---- */

/* Gives *x the shape of its elements with channels last; or takes it from it. */
static void move_channels(Node *x, int last)
{
    Size size[OP_MAX_RANK];
    memcpy(size, x->size, sizeof size);
    for (int d = 1; d < x->rank; d++)
        x->size[d] = last ? size[d + 1 < x->rank ? d + 1 : 1] : size[d > 1 ? d - 1 : x->rank - 1];
}

static void order_steps(const Node *of, Size step[OP_MAX_RANK])
{
    Size next = size_number(1);
    for (int d = of->rank - 1; d >= 0; d--) {
        step[d] = next;
        next = size_times(next, of->size[d]);
    }
}

/* A view of node `of` with its channels moved to the end, or back from there. */
static int view_moved(Nodes *n, int of, int last)
{
    Node x = node_blank(NODE_VIEW, n->node[of].dtype);
    Size step[OP_MAX_RANK];
    x.arg[0] = of;
    x.rank = n->node[of].rank;
    memcpy(x.size, n->node[of].size, sizeof x.size);
    order_steps(&n->node[of], step);
    for (int d = 1; d < x.rank; d++)
        x.step[d] = last ? step[d + 1 < x.rank ? d + 1 : 1] : step[d > 1 ? d - 1 : x.rank - 1];
    x.step[0] = step[0];
    move_channels(&x, last);
    return node_add(n, &x);
}

/* The memory with channels last that a tensor is a view of; -1: none. */
static int memory_of(const Nodes *n, int node)
{
    const Node *x = &n->node[node];
    if (x->kind != NODE_VIEW || !n->node[x->arg[0]].last) return -1;
    Node moved = n->node[x->arg[0]];
    Size step[OP_MAX_RANK];
    order_steps(&moved, step);
    move_channels(&moved, 0);
    if (x->rank != moved.rank || !size_is(x->offset, 0) || !size_same(x->step[0], step[0]))
        return -1;
    for (int d = 0; d < x->rank; d++)
        if (!size_same(x->size[d], moved.size[d]) ||
            (d && !size_same(x->step[d], step[d > 1 ? d - 1 : x->rank - 1])))
            return -1;
    return x->arg[0];
}

/* A copy of a tensor that another convolution has; -1: none. */
static int copy_of(const Nodes *n, int node)
{
    for (int i = 0; i < n->n; i++) {
        const Node *x = &n->node[i];
        if (x->last && x->kind == NODE_POINT && n->node[x->arg[0]].arg[0] == node) return i;
    }
    return -1;
}

/* Memory with channels last of a node. Where a kernel computes it, it is written there alone, and the node
 * becomes a view of it. */
static int put_last(Nodes *n, int node, int computed)
{
    int from = node;
    if (computed) {
        const Node whole = n->node[node];
        from = node_add(n, &whole);
    }
    const int view = view_moved(n, from, 1), at = node_point(n, "a", n->node[node].dtype, view, -1);
    choose_name(n, name_of(n, node), "last", n->node[at].name);
    n->node[at].stored = n->node[at].last = 1;
    if (computed) {
        const int own = view_moved(n, at, 0); /* which may move n->node */
        Node tensor = n->node[own];
        tensor.value = n->node[node].value;
        n->node[node] = tensor;
    }
    return at;
}

/* The memory with channels last of what a convolution reads. What lies in memory is packed. */
static int packed(Nodes *n, int node)
{
    int at = memory_of(n, node);
    if (at < 0) at = copy_of(n, node);
    if (at >= 0) return at;
    return put_last(n, node, n->node[node].kind == NODE_POINT && !n->node[node].stored);
}

int layout_stored(Nodes *n, int node)
{
    const Node *x = &n->node[node];
    const int computed =
        (x->kind == NODE_FOLD && !x->parts && x->pair < 0) || x->kind == NODE_POINT;
    return !computed || x->stored || layout_nearest(n, node) != 1 || last_of(x) == 1
               ? node
               : put_last(n, node, 1);
}

void layout_put_permuted(Buffer *plan, const char *to, int rank, const char *from, int back)
{
    buffer_printf(plan, "//@ op %s = aten.permute(%s, [0", to, from);
    for (int d = 1; d < rank; d++)
        buffer_printf(plan, ", %d", back ? d % (rank - 1) + 1 : d > 1 ? d - 1 : rank - 1);
    buffer_puts(plan, "])\n");
}

/* ---- results ---- */

static int result_of(const Nodes *n, int line)
{
    for (int i = 0; i < n->n; i++)
        if (n->node[i].kind == NODE_KEPT && n->node[i].line == line) return i;
    return -1;
}

/* The result becomes memory of the line, and the tensor of the graph a view of it, or its sum with the
 * bias. */
static void split_result(Nodes *n, int line, int bias, int last)
{
    int tensor = result_of(n, line), memory = tensor, sum;
    const int value = n->node[tensor].value;
    Node kept = n->node[tensor];
    char raw[GRAPH_NAME];
    choose_name(n, kept.name, "raw", raw);
    if (last) {
        move_channels(&kept, 1);
        kept.last = 1;
        choose_name(n, kept.name, "last", kept.name);
        snprintf(kept.shaped, sizeof kept.shaped, "%s", raw);
    } else {
        snprintf(kept.name, sizeof kept.name, "%s", raw);
    }
    memory = node_add(n, &kept);
    sum = last ? view_moved(n, memory, 0) : memory;
    if (bias >= 0) {
        Size shape[OP_MAX_RANK] = {n->node[bias].size[0]};
        for (int d = 1; d + 1 < kept.rank; d++) shape[d] = size_number(1);
        bias = node_reshape(n, bias, kept.rank - 1, shape);
        sum = node_point(n, "a + b", kept.dtype, sum, bias);
    }
    const Node x = n->node[sum];
    n->node[tensor] = x;
    n->node[tensor].value = value;
}

/* ---- which of both is faster ---- */

static LibraryShape shape_of(const Convolution *v, int tf32, int last)
{
    LibraryConvolution c = {.transposed = v->transposed,
                            .dtype = (int)v->x->dtype,
                            .tf32 = tf32,
                            .last = last,
                            .batch = v->batch,
                            .in = v->in * v->groups,
                            .out = v->out * v->groups,
                            .groups = v->groups};
    LibraryShape s = {0};
    for (int d = 0; d < WINDOW_DIMS; d++) {
        c.d[d].in = v->w[d].in, c.d[d].kernel = v->w[d].kernel, c.d[d].out = v->w[d].out;
        c.d[d].stride = v->w[d].stride, c.d[d].padding = v->w[d].padding;
        c.d[d].dilation = v->w[d].dilation;
    }
    library_convolution_shape(&c, &s);
    return s;
}

double layout_library_time(const Convolution *v, int tf32, int last)
{
    const LibraryShape s = shape_of(v, tf32, last);
    return library_seconds(profile_find("h200", NULL), &s);
}

/* Transposed in groups, with dimensions that differ in stride or padding, or dilated: no such convolution is
 * in the tables, and by its neighbours channels last gain. On an H200 two of two lost (2026-11-29): they took
 * 1.15 times eager PyTorch's time, with what packs for them. */
static int is_unknown(const Convolution *v, int tf32)
{
    return v->transposed && v->groups > 1 && shape_of(v, tf32, 1).out[0] > 0;
}

double layout_us(double bytes)
{
    return 1e6 * (bytes / PACKING + LAUNCH);
}

static double packing_time(double elements, Dtype dtype)
{
    return 1e-6 * layout_us(2 * elements * (double)dtype_size(dtype));
}

/* A kernel reads the tensor anyway, whatever its order. */
static int is_read(const Nodes *n, int tensor)
{
    for (int i = 0; i < n->n; i++)
        for (int a = 0; a < 3; a++)
            if (n->node[i].kind != NODE_KEPT && n->node[i].kind != NODE_INPUT &&
                n->node[i].arg[a] == tensor)
                return 1;
    return 0;
}

static int pays(const Nodes *n, const Convolution *v, int line)
{
    const int *in = n->kept[line], x = in[v->x_index];
    const Dtype dtype = v->x->dtype;
    int tf32 = dtype == DTYPE_F32 && n->sizes->task->tf32 & TF32_CUDNN;
    if (is_unknown(v, tf32)) return 0;
    double last =
        layout_library_time(v, tf32, 1) + packing_time((double)op_elements(v->weight), dtype);
    int computed = n->node[x].kind == NODE_POINT && !n->node[x].stored;
    if (memory_of(n, x) < 0 && copy_of(n, x) < 0 && !computed)
        last += packing_time((double)op_elements(v->x), dtype);
    if (!v->bias && !is_read(n, result_of(n, line)))
        last += packing_time((double)op_elements(&n->sizes->bound[0]->calls[line].call.result[0]),
                             dtype);
    return GAIN * last < layout_library_time(v, tf32, 0);
}

/* ---- convolutions ---- */

static int distinct(const GraphCall *c)
{
    for (int i = 0; i < c->call.n_tensors; i++)
        for (int k = 0; k < i; k++)
            if (c->in[i] == c->in[k]) return 0;
    return 1;
}

/* The plan has a kernel of its own for it. */
static int is_product(const Nodes *n, int line)
{
    MatrixProduct m;
    if (!product_read(n, result_of(n, line), &m)) return 0;
    product_choose(n, &m, 0);
    return m.route != ROUTE_LIBRARY;
}

static void rewrite(Nodes *n, int line)
{
    const GraphCall *c = &n->sizes->bound[0]->calls[line];
    Convolution v;
    if (!n->kept[line] || !convolution_read(&c->call, &v) || is_product(n, line)) return;
    int own = convolution_last(&v), last = own, *in = n->kept[line], bias = -1;
    if (!distinct(c) || (!own && !convolution_by_library(&v))) return;
    if (!own && v.batched && pays(n, &v, line)) {
        last = 1;
        in[v.x_index] = packed(n, in[v.x_index]);
        if (v.w[0].kernel * v.w[1].kernel * v.w[2].kernel > 1)
            in[v.weight_index] = packed(n, in[v.weight_index]);
    }
    if (v.bias && convolution_by_library(&v)) {
        bias = in[v.bias_index];
        in[v.bias_index] = -1;
    }
    if (last || bias >= 0) split_result(n, line, bias, last);
}

/* A source has room for the texts of so many. */
enum { MOST_CONVOLUTIONS = 128 };

void layout_nodes(Nodes *n)
{
    Convolution v;
    int count = 0;
    for (int line = 0; line < n->graph->n_nodes; line++)
        count += n->kept[line] && convolution_read(&n->sizes->bound[0]->calls[line].call, &v);
    if (count > MOST_CONVOLUTIONS) return;
    for (int line = 0; line < n->graph->n_nodes; line++) rewrite(n, line);
}
