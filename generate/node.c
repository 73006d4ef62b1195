/* Nodes of an expression graph, and the graph's operators that they are read from. */
#include "generate/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/node_build.h"
#include "ops/op_strided.h"
#include "ops/op_text.h"

int node_add(Nodes *n, const Node *x)
{
    memory_room(n->node, n->n, n->room, 64);
    n->node[n->n] = *x;
    n->node[n->n].made = n->line;
    return n->n++;
}

Node node_blank(NodeKind kind, Dtype dtype)
{
    Node x = {.kind = kind, .dtype = dtype, .arg = {-1, -1, -1}, .line = -1, .value = -1};
    x.pair = x.by = -1;
    return x;
}

Size node_count(const Node *x)
{
    Size n = size_number(1);
    for (int d = 0; d < x->rank; d++) n = size_times(n, x->size[d]);
    return n;
}

int node_same_shape(const Node *a, const Node *b)
{
    return a->rank == b->rank && !memcmp(a->size, b->size, (size_t)a->rank * sizeof(Size));
}

void node_broadcast(Node *x, const Node *a)
{
    int more = a->rank - x->rank;
    if (more > 0) {
        memmove(x->size + more, x->size, (size_t)x->rank * sizeof(Size));
        for (int d = 0; d < more; d++) x->size[d] = size_number(1);
        x->rank = a->rank;
    }
    for (int d = 0; d < a->rank; d++) {
        Size *s = &x->size[x->rank - a->rank + d];
        if (size_is(*s, 1)) *s = a->size[d];
    }
}

int node_point(Nodes *n, const char *text, Dtype dtype, int a, int b)
{
    Node x = node_blank(NODE_POINT, dtype);
    x.text = text;
    x.type = text_type(dtype);
    x.arg[0] = a;
    x.arg[1] = b;
    node_broadcast(&x, &n->node[a]);
    if (b >= 0) node_broadcast(&x, &n->node[b]);
    return node_add(n, &x);
}

int node_fold(Nodes *n, Fold how, int a, unsigned dims)
{
    Node x = node_blank(NODE_FOLD, n->node[a].dtype);
    x.fold = how;
    x.arg[0] = a;
    x.dims = dims;
    for (int d = 0; d < n->node[a].rank; d++)
        if (!(dims >> d & 1)) x.size[x.rank++] = n->node[a].size[d];
    return node_add(n, &x);
}

int node_pair(Nodes *n, Fold how, Fold with, int a, unsigned dims)
{
    int y = node_fold(n, how, a, dims), z = node_fold(n, with, a, dims);
    n->node[y].pair = z;
    n->node[z].pair = y;
    return y;
}

int node_coordinate(Nodes *n, int a, int axis)
{
    Node x = node_blank(NODE_COORD, DTYPE_I64);
    x.rank = n->node[a].rank;
    memcpy(x.size, n->node[a].size, sizeof x.size);
    x.axis = axis;
    return node_add(n, &x);
}

void node_mark(const Nodes *n, int node, unsigned char *seen)
{
    const Node *x = &n->node[node];
    if (seen[node]) return;
    seen[node] = 1;
    for (int i = 0; i < 3 && (x->kind == NODE_VIEW || x->kind == NODE_POINT); i++)
        if (x->arg[i] >= 0) node_mark(n, x->arg[i], seen);
}

static void in_order(Node *x)
{
    Size step = size_number(1);
    for (int d = x->rank - 1; d >= 0; d--) {
        x->step[d] = step;
        step = size_times(step, x->size[d]);
    }
}

int node_reshape(Nodes *n, int a, int rank, const Size *size)
{
    Node x = node_blank(NODE_VIEW, n->node[a].dtype);
    x.arg[0] = a;
    x.rank = rank;
    memcpy(x.size, size, (size_t)rank * sizeof *size);
    in_order(&x);
    return node_same_shape(&x, &n->node[a]) ? a : node_add(n, &x);
}

/* ---- values of the graph ---- */

static const GraphValue *value_at(const Nodes *n, int binding, int value)
{
    return &n->sizes->bound[binding]->values[value];
}

/* The shape of a tensor that each binding has. */
typedef struct {
    const OpTensor *at[SIZE_BINDINGS];
} Tensors;

static void shape(Node *x, const Tensors *t)
{
    x->rank = t->at[0]->rank;
    for (int d = 0; d < x->rank; d++)
        for (int k = 0; k < SIZE_BINDINGS; k++) {
            x->size[d].at[k] = t->at[k]->size[d];
            x->step[d].at[k] = t->at[k]->stride[d];
            x->offset.at[k] = t->at[k]->offset;
        }
    if (!x->rank)
        for (int k = 0; k < SIZE_BINDINGS; k++) x->offset.at[k] = t->at[k]->offset;
}

static int is_whole(const Node *x, const Node *of)
{
    Node y = *x;
    in_order(&y);
    for (int d = 0; d < x->rank; d++)
        if (!size_is(x->size[d], 1) && !size_same(x->step[d], y.step[d])) return 0;
    return size_is(x->offset, 0) && size_same(node_count(x), node_count(of));
}

/* The value as it is now: its memory's contents, or a view of them. */
int nodes_value(Nodes *n, int value)
{
    const GraphValue *v = value_at(n, 0, value);
    int of = n->of[v->base];
    if (of < 0) return -1;
    Node x = node_blank(NODE_VIEW, v->tensor.dtype);
    Tensors t;
    for (int k = 0; k < SIZE_BINDINGS; k++) t.at[k] = &value_at(n, k, value)->tensor;
    shape(&x, &t);
    x.arg[0] = of;
    if (is_whole(&x, &n->node[of]) && node_same_shape(&x, &n->node[of])) return of;
    x.value = value;
    return node_add(n, &x);
}

static int add_input(Nodes *n, int value)
{
    Node x = node_blank(NODE_INPUT, value_at(n, 0, value)->tensor.dtype);
    Tensors t;
    for (int k = 0; k < SIZE_BINDINGS; k++) t.at[k] = &value_at(n, k, value)->tensor;
    shape(&x, &t);
    x.stored = 1;
    x.value = value;
    snprintf(x.name, sizeof x.name, "%s", n->graph->name[value]);
    return node_add(n, &x);
}

/* A result in memory that the op line itself writes. */
static int add_kept(Nodes *n, int line, int value)
{
    int at = add_input(n, value);
    n->node[at].kind = NODE_KEPT;
    n->node[at].line = line;
    return at;
}

void node_plain_name(const char *name, char out[NODE_WORD])
{
    const char *dot = !strncmp(name, "aten.", 5) ? strchr(name + 5, '.') : NULL;
    size_t n = dot ? (size_t)(dot - name) : strlen(name);
    snprintf(out, NODE_WORD, "%.*s%s", (int)(n && name[n - 1] == '_' ? n - 1 : n), name, name + n);
}

/* 1: a value is all of its memory. */
static int fills_memory(const Nodes *n, int value)
{
    Node x = node_blank(NODE_VIEW, DTYPE_F32);
    Tensors t;
    const int base = value_at(n, 0, value)->base;
    for (int k = 0; k < SIZE_BINDINGS; k++) t.at[k] = &value_at(n, k, value)->tensor;
    shape(&x, &t);
    return n->of[base] >= 0 && is_whole(&x, &n->node[n->of[base]]);
}

/* An op line that writes into a tensor is one that writes another: contents that are read later are its. */
static int may_be_plain(const Nodes *n, int line, Error *err)
{
    const OpCall *c = &n->sizes->bound[0]->calls[line].call;
    char plain[NODE_WORD];
    Error unused;
    node_plain_name(c->op->name, plain);
    if (!op_find(plain, &unused) || !fills_memory(n, n->graph->first[line]))
        return error_set(err, ERROR_UNSUPPORTED, "%s writes into a part of a tensor", c->op->name);
    return 0;
}

static int keep(Nodes *n, int line, const int *in, Error *err)
{
    const GraphCall *c = &n->sizes->bound[0]->calls[line];
    const int in_place = c->call.op->flags & OP_IN_PLACE;
    if (in_place && may_be_plain(n, line, err)) return -1;
    n->kept[line] = memory_array((size_t)c->call.n_tensors + 1, sizeof **n->kept);
    memcpy(n->kept[line], in, (size_t)c->call.n_tensors * sizeof *in);
    for (int i = 0; i < c->call.n_results; i++) {
        int value = n->graph->first[line] + i, base = value_at(n, 0, value)->base;
        if (base == value || in_place) n->of[base] = add_kept(n, line, value);
        n->versions[base] += base != value && in_place;
    }
    return 0;
}

/* 1: a value is the diagonal of a matrix's memory, as long as a row. */
static int is_diagonal(const Nodes *n, int value)
{
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        const GraphValue *v = value_at(n, k, value);
        const OpTensor *x = &v->tensor, *whole = &value_at(n, k, v->base)->tensor;
        if (whole->rank != 2 || x->rank != 1 || x->offset || x->size[0] != whole->size[1] ||
            x->stride[0] != whole->stride[0] + whole->stride[1])
            return 0;
    }
    return 1;
}

/* The contents of a matrix whose diagonal has new ones, or -1. */
static int with_diagonal(Nodes *n, int value, int contents)
{
    const int old = n->of[value_at(n, 0, value)->base];
    if (old < 0 || n->node[old].rank != 2 || !is_diagonal(n, value)) return -1;
    int row = node_coordinate(n, old, 0), column = node_coordinate(n, old, 1);
    int on = node_point(n, "a == b", DTYPE_B8, row, column);
    n->node[on].type = "long long";
    return node_point3(n, "a ? b : c", (int[]){on, contents, old}, n->node[old].dtype);
}

/* The contents of a tensor of which a value, its diagonal or a part by ranges, has new ones, or -1. */
static int with_part(Nodes *n, int value, int contents)
{
    const int old = n->of[value_at(n, 0, value)->base];
    const int now = with_diagonal(n, value, contents);
    const OpTensor *part[SIZE_BINDINGS];
    if (old < 0 || now >= 0) return now;
    for (int k = 0; k < SIZE_BINDINGS; k++) part[k] = &value_at(n, k, value)->tensor;
    return node_with_part(n, old, contents, part);
}

/* A line's results are the memory of its results, or new contents of an argument's. */
static int take_results(Nodes *n, int line, const int *result, Error *err)
{
    const GraphCall *c = &n->sizes->bound[0]->calls[line];
    for (int i = 0; i < c->call.n_results; i++) {
        int value = n->graph->first[line] + i, base = value_at(n, 0, value)->base;
        if (result[i] < 0) continue;
        if (base != value) { /* in place */
            const int whole = fills_memory(n, value);
            const int now = whole ? result[i] : with_part(n, value, result[i]);
            if (now < 0)
                return error_set(err, ERROR_UNSUPPORTED, "%s writes into a part of a tensor",
                                 c->call.op->name);
            n->versions[base]++;
            n->of[base] = now;
            if (!whole) continue;
        }
        n->of[base] = result[i];
        if (n->node[result[i]].value < 0) n->node[result[i]].value = value;
    }
    return 0;
}

/* 1: a tensor of the line has a shape that the generator cannot write. */
static int is_odd(const Nodes *n, int line)
{
    const GraphCall *c = &n->sizes->bound[0]->calls[line];
    int odd = 0;
    for (int i = 0; i < c->call.n_tensors; i++) odd |= n->sizes->odd[c->in[i]];
    for (int i = 0; i < c->call.n_results; i++) odd |= n->sizes->odd[n->graph->first[line] + i];
    return odd;
}

static int read_line(Nodes *n, int line, Error *err)
{
    const GraphCall *c = &n->sizes->bound[0]->calls[line];
    int in[OP_MAX_TENSORS], result[OP_MAX_RESULTS], missing = 0;
    if (!c->live || (c->view && op_is_view(&c->call))) return 0;
    NodeCall call = {.in = in, .result = result};
    for (int k = 0; k < SIZE_BINDINGS; k++) call.call[k] = &n->sizes->bound[k]->calls[line].call;
    for (int i = 0; i < OP_MAX_RESULTS; i++) result[i] = -1;
    for (int i = 0; i < c->call.n_tensors; i++) missing |= (in[i] = nodes_value(n, c->in[i])) < 0;
    int before = n->n;
    n->line = line;
    int rc = missing || is_odd(n, line) ? 1 : nodes_of_call(n, &call, err);
    for (int i = 1; i < c->call.n_results && !rc; i++)
        if (result[i] < 0 && value_at(n, 0, n->graph->first[line] + i)->live) rc = 1;
    if (rc < 0) return -1;
    if (!rc) return take_results(n, line, result, err);
    n->n = before;
    return keep(n, line, in, err);
}

/* ---- what has to be exact ---- */

/* 1: the node's result jumps where an argument changes by a bit. */
static int is_step(const Nodes *n, const Node *x)
{
    static const char *const steps[] = {"rint(", "floor(", "ceil(", "trunc(", "round(", "fmod("};
    int floats = x->kind == NODE_KEPT;
    for (int i = 0; i < 3; i++)
        floats |= x->arg[i] >= 0 && dtype_is_float(n->node[x->arg[i]].dtype);
    if (!floats) return 0;
    if (!dtype_is_float(x->dtype) || dtype_is_float8(x->dtype)) return 1;
    if (x->kind != NODE_POINT) return 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strstr(x->text, steps[i])) return 1;
    return strpbrk(x->text, "<>") && !strchr(x->text, '?');
}

/* Marks what a step is computed from. Nodes come after their arguments. */
static void mark_exact(Nodes *n)
{
    for (int i = n->n - 1; i >= 0; i--) {
        const Node *x = &n->node[i];
        if (!x->exact && !is_step(n, x)) continue;
        for (int a = 0; a < 3; a++)
            if (x->arg[a] >= 0) n->node[x->arg[a]].exact = 1;
        if (x->kind != NODE_KEPT || !n->kept[x->line]) continue;
        for (int a = 0; a < n->sizes->bound[0]->calls[x->line].call.n_tensors; a++)
            if (n->kept[x->line][a] >= 0) n->node[n->kept[x->line][a]].exact = 1;
    }
}

int nodes_read(Nodes *out, SizeTable *sizes, Error *err)
{
    const Graph *g = size_graph(sizes->task);
    *out = (Nodes){.genes = out->genes, .plain = out->plain};
    out->sizes = sizes;
    out->graph = g;
    out->of = memory_array((size_t)g->n_values + 1, sizeof *out->of);
    out->versions = memory_array((size_t)g->n_values + 1, sizeof *out->versions);
    out->kept = memory_array((size_t)g->n_nodes + 1, sizeof *out->kept);
    for (int v = 0; v < g->n_values; v++) out->of[v] = -1;
    for (int v = 0; v < g->n_inputs; v++) out->of[v] = add_input(out, v);
    int rc = 0;
    for (int line = 0; line < g->n_nodes && !rc; line++) {
        rc = read_line(out, line, err);
        if (rc) error_prefix(err, "graph[%d]", line);
    }
    for (int i = 0; i < g->n_outputs && !rc; i++) out->output[i] = nodes_value(out, g->output[i]);
    if (!rc && !out->plain) nodes_join_equal(out);
    if (!rc) mark_exact(out);
    if (rc) nodes_free(out);
    return rc;
}

void nodes_free(Nodes *n)
{
    free(n->node);
    free(n->of);
    free(n->versions);
    for (int i = 0; n->kept && i < n->graph->n_nodes; i++) free(n->kept[i]);
    free(n->kept);
    memset(n, 0, sizeof *n);
}

/* ---- equal nodes ---- */

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static int same_sizes(const Size *a, const Size *b, int n)
{
    return !memcmp(a, b, (size_t)n * sizeof *a);
}

/* 1: equal elements, of nodes that lie in no memory of their own. */
static int is_equal(const Node *a, const Node *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || memcmp(a->arg, b->arg, sizeof a->arg) ||
        !node_same_shape(a, b) || a->kind == NODE_INPUT || a->kind == NODE_KEPT)
        return 0;
    return same_text(a->text, b->text) && same_text(a->type, b->type) &&
           same_text(a->from, b->from) && !memcmp(a->number, b->number, sizeof a->number) &&
           !memcmp(a->p, b->p, sizeof a->p) && size_same(a->scale, b->scale) &&
           a->fold == b->fold && a->dims == b->dims && a->pair < 0 && b->pair < 0 &&
           a->across == b->across && a->axis == b->axis && a->last == b->last &&
           size_same(a->offset, b->offset) && same_sizes(a->step, b->step, a->rank) && !a->stored &&
           !b->stored;
}

/* Nodes come after their arguments: those of equal ones have the same numbers by then. */
static int first_equal(const Nodes *n, int node)
{
    for (int i = 0; i < node; i++)
        if (is_equal(&n->node[i], &n->node[node])) return i;
    return node;
}

static void rename_all(int *at, int n, const int *to)
{
    for (int i = 0; i < n; i++)
        if (at[i] >= 0) at[i] = to[at[i]];
}

/* The mean that a pass finds together with a spread, of what a sum is of; -1. */
static int mean_beside(const Nodes *n, const Node *sum)
{
    for (int i = 0; i < n->n; i++) {
        const Node *x = &n->node[i];
        if (x->kind == NODE_FOLD && x->fold == FOLD_MEAN && x->pair >= 0 &&
            x->arg[0] == sum->arg[0] && x->dims == sum->dims && x->dtype == sum->dtype)
            return i;
    }
    return -1;
}

/* A sum over its number of terms is the mean, where a spread of the same terms is asked for, too. */
static void join_means(Nodes *n)
{
    const int all = n->n;
    for (int i = 0; i < all; i++) {
        int of = n->node[i].arg[0], view = of;
        if (n->node[i].kind != NODE_POINT || of < 0 || strcmp(n->node[i].text, "a / n") != 0)
            continue;
        if (n->node[of].kind == NODE_VIEW) of = n->node[of].arg[0];
        const Node sum = n->node[of];
        if (sum.kind != NODE_FOLD || sum.fold != FOLD_SUM ||
            !size_same(n->node[i].scale,
                       size_over(node_count(&n->node[sum.arg[0]]), node_count(&sum))))
            continue;
        const int mean = mean_beside(n, &sum);
        if (mean < 0) continue;
        Node same = n->node[view];
        same.arg[0] = mean;
        n->node[i].arg[0] = view == of ? mean : node_add(n, &same);
        n->node[i].text = "a";
    }
}

/* tanh of softplus, which is a itself above a threshold where float has no more of it, is Mish's. */
static void join_softplus(Nodes *n)
{
    for (int i = 0; i < n->n; i++) {
        Node *x = &n->node[i];
        if (x->kind != NODE_POINT || strcmp(x->text, "tanh(a)") != 0 || x->arg[0] < 0) continue;
        const Node *a = &n->node[x->arg[0]];
        if (a->kind != NODE_POINT || a->dtype != DTYPE_F32 || a->p[0] != 1 || a->p[1] < 20 ||
            strcmp(a->text, "a * p0 > p1 ? a : log1p(exp(a * p0)) / p0") != 0)
            continue;
        x->text = NODE_MISH_GATE;
        x->arg[0] = a->arg[0];
    }
}

void nodes_join_equal(Nodes *n)
{
    int *to = memory_array((size_t)n->n + 1, sizeof *to);
    for (int i = 0; i < n->n; i++) {
        rename_all(n->node[i].arg, 3, to);
        to[i] = first_equal(n, i);
    }
    rename_all(n->of, n->graph->n_values, to);
    rename_all(n->output, n->graph->n_outputs, to);
    for (int line = 0; line < n->graph->n_nodes; line++)
        if (n->kept[line])
            rename_all(n->kept[line], n->sizes->bound[0]->calls[line].call.n_tensors, to);
    free(to);
    join_means(n);
    join_softplus(n);
}

/* ---- names ---- */

/* The fold that a node has the parts of. */
static int whole_fold(const Nodes *n, int node)
{
    for (int i = 0; i < n->n; i++)
        if (n->node[i].kind == NODE_FOLD && n->node[i].arg[0] == node) return i;
    return node;
}

/* What a node is in its operator. */
static const char *role(const Node *x)
{
    static const char *const folds[] = {"sum", "max", "min", "product", "mean", "spread", "expsum"};
    return x->kind == NODE_FOLD ? folds[x->fold] : x->kind == NODE_COORD ? "at" : "part";
}

/* A name for what has none in the graph, after the first result of its operator: "h_mean". */
static void name_part(const Nodes *n, int node, char out[GRAPH_NAME])
{
    const Node *x = &n->node[node];
    int before = 0;
    for (int i = 0; i < node; i++)
        before += n->node[i].made == x->made && n->node[i].value < 0 &&
                  n->node[i].kind == x->kind && !strcmp(role(&n->node[i]), role(x));
    const int len =
        snprintf(out, GRAPH_NAME, "%.40s_%s", n->graph->name[n->graph->first[x->made]], role(x));
    if (before) snprintf(out + len, (size_t)(GRAPH_NAME - len), "_%d", before + 1);
}

void node_key(const Nodes *n, int node, char out[GRAPH_NAME])
{
    int value = n->node[node].value, whole = n->node[node].parts ? whole_fold(n, node) : node;
    if (whole != node) {
        node_key(n, whole, out);
        snprintf(out + strlen(out), GRAPH_NAME - strlen(out), "_parts");
        return;
    }
    for (int i = 0; i < node && value >= 0; i++)
        if (n->node[i].value == value) value = -1;
    if (value >= 0 && strcmp(n->graph->name[value], "_"))
        snprintf(out, GRAPH_NAME, "%.44s", n->graph->name[value]);
    else if (n->plain && n->graph->n_nodes)
        name_part(n, node, out);
    else
        snprintf(out, GRAPH_NAME, "part_%d", node);
}

int node_name_taken(const Nodes *n, const char *name)
{
    static const char *const functions[] = {"ceil_div", "min", "max", "log2", "dim3"};
    const Task *t = n->sizes->task;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(name, functions[i])) return 1;
    for (int i = 0; i < t->n_axes; i++)
        if (!strcmp(name, t->axis_name[i])) return 1;
    for (int i = 0; i < t->n_outputs; i++)
        if (!strcmp(name, t->outputs[i].name)) return 1;
    for (int i = 0; i < n->n; i++)
        if (!strcmp(name, n->node[i].name) || !strcmp(name, n->node[i].shaped)) return 1;
    return 0;
}
